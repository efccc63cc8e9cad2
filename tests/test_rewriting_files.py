"""In: several files, and files in odd encodings. Out: converted together, kept as bytes."""

from __future__ import annotations

import codecs
from functools import cache

import pytest

from migrate.analysis import storage
from migrate.engine import rewrite
from migrate.engine.rewrite import Options, Rewritten
from migrate.mapping import table
from migrate.records.outcomes import Outcome
from migrate.syntax.source import read


@cache
def rows() -> table.Table:
    return table.load(())


def together(files: dict[str, str | bytes], root: str = "") -> dict[str, Rewritten]:
    """Convert the files as one program, helpers in a module of their own."""
    sources = {
        path: read(path, text.encode() if isinstance(text, str) else text)
        for path, text in files.items()
    }
    built = rewrite.analyse(sources, rows(), root=root)
    options = Options("portable", "module", "from torch_helpers import")
    made = {path: rewrite.convert(built, path, options) for path in sources}
    for result in made.values():
        assert result.ledger.adds_up and result.ledger.total == len(result.entries)
        compile(result.data, "made.py", "exec")
    return made


def text(made: Rewritten) -> str:
    return made.data.decode()


def flagged(made: Rewritten) -> list[tuple[str, int]]:
    return [(e.code, e.line) for e in made.entries if e.outcome is Outcome.FLAGGED]


BASE = """\
from torch import nn


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.norm = nn.BatchNorm2d(size)

    def scaled(self, x):
        return x * 2
"""


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("from .block import Block", "Block"),
        ("from . import block", "block.Block"),
        ("from net.block import Block", "Block"),
        ("import net.block", "net.block.Block"),
        ("from .block import Block as B", "B"),
        ("from . import Block", "Block"),
        ("from .block import *", "Block"),
    ],
)
def test_a_module_class_of_another_file_is_a_cell(line: str, name: str) -> None:
    user = f"{line}\n\n\nclass Net({name}):\n    def forward(self, x):\n        return x.size(0)\n"
    made = together(
        {
            "net/__init__.py": "from .block import Block\n",
            "net/block.py": BASE,
            "net/model.py": user,
        }
    )
    expected = user.replace("forward", "construct").replace("x.size(0)", "x.shape[0]")
    assert text(made["net/model.py"]) == expected
    assert text(made["net/__init__.py"]) == "from .block import Block\n"
    assert "class Block(nn.Cell):" in text(made["net/block.py"])


def test_a_weight_of_a_part_defined_elsewhere_has_its_new_name() -> None:
    user = (
        "from block import Block\n\n\n"
        "def f(size: int):\n    part = Block(size)\n    return part.norm.weight, part.size\n"
    )
    made = together({"block.py": BASE, "use.py": user})
    assert "return part.norm.gamma, part.size\n" in text(made["use.py"])


def test_torch_under_a_name_of_the_project() -> None:
    made = together(
        {
            "compat.py": "import torch as th\nfrom torch.nn import functional as F\n",
            "use.py": "from compat import F, th\n\nx = F.relu(th.ones(2))\n",
        }
    )
    assert "x = ops.relu(ops.ones(2))\n" in text(made["use.py"])
    assert not flagged(made["use.py"])


def test_a_function_of_another_file_tells_what_it_gives_back() -> None:
    made = together(
        {
            "make.py": "import torch\n\n\ndef make():\n    return torch.ones(2, 3)\n",
            "use.py": "from make import make\n\nn = make().size(0)\n",
        }
    )
    assert text(made["use.py"]) == "from make import make\n\nn = make().shape[0]\n"


def test_a_file_of_the_project_called_torch_is_not_the_library() -> None:
    own = "def zeros(n):\n    return [0] * n\n"
    user = "from .torch import zeros\n\nx = zeros(3)\n"
    made = together({"pkg/__init__.py": "", "pkg/torch.py": own, "pkg/use.py": user})
    assert {path: text(m) for path, m in made.items()} == {
        "pkg/__init__.py": "", "pkg/torch.py": own, "pkg/use.py": user
    }  # fmt: skip


def test_a_file_called_torch_does_not_import_itself() -> None:
    made = together({"net/layers/torch.py": "import torch\nx = torch.tanh(torch.ones(2))\n"})
    expected = "from mindspore import ops\nx = ops.tanh(ops.ones(2))\n"
    assert text(made["net/layers/torch.py"]) == expected


def test_a_package_that_imports_itself_by_its_full_name_is_no_library() -> None:
    made = together({
        "torchvision/__init__.py": "from torchvision import models\n",
        "torchvision/models/__init__.py": "from .net import *\n",
        "torchvision/models/net.py": "from torch import nn\nnet = lambda: nn.Linear(3, 3)\n",
        "user.py": "import torch\nfrom torchvision import models as tv\ntv.net()(torch.rand(3))\n",
    })  # fmt: skip
    assert not [place for one in made.values() for place in flagged(one)]
    assert "from torchvision import models as tv\n" in text(made["user.py"])
    assert "tv.net()(ops.rand(3))" in text(made["user.py"])


def test_a_package_reaches_its_own_torch_by_a_relative_import_only() -> None:
    own = "def tanh(x):\n    return x\n"
    user = "import torch\nfrom .torch import tanh\n\ny = tanh(torch.ones(2))\n"
    made = together({"net/__init__.py": user, "net/torch.py": own})
    expected = "from mindspore import ops\nfrom .torch import tanh\n\ny = tanh(ops.ones(2))\n"
    assert text(made["net/__init__.py"]) == expected
    assert text(made["net/torch.py"]) == own


def test_an_unknown_receiver_is_not_guessed_from_another_file() -> None:
    """Two callers give different things: the receiver stays unknown, and is asked for."""
    made = together(
        {
            "count.py": "def count(x):\n    return x.size(0)\n",
            "use.py": "import torch\nfrom count import count\nfrom other import Grid\n\n"
            "n = count(torch.ones(2)) + count(Grid())\n",
        }
    )
    assert "x.shape[0] if isinstance(x, ms.Tensor) else x.size(0)" in text(made["count.py"])


def test_files_that_import_each_other() -> None:
    made = together(
        {
            "a.py": "import torch\nimport b\n\n\ndef f(n):\n    return b.g(torch.ones(n))\n",
            "b.py": "import a\n\n\ndef g(x):\n    return a.f(1) if x is None else x.size(0)\n",
        }
    )
    assert "b.g(ops.ones(n))" in text(made["a.py"])


def test_helpers_come_from_their_module() -> None:
    source = "import torch\n\n\ndef f(x: torch.Tensor):\n    return torch.topk(x, 2)\n"
    made = together({"f.py": source})
    assert text(made["f.py"]) == (
        "import mindspore as ms\nfrom torch_helpers import topk\n\n\n"
        "def f(x: ms.Tensor):\n    return topk(x, 2)\n"
    )


PLAIN = (
    'import torch\n\n\ndef f(n):\n    """Gr\u00f6\u00dfe."""\n    return torch.zeros(n)  # \u00fc\n'
)
MADE = PLAIN.replace("import torch", "from mindspore import ops").replace("torch.z", "ops.z")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(PLAIN.encode(), MADE.encode(), id="utf-8"),
        pytest.param(
            codecs.BOM_UTF8 + PLAIN.encode(), codecs.BOM_UTF8 + MADE.encode(), id="byte order mark"
        ),
        pytest.param(
            PLAIN.replace("\n", "\r\n").encode(), MADE.replace("\n", "\r\n").encode(), id="CRLF"
        ),
        pytest.param(
            b"# coding: latin-1\n" + PLAIN.encode("latin-1"),
            b"# coding: latin-1\n" + MADE.encode("latin-1"),
            id="latin-1",
        ),
        pytest.param(
            b"# coding: latin-1\r\n" + PLAIN.replace("\n", "\r\n").encode("latin-1"),
            b"# coding: latin-1\r\n" + MADE.replace("\n", "\r\n").encode("latin-1"),
            id="latin-1 and CRLF",
        ),
        pytest.param(
            PLAIN.replace("\n\n\n", "\n\f\n").encode(),
            MADE.replace("\n\n\n", "\n\f\n").encode(),
            id="form feed",
        ),
        pytest.param(
            PLAIN.replace("    ", "\t").encode(), MADE.replace("    ", "\t").encode(), id="tabs"
        ),
        pytest.param(PLAIN.rstrip().encode(), MADE.rstrip().encode(), id="no newline at the end"),
        pytest.param(
            b"#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n" + PLAIN.encode(),
            b"#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n" + MADE.encode(),
            id="shebang and coding",
        ),
    ],
)
def test_bytes_that_are_not_edited_stay(before: bytes, after: bytes) -> None:
    assert together({"f.py": before})["f.py"].data == after


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_new_lines_end_as_the_file_does(newline: str) -> None:
    source = "import torch\n\n\ndef f(x):\n    return torch.no_such_thing(x)\n"
    made = together({"f.py": source.replace("\n", newline)})["f.py"]
    assert made.data.count(b"\n") == made.data.count(newline.encode())
    assert flagged(made) == [("API100", 5)]


def test_inline_helpers_end_their_lines_as_the_file_does() -> None:
    data = b"import torch\r\nx = torch.topk(torch.ones(3), 2)\r\n"
    built = rewrite.analyse({"f.py": read("f.py", data)}, rows())
    made = rewrite.convert(built, "f.py", Options()).data
    assert made.count(b"\r\n") == made.count(b"\n") > 5


@pytest.mark.parametrize(("base", "name"), [("nn.Module", "construct"), ("object", "forward")])
def test_base_is_known_while_its_file_is_being_walked(base: str, name: str) -> None:
    """The import of encoders walks net, whose last line asks who calls ``width_of``: Encoder."""
    made = together(
        {
            "encoders.py": """\
from net import Net, width_of


class Encoder(Net):
    def forward(self, x):
        return self.layer(x) + width_of(self)
""",
            "net.py": f"""\
from torch import nn


def width_of(net):
    return net.width


class Net({base}):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.layer = nn.ReLU()

    def forward(self, x):
        return self.layer(x)


default = width_of(Net(3))
""",
        }
    )
    assert f"    def {name}(self, x):" in text(made["encoders.py"])
    assert f"    def {name}(self, x):" in text(made["net.py"])


def test_name_of_torch_that_a_file_without_torch_hands_on() -> None:
    """The file binds it on two ways: what takes its place has the name, and is imported."""
    made = together(
        {
            "net/__init__.py": "from .checks import _assert, whole\n",
            "net/checks.py": """\
try:
    from torch import _assert
except ImportError:
    def _assert(condition, message):
        assert condition, message


def whole(x):
    return int(x)
""",
        }
    )
    assert text(made["net/__init__.py"]) == "from .checks import _assert, whole\n"
    assert "from torch import" not in text(made["net/checks.py"])


@pytest.mark.parametrize(("root", "name"), [("nets", "construct"), ("others", "forward")])
def test_package_that_is_the_root_imports_itself_by_its_name(root: str, name: str) -> None:
    made = together(
        {
            "__init__.py": "from nets.nets import Net\n",
            "base.py": "from torch import nn\n\n\nclass Base(nn.Module):\n    pass\n",
            "nets.py": """\
from nets.base import Base


class Net(Base):
    def forward(self, x):
        return x
""",
        },
        root,
    )
    assert f"    def {name}(self, x):" in text(made["nets.py"])


LIBRARY = "from torch import nn\n\n\nclass Net(nn.Linear):\n    pass\n"
TRAIN = """\
import torch
from library import Net


def main(loader):
    net = Net(3, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in loader:
        loss = net(x).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
FREEZE = """\
import torch
from library import Net


def late(net: Net, loader):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in loader:
        loss = net(x).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        for p in net.parameters():
            p.requires_grad = False
"""
RUN = "\n\nif __name__ == '__main__':\n    {}\n"


@pytest.mark.parametrize(
    ("files", "meet"),
    [
        pytest.param(
            {"freeze.py": FREEZE + RUN.format("late(Net(3, 1), [])")}, False, id="two scripts"
        ),
        pytest.param({"freeze.py": FREEZE}, False, id="a script, and what others import"),
        pytest.param(
            {"freeze.py": FREEZE, "all.py": "import train\nimport freeze\n"}, True, id="both"
        ),
    ],
)
def test_scripts_that_share_a_library_never_meet(files: dict[str, str], meet: bool) -> None:
    """A step whose weights may be frozen later asks at each step which of them train."""
    made = together({"library.py": LIBRARY, "train.py": TRAIN + RUN.format("main([])"), **files})
    assert ("EveryWeight" in text(made["train.py"])) is meet


def test_definitions_that_share_a_library_may_meet() -> None:
    made = together({"library.py": LIBRARY, "train.py": TRAIN, "freeze.py": FREEZE})
    assert "EveryWeight" in text(made["train.py"])


def test_a_caller_that_is_too_intricate_stops_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    writer = "def fill(x):\n    return x.mul_(2)\n"
    plain = "import torch\nfrom net.w import fill\n\n\ndef f():\n    return fill(torch.ones(3))\n"
    many = "".join(f"    a{n} = [x, a{n - 1}, a{n - 2}]\n" for n in range(2, 60))
    large = (
        "import torch\nfrom net.w import fill\n\n\ndef g(x: torch.Tensor):\n"
        f"    a0 = a1 = [x, x.view(-1)]\n{many}    fill(x)\n    return a59\n"
    )
    monkeypatch.setattr(storage, "MOST_STEPS", 300)
    made = together(
        {"net/__init__.py": "", "net/a.py": large, "net/w.py": writer, "net/z.py": plain}
    )
    call = large[: large.index("fill(x)")].count("\n") + 1
    assert flagged(made["net/a.py"]) == [("INP206", call)]
    assert not flagged(made["net/w.py"]) and not flagged(made["net/z.py"])


@pytest.mark.parametrize(
    ("test", "stop"),
    [
        ("self.inplace", "assert not self.inplace or is_pynative()"),
        ("self.asked()", "assert is_pynative()"),
    ],
)
def test_a_graph_stops_only_where_the_write_is_reached(test: str, stop: str) -> None:
    """A choice by a setting is compiled as what it is; what a call says is not known."""
    gate = (
        "from torch import nn\n\n\nclass Gate(nn.Module):\n"
        "    def __init__(self, inplace: bool = False):\n"
        "        super().__init__()\n        self.inplace = inplace\n\n"
        "    def asked(self):\n        return self.inplace\n\n"
        "    def forward(self, x):\n"
        f"        return x.sigmoid_() if {test} else x.sigmoid()\n"
    )
    assert stop in text(together({"gate.py": gate})["gate.py"])
