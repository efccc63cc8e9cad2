"""Write statements of torch programs while they run, so that shapes and kinds are known."""

from __future__ import annotations

import ast
import copy
import importlib
import random
import re
import sys
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from programs import HEADER, Unplain, is_finite
from torch_side import SIDE

_toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
_PLACE = re.compile(r"\{(\w+)\}")
_DRAWN_ANEW = frozenset("e i n f t k j c y s".split())  # at each place of a template
_LARGEST = 400  # elements of a tensor that is computed further
_TRIES = 30


@cache
def templates() -> dict[str, list[str]]:
    """The templates by block; doubled braces are meant as braces."""
    text = Path(__file__).with_name("templates.toml").read_text(encoding="utf-8")
    found: dict[str, list[str]] = _toml.loads(text)
    return found


class Misfit(Exception):
    """No value at hand fits a place of a template."""


class _Returned(Exception):
    pass


class Writer:
    """Names, their values, and the lines that gave them.

    ``values`` serves as the globals of what is executed; ``names`` are the names (or expressions
    like ``self.scale``) that templates may use.
    """

    def __init__(self, draws: random.Random, tag: str) -> None:
        self.draws = draws
        self.tag = tag
        self.values: dict[str, Any] = {}
        exec(HEADER, self.values)
        self.values["_Returned"] = _Returned
        self.names: list[str] = []
        self.features: set[str] = set()
        self.fresh_number = 0
        self.loops = 0

    # -- names ------------------------------------------------------------------------------

    def fresh(self, stem: str = "") -> str:
        self.fresh_number += 1
        return f"{stem or self.draws.choice('abcghuvwyz')}{self.fresh_number}"

    def value(self, name: str) -> Any:
        if name in self.values:
            return self.values[name]
        return eval(name, self.values)

    def those(self, fits: Callable[[Any], bool]) -> list[str]:
        found = []
        for name in self.names:
            try:
                if fits(self.value(name)):
                    found.append(name)
            except Exception:
                continue
        return found

    def pick(self, fits: Callable[[Any], bool]) -> str:
        found = self.those(fits)
        if not found:
            raise Misfit
        # what was bound last is used most: programs whose statements depend on each other
        return found[max(self.draws.randrange(len(found)), self.draws.randrange(len(found)))]

    def fork(self) -> Writer:
        """A writer with copies of all values: for a branch that may not run."""
        other = copy.copy(self)
        own = {k: v for k, v in self.values.items() if k not in _header_names()}
        try:
            with torch.no_grad():
                other.values = {**self.values, **copy.deepcopy(own)}
        except Exception:
            other.values = dict(self.values)
        other.names = list(self.names)
        return other

    # -- expressions ------------------------------------------------------------------------

    def filled(self, template: str, **given: str) -> str:
        """A template with its places filled. Raises Misfit."""
        at: dict[str, str] = dict(given)

        def fill(match: re.Match[str]) -> str:
            place = match.group(1)
            if place not in at:
                text = self._place(place, at)
                if place in _DRAWN_ANEW:
                    return text
                at[place] = text
            return at[place]

        plain = template.replace("{{", "\x01").replace("}}", "\x02")
        return _PLACE.sub(fill, plain).replace("\x01", "{").replace("\x02", "}")

    def _place(self, place: str, at: dict[str, str]) -> str:
        draws = self.draws
        if place in ("x", "x2", "m", "v"):
            least, most = {"x": (0, 9), "x2": (2, 9), "m": (2, 2), "v": (1, 1)}[place]
            text = self.pick(lambda t: _is_float(t) and least <= t.dim() <= most)
            at.setdefault("of", text)
            return text
        if place == "n":
            return str(draws.randint(1, 3))
        if place == "f":
            return draws.choice(["0.5", "1.5", "-0.25", "2.0", "0.1", "3.0", "1e-2", "-1.0"])
        if place == "t":
            return draws.choice(["True", "False"])
        if place == "o":
            return f"({draws.randint(1, 3)}, {draws.randint(1, 3)})"
        if place == "k":
            return self.pick(
                lambda v: isinstance(v, int) and not isinstance(v, bool) and -9 < v < 99
            )
        of = self.value(at["of"]) if "of" in at else None
        if of is None:
            at["of"] = self.pick(_is_float)
            of = self.value(at["of"])
        if place == "y":
            return self.pick(lambda t: _is_float(t) and _broadcasts(t.shape, of.shape))
        if place == "s":
            return self.pick(lambda t: _is_float(t) and t.shape == of.shape)
        if place == "c":
            found = self.those(lambda t: isinstance(t, torch.Tensor) and t.dtype == torch.bool
                               and t.shape == of.shape)  # fmt: skip
            if found and draws.random() < 0.5:
                return draws.choice(found)
            return f"({at['of']} > {draws.choice(['0', '0.5', '-0.5'])})"
        if of.dim() == 0:
            raise Misfit
        if place in ("d", "e"):
            dims = list(range(of.dim()))
            if place == "e" and "d" in at and of.dim() > 1:
                dims.remove(int(at["d"]) % of.dim())
            chosen = draws.choice(dims)
            return str(chosen - of.dim() if draws.random() < 0.4 else chosen)
        if place == "i":
            if not of.shape[0]:
                raise Misfit
            return str(draws.randrange(of.shape[0]))
        if place == "j":
            if not of.shape[0]:
                raise Misfit
            places = [draws.randrange(of.shape[0]) for _ in range(draws.randint(1, 3))]
            return f"torch.tensor({sorted(set(places))})"
        if place == "p":
            order = list(range(of.dim()))
            draws.shuffle(order)
            return ", ".join(map(str, order))
        if place == "r":
            size = of.numel()
            forms = [f"{a}, {size // a}" for a in (1, 2, 3, 4) if size % a == 0] + ["-1", "1, -1"]
            return draws.choice(forms)
        raise Misfit

    def expression(self, *blocks: str, fits: Callable[[Any], bool] | None = None,
                   **given: str) -> tuple[str, Any]:  # fmt: skip
        """(text, value) of a template that can be evaluated here. Raises Misfit."""
        for _ in range(_TRIES):
            block = self.draws.choice(blocks)
            template = self.draws.choice(templates()[block])
            try:
                text = self.filled(template, **given)
                if block == "floats" and self.draws.random() < 0.25:
                    text = self._nested(text)
                value = self.evaluated(text)
            except Misfit:
                continue
            except Exception:
                continue
            if (fits is None or fits(value)) and _is_usable(value):
                self.features.add(template)
                return text, value
        raise Misfit

    def _nested(self, text: str) -> str:
        """One name in it replaced by an expression."""
        inner = self.filled(self.draws.choice(templates()["floats"]))
        names = sorted(
            {n for n in self.those(_is_float) if re.search(rf"\b{re.escape(n)}\b", text)}
        )
        if not names:
            return text
        name = self.draws.choice(names)
        return re.sub(rf"(?<![\w.]){re.escape(name)}\b", lambda _: f"({inner})", text, count=1)

    def evaluated(self, text: str) -> Any:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return eval(text, self.values)

    # -- statements -------------------------------------------------------------------------

    def executed(self, lines: Iterable[str], grad: bool = False) -> bool:
        """Execute statements on the values; False, and nothing changed, where they raise."""
        kept = {k: v for k, v in self.values.items() if k not in _header_names()}
        try:
            with torch.set_grad_enabled(grad), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile(_unwrapped(lines), "fuzz", "exec"), self.values)
        except _Returned:
            return True
        except Exception:
            for name in set(self.values) - set(kept) - _header_names():
                del self.values[name]
            self.values.update(kept)
            return False
        return True

    def bind(self, name: str) -> None:
        if name in self.names:
            self.names.remove(name)
        self.names.append(name)

    def assign(self, name: str, *blocks: str, **given: Any) -> list[str]:
        text, value = self.expression(*blocks, **given)
        self.values[name] = value
        self.bind(name)
        return [f"{name} = {text}"]


@cache
def _header_names() -> frozenset[str]:
    found: dict[str, Any] = {"_Returned": None}
    exec(HEADER, found)
    return frozenset(found)


class _Unwrapped(ast.NodeTransformer):
    """Statements of a function as those of a module: no return, no nonlocal."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.body = [_Inner().visit(one) for one in node.body]
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        return _Inner().visit(node)

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        name = ast.Name("_Returned", ast.Load())
        return ast.copy_location(ast.Raise(name, None), node)


class _Inner(ast.NodeTransformer):
    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.stmt:
        return ast.copy_location(ast.Global(node.names), node)


def _unwrapped(lines: Iterable[str]) -> ast.Module:
    text = "def _w():\n" + "\n".join("    " + line for line in lines)
    (wrapped,) = ast.parse(text).body
    assert isinstance(wrapped, ast.FunctionDef)
    body = [_Unwrapped().visit(one) for one in wrapped.body]
    return ast.fix_missing_locations(ast.Module(body, []))


def _is_float(value: Any) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and value.dtype == torch.float32
        and 0 < value.numel() <= _LARGEST
        and value.dim() <= 4
    )


def _broadcasts(shape: Any, other: Any) -> bool:
    try:
        return bool(np.broadcast_shapes(tuple(shape), tuple(other)) == tuple(other))
    except ValueError:
        return False


def _is_usable(value: Any) -> bool:
    """Whether a value can be compared and is small and finite."""
    try:
        return is_finite(SIDE.plain(value)) and not (
            isinstance(value, torch.Tensor) and value.numel() > 4 * _LARGEST
        )
    except (Unplain, RuntimeError, ValueError):
        return False
