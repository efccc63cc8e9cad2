"""Run one program on one side: forward twice, what became of the arguments, and gradients."""

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from programs import Arguments, Program, Unplain, tensors


class Side:
    """What differs between the frameworks; see ``torch_side`` and ``mindspore_side``."""

    def tensor(self, array: np.ndarray) -> Any:
        raise NotImplementedError

    def is_tensor(self, value: Any) -> bool:
        raise NotImplementedError

    def array(self, tensor: Any) -> np.ndarray:
        raise NotImplementedError

    def dtype_name(self, value: Any) -> str:
        """The name of a dtype; "" for anything else."""
        raise NotImplementedError

    def gradients(
        self, call: Callable[..., Any], arguments: Arguments, model: Any, chosen: Any
    ) -> tuple[Any, Any]:
        """(gradients by name, what was summed): ``chosen`` comes from torch's side."""
        raise NotImplementedError

    # -- shared -----------------------------------------------------------------------------

    def handed(self, value: Any) -> Any:
        """An argument as the framework's own: arrays that are marked stay numpy's."""
        if isinstance(value, np.ndarray):
            return self.tensor(value)
        if isinstance(value, Numpy):
            return value.array.copy()
        if isinstance(value, list):
            return [self.handed(v) for v in value]
        if isinstance(value, tuple):
            return tuple(self.handed(v) for v in value)
        if isinstance(value, dict):
            return {k: self.handed(v) for k, v in value.items()}
        return copy.copy(value)

    def plain(self, value: Any, depth: int = 0) -> Any:
        """A result as (kind, plain value). Raises Unplain."""
        if depth > 8:
            raise Unplain("nested too deeply")
        if self.is_tensor(value):
            return ("tensor", self.array(value))
        if isinstance(value, (bool, np.bool_)):
            return ("bool", bool(value))
        if isinstance(value, (int, np.integer)):
            return ("int", int(value))
        if isinstance(value, (float, np.floating)):
            return ("float", float(value))
        if isinstance(value, np.ndarray):
            if value.dtype.kind == "O":
                raise Unplain("array of objects")
            return ("array", np.array(value))
        if isinstance(value, str):
            return ("str", value)
        if value is None:
            return ("None", None)
        if isinstance(value, dict):
            return ("dict", [(str(k), self.plain(v, depth + 1)) for k, v in value.items()])
        if isinstance(value, (list, tuple)):
            what = "list" if isinstance(value, list) else "tuple"
            return (what, [self.plain(v, depth + 1) for v in value])
        if name := self.dtype_name(value):
            return ("dtype", name)
        raise Unplain(type(value).__name__)


class Numpy:
    """An argument that is an array of numpy on both sides."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array


def run(
    program: Program, module: Mapping[str, Any], side: Side, chosen: Mapping[str, Any],
    gradients: bool = True,
) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
    """(what came out by label, what gradients were taken of); a failure is ("raises", text)."""
    found: dict[str, Any] = {}
    noted: dict[str, Any] = {}

    def attempt(label: str, act: Callable[[], Any]) -> bool:
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                found[label] = act()
        except BaseException as error:
            if isinstance(error, (KeyboardInterrupt, MemoryError)):
                raise
            found[label] = ("raises", f"{type(error).__name__}: {error}"[:1500])
            return False
        return True

    entry = module.get(program.entry)
    for number, arguments in enumerate(program.calls):
        model = None
        call = entry
        if entry is None:
            found[f"{number} forward"] = ("raises", f"the output has no {program.entry}")
            continue
        if program.kind == "model":
            made: list[Any] = []

            def build(made: list[Any] = made) -> Any:
                made.append(entry())
                return ("None", None)

            if not attempt(f"{number} build", build):
                continue
            model = call = made[0]

        def forward(call: Any = call, arguments: Arguments = arguments) -> Any:
            handed = [side.handed(a) for a in arguments]
            result = side.plain(call(*handed))
            return ("list", [result, side.plain(handed) if program.lent else ("None", None)])

        if not attempt(f"{number} forward", forward):
            continue
        if not number:
            attempt(f"{number} again", forward)
        label = f"{number} gradient"
        if gradients and program.gradient and program.kind != "train" and (
            chosen and label not in chosen
        ):  # fmt: skip
            attempt(label, forward)  # torch has called it, for nothing
            del found[label]
        if gradients and program.gradient and program.kind != "train" and (
            not chosen or label in chosen
        ):  # fmt: skip

            def backward(call: Any = call, arguments: Arguments = arguments, model: Any = model,
                         label: str = label) -> Any:  # fmt: skip
                taken, of = side.gradients(call, arguments, model, chosen.get(label))
                noted[label] = of
                return taken

            if not attempt(label, backward) and not chosen:
                del found[label]
    return found, noted


def leaves(result: Any, side: Side) -> list[tuple[tuple[Any, ...], Any]]:
    """The tensors of a result with their paths."""
    return [(path, t) for path, t in tensors(result) if side.is_tensor(t)]
