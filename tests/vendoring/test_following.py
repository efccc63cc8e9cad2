"""In: projects that use an installed torch package. Out: what of it is converted along."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from migrate.mapping.table import load
from migrate.records.outcomes import Outcome
from migrate.syntax.source import read
from migrate.vendoring.follow import Followed, follow
from migrate.vendoring.library import find
from migrate.vendoring.policy import Wish
from migrate.workspace import outputs
from migrate.workspace.assembly import Conversion
from migrate.workspace.project import Request, convert

TOY = {
    "__init__.py": """
from . import layers, nets
from .names import *
from .version import __version__

_mode = "a"


def mode():
    return _mode


if mode() == "a":
    from .layers import Left as Chosen
else:
    from .layers import Right as Chosen
""",
    "version.py": "__version__ = '1'\n",
    "names.py": "from .layers import Left, Right\n__all__ = ['Left', 'Right']\n",
    "layers.py": """# Copyright of the toy
import torch
from torch import nn
from . import tables
from .tables import width as w


class Left(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(w(), 3)

    def forward(self, x):
        return self.l(x).view(-1, 3)


class Right(nn.Module):
    def forward(self, x):
        return x.permute(1, 0)


tables.register(Left)


def unused():
    import toy.heavy
    return toy.heavy
""",
    "tables.py": "known = []\n\n\ndef register(one):\n    known.append(one)\n\n\n"
    "def width():\n    return 4\n",
    "heavy.py": "import torch\nraise ImportError\n",
    "nets/__init__.py": "from .one import *\nfrom .two import *\n",
    "nets/one.py": "import toy\nfrom toy.layers import Left\n\n__all__ = ['one']\n\n\n"
    "def one():\n    return toy.mode(), Left()\n",
    "nets/two.py": "from .. import layers\n\n\ndef two():\n    return layers.Right()\n",
}


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A folder in which the package is installed."""
    folder = tmp_path / "site"
    for name, text in TOY.items():
        path = folder / "toy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    info = folder / "toy-2.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 2.5\nLicense: MIT\n")
    (info / "LICENSE").write_text("Do as you like.\n")
    (info / "RECORD").write_text("toy-2.5.dist-info/LICENSE,,\ntoy/__init__.py,,\n")
    return folder


def wish(toy: Path) -> Wish:
    return Wish(("toy",), (), (toy,))


def taken(toy: Path, text: str) -> Followed:
    return follow({"a.py": read("a.py", text.encode())}, load(), wish(toy))


def converted(toy: Path, files: dict[str, str], own: Wish | None = None) -> Conversion:
    project = toy.parent / "project"
    for name, text in files.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return convert(Request(project, toy.parent / "out", jobs=1, wish=own or wish(toy)))


def texts(made: Conversion) -> dict[str, str]:
    return {one.path: (one.content or b"").decode() for one in made.outputs}


@pytest.mark.parametrize(
    ("text", "modules"),
    [
        ("from toy import Left", "toy toy.layers toy.tables"),
        ("from toy.nets import two", "toy toy.layers toy.nets toy.nets.two"),
        ("import toy\nx = toy.nets.two()", "toy toy.layers toy.nets toy.nets.two"),
        ("import toy.nets as n\nn.one()", "toy toy.layers toy.nets toy.nets.one toy.tables"),
        ("from toy.layers import unused", "toy toy.heavy toy.layers"),
        ("from toy import nets\nprint(nets)",
         "toy toy.layers toy.nets toy.nets.one toy.nets.two toy.tables"),
        ("import toy_other\nfrom .toy import Left", ""),
        ("from toy import absent", ""),
    ],
)  # fmt: skip
def test_only_what_is_needed_is_taken(toy: Path, text: str, modules: str) -> None:
    assert " ".join(sorted(taken(toy, text).modules)) == modules


def test_a_module_keeps_what_says_more_about_what_is_kept(toy: Path) -> None:
    text = taken(toy, "from toy import Left").sources["toy_ms/layers.py"].data.decode()
    assert text.startswith("# Copyright of the toy\n")
    assert "tables.register(Left)" in text and "class Right" not in text and "unused" not in text
    right = taken(toy, "from toy import Right").sources["toy_ms/layers.py"].data.decode()
    assert "register" not in right and "class Left" not in right


def test_names_that_branches_bind_are_left_to_them(toy: Path) -> None:
    found = taken(toy, "from toy import Chosen")
    text = found.sources["toy_ms/__init__.py"].data.decode()
    assert "def mode" in text and "_mode =" in text and text.index("_mode =") < text.index("if ")
    layers = found.sources["toy_ms/layers.py"].data.decode()
    assert "class Left" in layers and "class Right" in layers


def test_a_project_uses_the_converted_package(toy: Path) -> None:
    made = converted(toy, {"net.py": (
        "import torch, toy\n"
        "from toy.layers import (\n    Left,  # the left one\n)\n"
        "from toy import nets as n\n\n\n"
        "class Net(Left):\n    def forward(self, x):\n"
        "        return toy.layers.Right()(super().forward(x)).view(-1)\n\n\n"
        "net = n.two()\n"
    )})  # fmt: skip
    assert made.status == 0, [e for f in made.record.files for e in f.entries if e.code]
    text = texts(made)["net.py"]
    assert "from toy_ms.layers import (\n    Left,  # the left one\n)\n" in text
    assert "from toy_ms import nets as n" in text and "import toy_ms\n" in text
    assert "class Net(Left):\n    def construct(self, x):" in text
    assert "toy_ms.layers.Right()(super().construct(x)).view(-1)" in text
    assert {p for p in texts(made) if p.startswith("toy_ms/")} == {
        "toy_ms/LICENSE", "toy_ms/__init__.py", "toy_ms/layers.py", "toy_ms/nets/__init__.py",
        "toy_ms/nets/two.py", "toy_ms/tables.py",
    }  # fmt: skip
    for name, one in texts(made).items():
        assert name.endswith("LICENSE") or "torch" not in _imported(one) | {"x"}, name


def _imported(text: str) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").partition(".")[0])
    return found


def test_the_record_tells_the_package_from_the_project(toy: Path) -> None:
    made = converted(toy, {"net.py": "import torch\nfrom toy import Left\nx = Left()\n"})
    (along,) = made.record.along
    assert (along.name, along.version, along.licence, along.output) == (
        "toy", "2.5", "MIT", "toy_ms",
    )  # fmt: skip
    assert [file.source for file in made.record.own_files if file.source] == ["net.py"]
    sources = [file.source for file in made.record.files_of("toy")]
    assert "toy/layers.py" in sources and "toy/LICENSE" in sources
    assert all(file.ledger.adds_up for file in made.record.files)
    (entry,) = [e for e in made.record.own_files[0].entries if e.name == "toy.Left"]
    assert entry.outcome is Outcome.CONVERTED


def test_inside_the_one_package_of_a_project_imports_are_relative(toy: Path) -> None:
    made = converted(toy, {
        "mine/__init__.py": "",
        "mine/sub/__init__.py": "",
        "mine/sub/net.py": "import torch\nimport toy\nfrom toy import Left\n\n\n"
                           "def f(x):\n    return toy.layers.Right()(torch.cat([x, x]))\n",
        "run.py": "import mine\nfrom toy import Left\n",
    })  # fmt: skip
    found = texts(made)
    assert "from ..toy_ms import Left" in found["mine/sub/net.py"]
    assert "from .. import toy_ms\n" in found["mine/sub/net.py"]
    assert "from mine.toy_ms import Left" in found["run.py"]
    assert "mine/toy_ms/layers.py" in found


def test_a_second_run_changes_nothing_and_needs_no_package(toy: Path) -> None:
    made = converted(toy, {"net.py": "import torch\nfrom toy import Left\nx = Left()\n"})
    outputs.write(made.outputs, made.root)
    again = convert(Request(made.root, toy.parent / "again", jobs=1, wish=Wish(("toy",))))
    assert not again.record.along and again.record.ledger.total == 0
    written = {path: text for path, text in texts(made).items() if not path.endswith("LICENSE")}
    assert {path: text for path, text in texts(again).items() if path in written} == written
    twice = converted(toy, {"net.py": "import torch\nfrom toy import Left\nx = Left()\n"})
    assert texts(twice) == texts(made)


def test_a_project_that_holds_the_package_follows_nothing(toy: Path) -> None:
    files = {f"toy/{name}": text for name, text in TOY.items()}
    made = converted(toy, {**files, "net.py": "from toy import Left\nx = Left()\n"})
    assert not made.record.along
    assert not any("toy_ms" in path or "toy_ms" in text for path, text in texts(made).items())


@pytest.mark.parametrize("own", [Wish(), Wish(no_follow=("toy",)), Wish(("other",))])
def test_what_nobody_asks_for_is_not_followed(toy: Path, own: Wish) -> None:
    given = Wish(own.follow, own.no_follow, (toy,))
    made = converted(toy, {"net.py": "import torch\nfrom toy import Left\n"}, given)
    assert not made.record.along
    assert "from toy import Left" in texts(made)["net.py"]


def test_names_with_rows_keep_their_rows(tmp_path: Path) -> None:
    folder = tmp_path / "site" / "torchvision"
    (folder / "ops").mkdir(parents=True)
    (folder / "__init__.py").write_text("from . import ops\n")
    (folder / "ops" / "__init__.py").write_text("from .misc import MLP, nms\n")
    (folder / "ops" / "misc.py").write_text(
        "from torch import nn\n\n\nclass MLP(nn.Module):\n    pass\n\n\ndef nms(a):\n    pass\n"
    )
    source = tmp_path / "net.py"
    source.write_text(
        "import torchvision\nfrom torchvision import transforms\nfrom torchvision.ops import MLP\n"
        "from torchvision.ops import nms\n\n\n"
        "def f(b, s):\n    return torchvision.ops.nms(b, s, 0.5), nms(b, s, 0.5), "
        "torchvision.ops.MLP(), transforms.ToTensor()\n"
    )
    request = Request(source, tmp_path / "out", wish=Wish(paths=(tmp_path / "site",)))
    made = convert(request)
    text = texts(made)["net.py"]
    assert "from torchvision_ms.ops import MLP" in text
    assert "torchvision_ms.ops.MLP()" in text and "torchvision_ms.ops.nms" not in text
    assert "def nms" not in texts(made)["torchvision_ms/ops/misc.py"]
    assert not [e for f in made.record.files for e in f.entries if e.outcome is Outcome.FLAGGED]


def test_without_the_package_the_flag_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.path", [])
    source = tmp_path / "net.py"
    source.write_text("from torchvision.models import resnet18\nnet = resnet18()\n")
    made = convert(Request(source, tmp_path / "out"))
    flags = [e for f in made.record.files for e in f.entries if e.outcome is Outcome.FLAGGED]
    assert {e.code for e in flags} == {"ENV501"}
    assert all("--follow-path DIR" in e.next_step for e in flags)


def test_nothing_is_imported_to_find_a_package(toy: Path) -> None:
    import sys

    found = find("toy", (toy,))
    assert found is not None and found.version == "2.5" and "toy" not in sys.modules
    assert [path.name for path in found.licence_files] == ["LICENSE"]
    assert find("toy_that_is_not_there", (toy,)) is None
