"""In: the same input again, and changed ones. Out: what a run without cache gives."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate.codegen import helper_copy
from migrate.engine import rewrite
from migrate.vendoring.library import Looked
from migrate.workspace import cache, project
from migrate.workspace.cache import Cache, Kept

NET = "import torch\n\n\ndef f(x):\n    return torch.abs(x) + {n}\n"
USING = "import acme\nimport torch\n\n\ndef g(x):\n    return acme.twice(torch.exp(x)) * {n}\n"
ACME = "import torch\n\n\ndef twice(x):\n    return torch.relu(x) * {n}\n"
FLAGGED = "import torch\n\n\ndef h(x):\n    return torch.poisson(x) + {n}\n"
OTHERS = {
    "notes.txt": "{n}", "requirements.txt": "torch>=2.{n}\nnumpy\n",
    "conf.yaml": "a: torch.nn.ReLU {n}\n",
    "pkg/__init__.py": "# {n}\n", "broken.py": "def f(:  # {n}\n", ".gitignore": "gone{n}.py\n",
    "torch2ms-choices.toml": "# {n}\n", "pkg/helper.py": "import os\n\nn = {n}\n",
}  # fmt: skip


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The sources that were really converted."""
    found: list[str] = []
    real = project.convert

    def convert(request, progress=lambda done, total: None):
        found.append(request.source.name)
        return real(request, progress)

    monkeypatch.setattr(project, "convert", convert)
    yield found


def book(n: int) -> str:
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None,
              "source": f"import torch\nx = torch.ones({n}).exp()"}]  # fmt: skip
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4})


def edit(root: Path, package: Path, random_: random.Random, n: int) -> None:
    """Change one thing that a conversion may depend on."""
    kinds = [
        "net",
        "using",
        "flagged",
        "other",
        "package",
        "module",
        "gone",
        "mode",
        "book",
        "link",
    ]
    kind = random_.choice(kinds)
    name = f"m{random_.randrange(4)}.py"
    texts = {"net": NET, "using": USING, "flagged": FLAGGED}
    if kind in texts:
        (root / name).write_text(texts[kind].format(n=n))
    elif kind == "other":
        path = random_.choice(sorted(OTHERS))
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(OTHERS[path].format(n=n))
    elif kind == "package":
        (package / "__init__.py").write_text(ACME.format(n=n))
    elif kind == "module":
        (package / "__init__.py").write_text("from acme.inner import twice\n")
        (package / "inner.py").write_text(ACME.format(n=n))
    elif kind == "gone":
        (root / name).unlink(missing_ok=True)
    elif kind == "mode":
        (root / "main.py").chmod(random_.choice([0o644, 0o755]))
    elif kind == "book":
        (root / "a.ipynb").write_text(book(n % 3 + 1))
    else:
        (root / "link").unlink(missing_ok=True)
        (root / "link").symlink_to(random_.choice(["main.py", "../elsewhere"]))


def check_edits(run, write, snapshot, seed: int, count: int) -> int:
    """Run with and without cache behind each edit; return how often nothing was converted."""
    random_ = random.Random(seed)
    root = write({"main.py": NET.format(n=0)}, f"in{seed}")
    package = root.parent / f"site{seed}" / "acme"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(ACME.format(n=0))
    out = root.parent / f"out{seed}"
    options = ("--follow", "acme", "--follow-path", package.parent)
    for n in range(count):
        if random_.random() < 0.8:
            edit(root, package, random_, n)
        shown = []
        for more in ((), (), ("--no-cache",)):
            shutil.rmtree(out, ignore_errors=True)
            done = run("convert", root, "-o", out, *options, *more)
            shown.append((done, snapshot(out) if out.exists() else None))
        assert shown[0] == shown[1] == shown[2], n
        for command in ("check", "scan"):
            told = [run(command, root, "--format", "json", *more) for more in ((), ("--no-cache",))]
            assert told[0] == told[1], n
    return count


def test_random_edits_give_what_a_run_without_cache_gives(run, write, snapshot, made) -> None:
    check_edits(run, write, snapshot, 1, 6)
    assert made.count("in1") <= 6 * 6  # of seven runs behind an edit at least one was kept


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(2, 10))
def test_two_hundred_random_edits(run, write, snapshot, seed: int) -> None:
    check_edits(run, write, snapshot, seed, 25)


def test_nothing_is_converted_twice(run, write, made) -> None:
    root = write({"a.py": NET.format(n=1), "b.py": FLAGGED.format(n=1)})
    for command in (("convert", root, "-o", root.parent / "out"), ("check", root), ("scan", root)):
        first = run(*command)
        assert run(*command) == first
        assert made.pop() and not made
        run(*command, "--no-cache")
        assert made.pop() and not made
    (root / "b.py").write_text(FLAGGED.format(n=2))
    run("convert", root, "-o", root.parent / "out")
    assert made == ["in"]


def test_diff_and_notebooks_come_from_what_was_kept(run, write, made) -> None:
    bad = json.loads(book(1))
    bad["cells"].append({**bad["cells"][0], "source": "y = torch.poisson(x)"})
    root = write({"a.ipynb": json.dumps(bad), "b.py": FLAGGED.format(n=1)})
    first, second = (run("convert", root, "--diff") for _ in range(2))
    assert first == second and made == ["in"]
    assert "a.ipynb:cell 2:1:5 API104" in second.err and "+++ b/b.py" in second.out


def test_the_tool_the_options_and_the_choices_are_part_of_the_key(
    run, write, made, monkeypatch
) -> None:
    root = write({"pyproject.toml": "", "a.py": FLAGGED.format(n=1)})
    out = root.parent / "out"
    row = ('[[choice]]\nfile = "a.py"\nwithin = "h"\nstatement = "return torch.poisson(x) + 1"\n'
           'name = "torch.poisson"\nform = "expression"\nbecomes = "x"\n')  # fmt: skip
    run("convert", root, "-o", out)
    run("convert", root, "-o", out, "--helpers", "inline")
    run("convert", root, "-o", root.parent / "other")
    run("convert", root, "-o", out, "--exclude", "b.py")
    assert len(made) == 4
    (root / "torch2ms-choices.toml").write_text(row)
    assert run("convert", root, "-o", out).code == 0
    assert len(made) == 5
    monkeypatch.setattr(Cache, "tool", "another edition")
    run("convert", root, "-o", out)
    assert len(made) == 6


def test_rows_are_told_by_their_content_and_rules_are_never_kept(run, write, made) -> None:
    rows = '["torch.poisson"]\nto = "mindspore.ops.{}(input)"\n'
    root = write({"a.py": FLAGGED.format(n=1)})
    rule = (
        "from migrate import Rule\n\n\nclass R(Rule):\n    looks_for = ('torch.poisson',)\n"
        "    after = ('torch2ms',)\n\n    def decide(self, node, facts):\n"
        "        return 'mindspore.ops.exp(x)'\n"
    )
    own = write({"own.toml": rows.format("abs"), "rule.py": rule}, "own")
    command = ("convert", root, "-o", root.parent / "out", "--mappings", own / "own.toml")
    for _ in range(2):
        ran = run(*command)
        assert ran.code == 0, ran
    assert len(made) == 1
    (own / "own.toml").write_text(rows.format("exp"))
    ran = run(*command)
    assert ran.code == 0, ran
    assert len(made) == 2
    assert "ops.exp(x)" in (root.parent / "out/a.py").read_text()
    for _ in range(2):
        run("convert", root, "-o", root.parent / "ruled", "--mappings", own / "rule.py")
    assert len(made) == 4


def test_what_failed_through_a_fault_of_ours_is_not_kept(run, write, monkeypatch) -> None:
    root = write({"a.py": NET.format(n=1)})

    def convert(*given: object) -> None:
        raise RuntimeError("boom")

    with monkeypatch.context() as patch:
        patch.setattr(rewrite, "convert", convert)
        assert run("check", root).code == 3
        assert run("convert", root, "-o", root.parent / "out").code == 3
    assert run("check", root).code == 0
    assert run("convert", root, "-o", root.parent / "out").code == 0


def test_what_changes_while_it_is_converted_is_not_kept(write, tmp_path: Path) -> None:
    root = write({"a.py": NET.format(n=1)})
    request = project.Request(root, tmp_path / "out")
    kept = Cache(tmp_path / "cache")

    def make() -> Kept:
        (root / "a.py").write_text(NET.format(n=2))
        return Kept({"x": b"1"})

    kept.got("convert", request, (), make)
    assert not kept.folder.exists()


def test_entries_are_bounded_broken_ones_are_none_and_no_place_is_no_fault(
    run, write, tmp_path: Path, monkeypatch, made
) -> None:
    root = write({"a.py": NET.format(n=1)})
    request = project.Request(root, tmp_path / "out")
    kept = Cache(tmp_path / "cache", limit=5000)
    for n in range(8):
        big = Kept({"x": random.Random(n).randbytes(1500)})
        kept.got("convert", request, (str(n),), lambda big=big: big)
        os.utime(next(iter(sorted(kept.folder.iterdir(), key=os.path.getmtime))), (n, n))
    assert sum(path.stat().st_size for path in kept.folder.iterdir()) <= 5000
    run("check", root)
    (entry,) = (Path(os.environ["XDG_CACHE_HOME"]) / "torch2ms").iterdir()
    for data in (b"", b"PK", entry.read_bytes()[:100]):
        entry.write_bytes(data)
        assert run("check", root).code == 0
    assert len(made) == 4
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert run("check", root).code == 0
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert run("check", root).code == 0
    assert cache.opened() is None


def test_runs_at_the_same_time_leave_whole_entries(write, tmp_path: Path) -> None:
    root = write({"a.py": NET.format(n=1)})
    request = project.Request(root, tmp_path / "out")
    kept = Cache(tmp_path / "cache", limit=3000)
    wrong: list[object] = []

    def work(seed: int) -> None:
        for n in range(10):
            key = str((seed + n) % 3)
            data = random.Random(key).randbytes(1200)
            got = kept.got("convert", request, (key,), lambda data=data: Kept({"x": data}))
            wrong.extend([] if got["x"] == data else [key])

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert not [p for p in kept.folder.iterdir() if p.suffix != ".zip"]


def test_packages_that_are_looked_up_again(tmp_path: Path) -> None:
    module = tmp_path / "acme" / "__init__.py"
    assert Looked({"acme": ""}).holds((tmp_path,))
    module.parent.mkdir()
    module.write_text("")
    assert not Looked({"acme": ""}).holds((tmp_path,))
    assert Looked({}, {str(module): "+"}).holds(())
    assert not Looked({}, {str(module): ""}).holds(())
    assert not Looked({}, {str(module): "0" * 64}).holds(())


def test_nothing_heavy_is_imported_for_what_was_kept(write, tmp_path: Path) -> None:
    root = write({"a.py": FLAGGED.format(n=1), "b.py": NET.format(n=1)})
    code = (
        "import sys; from migrate.cli import main; main(sys.argv[1:]); "
        "print(sorted({'libcst', 'migrate.engine.rewrite'} & set(sys.modules)))"
    )
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    for command in (("convert", str(root), "-o", str(tmp_path / "out")), ("scan", str(root))):
        for expected in (False, True):
            done = subprocess.run(
                [sys.executable, "-c", code, *command], capture_output=True, text=True, env=env,
                check=True, cwd=Path(helper_copy.__file__).parents[2],
            )  # fmt: skip
            assert done.stdout.splitlines()[-1].startswith("[]") == expected, command
