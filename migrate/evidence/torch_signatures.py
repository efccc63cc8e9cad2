"""Collect the facts of all public torch names: of the installed torch, its stubs and torchgen."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from migrate.evidence import native
from migrate.evidence.signature_text import default_source, from_callable, from_def

FULL = tuple(
    """
    torch torch.nn torch.nn.functional torch.nn.init torch.nn.utils torch.nn.utils.rnn
    torch.nn.utils.parametrizations torch.nn.utils.parametrize torch.nn.attention
    torch.nn.parallel torch.linalg torch.special torch.fft torch.signal torch.signal.windows
    torch.masked torch.optim torch.optim.lr_scheduler torch.optim.swa_utils torch.distributions
    torch.utils.data torch.utils.data.distributed torch.utils.checkpoint torch.autograd
    torch.autograd.function torch.autograd.functional torch.cuda torch.cuda.amp torch.amp
    torch.jit torch.backends torch.backends.cudnn torch.backends.cuda torch.backends.mps
    torch.random torch.hub torch.func torch.utils.model_zoo torch.utils.hooks
    torch.nn.modules.utils torch.nn.attention.flex_attention torch.serialization
    torch.accelerator
    """.split()
)
NAMES_ONLY = tuple(
    """
    torch.distributed torch.multiprocessing torch.compiler torch.fx torch.onnx torch.profiler
    torch.quantization torch.sparse torch.mps torch.version torch.types torch.distributed.tensor
    torch.distributed.fsdp torch.export torch.futures torch.library torch.nested torch.testing
    torch.xpu
    """.split()
)
# Names that start with an underscore and yet are written in model code.
PRIVATE = {
    "torch.nn.init": (
        "_calculate_fan_in_and_fan_out",
        "_calculate_correct_fan",
        "_no_grad_fill_",
        "_no_grad_normal_",
        "_no_grad_trunc_normal_",
        "_no_grad_uniform_",
        "_no_grad_zero_",
    ),
    "torch.optim.lr_scheduler": ("_LRScheduler",),
    "torch": ("__version__", "_assert", "_check"),
    "torch.nn.modules.utils": ("_single", "_pair", "_triple", "_quadruple", "_ntuple"),
    "torch.backends.cudnn": (
        "allow_tf32",
        "benchmark",
        "benchmark_limit",
        "deterministic",
        "enabled",
    ),
    "torch.jit": (
        "is_scripting",
        "is_tracing",
        "_overload",
        "_overload_method",
        "_script_if_tracing",
    ),
}
# The classes of the torch namespace itself whose members are listed; the rest is for compilers.
WITH_MEMBERS = ("Tensor", "Generator", "Size", "device", "dtype", "finfo", "iinfo")
# Tensor methods whose Python binding is written by hand and differs from the yaml file.
BY_HAND = ("to",)
SPACES = {
    "torch": "",
    "torch.nn.functional": "nn",
    "torch.linalg": "linalg",
    "torch.special": "special",
    "torch.fft": "fft",
}


Entry = list[Any]


@dataclass(frozen=True)
class Sources:
    """Where signatures of C functions come from: the yaml file and the stubs."""

    natives: Mapping[tuple[str, str], tuple[native.Native, ...]]
    functions: Mapping[str, tuple[ast.FunctionDef, ...]]
    methods: Mapping[tuple[str, str], tuple[ast.FunctionDef, ...]]


def collect() -> tuple[dict[str, Entry], dict[str, str], str]:
    """Return names, aliases and version of the installed torch, for ``mapping.signatures``."""
    torch = importlib.import_module("torch")
    sources = _sources(Path(str(torch.__file__)).parent)
    names: dict[str, Entry] = {}
    for space in (*FULL, *NAMES_ONLY):
        module = importlib.import_module(space)
        for name in _public(module, space):
            value = getattr(module, name)
            path = f"{space}.{name}"
            if space in NAMES_ONLY:
                names[path] = [_kind(value), "inspect", {}]
                continue
            names[path] = _entry(value, path, space, sources)
            if isinstance(value, type) and _has_members(space, name):
                names.update(_members(value, path, sources))
    return names, _aliases(names), torch.__version__.partition("+")[0]


def _has_members(space: str, name: str) -> bool:
    """Whether the methods of a class are listed; torch.cuda.FloatTensor and such are Tensors."""
    if space == "torch":
        return name in WITH_MEMBERS
    return not (space == "torch.cuda" and name.endswith("Tensor"))


def _public(module: ModuleType, space: str) -> Iterator[str]:
    """The public names of a module: not the modules and typing names that it only imports."""
    listed = set(getattr(module, "__all__", ()))
    for name in sorted({*dir(module), *PRIVATE.get(space, ())}):
        value = getattr(module, name, None)
        if name in PRIVATE.get(space, ()) or name in listed:
            if hasattr(module, name):
                yield name
        elif not name.startswith("_") and _belongs(value, space, listed):
            yield name


def _belongs(value: object, space: str, listed: set[str]) -> bool:
    if isinstance(value, ModuleType):
        return value.__name__.startswith(space + ".")
    home = getattr(value, "__module__", None) or ""
    if space == "torch":
        return home.partition(".")[0] == "torch" or not isinstance(value, type | type(len))
    # torch.fft.__all__ leaves out hfft2 and others of its page: they are kernels of torch._C._fft.
    if space in SPACES and home == f"torch._C._{SPACES[space]}":
        return True
    if listed and space not in ("torch.nn.functional", "torch.nn"):
        return False
    return home.startswith("torch")


def _kind(value: object) -> str:
    if isinstance(value, ModuleType):
        return "module"
    if isinstance(value, type):
        return "class"
    return "function" if callable(value) else "constant"


def _entry(value: Any, path: str, space: str, sources: Sources) -> Entry:
    kind = _kind(value)
    if kind == "class":
        return _class_entry(value, sources)
    if kind != "function":
        return [kind, "inspect", {}]
    name = getattr(value, "__name__", "")
    if inspect.isbuiltin(value):
        home = {"_nn": "nn", "_linalg": "linalg", "_special": "special", "_fft": "fft"}
        own = getattr(value, "__self__", None)
        place = home.get(getattr(own, "__name__", "").rpartition(".")[2], SPACES.get(space, ""))
        for key in ((place, name), (place, f"{place}_{name}"), ("", name)):
            if key in sources.natives and (found := native.texts(sources.natives[key], False)):
                return ["function", "native_functions.yaml", found]
        return ["function", "pyi", _stub(sources.functions.get(path.rpartition(".")[2], ()))]
    return ["function", "inspect", from_callable(_dispatched(value), default=_default)]


def _dispatched(value: Any) -> Any:
    """The plain form behind a function that switches on ``return_indices``."""
    code = getattr(value, "__code__", None)
    if code is None or "if_false" not in code.co_freevars:
        return value
    return _dispatched(value.__closure__[code.co_freevars.index("if_false")].cell_contents)


def _class_entry(value: Any, sources: Sources) -> Entry:
    found = from_callable(value.__init__, method=True, default=_default)
    source = "inspect"
    if not found and inspect.isfunction(value.__new__):
        found = from_callable(value.__new__, method=True, default=_default)
    if not found:
        stubs = sources.methods.get((value.__name__, "__init__")) or sources.methods.get(
            (value.__name__, "__new__"), ()
        )
        found, source = _stub(stubs, method=True), "pyi"
    if not found and value.__init__ is object.__init__:
        takes_all = value.__new__ is not object.__new__
        found, source = {"": "(*args, **kwargs)" if takes_all else "()"}, "inspect"
    bases = [f"{base.__module__}.{base.__qualname__}" for base in value.__mro__[1:-1]]
    return ["class", source, found, [base for base in bases if base.startswith("torch")]]


def _members(value: type, path: str, sources: Sources) -> dict[str, Entry]:
    """Methods and properties: all of Tensor and Module, a class's own ones elsewhere."""
    everything = path in ("torch.Tensor",)
    found: dict[str, Entry] = {}
    for name in sorted(dir(value) if everything else vars(value)):
        if name.startswith("_") and name not in ("__call__",):
            continue
        member = inspect.getattr_static(value, name)
        found[f"{path}.{name}"] = _member(value, member, path, name, sources)
    return found


def _member(value: type, member: Any, path: str, name: str, sources: Sources) -> Entry:
    if isinstance(member, staticmethod | classmethod):
        plain = member.__func__
        return [
            "method",
            "inspect",
            from_callable(plain, isinstance(member, classmethod), _default),
        ]
    if inspect.isfunction(member):
        return ["method", "inspect", from_callable(member, method=True, default=_default)]
    if not callable(member):
        described = isinstance(member, property) or inspect.isdatadescriptor(member)
        return ["property" if described else "constant", "inspect", {}]
    if isinstance(member, type):
        return ["class", "inspect", {}]
    known = path == "torch.Tensor" and name not in BY_HAND
    overloads = sources.natives.get(("", name), ()) if known else ()
    if texts := native.texts(overloads, True):
        return ["method", "native_functions.yaml", texts]
    stubs = sources.methods.get((value.__name__, name)) or sources.methods.get(
        ("TensorBase", name), ()
    )
    return ["method", "pyi", _stub(stubs, method=True)]


def _default(value: Any) -> str:
    if isinstance(value, ModuleType):
        return value.__name__
    return default_source(value)


def _stub(stubs: tuple[ast.FunctionDef, ...], method: bool = False) -> dict[str, str]:
    """Texts of stubs, labelled by the first parameter where that tells them apart."""
    texts: dict[str, str] = {}
    for stub in stubs:
        plain = [*stub.args.posonlyargs, *stub.args.args][1 if method else 0 :]
        first = plain[0].arg if plain else ""
        texts.setdefault(from_def(stub, method), first)
    labels: dict[str, str] = {}
    for index, (text, first) in enumerate(texts.items()):
        label = first if index and first not in labels else f"overload{index}"
        labels[label if index else ""] = text
    return labels


def _sources(folder: Path) -> Sources:
    functions: dict[str, list[ast.FunctionDef]] = {}
    methods: dict[tuple[str, str], list[ast.FunctionDef]] = {}
    for stub in ("_C/__init__.pyi", "_C/_VariableFunctions.pyi"):
        for node in ast.parse((folder / stub).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                functions.setdefault(node.name, []).append(node)
            if isinstance(node, ast.ClassDef):
                for part in node.body:
                    if isinstance(part, ast.FunctionDef):
                        methods.setdefault((node.name, part.name), []).append(part)
    return Sources(
        native.by_name(native.read_natives()),
        {name: tuple(some) for name, some in functions.items()},
        {name: tuple(some) for name, some in methods.items()},
    )


def _aliases(names: Mapping[str, Entry]) -> dict[str, str]:
    """Other public paths of the same class or Python function: where it is defined."""
    found: dict[str, str] = {}
    for path in sorted(names, key=lambda name: (name.count("."), len(name), name)):
        if names[path][0] not in ("class", "function"):
            continue
        space, _, name = path.rpartition(".")
        if space not in sys.modules:
            continue
        value = getattr(sys.modules[space], name)
        home = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"
        if home.startswith("torch.") and home != path and home not in names:
            found.setdefault(home, path)
            package = home.rpartition(".")[0].rpartition(".")[0]
            other = f"{package}.{name}"
            if other != path and other not in names and hasattr(sys.modules.get(package), name):
                found.setdefault(other, path)
    return found
