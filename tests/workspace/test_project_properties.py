"""In: random projects of several files. Out: neither their order nor the hash seed counts, nor how
many processes convert them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate.engine import rewrite
from migrate.engine.rewrite import Options
from migrate.mapping import table
from migrate.syntax.source import read
from migrate.workspace.assembly import Conversion
from migrate.workspace.project import Request, convert

# Pieces that need types of other files: a net, a base class, a factory, a registry, a function.
PIECES = (
    "class {name}(nn.Module):\n    def __init__(self, width=3):\n        super().__init__()\n"
    "        self.inner = nn.Linear(width, 3)\n    def forward(self, x):\n"
    "        return self.inner(x).view(-1, 3)\n",
    "class {name}({other}):\n    def forward(self, x, mask=None):\n"
    "        y = super().forward(x)\n        return y.masked_fill(mask, 0.0).add_(1)\n",
    "def {name}(x, sizes):\n    return x.view(*sizes).size(0), x.new_zeros(3)\n",
    "def {name}(kind='a'):\n    return {{'a': {other}, 'b': {other}}}[kind]()\n",
    "{name} = {other}\n",
    "def {name}(net, x):\n    out = net(x)\n    return out.sum().item(), {other}\n",
    "class {name}:\n    def __init__(self, net):\n        self.net = net.train()\n"
    "        self.sizes = {{'h': 1}}\n    def run(self, x):\n"
    "        return self.net(x).size(1) + self.sizes.get('h'), {other}\n",
)
USES = (
    "made = {other}\n",
    "print({other}(torch.ones(2, 3)))\n",
    "y = {other}(torch.zeros(2, 3), (3, 2))\n",
    "for part in [{other}]:\n    value = part().parameters()\n",
    "t = torch.ones(3); t.size(0)\n",
)
FILES = ("zeta.py", "pkg/__init__.py", "pkg/alpha.py", "mid.py")
NAMES = ("One", "Two", "three", "four")
HEAD = "import torch\nfrom torch import nn\n"


def imports(path: str) -> str:
    """Every file takes all of the others, around in a circle: only types are looked up."""
    modules = {f: f.removesuffix(".py").replace("/__init__", "").replace("/", ".") for f in FILES}
    return "".join(
        f"from {module} import {name}\n"
        for (file, module), name in zip(modules.items(), NAMES, strict=True)
        if file != path
    )


pieces = st.lists(
    st.tuples(st.sampled_from(PIECES), st.sampled_from(NAMES), st.sampled_from(USES)),
    min_size=len(FILES), max_size=len(FILES),
)  # fmt: skip


def project(chosen: list[tuple[str, str, str]]) -> dict[str, str]:
    return {
        path: HEAD + imports(path) + piece.format(name=name, other=other) + use.format(other=other)
        for path, name, (piece, other, use) in zip(FILES, NAMES, chosen, strict=True)
    }


@cache
def rows() -> table.Table:
    return table.load(())


def converted(files: dict[str, str]) -> dict[str, bytes]:
    sources = {path: read(path, text.encode()) for path, text in files.items()}
    built = rewrite.analyse(sources, rows())
    options = Options("portable", "module", "from _h import")
    return {path: rewrite.convert(built, path, options).data for path in sorted(files)}


@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(pieces, st.permutations(FILES))
def test_the_order_of_files_is_irrelevant(
    chosen: list[tuple[str, str, str]], order: list[str]
) -> None:
    files = project(chosen)
    for data in converted(files).values():
        compile(data, "after.py", "exec")
    assert converted({path: files[path] for path in order}) == converted(files)


def by_processes(folder: Path, jobs: int) -> Conversion:
    """The conversion of a folder; nothing is written."""
    return convert(Request(folder, folder.parent / "out", jobs=jobs))


@pytest.mark.parametrize("first", range(0, len(PIECES), 2))
def test_the_number_of_processes_is_irrelevant(tmp_path: Path, first: int) -> None:
    chosen = [
        (PIECES[(first + k) % len(PIECES)], NAMES[k], USES[(first + k) % len(USES)])
        for k in range(len(FILES))
    ]
    for path, text in project(chosen).items():
        place = tmp_path / "in" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    alone = by_processes(tmp_path / "in", 1)
    assert len(alone.outputs) >= len(FILES) and not alone.failures
    for jobs in (2, 3):
        shared = by_processes(tmp_path / "in", jobs)
        assert (shared.outputs, shared.record) == (alone.outputs, alone.record)


def digests() -> list[str]:
    """One checksum for each of some projects that hold every piece beside every other."""
    count = len(PIECES)
    some = [
        project([(PIECES[(i + k) % count], NAMES[(j + k) % 4], USES[(i + j + k) % 5])
                 for k in range(len(FILES))])
        for i in range(count) for j in range(4)
    ]  # fmt: skip
    return [hashlib.sha256(repr(sorted(converted(one).items())).encode()).hexdigest()
            for one in some]  # fmt: skip


def test_the_hash_seed_is_irrelevant() -> None:
    told = []
    for seed in ("1", "77"):
        run = subprocess.run(
            [sys.executable, "-c", "import json, test_project_properties as t; "
             "print(json.dumps(t.digests()))"],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parent)},
            capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2],
        )  # fmt: skip
        told.append(json.loads(run.stdout))
    assert told[0] == told[1] and len(set(told[0])) > 20
