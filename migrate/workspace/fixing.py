"""In: an output of convert. Out: what is flagged in it, choices tried, and the output made anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from migrate.engine.rewrite import Rewritten
from migrate.records.choices import Asked, Choice
from migrate.records.outcomes import Problem
from migrate.vendoring.policy import Wish
from migrate.workspace import choices_file, merge, project, record
from migrate.workspace.merge import Placed
from migrate.workspace.project import Opened
from migrate.workspace.record import Located
from migrate.workspace.request import Request

_AT_ONCE = 300_000  # bytes of source up to which saying what a receiver is shows its effect at once


def again(located: Located) -> Request:
    """Return the request by which an output was converted.

    Raises:
        Problem: the source is not there any more.
    """
    found = located.record
    source, asked = Path(found.source_root), found.asked
    if not source.exists():
        raise Problem(
            str(source), "the source is gone", f"{located.path} names it",
            "convert it again from where it is now: torch2ms convert FILE|DIR -o OUT",
        )  # fmt: skip
    out = located.root
    if located.path.name != record.NAME:
        out = out / next(file.output for file in found.files if file.source == source.name)
    wish = Wish(asked.follow, asked.no_follow, tuple(map(Path, asked.follow_path)))
    return Request(
        source, out, found.target, asked.helpers, asked.exclude, 0,
        tuple(map(Path, asked.mappings)), asked.train_style, wish=wish,
    )  # fmt: skip


@dataclass(frozen=True)
class Tried:
    """What a choice makes of its place: whether the flag is gone, why not, and the new text."""

    holds: bool
    why: str = ""
    output: str = ""


@dataclass
class Fixing:
    """A project whose flags are gone through; ``file`` is one source that was named, or ""."""

    request: Request
    path: Path
    opened: Opened
    chosen: dict[str, Choice] = field(default_factory=dict)
    file: str = ""

    @staticmethod
    def of(located: Located, path: Path | None = None) -> Fixing:
        """Open the project of an output with the choices that it has."""
        request = again(located)
        place = path or choices_file.place(request.source)
        found = choices_file.below(choices_file.read(place), place, request.source)
        request = replace(request, choices=found)
        opened = project.opened(request)
        known = {choice.id: choice for choice in found}
        return Fixing(request, place, opened, known, located.file)

    def asked(self) -> Iterator[Asked]:
        """Yield what is flagged in the project's own files, in order."""
        for path in self.opened.sources:
            if (self.file and path != self.file) or path in self.opened.followed.origins:
                continue
            made = self.opened.one(path, asks=True)
            if isinstance(made, Rewritten):
                yield from made.asked

    def try_(self, one: Asked, choice: Choice) -> Tried:
        """Convert the file of a place with a choice for it, and look whether the flag goes."""
        known = {**self.chosen, choice.id: choice}
        opened = self.opened.with_choices(tuple(known.values()))
        if choice.form == "receiver":
            if sum(len(s.data) for s in opened.sources.values()) > _AT_ONCE:
                return Tried(True, "shown when all is converted at the end")
            opened = project.opened(opened.request)
        made = opened.one(one.key.file, asks=True)
        if not isinstance(made, Rewritten):
            return Tried(False, made.why)
        before = {a.key.id for a in self._before(one.key.file)}
        new = [a for a in made.asked if a.key.id not in before]
        left = next((a for a in made.asked if a.key.id == choice.id), None)
        found = left or (new[0] if new else None)
        if found is not None:
            return Tried(False, f"{found.code}: {found.reason}", found.output)
        return Tried(True)

    def _before(self, path: str) -> tuple[Asked, ...]:
        made = self.opened.one(path, asks=True)
        return made.asked if isinstance(made, Rewritten) else ()

    def choose(self, choice: Choice) -> None:
        """Take a choice; those that follow are tried with it."""
        self.chosen[choice.id] = choice
        self.opened = self.opened.with_choices(tuple(self.chosen.values()))

    def save(self) -> None:
        """Write the choices, with those of other sources in the same file."""
        source = self.request.source
        others = choices_file.read(self.path)
        here = {choice.id for choice in choices_file.below(others, self.path, source)}
        kept = [
            choice for choice in others
            if not {c.id for c in choices_file.below((choice,), self.path, source)} & here
        ]  # fmt: skip
        made = [choices_file.above(choice, self.path, source) for choice in self.chosen.values()]
        choices_file.write(self.path, [*kept, *made])

    def placed(self, progress: Callable[[int, int], None]) -> Placed:
        """Convert all with the choices, to be merged into the output; nothing is written."""
        request = replace(self.request, choices=tuple(self.chosen.values()))
        self.opened = project.opened(request)
        conversion = project.converted(self.opened, progress)
        return merge.placed(conversion, request.source)


def decisions(
    rows: Sequence[Mapping[str, Any]], places: Sequence[Asked], fixing: Fixing
) -> Iterator[tuple[Mapping[str, Any], Asked | None]]:
    """Yield decisions with the place that each is about: by its id, or by what stands there."""
    known: dict[str, Asked] = {}
    for place in places:
        probe = Choice(**place.key.model_dump(), form="keep")
        outside = choices_file.above(probe, fixing.path, fixing.request.source)
        known[place.key.id] = known[outside.id] = place
    for row in rows:
        name = row.get("id")
        if name is None:
            values = {key: row[key] for key in Choice.model_fields if key in row}
            name = Choice.model_validate({"form": "keep", **values}).id
        yield row, known.get(str(name))
