"""In: both built models. Out: the rungs import and parameters, and what found its partner."""

from __future__ import annotations

from collections.abc import Sequence

from migrate.outcomes import Verdict
from migrate.parity.session import Session
from migrate.result import Rung


def import_rung(session: Session) -> Rung:
    both = len(session.modules), len(session.cells)
    detail = f"{both[0]} modules in torch, {both[1]} Cells in MindSpore"
    if session.mindspore["note"]:
        detail += f"; the package around this file cannot be imported: {session.mindspore['note']}"
    return Rung(name="import", mode="pynative", verdict=Verdict.PASS, checks=1, detail=detail)


def parameter_rung(session: Session) -> Rung:
    pairing, failed = session.pairing, session.failed
    shapes = {row["key"]: row["shape"] for row in session.torch["tensors"]}
    bad = [f"{key}: {why}" for key, why in pairing.missing]
    bad += [f"{row['key']}: {row['why']}" for row in failed]
    bad += [f"{held.place}: only MindSpore has it" for held in pairing.extra if held.trained]
    copied = [pair.key for pair in pairing.pairs if pair.place]
    free = len(pairing.pairs) - len(copied)
    elements = sum(_size(shapes[key]) for key in copied)
    text = f"{len(copied)} of {pairing.total} tensors copied, hashes equal"
    text += f"; {free} have no partner by design" if free else ""
    verdict = Verdict.UNMATCHED if bad else Verdict.PASS
    return Rung(
        name="parameters", mode="pynative", verdict=verdict, checks=pairing.total,
        elements=elements, detail="; ".join(bad[:5]) or text,
    )  # fmt: skip


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
