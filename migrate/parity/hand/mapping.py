"""In: a matching, or a mapping file. Out: the file, or what it fixes.

The file is TOML: ``[cells]`` maps module paths to Cell paths, ``[weights]`` torch's tensors to
``"place"``, ``{to, layout, torch_rows, rows, axis}``, or a list of such parts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrate.parity.hand.fusing import Part
from migrate.records.errors import Problem

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib

HEAD = """\
# Which Cell and which tensor stands for which, as torch2ms verify found it. Edit it, and give it
# back with --map: what stands here is taken as it is, what does not is looked for.
"""


@dataclass(frozen=True)
class Fixed:
    """What a mapping file says."""

    cells: Mapping[str, str]
    parts: tuple[Part, ...]


def text(
    cells: Mapping[str, str], parts: Sequence[Part],
    ambiguous: Sequence[tuple[str, tuple[str, ...]]],
) -> str:  # fmt: skip
    """The file; tensors with other plausible partners are marked."""
    unsure = dict(ambiguous)
    lines = [HEAD, "[cells]"]
    lines += [f"{json.dumps(path)} = {json.dumps(cell)}" for path, cell in cells.items() if path]
    lines += ["", "[weights]"]
    for key in dict.fromkeys(part.key for part in parts):
        mine = [part for part in parts if part.key == key]
        value = _part(mine[0]) if len(mine) == 1 else f"[{', '.join(_part(p) for p in mine)}]"
        note = f"  # unsure: or {', '.join(unsure[key])}" if key in unsure else ""
        lines.append(f"{json.dumps(key)} = {value}{note}")
    return "\n".join(lines) + "\n"


def _part(part: Part) -> str:
    more = [f"layout = {json.dumps(part.layout)}"] if part.layout else []
    more += [f"torch_rows = {list(part.torch_rows)}"] if part.torch_rows else []
    more += [f"rows = {list(part.rows)}"] if part.rows else []
    more += [f"axis = {part.axis}"] if part.axis else []
    more += ["adds = true"] if part.adds else []
    place = json.dumps(part.place)
    return f"{{ {', '.join([f'to = {place}', *more])} }}" if more else place


def read(path: Path) -> Fixed:
    """Read a mapping file. Raises Problem that names the line or key."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        cells = {str(path): str(cell) for path, cell in data.get("cells", {}).items()}
        parts = [
            part for key, value in data.get("weights", {}).items()
            for part in _parts(key, value)
        ]  # fmt: skip
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise Problem(
            str(path), "not a mapping file", f"{type(error).__name__}: {error}",
            "give a file that torch2ms verify wrote, or a new name",
        ) from error  # fmt: skip
    return Fixed(cells, tuple(parts))


def _parts(key: str, value: Any) -> list[Part]:
    found = []
    for item in value if isinstance(value, list) else [value]:
        row = {"to": item} if isinstance(item, str) else item
        known = {"to", "layout", "torch_rows", "rows", "axis", "adds"}
        if not isinstance(row, dict) or not set(row) <= known:
            raise ValueError(f"{key}: a part has the keys {', '.join(sorted(known))}")
        pairs = [tuple(row[name]) if name in row else None for name in ("torch_rows", "rows")]
        found.append(Part(
            key, row["to"], row.get("layout", ""), pairs[0], pairs[1], row.get("axis", 0),
            bool(row.get("adds", False)),
        ))  # fmt: skip
    return found
