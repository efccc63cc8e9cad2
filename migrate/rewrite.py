"""In: an analysed program and the path of one file. Out: its new bytes, ledger and entries."""

from __future__ import annotations

import ast
import tokenize
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from migrate import flags, helper_copy, import_edits, plan, program
from migrate.deep import deeply
from migrate.emit import Emitted, covered, emit
from migrate.imports import Spelling
from migrate.layout import above
from migrate.outcomes import Edit, Outcome, Piece, Refusal, Removal, Site, Span
from migrate.receivers.inference import Inference
from migrate.result import CellPlace, Entry, Ledger
from migrate.scene import Scene
from migrate.sites import Form, Reference, find
from migrate.source import Source
from migrate.table import Table


@dataclass(frozen=True)
class Options:
    """How to convert: target portable or mint; helpers inline or module (``helper_module`` is
    then the line up to the names: "from .torch_helpers import")."""

    target: str = "portable"
    helpers: str = "inline"
    helper_module: str = ""


@dataclass(frozen=True)
class Rewritten:
    """One converted file. ``weights`` are the keys of the class rows it used."""

    data: bytes
    entries: tuple[Entry, ...]
    ledger: Ledger
    helpers: frozenset[str]
    cells: tuple[CellPlace, ...]
    weights: frozenset[str]


def analyse(sources: Mapping[str, Source], table: Table) -> Inference:
    """Index the files and prepare the analysis; each function is walked when first needed."""
    inference = Inference(program.build(sources), table)
    if inference.has_torch:
        deeply(inference.everything)
    return inference


def convert(inference: Inference, path: str, options: Options) -> Rewritten:
    """Convert one file of the program."""
    return deeply(lambda: _convert(inference, path, options))


def _convert(inference: Inference, path: str, options: Options) -> Rewritten:
    file = inference.program.files[path]
    inference.file(path)
    bare = Scene(file, inference, Spelling(frozenset()), options.target)
    references = find(bare) if inference.has_torch else []
    scene = replace(bare, spelling=_spelling(bare, references))
    if not inference.has_torch or (not references and not _has_module_classes(scene)):
        return _unchanged(scene)
    made = plan.plan(scene, references)
    changes = _changes(scene, references, made, options)
    emitted = _emit(scene, changes)
    return Rewritten(
        data=file.source.encode(emitted.data),
        entries=_entries(scene, references, made.decisions, emitted),
        ledger=_ledger(made),
        helpers=_helpers(changes),
        cells=_cells(scene, emitted),
        weights=_weights(scene),
    )


def _unchanged(scene: Scene) -> Rewritten:
    source = scene.source
    return Rewritten(source.encode(source.data), (), Ledger(), frozenset(), (), frozenset())


def _has_module_classes(scene: Scene) -> bool:
    return any(scene.is_module_class(c) for c in scene.file.classes.values())


def _spelling(scene: Scene, references: Sequence[Reference]) -> Spelling:
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
    return Spelling(frozenset(taken), frozenset(direct))


# -- all edits --------------------------------------------------------------------------------


def _changes(
    scene: Scene, references: Sequence[Reference], made: plan.Plan, options: Options
) -> list[Edit]:
    refused = [
        (decision, reference.node)
        for decision, reference in zip(made.decisions, references, strict=True)
        if isinstance(decision, Refusal)
    ]
    pairs = list(zip(made.decisions, references, strict=True))
    edits = [(d, r) for d, r in pairs if isinstance(d, Edit) and d.parts is not None]
    changes = [d for d, r in edits if r.form is not Form.IMPORT] + list(made.extra)
    flagged = list(flags.edits(scene, refused))
    raising = [e for e in flagged if not isinstance(e, flags.Binding)]
    bindings = {id(r.node): d for d, r in edits if r.form is Form.IMPORT}
    bindings |= {id(e.alias): e for e in flagged if isinstance(e, flags.Binding)}
    changes = _without_raised(changes, raising) + raising
    lines = {alias: _plain(edit) for alias, edit in bindings.items()}
    needing = [*changes, *bindings.values()]
    return changes + _imports(scene, references, needing, lines, options)


def _plain(edit: Edit) -> str:
    return "".join(str(p) for p in edit.parts or ())


def _without_raised(changes: list[Edit], flagged: Sequence[Edit]) -> list[Edit]:
    """Edits inside a statement that raises instead are gone with it."""
    spans = [e.site.span for e in flagged if e.site.span.end > e.site.span.start]
    return [
        c for c in changes
        if not any(s.start <= c.site.span.start and c.site.span.end <= s.end for s in spans)
    ]  # fmt: skip


def _imports(
    scene: Scene,
    references: Sequence[Reference],
    changes: Sequence[Edit],
    bindings: dict[int, str],
    options: Options,
) -> list[Edit]:
    """The import statements, and the helpers the new text uses."""
    needs = {n for e in changes for n in e.needs}
    helpers = sorted(n for n in needs if n.startswith("helpers."))
    roots = {n for n in needs if not n.startswith("helpers.")}
    inline = ""
    lines: list[str] = []
    if helpers and options.helpers == "module":
        lines.append(f"{options.helper_module} {', '.join(_helper_names(scene, helpers))}")
    elif helpers:
        inline, more = _inline(scene, helpers)
        roots |= more
    block = "\n".join(scene.spelling.lines(roots) + lines)
    found = import_edits.edits(scene, references, bindings, block)
    start = Site("imports", Span(0, 0), 1, 1)
    found.append(Edit(start, Outcome.KEPT, None, needs=frozenset(needs)))
    if inline:
        found.append(_helper_block(scene, inline))
    return found


def _helper_names(scene: Scene, helpers: Sequence[str]) -> list[str]:
    found = []
    for helper in helpers:
        own = helper.partition(".")[2]
        local = scene.spelling.helper(helper)
        found.append(own if local == own else f"{own} as {local}")
    return found


def _inline(scene: Scene, helpers: Sequence[str]) -> tuple[str, frozenset[str]]:
    """The text of the helpers, with other names where the file uses theirs itself."""
    rename = {}
    for name in helper_copy.bound(helpers):
        root = {"ms": "mindspore"}.get(name, f"mindspore.{name}")
        usual = scene.spelling.local(root)[0] if name in _SHARED else scene.spelling.helper(
            f"helpers.{name}")  # fmt: skip
        if usual != name:
            rename[name] = usual
    return helper_copy.inline(helpers, rename)


_SHARED = ("ms", "nn", "ops", "mint", "amp", "dataset", "numpy", "Tensor", "Parameter")


def _helper_block(scene: Scene, text: str) -> Edit:
    place = import_edits.leading_end(scene)
    source = scene.source
    body = text.rstrip("\n").replace("\n", source.newline)
    block = f"{source.newline}{source.newline}{body}{source.newline}"
    site = Site("helpers", Span(place, place), source.line_of(place), 1)
    return Edit(site, Outcome.HELPER, (block,))


def _helpers(changes: Sequence[Edit]) -> frozenset[str]:
    return frozenset(n for e in changes for n in e.needs if n.startswith("helpers."))


# -- text -------------------------------------------------------------------------------------


def _emit(scene: Scene, changes: list[Edit]) -> Emitted:
    """Apply the edits; comments inside replaced text move above their statement."""
    changes = _with_pass(scene, changes)
    emitted = emit(scene.source, changes)
    if not any(b"#" in scene.source.data[s.start : s.end] for s in covered(changes)):
        return emitted
    lost = _lost_comments(scene.source, emitted.data)
    if not lost:
        return emitted
    return emit(scene.source, changes + [_rescued(scene, start, end) for start, end in lost])


def _with_pass(scene: Scene, changes: list[Edit]) -> list[Edit]:
    """A block whose statements all go keeps ``pass``; a statement sharing its line becomes it."""
    gone = {(e.site.span.start, e.site.span.end): e for e in changes if isinstance(e, Removal)}
    if not gone:
        return changes
    source = scene.source
    found = list(changes)
    for node in scene.file.nodes:
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if not isinstance(block, list) or not block or isinstance(node, ast.Lambda):
                continue
            edits = [_removal(source, item, gone) for item in block]
            if all(edits) and edits[0] is not None and not isinstance(node, ast.Module):
                site = replace(edits[0].site, span=source.span(block[0]))
                found[found.index(edits[0])] = replace(edits[0], site=site, parts=("pass",))
    shared = [e for e in found if isinstance(e, Removal) and not e.parts
              and _shares_line(source, e.site.span)]  # fmt: skip
    return [replace(e, parts=("pass",)) if e in shared else e for e in found]


def _removal(
    source: Source, item: ast.stmt, gone: Mapping[tuple[int, int], Edit]
) -> Edit | None:
    span = source.span(item)
    for (start, end), edit in gone.items():
        if start <= span.start and span.end <= end:
            return edit
    return None


def _shares_line(source: Source, span: Span) -> bool:
    return source.data[span.end - 1 : span.end] != b"\n" and span.end < len(source.data)


def _lost_comments(source: Source, data: bytes) -> list[tuple[int, int]]:
    """The comments of the source that the new text has fewer of."""
    new = Source("", data, source.tree, _starts=_starts(data))
    have = Counter(data[a:b].strip() for kind, a, b in new.tokens if kind == tokenize.COMMENT)
    lost = []
    for kind, start, end in source.tokens:
        if kind == tokenize.COMMENT:
            text = source.data[start:end].strip()
            if have[text]:
                have[text] -= 1
            else:
                lost.append((start, end))
    return lost


def _starts(data: bytes) -> tuple[int, ...]:
    found, position = [0], data.find(b"\n")
    while position >= 0:
        found.append(position + 1)
        position = data.find(b"\n", position + 1)
    return tuple(found)


def _rescued(scene: Scene, start: int, end: int) -> Edit:
    """A lost comment, on a line of its own above its statement."""
    source = scene.source
    holder: ast.stmt | None = None
    for node in ast.walk(source.tree):
        if isinstance(node, ast.stmt):
            span = source.span(node)
            if span.start <= start < span.end or source.line_of(span.end) == source.line_of(start):
                if holder is None or span.start >= source.span(holder).start:
                    holder = node
    at = source.span(holder).start if holder is not None else start
    line = source.line_start(source.line_of(at))
    while source.data[line : line + 1] in (b" ", b"\t"):
        line += 1
    parts = above(source, line, [source.text(Span(start, end))])
    return Edit(Site("comment", Span(line, line), source.line_of(line), 1), Outcome.KEPT, parts)


# -- accounts ---------------------------------------------------------------------------------


def _ledger(made: plan.Plan) -> Ledger:
    counts = Counter(plan.ledger_outcome(d) for d in made.decisions)
    return Ledger(
        total=made.total,
        converted=counts[Outcome.CONVERTED],
        kept=counts[Outcome.KEPT],
        helper=counts[Outcome.HELPER],
        flagged=counts[Outcome.FLAGGED],
        out_of_scope=counts[Outcome.OUT_OF_SCOPE],
    )


def _entries(
    scene: Scene,
    references: Sequence[Reference],
    decisions: Sequence[plan.Decision],
    emitted: Emitted,
) -> tuple[Entry, ...]:
    found = []
    for reference, decision in zip(references, decisions, strict=True):
        own = scene.site(reference.name, reference.node)
        site = replace(decision.site, line=own.line, column=own.column)
        line = emitted.line(scene.source.span(reference.node).start)
        if isinstance(decision, Refusal):
            found.append(Entry(
                name=site.name, outcome=Outcome.FLAGGED, line=site.line, column=site.column,
                output_line=line, code=decision.code, reason=decision.reason,
                next_step=decision.next_step))  # fmt: skip
        else:
            found.append(Entry(
                name=site.name, outcome=decision.outcome, line=site.line, column=site.column,
                output_line=line, row=decision.row, note=decision.note,
                target=_target(decision)))  # fmt: skip
    return tuple(found)


def _target(edit: Edit) -> str:
    """The first words of the new text, for the report."""
    if edit.parts is None:
        return ""
    text = "".join(p if isinstance(p, str) else "..." for p in edit.parts)
    return " ".join(text.partition("(")[0].split())[:80]


def _cells(scene: Scene, emitted: Emitted) -> tuple[CellPlace, ...]:
    found = []
    for owner in scene.file.classes.values():
        if scene.is_module_class(owner):
            span = scene.source.span(owner.node)
            found.append(CellPlace(
                name=owner.key.partition("::")[2], line=owner.node.lineno,
                end_line=owner.node.end_lineno or owner.node.lineno,
                output_line=emitted.line(span.start), output_end_line=emitted.line(span.end - 1),
            ))  # fmt: skip
    return tuple(found)


def _weights(scene: Scene) -> frozenset[str]:
    """The class rows whose weights have other names or layouts, of everything this file builds."""
    names = {a.name for node in scene.file.nodes if isinstance(node, ast.expr)
             for a in scene.kind(node) if a.kind in ("ref", "Module") and "::" not in a.name}  # fmt: skip
    return frozenset(
        row.key for name in names for row in scene.table.rows(name) if row.weights or row.layout
    )


__all__ = ["Options", "Piece", "Rewritten", "analyse", "convert"]
