"""In: a file or folder and the options of convert. Out: record and outputs, nothing written yet."""

from __future__ import annotations

import ast
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from migrate import helper_copy, parallel, rewrite, table
from migrate.assembly import Conversion, Failure, Parts, assemble
from migrate.errors import Problem
from migrate.placement import Placement, place
from migrate.receivers.inference import Inference
from migrate.result import Entry
from migrate.rewrite import Options, Rewritten
from migrate.source import Source, Unreadable, read
from migrate.tree import Found, Tree, walk

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Request:
    """What to convert and how. ``helpers``: "inline", "module" or "" (inline for a single file).

    ``jobs`` 0: as many processes as the machine and the number of files make useful.
    """

    source: Path
    output: Path
    target: Literal["portable", "mint"] = "portable"
    helpers: str = ""
    exclude: tuple[str, ...] = ()
    jobs: int = 0
    mappings: tuple[Path, ...] = ()


@dataclass(frozen=True)
class ConvertedText:
    """The conversion of one piece of source; ``entries`` say what became of each reference."""

    text: str
    entries: tuple[Entry, ...]
    helpers: frozenset[str]


def convert_text(text: str, table: table.Table | None = None) -> ConvertedText:
    """Convert the source of one module, helpers inline. Raises Unreadable when it is not Python."""
    source = read("module.py", text.encode("utf-8"))
    built = rewrite.analyse({source.path: source}, table or _load(()))
    made = rewrite.convert(built, source.path, Options("portable", "inline", ""))
    return ConvertedText(made.data.decode("utf-8"), made.entries, made.helpers)


def convert(request: Request, progress: Progress = lambda done, total: None) -> Conversion:
    """Decide the conversion of a file or folder.

    Raises:
        Problem: the input is missing, unreadable, or holds no Python; the output lies inside it.
    """
    tree = _inputs(request)
    raw, sources, failures = _read_all(tree)
    if not request.source.is_dir() and failures:
        lost = failures[0]
        raise Problem(lost.where, lost.what, lost.why, lost.next_step)
    placement = _place(request, tree, sources)
    rows = _load(request.mappings)
    built = _build(sources, rows)

    def convert_one(path: str) -> Rewritten | Failure:
        return _convert_one(built, path, request.target, placement)

    paths = [p for p in sources if not helper_copy.is_ours(sources[p].data)]
    sizes = {path: len(sources[path].data) for path in paths}
    done = parallel.each(convert_one, sizes, request.jobs, progress)
    failures += [_as_failure(p, r) for p, r in done.items() if not isinstance(r, Rewritten)]
    made = {path: result for path, result in done.items() if isinstance(result, Rewritten)}
    parts = Parts(
        source=request.source,
        output=request.output,
        target=request.target,
        tree=tree,
        sources=sources,
        raw=raw,
        made=made,
        failures=tuple(failures),
        module=placement.module,
        users=frozenset(placement.imports.keys() & made.keys()),
    )
    return assemble(parts, rows)


def _as_failure(path: str, result: Failure | parallel.Died) -> Failure:
    return result if isinstance(result, Failure) else _died(path, str(result))


def _load(mappings: tuple[Path, ...]) -> table.Table:
    try:
        return table.load(mappings)
    except table.TableError as error:
        where, _, why = str(error).partition(": ")
        raise Problem(where, "mappings cannot be read", why, "correct that file") from error


def _inputs(request: Request) -> Tree:
    source, output = request.source, request.output
    if not source.exists():
        raise Problem(str(source), "not found", "there is no such file or folder", "check the path")
    if source.is_dir():
        return _folder(request)
    if source.suffix not in (".py", ".pyw"):
        raise Problem(
            str(source), "not a Python file", "convert takes .py files and folders",
            "give a .py file or the folder of the project",
        )  # fmt: skip
    if output.is_file() and output.suffix != ".py":
        raise Problem(
            str(output), "not a folder", "OUT is a folder, or a file that ends in .py",
            "choose another output with -o",
        )  # fmt: skip
    found = Found(source.name, "python", source.stat().st_size)
    return Tree(source.parent, (found,), ())


def _folder(request: Request) -> Tree:
    source, output = request.source.resolve(), request.output.resolve()
    if output == source or source in output.parents:
        raise Problem(
            str(request.output), "lies inside the input", "the output would be converted again",
            f"choose a folder outside {request.source} with -o",
        )  # fmt: skip
    if output.exists() and not output.is_dir():
        raise Problem(
            str(request.output), "not a folder", f"{request.source} is one",
            "choose another output with -o",
        )  # fmt: skip
    tree = walk(request.source, request.exclude)
    if not tree.of_kind("python"):
        left_out = f" ({len(tree.skipped)} files and folders were left out)" if tree.skipped else ""
        raise Problem(
            str(request.source), "no Python files", f"nothing to convert in it{left_out}",
            "check the path; --exclude '!PATTERN' takes back in what .gitignore names",
        )  # fmt: skip
    return tree


def _read_all(tree: Tree) -> tuple[dict[str, bytes], dict[str, Source], list[Failure]]:
    """(bytes, parsed source) of every Python file that can be read; what cannot be read."""
    raw: dict[str, bytes] = {}
    sources: dict[str, Source] = {}
    failures: list[Failure] = []
    for found in tree.files:
        path = found.path
        try:
            if found.kind == "python":
                raw[path] = (tree.root / path).read_bytes()
                sources[path] = read(path, raw[path])
            elif found.kind != "link":
                (tree.root / path).open("rb").close()
        except Unreadable as error:
            failures.append(Failure(path, error.where, error.what, error.why, error.next_step))
        except OSError as error:
            why = error.strerror or str(error)
            failures.append(Failure(path, path, "cannot be read", why, "check its permissions"))
    return raw, sources, failures


def _place(request: Request, tree: Tree, sources: Mapping[str, Source]) -> Placement:
    style = request.helpers or ("" if request.source.is_dir() else "inline")
    ours = {path for path, source in sources.items() if helper_copy.is_ours(source.data)}
    return place(sources, style, {file.path for file in tree.files} - ours)


def _build(sources: Mapping[str, Source], rows: table.Table) -> Inference:
    try:
        return rewrite.analyse(sources, rows)
    except Exception as error:
        raise Problem(
            "torch2ms", "internal error", last_place(error),
            "please report it with the files, or leave out the cause with --exclude", status=3,
        ) from error  # fmt: skip


def _convert_one(
    built: Inference, path: str, target: Literal["portable", "mint"], placement: Placement
) -> Rewritten | Failure:
    line = placement.imports.get(path, "")
    options = Options(target, "module" if line else "inline", line)
    try:
        made = rewrite.convert(built, path, options)
        ast.parse(made.data)
        helper_copy.closure(made.helpers)
    except Exception as error:
        return _died(path, last_place(error))
    return made


def _died(path: str, why: str) -> Failure:
    step = "it has no output; please report it with this file"
    return Failure(path, path, "internal error of torch2ms", why, step, internal=True)


def last_place(error: BaseException) -> str:
    """An exception as one line, with the place in this tool where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"
