"""In: a file or folder and the options of convert. Out: record and outputs, nothing written yet."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from migrate.codegen import helper_copy
from migrate.engine import caught, chosen_edits, rewrite
from migrate.engine.rewrite import Analysed, Options, Rewritten
from migrate.mapping import table, table_lint
from migrate.records.choices import Choice
from migrate.records.outcomes import Problem, last_place
from migrate.records.result import Asked, Entry
from migrate.rules import own_rules
from migrate.rules.registry import Registry
from migrate.syntax.deep import uncollected
from migrate.syntax.source import Source, read
from migrate.vendoring.follow import Followed, follow
from migrate.workspace import parallel
from migrate.workspace.assembly import Parts, assemble
from migrate.workspace.conversion import Conversion
from migrate.workspace.jinja import Template
from migrate.workspace.notebook import Notebook
from migrate.workspace.placement import Placement, place
from migrate.workspace.request import Request, inputs
from migrate.workspace.tree import Failure, Inputs, Tree, read_all

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class ConvertedText:
    """The conversion of one piece of source; ``entries`` say what became of each reference."""

    text: str
    entries: tuple[Entry, ...]
    helpers: frozenset[str]


def convert_text(
    text: str,
    table: table.Table | None = None,
    train_style: str = "cells",
    rules: Registry | None = None,
) -> ConvertedText:
    """Convert the source of one module, helpers inline. Raises Unreadable when it is not Python."""
    source = read("module.py", text.encode("utf-8"))
    built = rewrite.analyse({source.path: source}, table or load(())[0], train_style)
    options = Options(rules=rules) if rules is not None else Options()
    made = rewrite.convert(built, source.path, options)
    return ConvertedText(made.data.decode("utf-8"), made.entries, made.helpers)


@dataclass(frozen=True)
class Opened:
    """A project that was read and analysed; its files are converted as often as is asked."""

    request: Request
    tree: Tree
    found: Inputs
    sources: Mapping[str, Source]
    placement: Placement
    followed: Followed
    built: Analysed
    rows: table.Table
    rules: Registry

    def one(self, path: str, asks: bool = False) -> Rewritten | Failure:
        """Convert one file; ``asks``: say what there is to decide as well."""
        line = self.placement.imports.get(path, "")
        style = "module" if line else "inline"
        chosen = tuple(choice for choice in self.request.choices if choice.file == path)
        options = Options(
            self.request.target, style, line, self.placement.before(path), self.rules, chosen, asks
        )
        return _convert_one(self.built, path, options, self.found.notebooks.get(path))

    def with_choices(self, choices: tuple[Choice, ...]) -> Opened:
        """Return the same with other choices; those of receivers count where it is opened."""
        return replace(self, request=replace(self.request, choices=choices))


@uncollected()
def convert(request: Request, progress: Progress = lambda done, total: None) -> Conversion:
    """Decide the conversion of a file or folder.

    Raises:
        Problem: the input is missing, unreadable, or holds no Python; the output lies inside it.
    """
    return converted(opened(request), progress)


def opened(request: Request) -> Opened:
    """Read and analyse a file or folder. Raises Problem, as ``convert`` does."""
    tree = inputs(request)
    found = read_all(tree)
    sources = found.sources
    if not request.source.is_dir() and found.failures:
        lost = found.failures[0]
        raise Problem(lost.where, lost.what, lost.why, lost.next_step)
    rows, rules = load(request.mappings, request.target)
    placement = _place(request, tree, found)
    followed = follow(sources, rows, request.wish, placement.home, _root(request, sources))
    if followed.sources:
        placement = _place_along(request, tree, found, followed)
        sources = {**sources, **followed.sources}
    built = _build(sources, rows, request, followed)
    return Opened(request, tree, found, sources, placement, followed, built, rows, rules)


def converted(project: Opened, progress: Progress = lambda done, total: None) -> Conversion:
    """Convert all files of a project."""
    request, sources, found = project.request, project.sources, project.found
    paths = [p for p in sources if not helper_copy.is_ours(sources[p].data)]
    sizes = {path: len(sources[path].data) for path in paths}
    done = parallel.each(project.one, sizes, request.jobs, progress)
    raising = {p: r.raising for p, r in done.items() if isinstance(r, Rewritten)}
    again = caught.again(project.built.inference, raising)
    done |= parallel.each(project.one, {p: sizes[p] for p in again}, request.jobs, _unseen)
    failed = [_as_failure(p, r) for p, r in done.items() if not isinstance(r, Rewritten)]
    made = {path: result for path, result in done.items() if isinstance(result, Rewritten)}
    parts = Parts(
        source=request.source,
        output=request.output,
        target=request.target,
        tree=project.tree,
        inputs=found,
        made=made,
        failures=(*found.failures, *failed),
        module=project.placement.module,
        users=frozenset(project.placement.imports.keys() & made.keys()),
        followed=project.followed,
        settings=_settings(request),
    )
    used = frozenset().union(*(result.used for result in made.values()))
    left = (choice for choice in request.choices if choice.form != "receiver")
    unused = tuple(choice for choice in left if choice.id not in used)
    return replace(assemble(parts, project.rows), unused=unused)


def _settings(request: Request) -> Asked:
    """Return what has to be asked for to convert alike."""
    wish, here = request.wish, request.source.is_dir()
    return Asked(
        helpers=request.helpers, train_style=request.train_style, follow=wish.follow,
        exclude=request.exclude if here else (), no_follow=wish.no_follow,
        mappings=tuple(str(path.resolve()) for path in request.mappings),
        follow_path=tuple(str(path.resolve()) for path in wish.paths),
    )  # fmt: skip


def _unseen(done: int, total: int) -> None:
    """Show no progress: these files are converted once more, with what is known by then."""


def _as_failure(path: str, result: Failure | parallel.Died) -> Failure:
    return result if isinstance(result, Failure) else _died(path, str(result))


def load(own: tuple[Path, ...], target: str = "portable") -> tuple[table.Table, Registry]:
    """Read our rows and rules, and those in files of the user: ``*.py`` are rules."""
    try:
        loaded = table.load(own, target=target)
    except table.TableError as error:
        where, _, why = str(error).partition(": ")
        raise Problem(where, "mappings cannot be read", why, "correct that file") from error
    for wrong in table_lint.broken(loaded, loaded.user_files):
        where = f"{wrong.file}: {wrong.key}"
        raise Problem(where, wrong.what, wrong.why, wrong.next_step)
    rules, loaded = own_rules.loaded((path for path in own if path.suffix == ".py"), loaded)
    return loaded, rules


def _place(request: Request, tree: Tree, found: Inputs) -> Placement:
    # A notebook runs in its own folder, and cannot import relatively.
    sources = {path: s for path, s in found.sources.items() if path not in found.notebooks}
    style = request.helpers or ("" if request.source.is_dir() else "inline")
    ours = {path for path, source in sources.items() if helper_copy.is_ours(source.data)}
    foreign = {file.path for file in tree.files} - ours
    found_place = place(sources, style, foreign, _root(request, sources))
    books = [path for path, book in found.notebooks.items() if isinstance(book, Notebook)]
    return found_place.with_notebooks(books)


def _root(request: Request, sources: Mapping[str, Source]) -> str:
    """The name of the package that the folder itself is: its files may import it by that."""
    name = request.source.resolve().name
    return name if "__init__.py" in sources and name.isidentifier() else ""


def _place_along(request: Request, tree: Tree, found: Inputs, followed: Followed) -> Placement:
    """Packages that are converted along share the helpers: a class of them is one class."""
    style = request.helpers or ("" if request.source.is_dir() else "module")
    return _place(replace(request, helpers=style), tree, found).with_along(followed.sources)


def _build(
    sources: Mapping[str, Source], rows: table.Table, request: Request, followed: Followed
) -> Analysed:
    try:
        root = _root(request, sources)
        recorded = chosen_edits.told(request.recorded, sources, request.choices)
        return rewrite.analyse(sources, rows, request.train_style, recorded, followed, root)
    except Exception as error:
        raise Problem(
            "torch2ms", "internal error", last_place(error),
            "please report it with the files, or leave out the cause with --exclude", status=3,
        ) from error  # fmt: skip


def _convert_one(
    built: Analysed, path: str, options: Options, notebook: Notebook | Template | None
) -> Rewritten | Failure:
    try:
        made = rewrite.convert(built, path, options)
        ast.parse(made.data)
        helper_copy.closure(made.helpers)
        if notebook:
            notebook.put_back(made.data)
    except Exception as error:
        return _died(path, last_place(error))
    return made


def _died(path: str, why: str) -> Failure:
    step = "it has no output; please report it with this file"
    return Failure(path, path, "internal error of torch2ms", why, step, internal=True)
