"""In: a Python file or a folder. Out: what its conversion breaks of what convert promises."""

from __future__ import annotations

import ast
import hashlib
import io
import itertools
import os
import tempfile
import time
import tokenize
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from migrate.engine import rewrite
from migrate.engine.rewrite import Options, Rewritten
from migrate.mapping import table
from migrate.records.result import Entry, Ledger
from migrate.syntax.deep import uncollected
from migrate.syntax.source import Source, Unreadable, read
from migrate.workspace.assembly import Conversion
from migrate.workspace.project import Request, convert

PER_FILE = 10.0  # seconds of processor time that one file may take


@dataclass(frozen=True)
class Finding:
    """What one conversion showed; ``broken`` names every promise it broke, by cause."""

    path: str
    broken: tuple[str, ...] = ()
    digest: str = ""
    files: int = 1
    lines: int = 0
    references: int = 0
    flagged: int = 0
    unreadable: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    slowest_path: str = ""


@cache
def rows() -> table.Table:
    return table.load(())


@uncollected()
def once(path: Path) -> Finding:
    """Convert one file and look at nothing but what came out."""
    rows()
    try:
        made = _converted(read(path.name, path.read_bytes()))
    except Exception:  # told by the run that checks
        return Finding(str(path))
    return Finding(str(path), digest=_digest(made))


@uncollected()
def alone(path: Path) -> Finding:
    """Convert one file as a program of its own, twice."""
    rows()
    try:
        source = read(path.name, path.read_bytes())
    except Unreadable:
        return Finding(str(path), unreadable=1)
    started = time.process_time()
    try:
        made = _converted(source)
    except Exception as error:
        return Finding(str(path), (f"crash: {place(error)}",))
    seconds = time.process_time() - started
    broken = [*_of_text(source, made.data, made.ledger, made.entries)]
    broken += [f"over {PER_FILE:g} s"] if seconds > PER_FILE else []
    broken += [cause for cause in [_again(path.name, made.data)] if cause and not broken]
    return Finding(
        str(path),
        tuple(broken),
        _digest(made),
        lines=source.data.count(b"\n"),
        references=made.ledger.total,
        flagged=made.ledger.flagged,
        seconds=seconds,
        slowest=round(seconds, 2),
    )


def _digest(made: Rewritten) -> str:
    return hashlib.sha256(made.data + repr(made.entries).encode()).hexdigest()


def _converted(source: Source) -> Rewritten:
    built = rewrite.analyse({source.path: source}, rows())
    return rewrite.convert(built, source.path, Options("portable", "inline", ""))


def _of_text(
    source: Source, data: bytes, ledger: Ledger, entries: tuple[Entry, ...]
) -> Iterator[str]:
    """What the new text of a file breaks, and its accounts."""
    counts = Counter(entry.outcome.name.lower() for entry in entries)
    parts = {name: getattr(ledger, name) for name in Ledger.model_fields if name != "total"}
    if not ledger.adds_up or {k: v for k, v in parts.items() if v} != counts:
        yield "the ledger does not add up"
    if not ledger.total and data != source.encode(source.data) and b"Module" not in source.data:
        yield "a file without references was changed"
    tree = parsed(data)
    if tree is None:
        yield "the output does not parse"
        return
    if any(_of_torch(node) for node in ast.walk(tree)):
        yield "the output imports torch"
    # counted in full: a branch for torch.jit alone, or an import for types, goes with its comments
    if comments(source.data) - comments(data):
        yield "a comment is lost"


def _of_torch(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name.split(".")[0] == "torch" for alias in node.names)
    return isinstance(node, ast.ImportFrom) and (
        not node.level and (node.module or "").split(".")[0] == "torch"
    )


def _again(name: str, data: bytes) -> str:
    """What is wrong with a second conversion, "" when it changes nothing."""
    try:
        twice = _converted(read(name, data)).data
    except Unreadable:
        return "the output does not parse"
    except Exception as error:
        return f"crash on the output: {place(error)}"
    return "" if twice == data else "a second conversion changes the output"


def parsed(data: bytes) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(data)
        except (SyntaxError, ValueError):
            return None


def comments(data: bytes) -> Counter[str]:
    """Every comment of a module, without trailing blanks."""
    try:
        found = list(tokenize.tokenize(io.BytesIO(data).readline))
    except (tokenize.TokenError, SyntaxError):
        return Counter()
    return Counter(t.string.rstrip() for t in found if t.type == tokenize.COMMENT)


def place(error: BaseException) -> str:
    """The kind of an exception and where in this tool it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}{where}"


# -- whole folders ---------------------------------------------------------------------------


def whole(folder: Path) -> Finding:
    """Convert a folder in one go, and its output once more, every time in one process."""
    marks: list[float] = []
    started = time.process_time()
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        output = scratch / "once"
        try:
            done = convert(
                Request(folder, output, jobs=1), lambda *_: marks.append(time.process_time())
            )
        except Exception as error:
            return Finding(str(folder), (f"crash: {place(error)}",))
        seconds = time.process_time() - started
        broken = set(_of_folder(folder, done))
        broken |= set(_folder_again(done, scratch))
    steps = [b - a for a, b in itertools.pairwise(marks)]
    slowest = max(steps, default=0.0)
    broken |= {f"a file over {PER_FILE:g} s"} if slowest > PER_FILE else set()
    ledger, texts = done.record.ledger, _texts(done)
    unreadable = sum(not failure.internal for failure in done.failures)
    return Finding(
        str(folder),
        tuple(sorted(broken)),
        hashlib.sha256(repr(sorted(texts.items())).encode()).hexdigest(),
        files=len(done.originals),
        lines=sum(data.count(b"\n") for data in done.originals.values()),
        references=ledger.total,
        flagged=ledger.flagged,
        unreadable=unreadable,
        seconds=seconds,
        slowest=round(slowest, 2),
        slowest_path=f"{folder.name}/{list(done.originals)[steps.index(slowest) + 1]}"
        if steps
        else "",
    )


def _texts(done: Conversion) -> dict[str, bytes]:
    return {
        output.path: output.content
        for output in done.outputs
        if output.content is not None and output.path.endswith(".py")
    }


def _of_folder(folder: Path, done: Conversion) -> Iterator[str]:
    for failure in done.failures:
        if failure.internal:
            yield f"crash: {failure.why} in {failure.path}"
    texts = _texts(done)
    for file in done.record.files:
        if file.source in done.originals and file.source.endswith(".py"):
            source = read(file.source, done.originals[file.source])
            data = texts.get(file.output, done.originals[file.source])
            for cause in _of_text(source, data, file.ledger, file.entries):
                yield f"{cause}: {file.source}"


def _folder_again(done: Conversion, scratch: Path) -> Iterator[str]:
    """The files that a second conversion of the whole output would change."""
    texts = _written(done, scratch / "once")
    if not texts:
        return
    try:
        twice = _texts(convert(Request(scratch / "once", scratch / "twice", jobs=1)))
    except Exception as error:
        yield f"crash on the output: {place(error)}"
        return
    for name, text in twice.items():
        if texts.get(name, text) != text:
            yield f"a second conversion changes the output: {name}"


def _written(done: Conversion, folder: Path) -> Mapping[str, bytes]:
    """The Python outputs, put on disk."""
    texts = {**{o.path: o.source.read_bytes() for o in done.outputs
                if o.source is not None and o.path.endswith(".py")}, **_texts(done)}  # fmt: skip
    for name, text in texts.items():
        target = folder / name
        os.makedirs(target.parent, exist_ok=True)
        target.write_bytes(text)
    return texts
