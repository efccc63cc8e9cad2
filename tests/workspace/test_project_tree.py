"""In: folders with everything that projects hold. Out: what the walk takes, leaves out, and why."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from migrate.records.outcomes import Problem
from migrate.workspace.tree import SIZE_LIMIT, walk


def paths(tree) -> dict[str, str]:
    return {file.path: file.kind for file in tree.files}


def reasons(tree) -> dict[str, str]:
    return {item.path: item.reason for item in tree.skipped}


def test_kinds_in_order(write) -> None:
    root = write({"b.py": "", "a/c.py": "", "n.ipynb": "{}", "data.txt": "x"})
    (root / "l.py").symlink_to("b.py")
    assert list(paths(walk(root)).items()) == [
        ("a/c.py", "python"),
        ("b.py", "python"),
        ("data.txt", "other"),
        ("l.py", "link"),
        ("n.ipynb", "notebook"),
    ]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (".git/config", "hidden folder"),
        ("__pycache__/x.pyc", "cache"),
        ("kernel_meta/x.json", "cache"),
        ("thing.egg-info/PKG-INFO", "cache"),
        ("env/pyvenv.cfg", "virtual environment"),
        ("conda/conda-meta/history", "virtual environment"),
        ("build/lib/x.py", "build output"),
        ("dist/x.py", "build output"),
    ],
)
def test_left_out(write, name: str, reason: str) -> None:
    root = write({name: "", "setup.py": ""})
    tree = walk(root)
    assert reasons(tree) == {name.split("/")[0]: reason}
    assert paths(tree) == {"setup.py": "python"}


@pytest.mark.parametrize(
    "name", ["build/x.py", "env/x.py", "dist/x.py", ".hidden.py", "a.git/x.py"]
)
def test_must_stay(write, name: str) -> None:
    """The same names without what makes them an environment or build output."""
    assert name in paths(walk(write({name: ""})))


def test_build_that_is_a_package_stays(write) -> None:
    root = write({"setup.py": "", "build/__init__.py": "", "build/x.py": ""})
    assert "build/x.py" in paths(walk(root))


def test_gitignore_of_each_folder(write) -> None:
    root = write(
        {
            ".gitignore": "/data/\n*.log\n",
            "data/a.py": "",
            "pkg/data/a.py": "",
            "pkg/.gitignore": "gen.py\n!keep.log\n",
            "pkg/gen.py": "",
            "gen.py": "",
            "x.log": "",
            "pkg/keep.log": "",
        }
    )
    tree = walk(root)
    assert reasons(tree) == dict.fromkeys(("data", "pkg/gen.py", "x.log"), "named in .gitignore")
    assert {"pkg/data/a.py", "gen.py", "pkg/keep.log"} <= paths(tree).keys()


def test_exclude_has_the_last_word(write) -> None:
    root = write({".gitignore": "lib/\n", "lib/a.py": "", "tests/t.py": "", "x/tests/u.py": ""})
    tree = walk(root, ("!lib/", "tests/"))
    assert "lib/a.py" in paths(tree)
    assert reasons(tree) == {"tests": "named by --exclude", "x/tests": "named by --exclude"}


def test_large_files_are_left_out(write) -> None:
    root = write({"a.py": ""})
    for name, size in (("big.bin", SIZE_LIMIT + 1), ("fits.bin", SIZE_LIMIT)):
        with open(root / name, "wb") as file:
            file.truncate(size)
    tree = walk(root)
    assert reasons(tree) == {"big.bin": "over 20 MB (20 MB)"}
    assert "fits.bin" in paths(tree)


def test_links_are_not_followed(write) -> None:
    root = write({"pkg/a.py": ""})
    for name, target in (("dangling", "nowhere"), ("pkg/loop", ".."), ("dir", "pkg")):
        (root / name).symlink_to(target)
    assert paths(walk(root)) == {
        "dangling": "link",
        "dir": "link",
        "pkg/a.py": "python",
        "pkg/loop": "link",
    }


def test_pipes_are_left_out(write) -> None:
    root = write({"a.py": ""})
    os.mkfifo(root / "pipe")
    assert reasons(walk(root)) == {"pipe": "neither file, folder nor link"}


def test_records_of_an_earlier_conversion_are_left_out(write) -> None:
    root = write({"torch2ms.json": "{}", "net.torch2ms.json": "{}", "my_torch2ms.txt": ""})
    assert list(paths(walk(root))) == ["my_torch2ms.txt"]


def test_a_missing_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="cannot be listed"):
        walk(tmp_path / "none")
