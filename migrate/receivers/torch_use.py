"""In: a program and the table. Out: whether there is anything of torch in it to convert."""

from __future__ import annotations

from migrate.names import root_of
from migrate.program import Program
from migrate.table import Table


def has_torch(program: Program, table: Table, roots: frozenset[str]) -> bool:
    """Whether a file imports torch, something the table covers, or what needs torch.

    A library that needs torch proves nothing in code that was converted: it is flagged there
    already, and its import may stand in a branch or for an optional part.

    Args:
        roots: the first parts of the names that the table covers: "torch", "einops".
    """
    names = {name for file in program.files.values() for name in file.imported}
    found = set(map(root_of, names))
    needing = "mindspore" not in found and any(map(table.needs_torch, names))
    return needing or not found.isdisjoint(roots)
