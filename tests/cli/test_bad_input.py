"""In: input that cannot be converted. Out: a message with its place, exit code 2, no output."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

GOOD = "import torch\n\n\ndef f(x):\n    return torch.abs(x)\n"

# name -> (content, parts of the message)
BROKEN = {
    "syntax error": (b"import torch\n\ndef f(:\n", [":3", "syntax error", "def f(:", "correct"]),
    "unclosed": (b"import torch\nx = (1,\n", ["syntax error", "never closed"]),
    "python 2": (b"import torch\nprint 'x'\n", [":2", "Python 2", "2to3"]),
    "python 2 except": (b"try:\n    pass\nexcept E, e:\n    pass\n", ["Python 2", "2to3"]),
    "wrong encoding": (
        "# caf\xe9\nimport torch\n".encode("latin-1"),
        ["encoding", "save it as UTF-8"],
    ),
    "unknown coding": (b"# -*- coding: klingon -*-\n", ["encoding", "klingon"]),
    "binary": (b"\x7fELF\0\0\1", ["not a text file", "NUL"]),
    "tabs": (b"if 1:\n\tx = 1\n        y = 2\n", [":3", "syntax error"]),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_is_not_python(run, write, name: str) -> None:
    content, parts = BROKEN[name]
    root = write({"bad.py": content})
    out = root.parent / "out"
    done = run("convert", root / "bad.py", "-o", out)
    assert done.code == 2
    for part in ["bad.py", "next:", *parts]:
        assert part in done.err
    assert not out.exists()
    assert done.out == ""


@pytest.mark.parametrize("name", BROKEN)
def test_the_others_of_a_folder_go_on(run, write, name: str) -> None:
    content, parts = BROKEN[name]
    root = write({"bad.py": content, "good.py": GOOD})
    out = root.parent / "out"
    done = run("convert", root, "-o", out)
    assert done.code == 2
    assert sorted(os.listdir(out)) == ["good.py", "torch2ms.base.zip", "torch2ms.json"]
    for part in ["bad.py", *parts]:
        assert part in done.out


def test_encodings_that_are_named_are_kept(run, write) -> None:
    text = "# -*- coding: latin-1 -*-\nimport torch\nx = torch.Tensor  # caf\xe9\n"
    root = write({"a.py": text.encode("latin-1"), "b.py": b"\xef\xbb\xbf" + GOOD.encode()})
    out = root.parent / "out"
    assert run("convert", root, "-o", out).code in (0, 1)
    assert "caf\xe9".encode("latin-1") in (out / "a.py").read_bytes()
    assert (out / "b.py").read_bytes().startswith(b"\xef\xbb\xbf")


def test_windows_line_ends_are_kept(run, write) -> None:
    root = write({"a.py": GOOD.replace("\n", "\r\n")})
    out = root.parent / "out"
    assert run("convert", root, "-o", out).code == 0
    data = (out / "a.py").read_bytes()
    assert data.count(b"\n") == data.count(b"\r\n") > 0


def test_an_empty_file(run, write) -> None:
    root = write({"a.py": ""})
    done = run("convert", root / "a.py", "-o", root.parent / "out")
    assert done.code == 0
    assert (root.parent / "out/a.py").read_bytes() == b""
    assert "nothing in it needs to change" in done.out


def test_a_file_without_torch_is_copied(run, write) -> None:
    text = "import os\n\n\ndef view(x):\n    return x.split(',')   # not a tensor\n"
    root = write({"a.py": text})
    done = run("convert", root / "a.py", "-o", root.parent / "out")
    assert done.code == 0
    assert (root.parent / "out/a.py").read_text() == text
    assert "nothing in it needs to change" in done.out


def refused(done, *parts: str) -> None:
    assert done.code == 2
    assert done.out == ""
    for part in (*parts, "next:"):
        assert part in done.err


def test_a_missing_file(run, tmp_path: Path) -> None:
    refused(run("convert", tmp_path / "no.py", "-o", tmp_path / "out"), "no.py", "not found")
    assert os.listdir(tmp_path) == []


def test_a_folder_without_python(run, write) -> None:
    root = write({"a.txt": "", "venv/pyvenv.cfg": "", "venv/x.py": ""})
    refused(run("convert", root, "-o", root.parent / "out"), "no Python files", "1 files and")
    assert os.listdir(root.parent) == ["in"]


@pytest.mark.parametrize("name", ["model.txt", "weights.pth", "net"])
def test_a_file_of_another_kind(run, write, name: str) -> None:
    root = write({name: "x"})
    refused(run("convert", root / name, "-o", root.parent / "out"), name, "not a Python file")


@pytest.mark.parametrize("place", [".", "out", "pkg/out"])
def test_the_output_inside_the_input(run, write, snapshot, place: str) -> None:
    root = write({"a.py": GOOD, "pkg/b.py": GOOD})
    before = snapshot(root)
    refused(run("convert", root, "-o", root / place, "--force"), "lies inside the input")
    assert snapshot(root) == before


def test_the_output_is_the_input_file(run, write, snapshot) -> None:
    root = write({"a.py": GOOD})
    before = snapshot(root)
    for out in (root / "a.py", root):
        refused(run("convert", root / "a.py", "-o", out, "--force"), "would change the input")
    assert snapshot(root) == before


def test_an_output_around_the_input_that_would_overwrite_it(run, write, snapshot) -> None:
    root = write({"in/a.py": GOOD, "b.py": GOOD}, "top")
    before = snapshot(root)
    (root / "in/in").mkdir()
    (root / "in/in/a.py").write_text(GOOD)
    before = snapshot(root)
    refused(run("convert", root / "in", "-o", root, "--force"), "would change the input")
    assert snapshot(root) == before


def test_existing_outputs_are_listed_and_nothing_is_written(run, write, snapshot) -> None:
    root = write({"a.py": GOOD, "b.py": GOOD})
    out = write({"b.py": "precious\n"}, "out")
    before = snapshot(out)
    refused(run("convert", root, "-o", out), "1 files would be replaced", "b.py", "--force")
    assert snapshot(out) == before


def test_the_output_is_a_file(run, write) -> None:
    root = write({"a.py": GOOD})
    out = root.parent / "out.txt"
    out.write_text("mine")
    refused(run("convert", root, "-o", out, "--force"), "not a folder")
    refused(run("convert", root / "a.py", "-o", out, "--force"), "not a folder")
    assert out.read_text() == "mine"


def test_an_unreadable_file_in_a_folder(write, tmp_path: Path) -> None:
    """As a user without rights, since root may read everything."""
    root = write({"a.py": GOOD, "secret.py": GOOD})
    (root / "secret.py").chmod(0)
    code = f"from migrate.cli import main; raise SystemExit(main(['convert', {str(root)!r}, '-o', "
    code += f"{str(tmp_path / 'out')!r}]))"
    if os.getuid() == 0:  # whose library that user may not read: all is imported before
        good, made = str(root / "a.py"), str(tmp_path / "first.py")
        first = (
            f"import os; from migrate.cli import main; main(['convert', {good!r}, '-o', {made!r}])"
        )
        code = f"{first}; os.seteuid(65534); {code}"
    tmp_path.chmod(0o777)
    for folder in tmp_path.parents:
        if folder == Path(tempfile.gettempdir()):
            break
        folder.chmod(0o755)  # pytest gives them to the user who runs it alone
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "secret.py: cannot be read: Permission denied; check its permissions" in done.stdout
    assert sorted(os.listdir(tmp_path / "out")) == ["a.py", "torch2ms.base.zip", "torch2ms.json"]


@pytest.mark.parametrize("command", ["verify", "report"])
def test_no_record(run, write, command: str) -> None:
    root = write({"a.py": GOOD})
    more = ["-o", root.parent / "r.html"] if command == "report" else []
    refused(run(command, root, *more), "no record", "torch2ms convert")
    refused(run(command, root / "none", *more), "not found")


@pytest.mark.parametrize("content", ["", "{", '{"files": 3}', '{"unknown": 1}'])
def test_a_broken_record(run, write, content: str) -> None:
    root = write({"torch2ms.json": content})
    refused(run("report", root, "-o", root.parent / "r.html"), "not a record")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[tool.torch2ms", "cannot be read"),
        ("[tool.torch2ms]\nmapings = []\n", "did you mean 'mappings'?"),
        ("[tool.torch2ms.verify]\nmode = 'eager'\n", "tool.torch2ms.verify.mode"),
        ("[tool.torch2ms]\nmappings = ['gone.toml']\n", "gone.toml"),
    ],
)
def test_broken_settings(run, write, text: str, part: str) -> None:
    root = write({"pyproject.toml": text, "a.py": GOOD})
    refused(run("convert", root, "-o", root.parent / "out"), part)
    assert not (root.parent / "out").exists()
