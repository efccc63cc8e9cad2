"""In: the arguments of ``torch2ms fix``. Out: decisions about flags, remembered and applied."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from migrate import __version__
from migrate.cli.terminal import progress
from migrate.explain.candidates import Candidate, candidates
from migrate.records.choices import Asked, Choice
from migrate.records.outcomes import Problem
from migrate.workspace import choices_file, fixing, merge, record
from migrate.workspace.fixing import Fixing, Tried

SCHEMA_VERSION = 1
_HELP = (
    "1-9 take a candidate    e an expression of your own    s statements of your own\n"
    "a take candidate 1 here and for all flags like this    k keep the text as it stands\n"
    "n next    b back    q stop here and apply    ! stop, and apply nothing"
)


@dataclass(frozen=True)
class Options:
    """``replay``: decisions to take without a person; ``choices``: where they are remembered."""

    format: str = "text"
    replay: Path | None = None
    choices: Path | None = None


@dataclass(frozen=True)
class Decided:
    """One decision and what came of it."""

    choice: Choice
    tried: Tried


def run(out: Path, options: Options) -> int:
    """Go through the flags of an output. Gives the exit code; raises Problem."""
    located = record.locate(out)
    with progress("reading"):
        session = Fixing.of(located, options.choices)
        places = tuple(session.asked())
    if options.replay is not None:
        done, lost = _replayed(session, places, options.replay)
        return _finished(session, done, lost, options.format, out)
    if options.format == "json":
        print(json.dumps(_listed(session, places, out), indent=1, ensure_ascii=False))
        return 1 if places else 0
    if not places:
        print(f"Nothing is flagged in {out}")
        return 0
    if not sys.stdin.isatty():
        raise Problem(
            "torch2ms fix", "there is nobody to ask", f"{len(places)} places are flagged",
            "give --format json to read them, and --replay FILE to decide",
        )  # fmt: skip
    taken = _walked(session, places)
    return _finished(session, taken, [], options.format, out) if taken is not None else 1


# -- programs ------------------------------------------------------------------------------------


def _listed(session: Fixing, places: Sequence[Asked], out: Path) -> dict[str, Any]:
    """Return the flags as data, each with its candidates."""
    earlier = tuple(session.chosen.values())
    return {
        "schema_version": SCHEMA_VERSION, "tool_version": __version__, "out": str(out),
        "source": str(session.request.source), "choices": str(session.path),
        "flags": [
            {
                **_shown_key(session, place), "line": place.line, "column": place.column,
                "code": place.code, "reason": place.reason, "next_step": place.next_step,
                "original": place.original, "output": place.output,
                "output_line": place.output_line, "expression": place.expression,
                "receiver": place.receiver, "kinds": place.kinds, "values": place.values,
                "forms": place.forms,
                "candidates": [
                    asdict(one) for one in candidates(place, session.opened.rows, earlier)
                ],
            }
            for place in places
        ],
    }  # fmt: skip


def _shown_key(session: Fixing, place: Asked) -> dict[str, Any]:
    """Return the key of a place as the file of choices has it."""
    probe = Choice(**place.key.model_dump(), form="keep")
    outside = choices_file.above(probe, session.path, session.request.source).key
    return {"id": outside.id, **outside.model_dump()}


def _replayed(
    session: Fixing, places: Sequence[Asked], path: Path
) -> tuple[list[Decided], list[str]]:
    """Take decisions from a file, and list those whose place is not flagged."""
    done: list[Decided] = []
    lost: list[str] = []
    for row, place in fixing.decisions(choices_file.rows(path), places, session):
        if place is None:
            lost.append(str(row.get("statement") or row.get("id")))
            continue
        done.append(_take(session, place, _choice(place, row, path)))
    return done, lost


def _choice(place: Asked, row: Mapping[str, Any], path: Path | str) -> Choice:
    values = {key: row[key] for key in ("form", "becomes", "note") if key in row}
    if values.get("form") not in place.forms:
        raise Problem(
            str(path), f"{values.get('form')!r} cannot be chosen", f"for {place.key.statement}",
            f"choose one of {', '.join(place.forms) or 'none: edit the output by hand'}",
        )  # fmt: skip
    was = place.receiver if values["form"] == "receiver" else place.expression
    return choices_file.made({**place.key.model_dump(), "was": was, **values}, str(path))


def _take(session: Fixing, place: Asked, choice: Choice) -> Decided:
    """Try a choice, and take it if its place compiles and binds what it reads."""
    tried = session.try_(place, choice)
    if tried.holds:
        session.choose(choice)
    return Decided(choice, tried)


# -- a person ------------------------------------------------------------------------------------


def _walked(session: Fixing, places: Sequence[Asked]) -> list[Decided] | None:
    """Ask about one place after another; None: nothing is to be applied."""
    from migrate.cli.fix_terminal import ask, show

    done: dict[str, Decided] = {}
    at = 0
    while at < len(places):
        place = places[at]
        if place.key.id in done:
            at += 1
            continue
        earlier = tuple(session.chosen.values())
        found = candidates(place, session.opened.rows, earlier)
        show(place, found, at + 1, len(places), _HELP)
        answer = ask(place, found)
        if answer == "stop":
            return None
        if answer == "quit":
            break
        if answer == "back":
            at = max(0, at - 1)
            session.chosen.pop(places[at].key.id, None)
            done.pop(places[at].key.id, None)
            continue
        if isinstance(answer, Candidate):
            made = _take(session, place, _of(place, answer))
            if not made.tried.holds:
                print(f"  this does not hold: {made.tried.why}")
                continue
            done[place.key.id] = made
        elif answer == "all":
            for other in places[at:]:
                drafts = candidates(other, session.opened.rows, tuple(session.chosen.values()))
                alike = (other.key.name, other.code) == (place.key.name, place.code)
                same = other is place or alike
                if same and drafts and drafts[0].form == found[0].form:
                    made = _take(session, other, _of(other, drafts[0]))
                    if made.tried.holds:
                        done[other.key.id] = made
        at += 1
    return list(done.values())


def _of(place: Asked, candidate: Candidate) -> Choice:
    return _choice(place, {"form": candidate.form, "becomes": candidate.becomes}, "the answer")


# -- the end -------------------------------------------------------------------------------------


def _finished(
    session: Fixing, done: Sequence[Decided], lost: Sequence[str], format: str, out: Path
) -> int:
    """Remember the choices, convert with them, and say what holds."""
    taken = [one for one in done if one.tried.holds]
    if taken:
        session.save()
    with progress("converting") as shown:
        placed = session.placed(shown)
    placed.write()
    left = tuple(session.asked())
    still = {place.key.id: place for place in left}
    failed = [(one.choice, one.tried.why) for one in done if not one.tried.holds]
    failed += [
        (one.choice, f"{still[one.choice.id].code}: {still[one.choice.id].reason}")
        for one in taken if one.choice.id in still
    ]  # fmt: skip
    holding = len(done) - len(failed)
    commands = _verify(done, out)
    if format == "json":
        print(json.dumps({
            "schema_version": SCHEMA_VERSION, "tool_version": __version__, "decided": len(done),
            "holding": holding, "left": len(left), "choices": str(session.path),
            "failed": [{"id": c.id, "statement": c.statement, "why": why} for c, why in failed],
            "lost": list(lost), "conflicts": list(placed.conversion.conflicts),
            "verify": commands,
        }, indent=1, ensure_ascii=False))  # fmt: skip
    else:
        print(f"Decided:    {len(done)}, of which {holding} hold: {session.path}")
        for choice, why in failed:
            print(f"Not taken:  {choice.file}: {choice.statement}: {why}")
        for text in lost:
            print(f"Not found:  {text}: nothing is flagged there")
        for line in merge.said(placed.changes, placed.conversion.root):
            print(line)
        print(f"Left:       {len(left)} flags")
        for command in commands:
            print(f"Next:       {command}")
    return max(placed.conversion.status, int(bool(failed or lost)))


def _verify(done: Sequence[Decided], out: Path) -> list[str]:
    """Return the commands that prove what was decided."""
    files = sorted({one.choice.file for one in done if one.tried.holds})
    if out.is_dir():
        return [f"torch2ms verify {shlex.quote(str(out / file))}" for file in files]
    return [f"torch2ms verify {shlex.quote(str(out))}"] if files else []
