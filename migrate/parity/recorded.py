"""Pair a model with its conversion, as the record says, and judge its Cells one by one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from migrate.parity.checks import (
    FINE,
    NUMERIC,
    PARAMETERS,
    START,
    check_of,
    inside_of,
    is_counted,
    local_of,
    order_of,
    owner,
    summed,
)
from migrate.parity.compare import ORDER, Measure, merge, worst
from migrate.parity.diagnose import first_guilty
from migrate.parity.exchange import read_index
from migrate.parity.messages import Ran
from migrate.parity.request import arguments, to_install
from migrate.parity.session import Mode, Session, Sides, stateless
from migrate.parity.weights import Held, Names, Pairing, cell_path, pair_all
from migrate.parity.worker import Payload, WorkerError
from migrate.records.outcomes import Verdict, Why
from migrate.records.result import Check, ModelResult, Rung

LOOSE = 1e-3  # own error of a model's gradient above which every Cell is differentiated by itself


@dataclass(frozen=True)
class Target:
    """One model: the expression that builds it, and its file on both sides (relative).

    ``inputs`` are as in a VerifyRequest.
    """

    name: str
    build: str
    source: str
    output: str
    torch_root: Path
    ms_root: Path
    package: str = ""
    ms_package: str = ""
    inputs: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return "\n".join((self.source, self.build, *self.inputs))

    def place(self, torch: bool) -> Payload:
        """Return where a worker finds the file."""
        return {
            "root": str(self.torch_root if torch else self.ms_root),
            "package": self.package if torch else self.ms_package,
            "file": self.source if torch else self.output,
        }

    def failed(self, detail: str, verdict: Verdict = Verdict.NOT_RUN) -> ModelResult:
        """Return the result of a model that did not get as far as a comparison."""
        return ModelResult(
            name=self.name, source=self.source, build=self.build, inputs=(), verdict=verdict,
            detail=detail,
        )  # fmt: skip


def find(sides: Sides, target: Target, timeout: float) -> list[Payload]:
    """Return the models of a source file: ``[{name, build, reason}]``."""
    answer = stateless(sides.torch, "find", target.place(torch=True), timeout)
    found: list[Payload] = answer["found"]
    return found


@dataclass(kw_only=True)
class Recorded(Session[ModelResult]):
    """A model whose partner convert wrote: names of Cells and tensors follow from the record."""

    target: Target
    names: Names
    pairing: Pairing = field(default_factory=lambda: Pairing((), (), ()))
    starts: list[Payload] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.name, self.key = self.target.name, self.target.key

    @property
    def classes(self) -> Mapping[str, tuple[str, ...]]:
        return {row["path"]: tuple(row["classes"]) for row in self.torch["modules"]}

    @property
    def paths(self) -> dict[str, str]:
        return {path: self.partner(path) for path in self.modules}

    def partner(self, path: str) -> str:
        return cell_path(path, self.classes, self.names)

    def open_torch(self) -> None:
        self.torch = self.ask(self.sides.torch, "build", {
            **self.target.place(torch=True), "build": self.target.build,
            "inputs": list(self.target.inputs), "seed": self.request.seed,
            "folder": str(self.folder / "weights"), "runs": bool(self.request.modes),
        })  # fmt: skip

    def open_mindspore(self) -> None:
        worker = self.sides.mindspore
        self.mindspore = self.ask(worker, "build", {
            **self.target.place(torch=False), "build": self.target.build,
            "seed": self.request.seed, "device": self.request.device,
        })  # fmt: skip
        held = [
            Held(row["place"], row["name"], row["same"], row["trained"], row["parameter"])
            for row in self.mindspore["tensors"]
        ]
        rows = {row["key"]: row for row in self.torch["tensors"]}
        tied = {key: row["tied"] for key, row in rows.items()}
        self.pairing = pair_all(tied, self.classes, held, self.names)
        parts = [
            {"key": pair.key, "place": pair.place, "layout": pair.layout,
             "array": rows[pair.key]["array"], "start": rows[pair.key]["start"],
             "spread": rows[pair.key]["spread"]}
            for pair in self.pairing.pairs if pair.place
        ]  # fmt: skip
        answer = self.ask(worker, "load", {"parts": parts, "folder": str(self.folder / "weights")})
        self.failed = answer["failed"]
        self.starts = self.starts or answer["starts"]

    def opening(self) -> tuple[list[Rung], list[Check]]:
        detail = f"{len(self.modules)} modules in torch, {len(self.cells)} Cells in MindSpore"
        if self.mindspore["note"]:
            detail += "; the package around this file cannot be imported: "
            detail += self.mindspore["note"]
        rungs = [Rung(name="import", mode="pynative", verdict=Verdict.PASS, checks=1,
                      detail=detail)]  # fmt: skip
        faults, starts = _fault_checks(self), _start_checks(self)
        rungs.append(_parameter_rung(self, faults))
        if starts:
            rungs.append(summed(START, "pynative", starts))
        return rungs, [*faults, *starts]

    def forward_rung(
        self, rung: str, mode: Mode, earlier: Sequence[Check]
    ) -> tuple[tuple[Check, ...], str]:
        trains = rung == "forward train"
        root_only = trains and mode == "graph"
        answers = self.forward(trains, mode, root_only)
        index = read_index(self.recorded(trains))
        checks = self.judged(rung, mode, answers, index)
        return (*checks, *(() if root_only else _never_ran(self, rung, mode, index))), ""

    def judged(
        self, rung: str, mode: Mode, answers: Sequence[Ran], index: Mapping[str, Any]
    ) -> tuple[Check, ...]:
        """Return one Check a module, in the order in which the calls ended."""
        local, cumulative = local_of(answers), inside_of(answers)
        order = order_of(index)
        checks: list[Check] = []
        failed = False
        for path in sorted(set(local) | set(cumulative), key=lambda p: order.get(p, 0)):
            one, other = local.get(path), cumulative.get(path)
            chosen = _decided(one, other, failed)
            failed = failed or chosen.verdict not in FINE
            calls = index["counts"].get(path, 0)
            notes = [chosen.detail, f"{calls} calls" if calls > 1 else "", index["note"]]
            checks.append(check_of(
                self, rung, mode, path, order.get(path, 0), chosen,
                local=merge(one).error if one else None, inside=_inside(other or []),
                detail="; ".join(note for note in notes if note),
            ))  # fmt: skip
        return tuple(checks)

    def gradient_checks(
        self, mode: Mode, whole: Sequence[Ran], local: Sequence[Ran],
        order: Mapping[str, int], blamed: frozenset[str],
    ) -> tuple[Check, ...]:  # fmt: skip
        """Return the checks; those of ``blamed`` modules, whose forward fails, count as they are.

        A wrong gradient elsewhere follows from these.
        """
        outer: dict[str, list[Measure]] = {}
        for answer in whole:
            outer.setdefault(owner(answer.name), []).append(answer.measure)
        inner = local_of(local)
        checks = []
        for path in sorted(set(outer) | set(inner), key=lambda p: order.get(p, len(order))):
            one, other = inner.get(path), outer.get(path)
            if other is None and merge(one or []).verdict in FINE:
                continue
            own = one is None and path in blamed
            chosen = _decided(one, other, not own and (bool(local) or bool(blamed - {path})))
            checks.append(check_of(
                self, "gradients", mode, path, order.get(path, len(order)), chosen,
                local=merge(one).error if one else None, inside=_inside(other or []),
            ))  # fmt: skip
        return tuple(checks)

    def counts_alone(self, path: str, measure: Measure) -> bool:
        return True

    def is_searched(self, mode: Mode, checks: Sequence[Check]) -> bool:
        """Return also True where kinks leave the whole model's gradient uncertain."""
        right = all(check.verdict in (*FINE, Verdict.NOT_RUN) for check in checks)
        loose = mode == "pynative" and any((check.own or 0.0) > LOOSE for check in checks)
        return loose or not right

    def result(self, rungs: Sequence[Rung], checks: Sequence[Check], seconds: float) -> ModelResult:
        target, pairing = self.target, self.pairing
        notes = [r.detail for r in rungs if r.verdict is Verdict.NOT_RUN and is_counted(r)]
        if self.mindspore["note"]:
            notes.append(rungs[0].detail)
        return ModelResult(
            name=target.name, source=target.source, build=target.build,
            inputs=tuple(self.torch["inputs"]),
            verdict=worst([rung.verdict for rung in rungs if is_counted(rung)]),
            guilty=first_guilty(self, checks), rungs=tuple(rungs), checks=tuple(checks),
            unmatched=_unmatched(self), weights_total=pairing.total,
            weights_matched=len(pairing.pairs) - len(self.failed),
            detail="; ".join(notes[:2]), options=arguments(self.request),
            weight_shapes={row["key"]: tuple(row["shape"]) for row in self.torch["tensors"]},
            seconds=round(seconds, 2), **self.weights(),
        )  # fmt: skip

    def weights(self) -> dict[str, Any]:
        """Return what converting a checkpoint reads of a result: names, layouts, parameters."""
        names = {row["place"]: row["name"] or row["place"] for row in self.mindspore["tensors"]}
        failed = {row["key"] for row in self.failed}
        rows = {row["key"]: row for row in self.torch["tensors"]}
        pairs = [p for p in self.pairing.pairs if p.key not in failed and rows[p.key]["saved"]]
        return {
            "weight_names": {p.key: names[p.place] if p.place else "" for p in pairs},
            "weight_layouts": {p.key: p.layout for p in self.pairing.pairs if p.layout},
            "parameters": tuple(
                key for key, row in rows.items() if row["kind"] == "parameter" and not row["tied"]
            ),
        }

    def refused(self, error: Exception, side: Literal["torch", "MindSpore"]) -> ModelResult:
        target = self.target
        if side == "torch":
            why = f"{target.source}: {target.build} in torch: {error}"
            step = to_install(str(error), target.torch_root, self.request.torch_python)
            step = step or "give --build and --input that run in torch"
            return target.failed(f"{why}. Next: {step}")
        place = error.failed.place if isinstance(error, WorkerError) else ""
        where = f" at {Path(place).name}" if place else ""
        why = f"{target.output}: {target.build} in MindSpore: {error}{where}"
        step = to_install(str(error), target.ms_root)
        step = step or "see the flags that convert left in this file"
        detail = f"{why}. Next: {step}"
        return target.failed(detail, Verdict.BLOCKED)


def _inside(measures: list[Measure]) -> Measure | None:
    """Return nothing where torch's own rounding leaves nothing to compare inside the model.

    So it is too where an in-place call has overwritten what the module returned.
    """
    found = merge(measures)
    return None if not measures or found.is_vague else found


def _decided(
    local: list[Measure] | None, cumulative: list[Measure] | None, failed: bool
) -> Measure:
    """Return the measure that counts: the local one; a cumulative failure alone is inherited."""
    one = merge(local) if local else None
    other = merge(cumulative) if cumulative else None
    if one is None and other is not None and other.is_vague:
        return other.called(Verdict.NOT_RUN)
    if one is None or (one.verdict is Verdict.NOT_RUN and other is not None):
        assert other is not None
        inherited = failed and other.verdict in NUMERIC
        return other.called(Verdict.PROPAGATED) if inherited else other
    if one.verdict in FINE and one.elements == 0:
        return one.called(Verdict.NOT_RUN) if one.is_vague else Measure.none(Why.NOTHING)
    if one.verdict not in FINE:
        return one
    if other is None or other.verdict in FINE:
        known = other is not None and other.verdict is not Verdict.NONDET
        verdicts = (one.verdict, other.verdict if other and known else one.verdict)
        return one.called(max(verdicts, key=ORDER.index))
    detail = f"right on torch's input; inside the model {other.detail}"
    return one.called(Verdict.PROPAGATED, detail)


def _start_checks(session: Recorded) -> tuple[Check, ...]:
    """Return one Check a module for the values that its tensors have when they are built."""
    found: dict[str, list[Measure]] = {}
    for row in session.starts:
        path, _, name = row["key"].rpartition(".")
        detail = f"{name} {row['detail']}" if row["detail"] else ""
        verdict = Verdict.PASS if row["same"] else Verdict.DIVERGED
        measure = Measure(verdict, row["elements"], row["error"], 0.0, row["limit"], detail)
        if row["elements"]:
            found.setdefault(path, []).append(measure)
    order = session.positions
    return tuple(
        check_of(session, START, "pynative", path, order.get(path, 0), merge(measures),
                 local=merge(measures).error)
        for path, measures in found.items()
    )  # fmt: skip


def _never_ran(
    session: Recorded, rung: str, mode: Mode, index: Mapping[str, Any]
) -> tuple[Check, ...]:
    """Return checks for modules whose forward did not run: listed, but they fail nothing."""
    never, start = Measure.none(Why.NEVER), len(index["calls"])
    return tuple(
        check_of(session, rung, mode, path, start + number, never)
        for number, path in enumerate(index["never"])
    )


def _parameter_rung(session: Recorded, faults: Sequence[Check]) -> Rung:
    pairing = session.pairing
    shapes = {row["key"]: row["shape"] for row in session.torch["tensors"]}
    copied = [pair.key for pair in pairing.pairs if pair.place]
    free = len(pairing.pairs) - len(copied)
    text = f"{len(copied)} of {pairing.total} tensors copied, hashes equal"
    text += f"; {free} have no partner by design" if free else ""
    return Rung(
        name=PARAMETERS, mode="pynative",
        verdict=worst([Verdict.PASS, *(check.verdict for check in faults)]),
        checks=pairing.total, elements=sum(math.prod(shapes[key]) for key in copied),
        detail="; ".join([check.detail for check in faults][:5]) or text,
    )  # fmt: skip


def _fault_checks(session: Recorded) -> tuple[Check, ...]:
    """Return a Check for each tensor that one side lacks, or that only one trains or saves."""
    order = session.positions
    back = {session.partner(path): path for path in session.modules}
    found = []
    for key, place, verdict, why in _faults(session):
        path = key.rpartition(".")[0] if key else back.get(place.rpartition(".")[0], "")
        measure = Measure(verdict, detail=f"{key or place}: {why}")
        found.append(check_of(session, PARAMETERS, "pynative", path, order.get(path, 0), measure))
    return tuple(found)


def _faults(session: Recorded) -> Iterator[tuple[str, str, Verdict, str]]:
    """Yield torch's key or else MindSpore's place, the verdict and the reason."""
    pairing = session.pairing
    for key, why in pairing.missing:
        yield key, "", Verdict.UNMATCHED, why
    for row in session.failed:
        yield row["key"], "", Verdict.UNMATCHED, row["why"]
    for held in pairing.extra:
        if held.trained:
            yield "", held.place, Verdict.UNMATCHED, "only MindSpore has it"
    torch = {row["key"]: row for row in session.torch["tensors"]}
    own = {row["place"]: row for row in session.mindspore["tensors"]}
    for pair in pairing.pairs:
        if pair.place not in own:
            continue
        one, other = torch[pair.key], own[pair.place]
        why = unlike_training(one, other, "in MindSpore")
        if why:
            yield pair.key, pair.place, Verdict.DIVERGED, why
        elif one["trained"] == other["trained"] and one["saved"] and not other["parameter"]:
            why = "torch saves it, in MindSpore it is no Parameter and is not saved"
            yield pair.key, pair.place, Verdict.UNMATCHED, why


def unlike_training(one: Mapping[str, Any], other: Mapping[str, Any], here: str) -> str:
    """Return why only one side trains a tensor; "" where both or none do."""
    if one["trained"] and not other["trained"]:
        state = "has requires_grad=False" if other["parameter"] else "is no Parameter"
        return f"torch trains it, {here} it {state}"
    if other["trained"] and not one["trained"]:
        state = "is frozen" if one["kind"] == "parameter" else "is a buffer"
        return f"in torch it {state}, {here} it is trained"
    return ""


def _unmatched(session: Recorded) -> tuple[str, ...]:
    pairing = session.pairing
    lines = [f"torch {key}: {why}" for key, why in pairing.missing]
    lines += [f"torch {row['key']}: {row['why']}" for row in session.failed]
    lines += [f"MindSpore {held.place}: torch has no such tensor" for held in pairing.extra]
    partners = session.paths
    lines += [f"torch {path}: no such Cell" for path, cell in partners.items()
              if cell not in session.cells]  # fmt: skip
    lines += [f"MindSpore {path}: no such module" for path in session.cells
              if path not in partners.values()]  # fmt: skip
    return tuple(lines)
