"""In: a verified model. Out: its checkpoint, tensor by tensor: both names, shape, round trip."""

from __future__ import annotations

from dataclasses import dataclass

from migrate.outcomes import Verdict
from migrate.result import ModelResult, Rung

CHECKPOINT = "checkpoint"
MOST = 1000
NONE = "no partner by design"


@dataclass(frozen=True)
class TensorRow:
    """``verdict`` is empty where nothing had to come back; ``text`` says why, or what is wrong."""

    torch: str
    mindspore: str
    shape: str
    layout: str
    verdict: str
    text: str


@dataclass(frozen=True)
class Tensors:
    """All rows, those with a fault first; ``back`` of ``sent`` tensors came back bit by bit."""

    rows: tuple[TensorRow, ...]
    sent: int
    back: int
    note: str

    @property
    def fine(self) -> bool:
        return not self.note and self.sent == self.back


def tensors(model: ModelResult) -> Tensors:
    """The rows in torch's order, those that did not come back in front."""
    rung = next((rung for rung in model.rungs if rung.name == CHECKPOINT), None)
    names = dict.fromkeys((*model.weight_names, *(rung.faults if rung else ())))
    rows = [_row(model, key, rung) for key in names]
    bad = [row for row in rows if row.verdict not in ("", Verdict.PASS.value)]
    fine = [row for row in rows if row.verdict in ("", Verdict.PASS.value)]
    sent = sum(bool(row.verdict) for row in rows)
    return Tensors((*bad, *fine), sent, sent - len(bad), _note(rung))


def _note(rung: Rung | None) -> str:
    if rung is None:
        return "the round trip was not made"
    if rung.verdict in (Verdict.NOT_RUN, Verdict.BLOCKED):
        return rung.detail or "the round trip was not made"
    return ""


def _row(model: ModelResult, key: str, rung: Rung | None) -> TensorRow:
    name = model.weight_names.get(key, "")
    shape = model.weight_shapes.get(key)
    fault = rung.faults.get(key, "") if rung else ""
    if fault:
        verdict = Verdict.DIVERGED if name else Verdict.UNMATCHED
    elif not name or rung is None or _note(rung):
        verdict = None
    else:
        verdict = Verdict.PASS
    return TensorRow(
        torch=key, mindspore=name, shape="?" if shape is None else _shape(shape),
        layout=model.weight_layouts.get(key, ""), verdict=verdict.value if verdict else "",
        text=fault or ("" if name else NONE),
    )  # fmt: skip


def _shape(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) or "scalar"
