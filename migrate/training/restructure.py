"""In: an analysed program. Out: its files with training steps as Cells, and the way back."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from migrate.analysis import index
from migrate.analysis.program import File, Function, Program, method_of
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.recorded import Recorded
from migrate.codegen.rewriter import emit
from migrate.records.outcomes import Edit, Outcome, Span
from migrate.syntax.deep import deeply
from migrate.syntax.lines import next_line, shares_line
from migrate.syntax.source import Source, read
from migrate.training import by_hand, placing
from migrate.training.apart import apart
from migrate.training.cells import OWN, LossCell, plain, written
from migrate.training.cotangents import weighted
from migrate.training.evaluation import Evaluation, evaluations
from migrate.training.groups import Group, Unclear, groups
from migrate.training.inlining import inlined
from migrate.training.leaves import made_parameters
from migrate.training.lifting import lifted
from migrate.training.marks import NAMES, Mark, View, all_marks, bodies, marks
from migrate.training.model_style import evaluated_by_model, run_by_model
from migrate.training.modules import models
from migrate.training.placing import Place, place
from migrate.training.remade import remade
from migrate.training.scalers import asked_in_front
from migrate.training.sinking import sunk
from migrate.training.slices import Region, region
from migrate.training.staged import Staged
from migrate.training.steps import Step, carries, step
from migrate.training.variables import takes_numbers, variables
from migrate.training.wording import edits

TORCH = "_torch2ms_torch"
_WORDS = (b".backward(", b".eval(", b"no_grad", b"inference_mode")
_STEP_WORDS = (b".backward(", b".grad", b".step(", b".zero_grad(", b"clip_grad_")
_HAND_WORDS = (*_WORDS, *_STEP_WORDS)


@dataclass(frozen=True)
class _Ready:
    region: Region
    cell: LossCell
    step: Step
    place: Place
    function: Function | None


def restructure(
    inference: Inference, style: str = "cells", separated: Mapping[str, Staged] | None = None
) -> dict[str, Staged]:
    """Return the files that hold training steps, by path, and those that were ``separated``.

    ``style`` "model": Model runs the epochs.
    """
    found: dict[str, Staged] = dict(separated or {})
    together = _together(inference)
    for path, first in found.items():
        together[path] = together[path].behind(first) if path in together else first
    while more := _together(inference, again=True):  # a caller may be a part of its callers' step
        together |= {p: s.behind(together[p]) if p in together else s for p, s in more.items()}
    changed = _plain_or_by_hand(inference)
    for path, file in inference.program.files.items():
        if path in changed or path in together:
            staged = changed.get(path)
            before = together.get(path)
            made = staged.behind(before) if staged is not None and before is not None else staged
            made = _by_model(View(file, inference), made) if style == "model" else made
            if made is not None or before is not None:
                found[path] = made or before  # type: ignore[assignment]
    return found


def _plain_or_by_hand(inference: Inference) -> dict[str, Staged | None]:
    """What each file becomes; where gradients are read, or a backward is in no step, by hand.

    Files that run together go the same way: one may clear what the other adds.
    """
    files = inference.program.files
    found = {p: _file(inference, f) for p, f in files.items() if _has(f, _WORDS)}
    seen: set[str] = set()
    for path in [p for p, f in files.items() if _WORDS[0] in f.source.data]:
        if path in seen:
            continue
        near = _run_with(inference.program, path)
        seen |= set(near)
        asked = any(by_hand.asks(View(files[p], inference)) for p in near)
        if not asked and not any(s is not None and s.unclear for p in near if (s := found.get(p))):
            continue
        other = {p: _file(inference, files[p], True) for p in near if _has(files[p], _HAND_WORDS)}
        if not any(s is not None and s.unclear for s in other.values()):
            found |= other
    return found


def _run_with(program: Program, path: str) -> list[str]:
    """Return the files that take steps in one process with a file, or with one of these."""
    seen, waiting = {path}, [path]
    while waiting:
        near = program.joined(waiting.pop())
        new = {f.path for f in near if _has(f, _STEP_WORDS)} - seen
        seen |= new
        waiting += new
    return sorted(seen)


def _has(file: File, words: tuple[bytes, ...]) -> bool:
    return any(word in file.source.data for word in words)


def _by_model(view: View, staged: Staged | None) -> Staged | None:
    """The file with its loops run by Model; without any step of training, its evaluations."""
    if staged is None:  # no loss: only networks are called
        made = evaluated_by_model(_rewritten(view.file.source, [_import(view)]), OWN, TORCH)
        return made if made.evaluations or OWN.encode() + b".Metric" in made.source.data else None
    return run_by_model(evaluated_by_model(staged, OWN, TORCH), OWN)


def _together(inference: Inference, again: bool = False) -> dict[str, Staged]:
    """The files in which a step was spread over functions; the program is one without that."""
    files = inference.program.files
    found = {}
    for path, file in files.items():
        if _WORDS[0] not in file.source.data:
            continue
        view = View(file, inference)
        made = [] if again else made_parameters(view, OWN)
        first = [] if again else [*weighted(view), *remade(view), *sunk(view)]
        others = [*made, *first, *([] if again else asked_in_front(view))]
        changes = [*([_import(view)] if made else []), *others, *inlined(view, others)]
        if changes:
            found[path] = _rewritten(file.source, changes)
    if not found and again:
        found = {p: _rewritten(files[p].source, edits) for p, edits in lifted(inference).items()}
    if not found:
        return {}
    sources = {path: found[path].source if path in found else f.source for path, f in files.items()}
    program = inference.program
    inference.recorded = Recorded()  # its places are those of the files as they were
    renewed = index.build(sources, program.followed, program.root, files)
    deeply(lambda: inference.renew(renewed))
    return found


def _rewritten(source: Source, changes: list[Edit]) -> Staged:
    emitted = emit(source, changes)
    return Staged(
        source, read(source.path, source.encode(emitted.data)), emitted, (), (), frozenset()
    )


def _file(inference: Inference, file: File, hand: bool = False) -> Staged | None:
    view = View(file, inference)
    taken = set(file.names) | {n.id for n in file.of(ast.Name)}
    ready: list[_Ready] = []
    unclear: list[Unclear] = []
    evaluated: list[Evaluation] = []
    for function, body in bodies(view):
        every = marks(view, body)
        made = by_hand.alone(view, every) if hand else groups(view, every)
        several = sum(isinstance(m, Group) for m in made) > 1
        for group in made:
            item = (
                group
                if isinstance(group, Unclear)
                else _one(view, group, every, function, several, taken)
            )
            (unclear if isinstance(item, Unclear) else ready).append(item)  # type: ignore[arg-type]
        evaluated += evaluations(view, function, body, _own(function), taken)
    ready = list(_without_nested(ready, unclear))
    kept = all_marks(view) if hand else []
    against = by_hand.reason_against(view, kept) if hand else None
    unclear += [against] if against is not None else []
    if not ready and not unclear and not evaluated and not kept and not by_hand.asks(view):
        return None
    return _staged(view, ready, unclear, evaluated, kept if hand and not unclear else None)


def _without_nested(ready: Sequence[_Ready], unclear: list[Unclear]) -> Iterator[_Ready]:
    """What a step makes again must stand outside of the Cells of the others."""
    inside = {id(s) for item in ready for s in item.region.inside}
    for item in ready:
        if any(id(s) in inside for s in item.region.again):
            reason = "what it starts from is computed inside of another step"
            unclear.append(Unclear(item.region.group.backwards[0], reason))
        else:
            yield item


def _one(
    view: View,
    group: Group,
    every: Sequence[Mark],
    function: Function | None,
    several: bool,
    taken: set[str],
) -> _Ready | Unclear:
    own = _own(function)
    trial = set(taken)
    made = _in_place(view, region(view, group, every, own), function, own, several, trial)
    if not isinstance(made, Unclear) or not group.fused:
        taken |= trial
        return made
    later = _in_place(view, apart(view, group, every, own), function, own, several, taken)
    return made if isinstance(later, Unclear) else later


def _in_place(
    view: View,
    found: Region | Unclear,
    function: Function | None,
    own: str,
    several: bool,
    taken: set[str],
) -> _Ready | Unclear:
    """A training step whose statements are known: its Cells and where they go."""
    if isinstance(found, Unclear):
        return found
    group = found.group
    if group.by_hand and by_hand.within(view, (*found.inside, *found.moved)):
        return Unclear(group.backwards[0], "what computes its loss looks at gradients")
    shared = [
        s
        for s in (*found.inside, *(m.statement for m in group.marks))
        if shares_line(view.file.source, s)
    ]
    if shared:
        return Unclear(group.backwards[0], "several statements stand on one line")
    names = variables(view, found, function, own)
    if isinstance(names, Unclear):
        return names
    where = place(view, found, names, function, several, taken)
    alone = group.fused or group.apart or group.by_hand
    cell = plain(view, found, names, OWN) if alone else None
    if cell is None:
        cell = written(view, found, names, own, where.cell, f"{TORCH}.nn.Module")
    carried = not where.behind and carries(group, names.loop, function)
    if isinstance(carried, Unclear):
        return carried
    hidden = placing.hidden_modules(view, found, function, own) if group.by_hand else []
    if isinstance(hidden, Unclear):
        return hidden
    numbers = takes_numbers(view, found, names, own)
    made = step(view, group, cell, names, own, OWN, carried, hidden, numbers)
    return made if isinstance(made, Unclear) else _Ready(found, cell, made, where, function)


def _own(function: Function | None) -> str:
    """The name of the instance in a method; a name that nothing has elsewhere."""
    method = method_of(function)
    if method is None or method.decorated("staticmethod") or not method.parameters:
        return "-"
    return method.parameters[0].arg


def _staged(
    view: View,
    ready: Sequence[_Ready],
    unclear: Sequence[Unclear],
    evaluated: Sequence[Evaluation],
    kept: Sequence[Mark] | None,
) -> Staged:
    source = view.file.source
    more = list(by_hand.edits(view, kept, OWN)) if kept is not None else []
    changes = [*([_import(view)] if ready or evaluated or more else []), *more]
    for item in ready:
        built = _build(view, item)
        others = [o.region for o in ready if o is not item]
        changes += edits(view, item.region, item.cell, item.step, item.place, built, others)
        changes += _made(view, item, built)
    changes += [edit for item in evaluated for edit in item.edits]
    emitted = emit(source, changes)
    marked = [m for item in ready for m in item.region.group.marks]
    return Staged(
        source,
        read(source.path, source.encode(emitted.data)),
        emitted,
        (
            *(source.site(NAMES[m.act], m.statement) for m in marked),
            *(by_hand.sites(view, kept) if kept is not None else ()),
        ),
        tuple((u.mark.statement.lineno, u.reason) for u in unclear),
        frozenset(i.place.cell for i in ready if i.cell.text) | {e.cell for e in evaluated},
        single=frozenset(i.place.variable for i in ready if _networks(view, i) == 1),
    )


def _networks(view: View, item: _Ready) -> int:
    nodes = [*item.region.inside, *item.region.losses]
    return len(models(view, nodes, _own(item.function)))


def _build(view: View, item: _Ready) -> tuple[str, ...]:
    """The lines that build the step."""
    own = _own(item.function)
    more = placing.lines(view, item.region, item.cell.build, item.place, item.function, own)
    built = (f"{item.place.variable} = {item.step.build}", *more)
    missing = sorted(filter(None, (_maybe_none(view, m) for m in item.region.group.steps)))
    if item.region.condition is None or not missing:
        return built
    test = " and ".join(f"{name} is not None" for name in missing)
    return (f"if {test}:", *(f"    {line}" for line in built))


def _maybe_none(view: View, mark: Mark) -> str:
    """The optimizer of an update where it may be None: ``run(model, batches)`` evaluates."""
    owner = mark.call.func.value if isinstance(mark.call.func, ast.Attribute) else None
    may = isinstance(owner, ast.Name) and any(a.kind == "None" for a in view.kind(owner))
    return mark.who if may else ""


def _made(view: View, item: _Ready, built: tuple[str, ...]) -> Iterator[Edit]:
    """The class of the loss, and the statement that builds the step."""
    place, source = item.place, view.file.source
    text = place.indent + f"\n{place.indent}".join(built)
    text = "\n" + text if place.behind else text + "\n"
    if item.cell.text:  # first: in a script both may stand at the same place
        yield _insert(source, place.class_at, (*item.cell.text, "\n\n"))
    if not place.late:
        yield _insert(source, place.made_at, (text,))


def _import(view: View) -> Edit:
    """Names for what the restructured text uses; the ordinary rules take them away again."""
    source = view.file.source
    tops = [s for s in source.tree.body if isinstance(s, (ast.Import, ast.ImportFrom))]
    last = next((s for s in tops if getattr(s, "module", "") != "__future__"), None)
    start = source.span(last).end if last is not None else source.span(source.tree.body[0]).start
    place = next_line(source, start)
    text = f"import torch as {TORCH}\nimport torch2ms as {OWN}\n"
    return _insert(source, place, (text,))


def _insert(source: Source, offset: int, parts: tuple[object, ...]) -> Edit:
    site = source.site_at("training", Span(offset, offset))
    return Edit(site, Outcome.CONVERTED, parts)  # type: ignore[arg-type]
