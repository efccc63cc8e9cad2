"""In: all checks of one model. Out: the first guilty Cell, with both source lines and a cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from migrate.outcomes import Verdict
from migrate.parity.checks import MAGNITUDES
from migrate.parity.first_call import FirstCall, first_call, remedy
from migrate.parity.reproduction import write_reproduction
from migrate.parity.session import Session
from migrate.result import Check, Guilty

GUILTY = (Verdict.DIVERGED, Verdict.SHAPE, Verdict.DTYPE, Verdict.BLOCKED)
RUNGS = (
    ("parameters", "pynative"),
    ("forward eval", "pynative"), ("forward train", "pynative"), ("gradients", "pynative"),
    (MAGNITUDES, "pynative"),
    ("forward eval", "graph"), ("forward train", "graph"), ("gradients", "graph"),
    *((rung, mode) for mode in ("pynative", "graph")
      for rung in ("loss", "optimizer step", "optimizer state", "steps")),
    ("checkpoint", "pynative"),
    ("initial values", "pynative"),
)  # fmt: skip

# torch's name of a setting -> MindSpore's names for the same thing
SAME = {
    "groups": ("group", "groups"), "p": ("p",), "negative_slope": ("alpha", "negative_slope"),
    "normalized_shape": ("normalized_shape",), "momentum": ("momentum",), "eps": ("eps",
    "epsilon"), "num_embeddings": ("vocab_size",), "embedding_dim": ("embedding_size",),
    "dim": ("axis", "dim"), "in_features": ("in_channels",), "out_features": ("out_channels",),
}  # fmt: skip
SKIPPED = ("training", "padding_mode", "padding", "inplace", "dtype", "device")


def first_guilty(session: Session, checks: Sequence[Check]) -> Guilty | None:
    """The first Cell, by execution order and deepest, whose own check fails; None if none does."""
    for rung, mode in RUNGS:
        failing = [
            check for check in checks
            if (check.rung, check.mode) == (rung, mode)
            and (check.verdict in GUILTY or check.rung == "parameters")
        ]  # fmt: skip
        if failing:
            return _guilty(session, min(failing, key=lambda check: check.order))
    return None


def _guilty(session: Session, check: Check) -> Guilty:
    module = session.modules.get(check.torch_path, {})
    cell = session.cells.get(check.mindspore_path, {})
    differences = setting_differences(module.get("settings", {}), cell.get("settings", {}))
    inner = first_call(session, check) or FirstCall()
    told = f"MindSpore's numbers are {inner.relation}" if inner.relation else ""
    cure = remedy(session, check, inner)
    passes = f"it passes with {cure}" if cure else ""
    cause = "; ".join(text for text in (passes, *differences, told, check.detail) if text)
    return Guilty(
        rung=check.rung, mode=check.mode,
        torch=_named(check.torch_path, check.torch_class),
        mindspore=_named(check.mindspore_path, check.mindspore_class),
        torch_place=_place(module), mindspore_place=_place(cell),
        call=_line(session.target.ms_root, cell), cause=cause,
        torch_call=inner.torch, mindspore_call=inner.mindspore,
        reproduction=write_reproduction(session, check),
    )  # fmt: skip


def _named(path: str, kind: str) -> str:
    return f"{path or 'the whole model'} ({kind})"


def _place(row: Mapping[str, Any]) -> str:
    return f"{row['file']}:{row['line']}" if row.get("file") else ""


def _line(root: Path, row: Mapping[str, Any]) -> str:
    if not row.get("file"):
        return ""
    lines = (root / row["file"]).read_text(encoding="utf-8", errors="replace").splitlines()
    number = int(row["line"])
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""


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
