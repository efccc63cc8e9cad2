"""In: an output edited by hand, and a second conversion. Out: no edit of either is lost."""

from __future__ import annotations

import ast
import json
import os
import random
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate.workspace import notebook_merge, three_way

NET = '''import torch
from torch import nn


class Net(nn.Module):
    """A net."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 2)

    def forward(self, x):
        x = torch.relu(self.first(x))
        return self.second(x)


def total(x):
    # all of it
    return torch.sum(x)


def spread(x):
    return torch.std(x)


def least(x):
    return torch.min(x)
'''
OTHER = "import torch\n\n\ndef f(x):\n    return torch.abs(x)\n"
LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n"]), max_size=12).map(b"".join)


@settings(max_examples=200, deadline=None)
@given(LINES, LINES)
def test_what_one_side_changed_is_taken(base: bytes, changed: bytes) -> None:
    for mine, other in ((changed, base), (base, changed), (changed, changed)):
        assert three_way.merge(base, mine, other) == three_way.Merged(changed)


@settings(max_examples=300, deadline=None)
@given(LINES, LINES, LINES)
def test_marked_places_hold_both_sides(base: bytes, mine: bytes, other: bytes) -> None:
    made = three_way.merge(base, mine, other)
    assert three_way.is_marked(made.data) == bool(made.conflicts)
    lines = made.data.splitlines(keepends=True)
    for number in made.conflicts:
        assert lines[number - 1] == b"<<<<<<< edited by hand\n"
    for side in (mine, other):
        new = set(side.splitlines()) - set(base.splitlines())
        assert new <= {line.rstrip(b"\n") for line in lines}
    # exchanged sides decide alike
    back = three_way.merge(base, other, mine)
    assert len(back.conflicts) == len(made.conflicts)


def test_last_lines_without_an_end_and_windows_lines() -> None:
    made = three_way.merge(b"a", b"b", b"c")
    assert made.data == b"<<<<<<< edited by hand\nb\n=======\nc\n>>>>>>> converted anew\n"
    made = three_way.merge(b"a\r\nb\r\n", b"A\r\nb\r\n", b"x\r\nb\r\n")
    assert made.data.count(b"\r\n") == made.data.count(b"\n")


def edited(text: str, random_: random.Random, number: int) -> str:
    """A hand edit: a line more, a line changed, or a line less, that still compiles."""
    lines = text.split("\n")
    places = [n for n, line in enumerate(lines) if line.startswith("    ") and '"""' not in line]
    place = random_.choice(places)
    indent = lines[place][: len(lines[place]) - len(lines[place].lstrip())]
    kind = random_.choice(["more", "changed", "above"])
    if kind == "more":
        lines.insert(place, f"{indent}hand_{number} = {number}")
    elif kind == "changed":
        lines[place] += f"  # by hand {number}"
    else:
        lines.insert(0, f"# hand {number}")
    return "\n".join(lines)


def developed(text: str, random_: random.Random) -> str:
    """A change of the source, as its author would make one."""
    changes = [
        ("nn.Linear(4, 8)", "nn.Linear(4, 16)"), ("    # all of it\n", ""),
        ("torch.min(x)", "torch.max(x)"), ("torch.std(x)", "torch.var(x) + 1"),
        ("def least", "def more(x):\n    return torch.exp(x)\n\n\ndef least"),
        ("import torch\n", "import os\nimport torch\n"),
    ]  # fmt: skip
    for old, new in random_.sample(changes, 2):
        text = text.replace(old, new, 1)
    return text


@pytest.mark.parametrize("seed", range(20))
def test_random_hand_edits_are_never_lost(run, write, seed: int) -> None:
    random_ = random.Random(seed)
    root = write({"pkg/__init__.py": "", "pkg/net.py": NET, "pkg/other.py": OTHER})
    out, fresh = root.parent / "out", root.parent / "fresh"
    assert run("convert", root, "-o", out).code == 0
    target = out / "pkg/net.py"
    base = target.read_text()
    mine = base
    for number in range(random_.randint(1, 3)):
        mine = edited(mine, random_, 100 * seed + number)
    target.write_text(mine)
    (out / "pkg/own.py").write_text("own = 1\n")
    (root / "pkg/net.py").write_text(developed(NET, random_))
    assert run("convert", root, "-o", fresh).code == 0
    other = (fresh / "pkg/net.py").read_text()
    done = run("convert", root, "-o", out)
    now = target.read_text()
    new = set(now.split("\n"))
    for side in (mine, other):
        assert set(side.split("\n")) - set(base.split("\n")) <= new, now
    assert (out / "pkg/own.py").read_text() == "own = 1\n"
    assert (out / "pkg/other.py").read_bytes() == (fresh / "pkg/other.py").read_bytes()
    marked = three_way.is_marked(now.encode())
    assert marked == ("CONFLICT:" in done.out) == (done.code == 1), done.out
    if marked:
        again = run("convert", root, "-o", out)
        assert (again.code, target.read_text()) == (2, now)
        assert "conflicts of an earlier merge" in again.err
    else:
        ast.parse(now)
        assert f"Merged:     {target}" in done.out
        assert run("convert", root, "-o", out).code == 0  # and once more: nothing to do
        assert target.read_text() == now
    report = json.loads((out / "torch2ms.json").read_text())
    lines = now.split("\n")
    for file in report["files"]:
        for cell in file["cells"] if file["source"] == "pkg/net.py" else ():
            assert lines[cell["output_line"] - 1].startswith("class Net")


def test_files_that_nobody_edited_are_replaced_or_go(run, write) -> None:
    root = write({"a.py": NET, "sub/b.py": OTHER, "sub/c.py": OTHER, "d.txt": "1"})
    out = root.parent / "out"
    run("convert", root, "-o", out)
    (out / "sub/c.py").write_text("by_hand = 1\n")
    for name in ("sub/b.py", "sub/c.py", "d.txt"):
        (root / name).unlink()
    (root / "a.py").write_text(OTHER)
    done = run("convert", root, "-o", out)
    assert done.code == 0
    assert "class Net" not in (out / "a.py").read_text()
    assert sorted(os.listdir(out / "sub")) == ["c.py"]
    assert not (out / "d.txt").exists()
    assert f"Removed:    {out / 'sub/b.py'}" in done.out
    assert f"Stays:      {out / 'sub/c.py'}" in done.out


def test_what_fails_this_time_stays_and_is_merged_later(run, write) -> None:
    root = write({"a.py": NET, "b.py": OTHER})
    out = root.parent / "out"
    run("convert", root, "-o", out)
    text = (out / "a.py").read_text()
    (out / "a.py").write_text("# hand\n" + text)
    (root / "a.py").write_text("def broken(:\n")
    assert run("convert", root, "-o", out).code == 2
    assert (out / "a.py").read_text() == "# hand\n" + text
    (root / "a.py").write_text(NET.replace("torch.min", "torch.max"))
    assert run("convert", root, "-o", out).code == 0
    now = (out / "a.py").read_text()
    assert now.startswith("# hand\n")
    assert "max" in now


def test_force_keeps_what_it_replaces(run, write) -> None:
    root = write({"a.py": NET, "b.py": OTHER})
    out = root.parent / "out"
    run("convert", root, "-o", out)
    text = (out / "a.py").read_text()
    for number in ("", ".1"):
        (out / "a.py").write_text(f"# hand{number}\n{text}")
        done = run("convert", root, "-o", out, "--force")
        assert done.code == 0
        assert (out / "a.py").read_text() == text
        assert (out / f"a.py.orig{number}").read_text() == f"# hand{number}\n{text}"
        assert f"line 1 kept as a.py.orig{number}" in done.out
        assert "b.py" not in done.out


def test_an_output_of_an_edition_without_bases(run, write, snapshot) -> None:
    root = write({"a.py": NET, "b.py": OTHER})
    out = root.parent / "out"
    run("convert", root, "-o", out)
    (out / "torch2ms.base.zip").unlink()
    (root / "b.py").write_text(OTHER.replace("abs", "exp"))
    assert run("convert", root, "-o", out).code == 0  # nobody edited it
    (out / "torch2ms.base.zip").unlink()
    (out / "b.py").write_text((out / "b.py").read_text() + "# hand\n")
    (root / "b.py").write_text(OTHER)
    before = snapshot(out)
    done = run("convert", root, "-o", out)
    assert done.code == 2
    assert "1 files were edited by hand" in done.err and "FILE.orig" in done.err
    assert snapshot(out) == before


def test_another_input_does_not_replace_an_output(run, write, snapshot) -> None:
    root = write({"a.py": NET})
    other = write({"a.py": OTHER}, "second")
    out = root.parent / "out"
    run("convert", root, "-o", out)
    before = snapshot(out)
    done = run("convert", other, "-o", out)
    assert (done.code, snapshot(out)) == (2, before)
    assert "another input was converted to this place" in done.err
    os.rename(root, root.parent / "moved")
    os.rename(other, root)
    os.rename(root.parent / "moved", root.parent / "third")
    assert run("convert", root, "-o", out).code == 0


def test_a_merge_that_takes_an_import_away_is_told(run, write) -> None:
    root = write({"a.py": "import os\nimport torch\n\n\ndef f(x):\n    return torch.abs(x)\n\n\n"
                  "def g():\n    return os.sep\n"})  # fmt: skip
    out = root.parent / "out"
    run("convert", root, "-o", out)
    text = (out / "a.py").read_text()
    (out / "a.py").write_text(text.replace("def f(x):\n", "def f(x):\n    print(os.name)\n"))
    (root / "a.py").write_text("import torch\n\n\ndef f(x):\n    return torch.abs(x)\n")
    done = run("convert", root, "-o", out)
    assert done.code == 1
    assert "merged, but nothing binds os" in done.out
    assert "print(os.name)" in (out / "a.py").read_text()


def test_strict_writes_nothing_where_there_is_a_conflict(run, write, snapshot) -> None:
    root = write({"a.py": OTHER})
    out = root.parent / "out"
    run("convert", root, "-o", out)
    text = (out / "a.py").read_text()
    (out / "a.py").write_text(text.replace("(x)\n", "(x) + 1\n"))
    (root / "a.py").write_text(OTHER.replace("abs", "exp"))
    before = snapshot(out)
    done = run("convert", root, "-o", out, "--strict")
    assert (done.code, snapshot(out)) == (1, before)
    assert "CONFLICT:" in done.out and "Nothing is written" in done.out


def test_data_that_was_edited_stays_and_the_new_lies_beside(run, write) -> None:
    root = write({"a.py": OTHER, "w.bin": b"\0\1\xff"})
    out = root.parent / "out"
    run("convert", root, "-o", out)
    (out / "w.bin").write_bytes(b"\0mine\xff")
    assert run("convert", root, "-o", out).code == 0
    (root / "w.bin").write_bytes(b"\0new\xff")
    done = run("convert", root, "-o", out)
    assert done.code == 1
    assert (out / "w.bin").read_bytes() == b"\0mine\xff"
    assert (out / "w.torch2ms-new.bin").read_bytes() == b"\0new\xff"


def test_bases_are_the_same_bytes_and_name_no_time(run, write) -> None:
    root = write({"a.py": NET})
    for name in ("one", "two"):
        run("convert", root, "-o", root.parent / name)
    one, two = (root.parent / name / "torch2ms.base.zip" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    with zipfile.ZipFile(one) as packed:
        assert packed.read("files/a.py") == (root.parent / "one/a.py").read_bytes()
    one.write_bytes(b"broken")
    assert "cannot be read" in run("convert", root, "-o", one.parent).err


# -- notebooks -----------------------------------------------------------------------------------


def book(*cells: str, printed: str = "") -> bytes:
    outputs = [{"output_type": "stream", "name": "stdout", "text": [printed]}] if printed else []
    made = [
        {"cell_type": "code", "metadata": {}, "source": c, "outputs": outputs,
         "execution_count": None}
        for c in cells
    ]  # fmt: skip
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}).encode()


def sources(data: bytes) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(data)["cells"]]


def test_cells_are_merged_and_added_ones_stay() -> None:
    base = book("a = 1\nb = 2", "c = 3", "d = 4")
    mine = book("a = 1\nb = 20", "new = 0", "c = 3", "d = 4", printed="out")
    made = notebook_merge.merge(base, mine, book("a = 1\nb = 2", "c = 3", "d = 5"))
    assert not made.conflicts
    assert sources(made.data) == ["a = 1\nb = 20", "new = 0", "c = 3", "d = 5"]
    printed = [bool(cell["outputs"]) for cell in json.loads(made.data)["cells"]]
    assert printed == [True, True, True, False]


def test_a_conflict_stays_inside_of_its_cell() -> None:
    made = notebook_merge.merge(book("a = 1", "b"), book("a = 2", "b"), book("a = 3", "b"))
    assert made.conflicts == (1,)
    assert sources(made.data)[0].startswith("<<<<<<< edited by hand\na = 2\n=======\na = 3\n")
    with pytest.raises(ValueError, match="which cells"):
        notebook_merge.merge(book("a"), book("a", "b", "c"), book("a", "d"))


def test_a_notebook_by_the_command(run, write) -> None:
    cells = ["import torch", "x = torch.ones(2)", "y = torch.abs(x)"]
    root = write({"a.ipynb": book(*cells)})
    out = root.parent / "out"
    assert run("convert", root, "-o", out).code == 0
    path: Path = out / "a.ipynb"
    content = json.loads(path.read_bytes())
    content["cells"][1]["source"] = ["x = by_hand()"]
    path.write_text(json.dumps(content))
    (root / "a.ipynb").write_bytes(book(*cells[:2], "y = torch.exp(x)"))
    done = run("convert", root, "-o", out)
    assert "Merged:" in done.out
    assert sources(path.read_bytes())[1:] == ["x = by_hand()", "y = ops.exp(x)"]
    (root / "a.ipynb").write_bytes(book(cells[0], "x = torch.zeros(2)", cells[2]))
    done = run("convert", root, "-o", out)
    assert done.code == 1
    assert "a.ipynb: edited by hand and converted anew at the same place (cell 2)" in done.out
    assert run("convert", root, "-o", out).code == 2
