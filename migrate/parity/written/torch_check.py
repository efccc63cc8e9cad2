"""In: fixtures of one model and its torch code. Out: exit status 1 where torch gives other numbers.

Runs as a process of its own; needs torch, numpy and safetensors.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from migrate.parity import importing
from migrate.parity.compare import Measure, Strictness, compare
from migrate.parity.exchange import Array, ArrayStore, Spec, decode, read_index
from migrate.parity.importing import Tree
from migrate.parity.torch_model import named
from migrate.parity.torch_record import describe
from migrate.records.outcomes import Verdict


def measured(fixtures: Path, code: Path) -> Measure:
    """Run the model in eval mode with the recorded weights and inputs; compare its result."""
    asked = json.loads((fixtures / "model.json").read_text(encoding="utf-8"))
    index = read_index(fixtures / "eval")
    (entry,) = [one for one in index["calls"] if (one["path"], one["call"]) == ("", 0)]
    store = ArrayStore(fixtures / "eval")
    torch.backends.mha.set_fastpath_enabled(False)
    model = _built(asked, fixtures, code)

    def value(name: str) -> Any:
        return decode(entry[name], lambda leaf: _tensor(store, leaf), lambda d: getattr(torch, d))

    torch.manual_seed(asked["seed"])
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        result = model(*value("args"), **value("kwargs"))
        into = ArrayStore(Path(folder))
        actual = describe(result, into)

        def recorded(leaf: Spec) -> Array:
            return store.get(leaf["key"])

        def fresh(leaf: Spec) -> Array:
            return into.get(leaf["key"])

        return compare(entry["local"], actual, recorded, fresh, Strictness(**asked["strictness"]))


def _tensor(store: ArrayStore, leaf: Spec) -> torch.Tensor:
    return torch.from_numpy(store.get(leaf["key"])).to(getattr(torch, leaf["dtype"]))


def _built(asked: dict[str, Any], fixtures: Path, code: Path) -> torch.nn.Module:
    given = asked["torch"]
    module = importing.load(Tree(code.resolve(), given["package"]), given["file"])
    torch.manual_seed(asked["seed"])
    model: torch.nn.Module = importing.made(module, given["build"], torch.nn.Module)
    model.float().eval()
    store = ArrayStore(fixtures / "weights")
    rows = {row["key"]: row for row in given["tensors"]}
    with torch.no_grad():
        for name, tensor, _ in named(model):
            tensor.detach().copy_(torch.from_numpy(store.get(rows[name]["array"])))
    return model


def main() -> int:
    found = measured(Path(sys.argv[1]), Path(sys.argv[2]))
    print(f"torch: {found.verdict.value}: {found.elements} numbers compared {found.detail}")
    return 0 if found.verdict in (Verdict.PASS, Verdict.KERNEL, Verdict.NONDET) else 1


if __name__ == "__main__":
    sys.exit(main())
