"""In: requests of the verifying process. Out: answers about the original torch source, and files.

Runs as a process of its own, in the user's torch environment: needs torch and numpy only. The tree
of a file is a description of `exchange` whose tensors lie bit by bit as .npy files in a folder:
what numpy lacks (bfloat16, float8) as whole numbers of the same width.
"""

from __future__ import annotations

import ast
import inspect
import json
import math
import pickle
import platform
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from migrate.parity import importing
from migrate.parity.discover import candidates
from migrate.parity.exchange import Array, ArrayStore, Spec, decode, encode, leaves
from migrate.parity.importing import Tree
from migrate.parity.masks import choose_masks
from migrate.parity.messages import Emit, Payload, serve
from migrate.parity.noise import nudge_model
from migrate.parity.request import Draw, InputSpec, parse_input
from migrate.parity.torch_draws import Draws, recurrent_rates, share_masks, silence
from migrate.parity.torch_forward import CONTAINERS, record
from migrate.parity.torch_gradients import record_gradients
from migrate.parity.torch_model import (
    declare,
    enliven,
    find_inputs,
    initial,
    is_missing_operator,
    value,
    write_weights,
)
from migrate.parity.torch_record import Twins, change, dtype_name, inner_calls
from migrate.parity.torch_regimes import dropped_paths, record_regimes
from migrate.parity.torch_script import run_script
from migrate.parity.torch_training import Task, record_training

SAFE = ".safetensors"
INDEX = ".index.json"
_BITS = {1: torch.uint8, 2: torch.int16}


def read_file(request: Payload) -> Payload:
    """``{"tree": ...}``: what a file (or the files that an index names) holds; no code runs."""
    store = ArrayStore(Path(request["folder"]))

    def tensor(item: Any) -> Spec | None:
        if not isinstance(item, torch.Tensor):
            return None
        if item.layout is not torch.strided or item.is_quantized or item.is_meta:
            return {"t": "opaque", "why": "a sparse, quantised or empty (meta) tensor"}
        shape = list(item.shape)
        return {"t": "tensor", "key": store.put(bits(item)), "dtype": dtype_name(item),
                "shape": shape}  # fmt: skip

    return {"tree": encode(_loaded(Path(request["file"])), tensor)}


def _loaded(file: Path) -> Any:
    if file.name.endswith(INDEX):
        return OrderedDict(_of_shards(file))
    if file.suffix == SAFE:
        from safetensors.torch import load_file

        return load_file(file)
    try:
        return torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        asks = getattr(torch.serialization, "get_unsafe_globals_in_checkpoint", None)
        found = asks(file) if asks else []
        if found:
            raise PermissionError(f"it runs code when it is read: {', '.join(found)}") from error
        raise ValueError("it is damaged, or no file of torch.save") from error


def _of_shards(index: Path) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors that an index names, shard by shard."""
    named = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
    for name in sorted(set(named.values())):
        if Path(name).name != name or name.endswith(INDEX):
            raise PermissionError(f"{name!r} is no file beside the index")
        held = _loaded(index.with_name(name))
        wanted = [key for key, shard in named.items() if shard == name]
        missing = [key for key in wanted if key not in held]
        if missing:
            raise ValueError(f"{name} does not hold {missing[0]}")
        yield from ((key, held[key]) for key in wanted)


def bits(tensor: torch.Tensor) -> Array:
    """Return the numbers as numpy has them, else whole numbers of the same bits."""
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    try:
        return np.asarray(plain.numpy()).reshape(tuple(plain.shape))
    except TypeError:
        whole = plain.reshape(-1).view(_BITS[plain.element_size()])
        return whole.numpy().reshape(tuple(plain.shape))


def _tensor(spec: Spec, store: ArrayStore) -> torch.Tensor:
    plain = torch.from_numpy(store.get(spec["key"]))
    dtype = getattr(torch, spec["dtype"])
    return plain if plain.dtype is dtype else plain.reshape(-1).view(dtype).reshape(spec["shape"])


def write_file(request: Payload) -> Payload:
    """Write a tree to a file in a folder; ``{"files": [names]}``, an index last.

    Tensors of one key share their memory, as tied weights do. What was written is read again and
    compared bit by bit. ``shard`` (bytes; 0: no limit) splits a state dict into several files.
    """
    store = ArrayStore(Path(request["arrays"]))
    made: dict[str, torch.Tensor] = {}

    def tensor(spec: Spec) -> torch.Tensor:
        return made.setdefault(spec["key"], _tensor(spec, store))

    value = decode(request["tree"], tensor, lambda name: getattr(torch, name))
    folder, name = Path(request["folder"]), request["name"]
    files = _write_shards(value, folder, name, request["shard"])
    _compare(request["tree"], folder / files[-1], store)
    return {"files": files}


def _write(value: Any, file: Path) -> None:
    if file.suffix != SAFE:
        torch.save(value, file)
        return
    from safetensors.torch import save_file

    apart = {key: one.clone(memory_format=torch.contiguous_format) for key, one in value.items()}
    save_file(apart, file, metadata={"format": "pt"})


def _write_shards(value: Any, folder: Path, name: str, limit: int) -> list[str]:
    groups: list[dict[str, Any]] = [{}]
    size = 0
    for key, one in value.items() if limit else ():
        length = one.numel() * one.element_size()
        if groups[-1] and size + length > limit:
            groups.append({})
            size = 0
        groups[-1][key] = one
        size += length
    if len(groups) == 1:
        _write(value, folder / name)
        return [name]
    stem, suffix = Path(name).stem, Path(name).suffix
    names = [f"{stem}-{n:05d}-of-{len(groups):05d}{suffix}" for n in range(1, len(groups) + 1)]
    for shard, group in zip(names, groups, strict=True):
        _write(group, folder / shard)
    total = sum(one.numel() * one.element_size() for one in value.values())
    where = {key: shard for shard, group in zip(names, groups, strict=True) for key in group}
    index = {"metadata": {"total_size": total}, "weight_map": where}
    (folder / f"{name}{INDEX}").write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
    return [*names, f"{name}{INDEX}"]


def _compare(tree: Spec, file: Path, store: ArrayStore) -> None:
    wrote: dict[str, Spec] = {p: leaf for p, leaf in leaves(tree) if leaf["t"] == "tensor"}
    found: dict[str, torch.Tensor] = {}

    def tensor(item: Any) -> Spec | None:
        if not isinstance(item, torch.Tensor):
            return None
        found[str(len(found))] = item
        return {"t": "tensor", "key": str(len(found) - 1)}

    back = {p: leaf for p, leaf in leaves(encode(_loaded(file), tensor)) if leaf["t"] == "tensor"}
    if back.keys() != wrote.keys():
        raise OSError(f"{file.name} does not hold what was written to it")
    for place, leaf in back.items():
        if bits(found[leaf["key"]]).tobytes() != store.get(wrote[place]["key"]).tobytes():
            raise OSError(f"{file.name}: {place} was not written as it is")


def save_state(model: torch.nn.Module, request: Payload) -> Payload:
    """Write the state dict to ``file``; the names of its tensors."""
    state = model.state_dict()
    torch.save(state, Path(request["file"]))
    return {"keys": [key for key, one in state.items() if isinstance(one, torch.Tensor)]}


def compare_state(model: torch.nn.Module, request: Payload) -> Payload:
    """Compare the ``file`` that came back with the model, as `load_state_dict` would take it.

    ``{"faults": {name: reason}, "extra": [names], "elements": {name: numbers compared}}``
    """
    state = torch.load(request["file"], map_location="cpu", weights_only=True)
    faults: dict[str, str] = {}
    elements: dict[str, int] = {}
    for key, wanted in model.state_dict().items():
        if not isinstance(wanted, torch.Tensor) or key in request["free"]:
            continue
        elements[key] = wanted.numel()
        faults[key] = _fault(state.get(key), wanted)
    return {
        "faults": {key: why for key, why in faults.items() if why},
        "extra": [key for key in state if key not in model.state_dict()],
        "elements": elements,
    }


def _fault(back: object, wanted: torch.Tensor) -> str:
    if not isinstance(back, torch.Tensor):
        return "does not come back"
    if back.shape != wanted.shape:
        return f"comes back as {tuple(back.shape)} instead of {tuple(wanted.shape)}"
    one, other = bits(back.to(wanted.dtype)), bits(wanted)
    wrong = int((one != other).sum()) if one.tobytes() != other.tobytes() else 0
    if one.tobytes() == other.tobytes():
        return ""
    return f"{wrong or 'some'} of {wanted.numel()} numbers come back otherwise"


@dataclass
class Bench:
    """The model that is being verified, and where its source lies."""

    twins: Twins | None = None
    root: Path = Path()
    names: Mapping[str, Any] = field(default_factory=dict)
    operators: object = None
    draws: Draws = field(default_factory=Draws)
    dropped: Mapping[str, str] = field(default_factory=dict)

    @property
    def model(self) -> Twins:
        if self.twins is None:
            raise RuntimeError("no model was built")
        return self.twins


def hello(request: Payload, emit: Emit) -> Payload:
    return {
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "torch python": platform.python_version(),
        "torch threads": str(torch.get_num_threads()),
    }


def find(bench: Bench, request: Payload, emit: Emit) -> Payload:
    """Import a file and name the models in it: ``{"found": [{name, build, reason}]}``."""
    tree, module = _load(bench, request)
    text = (tree.root / request["file"]).read_bytes()
    classes = {
        name for name, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, torch.nn.Module)
        and value.__module__ == module.__name__
    }  # fmt: skip
    found = candidates(ast.parse(text), frozenset(classes))
    return {"found": [{"name": c.name, "build": c.build, "reason": c.reason} for c in found]}


def _load(bench: Bench, request: Payload) -> tuple[Tree, Any]:
    if "module" in request:
        bench.draws.share()
        module, folder = importing.open_module(request["module"], request["folders"])
        torch.nn.Module._torch2ms_root = str(folder)
        return Tree(folder), module
    tree = Tree(Path(request["root"]), request["package"])
    importing.forget(Path(getattr(torch.nn.Module, "_torch2ms_root", tree.root)))
    torch.nn.Module._torch2ms_root = str(tree.root)
    try:
        return tree, importing.load(tree, request["file"])
    except RuntimeError as error:
        if bench.operators is not None or not is_missing_operator(error):
            raise
        bench.operators = declare()
        return tree, importing.load(tree, request["file"])


def build(bench: Bench, request: Payload, emit: Emit) -> Payload:
    """Build the model and its twins, find inputs, write the weights to a folder.

    Answers modules (path, classes, place), tensors (key, kind, shape) and the inputs that work.
    Without ``runs`` the model is only built. With ``half`` one in half precision stays so.
    """
    bench.twins = None
    tree, module = _load(bench, request)
    bench.root, bench.names = tree.root, vars(module)
    rates: dict[str, float] = {}

    def make(seed: int = request["seed"]) -> torch.nn.Module:
        torch.manual_seed(seed)
        made = importing.made(module, request["build"], torch.nn.Module)
        rates.update(recurrent_rates(made))
        silence(made)
        return made if request.get("half") and _is_half(made) else made.float()

    plain = make()
    bench.dropped = dropped_paths(plain)
    specs: tuple[InputSpec, ...] = ()
    before: dict[str, Any] = {}
    if request.get("runs", True):
        before = initial(plain, make(request["seed"] + 1))
        given = tuple(parse_input(text) for text in request["inputs"])
        specs, arguments = find_inputs(plain, given, request["seed"])
        args, kwargs = arguments
        enliven(plain, request["seed"], lambda: plain(*change(args, torch.clone), **kwargs))
        bench.twins = _twins(plain, make, arguments, request["seed"])
        whole = [spec.low for spec in specs if not spec.literal and "int" in spec.dtype]
        bench.twins.least = min(whole, default=0)
    tensors = write_weights(plain, before, Path(request["folder"]))
    return {
        "inputs": [spec.text for spec in specs],
        "modules": [_module(path, m, tree.root) for path, m in plain.named_modules()],
        "tensors": tensors,
        "rates": rates,
    }


def _is_half(model: torch.nn.Module) -> bool:
    dtypes = {p.dtype for p in model.parameters() if p.is_floating_point()}
    return bool(dtypes) and dtypes <= {torch.float16, torch.bfloat16}


def _twins(
    plain: torch.nn.Module, make: Callable[[], torch.nn.Module], arguments: Any, seed: int
) -> Twins:
    others = [make(), make()]
    buffers = {name: tensor.detach().clone() for name, tensor in plain.named_buffers()}
    for other in others:
        other.load_state_dict(plain.state_dict())
        for name, tensor in other.named_buffers():
            tensor.detach().copy_(buffers[name])
    double, nudged = others[0].double(), others[1]
    nudge_model(nudged, seed)
    return Twins(plain, double, nudged, arguments, seed, buffers)


def _module(path: str, module: torch.nn.Module, root: Path) -> Payload:
    file, line = importing.place(module, root)
    settings = {
        name: value for name, value in module.__dict__.items()
        if not name.startswith("_") and _is_setting(value)
    }  # fmt: skip
    return {
        "path": path, "class": type(module).__name__, "file": file, "line": line,
        "classes": [f"{c.__module__}.{c.__qualname__}" for c in type(module).__mro__[:-2]],
        "container": isinstance(module, CONTAINERS), "settings": settings,
    }  # fmt: skip


def _is_setting(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_is_setting(item) for item in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, (bool, int, str))


def training(bench: Bench, request: Payload) -> Payload:
    """Train the model: `record_training`."""
    specs = [parse_input(text) for text in request["targets"]]
    drawn = [value(spec, bench.model.seed + 100 + n) for n, spec in enumerate(specs)]
    task = Task(bench.names, request["loss"], request["optimizer"], tuple(drawn), request["steps"])
    return record_training(bench.model, task, Path(request["folder"]))


def main() -> None:
    """Serve until stdin ends."""
    bench = Bench()
    torch.backends.mha.set_fastpath_enabled(False)  # else children of attention never run
    share_masks()
    importing.track(torch.nn.Module)
    sys.argv = ["torch2ms"]
    serve({
        "script": run_script,
        "hello": hello, "masks": choose_masks,
        "find": lambda request, emit: find(bench, request, emit),
        "build": lambda request, emit: build(bench, request, emit),
        "read_file": lambda request, emit: read_file(request),
        "write_file": lambda request, emit: write_file(request),
        "save_state": lambda request, emit: save_state(bench.model.plain, request),
        "compare_state": lambda request, emit: compare_state(bench.model.plain, request),
        "record": lambda request, emit: record(
            bench.model, request["training"], Path(request["folder"]), emit,
            Draw(**request.get("draw", {})),
        ),
        "regimes": lambda request, emit: record_regimes(
            bench.model, Path(request["folder"]), bench.dropped, emit
        ),
        "gradients": lambda request, emit: record_gradients(
            bench.model, Path(request["folder"]), request["local"], emit,
            Draw(**request.get("draw", {})),
        ),
        "inner_calls": lambda request, emit: inner_calls(bench.model, bench.root, request),
        "training": lambda request, emit: training(bench, request),
    })  # fmt: skip


if __name__ == "__main__":
    main()
