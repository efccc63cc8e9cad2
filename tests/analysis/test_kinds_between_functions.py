"""What one function, class or file knows of another: each program says what ``probe(x)`` may be."""

from __future__ import annotations

import ast
import os
import random
import subprocess
import sys
from functools import cache
from pathlib import Path
from textwrap import dedent

import pytest

from migrate.analysis import index
from migrate.analysis.types.inference import Inference
from migrate.engine import rewrite
from migrate.mapping import table
from migrate.syntax.source import read


@cache
def rows() -> table.Table:
    return table.load(())


def solved(**files: str) -> Inference:
    named = {f"{name}.py": dedent(text) for name, text in files.items()}
    sources = {name: read(name, text.encode()) for name, text in named.items()}
    return rewrite.analyse(sources, rows()).inference


def probed(inference: Inference) -> set[str]:
    """The kinds of what is given to ``probe``."""
    found: set[str] = set()
    for file in inference.program.files.values():
        for call in file.of(ast.Call):
            if getattr(call.func, "id", "") == "probe":
                found |= {atom.kind for atom in inference.kinds[id(call.args[0])]}
    return found


MANY = "import torch\ndef f(x):\n    probe(x)\n" + "f(1)\n" * 60 + "f(torch.ones(2))\n"
NET = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.h = torch.zeros(3)
"""
# what ``probe`` is given is at least of these kinds: more than a look at one place tells
AT_LEAST: dict[str, tuple[str, set[str]]] = {
    "the 61st caller": (MANY, {"int", "Tensor"}),
    "a method rewrites an attribute": (
        NET + "    def reset(self):\n        self.h = []\n"
        "    def forward(self, x):\n        self.h = x\n        self.reset()\n"
        "        probe(self.h)\n        return x\n",
        {"list"},
    ),
    "a function rewrites an attribute of its parameter": (
        NET + "def reset(net):\n    net.h = []\ndef run(net: Net):\n    net.h = torch.ones(1)\n"
        "    reset(net)\n    probe(net.h)\n",
        {"list"},
    ),
    "a derived class stores another kind": (
        NET + "    def forward(self, x):\n        probe(self.h)\n        return x\n"
        "class Sub(Net):\n    def __init__(self):\n        super().__init__()\n"
        "        self.h = [1]\n",
        {"Tensor", "list"},
    ),
    "a derived class stores it in its body": (
        "import torch\nclass A:\n    h = None\n    def f(self):\n        probe(self.h)\n"
        "class B(A):\n    h = [1]\n",
        {"list"},
    ),
    "a base stores it too": (
        NET + "class Sub(Net):\n    def more(self):\n        self.h = [1]\n"
        "    def forward(self, x):\n        probe(self.h)\n        return x\n",
        {"Tensor", "list"},
    ),
    "a store from outside": (
        NET + "    def forward(self, x):\n        probe(self.h)\n        return x\n"
        "net = Net()\nnet.h = [1]\n",
        {"Tensor", "list"},
    ),
    "a store from a loop over modules": (
        NET + "    def forward(self, x):\n        probe(self.h)\n        return x\n"
        "def clear(net: nn.Module):\n    for m in net.modules():\n        m.h = []\n",
        {"Tensor", "list"},
    ),
    "setattr with a text": (
        NET + "    def forward(self, x):\n        probe(self.h)\n        return x\n"
        "net = Net()\nsetattr(net, 'h', [1])\n",
        {"Tensor", "list"},
    ),
    "setattr with a name that is computed": (
        NET + "    def forward(self, x):\n        probe(self.h)\n        return x\n"
        "net = Net()\nfor i in range(3):\n    setattr(net, 'h' + str(i)[1:], [1])\n",
        {"Tensor", "list"},
    ),
    "a method that is overridden": (
        NET + "    def out(self, x):\n        return x\n"
        "    def forward(self, x):\n        probe(self.out(x))\n        return x\n"
        "class Sub(Net):\n    def out(self, x):\n        return [x]\n",
        {"Tensor", "list"},
    ),
    "a property that is overridden": (
        NET + "    @property\n    def out(self):\n        return self.h\n"
        "    def forward(self, x):\n        probe(self.out)\n        return x\n"
        "class Sub(Net):\n    @property\n    def out(self):\n        return [1]\n",
        {"Tensor", "list"},
    ),
    "an abstract method": (
        "import torch\nclass A:\n    def out(self):\n        raise NotImplementedError\n"
        "    def run(self):\n        probe(self.out())\n"
        "class B(A):\n    def out(self):\n        return torch.ones(1)\n"
        "class C(A):\n    def out(self):\n        return [1]\n",
        {"Tensor", "list"},
    ),
    "a method that is replaced": (
        NET + "    def forward(self, x):\n        return x\n"
        "def other(self, x):\n    return [x]\nNet.forward = other\n"
        "def run(net: Net, x: torch.Tensor):\n    probe(net(x))\n",
        {"Tensor", "list"},
    ),
    "nonlocal": (
        "import torch\ndef f():\n    h = torch.ones(1)\n    def g():\n        nonlocal h\n"
        "        h = [1]\n    g()\n    probe(h)\n",
        {"list"},
    ),
    "nonlocal behind a use": (
        "import torch\ndef f(make):\n    h = make()\n    def g():\n        nonlocal h\n"
        "        h = [1]\n    torch.relu(h)\n    g()\n    probe(h)\n",
        {"list"},
    ),
    "nonlocal behind a question": (
        "import torch\ndef f(h):\n    def g():\n        nonlocal h\n        h = [1]\n"
        "    if isinstance(h, torch.Tensor):\n        g()\n        probe(h)\n",
        {"list"},
    ),
    "global": (
        "import torch\nh = torch.ones(1)\ndef g():\n    global h\n    h = [1]\n"
        "def f():\n    probe(h)\n",
        {"Tensor", "list"},
    ),
    "a parameter of a callback": (
        "import torch, lib\ndef f(x):\n    probe(x)\nf([1])\nlib.register(f)\n",
        {"list", "unknown"},
    ),
    "a function behind a decorator of a library": (
        "import torch, lib\n@lib.traced\ndef f(x):\n    return [x]\nprobe(f(torch.ones(1)))\n",
        {"unknown"},
    ),
    "a function behind a decorator of the program": (
        "import torch\ndef first(fn):\n    def inner(*args):\n        return [fn(*args)]\n"
        "    return inner\n@first\ndef f(x):\n    return x\nprobe(f(torch.ones(1)))\n",
        {"list"},
    ),
    "arguments that are unpacked": (
        "import torch\ndef f(a, b):\n    probe(b)\ndef run(some: list):\n    f(*some)\n"
        "f(torch.ones(1), torch.ones(1))\n",
        {"Tensor", "unknown"},
    ),
    "named arguments that are unpacked": (
        "import torch\ndef f(a, b=None):\n    probe(b)\ndef run(some: dict):\n    f(1, **some)\n"
        "f(torch.ones(1), torch.ones(1))\n",
        {"Tensor", "unknown"},
    ),
    "arguments that are passed on after a change": (
        "import torch\ndef f(a, b=None):\n    probe(b)\n"
        "def g(a, **kwargs):\n    kwargs['b'] = [1]\n    f(a, **kwargs)\n"
        "g(1, b=torch.ones(1))\n",
        {"Tensor", "unknown"},
    ),
    "arguments that are passed on from outside": (
        "import torch\ndef f(a, b=None):\n    probe(b)\ndef g(a, **kwargs):\n"
        "    f(a, **kwargs)\nf(1, torch.ones(1))\n",
        {"Tensor", "unknown"},
    ),
    "recursion with another kind": (
        "import torch\ndef f(x, n):\n    probe(x)\n    if n:\n        f([x], n - 1)\n"
        "f(torch.ones(1), 3)\n",
        {"Tensor", "list"},
    ),
    "a chain of callers": (
        "import torch\ndef a(x):\n    b(x)\ndef b(x):\n    c(x)\ndef c(x):\n    probe(x)\n"
        "a(torch.ones(1))\na([1])\n",
        {"Tensor", "list"},
    ),
    "a lambda kept in an attribute": (
        NET + "        self.act = lambda y: [y]\n"
        "    def forward(self, x):\n        probe(self.act(x))\n        return x\n",
        {"list"},
    ),
    "a default and a caller": (
        "import torch\ndef f(x=None):\n    probe(x)\nf([1])\nf()\n",
        {"None", "list"},
    ),
}
# what is known for sure: nothing else
EXACTLY: dict[str, tuple[str, set[str]]] = {
    "one kind from sixty callers": (
        "import torch\ndef f(x):\n    probe(x)\n" + "f(torch.ones(2))\n" * 60,
        {"Tensor"},
    ),
    "recursion": (
        "import torch\ndef f(x, n):\n    if n == 0:\n        return x\n    return f(x * 2, n - 1)\n"
        "probe(f(torch.ones(1), 3))\n",
        {"Tensor"},
    ),
    "mutual recursion": (
        "import torch\ndef f(x, n):\n    return g(x, n) if n else x\n"
        "def g(x, n):\n    probe(x)\n    return f(x, n - 1)\nf(torch.ones(1), 3)\n",
        {"Tensor"},
    ),
    "a state that feeds itself": (
        NET + "        self.cell = nn.Linear(3, 3)\n"
        "    def forward(self, x):\n        self.h = self.cell(self.h + x)\n"
        "        probe(self.h)\n        return self.h\n",
        {"Tensor"},
    ),
    "a callee is defined by a base": (
        NET + "    def out(self, x):\n        return x + 1\n"
        "class Sub(Net):\n    def forward(self, x):\n        probe(self.out(x))\n",
        {"Tensor"},
    ),
    "a decorator that calls what it is given": (
        "import torch, functools\ndef timed(fn):\n    @functools.wraps(fn)\n"
        "    def inner(*args, **kwargs):\n        return fn(*args, **kwargs)\n    return inner\n"
        "@timed\ndef f(x):\n    return torch.relu(x)\nprobe(f(1))\n",
        {"Tensor"},
    ),
    "a decorator that registers": (
        "import torch\nALL = {}\ndef register(fn):\n    ALL[fn.__name__] = fn\n    return fn\n"
        "@register\ndef f():\n    return torch.ones(1)\nprobe(f())\n",
        {"Tensor"},
    ),
    "a model that a method returns": (
        NET + "class Trainer:\n    def build(self):\n        return Net()\n"
        "    def run(self):\n        probe(self.build())\n",
        {"Module"},
    ),
    "an optimizer kept on self": (
        NET + "class Trainer:\n    def __init__(self, net: Net):\n"
        "        self.net = net\n        self.make()\n"
        "    def make(self):\n        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)\n"
        "    def run(self):\n        probe(self.opt)\n",
        {"Optimizer"},
    ),
    "layers that are set by computed names": (
        NET + "        for i in range(3):\n"
        "            setattr(self, f'layer{i}', nn.Linear(3, 3))\n"
        "    def forward(self, x):\n        probe(self.layer1)\n        return x\n",
        {"Module"},
    ),
    "arguments that are passed on": (
        NET + "class A:\n    def __init__(self, x, y=None):\n        self.y = y\n"
        "    def f(self):\n        probe(self.y)\n"
        "class B(A):\n    def __init__(self, *args, **kwargs):\n"
        "        super().__init__(*args, **kwargs)\n"
        "def make(**kwargs):\n    return B(1, **kwargs)\n"
        "B(1, torch.ones(1))\nmake(y=torch.ones(1))\n",
        {"Tensor", "None"},
    ),
    "a callback of the program": (
        "import torch\ndef run(fn):\n    return fn(torch.ones(1))\n"
        "def f(x):\n    probe(x)\n    return x\nrun(f)\n",
        {"Tensor"},
    ),
}


@pytest.mark.parametrize("name", AT_LEAST)
def test_nothing_is_missed(name: str) -> None:
    text, kinds = AT_LEAST[name]
    inference = solved(net=text)
    found = probed(inference)
    assert kinds <= found or "unknown" in found, found
    assert not inference.stale()


@pytest.mark.parametrize("name", EXACTLY)
def test_what_is_sure(name: str) -> None:
    text, kinds = EXACTLY[name]
    inference = solved(net=text)
    assert probed(inference) == kinds
    assert not inference.stale()


def test_a_store_in_another_file() -> None:
    text = NET + "    def forward(self, x):\n        probe(self.h)\n        return x\n"
    found = probed(solved(net=text, run="from net import Net\nnet = Net()\nnet.h = [1]\n"))
    assert found == {"Tensor", "list"}


def test_a_global_that_another_file_binds() -> None:
    text = "import torch\nSCALE = torch.ones(1)\ndef f():\n    probe(SCALE)\n"
    assert "list" in probed(solved(net=text, run="import net\nnet.SCALE = [1]\n"))


# -- random programs ------------------------------------------------------------------------------

_VALUES = ("torch.ones(2)", "[1, 2]", "1", "None", "x", "self.a", "self.b", "f0(x)", "f1(x)",
           "self.m0(x)", "self.m1(x)", "G", "[x]", "x[0]")  # fmt: skip


def random_program(seed: int) -> list[str]:
    """Blocks of a program, whose order makes no difference to what it does."""
    draw = random.Random(seed)

    def value(inside: bool) -> str:
        found = draw.choice(_VALUES)
        return found if inside or "self" not in found else "x"

    blocks = [f"G = {draw.choice(('torch.ones(1)', '[1]', '1'))}"]
    for i in range(3):
        lines = [f"def f{i}(x):"]
        if draw.random() < 0.3:
            lines += ["    global G", f"    G = {value(False)}"]
        if draw.random() < 0.5:
            lines += [f"    if x:\n        return {value(False)}"]
        blocks.append("\n".join([*lines, f"    return {value(False)}"]))
    for name, base in (("A", "nn.Module"), ("B", "A"), ("C", "B")):
        lines = [f"class {name}({base}):"]
        for i in draw.sample(range(3), 2):
            lines.append(
                f"    def m{i}(self, x):\n        self.{draw.choice('ab')} = {value(True)}"
            )
            lines.append(f"        return {value(True)}")
        blocks.append("\n".join(lines))
    blocks.append(f"def run(net: {draw.choice('ABC')}):\n    net.a = {value(False)}\n    f0(net.b)")
    return blocks


def kinds_by_text(inference: Inference) -> dict[str, set[str]]:
    """What every expression may be, by function and text."""
    found: dict[str, set[str]] = {}
    for file in inference.program.files.values():
        for function in file.functions.values():
            for node in ast.walk(function.node):
                if isinstance(node, ast.expr) and id(node) in inference.kinds:
                    key = f"{function.key} {ast.unparse(node)}"
                    found.setdefault(key, set()).update(a.kind for a in inference.kinds[id(node)])
    return found


_USES = (
    "f0(torch.ones(1))", "f1([1])", "f2(None)", "net.G = [1]", "net.G = torch.ones(2)",
    "A().a = 1", "C().b = torch.ones(1)", "run(B())", "A().m0([1])", "C().m1(torch.ones(1))",
    "class D(A):\n    def m1(self, x):\n        self.a = x\n        return [x]",
    "class D(C):\n    def m0(self, x):\n        return torch.ones(3)",
    "def f(x):\n    net.G = x\n    return f0(x)", "def f(x):\n    return C().m2(x)", "f(2)",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(25))
def test_a_file_that_does_more_than_before(seed: int) -> None:
    draw = random.Random(seed)
    head = "import torch\nimport net\nfrom net import A, B, C, f0, f1, f2, run\n"
    net = "import torch\nfrom torch import nn\n" + "\n".join(random_program(seed))
    sources = {"net.py": read("net.py", net.encode())}
    before = draw.sample(_USES, draw.randrange(7))
    after = [*draw.sample(_USES, draw.randrange(4)), *reversed(before)]
    texts = (head + "\n".join(uses) for uses in (before, after))
    first, second = ({**sources, "use.py": read("use.py", text.encode())} for text in texts)
    inference = Inference(index.build(first), rows())
    inference.everything()
    inference.renew(index.build(second, known=inference.program.files))
    assert not inference.stale()
    anew = Inference(inference.program, rows())
    anew.everything()
    for key, kinds in kinds_by_text(anew).items():
        found = kinds_by_text(inference)[key]
        assert kinds <= found or "unknown" in found, (key, found, kinds)


@pytest.mark.parametrize("seed", range(25))
def test_the_order_of_definitions_makes_no_difference(seed: int) -> None:
    blocks = random_program(seed)
    head = "import torch\nfrom torch import nn\n"
    functions, classes = blocks[1:4], blocks[4:7]
    first = solved(net=head + "\n".join(blocks))
    assert not first.stale()
    turned = [blocks[0], *classes, *reversed(functions), blocks[7]]
    second = solved(net=head + "\n".join(turned))
    assert kinds_by_text(first) == kinds_by_text(second)


def test_the_hash_seed_makes_no_difference() -> None:
    code = (
        "import test_kinds_between_functions as t\n"
        "for seed in range(8):\n"
        "    text = 'import torch\\nfrom torch import nn\\n' + '\\n'.join(t.random_program(seed))\n"
        "    found = t.kinds_by_text(t.solved(net=text))\n"
        "    print(sorted((k, sorted(v)) for k, v in found.items()))\n"
    )
    outputs = set()
    for seed in ("1", "2"):
        here = os.pathsep.join((str(Path(__file__).parent), *sys.path))
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": here}
        command = [sys.executable, "-c", code]
        outputs.add(
            subprocess.run(command, env=environment, capture_output=True, check=True).stdout
        )
    assert len(outputs) == 1
