"""Compare reaching bindings with beniget's def-use chains, on files of installed packages.

Every binding that beniget says reaches a read has to be inside the answer of `migrate.analysis`.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import random
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import beniget

from migrate.analysis.cfg import Carries, Node
from migrate.analysis.facts import Facts, UnitFacts
from migrate.analysis.scopes import UNITS
from migrate.analysis.statements import may_raise

BINDING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.arg, ast.alias)
LOOPS = (ast.For, ast.AsyncFor, ast.While)


@dataclass
class Compared:
    """What came out for some files."""

    files: int = 0
    lines: int = 0
    pairs: int = 0
    ours: float = 0.0
    theirs: float = 0.0
    apart: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)


def chains(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.Name]]:
    """Yield (binding, read) as beniget sees them."""
    found = beniget.DefUseChains()
    with contextlib.redirect_stdout(io.StringIO()):
        found.visit(tree)
    for place, definition in found.chains.items():
        stored = isinstance(place, ast.Name) and isinstance(place.ctx, ast.Store)
        if not (stored or isinstance(place, BINDING)):
            continue
        for user in definition.users():
            if isinstance(user.node, ast.Name) and user.node.id == definition.name():
                yield place, user.node


def compare(path: Path, result: Compared) -> None:
    """Add one file."""
    try:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (SyntaxError, UnicodeDecodeError, ValueError):
        result.failed["not Python of this version"] += 1
        return
    start = time.process_time()
    try:
        pairs = list(chains(tree))
    except Exception as error:  # beniget's own
        result.failed[f"beniget: {type(error).__name__}"] += 1
        return
    middle = time.process_time()
    parents = {id(c): n for n in ast.walk(tree) for c in ast.iter_child_nodes(n)}
    facts = Facts(tree, parents)
    for place, read in pairs:
        result.pairs += 1
        reach = facts.reach(read)
        if any(b.place is place for b in reach.bindings):
            continue
        reason = wrong_by_beniget(facts, place, read)
        if reason:
            result.apart[reason] += 1
        else:
            line = getattr(place, "lineno", 0)
            result.violations.append(f"{path}:{read.lineno}: {read.id}, bound in line {line}")
    result.ours += time.process_time() - middle
    result.theirs += middle - start
    result.files += 1
    result.lines += text.count("\n")


def wrong_by_beniget(facts: Facts, place: ast.AST, read: ast.Name) -> str:
    """Return why a pair is none, found without the solver; "" if it is one."""
    holder = facts.parents[id(place)]
    if isinstance(holder, ast.AnnAssign) and holder.value is None:
        return "an annotation without a value binds nothing"
    at = facts.point(read)
    start = entry_of(facts, place)
    if at is None or start is None or start[0] is not at[0]:
        return ""
    unit, node = at
    if start[1] not in unit.graph.order or not path(unit, start[1], node, set()):
        return why_no_path(facts, place, read)
    binds = {
        n.index
        for n in unit.graph.nodes
        if any(b.certain and b.name == read.id for b in unit.scope.events[n.index].binds)
        or read.id in unit.scope.events[n.index].unbinds
    }
    return "" if path(unit, start[1], node, binds) else "bound anew on every path to the read"


def why_no_path(facts: Facts, place: ast.AST, read: ast.Name) -> str:
    """Return a reason in the text for what the graph says; "" where there is none."""
    if in_dead_branch(facts, place) or in_dead_branch(facts, read):
        return "a branch whose condition is a constant never runs"
    before, after, common = branches(facts, place, read)
    loop = around(facts, common)
    end = loop if isinstance(loop, LOOPS) else common
    if jumps_on_the_way(facts, place, end) or jumps_on_the_way(facts, read, end):
        return "a jump (return, raise, break, continue) leads away"
    if isinstance(common, ast.Try) and isinstance(after, ast.ExceptHandler):
        if before in common.orelse:
            return "the else of a try does not enter its except clauses"
        if isinstance(before, ast.ExceptHandler):
            return "the read is in another except clause"
        return (
            "" if may_raise(facts.parents[id(place)]) else "a constant that is bound raises nothing"
        )
    if in_dead_handler(facts, place):
        return "an except clause of a try that only binds constants"
    if isinstance(loop, LOOPS):
        return ""
    if isinstance(common, ast.If) and (before in common.orelse) is not (after in common.orelse):
        return "the read is in the other branch of an if"
    return "the read comes first, and in no loop" if read.lineno < place.lineno else ""  # type: ignore[attr-defined]


def in_dead_branch(facts: Facts, node: ast.AST | None) -> bool:
    """Return whether an ``if`` of a constant leads past a node."""
    while node is not None:
        parent = facts.parents.get(id(node))
        if isinstance(parent, ast.If) and isinstance(parent.test, ast.Constant):
            dead = parent.orelse if parent.test.value else parent.body
            if node in dead:
                return True
        node = parent
    return False


def in_dead_handler(facts: Facts, node: ast.AST | None) -> bool:
    while node is not None:
        parent = facts.parents.get(id(node))
        if isinstance(node, ast.ExceptHandler) and isinstance(parent, ast.Try):
            return not any(map(may_raise, parent.body))
        node = parent
    return False


def branches(facts: Facts, place: ast.AST, read: ast.AST) -> tuple[ast.AST, ast.AST, ast.AST]:
    """Return the innermost node that holds both, behind its children that hold one each."""
    above: dict[int, ast.AST] = {}  # the child by which a node leads to the binding
    node: ast.AST | None = place
    while node is not None and (parent := facts.parents.get(id(node))) is not None:
        above[id(parent)] = node
        node = parent
    node = read
    while id(facts.parents[id(node)]) not in above:
        node = facts.parents[id(node)]
    common = facts.parents[id(node)]
    return above[id(common)], node, common


def around(facts: Facts, node: ast.AST) -> ast.AST:
    """Return the innermost loop around a node, or the unit."""
    while not isinstance(node, (*UNITS, ast.Module, *LOOPS)):
        node = facts.parents[id(node)]
    return node


def jumps_on_the_way(facts: Facts, node: ast.AST, end: ast.AST) -> bool:
    """Return whether a block that holds a node, below ``end`` or of it, ends in a jump."""
    while node is not end:
        parent = facts.parents[id(node)]
        for name in ("body", "orelse", "finalbody"):
            block = getattr(parent, name, None)
            if isinstance(block, list) and node in block and ends(block):
                return True
        node = parent
    return False


def entry_of(facts: Facts, place: ast.AST) -> tuple[UnitFacts, Node] | None:
    """Return where a binding takes place; a parameter is bound at the entry of its function."""
    if isinstance(place, ast.arg):
        function = facts.parents[id(facts.parents[id(place)])]
        unit = facts.units[id(function)]
        return unit, unit.graph.entry
    return facts.point(place)


def path(unit: UnitFacts, first: Node, last: Node, through: set[int]) -> bool:
    """Return whether control may come from one node to another without those of ``through``."""
    seen: set[int] = set()
    pending = [e.target for e in first.successors]
    while pending:
        node = pending.pop()
        if node is last:
            return True
        if node.index not in seen and node.index not in through:
            pending += [e.target for e in node.successors]
        elif node.index not in seen:  # it may raise before it binds
            pending += [e.target for e in node.successors if e.carries is not Carries.AFTER]
        seen.add(node.index)
    return False


def jumps(statement: ast.stmt) -> bool:
    """Return whether control never comes to what follows a statement."""
    if isinstance(statement, ast.Return | ast.Raise | ast.Break | ast.Continue):
        return True
    if isinstance(statement, ast.If):
        return ends(statement.body) and ends(statement.orelse)
    if isinstance(statement, ast.With | ast.AsyncWith):
        return ends(statement.body)
    if isinstance(statement, ast.While):
        return isinstance(statement.test, ast.Constant) and bool(statement.test.value)
    if isinstance(statement, ast.Try):
        handled = all(ends(h.body) for h in statement.handlers)
        return ends(statement.finalbody) or (
            handled and (ends(statement.body) or ends(statement.orelse))
        )
    if isinstance(statement, ast.Match):
        return all(ends(c.body) for c in statement.cases)
    return isinstance(statement, ast.Assert) and isinstance(statement.test, ast.Constant)


def ends(block: list[ast.stmt]) -> bool:
    return any(map(jumps, block))


def sample(count: int, seed: int = 0) -> list[Path]:
    """Return files of installed packages, a different selection for every seed."""
    root = Path(sysconfig.get_paths()["purelib"])
    every = sorted(p for p in root.rglob("*.py") if p.stat().st_size < 400_000)
    random.Random(seed).shuffle(every)
    return every[:count]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    sys.setrecursionlimit(20_000)
    result = Compared()
    for path in sample(options.files, options.seed):
        compare(path, result)
    for line in result.violations[:50]:
        print(line)
    print(
        f"{result.files} files, {result.lines} lines, {result.pairs} pairs of binding and read; "
        f"{result.ours:.1f} s, beniget {result.theirs:.1f} s; "
        f"{len(result.violations)} violations"
    )
    for reason, count in (result.apart + result.failed).most_common():
        print(f"  {count} {reason}")
    return 1 if result.violations else 0


if __name__ == "__main__":
    raise SystemExit(main())
