"""In: a folder of Python files (default: timm's models). Out: speed, floors, and promises kept.

    python benchmarks/conversion_speed.py [FOLDER] [--json FILE]

Measures converted lines per second on one core, beside two floors on the same files: the standard
library's parser alone, and LibCST parsing and printing alone. Then it checks what convert promises:
no file fails, every output parses, no comment is lost, and a second run changes nothing. The exit
status is 1 when a promise is broken.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import sys
import tempfile
import tokenize
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from migrate.vendoring.policy import Wish
from migrate.workspace.assembly import Conversion
from migrate.workspace.project import Request, convert


@dataclass(frozen=True)
class Speed:
    """Lines per second on one core; 0 where it was not measured."""

    lines: int
    files: int
    convert: float
    ast_parse: float
    libcst_roundtrip: float


@dataclass(frozen=True)
class Promises:
    """What broke; every tuple is empty when all promises are kept."""

    failed: tuple[str, ...]
    unparsable: tuple[str, ...]
    comments_lost: tuple[str, ...]
    second_run: tuple[str, ...]
    comments: int

    @property
    def kept(self) -> bool:
        return not (self.failed or self.unparsable or self.comments_lost or self.second_run)


def default_folder() -> Path:
    """The models of the installed timm, found without importing it."""
    try:
        listed = files("timm") or []
    except PackageNotFoundError:
        listed = []
    for file in listed:
        if file.as_posix() == "timm/models/__init__.py":
            return Path(str(file.locate())).parent
    raise SystemExit("timm is not installed: name a folder, or pip install --no-deps timm")


def cpu_seconds() -> float:
    """Processor time of this process and its finished children: other load does not count."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def lines_per_second(texts: Mapping[str, str], work: Callable[[str], object]) -> float:
    """Speed of ``work`` over all texts; what raises counts as done."""
    started = cpu_seconds()
    for text in texts.values():
        try:
            work(text)
        except Exception as error:  # a floor does not care why a peer fails
            print(f"  floor: {type(error).__name__}: {error}", file=sys.stderr)
    return _lines(texts) / (cpu_seconds() - started)


def _lines(texts: Mapping[str, str]) -> int:
    return sum(text.count("\n") for text in texts.values())


def libcst_floor(texts: Mapping[str, str]) -> float:
    """LibCST parse and print; 0 when it is not installed."""
    try:
        import libcst
    except ImportError:
        print("  libcst is not installed: its floor is not measured", file=sys.stderr)
        return 0.0
    return lines_per_second(texts, lambda text: libcst.parse_module(text).code)


def timed(folder: Path, output: Path) -> tuple[Conversion, float]:
    """The conversion with one process, and its seconds (table loading included)."""
    started = cpu_seconds()
    # the folder alone: what its files use of installed packages is not part of the lines
    done = convert(Request(folder, output, jobs=1, wish=Wish(no_follow=("all",))))
    return done, cpu_seconds() - started


def comments(text: str) -> Counter[str]:
    """Every comment of a module, without trailing blanks."""
    found = tokenize.generate_tokens(io.StringIO(text).readline)
    return Counter(t.string.rstrip() for t in found if t.type == tokenize.COMMENT)


def texts_of(conversion: Conversion) -> dict[str, str]:
    """Python outputs that have new content, by path."""
    return {
        output.path: output.content.decode("utf-8")
        for output in conversion.outputs
        if output.content is not None and output.path.endswith(".py")
    }


def parses(text: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except (SyntaxError, ValueError):
            return False
    return True


def second_run(outputs: Mapping[str, str], scratch: Path) -> tuple[str, ...]:
    """Paths that a second conversion would change."""
    for name, text in outputs.items():
        path = scratch / "first" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))
    again, _ = timed(scratch / "first", scratch / "second")
    changed = [name for name, text in texts_of(again).items() if outputs.get(name) != text]
    return tuple(sorted(changed))


def check(before: Mapping[str, str], conversion: Conversion, scratch: Path) -> Promises:
    """Hold the conversion against its promises."""
    after = texts_of(conversion)
    lost = []
    total = 0
    for name, text in before.items():
        if name not in after or not parses(after[name]):
            continue
        wanted = comments(text)
        total += sum(wanted.values())
        missing = wanted - comments(after[name])
        lost += [f"{name}: {comment}" for comment in missing.elements()]
    good = {name: text for name, text in after.items() if parses(text)}
    return Promises(
        failed=tuple(f"{f.path}: {f.what}: {f.why}" for f in conversion.failures),
        unparsable=tuple(sorted(after.keys() - good.keys())),
        comments_lost=tuple(lost),
        second_run=second_run(good, scratch),
        comments=total,
    )


def show(speed: Speed, promises: Promises, conversion: Conversion) -> None:
    """Print what was found, broken promises with their first places."""
    ledger = conversion.record.ledger
    print(f"{speed.files} files, {speed.lines:,} lines, one core")
    print(f"  convert                {speed.convert:>10,.0f} lines/s")
    print(f"  floor: ast.parse       {speed.ast_parse:>10,.0f} lines/s")
    print(f"  floor: libcst          {speed.libcst_roundtrip:>10,.0f} lines/s")
    print(f"{ledger.total:,} torch references, {ledger.flagged:,} flagged")
    for title, found, of in (
        ("files that failed", promises.failed, speed.files),
        ("outputs that do not parse", promises.unparsable, speed.files),
        ("comments lost", promises.comments_lost, promises.comments),
        ("files that a second run changes", promises.second_run, speed.files),
    ):
        print(f"  {title}: {len(found)} of {of:,}")
        for line in found[:5]:
            print(f"    {line}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", help="default: the installed timm's models")
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    arguments = parser.parse_args()
    folder = (arguments.folder or default_folder()).resolve()
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        conversion, seconds = timed(folder, scratch / "timed")
        before = {
            file.source: (folder / file.source).read_text(encoding="utf-8")
            for file in conversion.record.files
            if file.source.endswith(".py") and file.status in ("converted", "failed")
        }
        promises = check(before, conversion, scratch)
    speed = Speed(
        lines=_lines(before),
        files=len(before),
        convert=_lines(before) / seconds,
        ast_parse=lines_per_second(before, ast.parse),
        libcst_roundtrip=libcst_floor(before),
    )
    show(speed, promises, conversion)
    if arguments.json:
        found = {"speed": asdict(speed), "promises": asdict(promises)}
        arguments.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 0 if promises.kept else 1


if __name__ == "__main__":
    sys.exit(main())
