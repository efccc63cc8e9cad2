"""Take the inventory of a built Cell, put torch's weights into it, and group equal Cells."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn

from migrate.parity.compare import relative_error
from migrate.parity.exchange import Array, ArrayStore, Spec, apply_layout, decode, digest, encode
from migrate.parity.importing import ARGUMENTS, PLACE, place


def array(tensor: Any) -> Array:
    """Return the numbers as numpy; bfloat16 as float32."""
    plain = tensor.float() if tensor.dtype == ms.bfloat16 else tensor
    result: Array = np.asarray(plain.asnumpy())
    return result


def dtype_name(dtype: Any) -> str:
    return str(dtype).lower()


def dtype_of(name: str) -> Any:
    return ms.bool_ if name == "bool" else getattr(ms, name)


def tensor_of(numbers: Array, dtype: str) -> Any:
    """Return a Tensor of the given dtype (0-d stays 0-d)."""
    return ms.Tensor(np.ascontiguousarray(numbers).reshape(numbers.shape), dtype_of(dtype))


def rebuild(spec: Spec, store: ArrayStore) -> Any:
    """Return the MindSpore value of a description. Raises ValueError for an opaque part."""
    return decode(spec, lambda leaf: tensor_of(store.get(leaf["key"]), leaf["dtype"]), dtype_of)


def describe(value: Any) -> tuple[Spec, Callable[[Spec], Array]]:
    """Return a description of a result and the function that reads its arrays."""
    held: list[Any] = []

    def tensor(item: Any) -> Spec | None:
        if not isinstance(item, ms.Tensor):
            return None
        held.append(item)
        shape = [int(size) for size in item.shape]
        name = dtype_name(item.dtype)
        return {"t": "tensor", "key": len(held) - 1, "dtype": name, "shape": shape}

    return encode(value, tensor), lambda leaf: array(held[leaf["key"]])


@dataclass
class Net:
    """The MindSpore model: cells by path, tensors by place ("bn1.gamma").

    ``parts`` are, for each torch tensor, where its numbers lie: rows {key, array, place, layout}
    that convert's record gives; those of a ``port`` may also be some ``rows`` of a tensor.
    """

    root: Any
    cells: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, list[Spec]] = field(default_factory=dict)
    start: dict[str, Array] = field(default_factory=dict)
    source: str = ""
    port: bool = False

    def part(self, key: str) -> Spec | None:
        """Return the part of a tensor that lies in one place."""
        return self.parts[key][-1] if key in self.parts else None


def open_net(root: Any, source: Path = Path(), port: bool = False) -> Net:
    return Net(root, dict(_walk(root, "", set())), source=str(source), port=port)


def _walk(cell: Any, path: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """Yield every Cell once, by path; unlike cells_and_names, empty containers are not left out."""
    if id(cell) in seen:
        return
    seen.add(id(cell))
    yield path, cell
    for name, child in cell._cells.items():
        if child is not None:
            yield from _walk(child, f"{path}.{name}" if path else name, seen)


def _paths(cell: Any, path: str, above: tuple[int, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield every Cell by each of its paths: torch's state dict names shared weights as often."""
    yield path, cell
    for name, child in cell._cells.items():
        if child is not None and id(child) not in (*above, id(cell)):
            yield from _paths(child, f"{path}.{name}" if path else name, (*above, id(cell)))


def _cell_at(net: Net, path: str) -> Any:
    """Return the Cell at one of its paths. Raises KeyError."""
    cell = net.root
    for name in path.split(".") if path and path not in net.cells else ():
        cell = cell._cells[name]
    return net.cells.get(path, cell)


def inventory(net: Net, source: Path) -> list[Spec]:
    """Path, class, file, 1-based line and settings of every Cell."""
    rows = []
    for path, cell in net.cells.items():
        file, line = place(cell, source)
        settings = {
            name: value for name, value in cell.__dict__.items()
            if name not in INTERNAL and isinstance(value, (bool, int, float, str, tuple))
        }  # fmt: skip
        rows.append({
            "path": path, "class": type(cell).__name__, "file": file, "line": line,
            "module": type(cell).__module__,
            "settings": {k: v for k, v in settings.items() if _is_plain(v)},
        })  # fmt: skip
    return rows


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_is_plain(item) for item in value)
    return isinstance(value, (bool, int, float, str)) and value == value


def tensors(net: Net) -> list[Spec]:
    """Return a row for every Parameter, buffer and Tensor attribute of a net."""
    rows: list[Spec] = []
    for path, cell in _paths(net.root, ""):
        held = {**_attributes(cell), **{k: v for k, v in cell._buffers.items() if v is not None}}
        held.update({k: v for k, v in cell._params.items() if v is not None})
        for name, value in held.items():
            is_parameter = isinstance(value, ms.Parameter)
            rows.append({
                "place": f"{path}.{name}" if path else name,
                "name": value.name if is_parameter else "",
                "parameter": is_parameter,
                "shape": [int(size) for size in value.shape],
                "dtype": dtype_name(value.dtype),
                "trained": bool(is_parameter and value.requires_grad),
                "same": id(value),
            })  # fmt: skip
    return rows


def _attributes(cell: Any) -> dict[str, Any]:
    return {
        name: value for name, value in cell.__dict__.items()
        if isinstance(value, ms.Tensor) and name not in INTERNAL
    }  # fmt: skip


def held_at(net: Net, place_: str) -> Any:
    """Return the Parameter or Tensor at a place."""
    path, _, name = place_.rpartition(".")
    cell = _cell_at(net, path)
    for table in (cell._params, cell._buffers, cell.__dict__):
        if name in table:
            return table[name]
    raise KeyError(place_)


def put(net: Net, place_: str, numbers: Array) -> None:
    """Set the numbers at a place; dtype and shape stay those of the Cell."""
    held = held_at(net, place_)
    fresh = tensor_of(numbers, dtype_name(held.dtype))
    if isinstance(held, ms.Parameter):
        held.set_data(fresh)
        return
    path, _, name = place_.rpartition(".")
    cell = _cell_at(net, path)
    if name in cell._buffers:
        cell._buffers[name] = fresh
    else:
        object.__setattr__(cell, name, fresh)


def load(net: Net, parts: list[Spec], folder: Path) -> Spec:
    """Copy torch's weights and read them back; see `Net.parts`.

    Answers the parts that ``failed``, and how each tensor ``starts``. A part counts only when the
    bytes read back have torch's hash; a port may keep them in another precision.
    """
    restore(net, "")
    store = ArrayStore(folder)
    failed: list[Spec] = []
    starts: list[Spec] = []
    fitting: list[tuple[Spec, Array]] = []
    net.parts.clear()
    for part in sorted(parts, key=lambda part: part.get("adds", False)):
        numbers = torch_part(store.get(part["array"]), part)
        mine = own_part(array(held_at(net, part["place"])), part)
        if numbers.shape != mine.shape:
            why = f"shape {list(mine.shape)} in MindSpore, {list(numbers.shape)} in torch"
            failed.append({"key": part["key"], "place": part["place"], "why": why})
            continue
        if not net.port:
            starts.append({"key": part["key"], **started(mine, part, store)})
        fitting.append((part, numbers))
    for part, numbers in fitting:  # only now: what is tied stands at two places
        whole = array(held_at(net, part["place"])).copy()
        target = own_part(whole, part)
        wanted = numbers + target if part.get("adds") else numbers
        target[...] = wanted
        put(net, part["place"], whole)
        net.parts.setdefault(part["key"], []).append(part)
        back = own_part(array(held_at(net, part["place"])), part)
        one, other = (back, wanted.astype(back.dtype)) if net.port else (
            back.astype(wanted.dtype), wanted
        )  # fmt: skip
        if digest(np.asarray(one)) != digest(np.asarray(other)):
            why = "the copied values have another hash"
            failed.append({"key": part["key"], "place": part["place"], "why": why})
    net.start = {
        row["place"]: array(held_at(net, row["place"])).copy() for row in tensors(net)
        if not row["trained"] and (row["parameter"] or net.port)
    }  # fmt: skip
    return {"failed": failed, "starts": starts}


def torch_part(numbers: Array, part: Spec) -> Array:
    """Return the rows of a torch tensor that a part takes, in MindSpore's layout."""
    rows = part.get("torch_rows")
    return apply_layout(numbers if rows is None else numbers[rows[0] : rows[1]], part["layout"])


def own_part(numbers: Array, part: Spec) -> Any:
    """Return the view of a MindSpore tensor that a part fills."""
    if part.get("rows") is None:
        return numbers[...]
    where = [slice(None)] * numbers.ndim
    where[part["axis"]] = slice(*part["rows"])
    return numbers[tuple(where)]


def started(mine: Array, pair: Spec, store: ArrayStore) -> Spec:
    """Compare the numbers a Cell was built with to torch's: by value where torch's are fixed
    (tables, zeros, ones), by standard deviation where they are drawn.
    """
    if pair["start"]:
        wanted = apply_layout(store.get(pair["start"]), pair["layout"])
        error = relative_error(mine, wanted) if wanted.size else 0.0
        detail = "" if error <= 1e-5 else f"starts with other values: relative error {error:.2e}"
        return {"elements": int(mine.size), "error": error, "limit": 1e-5, "detail": detail,
                "same": error <= 1e-5}  # fmt: skip
    if not pair["spread"] or mine.size < 100:
        return {"elements": 0, "error": None, "limit": None, "detail": "", "same": True}
    spread = float(np.std(mine.astype(np.float64), ddof=1))
    error = abs(spread / pair["spread"] - 1)
    limit = 0.25 + 4 / math.sqrt(2 * mine.size)
    detail = "" if error <= limit else (
        f"starts with the standard deviation {spread:.3g}, in torch {pair['spread']:.3g}"
    )  # fmt: skip
    return {"elements": int(mine.size), "error": error, "limit": limit, "detail": detail,
            "same": error <= limit}  # fmt: skip


def restore(net: Net, path: str) -> None:
    """Bring everything that is not trained (moving statistics) below a Cell to its start."""
    prefix = f"{path}." if path else ""
    for place_, numbers in net.start.items():
        if place_.startswith(prefix):
            put(net, place_, numbers)


INTERNAL = frozenset(vars(nn.Cell())) | {
    PLACE, ARGUMENTS, "cell_init_args", "arguments_key", "training"
}  # fmt: skip


class Unknown(Exception):
    """A Cell holds something that cannot be compared, so it is in no group."""


def signature(cell: Any) -> Any:
    """Equal for Cells that compile to the same graph up to the values of their Parameters."""
    own = tuple(
        (name, _token(value)) for name, value in sorted(cell.__dict__.items())
        if name not in INTERNAL
    )  # fmt: skip
    held = tuple(
        (name, tuple(p.shape), str(p.dtype), p.requires_grad)
        for name, p in cell._params.items() if p is not None
    )  # fmt: skip
    buffers = tuple((n, _token(b)) for n, b in cell._buffers.items())
    inner = tuple((n, signature(c)) for n, c in cell._cells.items() if c is not None)
    return (type(cell), cell.training, own, held, buffers, inner)


def _token(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return (type(value).__name__, value)
    if isinstance(value, (tuple, list)):
        return (type(value).__name__, tuple(_token(item) for item in value))
    if isinstance(value, dict):
        return ("dict", tuple((_token(k), _token(v)) for k, v in value.items()))
    if isinstance(value, ms.Parameter):
        return ("Parameter", tuple(value.shape), str(value.dtype))
    if isinstance(value, ms.Tensor):
        return ("Tensor", digest(array(value)))
    if isinstance(value, ms.ops.Primitive):
        held = {k: v for k, v in value.attrs.items() if not k.lower().startswith("seed")}
        return (value.name, tuple(sorted((k, repr(v)) for k, v in held.items())))
    if isinstance(value, types.FunctionType) and value.__closure__ is None:
        return ("function", value.__module__, value.__qualname__)
    if isinstance(value, type) or str(type(value).__module__).startswith("mindspore._c_exp"):
        return ("named", str(value))
    raise Unknown(type(value).__name__)


def lend(net: Net, donor: str, model: str) -> dict[str, Array]:
    """Put the donor Cell's Parameters into the model Cell; answers what was there before."""
    before: dict[str, Array] = {}
    prefix, other = (f"{donor}." if donor else ""), (f"{model}." if model else "")
    for row in tensors(net):
        if row["parameter"] and row["place"].startswith(prefix):
            target = other + row["place"].removeprefix(prefix)
            before[target] = array(held_at(net, target)).copy()
            put(net, target, array(held_at(net, row["place"])))
    return before
