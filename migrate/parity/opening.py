"""In: both built models. Out: the rungs import and parameters, and what found its partner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from migrate.outcomes import Verdict
from migrate.parity.checks import check_of
from migrate.parity.compare import Measure, worst
from migrate.parity.session import Session
from migrate.result import Check, Rung

PARAMETERS = "parameters"


def import_rung(session: Session) -> Rung:
    both = len(session.modules), len(session.cells)
    detail = f"{both[0]} modules in torch, {both[1]} Cells in MindSpore"
    if session.mindspore["note"]:
        detail += f"; the package around this file cannot be imported: {session.mindspore['note']}"
    return Rung(name="import", mode="pynative", verdict=Verdict.PASS, checks=1, detail=detail)


def parameter_rung(session: Session, faults: Sequence[Check]) -> Rung:
    """The rung of the tensors; ``faults`` come from `parameter_checks`."""
    pairing = session.pairing
    shapes = {row["key"]: row["shape"] for row in session.torch["tensors"]}
    copied = [pair.key for pair in pairing.pairs if pair.place]
    free = len(pairing.pairs) - len(copied)
    elements = sum(_size(shapes[key]) for key in copied)
    text = f"{len(copied)} of {pairing.total} tensors copied, hashes equal"
    text += f"; {free} have no partner by design" if free else ""
    bad = [check.detail for check in faults]
    verdict = worst([Verdict.PASS, *(check.verdict for check in faults)])
    return Rung(
        name=PARAMETERS, mode="pynative", verdict=verdict,
        checks=pairing.total, elements=elements, detail="; ".join(bad[:5]) or text,
    )  # fmt: skip


def parameter_checks(session: Session) -> tuple[Check, ...]:
    """One Check for each tensor that one side lacks, or that only one side trains or saves."""
    order = {path: number for number, path in enumerate(session.modules)}
    back = {session.cell_of(path): path for path in session.modules}
    found = []
    for key, place, verdict, why in _faults(session):
        path = key.rpartition(".")[0] if key else back.get(place.rpartition(".")[0], "")
        measure = Measure(verdict, detail=f"{key or place}: {why}")
        found.append(check_of(session, PARAMETERS, "pynative", path, order.get(path, 0), verdict,
                              measure, None, None, None, measure.detail))  # fmt: skip
    return tuple(found)


def _faults(session: Session) -> Iterator[tuple[str, str, Verdict, str]]:
    """Torch's key or else MindSpore's place, the verdict and the reason."""
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
        if pair.place in own:
            for verdict, why in _unlike(torch[pair.key], own[pair.place]):
                yield pair.key, pair.place, verdict, why


def _unlike(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[tuple[Verdict, str]]:
    """What becomes of a tensor in torch (one) and does not in MindSpore, or the other way round."""
    if one["trained"] and not other["trained"]:
        state = "has requires_grad=False" if other["parameter"] else "is no Parameter"
        yield Verdict.DIVERGED, f"torch trains it, in MindSpore it {state}"
    elif other["trained"] and not one["trained"]:
        state = "is frozen" if one["kind"] == "parameter" else "is a buffer"
        yield Verdict.DIVERGED, f"in torch it {state}, MindSpore trains it"
    elif one["saved"] and not other["parameter"]:
        yield Verdict.UNMATCHED, "torch saves it, in MindSpore it is no Parameter and is not saved"


def _size(shape: Sequence[int]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size


def unmatched(session: Session) -> tuple[str, ...]:
    pairing = session.pairing
    lines = [f"torch {key}: {why}" for key, why in pairing.missing]
    lines += [f"torch {row['key']}: {row['why']}" for row in session.failed]
    lines += [f"MindSpore {held.place}: torch has no such tensor" for held in pairing.extra]
    partners = {session.cell_of(path) for path in session.modules}
    lines += [f"torch {path}: no such Cell" for path in session.modules
              if session.cell_of(path) not in session.cells]  # fmt: skip
    lines += [f"MindSpore {path}: no such module" for path in session.cells
              if path not in partners]  # fmt: skip
    return tuple(lines)


def weight_names(session: Session) -> dict[str, str]:
    names = {row["place"]: row["name"] or row["place"] for row in session.mindspore["tensors"]}
    failed = {row["key"] for row in session.failed}
    rows = {row["key"]: row for row in session.torch["tensors"]}
    pairs = [p for p in session.pairing.pairs if p.key not in failed and rows[p.key]["saved"]]
    return {pair.key: names[pair.place] if pair.place else "" for pair in pairs}


def parameters(session: Session) -> tuple[str, ...]:
    rows = session.torch["tensors"]
    return tuple(row["key"] for row in rows if row["kind"] == "parameter" and not row["tied"])
