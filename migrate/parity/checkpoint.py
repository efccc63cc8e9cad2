"""In: a torch checkpoint and a verified model. Out: a MindSpore checkpoint with the same weights.

The names are those that `verify` proved by copying every tensor and comparing hashes, so a
checkpoint is converted without guessing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from migrate.parity.request import VerifyError
from migrate.parity.worker import Payload, Worker, WorkerError, WorkerLost, this_python
from migrate.result import ModelResult


@dataclass(frozen=True)
class Converted:
    """What became of the tensors: ``copied`` were written, ``dropped`` need no partner,
    ``unknown`` stand in the file but not in the model, ``absent`` in the model only.
    """

    copied: tuple[str, ...]
    dropped: tuple[str, ...]
    unknown: tuple[str, ...]
    absent: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """Pairs to write as (key in the file, Parameter name, layout), and what `Converted` lists."""

    pairs: tuple[tuple[str, str, str], ...]
    result: Converted


def plan(keys: Mapping[str, str], model: ModelResult) -> Plan:
    """Pair the keys of a checkpoint; ``keys`` maps the model's key to the key in the file."""
    names = model.weight_names
    known = {key: name for key, name in names.items() if key in keys}
    first: dict[str, str] = {}
    for key, name in known.items():
        first.setdefault(name, key)  # tied tensors are one Parameter
    pairs = tuple(
        (keys[key], name, model.weight_layouts.get(key, ""))
        for key, name in known.items() if name and first[name] == key
    )  # fmt: skip
    written = {*keys, *(key for key, name in names.items() if name in first)}
    return Plan(pairs, Converted(
        copied=tuple(key for key, name in known.items() if name),
        dropped=tuple(key for key, name in known.items() if not name),
        unknown=tuple(key for key in keys if key not in names),
        absent=tuple(key for key, name in names.items() if name and key not in written),
    ))  # fmt: skip


def strip_prefix(keys: list[str]) -> dict[str, str]:
    """Keys as the model has them: ``module.`` of DataParallel (on every key) is left out."""
    wrapped = bool(keys) and all(key.startswith("module.") for key in keys)
    return {key.removeprefix("module.") if wrapped else key: key for key in keys}


def convert_checkpoint(
    source: Path,
    target: Path,
    model: ModelResult,
    torch_python: Path | None = None,
    timeout: float = 600.0,
) -> Converted:
    """Write the tensors of ``source`` (.pth, .pt, .bin or .safetensors) to ``target`` (.ckpt).

    Raises VerifyError when the file cannot be read, holds none of the model's tensors, or the
    model was never verified.
    """
    if not model.weight_names:
        raise VerifyError(model.build, "its weight names are not known", "verify did not get to "
                          "copy its weights", "run torch2ms verify first")  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="torch2ms_") as folder:
        scratch = Path(folder)
        torch = Worker("torch_side", torch_python or this_python(), scratch)
        mindspore = Worker("mindspore_side", this_python(), scratch)
        try:
            read = torch.call(
                "read_checkpoint", {"file": str(source.resolve()), "folder": folder}, timeout
            )
            planned = _planned(source, read, model)
            rows = [{"array": read["arrays"][key], "name": name, "layout": layout}
                    for key, name, layout in planned.pairs]  # fmt: skip
            payload = {"rows": rows, "folder": folder, "file": str(target.resolve())}
            mindspore.call("write_checkpoint", payload, timeout)
        except (WorkerError, WorkerLost) as error:
            raise VerifyError(
                str(source), "the checkpoint cannot be converted", str(error),
                "save it in torch with torch.save(model.state_dict(), ...)",
            ) from error  # fmt: skip
        finally:
            torch.stop()
            mindspore.stop()
    return planned.result


def _planned(source: Path, read: Payload, model: ModelResult) -> Plan:
    planned = plan(strip_prefix(list(read["arrays"])), model)
    if not planned.pairs:
        some = ", ".join(list(read["arrays"])[:3]) or "no tensor at all"
        raise VerifyError(
            str(source), f"none of its tensors belongs to {model.build}", f"it holds {some}",
            "verify the model that this checkpoint was saved from",
        )  # fmt: skip
    return planned
