"""Pair a port written by hand with its torch model, and judge the Cells that have a partner.

A port may divide the work differently, so a Cell that stands alone proves nothing against a whole
model that agrees; only layers of the frameworks themselves count then. Where the whole differs, a
Cell counts when its input inside the model is torch's, or when it is such a layer.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from migrate.parity.checks import (
    FINE,
    GUILTY,
    NUMERIC,
    PARAMETERS,
    check_of,
    inside_of,
    is_counted,
    local_of,
    order_of,
    owner,
    summed,
)
from migrate.parity.climb import Found, Journal, Progress, climb
from migrate.parity.compare import Measure, merge, worst
from migrate.parity.diagnose import MEANT, first_guilty_of_port
from migrate.parity.exchange import ArrayStore, read_index
from migrate.parity.hand.flow import Fits, Flow
from migrate.parity.hand.inventory import family, kind_of, mindspore_side, torch_side
from migrate.parity.hand.matching import Fixed, Matching, Part, match, with_choice, with_sums
from migrate.parity.hand.matching import text as mapping_text
from migrate.parity.hand.partners import pair_cells
from migrate.parity.messages import Ran
from migrate.parity.recorded import unlike_training
from migrate.parity.request import Address, VerifyRequest
from migrate.parity.session import LOST, Killed, Mode, Session, Sides, stateless
from migrate.parity.worker import Payload, Worker, WorkerError, WorkerLost
from migrate.records.outcomes import Verdict, Why
from migrate.records.result import Check, Guilty, PairResult, Rung

TRIES = 24
BETTER = 0.5  # another choice must at least halve the error to be taken while something is wrong
RATE = 1e-6
EVEN_MASKS = "dropout lies in another order of axes: scaled by 1 + p instead of masked"


@dataclass(frozen=True)
class Trial:
    """The error of the whole model (0: it agrees), and which modules receive what Cells receive."""

    error: float
    fits: Fits


@dataclass(frozen=True)
class Pair:
    """What is compared: the addresses, where modules are looked for, and what is known already."""

    torch: Address
    mindspore: Address
    folders: tuple[str, ...]
    fixed: Fixed = field(default_factory=lambda: Fixed({}, ()))


def verify_pair(
    sides: Sides, pair: Pair, request: VerifyRequest, progress: Progress
) -> tuple[PairResult, str]:
    """Build, pair and compare; return the result and the text of the mapping file."""

    def opened(folder: Path) -> Port:
        return Port(request=request, sides=sides, folder=folder, pair=pair)

    return climb(opened, sides, progress, Journal())


@dataclass(kw_only=True)
class Port(Session[tuple[PairResult, str]]):
    """A port whose partners are inferred from kinds, names, shapes and the order of calls.

    ``raw`` are the answers of its forward rungs; ``constants`` torch's tables that the port has.
    """

    pair: Pair
    trace: Payload = field(default_factory=lambda: {"calls": [], "error": ""})
    matching: Matching = field(default_factory=lambda: Matching(()))
    parts: tuple[Part, ...] = ()
    pairs: dict[str, str] = field(default_factory=dict)
    constants: tuple[str, ...] = ()
    fits: Fits = field(default_factory=dict)
    raw: dict[tuple[str, str], list[Ran]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name = self.pair.torch.text

    @property
    def paths(self) -> dict[str, str]:
        return dict(self.pairs)

    def partner(self, path: str) -> str | None:
        return self.pairs.get(path)

    def open_torch(self) -> None:
        torch, request = self.sides.torch, self.request
        self.versions |= self._hello(torch, {})
        self.torch = self.ask(torch, "build", {
            "module": self.pair.torch.module, "build": self.pair.torch.build,
            "folders": list(self.pair.folders), "inputs": list(request.inputs),
            "seed": request.seed, "folder": str(self.folder / "weights"), "runs": True,
            "half": True,
        })  # fmt: skip
        self.recorded(training=False)

    def open_mindspore(self) -> None:
        worker, request = self.sides.mindspore, self.request
        first = not self.mindspore
        if first:
            self.versions |= self._hello(worker, {"device": request.device})
        self.mindspore = self.ask(worker, "build", {
            "module": self.pair.mindspore.module, "build": self.pair.mindspore.build,
            "folders": list(self.pair.folders), "seed": request.seed, "device": request.device,
            "folder": str(self.folder / "own"),
        })  # fmt: skip
        if self.train == "even":
            self.ask(worker, "masks", {"even": True})
        if self.parts:
            self.failed = self._load(self.parts)
        if first:
            self._pair_up()

    def _hello(self, worker: Worker, payload: Payload) -> dict[str, str]:
        """Return versions: the first request imports a framework, which takes its time."""
        return stateless(worker, "hello", payload, max(self.request.timeout, 60.0))

    def close(self) -> None:
        if self.train == "even":
            with contextlib.suppress(*LOST, Killed):
                self._use_masks(even=False)
        super().close()

    def _use_masks(self, even: bool) -> None:
        """Use masks that drop, or even ones, which do not ask in which order the axes lie."""
        self.train = "even" if even else "train"
        for worker in (self.sides.torch, self.sides.mindspore):
            self.ask(worker, "masks", {"even": even})

    def _pair_up(self) -> None:
        """Find the partners, trying where nothing else decides, and load torch's weights."""
        folder = self.recorded(training=False)
        try:
            self.trace = self.ask(self.sides.mindspore, "trace", {"folder": str(folder)})
        except WorkerLost as lost:
            self.trace = {"calls": [], "error": lost.why}
            self.open_mindspore()
        torch = torch_side(self.torch, self._index)
        mindspore = mindspore_side(self.mindspore, self.trace)
        fixed = self.pair.fixed
        matching = with_sums(match(torch, mindspore, fixed.parts), torch)
        self.matching = self._with_ties(matching)
        self.constants = self._constants(self.matching.parts)
        self.parts = self._tried()
        self.pairs = pair_cells(torch, mindspore, self.parts, fixed.cells, self.fits)

    def _with_ties(self, matching: Matching) -> Matching:
        """Give tensors that torch shares, and MindSpore keeps twice, the shared numbers."""
        left = list(matching.mindspore_left)
        added: list[Part] = []
        for row in self.torch["tensors"]:
            fitting = [w for w in left if w.parameter and w.shape == tuple(row["shape"])]
            if row["tied"] and fitting:
                added.append(Part(row["tied"], fitting[0].place))
                left.remove(fitting[0])
        return replace(matching, parts=(*matching.parts, *added), mindspore_left=tuple(left))

    def _constants(self, parts: Sequence[Part]) -> tuple[str, ...]:
        """Return torch's tables (no draw, not trained) whose partners hold numbers of their own.

        They are part of the port, so they are left as they are: copying would hide a wrong table.
        """
        rows = {row["key"]: row for row in self.torch["tensors"]}
        own = {row["place"]: row for row in self.mindspore["tensors"]}
        torch, mindspore = ArrayStore(self.folder / "weights"), ArrayStore(self.folder / "own")
        found = []
        for part in parts:
            row, start = rows[part.key], own.get(part.place, {}).get("start", "")
            if row["trained"] or not row["start"] or not start:
                continue
            kept = np.array_equal(torch.get(row["start"]), torch.get(row["array"]))
            if kept and _speaks(torch.get(row["start"])) and _speaks(mindspore.get(start)):
                found.append(part.key)
        return tuple(found)

    def _load(self, parts: Sequence[Part]) -> list[Payload]:
        """Copy torch's numbers into the net; return what did not fit."""
        arrays = {row["key"]: row["array"] for row in self.torch["tensors"]}
        rows = [{**asdict(part), "array": arrays[part.key]} for part in parts
                if part.key not in self.constants]  # fmt: skip
        asked = {"parts": rows, "folder": str(self.folder / "weights")}
        failed: list[Payload] = self.ask(self.sides.mindspore, "load", asked)["failed"]
        return failed

    def _tried(self) -> tuple[Part, ...]:
        """Return the parts under which the whole model agrees, or comes nearest."""
        best, choices = self.matching.parts, list(self.matching.choices)
        self.failed = self._load(best)
        if self.trace["error"]:
            return best
        flow = Flow(torch_side(self.torch, self._index), mindspore_side(self.mindspore, self.trace))
        best, error = self._flowed(flow, best)
        for change in choices[:TRIES]:
            if error == 0.0:
                break
            parts = with_choice(replace(self.matching, parts=best), change)
            now = self._ran_with(parts).error
            if now < BETTER * error:
                best, error = self._flowed(flow, parts)
        self.fits = self._ran_with(best).fits
        self.failed = self._load(best)
        return best

    def _flowed(self, flow: Flow, parts: tuple[Part, ...]) -> tuple[tuple[Part, ...], float]:
        """Return the parts exchanged by the numbers that flow, and the error that is left."""
        best, ran = parts, self._ran_with(parts)
        forks: Iterator[tuple[Part, ...]] = iter(())
        fresh = True
        for _ in range(TRIES):
            if ran.error == 0.0:
                break
            if fresh:
                best, ran = self._settled(flow, best, ran)
                forks = flow.forks(best, ran.fits)
            other = next(forks, None)
            if other is None:
                break
            other, now = self._settled(flow, other, self._ran_with(other))
            further = _reached(flow, other, now) > _reached(flow, best, ran)
            fresh = now.error < BETTER * ran.error or (further and now.error <= ran.error)
            if fresh:
                best, ran = other, now
        return best, ran.error

    def _settled(
        self, flow: Flow, parts: tuple[Part, ...], ran: Trial
    ) -> tuple[tuple[Part, ...], Trial]:
        """Exchange layers until each that can receives its partner's numbers."""
        for _ in range(len(flow.couples(parts))):
            changed = flow.settled(parts, ran.fits) if ran.error else None
            now = self._ran_with(changed) if changed else ran
            if changed is None or _reached(flow, changed, now) <= _reached(flow, parts, ran):
                break
            parts, ran = changed, now
        return parts, ran

    def _ran_with(self, parts: tuple[Part, ...]) -> Trial:
        """Load the parts and run the whole model once in eval mode."""
        self._load(parts)
        asked = {
            "folder": str(self.recorded(training=False)), "mode": "pynative", "paths": {"": ""},
            "strictness": self.strictness, "scratch": str(self.folder / "probes"),
        }  # fmt: skip
        try:
            answer = self.ask(self.sides.mindspore, "fits", asked)
        except WorkerLost:
            self.open_mindspore()
            return Trial(float("inf"), {})
        measure = Measure.of(answer["local"])
        if measure.verdict in FINE:
            return Trial(0.0, answer["fits"])
        return Trial(float("inf") if measure.error is None else measure.error, answer["fits"])

    @property
    def _index(self) -> Mapping[str, Any]:
        return read_index(self.recorded(training=False))

    def opening(self) -> tuple[list[Rung], list[Check]]:
        both = (
            f"{len(self.modules)} modules in torch, {len(self.cells)} Cells in MindSpore, "
            f"{len(self.pairs)} paired"
        )
        rung = Rung(name="import", mode="pynative", verdict=Verdict.PASS, checks=1, detail=both)
        checks = [self._copied(), *_faults(self)]
        held = self.torch["tensors"] or self.mindspore["tensors"]
        note = "" if held else Why.NO_TENSORS
        return [rung, summed(PARAMETERS, "pynative", checks, note=note)], checks

    def _copied(self) -> Check:
        """Return one Check for all that was copied."""
        keys = {part.key for part in self.parts} - set(self.constants)
        shapes = {row["key"]: row["shape"] for row in self.torch["tensors"]}
        elements = sum(math.prod(shapes[key]) for key in keys)
        text = f"{len(keys)} tensors copied and read back"
        measure = Measure(Verdict.PASS, elements, detail=text)
        return check_of(self, PARAMETERS, "pynative", "", 0, measure)

    def is_broken(self, mode: Mode, earlier: Sequence[Check]) -> bool:
        """Return also True where the whole stops because a Cell receives another shape."""
        return super().is_broken(mode, earlier) or any(
            (check.rung, check.mode, check.torch_path) == ("forward eval", mode, "")
            and check.why is Why.STOPPED
            for check in earlier
        )

    def forward_rung(self, rung: str, mode: Mode, earlier: Sequence[Check]) -> Found:
        checks = self._ran(rung, mode)
        if rung != "forward train":
            return checks, ""
        note = EVEN_MASKS if self.train == "even" else ""
        if mode != "pynative":
            return checks, note
        failed = any(check.mode == mode and check.verdict in GUILTY for check in earlier)
        if not failed and not _is_right(checks):
            checks, note = self._even(checks), ""
        return (*checks, *_rate_checks(self)), note

    def _ran(self, rung: str, mode: Mode) -> tuple[Check, ...]:
        training = rung == "forward train"
        answers = self.forward(training, mode, root_only=mode == "graph")
        self.raw[rung, mode] = answers
        return self.judged(rung, mode, answers, read_index(self.recorded(training)))

    def _even(self, before: tuple[Check, ...]) -> tuple[Check, ...]:
        """Try masks that are the same in any order of the axes, after eval mode was right.

        Where they agree they stay for all that follows; else what failed is the answer.
        """
        raw = self.raw["forward train", "pynative"]
        self._use_masks(even=True)
        checks = self._ran("forward train", "pynative")
        if _is_right(checks):
            unsure = {"verdict": Verdict.NONDET, "detail": EVEN_MASKS}
            return tuple(c if c.torch_path else c.model_copy(update=unsure) for c in checks)
        self._use_masks(even=False)
        self.raw["forward train", "pynative"] = raw
        return before

    def judged(
        self, rung: str, mode: Mode, answers: Sequence[Ran], index: Mapping[str, Any]
    ) -> tuple[Check, ...]:
        """Return one Check a paired Cell, in the order of torch's calls; the root is the last."""
        found: dict[str, list[Ran]] = {}
        for answer in answers:
            found.setdefault(answer.path, []).append(answer)
        order = order_of(index)
        root = _root(found.get("", []))
        checks = []
        for path in sorted(found, key=lambda p: order.get(p, 0)):
            measure = self._decided(path, found[path], root.verdict) if path else root
            local = local_of(found[path]).get(path)
            inside = inside_of(found[path]).get(path) if path else None
            checks.append(check_of(
                self, rung, mode, path, order.get(path, 0), measure,
                local=merge(local).error if local else None,
                inside=merge(inside) if inside else None,
            ))  # fmt: skip
        return tuple(checks)

    def is_layer(self, path: str) -> bool:
        """Return whether both partners are one and the same layer of the frameworks."""
        module, cell = self.modules[path], self.cells[self.pairs[path]]
        left = kind_of(module["class"], module["classes"][0])
        return bool(left) and left == kind_of(cell["class"], cell["module"])

    def _decided(self, path: str, answers: Sequence[Ran], root: Verdict) -> Measure:
        agrees = root in FINE
        inside, local = inside_of(answers), local_of(answers)
        if not inside and not local:
            return Measure.none(Why.NOT_CALLED)
        whole = merge(inside[path]) if inside else None
        if not local:
            fine = whole is not None and whole.verdict in FINE
            return whole if fine and whole else Measure.none(Why.NOT_ALIKE)
        alone = merge(local[path])
        if alone.verdict is Verdict.BLOCKED and whole is not None:  # it did run inside the model
            alone = whole
        if alone.verdict in FINE:
            if agrees or whole is None or whole.verdict in FINE:
                return alone
            detail = f"right on torch's input; inside the model {whole.detail}"
            return alone.called(Verdict.PROPAGATED, detail)
        alike = self.is_layer(path)
        if agrees:
            counted = alike and alone.verdict is not Verdict.SHAPE
            return alone if counted else Measure.none(Why.ELSEWHERE)
        fed = max((answer.fed or 0.0 for answer in answers), default=0.0)
        fits = alone.verdict is Verdict.SHAPE and root is Verdict.DIVERGED  # the model's shape does
        if fits and (not alike or fed > MEANT):
            return Measure.none(Why.ELSEWHERE)
        if fed <= MEANT or alike:
            return alone
        return Measure.none(Why.OTHER_INPUT)

    def gradient_checks(
        self, mode: Mode, whole: Sequence[Ran], local: Sequence[Ran],
        order: Mapping[str, int], blamed: frozenset[str],
    ) -> tuple[Check, ...]:  # fmt: skip
        """Return the whole model's gradients at the root; each Cell's own where that is wrong.

        A Cell whose gradient is right by itself and wrong inside the model has inherited that.
        """
        outer: dict[str, list[Measure]] = {}
        for answer in whole:
            measure = answer.measure
            if measure.detail and answer.name:
                measure = replace(measure, detail=f"{answer.name}: {measure.detail}")
            outer.setdefault(owner(answer.name), []).append(measure)
        inner = local_of([answer for answer in local if answer.path])
        root = merge([measure for measures in outer.values() for measure in measures])
        checks = []
        for path in sorted((set(outer) | set(inner)) - {""}, key=lambda p: order.get(p, 0)):
            one, other = merge(inner.get(path, [])), merge(outer.get(path, []))
            wrong = path in inner and one.verdict in NUMERIC
            chosen = one if wrong else other
            if not wrong and other.verdict is Verdict.DIVERGED:
                chosen = other.called(Verdict.PROPAGATED)
            if path in outer or wrong:
                checks.append(check_of(self, "gradients", mode, path, order.get(path, 0), chosen,
                                       local=one.error, inside=other))  # fmt: skip
        last = max(order.values(), default=0) + 1
        checks.append(check_of(self, "gradients", mode, "", last, root, local=root.error))
        return tuple(checks)

    def counts_alone(self, path: str, measure: Measure) -> bool:
        """Return whether both are layers of the frameworks that stand in for each other."""
        module, cell = self.modules[path], self.cells[self.pairs[path]]
        kinds = (kind_of(module["class"], module["classes"][0]),
                 kind_of(cell["class"], cell["module"]))  # fmt: skip
        called = measure.verdict not in (Verdict.BLOCKED, Verdict.SHAPE) or kinds[0] == kinds[1]
        return called and bool(kinds[0]) and family(kinds[0]) == family(kinds[1])

    def is_searched(self, mode: Mode, checks: Sequence[Check]) -> bool:
        right = all(check.verdict in (*FINE, Verdict.NOT_RUN) for check in checks)
        return mode == "pynative" and not right

    def result(
        self, rungs: Sequence[Rung], checks: Sequence[Check], seconds: float
    ) -> tuple[PairResult, str]:
        unsure = self._unsure()
        found = self._blank(
            inputs=tuple(self.torch["inputs"]), environment=self.versions,
            verdict=worst([rung.verdict for rung in rungs if is_counted(rung)]),
            guilty=first_guilty_of_port(self, checks), rungs=tuple(rungs), checks=tuple(checks),
            unmatched=_unmatched(self), cells=self.paths,
            ambiguous=tuple(f"{key}: or {', '.join(others)}" for key, others in unsure),
        )  # fmt: skip
        return found, mapping_text(self.pairs, self.parts, unsure)

    def _unsure(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return the tensors whose partner is a guess, or not the one that names and order say."""
        found = dict(self.matching.ambiguous)
        chosen = {(part.key, part.place) for part in self.parts}
        for part in self.matching.parts:
            if (part.key, part.place) not in chosen:
                found[part.key] = tuple(dict.fromkeys((part.place, *found.get(part.key, ()))))
        return tuple(found.items())

    def _blank(self, **more: Any) -> PairResult:
        return PairResult(torch=self.pair.torch.text, mindspore=self.pair.mindspore.text, **more)

    def refused(
        self, error: Exception, side: Literal["torch", "MindSpore"]
    ) -> tuple[PairResult, str]:
        if side == "torch":
            missing = isinstance(error, WorkerError) and error.failed.missing
            what = (
                "check module and name, and that the module can be imported from this folder"
                if missing else "give --input that runs in torch"
            )  # fmt: skip
            return self._blank(detail=f"{self.pair.torch.text} in torch: {error}. Next: {what}"), ""
        cause = f"{self.pair.mindspore.text} in MindSpore: {error}"
        place = error.failed.place if isinstance(error, WorkerError) else ""
        guilty = Guilty(rung="import", mode="pynative", torch="", mindspore="", cause=cause,
                        mindspore_place=place)  # fmt: skip
        rung = Rung(name="import", mode="pynative", verdict=Verdict.BLOCKED, detail=cause)
        return self._blank(
            verdict=Verdict.BLOCKED, guilty=guilty, rungs=(rung,), detail=cause
        ), ""  # fmt: skip


def _reached(flow: Flow, parts: Sequence[Part], ran: Trial) -> int:
    """Return how many layers receive the numbers of their partners."""
    return sum(path in ran.fits.get(cell, ()) for path, cell in flow.couples(parts).items())


def _speaks(numbers: Any) -> bool:
    """Return whether a tensor is more than one number all over, a place to load into."""
    return bool(numbers.size and (numbers != numbers.flat[0]).any())


def _root(answers: Sequence[Ran]) -> Measure:
    """Return the measure of the whole model."""
    return merge([answer.measure for answer in answers])


def _is_right(checks: Sequence[Check]) -> bool:
    return all(check.verdict in FINE for check in checks if not check.torch_path)


def _faults(port: Port) -> Iterator[Check]:
    """Yield a Check for each tensor that is missing, unlike, or not trained on both sides."""
    matching = port.matching
    torch = {row["key"]: row for row in port.torch["tensors"]}
    own = {row["place"]: row for row in port.mindspore["tensors"]}
    for weight in matching.torch_left:
        if weight.parameter and torch[weight.place]["trained"]:
            why = "the port has no such parameter"
            yield _fault(port, Verdict.UNMATCHED, weight.place, "", why)
    for weight in matching.mindspore_left:
        if weight.parameter and weight.trained:
            why = "torch has no such parameter"
            yield _fault(port, Verdict.UNMATCHED, "", weight.place, why)
    for one, other in matching.unlike:
        why = f"shape {list(other.shape)} in MindSpore, {list(one.shape)} in torch"
        yield _fault(port, Verdict.SHAPE, one.place, other.place, why)
    for row in port.failed:
        yield _fault(port, Verdict.SHAPE, row["key"], row["place"], row["why"])
    whole: dict[str, list[Part]] = {}
    for part in port.parts:
        why = unlike_training(torch[part.key], own[part.place], "here")
        if why:
            yield _fault(port, Verdict.DIVERGED, part.key, part.place, why)
        if part.torch_rows is None and part.rows is None:
            whole.setdefault(part.key, []).append(part)
    for key, (first, *others) in whole.items():  # they drift apart when they are trained
        for part in others:
            why = f"torch shares one tensor, here {first.place} is another"
            yield _fault(port, Verdict.DIVERGED, key, part.place, why)


def _fault(port: Port, verdict: Verdict, key: str, place: str, why: str) -> Check:
    cell = place.rpartition(".")[0] if place else port.pairs.get(key.rpartition(".")[0], "")
    back = {own: path for path, own in port.pairs.items()}
    path = key.rpartition(".")[0] if key else back.get(cell, "")
    name = key.rpartition(".")[2] or place.rpartition(".")[2]
    measure = Measure(verdict, detail=f"{name}: {why}")
    return check_of(port, PARAMETERS, "pynative", path, 0, measure, cell=cell)


def _rate_checks(port: Port) -> Iterator[Check]:
    """Compare the dropout between recurrent layers: no mask can be shared, so the rates are."""
    own: Mapping[str, float] = port.mindspore["rates"]
    for path, rate in port.torch["rates"].items():
        cell = port.pairs.get(path)
        if cell is None or cell not in own:
            continue
        same = abs(own[cell] - rate) < RATE
        detail = "" if same else f"dropout between the layers is {own[cell]:g}, in torch {rate:g}"
        measure = Measure(Verdict.PASS if same else Verdict.DIVERGED, 1, detail=detail)
        yield check_of(port, "forward train", "pynative", path, 0, measure)


def _unmatched(port: Port) -> tuple[str, ...]:
    """Return the tensors and Cells that one side has alone."""
    matching, partners = port.matching, set(port.pairs.values())
    lines = [f"torch {weight.place}: no such tensor" for weight in matching.torch_left]
    lines += [f"MindSpore {weight.place}: torch has no such tensor"
              for weight in matching.mindspore_left if weight.parameter]  # fmt: skip
    lines += [f"torch {path} ({row['class']}): no such Cell"
              for path, row in port.modules.items()
              if path not in port.pairs and not row["container"]]  # fmt: skip
    lines += [f"MindSpore {path} ({row['class']}): no such module"
              for path, row in port.cells.items()
              if path not in partners and row["class"] not in ("CellList", "CellDict")]  # fmt: skip
    return tuple(lines)
