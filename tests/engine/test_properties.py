"""In: random programs made of known statements. Out: what holds for every conversion."""

from __future__ import annotations

import io
import tokenize
from collections import Counter
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from migrate.engine import rewrite
from migrate.engine.rewrite import Options, Rewritten
from migrate.mapping import table
from migrate.records.outcomes import Outcome
from migrate.syntax.source import read

IMPORTS = (
    "import torch",
    "import torch as t",
    "from torch import nn",
    "import os, torch",
    "from torch.nn import functional as F",
    "import torch.nn as nn",
    "import numpy as np",
    "from torch import (\n    relu,  # one\n    zeros,\n)",
    "from mine import *",
)

# What the converter has nothing to do with: these lines stay, byte for byte.
OTHER = (
    "count = len(names)  # how many",
    "names = ['b',   'a']; names.sort()",
    "text = 'torch.zeros'",
    "total = sum(v for v in {1: 2}.values())",
    "pass  # torch.nn",
    "del_ = {'size': 1}.get('size')",
    "path = os.path.join('a', 'b').split('/')",
    'note = """two\n  lines"""',
    "pair = (1,\n        2)",
    "x = x",
    "print(f'{x!r:>{10}}')",
)
TORCH = (
    "x = torch.zeros(2, 3)",
    "x = torch.relu(x)  # positive",
    "x = torch.cat([x, x], dim=0)",
    "y = torch.max(x, 1)[0]",
    "layer = torch.nn.Linear(3, 4)",
    "print(torch.__version__)",
    "x = torch.nn.functional.gelu(\n    x,  # in\n)",
    "x = torch.no_such_thing(x)  # gone",
    "n = torch.ones(2).size(0)",
    "v, i = torch.topk(torch.ones(3), 2)",
    "x = x.unknown_(1)",
    "a = torch.zeros(2); b = torch.ones(2)",
    "x = torch.nn.ReLU(inplace=True)(x)",
    "f = lambda z: torch.tanh(z)",
    "d = torch.device('cuda')",
    "s = torch.randn(2).to('cuda').add_(1)",
    "w = torch.nn.Parameter(torch.ones(3))",
    "torch.manual_seed(3)",
    "y = torch.zeros(3)\ny.add_(1)",
    "e = torch.float32  # dtype",
    "q = torch.sum(torch.ones(2, 2), dim=1, keepdim=True)",
)
HEADS = (
    "",
    "",
    "",
    "if x is not None:  # given",
    "for k in range(2):",
    "with torch.no_grad():  # off",
    "def g(x: torch.Tensor, names=()):",
    "class Net(torch.nn.Module):\n    def forward(self, x):",
    "try:",
    "async def h(x):",
    "@torch.no_grad()\ndef k(x):",
    "while x:",
)


@cache
def rows() -> table.Table:
    return table.load(())


def block(head: str, lines: list[str]) -> str:
    """The statements, below the head where there is one."""
    body = "\n".join(lines) + "\n"
    if not head:
        return body
    deep = "        " if head.startswith("class") else "    "
    inside = "".join(deep + line if line.strip() else line for line in body.splitlines(True))
    tail = "except ValueError:\n    raise\n" if head == "try:" else ""
    return f"{head}\n{inside}{tail}"


# A statement over several lines must not be indented: its text would be another.
single = [s for s in OTHER + TORCH if "\n" not in s]
statements = st.lists(st.sampled_from(single), min_size=1, max_size=5)
blocks = st.builds(block, st.sampled_from(HEADS), statements)
whole = st.lists(st.sampled_from(OTHER + TORCH), min_size=1, max_size=3).map(
    lambda lines: block("", lines)
)
programs = st.builds(
    lambda imports, parts: "import os, torch\n" + "\n".join(imports) + "\n\n" + "\n".join(parts),
    st.lists(st.sampled_from(IMPORTS), max_size=3),
    st.lists(blocks | whole, min_size=1, max_size=4),
)
quick = settings(max_examples=150, deadline=None, derandomize=True, database=None)


def converted(text: str) -> Rewritten:
    source = read("module.py", text.encode())
    built = rewrite.analyse({source.path: source}, rows())
    return rewrite.convert(built, source.path, Options("portable", "module", "from _h import"))


def comments(text: str) -> Counter[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return Counter(t.string for t in tokens if t.type == tokenize.COMMENT)


@quick
@given(programs)
def test_output_is_python(text: str) -> None:
    compile(text, "before.py", "exec")
    compile(converted(text).data, "after.py", "exec")


@quick
@given(programs)
def test_every_reference_has_one_outcome(text: str) -> None:
    made = converted(text)
    counts = Counter(e.outcome for e in made.entries)
    assert made.ledger.adds_up
    assert made.ledger.total == len(made.entries) > 0
    assert made.ledger.converted == counts[Outcome.CONVERTED]
    assert made.ledger.flagged == counts[Outcome.FLAGGED]
    assert made.ledger.helper == counts[Outcome.HELPER]
    assert len({(e.line, e.column, e.name) for e in made.entries}) == len(made.entries)


@quick
@given(programs)
def test_conversion_is_deterministic(text: str) -> None:
    assert converted(text) == converted(text)


@quick
@given(programs)
def test_a_second_conversion_changes_nothing(text: str) -> None:
    once = converted(text).data.decode()
    assert converted(once).data.decode() == once


@quick
@given(programs)
def test_no_comment_is_lost(text: str) -> None:
    assert not comments(text) - comments(converted(text).data.decode())


@quick
@given(programs)
def test_statements_without_torch_stay(text: str) -> None:
    made = converted(text).data.decode()
    for statement in OTHER:
        assert made.count(statement) >= text.count(statement), statement


@quick
@given(st.lists(st.sampled_from(OTHER), max_size=8), st.booleans())
def test_a_file_without_torch_stays(lines: list[str], crlf: bool) -> None:
    text = "import os\n\n" + "\n".join(lines)
    text = text.replace("\n", "\r\n") if crlf else text
    assert converted(text).data == text.encode()
