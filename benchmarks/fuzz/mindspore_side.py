"""The MindSpore side: a process that runs converted programs and hands back what they give.

It reads pickled jobs from its standard input and writes one pickled answer for each program.
"""

from __future__ import annotations

import os
import pickle
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

_LAST = {"gamma": "weight", "beta": "bias", "embedding_table": "weight",
         "moving_mean": "running_mean", "moving_variance": "running_var"}  # fmt: skip


def plain_name(name: str) -> str:
    """A Parameter's name as torch calls it."""
    head, _, last = name.rpartition(".")
    return (head + "." if head else "") + _LAST.get(last, last)


def serve(mode: str) -> None:
    """Answer jobs until the input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    import mindspore as ms
    from harness import Side, leaves, run
    from programs import filling, weights_of_sum

    graph = mode == "graph"
    ms.set_context(mode=ms.GRAPH_MODE if graph else ms.PYNATIVE_MODE)
    ms.set_context(jit_syntax_level=ms.STRICT)
    if not graph:
        ms.set_context(pynative_synchronize=True)

    dtypes = {type(d) for d in (ms.float32, ms.int64, ms.bool_, ms.float16, ms.float64, ms.int32)}

    def fill(model: Any) -> Any:
        kept = set()
        for prefix, cell in model.cells_and_names():
            for buffer in cell.__dict__.get("registered_buffers", ()):
                kept.add((prefix + "." if prefix else "") + buffer)
            for name in ("gamma", "beta"):  # torch's has no weight where affine is False
                weight = getattr(cell, name, None)
                if isinstance(weight, ms.Parameter) and not weight.requires_grad:
                    kept.add((prefix + "." if prefix else "") + name)
        for name, parameter in model.parameters_and_names():
            if name in kept or name.endswith(("moving_mean", "moving_variance")):
                continue
            numbers = filling(plain_name(name), tuple(parameter.shape))
            parameter.set_data(ms.Tensor(numbers, parameter.dtype))
        return model

    kit = types.ModuleType("fuzzkit")
    kit.fill = fill  # type: ignore[attr-defined]
    sys.modules["fuzzkit"] = kit

    class MindSpore(Side):
        def tensor(self, array: np.ndarray) -> Any:
            return ms.Tensor(array.copy())

        def is_tensor(self, value: Any) -> bool:
            return isinstance(value, ms.Tensor)

        def array(self, tensor: Any) -> np.ndarray:
            if tensor.dtype == ms.bfloat16:
                tensor = tensor.astype(ms.float32)
            return np.array(tensor.asnumpy())

        def plain(self, value: Any, depth: int = 0) -> Any:
            """As of any side; MindSpore's names of weights, by design, are shown as torch's."""
            what, held = super().plain(value, depth)
            if what == "dict":
                held = [(plain_name(k), v) for k, v in held]
            return what, held

        def dtype_name(self, value: Any) -> str:
            name = str(value).lower().removesuffix("_")
            return name if type(value) in dtypes else ""

        def gradients(
            self, call: Callable[..., Any], arguments: tuple[Any, ...], model: Any, chosen: Any
        ) -> tuple[Any, Any]:
            handed = [self.handed(a) for a in arguments]
            if chosen is None:  # torch has called it as well, and found nothing to differentiate
                call(*handed)
            places, of = chosen

            def total(*given: Any) -> Any:
                result = call(*given)
                found = dict(leaves(result, self)) if not graph else None
                added = 0.0
                for path, number, size in of:  # torch's size: a graph may not know it
                    leaf = found[path] if found is not None else result
                    if found is None:
                        for step in path:
                            leaf = leaf[step]
                    factors = ms.Tensor(weights_of_sum(size, number))
                    added = added + (leaf.astype(ms.float32).reshape(-1) * factors).sum()
                return added

            trained, names = [], []
            if model is not None:
                named = [(n, p) for n, p in model.parameters_and_names() if p.requires_grad]
                trained, names = [p for _, p in named], [plain_name(n) for n, _ in named]
            weights = ms.ParameterTuple(trained) if trained else None
            take = ms.value_and_grad(total, tuple(places) if places else None, weights)
            _, taken = take(*handed)
            if places and weights:
                inputs, others = taken
            else:
                inputs, others = (taken, ()) if places else ((), taken)
            if places and not isinstance(inputs, (tuple, list)):
                inputs = (inputs,)
            if weights and not isinstance(others, (tuple, list)):
                others = (others,)
            pairs = [(f"argument {i}", x) for i, x in zip(places, inputs, strict=True)]
            pairs += list(zip(names, others, strict=True))
            return ("dict", [(n, ("tensor", self.array(x))) for n, x in pairs]), None

    side = MindSpore()

    def answer(value: Any) -> None:
        data = pickle.dumps(value)
        answers.write(len(data).to_bytes(8, "little") + data)
        answers.flush()

    answer("ready")
    source = os.fdopen(os.dup(0), "rb")
    while True:
        try:
            folder, programs, chosen = pickle.load(source)
        except EOFError:
            return
        for name in [n for n, m in sys.modules.items()
                     if (getattr(m, "__file__", "") or "").startswith("/tmp/fuzz_")]:  # fmt: skip
            del sys.modules[name]
        sys.path[:] = [p for p in sys.path if not p.startswith("/tmp/fuzz_")]
        sys.path.insert(0, folder)
        try:
            main = os.path.join(folder, "main.py")
            module = types.ModuleType("main")
            module.__file__ = main
            sys.modules["main"] = module
            with open(main, encoding="utf-8") as file:
                exec(compile(file.read(), main, "exec"), module.__dict__)
        except BaseException as error:
            answer(("import", f"{type(error).__name__}: {error}"))
            continue
        answer(("import", ""))
        for program in programs:
            found, _ = run(program, module.__dict__, side, chosen[program.name])
            answer((program.name, found))
        answer(("end", ""))


if __name__ == "__main__":
    serve(sys.argv[1])
