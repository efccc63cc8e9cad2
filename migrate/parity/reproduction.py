"""Write a short program, with its arrays, that shows a Cell whose forward differs alone."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from migrate.parity.exchange import Array, ArrayStore, Spec, apply_layout, leaves, read_index
from migrate.parity.probe import expression
from migrate.records.result import Check

if TYPE_CHECKING:
    from migrate.parity.recorded import Recorded

_LONGEST = 120  # characters of a file's name
PROGRAM = '''"""{what}

Needs no torch. Beside it lie its arrays: x inputs, w weights, r torch's result in float64.
"""

import importlib
import os
import sys

os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX2"
import mindspore as ms
import numpy as np

sys.path.insert(0, {folder!r})
module = importlib.import_module({module!r})
data = np.load(__file__.removesuffix(".py") + ".npz")
net = eval({build!r}, vars(module))
for place in (key for key in data if key.startswith("w.")):
    owner, *names = net, *place.split(".")[1:]
    for name in names[:-1]:
        owner = owner._cells[name]
    fresh = ms.Tensor(data[place], getattr(owner, names[-1]).dtype)
    held = getattr(owner, names[-1])
    held.set_data(fresh) if isinstance(held, ms.Parameter) else setattr(owner, names[-1], fresh)
net.set_train({training})
cell = net
for name in {path!r}.split(".") if {path!r} else ():
    cell = cell._cells[name]
{inputs}
results = [cell({call})]
while any(isinstance(one, (tuple, list)) for one in results):
    results = [x for one in results for x in (one if isinstance(one, (tuple, list)) else [one])]
results = [one for one in results if isinstance(one, ms.Tensor)]
for number, one in enumerate(results):
    found, wanted = one.asnumpy(), data[f"r{{number}}"]
    print(found.shape, wanted.shape, np.linalg.norm(found - wanted) / np.linalg.norm(wanted))
'''


def write_reproduction(session: Recorded, check: Check) -> str:
    """Write the program for a failing forward check; its path, or "" where there can be none."""
    folder = session.request.reproductions
    if folder is None or not check.rung.startswith("forward") or not check.mindspore_class:
        return ""
    source = session.recorded(check.rung == "forward train")
    index = read_index(source)
    calls = [one for one in index["calls"] if (one["path"], one["call"]) == (check.torch_path, 0)]
    try:
        text, arrays = _program(session, check, calls[0], ArrayStore(source), index["training"])
    except (ValueError, IndexError):  # its input holds what cannot be handed over
        return ""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{session.target.name} {check.mindspore_path or 'whole'}"
    name = "".join(c if c.isalnum() else "_" for c in stem).strip("_")
    if len(name) > _LONGEST:  # a model that is built by a long expression
        name = f"{name[: _LONGEST // 2]}_{zlib.crc32(name.encode()):08x}{name[-_LONGEST // 2 :]}"
    np.savez_compressed(folder / f"{name}.npz", **arrays)
    (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return str(folder / f"{name}.py")


def _program(
    session: Recorded, check: Check, entry: Spec, store: ArrayStore, training: bool
) -> tuple[str, dict[str, Array]]:
    inputs: list[Spec] = []
    call = [expression(item, inputs) for item in entry["args"]["items"]]
    call += [f"{name}={expression(item, inputs)}" for name, item in
             zip(entry["kwargs"]["keys"], entry["kwargs"]["items"], strict=True)]  # fmt: skip
    arrays = {f"x{number}": store.get(spec["key"]) for number, spec in enumerate(inputs)}
    lines = [
        f'x{number} = ms.Tensor(data["x{number}"], ms.{_dtype(spec)})'
        for number, spec in enumerate(inputs)
    ]
    wanted = [leaf for _, leaf in leaves(entry["local"]) if leaf["t"] == "tensor"]
    arrays |= {f"r{number}": store.get(leaf["key"]) for number, leaf in enumerate(wanted)}
    arrays |= _weights(session, check.mindspore_path)
    target = session.target
    above = target.ms_package.split(".") if target.ms_package else []
    root = target.ms_root.parents[len(above) - 1] if above else target.ms_root
    parts = [*above, *Path(target.output).with_suffix("").parts]
    what = (
        f"{target.output}, {target.build}: {check.mindspore_path or 'the whole model'} "
        f"({check.mindspore_class}) differs from torch in {check.rung}."
    )
    text = PROGRAM.format(
        what=what[:300], folder=str(root), module=_module(parts), build=target.build,
        training=training, path=check.mindspore_path, inputs="\n".join(lines), call=", ".join(call),
    )  # fmt: skip
    return text, arrays


def _module(parts: Sequence[str]) -> str:
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def _dtype(spec: Spec) -> str:
    return "bool_" if spec["dtype"] == "bool" else str(spec["dtype"])


def _weights(session: Recorded, path: str) -> dict[str, Array]:
    """Return the numbers that were copied into a Cell, by their places in the whole net."""
    rows = {row["key"]: row["array"] for row in session.torch["tensors"]}
    store = ArrayStore(session.folder / "weights")
    prefix = f"{path}." if path else ""
    return {
        f"w.{pair.place}": apply_layout(store.get(rows[pair.key]), pair.layout)
        for pair in session.pairing.pairs if pair.place and pair.place.startswith(prefix)
    }  # fmt: skip
