"""Run programs on one side: ``side.py torch|pynative|graph JOBS FOLDER`` (see ``__main__.py``).

The answers to one program are a mapping from a check to ("ok", value) or ("error", text), and
whether the program was run to its end; they lie in FOLDER/NAME.SIDE, beside what the torch side
leaves for the others: weights by name, and which leaves of an output had a gradient.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import io
import os
import pickle
import random
import re
import runpy
import sys
import types
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

SIDE = sys.argv[1]
SYNONYMS = {"gamma": "weight", "beta": "bias", "embedding_table": "weight",
            "moving_mean": "running_mean", "moving_variance": "running_var"}  # fmt: skip
if SIDE == "torch":
    import torch

    torch.set_num_threads(1)
else:
    import mindspore as ms
    from mindspore.common.api import _pynative_executor

    MODE = ms.GRAPH_MODE if SIDE == "graph" else ms.PYNATIVE_MODE


# -- arrays that the lines of a program ask for ---------------------------------------------------


def A(*shape: int, s: int | None = None) -> np.ndarray:
    """Normal float32 numbers."""
    seeded = np.random.RandomState(1 + sum(shape) if s is None else s)
    return seeded.standard_normal(shape).astype(np.float32)


def P(*shape: int, s: int = 3) -> np.ndarray:
    """Positive float32 numbers."""
    return (np.random.RandomState(s).rand(*shape) + 0.1).astype(np.float32)


def I(hi: int, *shape: int, s: int = 5) -> np.ndarray:  # noqa: E743
    """Integers below ``hi``."""
    return np.random.RandomState(s).randint(0, hi, shape).astype(np.int64)


def B(*shape: int, s: int = 6) -> np.ndarray:
    """Booleans."""
    return np.random.RandomState(s).rand(*shape) > 0.4


def N(x: object, d: str = "float32") -> np.ndarray:
    """An array of the numbers written."""
    return np.array(x, dtype=d)


def C(*shape: int, s: int = 9) -> np.ndarray:
    """Complex numbers."""
    seeded = np.random.RandomState(s)
    return (seeded.standard_normal(shape) + 1j * seeded.standard_normal(shape)).astype(np.complex64)


MAKERS = {"A": A, "P": P, "I": I, "B": B, "N": N, "C": C, "np": np}


# -- tensors of the side --------------------------------------------------------------------------


def tensors(x: Any) -> Any:
    """Make tensors of the arrays in a structure."""
    if isinstance(x, np.ndarray):
        return torch.from_numpy(x.copy()) if SIDE == "torch" else ms.Tensor(x)
    if isinstance(x, (list, tuple)):
        return type(x)(map(tensors, x))
    return {k: tensors(v) for k, v in x.items()} if isinstance(x, dict) else x


def is_tensor(x: object) -> bool:
    return isinstance(x, torch.Tensor if SIDE == "torch" else ms.Tensor)


def array(x: Any) -> np.ndarray:
    """Copy the numbers of a tensor."""
    if SIDE != "torch":
        return np.array((x.astype(ms.float32) if x.dtype == ms.bfloat16 else x).asnumpy())
    x = x.detach()
    x = x.float() if x.dtype == torch.bfloat16 else x
    return x.resolve_conj().resolve_neg().numpy().copy()


def leaves(x: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Find the tensors and numbers of a structure, None apart."""
    if is_tensor(x):
        yield path, x
    elif isinstance(x, dict):
        for key, value in x.items():
            yield from leaves(value, (*path, key))
    elif isinstance(x, (list, tuple)):
        for index, value in enumerate(x):
            yield from leaves(value, (*path, index))
    elif hasattr(x, "__dataclass_fields__"):
        for name in x.__dataclass_fields__:
            yield from leaves(getattr(x, name), (*path, name))
    elif isinstance(x, (bool, int, float, complex, np.number, np.ndarray, np.bool_)):
        yield path, np.asarray(x)
    elif x is not None:
        yield path, str(x)


def values(x: Any) -> list[tuple[str, Any]]:
    """Return the leaves of a result by their paths, as arrays."""
    return [(str(p), array(v) if is_tensor(v) else v) for p, v in leaves(x)]


def plain(name: str) -> str:
    """Return torch's name of a weight."""
    head, dot, last = name.rpartition(".")
    return head + dot + SYNONYMS.get(last, last)


def drawn(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Draw a weight by its name: uniform in [-0.5, 0.5), float32."""
    seeded = np.random.default_rng(zlib.crc32(name.encode()))
    return (
        seeded.uniform(-0.5, 0.5, int(np.prod(shape, dtype=int))).astype(np.float32).reshape(shape)
    )


def _is_state(name: str, cell_buffers: set[str]) -> bool:
    return name in cell_buffers or name.endswith(("moving_mean", "moving_variance"))


def fill(model: Any) -> Any:
    """Set the weights of a model by their names: what programs import from ``labkit``."""
    if SIDE == "torch":
        for name, weight in model.named_parameters():
            weight.data.copy_(torch.from_numpy(drawn(name, tuple(weight.shape))))
        return model
    buffers = {
        f"{prefix}.{b}".lstrip(".")
        for prefix, cell in model.cells_and_names()
        for b in cell.__dict__.get("registered_buffers", ())
    }
    for name, weight in model.parameters_and_names():
        if not _is_state(name, buffers):
            weight.set_data(ms.Tensor(drawn(plain(name), tuple(weight.shape))))
    return model


# -- one program ----------------------------------------------------------------------------------


class Run:
    """Runs one program and keeps its answers."""

    def __init__(self, name: str, original: Path, path: Path, folder: Path) -> None:
        self.path, self.out = path, folder / f"{name}.{SIDE}"
        self.shared = folder / f"{name}.shared"
        self.given: dict[str, Any] = {}
        if SIDE != "torch" and self.shared.exists():
            self.given = pickle.loads(self.shared.read_bytes())
        text = original.read_text(encoding="utf-8")
        self.lines = [t[2:].strip() for t in text.splitlines() if t.startswith("#:")]
        self.answers: dict[str, tuple[str, Any]] = {}
        self.sources = 0

    def all(self) -> None:
        self.save(False)
        for line in self.lines:
            if line.startswith("script"):
                self.note("script", lambda line=line: self.script(line.split()[1:]))
        rest = [line for line in self.lines if not line.startswith("script")]
        if rest:
            self.note("import", lambda: setattr(self, "module", self.load(self.path)))
        for number, line in enumerate(rest):
            if self.answers["import"][0] == "ok":
                kind, _, body = line.partition(" ")
                check = self.model if kind.startswith("model") else self.call
                key = f"{number}:{body.strip()}"
                try:
                    check(key, body.strip(), kind)
                except Exception as error:
                    recover()
                    self.answers[f"{key} setup"] = ("error", f"{type(error).__name__}: {error}")
        if "import" in self.answers and self.answers["import"][0] == "ok":
            self.answers["import"] = ("ok", [])
        if SIDE == "torch":
            self.shared.write_bytes(pickle.dumps(self.given))
        self.save(True)

    def save(self, done: bool) -> None:
        temporary = self.out.with_suffix(".writing")
        temporary.write_bytes(pickle.dumps((self.answers, done)))
        temporary.replace(self.out)

    def note(self, key: str, ask: Callable[[], Any]) -> bool:
        """Keep what a check gives or raises."""
        try:
            self.answers[key] = ("ok", ask())
        except (Exception, SystemExit) as error:
            self.answers[key] = ("error", f"{type(error).__name__}: {error}")
            recover()
        if key != "import":
            self.save(False)
        return self.answers[key][0] == "ok"

    def load(self, path: Path) -> types.ModuleType:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        return module

    def script(self, arguments: list[str]) -> str:
        said = io.StringIO()
        sys.argv = [str(self.path), *arguments]
        with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
            runpy.run_path(str(self.path), run_name="__main__")
        return said.getvalue()

    def arguments(self, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        found: tuple[tuple[Any, ...], dict[str, Any]]
        found = eval(f"(lambda *a, **k: (a, k))({text})", dict(MAKERS))
        return found

    def model(self, key: str, body: str, kind: str) -> None:
        build, _, text = body.partition("<-")
        args, named = self.arguments(text)
        net = eval(build, {**vars(self.module), "np": np})
        names, weights = self.weights(key, net, "init" in kind)
        mode = net.train if SIDE == "torch" else net.set_train

        def forward() -> list[tuple[str, Any]]:
            return values(net(*tensors(list(args)), **tensors(named)))

        mode("eval" not in kind)
        ran = self.note(f"{key} train1", forward) and self.note(f"{key} train2", forward)
        if "nograd" not in kind and ran:
            self.note(f"{key} grad", lambda: self.gradients(key, net, list(args), names, weights))
        self.note(f"{key} buffers", lambda: self.buffers(net))
        mode(False)
        self.note(f"{key} eval", forward)

    def call(self, key: str, body: str, kind: str) -> None:
        matched = re.match(r"([\w.]+)\((.*)\)$", body, re.S)
        assert matched, body
        function = eval(matched[1], vars(self.module))
        args, named = self.arguments(matched[2])
        called = ms.jit(function, fullgraph=True) if SIDE == "graph" else function
        ran = self.note(
            f"{key} forward", lambda: values(called(*tensors(list(args)), **tensors(named)))
        )
        if "nograd" not in kind and ran and not named:
            self.note(f"{key} grad", lambda: self.gradients(key, function, list(args), [], []))

    # -- weights, buffers, gradients --------------------------------------------------------------

    def weights(self, key: str, net: Any, initial: bool) -> tuple[list[str], list[Any]]:
        """Set all weights by name; return those that are trained, in torch's order.

        ``initial``: they stay near what torch drew, so that deep nets keep their scale.
        """
        if SIDE == "torch":
            kept = {}
            for name, weight in net.named_parameters():
                made = torch.from_numpy(drawn(name, tuple(weight.shape))).to(weight.dtype)
                made = weight.detach() + 0.02 * made if initial else made
                with torch.no_grad():
                    weight.copy_(made + 0.3j if weight.is_complex() else made)
                kept[name] = array(weight)
            trained = [(n, p) for n, p in net.named_parameters() if p.requires_grad]
            self.given[key] = kept, [n for n, _ in trained]
            return [n for n, _ in trained], [p for _, p in trained]
        kept, names = self.given[key]
        mine = {plain(n): p for n, p in net.parameters_and_names()}
        spare = [p for n, p in mine.items() if p.requires_grad and n not in kept]
        found = {}
        for name, value in kept.items():
            weight = mine.get(name)
            if weight is None or weight.size != value.size:
                weight = next((p for p in spare if p.size == value.size), None)
                spare = [p for p in spare if p is not weight]
            if weight is not None:
                found[name] = weight
                weight.set_data(ms.Tensor(value.reshape(weight.shape), weight.dtype))
        lost = sorted(kept.keys() - found.keys())
        if lost or spare:
            raise LookupError(f"weights without a partner: {lost} / {[p.name for p in spare]}")
        return [n for n in names if n in found], [found[n] for n in names if n in found]

    def buffers(self, net: Any) -> list[tuple[str, Any]]:
        if SIDE == "torch":
            named = net.named_buffers()
            return [(n, array(b)) for n, b in named if not n.endswith("num_batches_tracked")]
        state = ((n, p) for n, p in net.parameters_and_names()
                 if not p.requires_grad or _is_state(n, set()))  # fmt: skip
        return [(plain(n), array(p)) for n, p in state]

    def gradients(
        self, key: str, net: Any, args: list[Any], names: list[str], weights: list[Any]
    ) -> list[tuple[str, Any]]:
        """Differentiate the sum of the outputs times fixed cotangents, by inputs and weights."""
        places = [
            i for i, a in enumerate(args) if isinstance(a, np.ndarray) and a.dtype == np.float32
        ]
        labels = [f"argument {i}" for i in places] + names
        if SIDE == "torch":
            return self._torch_gradients(key, net, args, places, labels, weights)
        outputs = self.given.get(f"{key} outputs", [])
        if not outputs or not labels:
            net(*tensors(args))
            return []
        loss = self._loss(net, outputs)
        parameters = ms.ParameterTuple(weights) if weights else None
        ask = ms.value_and_grad(loss, tuple(places) or None, parameters)
        if SIDE == "graph":
            ask = ms.jit(ask, fullgraph=True)
        _, found = ask(*tensors(args))
        inputs, trained = found if places and weights else (found, ()) if places else ((), found)
        inputs, trained = (x if isinstance(x, (tuple, list)) else (x,) for x in (inputs, trained))
        kept = self.given.get(key, ({}, []))[0]
        shaped = [array(g).reshape(kept[n].shape) for n, g in zip(names, trained, strict=True)]
        return list(zip(labels, [*map(array, inputs), *shaped], strict=True))

    def _torch_gradients(
        self,
        key: str,
        net: Any,
        args: list[Any],
        places: list[int],
        labels: list[str],
        weights: Any,
    ) -> list[tuple[str, Any]]:
        inputs = [tensors(a) for a in args]
        for i in places:
            inputs[i].requires_grad_()
        # a copy: a program may change its argument in place, which a leaf does not allow
        out = net(*[x.clone() if i in places else x for i, x in enumerate(inputs)])
        total: Any = 0
        outputs = []
        for number, (path, v) in enumerate(leaves(out)):
            if is_tensor(v) and v.requires_grad:
                outputs.append((number, path, v.numel(), v.is_complex()))
                parts = (
                    [(v.real, number), (v.imag, number + 7)] if v.is_complex() else [(v, number)]
                )
                for part, phase in parts:
                    cotangent = torch.from_numpy(_cotangent(v.numel(), phase))
                    total = total + (part.float().reshape(-1) * cotangent).sum()
        self.given[f"{key} outputs"] = outputs
        sources = [inputs[i] for i in places] + list(weights)
        if not outputs or not sources:
            return []
        found = torch.autograd.grad(total, sources, allow_unused=True)
        zeros = (
            torch.zeros_like(s) if g is None else g for s, g in zip(sources, found, strict=True)
        )
        return list(zip(labels, map(array, zeros), strict=True))

    def _loss(self, net: Any, outputs: list[Any]) -> Any:
        """Return the loss as a function of the inputs, from a file: graph mode reads sources."""
        lines = ["import mindspore as ms", "from mindspore import ops", "",
                 "def make(net, cotangents):", "    def loss(*args):", "        out = net(*args)",
                 "        total = 0.0"]  # fmt: skip
        cotangents = []
        for number, path, size, is_complex in outputs:
            leaf = "out" + "".join(f"[{p!r}]" for p in path)
            for part, phase in (
                [("ops.real({})", 0), ("ops.imag({})", 7)] if is_complex else [("{}", 0)]
            ):
                cotangents.append(ms.Tensor(_cotangent(size, number + phase)))
                text = f"{part.format(leaf)}.astype(ms.float32).reshape(-1)"
                lines.append(
                    f"        total = total + ({text} * cotangents[{len(cotangents) - 1}]).sum()"
                )
        lines += ["        return total", "    return loss"]
        self.sources += 1
        path = self.out.with_name(f"{self.out.stem}_{SIDE}_loss{self.sources}.py")
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return self.load(path).make(net, cotangents)


def _cotangent(size: int, phase: int) -> np.ndarray:
    return np.cos(np.arange(size) + phase).astype(np.float32)


def recover() -> None:
    """Forget a gradient that an exception left unfinished: PyNative refuses ``x[0]`` behind one."""
    if SIDE != "torch":
        _pynative_executor.clear_res()


def prepare() -> None:
    """Set what an earlier program may have changed: seeds, modes, defaults."""
    random.seed(0)
    np.random.seed(0)
    if SIDE == "torch":
        torch.manual_seed(0)
        torch.set_grad_enabled(True)
        torch.set_default_dtype(torch.float32)
    else:
        ms.set_seed(0)
        ms.set_context(
            mode=MODE, pynative_synchronize=SIDE == "pynative", jit_syntax_level=ms.STRICT
        )


def main() -> None:
    warnings.filterwarnings("ignore")
    folder = Path(sys.argv[3])
    kit = types.ModuleType("labkit")
    kit.fill = fill  # type: ignore[attr-defined]
    for name, original, path in pickle.loads(Path(sys.argv[2]).read_bytes()):
        kept, where = set(sys.modules), list(sys.path)
        sys.modules["labkit"] = kit
        sys.path.insert(0, str(Path(path).parent))
        here = folder / f"{name}.{SIDE}.cwd"
        here.mkdir(exist_ok=True)
        os.chdir(here)
        prepare()
        Run(name, Path(original), Path(path), folder).all()
        for added in set(sys.modules) - kept:
            file = getattr(sys.modules[added], "__file__", None) or ""
            if file.startswith(str(Path(path).parent)):
                del sys.modules[added]
        sys.path[:] = where
        gc.collect()


if __name__ == "__main__":
    main()
