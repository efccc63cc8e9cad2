"""Merge two changed forms of a notebook cell by cell, a cell line by line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any

from migrate.workspace import three_way
from migrate.workspace.three_way import Merged

_MARK = "# torch2ms cell: "
Cell = tuple[str, str]  # its type and source


def merge(base: bytes, mine: bytes, other: bytes) -> Merged:
    """Merge notebooks of format 4; ``conflicts`` are the numbers of cells.

    What a cell had printed stays where the merged cell is the edited one, else it is taken out.

    Raises:
        ValueError: one of them is no such notebook, or both sides have added, moved or taken away
            cells at one place.
    """
    contents = [_content(data) for data in (base, mine, other)]
    merged = three_way.merge(*(_text(content) for content in contents))
    cells: list[Cell] = []
    conflicts: list[int] = []
    inside = False
    for number, line in enumerate(merged.data.decode("utf-8").splitlines(keepends=True), 1):
        inside = inside or number in merged.conflicts
        if line.startswith(_MARK):
            if inside:
                raise ValueError("both have changed which cells there are")
            cells.append((line.removeprefix(_MARK).rstrip("\n"), ""))
            continue
        cells[-1] = (cells[-1][0], cells[-1][1] + line)
        if number in merged.conflicts:
            conflicts.append(len(cells))
        inside = inside and not line.startswith(f">>>>>>> {three_way.OTHER}")
    _, ours, new = contents
    done = [(kind, text.removesuffix("\n")) for kind, text in cells]
    whole = {**ours, "cells": list(_put_together(done, ours["cells"], new["cells"]))}
    data = json.dumps(whole, indent=1, ensure_ascii=False) + "\n"
    return Merged(data.encode("utf-8"), tuple(dict.fromkeys(conflicts)))


def _content(data: bytes) -> dict[str, Any]:
    content = json.loads(data.decode("utf-8"))
    if not isinstance(content, dict) or not isinstance(content.get("cells"), list):
        raise ValueError("not a notebook of format 4")
    return content


def _cell(cell: dict[str, Any]) -> Cell:
    source = cell.get("source", "")
    return cell.get("cell_type", ""), source if isinstance(source, str) else "".join(source)


def _text(content: dict[str, Any]) -> bytes:
    cells = (_cell(cell) for cell in content["cells"])
    return "".join(f"{_MARK}{kind}\n{source}\n" for kind, source in cells).encode("utf-8")


def _put_together(
    merged: list[Cell], mine: list[dict[str, Any]], other: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield cells as the notebook has them: ours where they are alike, else the converted ones."""
    converted = {_cell(cell): cell for cell in other}
    mine_cells = [_cell(cell) for cell in mine]
    taken: set[str] = set()
    matcher = SequenceMatcher(None, mine_cells, merged, autojunk=False)
    for tag, start, end, first, last in matcher.get_opcodes():
        for place in range(first, last):
            kind, source = merged[place]
            old = start + place - first
            beside = mine[old] if old < end and mine_cells[old][0] == kind else None
            if tag == "equal":
                cell = mine[old]
            elif merged[place] in converted:
                cell = converted[merged[place]]
            else:
                cell = {**(beside or {"cell_type": kind, "metadata": {}})}
                cell["source"] = source.splitlines(keepends=True)
                if kind == "code":
                    cell["outputs"], cell["execution_count"] = [], None
            name = cell.get("id", "")
            if name in taken:
                cell = {**cell, "id": f"{name[:48]}-{place}"}
            taken |= {name} if name else set()
            yield cell
