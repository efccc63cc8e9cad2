"""In: a session whose rungs are climbed. Out: a folder with weights, inputs and references.

model.json says what to build and which Cell is whose partner; each rung has a folder with
index.json and arrays.safetensors (complex numbers, which that format lacks, as .npy).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from safetensors.numpy import save_file

from migrate.parity.discover import without_mode
from migrate.parity.exchange import PACK, ArrayStore, Spec, read_index
from migrate.parity.recorded import Recorded
from migrate.records.outcomes import Verdict
from migrate.records.result import Check

FOLDERS = {"forward eval": "eval", "forward train": "train"}


def write_fixtures(session: Recorded, checks: Sequence[Check], folder: Path) -> None:
    """Write all that the tests of one model read. Raises WorkerError and WorkerLost."""
    folder.mkdir(parents=True)
    model = _model(session)
    text = json.dumps(model, indent=1) + "\n"
    (folder / "model.json").write_text(text, encoding="utf-8")
    weights = {
        "tensors": [{"t": "tensor", "key": row["array"]} for row in session.torch["tensors"]]
    }
    _pack(session.folder / "weights", folder / "weights", weights)
    rungs = {check.rung for check in checks}
    for rung, name in FOLDERS.items():
        if rung in rungs:
            source = session.recorded(training=rung == "forward train")
            _pack(source, folder / name, _trimmed(read_index(source), rung, checks))
    if "gradients" in rungs:
        source = session.differentiated(local=False)
        _pack(source, folder / "gradients", read_index(source))
    if "loss" in rungs:
        source = session.trained()
        _pack(source, folder / "training", read_index(source))


def _model(session: Recorded) -> Spec:
    target, request = session.target, session.request
    rows = {row["key"]: row for row in session.torch["tensors"]}
    return {
        "package": target.ms_package, "file": target.output, "build": without_mode(target.build),
        "seed": request.seed,
        "strictness": session.strictness,
        "loss": request.loss[-1] if request.loss else "",
        "optimizer": request.optimizer[-1] if request.optimizer else "",
        "paths": session.paths,
        "missing": [f"{key}: {why}" for key, why in session.pairing.missing],
        "pairs": [
            {"key": pair.key, "place": pair.place, "layout": pair.layout,
             "array": rows[pair.key]["array"], "start": "", "spread": None}
            for pair in session.pairing.pairs if pair.place
        ],
        "torch": {
            "package": target.package, "file": target.source, "build": target.build,
            "tensors": [{"key": key, "array": row["array"]} for key, row in rows.items()],
        },
    }  # fmt: skip


def _trimmed(index: Spec, rung: str, checks: Sequence[Check]) -> Spec:
    """Only the calls that a test makes, and of them what each Cell gives by itself."""
    wanted = {c.torch_path for c in checks if c.rung == rung and c.verdict is not Verdict.NOT_RUN}
    calls = [
        {name: part for name, part in call.items() if name != "cumulative"}
        for call in index["calls"] if call["path"] in wanted | {""}
    ]  # fmt: skip
    return {"training": index["training"], "calls": calls}


def _pack(source: Path, target: Path, index: Spec) -> None:
    """The index, and of the arrays those that it names."""
    target.mkdir()
    store = ArrayStore(source)
    arrays = {key: store.get(key) for key in dict.fromkeys(_keys(index))}
    plain = {key: array.copy(order="C") for key, array in arrays.items() if array.dtype.kind != "c"}
    save_file(plain, target / PACK)
    for key in arrays.keys() - plain.keys():
        (target / f"{key}.npy").write_bytes((source / f"{key}.npy").read_bytes())
    (target / "index.json").write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")


def _keys(part: Any) -> Iterator[str]:
    """The keys of all arrays that a description names, wherever they stand."""
    if isinstance(part, dict):
        if part.get("t") == "tensor":
            yield part["key"]
        inner: Sequence[Any] = list(part.values())
    else:
        inner = part if isinstance(part, list) else ()
    for item in inner:
        yield from _keys(item)
