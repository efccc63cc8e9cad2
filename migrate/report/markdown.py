"""In: a record and a verification. Out: a short report in Markdown, for a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from migrate.records.result import Record, Verification
from migrate.report import headline, ledger
from migrate.report.headline import cautions

MOST_FLAGS = 50


def to_markdown(record: Record, verification: Verification | None) -> str:
    """Summary, flags, parity and ledger; text of the user is escaped."""
    seen = ledger.coverage(record, verification)
    top = headline.headline(record, verification, seen)
    parts = [
        f"# {top.badge}: `{record.source_root}`",
        top.text,
        *map(escape, cautions(record, verification)),
        *(f"**The ledger does not add up.** {escape(c)}" for c in ledger.complaints(record)),
        _cards(headline.cards(record, verification, seen)),
        "## Flags",
        _flags(record),
        "## Taken for granted",
        _assumptions(record),
        "## Left as it is",
        _open(record),
        "## Parity",
        _parity(verification),
        "## Ledger",
        _ledger(record),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table of Markdown; the cells are Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def escape(text: str) -> str:
    """The text on one line, with nothing in it that Markdown or HTML would read."""
    special = str.maketrans({c: f"\\{c}" for c in "\\`*_[]<>|#"})
    return " ".join(text.split()).translate(special)


def _cards(cards: Sequence[headline.Card]) -> str:
    rows = [
        (card.title, f"{card.done} of {card.total}" if card.total else "none", card.unit)
        for card in cards
    ]
    return table(("", "", "what is counted"), rows)


def _flags(record: Record) -> str:
    flags = [flag for group in ledger.flag_groups(record) for flag in group.flags]
    if not flags:
        return "None."
    lines = [
        f"- **{f.entry.code}** `{f.file}:{f.entry.line}` {escape(f.entry.name)}: "
        f"{escape(f.entry.reason)}{_next(f.entry.next_step)}"
        for f in flags[:MOST_FLAGS]
    ]
    more = len(flags) - len(lines)
    return "\n".join([*lines, f"- and {more} more"] if more else lines)


def _assumptions(record: Record) -> str:
    found = ledger.assumptions(record)
    if not found:
        return "Nothing."
    lines = [
        f"- `{f.file}:{f.entry.line}` {escape(f.entry.name)}: {escape(f.entry.assumption)}"
        for f in found[:MOST_FLAGS]
    ]
    more = len(found) - len(lines)
    return "\n".join([*lines, f"- and {more} more"] if more else lines)


def _open(record: Record) -> str:
    """Attributes that torch's objects have too, of values of which nobody knows what they are."""
    found = [(file.source, one) for file in record.own_files for one in file.open]
    if not found:
        return "Nothing whose owner is unknown."
    lines = [f"- `{file}:{one.line}` {escape(one.name)}" for file, one in found[:MOST_FLAGS]]
    more = len(found) - len(lines)
    return "\n".join([*lines, f"- and {more} more"] if more else lines)


def _next(step: str) -> str:
    return f". Next: {escape(step)}" if step else ""


def _parity(verification: Verification | None) -> str:
    if verification is None:
        return "**NOT verified**: nothing was run."
    rows = [
        (
            f"`{model.build}`",
            model.verdict.value,
            f"{sum(c.verdict in ledger.MATCHED for c in model.checks)} of {len(model.checks)}",
            escape(f"{model.guilty.torch}: {model.guilty.cause}") if model.guilty else "",
        )
        for model in verification.models
    ]
    return table(("Model", "Verdict", "Checks within the limit", "First guilty Cell"), rows)


def _ledger(record: Record) -> str:
    head = ("File", *(c.replace("_", " ") for c in ledger.COLUMNS), "total")
    lines = [*ledger.by_file(record), ledger.Tally("Sum", record.ledger)]
    fields = (*ledger.COLUMNS, "total")
    return table(
        head, [(escape(t.label), *(getattr(t.ledger, field) for field in fields)) for t in lines]
    )
