"""List the rules, say which of them decides a line, and check those of the user."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

from migrate.records.outcomes import Edit, Problem, Refusal
from migrate.rules.registry import Registered
from migrate.workspace.project import load


def show(parts: tuple[str, ...], own: tuple[Path, ...]) -> int:
    """Print the rules whose name holds one of ``parts``, in the order in which they are asked."""
    rules = load(own)[1].rules
    chosen = [r for r in rules if not parts or any(part in r.name for part in parts)]
    for rule in chosen:
        print(f"{rule.name}\n    {rule.purpose}\n    {place(rule)}: {'; '.join(claims(rule))}")
    print(f"{len(chosen)} of {len(rules)} rules", file=sys.stderr)
    return 0 if chosen else 1


def claims(rule: Registered) -> Iterator[str]:
    """Yield what a rule is given, what it looks for, and its declared order."""
    yield f"decides {rule.stage.value}" if rule.forms else rule.stage.value
    if rule.forms or rule.names:
        yield ", ".join((*sorted(form.value for form in rule.forms), *sorted(rule.names)))
    yield from (f"before {name}" for name in rule.before)
    yield from (f"after {name}" for name in rule.after)


def place(rule: Registered) -> str:
    """Return the file of a rule, with the line of ours."""
    if rule.file:
        return rule.file
    code = inspect.unwrap(rule.run).__code__
    root = Path(__file__).parents[2]
    return f"{Path(code.co_filename).relative_to(root).as_posix()}:{code.co_firstlineno}"


def at(path: Path, line: int, own: tuple[Path, ...]) -> int:
    """Print what is decided on one line of a file, and by which rules; 1 when it is nothing."""
    from migrate.engine import rewrite
    from migrate.engine.rewrite import Options
    from migrate.syntax.source import read

    if not path.is_file():
        raise Problem(str(path), "not found", "there is no such file", "check the path")
    rows, rules = load(own)
    source = read(path.name, path.read_bytes())
    analysed = rewrite.analyse({source.path: source}, rows)
    scene, _, made = rewrite.planned(analysed.inference, source.path, Options(rules=rules))
    found = [*made.decisions, *made.extra, *(r for r, _ in made.stopped)] if made else []
    by_name, shown = {rule.name: rule for rule in rules.rules}, 0
    for decision in found:
        if scene.source.line_of(decision.site.span.start) != line:
            continue
        shown += 1
        what = decision.message if isinstance(decision, Refusal) else decision.outcome.value
        if isinstance(decision, Edit) and decision.row:
            row = rows.row(decision.row)
            what += f" by the row {decision.row}" + (f" of {Path(row.file).name}" if row else "")
        print(f"{decision.site.name}: {what}")
        for name in decision.rule.split(", "):
            print(f"    {name}  {place(by_name[name])}")
    return 0 if shown else 1


def check(own: tuple[Path, ...]) -> int:
    """Convert the examples in the rules of the user; print what is wrong, 1 when anything is."""
    from migrate.engine.examples import failures

    rows, rules = load(own)
    mine = [rule for rule in rules.rules if rule.file]
    count = 0
    for rule in mine:
        for failure in failures(rule, rules, rows):
            count += 1
            print(failure)
    print(f"{len(mine)} rules of yours, {count} problems", file=sys.stderr)
    return 1 if count else 0
