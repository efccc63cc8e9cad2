"""In: folders (default: the installed timm and torchvision). Out: how many receivers are typed.

    python benchmarks/typed_receivers.py [FOLDER...]

Counts the calls ``x.name(...)`` whose name is that of a Tensor method, and of how many the kind of
``x`` is known: a Tensor, or another named type. Of the rest it says what the receiver is made of.
"""

from __future__ import annotations

import argparse
import ast
import sysconfig
from collections import Counter
from itertools import zip_longest
from pathlib import Path

from rich.console import Console
from rich.table import Table

from migrate.analysis.program import File
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import UNKNOWN, without_none
from migrate.engine import rewrite
from migrate.mapping import table
from migrate.syntax.deep import uncollected
from migrate.syntax.source import Unreadable, read


@uncollected()
def inferred(folder: Path, rows: table.Table) -> Inference:
    """The kinds of every expression of the folder's files, as one program."""
    sources = {}
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder.parent).as_posix()
        try:
            sources[name] = read(name, path.read_bytes())
        except Unreadable as error:
            print(f"left out: {error}")
    return rewrite.analyse(sources, rows).inference


def count(inference: Inference, file: File, typed: Counter[str], untyped: Counter[str]) -> None:
    """Add the calls of one file, by the kind of their receiver or by its form."""
    for node in file.nodes:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if not inference.table.kind(f"torch.Tensor.{node.func.attr}"):
            continue
        receiver = node.func.value
        kind = without_none(inference.kinds.get(id(receiver), UNKNOWN))
        if kind and not any(atom.kind == "unknown" for atom in kind):
            typed[" or ".join(sorted({atom.kind for atom in kind}))] += 1
        else:
            untyped[type(receiver).__name__ + (" or known" if len(kind) > 1 else "")] += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="*")
    site = Path(sysconfig.get_paths()["purelib"])
    folders = parser.parse_args().folders or [site / "timm", site / "torchvision"]
    rows, console = table.load(()), Console()
    for folder in folders:
        typed: Counter[str] = Counter()
        untyped: Counter[str] = Counter()
        inference = inferred(folder.resolve(), rows)
        for file in inference.program.files.values():
            count(inference, file, typed, untyped)
        known, rest = sum(typed.values()), sum(untyped.values())
        share = known / max(known + rest, 1)
        console.print(f"{folder.name}: {known:,} of {known + rest:,} typed ({share:.1%})")
        shown = Table("typed as", "calls", "receivers not typed", "calls ")
        pairs = zip_longest(typed.most_common(8), untyped.most_common(8), fillvalue=("", ""))
        for (kind, calls), (form, others) in pairs:
            shown.add_row(kind, str(calls), form, str(others))
        console.print(shown)


if __name__ == "__main__":
    main()
