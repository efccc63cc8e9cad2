"""In: outputs with flags, and decisions. Out: what ``torch2ms fix`` makes of them, and keeps."""

from __future__ import annotations

import ast
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from migrate.cli import fix_terminal
from migrate.explain.candidates import adapted
from migrate.workspace import choices_file

NET = """import torch
from torch import nn


def best(scores):
    return scores.max(1)


def top(x: torch.Tensor):
    return x.numpy().max(1)


class Net{n}(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        x = self.lin(x)
        x = x.to_dense()
        x = x.to_dense()
        x = x.relu().to_dense() + {n}
        return x * float(x.data_ptr() != 0)
"""
HAND = {
    "x = x.relu().to_dense() + {n}": ("statement", "y = ops.relu(x)\nx = y + {n}"),
    "x = x.to_dense()": ("expression", "x"),
    "return x * float(x.data_ptr() != 0)": ("expression", "1"),
    "return scores.max(1)": ("receiver", "Tensor"),
}


def flags(run, out: Path) -> list[dict[str, Any]]:
    done = run("fix", out, "--format", "json")
    found = json.loads(done.out)
    assert found["schema_version"] == 1
    assert done.code == int(bool(found["flags"]))
    return found["flags"]


def fifty(run, write) -> tuple[Path, Path, Path]:
    """Ten files with five flags each, their output, and fifty decisions by id."""
    root = write({"pyproject.toml": "", **{f"n{n}.py": NET.format(n=n) for n in range(10)}})
    out = root.parent / "out"
    assert run("convert", root, "-o", out).code == 1
    found = flags(run, out)
    assert len(found) == 50
    decisions = []
    for flag in found:
        number = re.sub(r"\D", "", flag["file"])
        text = flag["statement"].replace(f"+ {number}", "+ {n}")
        form, becomes = HAND[text]
        decisions.append({"id": flag["id"], "form": form, "becomes": becomes.format(n=number)})
    path = root.parent / "decisions.json"
    path.write_text(json.dumps(decisions))
    return root, out, path


def test_fifty_decisions_from_a_file(run, write) -> None:
    root, out, path = fifty(run, write)
    done = run("fix", out, "--replay", path)
    assert done.code == 0, done.out
    assert "Decided:    50, of which 50 hold" in done.out
    assert f"Next:       torch2ms verify {out / 'n3.py'}" in done.out
    text = (out / "n3.py").read_text()
    ast.parse(text)
    assert "TODO" not in text and "        y = ops.relu(x)\n        x = y + 3\n" in text
    assert "    return ops.max(scores, 1)\n" in text  # the receiver is a Tensor
    assert (root / choices_file.NAME).read_text().count("[[choice]]") == 50
    assert flags(run, out) == []
    # remembered: also in another output, when lines have moved and the layout is another
    moved = NET.format(n=3).replace("class Net", "# moved\n\n\nclass Net")
    (root / "n3.py").write_text(moved.replace("x = x.to_dense()", "x  =  x.to_dense()"))
    again = run("convert", root, "-o", root.parent / "second")
    assert again.code == 0
    assert "Chosen:     50 places" in again.out
    assert run("check", root / "n3.py").code == 0
    assert run("scan", root).code == 0
    # what is written otherwise is asked anew
    (root / "n3.py").write_text(moved.replace("x.relu().to_dense()", "x.abs().to_dense()"))
    changed = run("convert", root, "-o", root.parent / "second")
    assert changed.code == 1
    assert "Choices:    1 meet no flag any more: n3.py: x = x.relu().to_dense() + 3" in changed.out


@pytest.mark.slow
def test_what_was_decided_is_verified(run, write) -> None:
    _, out, path = fifty(run, write)
    assert run("fix", out, "--replay", path).code == 0
    for n in (0, 7):
        done = run("verify", out / f"n{n}.py", "--build", f"Net{n}()", "--input", "2x4")
        assert done.code == 0, done.out


def one(run, write, body: str) -> tuple[Path, Path, list[dict[str, Any]]]:
    root = write({"pyproject.toml": "", "net.py": f"import torch\n\n\n{body}"})
    out = root.parent / "out"
    run("convert", root, "-o", out)
    return root, out, flags(run, out)


def replay(run, out: Path, rows: list[dict[str, Any]]):
    path = out.parent / "decisions.json"
    path.write_text(json.dumps(rows))
    return run("fix", out, "--replay", path)


def test_a_decision_that_does_not_compile_or_binds_nothing_is_not_taken(run, write) -> None:
    root, out, (flag,) = one(run, write, "def f(x):\n    return torch.poisson(x)\n")
    before = (out / "net.py").read_bytes()
    for becomes, why in (
        ("ops.random_poisson(", "ParserSyntaxError"),
        ("unknown_name(x)", "nothing binds the name unknown_name"),
        ("torch.relu(x)", "nothing binds the name torch"),
    ):
        done = replay(run, out, [{"id": flag["id"], "form": "expression", "becomes": becomes}])
        assert done.code == 1
        assert "0 hold" in done.out and why in done.out
        assert (out / "net.py").read_bytes() == before
    assert not (root / choices_file.NAME).exists()


def test_inside_of_what_is_chosen_the_source_is_converted(run, write) -> None:
    _, out, (flag,) = one(run, write, "def f(x):\n    return torch.poisson(torch.relu(x) + 1)\n")
    row = {"id": flag["id"], "form": "expression", "becomes": "my.draw(torch.relu(x) + 1)"}
    assert "nothing binds the name my" in replay(run, out, [row]).out
    row["becomes"] = "ops.random_poisson((2,), torch.relu(x) + 1)"
    assert replay(run, out, [row]).code == 0
    assert "return ops.random_poisson((2,), ops.relu(x) + 1)" in (out / "net.py").read_text()


def test_a_call_is_taken_away_and_a_text_is_kept(run, write) -> None:
    body = (
        'def f(x):\n    torch.cuda.nvtx.range_push("a")\n    return x\n\n\n'
        'def g():\n    torch.cuda.nvtx.range_push("b")\n\n\n'
        "def h(x):\n    return x.max(0)\n\n\n"
        "def top(x: torch.Tensor):\n    return x.numpy().max(1)\n"
    )
    _, out, found = one(run, write, body)
    rows = [
        {"id": found[0]["id"], **found[0]["candidates"][-1]},
        {"id": found[1]["id"], "form": "statement", "becomes": "pass"},
        {"id": found[2]["id"], "form": "keep"},
    ]
    for row in rows:
        row.pop("source", None)
    assert replay(run, out, rows).code == 0
    text = (out / "net.py").read_text()
    assert "def f(x):\n    return x\n" in text and "def g():\n    pass\n" in text
    assert "    return x.max(0)\n" in text and "TODO" not in text


def test_a_choice_survives_a_hand_edit_of_the_output(run, write) -> None:
    _, out, (flag,) = one(run, write, "def f(x):\n    return torch.poisson(x)\n\n\nn = 1\n")
    text = (out / "net.py").read_text()
    (out / "net.py").write_text(text.replace("n = 1", "n = 2"))
    row = {"id": flag["id"], "form": "expression", "becomes": "ops.random_poisson((2,), x)"}
    done = replay(run, out, [row])
    assert done.code == 0 and "Merged:" in done.out
    now = (out / "net.py").read_text()
    assert "n = 2" in now and "ops.random_poisson((2,), x)" in now


def test_what_was_chosen_before_is_proposed_with_the_arguments_of_the_place(run, write) -> None:
    body = "def f(x, y):\n    a = torch.poisson(x)\n    return a, torch.poisson(y.abs())\n"
    _, out, found = one(run, write, body)
    row = {"id": found[0]["id"], "form": "expression", "becomes": "ops.random_poisson((2,), x)"}
    replay(run, out, [row])
    (left,) = flags(run, out)
    first = left["candidates"][0]
    assert first["becomes"] == "ops.random_poisson((2,), y.abs())"
    assert first["source"] == "chosen before in net.py: f"


@pytest.mark.parametrize(
    ("was", "becomes", "now", "made"),
    [
        ("f(x, 1)", "g(1, x)", "f(y, 2)", "g(2, y)"),
        ("f(x, 1)", "g(x)", "f(y, 1)", "g(y)"),
        ("f(x, 1)", "g(x)", "f(y, 2)", ""),  # what became of 1 is not known
        ("f(x)", "g(x)", "f(y, 2)", ""),
        ("x.f(n=1)", "g(x, 1)", "y.f(n=3)", "g(y, 3)"),
    ],
)
def test_a_choice_is_adapted_or_not_proposed(was: str, becomes: str, now: str, made: str) -> None:
    assert adapted(was, becomes, now) == made


def test_decisions_that_meet_no_flag_are_told(run, write) -> None:
    _, out, (flag,) = one(run, write, "def f(x):\n    return torch.poisson(x)\n")
    done = replay(run, out, [{"id": "0" * 12, "form": "keep"}])
    assert done.code == 1 and "Not found:  000000000000" in done.out
    done = replay(run, out, [{"id": flag["id"], "form": "keep"}])
    assert done.code == 2 and "'keep' cannot be chosen" in done.err
    done = replay(run, out, [{"id": flag["id"], "form": "expression", "becomes": "x", "x": 1}])
    assert done.code == 0


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[[choice]]\nfile = 'a.py'\n", "Field required"),
        ("[[choice", "choices cannot be read"),
        (
            "[[choice]]\nfile='a.py'\nstatement='x'\nname='y'\nform='keep'\nmore=1\n",
            "more is no key",
        ),
        (
            "[[choice]]\nfile='a.py'\nstatement='x'\nname='y'\nform='expression'\n",
            "becomes is empty",
        ),
    ],
)
def test_a_wrong_file_of_choices(run, write, text: str, part: str) -> None:
    root = write({"a.py": "import torch\n", choices_file.NAME: text})
    done = run("convert", root, "-o", root.parent / "out")
    assert done.code == 2 and part in done.err


def test_choices_of_a_part_of_a_project_keep_those_of_the_rest(run, write) -> None:
    body = "import torch\n\n\ndef f(x):\n    return torch.poisson(x)\n"
    root = write({"pyproject.toml": "", "a/net.py": body, "b/net.py": body})
    for name in ("a", "b"):
        out = root.parent / f"out_{name}"
        run("convert", root / name, "-o", out)
        (flag,) = flags(run, out)
        assert flag["file"] == f"{name}/net.py"
        row = {**flag, "form": "expression", "becomes": f"ops.random_poisson((2,), x) + {name}"}
        row["becomes"] = "ops.random_poisson((2,), x)"
        row = {k: row[k] for k in ("file", "within", "statement", "name", "form", "becomes")}
        assert replay(run, out, [row]).code == 0
    assert len(choices_file.read(root / choices_file.NAME)) == 2
    assert run("convert", root, "-o", root.parent / "whole").code == 0


def test_a_notebook_and_a_training_script(run, write) -> None:
    cells = ["import torch", "def f(x):\n    return torch.poisson(x)"]
    made = [{"cell_type": "code", "metadata": {}, "source": c, "outputs": [],
             "execution_count": None} for c in cells]  # fmt: skip
    book = json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 4})
    train = (
        "import torch\nfrom torch import nn\n\nnet = nn.Linear(2, 2)\nloss = nn.MSELoss()\n"
        "opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "for x, y in [(torch.ones(1, 2), torch.ones(1, 2))]:\n    opt.zero_grad()\n"
        "    out = loss(net(x), y)\n    out.backward()\n    opt.step()\n"
        "    print(torch.poisson(x))\n"
    )
    root = write({"a.ipynb": book, "train.py": train})
    out = root.parent / "out"
    run("convert", root, "-o", out)
    found = flags(run, out)
    assert [flag["file"] for flag in found] == ["a.ipynb", "train.py"]
    assert found[1]["line"] == 12
    rows = [{"id": flag["id"], "form": "expression", "becomes": "ops.random_poisson((2,), x)"}
            for flag in found]  # fmt: skip
    assert replay(run, out, rows).code == 0
    assert "print(ops.random_poisson((2,), x))" in (out / "train.py").read_text()


# -- a person ------------------------------------------------------------------------------------


class Answers(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_person_is_asked(run, write, monkeypatch) -> None:
    body = "def f(x, y):\n    a = torch.poisson(x)\n    b = torch.poisson(y)\n    return a, b\n"
    root, out, _ = one(run, write, body)
    monkeypatch.setattr(sys, "stdin", Answers("9\ne\nunknown(x)\ne\nx + 1\n1\n"))
    done = run("fix", out)
    assert done.code == 0, done.out
    assert "this cannot be answered here" in done.out
    assert "this does not hold: INT901: nothing binds the name unknown" in done.out
    assert "1 of 2" in done.out and "original" in done.out
    text = (out / "net.py").read_text()
    assert "a = x + 1" in text and "b = y + 1" in text
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert run("fix", out).out.startswith("Nothing is flagged")
    (root / choices_file.NAME).unlink()
    done = run("fix", out)
    assert done.code == 2 and "--format json" in done.err


@pytest.mark.parametrize(
    ("answers", "left"), [("n\nn\n", 2), ("e\nx\n!\n", 2), ("e\nx\nb\nq\n", 2), ("e\nx\nq\n", 1)]
)
def test_next_back_stop_and_quit(run, write, monkeypatch, answers: str, left: int) -> None:
    body = "def f(x, y):\n    a = torch.poisson(x)\n    b = torch.poisson(y)\n    return a, b\n"
    _, out, _ = one(run, write, body)
    monkeypatch.setattr(sys, "stdin", Answers(answers))
    run("fix", out)
    monkeypatch.undo()
    assert len(flags(run, out)) == left


def test_all_alike_at_once(run, write, monkeypatch) -> None:
    body = "".join(f"def f{n}():\n    torch.cuda.nvtx.range_push('a')\n\n\n" for n in range(5))
    _, out, _ = one(run, write, body)
    monkeypatch.setattr(sys, "stdin", Answers("a\n"))
    assert run("fix", out).code == 0
    assert "range_push" not in (out / "net.py").read_text()


def test_statements_are_written_in_an_editor(run, write, monkeypatch, tmp_path) -> None:
    _, out, (_,) = one(run, write, "def f(x):\n    return torch.poisson(x)\n")
    editor = tmp_path / "editor"
    editor.write_text(
        f'#!{sys.executable}\nimport sys\nopen(sys.argv[1], "a").write("return x\\n")\n'
    )
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(editor))
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setattr(sys, "stdin", Answers("s\n"))
    assert run("fix", out).code == 0
    assert "def f(x):\n    return x\n" in (out / "net.py").read_text()


def test_what_is_shown_has_both_sides_and_no_markup_of_the_code(run, write) -> None:
    from migrate.workspace import record
    from migrate.workspace.fixing import Fixing

    _, out, _ = one(run, write, "def f(x):\n    return torch.poisson(x[[0, 1]])\n")
    (place,) = Fixing.of(record.locate(out)).asked()
    text = io.StringIO()
    fix_terminal.show(place, (), 1, 1, "keys", Console(file=text, width=120))
    assert "return torch.poisson(x[[0, 1]])" in text.getvalue()
    assert "raise NotImplementedError" in text.getvalue()
