"""In: two conversions of the same code with their verifications. Out: what has changed, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from migrate.records.outcomes import Outcome, Verdict
from migrate.records.result import Check, Frozen, Ledger, Record, Verification
from migrate.report.formats import Document
from migrate.report.markdown import escape, table

ORDER = tuple(Verdict)
COLUMNS = ("total", "converted", "kept", "helper", "flagged", "out_of_scope")
MOST = 100


class FlagChange(Frozen):
    """A flag that one side has more often; ``line`` is its first place on that side."""

    file: str
    line: int
    code: str
    name: str
    reason: str
    count: int = 1


class VerdictChange(Frozen):
    """One model, rung, mode and Cell ("" with rung "" for the whole run of a model)."""

    model: str
    rung: str = ""
    mode: str = ""
    cell: str = ""
    old: Verdict | None = None
    new: Verdict | None = None
    elements_old: int = 0
    elements_new: int = 0

    @property
    def worse(self) -> bool:
        """A verdict further down the list, fewer numbers compared, or none any more."""
        if self.old is None or self.new is None:
            return self.new is None
        fell = ORDER.index(self.new) > ORDER.index(self.old)
        return fell or (self.elements_new < self.elements_old and not self.elements_new)


class Changes(Frozen):
    """``torch2ms report --compare OLD NEW --format json``."""

    schema_version: int = 1
    old_version: str = ""
    new_version: str = ""
    ledger_old: Ledger
    ledger_new: Ledger
    flags_new: tuple[FlagChange, ...] = ()
    flags_gone: tuple[FlagChange, ...] = ()
    failed_new: tuple[str, ...] = ()
    failed_gone: tuple[str, ...] = ()
    verdicts: tuple[VerdictChange, ...] = ()

    @property
    def worse(self) -> bool:
        return bool(self.flags_new or self.failed_new) or any(v.worse for v in self.verdicts)


def compare(old: Document, new: Document) -> Changes:
    """What the second has that the first has not, and the other way round.

    Flags are the same by file, code, name and reason: their lines may move.
    """
    failed = [{f.source for f in d.record.files if f.status == "failed"} for d in (old, new)]
    return Changes(
        old_version=old.record.tool_version, new_version=new.record.tool_version,
        ledger_old=old.record.ledger, ledger_new=new.record.ledger,
        flags_new=tuple(_more(new.record, old.record)),
        flags_gone=tuple(_more(old.record, new.record)),
        failed_new=tuple(sorted(failed[1] - failed[0])),
        failed_gone=tuple(sorted(failed[0] - failed[1])),
        verdicts=tuple(_verdicts(old.verification, new.verification)),
    )  # fmt: skip


Key = tuple[str, str, str, str]


def _flags(record: Record) -> tuple[Counter[Key], dict[Key, int]]:
    """How often each flag is met, and its first line."""
    counts: Counter[Key] = Counter()
    lines: dict[Key, int] = {}
    for file in record.files:
        for entry in file.entries:
            if entry.outcome is Outcome.FLAGGED:
                key = (file.source, entry.code, entry.name, entry.reason)
                counts[key] += 1
                lines.setdefault(key, entry.line)
    return counts, lines


def _more(one: Record, other: Record) -> Iterator[FlagChange]:
    counts, lines = _flags(one)
    for key, count in sorted((counts - _flags(other)[0]).items()):
        file, code, name, reason = key
        yield FlagChange(
            file=file, line=lines[key], code=code, name=name, reason=reason, count=count
        )


def _verdicts(old: Verification | None, new: Verification | None) -> Iterator[VerdictChange]:
    before, after = _checks(old), _checks(new)
    for key in dict.fromkeys((*before, *after)):
        one, other = before.get(key), after.get(key)
        verdicts = (one[0] if one else None, other[0] if other else None)
        elements = (one[1] if one else 0, other[1] if other else 0)
        model, rung, mode, cell = key
        found = VerdictChange(
            model=model, rung=rung, mode=mode, cell=cell, old=verdicts[0], new=verdicts[1],
            elements_old=elements[0], elements_new=elements[1],
        )  # fmt: skip
        if verdicts[0] != verdicts[1] or found.worse:
            yield found


def _checks(verification: Verification | None) -> dict[Key, tuple[Verdict, int]]:
    """Verdict and numbers compared, of each model (with its inputs) and of its Cells."""
    found: dict[Key, tuple[Verdict, int]] = {}
    for model in verification.models if verification else ():
        name = f"{model.source}: {model.build}" + "".join(f" {text}" for text in model.inputs)
        found[name, "", "", ""] = (model.verdict, _elements(model.checks))
        for check in model.checks:
            found[name, check.rung, check.mode, check.torch_path] = (check.verdict, check.elements)
    return found


def _elements(checks: Sequence[Check]) -> int:
    return sum(check.elements for check in checks)


def changes(found: Changes, format: str) -> str:
    """As "md" or "json". Raises ValueError for another format."""
    if format == "json":
        return found.model_dump_json(indent=1) + "\n"
    if format != "md":
        raise ValueError(f"a comparison is written as md or json, not as {format}")
    worse = [v for v in found.verdicts if v.worse]
    better = [v for v in found.verdicts if not v.worse]
    rows = [
        (name.replace("_", " "), one := getattr(found.ledger_old, name),
         other := getattr(found.ledger_new, name), f"{other - one:+d}" if other != one else "")
        for name in COLUMNS
    ]  # fmt: skip
    parts = [
        "# " + ("Worse than before" if found.worse else "Nothing got worse"),
        table(("References", "old", "new", ""), rows),
        *_section("New flags", [_flag(flag) for flag in found.flags_new]),
        *_section("Flags that are gone", [_flag(flag) for flag in found.flags_gone]),
        *_section("Files that fail now", [f"- `{name}`" for name in found.failed_new]),
        *_section("Files that fail no more", [f"- `{name}`" for name in found.failed_gone]),
        *_section("Verdicts that got worse", [_verdict(change) for change in worse]),
        *_section("Other verdicts that changed", [_verdict(change) for change in better]),
    ]
    return "\n\n".join(parts) + "\n"


def _section(title: str, lines: Sequence[str]) -> list[str]:
    more = [f"- and {len(lines) - MOST} more"] if len(lines) > MOST else []
    return [f"## {title} ({len(lines)})", "\n".join([*lines[:MOST], *more])] if lines else []


def _flag(flag: FlagChange) -> str:
    often = f" ({flag.count} times)" if flag.count > 1 else ""
    where = f"`{flag.file}:{flag.line}`"
    return f"- **{flag.code}** {where} {escape(flag.name)}: {escape(flag.reason)}{often}"


def _verdict(change: VerdictChange) -> str:
    sides = " → ".join(side.value if side else "not there" for side in (change.old, change.new))
    cell = f", {change.cell or 'the whole model'} ({change.rung}, {change.mode})"
    gone = "" if change.elements_new or not change.elements_old else "; no number is compared"
    return f"- {escape(change.model + (cell if change.rung else ''))}: {sides}{gone}"
