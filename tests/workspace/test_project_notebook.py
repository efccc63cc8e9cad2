"""In: notebooks. Out: their Python cells are converted, everything else is as it was."""

from __future__ import annotations

import json

import pytest

from migrate.syntax.source import Unreadable
from migrate.workspace.notebook import put_back, read


def notebook(*cells: str | tuple[str, str], language: str = "python", **extra: object) -> bytes:
    """A notebook of code cells; (kind, text) for another kind."""
    made = []
    for cell in cells:
        kind, text = ("code", cell) if isinstance(cell, str) else cell
        one: dict[str, object] = {
            "cell_type": kind,
            "metadata": {},
            "source": text.splitlines(True),
        }
        if kind == "code":
            one |= {"outputs": [{"output_type": "stream", "text": ["1\n"]}], "execution_count": 3}
        made.append(one)
    metadata = {"kernelspec": {"language": language, "name": "python3"}}
    content = {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5, **extra}
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()


def sources(data: bytes) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(data)["cells"]]


def test_cells_become_one_module_and_go_back_unchanged() -> None:
    data = notebook("import os", ("markdown", "# Title é"), "", "x = 1\n\n\ndef f():\n    return x")
    taken = read("n.ipynb", data)
    assert taken.cells == (0, 2, 3)
    assert put_back(taken, taken.text.encode()) == data


def test_only_changed_cells_lose_what_they_printed() -> None:
    taken = read("n.ipynb", notebook("a = 1", "b = 2"))
    made = json.loads(put_back(taken, taken.text.replace("b = 2", "b = 3\nc = 4").encode()))
    first, second = made["cells"]
    assert (first["execution_count"], len(first["outputs"])) == (3, 1)
    assert (second["execution_count"], second["outputs"]) == (None, [])
    assert second["source"] == ["b = 3\n", "c = 4"]


def test_lines_for_the_shell_stay(write) -> None:
    cells = [
        "!pip install torch\nimport os",
        "if 1:\n    %cd /tmp\n    x = 1",
        "%%time\ny = 2",
        "os?",
    ]
    data = notebook(*cells)
    taken = read("n.ipynb", data)
    compile(taken.text, "n", "exec")
    assert put_back(taken, taken.text.encode()) == data
    assert (
        sources(put_back(taken, taken.text.replace("y = 2", "y = 3").encode()))[2]
        == "%%time\ny = 3"
    )


def test_a_percent_sign_in_python_is_not_for_the_shell() -> None:
    taken = read("n.ipynb", notebook("x = ('''\n%d\n''' \n% 3)"))
    assert taken.magics == ()


def test_cells_of_other_languages_stay() -> None:
    assert read("n.ipynb", notebook("%%bash\nls -l", "x = 1")).cells == (1,)
    assert read("n.ipynb", notebook("x <- 1", language="R")).cells == ()


def test_a_line_is_found_in_its_cell() -> None:
    taken = read("n.ipynb", notebook("a = 1\nb = 2", ("markdown", "x"), "c = 3\nd = 4"))
    line = taken.text.split("\n").index("d = 4") + 1
    assert taken.place(line) == (3, 2)


def test_a_lost_mark_is_an_error() -> None:
    taken = read("n.ipynb", notebook("a = 1", "b = 2"))
    with pytest.raises(ValueError, match="mark of cell 2 is lost"):
        put_back(taken, taken.text.replace("cell 2", "cell two").encode())


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (b"{", "format 4"),
        (b'{"worksheets": []}', "format 4"),
        (b"[1]", "format 4"),
    ],
)
def test_what_is_not_a_notebook(data: bytes, part: str) -> None:
    with pytest.raises(Unreadable, match=part):
        read("n.ipynb", data)


def test_a_bad_cell_costs_that_cell(run, write) -> None:
    bad = "print 'x'\n\ny = torch.abs(x)"
    cells = ["import torch\n%cd /tmp", "x = torch.ones(2)", bad, "!ls\nz = torch.exp(x)"]
    root = write({"n.ipynb": notebook(*cells), "net.py": "import torch\n"})
    out = root.parent / "out"
    done = run("convert", root, "-o", out)
    assert done.code == 1
    assert f"{root / 'n.ipynb'}:cell 3:1:1 ENV513 cell 3: the cell is not Python 3" in done.out
    assert done.out.count("ENV513") == 2 and "ENV511" not in done.out
    made = sources((out / "n.ipynb").read_bytes())
    assert made[1:] == ["x = ops.ones(2)", bad, "!ls\nz = ops.exp(x)"]
    assert "cell 3:1:1 ENV513" in run("check", root).out
    assert put_back(
        read("n.ipynb", notebook(*cells)), read("n.ipynb", notebook(*cells)).text.encode()
    ) == (notebook(*cells))


HELPED = ["import torch", "x = torch.ones(2)", "y = torch.trapezoid(x)"]


@pytest.mark.parametrize(
    ("files", "line"),
    [
        ({"n.ipynb": "", "run.py": ""}, "from torch_helpers import trapezoid"),
        ({"n.ipynb": ""}, "from torch_helpers import trapezoid"),
        ({"n.ipynb": "", "pkg/__init__.py": "", "pkg/a.py": ""},
         "from pkg.torch_helpers import trapezoid"),
        ({"src/n.ipynb": "", "src/pkg/__init__.py": "", "src/pkg/a.py": ""},
         "from pkg.torch_helpers import trapezoid"),
        ({"docs/n.ipynb": "", "run.py": ""}, "def trapezoid("),
        ({"pkg/n.ipynb": "", "pkg/__init__.py": "", "pkg/a.py": ""}, "def trapezoid("),
        ({"n.ipynb": "", "__init__.py": "", "a.py": "from .b import c\n", "b.py": ""},
         "def trapezoid("),
    ],
)  # fmt: skip
def test_helpers_come_from_the_module_that_a_notebook_can_import(
    run, write, files: dict[str, str], line: str
) -> None:
    code = "import torch\n\n\ndef f(x: torch.Tensor):\n    return torch.trapezoid(x)\n"
    given = {p: notebook(*HELPED) if p.endswith("ipynb") else t + code for p, t in files.items()}
    root = write(given, "proj")
    out = root.parent / "out" / "proj"
    run("convert", root, "-o", out)
    (path,) = out.rglob("*.ipynb")
    text = "\n".join(sources(path.read_bytes()))
    assert line in text
    assert ("torch_helpers" in text) == (line in text and "def trapezoid(" not in text)
    assert run("convert", root / "n.ipynb", "-o", root.parent / "one").code in (0, 2)


def test_convert_a_notebook(run, write) -> None:
    cells = ["%matplotlib inline\nimport torch", ("markdown", "text"), "x = torch.abs(y)  # keep"]
    root = write({"n.ipynb": notebook(*cells), "net.py": "import torch\n"})
    for source, out in ((root, "a"), (root / "n.ipynb", "b"), (root / "n.ipynb", "c/m.ipynb")):
        done = run("convert", source, "-o", root.parent / out)
        assert done.code in (0, 1), done
        name = "m.ipynb" if out.endswith("m.ipynb") else "n.ipynb"
        folder = root.parent / out.split("/")[0]
        made = sources((folder / name).read_bytes())
        assert made[0].startswith("%matplotlib inline\n")
        assert made[1] == "text"
        assert "import torch" not in "".join(made)
        assert "# keep" in made[2]
        again = root.parent / f"{folder.name}2"
        assert run("convert", folder / name, "-o", again).code in (0, 1)
        assert (again / name).read_bytes() == (folder / name).read_bytes()


def test_flags_are_placed_by_cell(run, write) -> None:
    cells = ["import torch", "a = 1\ntorch.cuda.nvtx.range_push('x')"]
    root = write({"n.ipynb": notebook(*cells)})
    done = run("convert", root / "n.ipynb", "-o", root.parent / "out")
    assert done.code == 1
    assert f"{root / 'n.ipynb'}:cell 2:2:1 " in done.out


def test_a_notebook_without_torch_is_byte_identical(run, write) -> None:
    data = notebook("x = 1").replace(b" ", b"  ")
    root = write({"n.ipynb": data, "a.py": ""})
    assert run("convert", root, "-o", root.parent / "out").code == 0
    assert (root.parent / "out/n.ipynb").read_bytes() == data


def test_a_notebook_does_not_become_a_script(run, write) -> None:
    root = write({"n.ipynb": notebook("x = 1")})
    done = run("convert", root / "n.ipynb", "-o", root.parent / "n.py")
    assert done.code == 2
    assert "ends in .ipynb" in done.err


def converted(run, write, *cells) -> tuple[list[str], object]:
    """The cells of a converted notebook, and what the command said."""
    root = write({"n.ipynb": notebook(*cells)})
    done = run("convert", root / "n.ipynb", "-o", root.parent / "out")
    return sources((root.parent / "out/n.ipynb").read_bytes()), done


def test_the_magic_of_a_cell_stays_its_first_line(run, write) -> None:
    cells, done = converted(run, write, "%%time\nimport torch\nx = torch.abs(torch.ones(2))")
    assert done.code == 0, done
    assert cells[0].split("\n")[0] == "%%time"
    assert "ops.abs" in cells[0] and cells[0].count("%%time") == 1


def test_helpers_come_after_the_imports_of_a_cell_that_begins_with_a_magic(run, write) -> None:
    cells, done = converted(
        run, write, "!ls\nimport torch.nn as nn\n%cd x\nimport os",
        "if 1:\n    !ls\nc = nn.CrossEntropyLoss()",
    )  # fmt: skip
    assert done.code == 0, done
    text = cells[0]
    assert text.index("from mindspore import") < text.index("class CrossEntropyLoss")
    assert text.startswith("!ls\n") and "%cd x\n" in text
    assert cells[1].startswith("if 1:\n    !ls\n")


def test_python_after_a_magic_is_converted(run, write) -> None:
    cells, done = converted(
        run, write, "import torch",
        "%time y = torch.abs(torch.ones(3))\nif 1:\n    %timeit -n 10 torch.abs(y)",
    )  # fmt: skip
    assert done.code == 0, done
    lines = cells[1].split("\n")
    assert lines[0].startswith("%time y = ") and "mint" not in lines[0]
    assert lines[2].startswith("    %timeit -n 10 ")
    assert "torch" not in "".join(cells)


def test_what_ipython_assigns_is_not_known(run, write) -> None:
    cells, done = converted(
        run, write, "import torch\nfiles = !ls\nhere = %pwd\nx = torch.abs(torch.ones(2))"
    )
    assert done.code == 0, done
    assert "files = !ls\nhere = %pwd\n" in cells[0] and "ops.abs" in cells[0]


def test_a_line_for_the_shell_may_go_on(write) -> None:
    data = notebook("!pip install a \\\n   b\nimport os")
    taken = read("n.ipynb", data)
    compile(taken.text, "n", "exec")
    assert put_back(taken, taken.text.encode()) == data


@pytest.mark.parametrize(
    "cell", ["%%writefile net.py\nimport torch\nx = torch.ones(2)", "%%bash\npython -c 'torch.x'"]
)
def test_torch_in_other_languages_is_flagged_and_stays(run, write, cell: str) -> None:
    cells, done = converted(run, write, cell, "import torch\nx = torch.abs(torch.ones(2))")
    assert done.code == 1
    assert "n.ipynb:cell 1:2:" in done.out and "ENV511 torch" in done.out
    assert cells[0] == cell
    assert "import mindspore" in cells[1] or "from mindspore" in cells[1]


@pytest.mark.parametrize("line", ["!pip install torch", "%cd torch", "!python train.py"])
def test_what_names_nothing_of_torch_is_not_flagged(run, write, line: str) -> None:
    cells, done = converted(run, write, f"{line}\nx = 1")
    assert done.code == 0 and cells == [f"{line}\nx = 1"]


def test_types_flow_from_cell_to_cell(run, write) -> None:
    cells, done = converted(
        run, write, "import torch", ("markdown", "then"), "x = torch.ones(2, 3)",
        "y = x.new_zeros(2).expand(3, 2)",
    )  # fmt: skip
    assert done.code == 0, done
    assert "broadcast_to" in cells[3]


def test_a_notebook_stays_a_valid_one(run, write) -> None:
    nbformat = pytest.importorskip("nbformat")
    content = json.loads(notebook("import torch\nx = torch.ones(2)"))
    content["cells"][0] |= {"id": "abc", "metadata": {"tags": ["keep"]}}
    content["cells"][0]["outputs"][0] |= {"name": "stdout"}
    content["metadata"]["kernelspec"]["display_name"] = "Python 3"
    root = write({"n.ipynb": json.dumps(content)})
    assert run("convert", root / "n.ipynb", "-o", root.parent / "out").code == 0
    made = nbformat.read(root.parent / "out/n.ipynb", as_version=4)
    nbformat.validate(made)
    assert (made.cells[0].id, made.cells[0].metadata) == ("abc", {"tags": ["keep"]})
    assert made.metadata["kernelspec"]["name"] == "python3"


def test_language_info_tells_the_language_too() -> None:
    data = json.loads(notebook("x <- 1"))
    data["metadata"] = {"language_info": {"name": "R"}}
    assert read("n.ipynb", json.dumps(data).encode()).cells == ()
