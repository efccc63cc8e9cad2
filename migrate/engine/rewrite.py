"""In: an analysed program and the path of one file. Out: its new bytes, ledger and entries."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from migrate.analysis import index
from migrate.analysis.facts import Facts
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.recorded import Recorded
from migrate.codegen import helper_copy
from migrate.codegen.emitted import Emitted
from migrate.codegen.imports import Spelling
from migrate.codegen.rewriter import emit
from migrate.engine import accounts, caught, chosen_edits, flags, import_edits, plan, selfcheck
from migrate.engine.tidying import may_be_idle, rescued
from migrate.mapping.table import Table
from migrate.records.choices import Asked, Choice
from migrate.records.outcomes import Edit, Outcome, Piece, Refusal, Site, Span
from migrate.records.result import CellPlace, Entry, Ledger, OpenPlace, counted
from migrate.rules import registry
from migrate.rules.registry import Registry
from migrate.sites import census
from migrate.sites.references import Reference
from migrate.sites.scene import Scene
from migrate.syntax.deep import deeply
from migrate.syntax.source import Source
from migrate.training import staged as way_back
from migrate.training.restructure import restructure
from migrate.training.scalers import prepared
from migrate.training.staged import Staged, moved
from migrate.vendoring.follow import Followed


@dataclass(frozen=True)
class Options:
    """How to convert: target portable or mint; helpers inline or module (``helper_module`` is
    then the line up to the names: "from .torch_helpers import"). ``along`` is what stands before
    the name of a package that is converted along, in an import of this file: ".", "net.", "".
    ``rules``: ours and those of the user; ``choices``: what a person decided about places of this
    file; ``asks``: say what there is to decide."""

    target: str = "portable"
    helpers: str = "inline"
    helper_module: str = ""
    along: str = ""
    rules: Registry = field(default_factory=lambda: registry.ours())
    choices: tuple[Choice, ...] = ()
    asks: bool = False


@dataclass(frozen=True)
class Rewritten:
    """One converted file. ``weights`` are the keys of the class rows it used.

    ``raising``: the keys of the functions that hold a flag which raises. ``used``: the ids of the
    choices that were applied; ``asked``: what there is to decide, where that was asked for.
    """

    data: bytes
    entries: tuple[Entry, ...]
    ledger: Ledger
    helpers: frozenset[str]
    cells: tuple[CellPlace, ...]
    weights: frozenset[str]
    emitted: Emitted | None = None
    open: tuple[OpenPlace, ...] = ()
    raising: frozenset[str] = frozenset()
    used: frozenset[str] = frozenset()
    asked: tuple[Asked, ...] = ()


@dataclass(frozen=True)
class Analysed:
    """A program ready to be converted; ``staged`` are its files with training steps, by path.

    ``places``: how many places the census found in these files as they were written.
    """

    inference: Inference
    staged: Mapping[str, Staged]
    places: Mapping[str, int] = field(default_factory=dict)


def analyse(
    sources: Mapping[str, Source],
    table: Table,
    train_style: str = "cells",
    recorded: Recorded | None = None,
    followed: Followed | None = None,
    root: str = "",
) -> Analysed:
    """Index the files, restructure training steps, and walk what came of it.

    ``sources`` holds the files of packages in ``followed`` as well. ``root``: the name of the
    package whose folder is the root of the paths, if it is one.
    """
    recorded = recorded or Recorded()
    apart = prepared(sources)
    sources = {**sources, **{path: s.source for path, s in apart.items()}}
    inference = Inference(index.build(sources, followed, root), table, moved(recorded, apart))
    if not inference.has_torch:
        return Analysed(inference, {})
    deeply(inference.everything)
    written = inference.program.files
    staged = restructure(inference, train_style, apart)
    places: dict[str, int] = {}
    if staged:
        names = census.members(table)
        for path in staged:
            file = written[path]
            facts = Facts(file.source.tree, file.parents)
            places[path] = len(census.places(file, facts, names))
        renewed = {**sources, **{path: s.source for path, s in staged.items()}}
        program = index.build(renewed, followed, root, inference.program.files)
        if recorded.places:
            inference = Inference(program, table, moved(recorded, staged))
            deeply(inference.everything)
        else:
            deeply(lambda: inference.renew(program))
    return Analysed(inference, staged, places)


def convert(analysed: Analysed, path: str, options: Options) -> Rewritten:
    """Convert one file of the program."""
    staged = analysed.staged.get(path)
    made = deeply(lambda: _convert(analysed.inference, path, options, staged))
    return made if staged is None else _led_back(made, staged, analysed.places[path])


def _led_back(made: Rewritten, staged: Staged, places: int) -> Rewritten:
    """What is said of a restructured file names the places of the file as it was."""
    entries = way_back.entries(staged, made.entries, made.emitted)
    left = way_back.left_open(staged, made.open)
    others = min(made.ledger.others, places - len(left))
    counts = counted(entries).model_copy(
        update={"places": places, "others": others, "open": len(left)}
    )
    cells = way_back.cells(staged, made.cells)
    asked = tuple(
        replace(one, line=place[0], column=place[1])
        for one in made.asked
        if (place := staged.origin(one.line, one.column) or staged.below(one.line))
    )
    return replace(made, entries=entries, ledger=counts, cells=cells, open=left, asked=asked)


def planned(
    inference: Inference, path: str, options: Options
) -> tuple[Scene, list[Reference], plan.Plan | None]:
    """Decide one file: its references and the decisions, without a plan where nothing changes."""
    inference.file(path)
    bare = Scene(inference.program.files[path], inference, Spelling(frozenset()), options.target)
    references = plan.everything(bare) if inference.has_torch else []
    scene = replace(bare, spelling=_spelling(bare, references, options.along))
    if not inference.has_torch or not (references or _has_more(scene)):
        return scene, references, None
    return scene, references, plan.plan(scene, references, options.rules)


def _convert(inference: Inference, path: str, options: Options, staged: Staged | None) -> Rewritten:
    scene, references, made = planned(inference, path, options)
    if made is None:
        return _unchanged(scene)
    if staged is not None:
        made = replace(made, decisions=way_back.explained(staged, made.decisions))
    used: frozenset[str] = frozenset()
    if options.choices:
        chosen = chosen_edits.applied(scene, references, made, options.choices)
        made, references, used = chosen.plan, list(chosen.references), chosen.used
    changes, emitted, stopped = _checked(scene, references, made, options)
    references = [*references, *(reference for _, reference in stopped)]
    decisions = (*made.decisions, *(refusal for refusal, _ in stopped))
    made = replace(made, decisions=decisions, total=made.total + len(stopped))
    entries = accounts.entries(scene, references, made.decisions, emitted)
    taken = census.taken(scene, {id(reference.node) for reference in references})
    return Rewritten(
        data=scene.source.encode(emitted.data),
        entries=entries,
        ledger=counted(entries).model_copy(update={"total": made.total, **taken.counts}),
        helpers=_helpers(changes),
        cells=accounts.cells(scene, emitted),
        weights=accounts.weights(scene),
        emitted=emitted,
        open=taken.left_open(scene.source),
        raising=flags.raising(scene, _refused(references, made)),
        used=used,
        asked=(
            chosen_edits.asked(scene, references, made.decisions, emitted) if options.asks else ()
        ),
    )


def _refused(references: Sequence[Reference], made: plan.Plan) -> list[tuple[Refusal, Reference]]:
    pairs = zip(made.decisions, references, strict=True)
    return [(decision, reference) for decision, reference in pairs if isinstance(decision, Refusal)]


def _unchanged(scene: Scene) -> Rewritten:
    source = scene.source
    data = source.encode(source.data)
    if not scene.inference.has_torch:
        return Rewritten(data, (), Ledger(), frozenset(), (), frozenset())
    taken = census.taken(scene, ())
    left = taken.left_open(source)
    counts = Ledger(**taken.counts)
    return Rewritten(data, (), counts, frozenset(), (), frozenset(), open=left)


def _has_more(scene: Scene) -> bool:
    """Return whether a file without references has Modules, names of torch from another file, or
    handlers that may swallow a flag."""
    modules = any(scene.is_module_class(c) for c in scene.file.classes.values())
    return modules or bool(import_edits.reexported(scene)) or caught.concerns(scene)


def _spelling(scene: Scene, references: Sequence[Reference], along: str) -> Spelling:
    """The names a file binds, torch's own imports apart, and those it has by their own name."""
    going = {id(r.node) for r in references if isinstance(r.node, ast.alias)}
    taken = set(scene.file.names)
    direct = set()
    for node in scene.file.imports:
        for alias in node.names:
            if id(alias) not in going:
                taken.add((alias.asname or alias.name).partition(".")[0])
            elif alias.name in ("Tensor", "Parameter") and not alias.asname:
                direct.add(f"mindspore.{alias.name}")
    direct = {d for d in direct if d.rpartition(".")[2] not in taken}
    names = scene.inference.program.followed.names.values()
    return Spelling(frozenset(taken), frozenset(direct), dict.fromkeys(names, along))


_ROUNDS = 12  # a statement, then what holds it, up to the file


def _checked(
    scene: Scene, references: Sequence[Reference], made: plan.Plan, options: Options
) -> tuple[list[Edit], Emitted, list[selfcheck.Stopped]]:
    """The edits and the new text; statements at which the text would be wrong are flagged."""
    stopped = [*selfcheck.whole(scene, made.failed), *made.stopped]
    for _ in range(_ROUNDS):
        changes = _changes(scene, references, made, options, stopped)
        emitted, applied = _emit(scene, changes)
        faults = selfcheck.faults(scene, applied, emitted)
        if not faults:
            return changes, emitted, stopped
        stopped += selfcheck.refused(scene, faults, [reference for _, reference in stopped])
    raise RuntimeError(f"{scene.file.path}: {faults[0].what}")


# -- all edits --------------------------------------------------------------------------------


def _changes(
    scene: Scene,
    references: Sequence[Reference],
    made: plan.Plan,
    options: Options,
    stopped: Sequence[selfcheck.Stopped],
) -> list[Edit]:
    refused = [*_refused(references, made), *stopped]
    pairs = list(zip(made.decisions, references, strict=True))
    edits = [(d, r) for d, r in pairs if isinstance(d, Edit) and d.parts is not None]
    decided = [d for d, r in edits if not isinstance(r.node, ast.alias)]
    changes = [edit for one in (*decided, *made.extra) for edit in one.each()]
    flagged = list(flags.edits(scene, refused))
    raising = [e for e in flagged if not isinstance(e, flags.Binding)]
    bindings = {id(r.node): d for d, r in edits if isinstance(r.node, ast.alias)}
    bindings |= {id(e.alias): e for e in flagged if isinstance(e, flags.Binding)}
    instead = [e for e in raising if not isinstance(e, flags.Guard)]
    changes = _without_raised(scene, changes, instead) + raising
    texts = {alias: _plain(edit) for alias, edit in bindings.items()}
    needing = [*changes, *bindings.values()]
    needed = import_edits.helpers_at(scene, bindings)
    stops = [e for e in raising if isinstance(e, flags.Stop)]
    imports = _imports(scene, references, needing, texts, options, needed)
    added = [e for e in imports if e.site.span.start == e.site.span.end]  # between statements
    others = [e for e in imports if e.site.span.start < e.site.span.end]
    return [*added, *_without_raised(scene, others, stops), *changes]


def _plain(edit: Edit) -> str:
    return "".join(str(p) for p in edit.parts or ())


def _without_raised(scene: Scene, changes: list[Edit], flagged: Sequence[Edit]) -> list[Edit]:
    """Edits inside a statement that raises instead are gone with it, and so is its removal."""
    raised = [e.site.span for e in flagged if e.site.span.end > e.site.span.start]
    data = scene.source.data
    kept = []
    for change in changes:
        own = change.site.span
        for span in raised:
            inside = span.start <= own.start and (own.end <= span.end or own.start < span.end)
            around = own.start <= span.start < own.end and not data[own.start : span.start].strip()
            whole = not data[span.end : own.end].strip()
            if inside or (around and whole and not _keeps(change)):
                break
        else:
            kept.append(change)
    return kept


def _keeps(change: Edit) -> bool:
    return any(isinstance(part, Piece) for part in change.parts or ())


def _imports(
    scene: Scene,
    references: Sequence[Reference],
    changes: Sequence[Edit],
    bindings: dict[int, str],
    options: Options,
    needed: int,
) -> list[Edit]:
    """The import statements, and the helpers the new text uses, ``needed`` from an offset on."""
    needs = {n for e in changes for n in e.needs}
    helpers = sorted(n for n in needs if n.startswith("helpers."))
    roots = {n for n in needs if not n.startswith("helpers.")}
    inline = ""
    lines: list[str] = []
    if helpers and options.helpers == "module":
        lines.append(f"{options.helper_module} {', '.join(_helper_names(scene, helpers))}")
    elif helpers:
        inline, more = _inline(scene, helpers, frozenset(roots))
        roots |= more
    block = "\n".join(scene.spelling.lines(roots) + lines)
    limit = needed if helpers and (inline or needed < import_edits.leading_end(scene)) else None
    found = import_edits.edits(scene, references, bindings, block, limit)
    start = Site("imports", Span(0, 0), 1, 1)
    found.append(Edit(start, Outcome.KEPT, None, needs=frozenset(needs)))
    if inline:
        found.append(_helper_block(scene, inline, needed))
    return found


def _helper_names(scene: Scene, helpers: Sequence[str]) -> list[str]:
    found = []
    for helper in helpers:
        own = helper.partition(".")[2]
        local = scene.spelling.helper(helper)
        found.append(own if local == own else f"{own} as {local}")
    return found


def _inline(
    scene: Scene, helpers: Sequence[str], roots: frozenset[str]
) -> tuple[str, frozenset[str]]:
    """Return the text of the helpers and the import roots that it needs.

    The helpers have other names where the file, or one of its import ``roots``, uses theirs.
    """
    rename = {}
    wanted = helper_copy.imported(helpers)
    own = import_edits.leading(scene)
    present = frozenset(root for name, root in wanted.items() if own.get(name) == root)
    spelled = {scene.spelling.alias(root): root for root in roots if root}
    instead = {}
    for name in helper_copy.bound(helpers):
        module = wanted.get(name, ".")
        if module in present:
            continue
        if name in _SHARED:
            root = {"ms": "mindspore"}.get(name, f"mindspore.{name}")
            usual, instead[root] = scene.spelling.local(root)
        elif "." in module:
            usual = scene.spelling.helper(f"helpers.{name}")
            if usual in spelled and spelled[usual] != module:
                usual = scene.spelling.free(f"{name}_of_ms", spelled)
        else:
            usual = scene.spelling.local(module)[0]
        if usual != name:
            rename[name] = usual
    text, more = helper_copy.inline(helpers, rename, present)
    return text, frozenset(instead.get(root, root) for root in more)


_SHARED = ("ms", "nn", "ops", "mint", "amp", "dataset", "numpy", "Tensor", "Parameter")


def _helper_block(scene: Scene, text: str, place: int) -> Edit:
    source = scene.source
    body = text.rstrip("\n").replace("\n", source.newline)
    rest = source.data[place:]
    blank = rest[: len(rest) - len(rest.lstrip())].count(b"\n") if rest.strip() else 2
    after = source.newline * (1 + max(0, 2 - blank))
    block = f"{source.newline}{source.newline}{body}{after}"
    site = source.site_at("helpers", Span(place, place))
    return Edit(site, Outcome.HELPER, (block,))


def _helpers(changes: Sequence[Edit]) -> frozenset[str]:
    return frozenset(n for e in changes for n in e.needs if n.startswith("helpers."))


# -- text -------------------------------------------------------------------------------------


def _emit(scene: Scene, changes: list[Edit]) -> tuple[Emitted, list[Edit]]:
    """Apply the edits; comments inside replaced text move above their statement."""
    idle = may_be_idle(scene)
    emitted = emit(scene.source, changes, idle)
    shown = [e.site.span for e in changes if isinstance(e, flags.Stop)]
    lost = rescued(scene, emitted.lost, changes, shown)
    return (emit(scene.source, changes + lost, idle) if lost else emitted), changes
