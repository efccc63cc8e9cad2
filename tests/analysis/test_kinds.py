"""Kinds inside of one unit: each form of binding, branching and sharing, and what must stay open.

In a program ``id(x)  # Tensor | int`` says what ``x`` may be there. Half of the cases are those in
which a value of another way, name or round has to be seen.
"""

from __future__ import annotations

import ast
import textwrap
from functools import cache

import pytest

from migrate.analysis.types.kinds import UNKNOWN, Atom
from migrate.engine import rewrite
from migrate.mapping import table
from migrate.syntax.source import read

HEAD = """\
import torch
import numpy as np
"""

CASES = {
    "both branches": """
        def f(flag, t: torch.Tensor):
            v = t
            if flag:
                v = [1]
            id(v)  # Tensor | list[int]
    """,
    "a branch that returns does not count": """
        def f(flag, t: torch.Tensor):
            v = [1]
            if flag:
                return v
            else:
                v = t
            id(v)  # Tensor
    """,
    "a branch that raises does not count": """
        def f(flag, t: torch.Tensor):
            v = 1
            if flag:
                raise ValueError(v)
            v = t
            id(v)  # Tensor
    """,
    "break": """
        def f(n: int, t: torch.Tensor):
            v = [1]
            for i in range(n):
                if i == 3:
                    v = t
                    break
                v = "s"
            id(v)  # Tensor | list[int] | str
    """,
    "continue": """
        def f(n: int, t: torch.Tensor):
            v = 1
            for i in range(n):
                id(v)  # Tensor | int
                if i:
                    v = t
                    continue
                v = 2
            id(v)  # Tensor | int
    """,
    "while True ends at its break": """
        def f(flag, t: torch.Tensor):
            v = 1
            while True:
                if flag():
                    v = t
                    break
                v = "s"
            id(v)  # Tensor
    """,
    "a chain in a loop": """
        def f(n: int, t: torch.Tensor):
            a = 1
            b = 2.0
            c = "s"
            for i in range(n):
                id(a)  # Tensor | float | int | str
                a = b
                b = c
                c = t
    """,
    "else of a loop": """
        def f(n: int, t: torch.Tensor):
            v = 1
            for i in range(n):
                if i:
                    break
            else:
                v = t
                id(v)  # Tensor
            id(v)  # Tensor | int
    """,
    "else of a loop without break": """
        def f(n: int, t: torch.Tensor):
            for i in range(n):
                v = i
            else:
                v = t
            id(v)  # Tensor
    """,
    "a loop may not run": """
        def f(xs: list, t: torch.Tensor):
            v = 1
            for x in xs:
                v = t
            id(v)  # Tensor | int
    """,
    "try that returns": """
        def f(load, t: torch.Tensor):
            v = 1
            try:
                v = t
                load()
                return v
            except ValueError:
                id(v)  # Tensor | int
            id(v)  # Tensor | int
    """,
    "a handler sees every state": """
        def f(load, t: torch.Tensor):
            v = 1
            try:
                v = t
                load()
                v = "s"
                load()
                v = None
            except ValueError:
                id(v)  # Tensor | int | str
    """,
    "else of try": """
        def f(load, t: torch.Tensor):
            v = 1
            try:
                load()
            except ValueError:
                v = "s"
            else:
                v = t
                id(v)  # Tensor
            id(v)  # Tensor | str
    """,
    "finally": """
        def f(load, t: torch.Tensor):
            v = 1
            try:
                v = t
                load()
            finally:
                id(v)  # Tensor | int
    """,
    "finally of a return": """
        def f(flag, t: torch.Tensor):
            v = 1
            try:
                if flag:
                    v = t
                    return v
                v = "s"
            finally:
                id(v)  # Tensor | int | str
    """,
    "finally binds last": """
        def f(load, t: torch.Tensor):
            try:
                v = load()
            finally:
                v = t
            id(v)  # Tensor
    """,
    "the name of a handler is unbound": """
        e = 1

        def f(load, t: torch.Tensor):
            v = t
            try:
                load()
            except ValueError as v:
                pass
            id(v)  # Tensor
    """,
    "with binds what is entered": """
        class Held:
            def __enter__(self):
                return torch.ones(1)

            def __exit__(self, *of):
                pass

        def f():
            with Held() as v:
                id(v)  # Tensor
    """,
    "a manager that may swallow": """
        import contextlib

        def f(load, t: torch.Tensor):
            v = 1
            with contextlib.suppress(ValueError):
                load()
                v = t
            id(v)  # Tensor | int
    """,
    "match": """
        def f(x, t: torch.Tensor):
            match x:
                case 1:
                    v = t
                case "a":
                    v = 1
                case _:
                    v = "s"
            id(v)  # Tensor | int | str
    """,
    "match without a case for all": """
        def f(x, t: torch.Tensor):
            v = None
            match x:
                case 1:
                    v = t
            id(v)  # None | Tensor
    """,
    "match captures the subject": """
        def f(t: torch.Tensor):
            match t:
                case whole:
                    id(whole)  # Tensor
    """,
    "match captures a part": """
        def f(pair, t: torch.Tensor):
            v = t
            match pair:
                case [v, _]:
                    id(v)  # unknown
            id(v)  # Tensor | unknown
    """,
    "del": """
        def f(t: torch.Tensor):
            v = t
            del v
            v = 1
            id(v)  # int
    """,
    "short circuit": """
        def f(flag, t: torch.Tensor):
            v = 1
            flag and (v := t)
            id(v)  # Tensor | int
    """,
    "or of a walrus": """
        def f(flag, t: torch.Tensor):
            v = "s"
            if flag or (v := t) is None:
                id(v)  # Tensor | str
            else:
                id(v)  # Tensor
            id(v)  # Tensor | str
    """,
    "and of a walrus": """
        def f(flag, t: torch.Tensor):
            v = "s"
            if flag and (v := t) is not None:
                id(v)  # Tensor
            else:
                id(v)  # Tensor | str
    """,
    "a conditional expression": """
        def f(flag, t: torch.Tensor):
            v = (w := t) if flag else (w := 1)
            id(v)  # Tensor | int
            id(w)  # Tensor | int
    """,
    "the value is evaluated before the target": """
        def f(t: torch.Tensor):
            v = 1
            v = [v, v := t][0]
            id(v)  # Tensor | int
    """,
    "a walrus in a comprehension": """
        def f(xs: list, t: torch.Tensor):
            v = 1
            [id(v) for x in xs if (v := t) is not None]  # Tensor
            id(v)  # Tensor | int
    """,
    "a walrus of the round before": """
        def f(n: int, t: torch.Tensor):
            v = 1
            [(id(v), v := t) for i in range(n)]  # Tensor | int
    """,
    "the variable of a comprehension is its own": """
        def f(xs: list, t: torch.Tensor):
            v = t
            [v for v in (1, 2)]
            id(v)  # Tensor
    """,
    "star unpacking": """
        def f(t: torch.Tensor):
            a, *b, c = 1, t, "s"
            id(a)  # int
            id(b)  # list[Tensor | int | str]
            id(c)  # str
    """,
    "swapped": """
        def f(flag, t: torch.Tensor):
            a = 1
            b = t
            a, b = b, a
            id(a)  # Tensor
            id(b)  # int
    """,
    "swapped in a loop": """
        def f(n: int, t: torch.Tensor):
            a = 1
            b = t
            for i in range(n):
                a, b = b, a
            id(a)  # Tensor | int
    """,
    "not None": """
        def f(n: int, t: torch.Tensor):
            v = None
            for i in range(n):
                if v is None:
                    v = t
                else:
                    id(v)  # Tensor
                    v = v + 1
            id(v)  # None | Tensor
    """,
    "isinstance on one side": """
        def f(flag, t: torch.Tensor):
            v = t if flag else [1]
            if isinstance(v, list):
                id(v)  # list[int]
            else:
                id(v)  # Tensor
            id(v)  # Tensor | list[int]
    """,
    "what cannot be reached is not known wrongly": """
        def f(t: torch.Tensor):
            return 1
            v = 1
            id(v)  # unknown
    """,
    "an import that torch has does not fail": """
        def f():
            try:
                from torch import relu as v
            except ImportError:
                v = None
            id(v)  # ref
    """,
    "nonlocal": """
        def f(t: torch.Tensor):
            v = 1

            def inner():
                nonlocal v
                v = t

            inner()
            id(v)  # int | unknown, Tensor | int
    """,
    "global": """
        V = None

        def put(t: torch.Tensor):
            global V
            V = t

        def f():
            id(V)  # None | unknown, None | Tensor
    """,
    "a class body sees what is around it": """
        def f(t: torch.Tensor):
            v = t

            class Inner:
                v = v
                w = 1
                id(v)  # Tensor
                v = 1
                id(v)  # int

            id(v)  # Tensor
    """,
    "an append under another name": """
        def f(t: torch.Tensor):
            xs = []
            ys = xs
            ys.append(t)
            id(xs)  # list[Tensor]
    """,
    "two lists are two": """
        def f(t: torch.Tensor):
            xs = [1]
            ys = [2]
            ys.append(t)
            id(xs)  # list[int]
            id(ys)  # list[Tensor | int]
    """,
    "a copy is another list": """
        def f(t: torch.Tensor):
            xs = [1]
            ys = list(xs)
            zs = xs.copy()
            us = xs[:]
            ys.append(t)
            zs.append("s")
            us.append(None)
            id(xs)  # list[int]
            id(us)  # list[None | int]
    """,
    "either of two lists": """
        def f(flag, t: torch.Tensor):
            xs = [1]
            ys = ["s"]
            zs = xs if flag else ys
            zs.append(t)
            id(xs)  # list[Tensor | int]
            id(ys)  # list[Tensor | str]
    """,
    "in place addition is shared": """
        def f(t: torch.Tensor):
            xs = [1]
            ys = xs
            ys += [t]
            id(xs)  # list[Tensor | int]
    """,
    "addition is not shared": """
        def f(t: torch.Tensor):
            xs = [1]
            ys = xs + [t]
            id(xs)  # list[int]
            id(ys)  # list[Tensor | int]
    """,
    "a slice is written": """
        def f(t: torch.Tensor):
            xs = [1]
            ys = xs
            ys[:] = [t]
            id(xs)  # list[Tensor | int]
    """,
    "extend and insert": """
        def f(t: torch.Tensor):
            xs = [1]
            xs.extend([t])
            xs.insert(0, "s")
            id(xs)  # list[Tensor | int | str]
    """,
    "the method as a value": """
        def f(t: torch.Tensor):
            xs = []
            add = xs.append
            add(t)
            id(xs)  # list[Tensor]
    """,
    "a dictionary under another name": """
        def f(t: torch.Tensor):
            d = {}
            e = d
            e["a"] = t
            id(d["a"])  # Tensor
    """,
    "update and setdefault": """
        def f(t: torch.Tensor):
            d = {"a": 1}
            e = d
            e.update(b=t)
            e.setdefault("c", "s")
            id(d)  # dict[Tensor | int | str]
    """,
    "what setdefault gives is held": """
        def f(t: torch.Tensor):
            d = {}
            d.setdefault("a", []).append(t)
            id(d)  # dict[list[Tensor]]
    """,
    "a list in a list": """
        def f(t: torch.Tensor):
            rows = [[], []]
            rows[0].append(t)
            id(rows)  # list[list[Tensor]]
    """,
    "a list held by another": """
        def f(t: torch.Tensor):
            xs = []
            pair = (xs, 1)
            pair[0].append(t)
            id(xs)  # list[Tensor]
    """,
    "a function appends": """
        def put(a, b):
            a.append(b)

        def f(t: torch.Tensor):
            xs = [1]
            put(xs, t)
            id(xs)  # list[Tensor | int], list[int | unknown], list[Tensor | int | unknown]
    """,
    "a function only reads": """
        def count(a):
            return len(a)

        def f(t: torch.Tensor):
            xs = [1]
            count(xs)
            id(xs)  # list[int]
    """,
    "a function gives back its argument": """
        def same(a):
            return a

        def f(t: torch.Tensor):
            xs = [1]
            ys = same(xs)
            ys.append(t)
            id(xs)  # list[Tensor | int]
    """,
    "something unknown gets a list": """
        def f(g):
            xs = [1]
            g(xs)
            id(xs)  # list[int | unknown]
    """,
    "print gets a list": """
        def f(g):
            xs = [1]
            print(xs)
            id(xs)  # list[int]
    """,
    "a closure appends": """
        def f(t: torch.Tensor):
            xs = [1]

            def add(v):
                xs.append(v)

            add(t)
            id(xs)  # list[int | unknown], list[Tensor | int], list[Tensor | int | unknown]
    """,
    "a method that is tried": """
        def f(x):
            try:
                x.dim()
            except AttributeError:
                x = 1
            id(x)  # int | unknown
    """,
    "numbers of bools, longer tuples": """
        def f(n: int):
            b = n > 5 and True
            id(abs(True))  # int
            id(-True)  # int
            pair = (n, n) * 2
            a, c, d, e = pair
            id(e)  # int
    """,
    "a loop over what grows": """
        def f(t: torch.Tensor):
            xs = [1]
            for x in xs:
                id(x)  # Tensor | int
                xs.append(t)
    """,
    "an attribute": """
        class Net:
            def f(self, t: torch.Tensor):
                self.h = t
                id(self.h)  # Tensor
                self.h = 1
                id(self.h)  # int
    """,
    "a method stores an attribute": """
        class Net:
            def reset(self):
                self.h = [1]

            def f(self, t: torch.Tensor):
                self.h = t
                self.reset()
                id(self.h)  # Tensor | list[int]
    """,
    "a method that does not store it": """
        class Net:
            def log(self):
                print(self.h)

            def f(self, t: torch.Tensor):
                self.g = [1]
                self.h = t
                self.log()
                id(self.h)  # Tensor
    """,
    "a store under another name": """
        class Net:
            def f(self, t: torch.Tensor):
                self.h = t
                y = self
                y.h = [1]
                id(self.h)  # Tensor | list[int]
    """,
    "a store into another object of another class": """
        class Other:
            pass

        class Net:
            def f(self, t: torch.Tensor):
                self.h = t
                y = Other()
                y.h = [1]
                id(self.h)  # Tensor
    """,
    "a method appends to an attribute": """
        class Net:
            def __init__(self):
                self.items = []

            def push(self, t: torch.Tensor):
                self.items.append(t)

            def f(self):
                id(self.items)  # list[Tensor]
    """,
    "a list that an attribute holds": """
        class Net:
            def f(self, t: torch.Tensor):
                xs = []
                self.items = xs
                self.items.append(t)
                id(xs)  # list[Tensor]
    """,
    "use proves on the way it is on": """
        def f(x, flag):
            if flag:
                torch.relu(x)
                id(x)  # Tensor
            id(x)  # Tensor | unknown
    """,
    "use on every way proves": """
        def f(x, flag):
            id(x)  # Tensor
            if flag:
                return torch.relu(x)
            return torch.tanh(x)
    """,
    "use on one way does not prove for the other": """
        def f(x, flag):
            id(x)  # unknown
            if flag:
                return torch.relu(x)
            return x
    """,
    "a way that raises refutes nothing": """
        def f(x, flag):
            id(x)  # Tensor
            if flag:
                raise ValueError
            return torch.relu(x)
    """,
    "use behind a new binding": """
        def f(x, y):
            id(x)  # unknown
            x = y
            id(x)  # Tensor
            torch.relu(x)
    """,
    "use in a loop that may not run": """
        def f(x, n: int):
            id(x)  # unknown
            for i in range(n):
                torch.relu(x)
    """,
    "use of what is None otherwise": """
        def f(x=None):
            id(x)  # None | Tensor
            if x is not None:
                torch.relu(x)
    """,
    "use of what is tested proves nothing": """
        def f(x):
            id(x)  # unknown
            if isinstance(x, dict):
                x = x["a"]
            torch.relu(x)
    """,
    "use in a part that may not be evaluated": """
        def f(x, flag):
            id(x)  # unknown
            return flag and torch.relu(x)
    """,
    "options of a command line": """
        import argparse
        def f():
            parser = argparse.ArgumentParser()
            parser.add_argument("--size", "-s", type=int, default=3)
            parser.add_argument("--img-size", type=float, required=True)
            parser.add_argument("--lr", type=float, default=1)
            parser.add_argument("--seed", type=int)
            parser.add_argument("--flag", action="store_true")
            parser.add_argument("--name", default="x")
            parser.add_argument("--dims", type=int, nargs="+", default=[1])
            parser.add_argument("--made", type=torch.tensor, default="3")
            args = parser.parse_args()
            print(vars(args), {**vars(args)})
            v = args.size
            id(v)  # int
            v = args.img_size
            id(v)  # float
            v = args.lr
            id(v)  # float | int
            v = args.seed
            id(v)  # None | int
            v = args.flag
            id(v)  # bool
            v = args.name
            id(v)  # str
            v = args.dims
            id(v)  # list[int]
            v = args.made
            id(v)  # instance
            v = args.other
            id(v)  # instance
    """,
    "an option that some function binds anew": """
        import argparse
        def g(args):
            args.size = torch.ones(3)
        def f(flag, t: torch.Tensor):
            parser = argparse.ArgumentParser()
            parser.add_argument("--size", type=int, default=3)
            args = parser.parse_args()
            g(args)
            v = t if flag else args.size
            id(v)  # Tensor | instance
    """,
    "options that are bound by names that nobody wrote": """
        import argparse
        def f(found, flag, t: torch.Tensor):
            parser = argparse.ArgumentParser()
            parser.add_argument("--size", type=int, default=3)
            args = parser.parse_args()
            for key, value in found.items():
                setattr(args, key, value)
            v = t if flag else args.size
            id(v)  # Tensor | instance
    """,
    "options that a program makes itself": """
        import argparse
        def f(flag, t: torch.Tensor):
            parser = argparse.ArgumentParser()
            parser.add_argument("--size", type=int, default=3)
            parser.add_argument("--more", type=int, nargs="?", const=t, default=3)
            args = parser.parse_args()
            v = t if flag else args.more
            id(v)  # Tensor | instance
            args = argparse.Namespace(size=t)
            v = t if flag else args.size
            id(v)  # Tensor | unknown
    """,
    "options whose dict is handed to a function": """
        import argparse
        def g(table):
            table["size"] = torch.ones(3)
        def f(flag, t: torch.Tensor):
            parser = argparse.ArgumentParser()
            parser.add_argument("--size", type=int, default=3)
            args = parser.parse_args()
            g(vars(args))
            v = t if flag else args.size
            id(v)  # Tensor | instance
    """,
}  # fmt: skip


@cache
def rows() -> table.Table:
    return table.load(())


def shown(kind: frozenset[Atom]) -> str:
    return " | ".join(sorted({_atom(a) for a in kind})) or "nothing"


def _atom(atom: Atom) -> str:
    held = ", ".join(map(shown, atom.items))
    return f"{atom.kind}[{held}]" if held and atom.kind != "ref" else atom.kind


@pytest.mark.parametrize("name", CASES)
def test_kinds(name: str) -> None:
    text = HEAD + textwrap.dedent(CASES[name])
    inference = rewrite.analyse({"a.py": read("a.py", text.encode())}, rows()).inference
    lines = text.splitlines()
    looked = 0
    for node in inference.program.files["a.py"].of(ast.Call):
        if getattr(node.func, "id", "") == "id":
            wanted = lines[node.lineno - 1].partition("# ")[2].split(", ")
            found = shown(inference.kinds.get(id(node.args[0]), UNKNOWN))
            assert found in wanted, f"line {node.lineno}: {lines[node.lineno - 1].strip()}"
            looked += 1
    assert looked


def test_half_of_the_cases_keep_something_open() -> None:
    several = [n for n, text in CASES.items() if any(" | " in line for line in text.splitlines())]
    assert len(CASES) >= 60 and len(several) >= len(CASES) // 2
