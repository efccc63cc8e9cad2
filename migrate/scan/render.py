"""In: an Assessment. Out: it as text for a terminal, as Markdown, as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from migrate.scan.assess import MEANS, Api, Assessment, Count, Place

FORMATS = ("text", "json", "md")
_PLACES = 10  # places of one code that are listed
_APIS = 40  # names that are listed; JSON has all of them


def render(found: Assessment, format: str = "text", every: bool = False) -> str:
    """The assessment with a final newline; ``every``: leave no place or name out.

    Raises ValueError for a format that does not exist.
    """
    match format:
        case "json":
            return found.model_dump_json(indent=2) + "\n"
        case "md":
            return "\n".join(_markdown(found, every)) + "\n"
        case "text":
            return "\n".join(_text(found, every)) + "\n"
    raise ValueError(f"scan format {format!r} does not exist; choose one of {', '.join(FORMATS)}")


def _percent(count: Count) -> str:
    if count.share is None:
        return "none"
    # 99.96 % is not 100: never round up to everything
    return f"{int(count.share * 1000) / 10:.1f} %"


def _summary(found: Assessment) -> Iterator[tuple[str, str]]:
    ledger = found.ledger
    for label, count in (
        ("References", found.references), ("Cells", found.cells), ("Files", found.files)
    ):  # fmt: skip
        yield (
            label,
            f"{_percent(count)} convert without a flag ({count.clean:,} of {count.total:,})",
        )
    parts = (
        f"{ledger.converted:,} converted",
        f"{ledger.helper:,} by helpers",
        f"{ledger.kept:,} kept",
        f"{ledger.stopping:,} flagged",
        *([f"{ledger.graph:,} for graph mode"] if ledger.graph else []),
        f"{ledger.out_of_scope:,} out of scope",
    )
    yield "By outcome", f"{ledger.total:,} = {' + '.join(parts)}"


def _verified(found: Assessment) -> str:
    """Which share of what is decided by rows rests on rows that ran in both frameworks."""
    by_rows = [api for api in found.apis if api.proof]
    uses = sum(api.uses - api.ledger.flagged for api in by_rows)
    done = sum(api.uses - api.ledger.flagged for api in by_rows if api.proof == "verified")
    text = _percent(Count(clean=done, total=uses))
    return f"{text} of the uses that a row decides rest on a row verified as it is now"


def _groups(found: Assessment) -> Iterator[tuple[str, list[Place]]]:
    for code, group in groupby(found.places, key=lambda place: place.code):
        yield code, list(group)


def _where(place: Place) -> str:
    cell = f"cell {place.cell}:" if place.cell else ""
    return f"{place.file}:{cell}{place.line}:{place.column}"


def _says(place: Place) -> str:
    step = f"; {place.next_step}" if place.next_step else ""
    return f"{place.name}: {place.reason}{step}"


def _cut(items: Sequence[Place], every: bool) -> Sequence[Place]:
    return items if every else items[:_PLACES]


def _becomes(api: Api) -> str:
    """What becomes of a name, in a few words."""
    # "... .sum" and "....sum" are calls of a method of something
    shown = [t.replace("... ", "...").replace("....", ".") for t in api.targets]
    parts = [", ".join(dict.fromkeys(shown))] if shown else []
    parts += [f"{code} {count}" for code, count in api.flags.items()]
    return "; ".join(parts)


# -- terminal ---------------------------------------------------------------------------------


def _text(found: Assessment, every: bool) -> Iterator[str]:
    yield f"{found.source}: {found.lines:,} lines, target {found.target}; nothing is written"
    for label, value in _summary(found):
        yield f"{label + ':':<12}{value}"
    yield f"{'Evidence:':<12}{_verified(found)}"
    yield from (f"{'Unread:':<12}{line}" for line in found.unread)
    yield from (f"{'Skipped:':<12}{count}: {why}" for why, count in found.skipped.items())
    yield ""
    yield from _text_places(found, every)
    yield from _text_apis(found.apis, every)


def _text_places(found: Assessment, every: bool) -> Iterator[str]:
    if not found.places:
        yield "Nothing is flagged."
        yield ""
        return
    seen = ""
    for code, places in _groups(found):
        kind = places[0].work
        if kind != seen:
            seen = kind
            yield f"{kind.capitalize()} ({found.work[kind]} places): {MEANS[kind]}"
        for place in _cut(places, every):
            yield f"  {_where(place)} {code} {_says(place)}"
        if len(places) > len(_cut(places, every)):
            yield f"  ... {code}: {len(places) - _PLACES} more places (--all)"
    yield ""


def _text_apis(apis: Sequence[Api], every: bool) -> Iterator[str]:
    shown = apis if every else apis[:_APIS]
    width = max((len(api.name) for api in shown), default=0)
    yield f"{'Uses':>6} {'flagged':>8}  {'evidence':<12}  {'Name':<{width}}  Becomes"
    for api in shown:
        flagged = api.ledger.flagged or ""
        yield (
            f"{api.uses:>6} {flagged:>8}  {api.proof:<12}  {api.name:<{width}}  {_becomes(api)}"
        ).rstrip()
    if len(apis) > len(shown):
        yield f"... {len(apis) - len(shown)} more names (--all, or --format json)"


# -- Markdown ---------------------------------------------------------------------------------


def _markdown(found: Assessment, every: bool) -> Iterator[str]:
    yield f"# Assessment of `{found.source}`"
    yield ""
    yield f"{found.lines:,} lines, target {found.target}, torch2mindspore {found.tool_version}."
    yield ""
    yield from _rows(("", ""), [*_summary(found), ("Evidence", _verified(found))])
    yield from (f"- not read: {_escape(line)}" for line in found.unread)
    yield from ("", "## Hard places", "")
    if not found.places:
        yield "Nothing is flagged."
    for code, places in _groups(found):
        yield f"### {code} ({places[0].work}, {len(places)})"
        yield ""
        for place in _cut(places, every):
            yield f"- `{_where(place)}` {_escape(_says(place))}"
        if len(places) > len(_cut(places, every)):
            yield f"- and {len(places) - _PLACES} more"
        yield ""
    yield from ("", "## Names", "")
    shown = found.apis if every else found.apis[:_APIS]
    yield from _rows(
        ("Name", "Uses", "Flagged", "Evidence", "Becomes"),
        [(f"`{a.name}`", a.uses, a.ledger.flagged, a.proof, _escape(_becomes(a))) for a in shown],
    )
    if len(found.apis) > len(shown):
        yield f"\nand {len(found.apis) - len(shown)} more names"


def _rows(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    for line in (head, ["---"] * len(head), *rows):
        yield "| " + " | ".join(map(str, line)) + " |"


def _escape(text: str) -> str:
    special = str.maketrans({c: f"\\{c}" for c in "\\`*_[]<>|#"})
    return " ".join(text.split()).translate(special)
