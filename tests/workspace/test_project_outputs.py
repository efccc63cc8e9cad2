"""In: decided outputs. Out: they are written whole, or not at all, and never over the input."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from migrate.records.outcomes import Problem
from migrate.workspace.outputs import Output, check, mode_of, write, write_atomically


def test_contents_copies_and_links(tmp_path: Path) -> None:
    original = tmp_path / "in.txt"
    original.write_text("data")
    root = tmp_path / "out"
    outputs = [
        Output("a/b.py", b"x = 1\n", mode=0o755),
        Output("c.txt", source=original),
        Output("d", link="nowhere"),
    ]
    check(outputs, root, original)
    write(outputs, root)
    assert (root / "a/b.py").read_bytes() == b"x = 1\n"
    assert os.access(root / "a/b.py", os.X_OK)
    assert (root / "c.txt").read_text() == "data"
    assert os.readlink(root / "d") == "nowhere"
    assert sorted(os.listdir(root)) == ["a", "c.txt", "d"]


def test_a_link_is_replaced_and_not_what_it_leads_to(tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("precious")
    root = tmp_path / "out"
    root.mkdir()
    (root / "a.py").symlink_to(other)
    outputs = [Output("a.py", b"new")]
    check(outputs, root, tmp_path / "in")
    write(outputs, root)
    assert (root / "a.py").read_bytes() == b"new"
    assert other.read_text() == "precious"


@pytest.mark.parametrize("through_link", [False, True])
def test_the_input_is_never_written(tmp_path: Path, through_link: bool) -> None:
    source = tmp_path / "in"
    source.mkdir()
    root = tmp_path / "out"
    if through_link:
        root.symlink_to(source)
    else:
        root = source
    with pytest.raises(Problem, match="would change the input"):
        check([Output("a.py", b"")], root, source)


def test_a_linked_folder_in_the_output_does_not_lead_into_the_input(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out/pkg").symlink_to(tmp_path / "in")
    with pytest.raises(Problem, match="would change the input"):
        check([Output("pkg/a.py", b"")], tmp_path / "out", tmp_path / "in")


def test_folders_and_files_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "a.py").mkdir()
    (tmp_path / "b").write_text("")
    for path, message in (("a.py", "a folder of that name"), ("b/c.py", "is not a folder")):
        with pytest.raises(Problem, match=message):
            check([Output(path, b"")], tmp_path, tmp_path / "in")


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "a.py"
    target.write_text("old")

    def fill(path: Path) -> None:
        path.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(target, fill)
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.py"]


def test_a_failing_write_says_what_is_complete(tmp_path: Path) -> None:
    outputs = [Output("a.py", b"x"), Output("b.py", source=tmp_path / "gone")]
    with pytest.raises(Problem, match="1 of 2 files are complete"):
        write(outputs, tmp_path)
    assert os.listdir(tmp_path) == ["a.py"]


def test_outputs_are_writable_where_inputs_are_not(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("")
    path.chmod(0o555)
    assert mode_of(path) == 0o755
