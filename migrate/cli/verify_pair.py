"""In: two addresses, module:name. Out: a verdict for a port written by hand, and its files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from migrate.cli.terminal import need
from migrate.cli.verify import applied, rung_lines, trained
from migrate.records.outcomes import Problem, Verdict
from migrate.records.result import PairResult
from migrate.workspace import settings
from migrate.workspace.outputs import write_atomically
from migrate.workspace.settings import VerifySettings

if TYPE_CHECKING:
    from migrate.parity.hand.port import Pair
    from migrate.parity.request import VerifyRequest

_ORDER = tuple(Verdict)
_FAILS = _ORDER.index(Verdict.NOT_RUN)
_LISTED = 8
MAP = ".map.toml"


def run(
    torch: str, mindspore: str, given: VerifySettings, json: Path | None, map: Path | None
) -> int:
    """Verify a pair, print, write the result and the mapping. Gives the exit code."""
    result, text = verified(torch, mindspore, given, map)
    target = map or (json.with_suffix(MAP) if json else None)
    if text and target is not None:
        _write(target, text)
        result = result.model_copy(update={"mapping": str(target)})
    if json is not None:
        _write(json, result.model_dump_json(indent=1) + "\n")
    for line in lines(result):
        print(line)
    return 1 if _ORDER.index(result.verdict) >= _FAILS else 0


def verified(
    torch: str,
    mindspore: str,
    given: VerifySettings,
    map: Path | None = None,
    folders: Sequence[Path] = (),
) -> tuple[PairResult, str]:
    """The result of a pair and the text of its mapping; modules are looked for in folders first."""
    need("numpy", "mindspore")
    from migrate.parity.hand.port import verify_pair
    from migrate.parity.session import opened_sides

    pair, request = _pair(torch, mindspore, map, folders), _request(given)
    with opened_sides(request) as (sides,):
        return verify_pair(sides, pair, request, lambda line: print(line, file=sys.stderr))


def _pair(torch: str, mindspore: str, map: Path | None, first: Sequence[Path]) -> Pair:
    from migrate.parity.hand.matching import Fixed, read
    from migrate.parity.hand.port import Pair
    from migrate.parity.request import parse_address

    try:
        sides = parse_address(torch), parse_address(mindspore)
    except ValueError as error:
        raise Problem(
            "torch2ms verify", "not a pair", str(error),
            "write both as module:name or module:call(...), like net_torch:Net net_ms:Net",
        ) from error  # fmt: skip
    listed = [Path(p or ".").resolve() for p in os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    folders = tuple(dict.fromkeys(str(folder) for folder in (*first, Path.cwd(), *listed)))
    fixed = read(map) if map is not None and map.exists() else Fixed({}, ())
    return Pair(*sides, folders, fixed)


def _request(given: VerifySettings) -> VerifyRequest:
    from migrate.parity.request import VerifyRequest, parse_input

    if given.build:
        raise Problem("--build", "not for a pair", "each side says what it builds",
                      "write module:call(...)")  # fmt: skip
    for text in (*given.input, *given.target):
        try:
            parse_input(text)
        except ValueError as error:
            raise Problem("--input", "not an input", str(error),
                          "write it as 2x3x64x64 or 2x16:int64<100") from error  # fmt: skip
    found = settings.nearest(Path.cwd(), Path.cwd()).verify
    plain = VerifyRequest(Path(), Path(), inputs=given.input)
    return trained(applied(plain, given, found, "steps"), given, found)


def _write(target: Path, text: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, lambda path: path.write_text(text, encoding="utf-8"))


def lines(result: PairResult) -> Iterator[str]:
    """What was found, the verdict first."""
    yield (
        f"{result.verdict.value:<10} {result.torch} -> {result.mindspore}"
        f"  ({', '.join(result.inputs)})"
    )
    if result.detail:
        yield f"           {result.detail}"
    yield from rung_lines(result.rungs)
    guilty = result.guilty
    if guilty:
        named = [path or "the whole model" for path in (guilty.torch, guilty.mindspore)]
        yield f"           first guilty: {named[0]} -> {named[1]} ({guilty.rung}, {guilty.mode})"
        if guilty.call:
            yield f"             {guilty.mindspore_place}: {guilty.call}"
        yield f"             {guilty.cause}"
        if guilty.torch_call:
            yield f"             first call that differs: {guilty.torch_call}"
            yield f"             in MindSpore: {guilty.mindspore_call or 'nothing follows'}"
    for title, found in (("on one side only", result.unmatched), ("unsure", result.ambiguous)):
        for line in found[:_LISTED]:
            yield f"           {title}: {line}"
        if len(found) > _LISTED:
            yield f"           {title}: {len(found) - _LISTED} more"
    if result.mapping:
        yield f"           mapping: {result.mapping} (edit it, and give it back with --map)"
