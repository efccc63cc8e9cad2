"""Name the first guilty Cell of a model, with both source lines and a cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from migrate.parity.checks import (
    CHECKPOINT,
    FORWARD,
    GUILTY,
    MAGNITUDES,
    PARAMETERS,
    START,
    TRAINING,
)
from migrate.parity.first_call import examined
from migrate.parity.reproduction import write_reproduction
from migrate.parity.worker import Payload
from migrate.records.result import Check, Guilty

if TYPE_CHECKING:
    from migrate.parity.recorded import Recorded

_MODES = ("pynative", "graph")
_RUNGS = (*FORWARD, "gradients")
RUNGS = (
    (PARAMETERS, "pynative"), *((rung, "pynative") for rung in _RUNGS), (MAGNITUDES, "pynative"),
    *((rung, "graph") for rung in _RUNGS), *((rung, mode) for mode in _MODES for rung in TRAINING),
    (CHECKPOINT, "pynative"), (START, "pynative"),
)  # fmt: skip

# torch's name of a setting -> MindSpore's names for the same thing
SAME = {
    "groups": ("group", "groups"), "p": ("p",), "negative_slope": ("alpha", "negative_slope"),
    "normalized_shape": ("normalized_shape",), "momentum": ("momentum",), "eps": ("eps",
    "epsilon"), "num_embeddings": ("vocab_size",), "embedding_dim": ("embedding_size",),
    "dim": ("axis", "dim"), "in_features": ("in_channels",), "out_features": ("out_channels",),
}  # fmt: skip
SKIPPED = ("training", "padding_mode", "padding", "inplace", "dtype", "device")


def first_failing(checks: Sequence[Check]) -> Check | None:
    """Return the check of the first Cell, by rung and execution order, whose own check fails.

    All checks of the rung of the parameters are faults, or say that there are none.
    """
    for rung, mode in RUNGS:
        failing = [
            check for check in checks
            if (check.rung, check.mode) == (rung, mode) and check.verdict in GUILTY
        ]  # fmt: skip
        if failing:
            return min(failing, key=lambda check: check.order)
    return None


def first_guilty(session: Recorded, checks: Sequence[Check]) -> Guilty | None:
    """Return the first Cell, by execution order and deepest, whose own check fails."""
    faults = [check for check in checks if check.rung == PARAMETERS]
    check = min(faults, key=lambda check: check.order) if faults else first_failing(checks)
    if check is None:
        return None
    module = session.modules.get(check.torch_path, {})
    cell = session.cells.get(check.mindspore_path, {})
    differences = setting_differences(module.get("settings", {}), cell.get("settings", {}))
    inner, cure = examined(session, check)
    return Guilty(
        rung=check.rung, mode=check.mode,
        torch=f"{check.torch_path or 'the whole model'} ({check.torch_class})",
        mindspore=f"{check.mindspore_path or 'the whole model'} ({check.mindspore_class})",
        torch_place=place_of(module), mindspore_place=place_of(cell),
        call=line_of([session.target.ms_root], cell),
        cause=cause_of(cure, *differences, inner.told, check.detail),
        torch_call=inner.torch, mindspore_call=inner.mindspore,
        reproduction=write_reproduction(session, check),
    )  # fmt: skip


def cause_of(cure: str, *causes: str) -> str:
    """Return all that is known of a cause, what cures it first."""
    passes = f"it passes with {cure}" if cure else ""
    return "; ".join(text for text in (passes, *causes) if text)


def place_of(row: Payload) -> str:
    """Return where a Module or Cell was made: file and line."""
    return f"{row['file']}:{row['line']}" if row.get("file") else ""


def line_of(folders: Sequence[str | Path], row: Payload) -> str:
    """Return the line of source that made a Cell."""
    files = [Path(folder) / row["file"] for folder in folders] if row.get("file") else []
    for path in files:
        if path.is_file():
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            number = int(row["line"])
            return lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return ""


def setting_differences(torch: Mapping[str, Any], mindspore: Mapping[str, Any]) -> list[str]:
    """Settings that both sides have under a known name, with different values."""
    found = []
    for name, value in torch.items():
        if name in SKIPPED:
            continue
        for other in SAME.get(name, (name,)):
            if other in mindspore and not _equal(value, mindspore[other]):
                found.append(f"{other} is {mindspore[other]!r} where torch has {name}={value!r}")
    return found


def _equal(torch: Any, mindspore: Any) -> bool:
    one, other = _plain(torch), _plain(mindspore)
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return abs(one - other) <= 1e-6 * max(abs(one), 1e-30)
    return bool(one == other)


def _plain(value: Any) -> Any:
    """(2, 2) and 2 are the same kernel size, and so are lists and tuples."""
    if isinstance(value, (list, tuple)):
        items = tuple(value)
        return items[0] if items and all(item == items[0] for item in items) else items
    return value
