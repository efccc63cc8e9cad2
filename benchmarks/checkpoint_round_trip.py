"""In: a list of models of installed packages. Out: how many checkpoints come back bit by bit.

    python benchmarks/checkpoint_round_trip.py LIST.json [--only REGEX] [--also PACKAGE]

LIST holds ``{"models": [{"id", "packages", "build"}]}``, or ids of the list models.json beside it;
``build`` is source that binds ``model``. Each package is converted as a whole; each model is built
on both sides, its state dict goes from torch to MindSpore and back, and every tensor is compared.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import re
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from migrate.parity.checkpoint import Conversion, convert_with
from migrate.parity.ladder import verify_with
from migrate.parity.request import VerifyRequest
from migrate.parity.session import Sides, open_sides
from migrate.parity.worker import WorkerError, WorkerLost
from migrate.records.outcomes import Problem
from migrate.records.result import ModelResult
from migrate.workspace import outputs, record
from migrate.workspace.outputs import Output
from migrate.workspace.project import Request, convert

TIMEOUT = 300.0


def entries(path: Path, only: str) -> list[dict[str, Any]]:
    """The models of a list."""
    found = json.loads(path.read_text(encoding="utf-8"))["models"]
    if any(isinstance(one, str) for one in found):
        whole = json.loads(path.with_name("models.json").read_text(encoding="utf-8"))["models"]
        by_id = {one["id"]: one for one in whole}
        found = [by_id[one] if isinstance(one, str) else one for one in found]
    return [one for one in found if re.search(only, one["id"])]


def converted(packages: tuple[str, ...], models: list[dict[str, Any]], work: Path) -> Path:
    """Copy packages and a file for each model to a folder and convert it; the record's folder."""
    source, output = work / "torch", work / "mindspore"
    for name in packages:
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            raise SystemExit(f"{name} is not installed; pip install it and run this again")
        ignored = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(spec.submodule_search_locations[0], source / name, ignore=ignored)
    for number, model in enumerate(models):
        text = _module(model["build"])
        (source / f"model_{number}.py").write_text(text, encoding="utf-8")
    done = convert(Request(source, output, jobs=1))
    outputs.write((*done.outputs, Output(record.NAME, record.text(done.record))), output)
    return output


def _module(build: str) -> str:
    """Source with a function that builds the model; torch is named so that it is converted."""
    tree = ast.parse(build)
    imports = [one for one in tree.body if isinstance(one, ast.Import | ast.ImportFrom)]
    rest = [one for one in tree.body if one not in imports]
    head = "\n".join(["from torch import nn", *map(ast.unparse, imports)])
    body = textwrap.indent("\n".join(map(ast.unparse, rest)), "    ")
    return f"{head}\n\n\ndef made() -> nn.Module:\n{body}\n    return model\n"


def round_trip(sides: Sides, output: Path, file: str, build: str, folder: Path) -> str:
    """What came back of one model's state dict, or what went wrong."""
    located = record.locate(output)
    request = VerifyRequest(
        located.path, output, builds=(build,), file=file, modes=(), timeout=TIMEOUT
    )
    model = verify_with([sides], request, lambda line: None).models[0]
    if not model.weight_names:
        return f"FAILED {model.detail}"
    first, between, back = (folder / name for name in ("first.pth", "ms.ckpt", "back.pth"))
    _saved(sides, located.record.source_root, model, first)
    there = convert_with(sides, Conversion(first, between, model, timeout=TIMEOUT), folder)
    if not there.files:
        return (
            f"FAILED unknown {list(there.account.unknown)[:3]}, absent {there.account.absent[:3]}"
        )
    again = convert_with(sides, Conversion(between, back, model, timeout=TIMEOUT), folder)
    if not again.files:
        return f"FAILED on the way back: {list(again.account.unknown)[:3]}"
    return _compared(sides, first, back, model)


def _saved(sides: Sides, root: str, model: ModelResult, target: Path) -> None:
    """Write torch's state dict with the numbers the model starts with."""
    folder = target.with_suffix(".arrays")
    built = sides.torch.call(
        "build",
        {"root": root, "package": "", "file": model.source, "build": model.build,
         "inputs": [], "seed": 1, "folder": str(folder), "runs": False},
        TIMEOUT,
    )  # fmt: skip
    rows = [row for row in built["tensors"] if row["saved"]]
    leaves = [{"t": "tensor", "key": row["array"], "dtype": row["dtype"], "shape": row["shape"]}
              for row in rows]  # fmt: skip
    tree = {"t": "dict", "keys": [row["key"] for row in rows], "items": leaves}
    sides.torch.call(
        "write_file",
        {"tree": tree, "arrays": str(folder), "folder": str(target.parent), "name": target.name,
         "shard": 0},
        TIMEOUT,
    )  # fmt: skip
    shutil.rmtree(folder)


def _compared(sides: Sides, first: Path, back: Path, model: ModelResult) -> str:
    """Compare two files of torch, tensor by tensor, dtype, shape and bytes."""
    import torch

    one, other = (torch.load(path, weights_only=True) for path in (first, back))
    apart = [key for key in one if not model.weight_names.get(key)]
    same = [
        key for key in one if key in other and other[key].dtype is one[key].dtype
        and other[key].numpy().tobytes() == one[key].numpy().tobytes()
        and other[key].shape == one[key].shape
    ]  # fmt: skip
    lost = sorted(one.keys() - set(same) - set(apart)) + sorted(other.keys() - one.keys())
    if lost or any(not key.endswith("num_batches_tracked") for key in apart):
        return f"FAILED {lost[:3] or apart[:3]}"
    return f"SAME {len(same)} tensors, {len(apart)} counters without partner"


def run(models: list[dict[str, Any]], also: list[str], work: Path) -> Iterator[tuple[str, str]]:
    """(id, result) of every model, package by package."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for model in models:
        groups.setdefault(tuple(dict.fromkeys([*model["packages"], *also])), []).append(model)
    for number, (packages, members) in enumerate(groups.items()):
        folder = work / str(number)
        folder.mkdir(parents=True)
        output = converted(packages, members, folder)
        request = VerifyRequest(output / record.NAME, output, timeout=TIMEOUT)
        sides = open_sides(request, folder, 0)
        try:
            for place, model in enumerate(members):
                with tempfile.TemporaryDirectory(dir=folder) as scratch:
                    yield model["id"], _tried(sides, output, f"model_{place}.py", Path(scratch))
        finally:
            sides.stop()


def _tried(sides: Sides, output: Path, file: str, scratch: Path) -> str:
    try:
        return round_trip(sides, output, file, "made()", scratch)
    except (Problem, WorkerError, WorkerLost) as error:
        return f"FAILED {error}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("list", type=Path)
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--also", action="append", default=[], metavar="PACKAGE",
                        help="convert it along: what the models derive from")  # fmt: skip
    parser.add_argument("--keep", type=Path, metavar="DIR")
    args = parser.parse_args()
    good = total = 0
    with tempfile.TemporaryDirectory(prefix="round-trip-") as scratch:
        for name, result in run(
            entries(args.list, args.only), args.also, args.keep or Path(scratch)
        ):
            print(f"{name}: {result}", flush=True)
            good, total = good + result.startswith("SAME"), total + 1
    print(f"{good} of {total} checkpoints come back bit by bit")
    return 0 if good == total else 1


if __name__ == "__main__":
    sys.exit(main())
