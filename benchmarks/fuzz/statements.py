"""Write the body of a function: statement forms of every kind around expressions."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
from cases import Call
from writer import Misfit, Writer, templates

Lines = list[str]


def indented(lines: Lines, by: int = 1) -> Lines:
    return ["    " * by + line if line else line for line in lines]


class Body:
    """Writes statements with a writer; ``before`` collects definitions that precede the function."""

    def __init__(
        self, writer: Writer, calls: list[Call] | None = None, profile: str = "plain"
    ) -> None:
        self.w = writer
        self.profile = profile
        self.calls = calls or []
        self.before: Lines = []
        self.shown: list[str] = []

    @property
    def draws(self) -> random.Random:
        return self.w.draws

    # -- blocks -----------------------------------------------------------------------------

    def block(self, size: int, depth: int = 0, loop: bool = False) -> Lines:
        """Up to ``size`` statements."""
        lines: Lines = []
        for _ in range(size):
            for _ in range(4):
                form = self.draws.choices(*_weighted(self.profile, depth))[0]
                try:
                    found = form(self, depth)
                except (Misfit, RecursionError, TypeError, IndexError, ValueError, RuntimeError):
                    continue
                if found:
                    lines += found
                    self.w.features.add(form.__name__)
                    break
            if loop and self.draws.random() < 0.2 and lines:
                lines += self.jump()
        return lines or ["pass"]

    def branch(self, size: int, depth: int, loop: bool = False) -> Lines:
        """Statements that may not run: written on copies of the values."""
        other = Body(self.w.fork(), self.calls, self.profile)
        other.before = self.before
        lines = other.block(size, depth, loop)
        self.w.fresh_number = other.w.fresh_number
        return lines

    def jump(self) -> Lines:
        try:
            condition, _ = self.w.expression("conditions")
        except Misfit:
            return []
        return [f"if {condition}:", "    " + self.draws.choice(["break", "continue"])]

    def condition(self) -> str:
        return self.w.expression("conditions")[0]

    def run(self, lines: Lines) -> Lines:
        """The lines, if they can be executed here."""
        if not self.w.executed(lines):
            raise Misfit
        return lines

    def show(self, text: str) -> None:
        self.shown.append(text)

    # -- plain statements -------------------------------------------------------------------

    def assigned(self, depth: int) -> Lines:
        blocks = ["floats"] * 6 + ["ints", "bools", "numbers", "lists"]
        name = self.w.fresh()
        if self.draws.random() < 0.3 and (known := self.w.those(_simple)):
            name = self.draws.choice(
                [n for n in known if n.isidentifier() and n[0] not in "ni"] or [name]
            )
        return self.w.assign(name, *blocks)

    def row(self, depth: int) -> Lines:
        if not self.calls:
            raise Misfit
        call = self.draws.choice(self.calls)
        name = self.w.fresh()
        lines = self.run([f"{name} = {call.text}"])
        self.w.bind(name)
        self.show(name)
        return lines

    def written(self, depth: int) -> Lines:
        for _ in range(12):
            template = self.draws.choice(templates()["writes"])
            try:
                text = self.w.filled(template)
            except Misfit:
                continue
            if self.w.executed([text]):
                self.w.features.add(template)
                return [text]
        raise Misfit

    def aliased(self, depth: int) -> Lines:
        """A view or another name, a write through one of them, and both are read later."""
        name = self.w.fresh()
        lines = self.w.assign(name, "views")
        if self.draws.random() < 0.5:
            lines += self.optional(self.assigned, depth)
        for _ in range(8):
            template = self.draws.choice(templates()["writes"])
            places = {}
            value = self.w.values[name]
            if self.draws.random() < 0.6 and isinstance(value, torch.Tensor):
                places = {"x": name, "x2": name, "of": name}
            try:
                text = self.w.filled(template, **places)
            except Misfit:
                continue
            if self.w.executed([text]):
                self.w.features.add(template)
                return [*lines, text]
        return lines

    def optional(self, form: Callable[[int], Lines], depth: int) -> Lines:
        try:
            return form(depth)
        except Misfit:
            return []

    def unpacked(self, depth: int) -> Lines:
        a, b = self.w.fresh(), self.w.fresh()
        forms = ["{a}, {b} = {x}.shape[0], {x}", "{a}, {b} = {x}, {s}", "{a}, *{b} = {x}.shape",
                 "{a}, {b} = {x}.max({d})", "{a}, {b} = {x}.chunk(2)", "{a}, {b} = {x}.sort({d})",
                 "*{a}, {b} = [{x}, {s}, 1.0]", "({a}, {b}), u9 = ({x}, {s}), 1", "{a} = {b} = {x}",
                 "{a} = {b} = {x} * 2", "{a}, {b} = torch.split({x}, 1)[:2]", "[{a}, {b}] = {x}[:2]",
                 "{a}, {b} = {s}, {x}\n{a}, {b} = {b}, {a}", "{a}, {b} = divmod({k}, 2)",
                 "{a}, {b} = {x2}.shape[:2]", "{a}, {b} = torch.max({x}, dim={d})"]  # fmt: skip
        text = self.w.filled(self.draws.choice(forms), a=a, b=b)
        lines = self.run(text.split("\n"))
        self.w.bind(a)
        self.w.bind(b)
        return lines

    def container(self, depth: int) -> Lines:
        """A list, tuple or dict of tensors that is changed and read."""
        name, other = self.w.fresh(), self.w.fresh()
        lines = self.w.assign(name, "lists")
        forms = ["{l}.append({x})", "{l}.extend([{x}, {s}])", "{l}.insert(0, {x})", "{l}.pop()",
                 "{l}.pop(0)", "{l}.reverse()", "{l}[0] = {x}", "{l} += [{x}]", "{l} = {l} + [{x}]",
                 "{o} = {l}\n{o}.append({x})", "{o} = list({l})\n{o}.append({x})", "{l}['a'] = {x}",
                 "{l}[0].add_(1)", "{l}[0] += 1", "{o} = {l}[0]\n{o}.mul_(2)", "{o} = {l}[-1]",
                 "{l}.update(z={x})", "{l}.setdefault('y', {x})", "{o} = {l}.get('a', {x})",
                 "{o} = {l}.pop('a')", "for q in {l}: q.add_(1)", "{o} = [q * 2 for q in {l}]",
                 "{o} = torch.stack({l})", "{o} = torch.cat(list({l}))", "{o} = sum({l})",
                 "{o} = torch.stack({l}, 0).sum(0)", "for q in {l}.values(): q.mul_(2)",
                 "{l}['a'] += 1", "{o} = len({l})", "{o} = {l}[1:]", "{o} = {l}[::-1]", "{o} = {l} * 2",
                 "{o} = {l}.copy()\n{o}.append({x})", "{o} = {l}[:]\n{o}[0] = {x}", "del {l}[0]",
                 "{o} = dict({l})", "{o} = {{k9: v9 * 2 for k9, v9 in {l}.items()}}",
                 "{o} = list({l}.values())", "{o} = [q for q in {l} if q is not None]",
                 "{o} = max(len({l}), 1)", "{o} = [(i9, q) for i9, q in enumerate({l})]",
                 "{l}.sort()", "{l}.clear()", "{o} = {l}.index({k})", "{o} = {l}.count({k})",
                 "{o} = torch.tensor({l})", "{o} = sorted({l})", "{o}, *_ = {l}", "{o} = {l} or [{x}]",
                 "{o} = {k} in {l}", "{o} = (lambda *a9: len(a9))(*{l})", "{o} = [{l}, {l}]\n{o}[0].append({x})",
                 "{o} = any(torch.is_tensor(q) for q in {l})", "{l}[0][0] = {f}", "{l}[-1].zero_()",
                 "{o} = list(map(lambda q: q + 1, {l}))", "{o} = [*{l}, {x}]", "{o} = {{**{l}, 'b': {x}}}",
                 "{o} = list(reversed({l}))", "{o} = list(zip({l}, {l}))", "{o} = next(iter({l}))"]  # fmt: skip
        for _ in range(self.draws.randint(1, 3)):
            for _ in range(10):
                try:
                    text = self.w.filled(self.draws.choice(forms), l=name, o=other).split("\n")
                except Misfit:
                    continue
                if self.w.executed(text):
                    lines += text
                    if other in self.w.values:
                        self.w.bind(other)
                    break
        self.show(name)
        return lines

    def gathered(self, depth: int) -> Lines:
        """A list of tensors that a loop fills, and what becomes of it."""
        name, out = self.w.fresh(), self.w.fresh()
        item = self.w.expression("floats")[0]
        heads = ["range({n})", "{x}", "[{x}, {s}]", "{x}.unbind(0)", "reversed(range({n}))"]
        head = self.w.filled(self.draws.choice(heads))
        lines = [f"{name} = []", f"for i9 in {head}:", f"    {name}.append({item})"]
        if self.draws.random() < 0.4:
            lines = [f"{name} = [{item} for i9 in {head}]"]
        ends = ["torch.stack({l})", "torch.cat({l}, 0)", "{l}", "sum({l})", "{l}[-1]", "len({l})",
                "torch.stack({l}, dim=0).mean(0)", "{l}[0] + {l}[-1]", "tuple({l})", "torch.stack({l}, -1)"]  # fmt: skip
        lines.append(f"{out} = {self.w.filled(self.draws.choice(ends), l=name)}")
        return self.kept(lines)

    def updated(self, depth: int) -> Lines:
        """A tensor of its own that is filled in place."""
        name = self.w.fresh()
        starts = ["torch.zeros_like({x})", "{x}.clone()", "torch.zeros(3, 4)", "{x} * 1.0", "torch.ones({x}.shape)",
                  "{x}.new_zeros({x}.shape)", "torch.empty_like({x}).fill_(0.5)", "torch.zeros({x}.shape)"]  # fmt: skip
        lines = [f"{name} = {self.w.filled(self.draws.choice(starts))}"]
        self.run(lines)
        self.w.bind(name)
        for _ in range(self.draws.randint(1, 3)):
            for _ in range(8):
                template = self.draws.choice(templates()["writes"][:90])
                try:
                    text = self.w.filled(template, x=name, x2=name, of=name)
                except Misfit:
                    continue
                if self.w.executed([text]):
                    self.w.features.add(template)
                    lines.append(text)
                    break
        return lines

    def walrus(self, depth: int) -> Lines:
        text, _ = self.w.expression("floats", "numbers")
        name = self.w.fresh()
        target = self.w.fresh()
        lines = self.run(
            self.draws.choice(
                [
                    [f"if ({name} := {text}) is not None:", f"    {target} = {name} * 2"],
                    [f"{target} = ({name} := {text}) + 1"],
                    [f"{target} = [{name} := {text}, {name}]"],
                    [f"while ({name} := {text}) is None:", "    pass", f"{target} = {name}"],
                ]
            )
        )
        self.w.bind(name)
        self.w.bind(target)
        return lines

    def ternary(self, depth: int) -> Lines:
        a, _ = self.w.expression("floats", "numbers", "lists")
        b, _ = self.w.expression("floats", "numbers")
        name = self.w.fresh()
        lines = self.run([f"{name} = {a} if {self.condition()} else {b}"])
        self.w.bind(name)
        return lines

    def deleted(self, depth: int) -> Lines:
        names = [n for n in self.w.those(_simple) if n.isidentifier() and n[-1].isdigit()
                 and n not in self.shown]  # fmt: skip
        if len(names) < 4 or depth:
            raise Misfit
        name = self.draws.choice(names[:-1])
        if name.startswith("x"):
            raise Misfit
        self.w.names.remove(name)
        del self.w.values[name]
        return [f"del {name}"]

    def asserted(self, depth: int) -> Lines:
        text = self.condition()
        return self.run([f"assert {text} or True, 'never'"])

    # -- control flow -----------------------------------------------------------------------

    def if_else(self, depth: int) -> Lines:
        head = self.condition()
        first, second = self.branch(2, depth + 1), self.branch(2, depth + 1)
        lines = [f"if {head}:", *indented(first)]
        if self.draws.random() < 0.3:
            with suppress(Misfit):
                lines += [f"elif {self.condition()}:", *indented(self.branch(1, depth + 1))]
        if self.draws.random() < 0.7:
            lines += ["else:", *indented(second)]
        return self.kept(lines)

    def kept(self, lines: Lines) -> Lines:
        """The lines executed, and the names that they bind."""
        self.run(lines)
        for name in sorted(_targets(lines)):
            if name in self.w.values and name not in self.w.names:
                self.w.names.append(name)
        return lines

    def for_loop(self, depth: int) -> Lines:
        if depth > 1:
            raise Misfit
        i = self.w.fresh("i")
        heads = ["range({n})", "range(1, 4)", "[{x}, {s}]", "{x}", "enumerate({x})", "zip({x}, {x})",
                 "reversed(range({n}))", "({x}, {s}, {x})", "{x}.unbind(0)", "[1, 2.0, {x}]",
                 "range({x}.shape[0])", "{x}.chunk(2)", "[]", "{x}.shape", "{x}.tolist()"]  # fmt: skip
        text = self.w.filled(self.draws.choice(heads))
        values = list(self.w.evaluated(text))
        other = Body(self.w.fork(), self.calls, self.profile)
        other.before = self.before
        target = i
        if text.startswith(("enumerate", "zip")):
            target = f"{i}, {self.w.fresh('q')}"
        if values:
            names = target.split(", ")
            parts = [values[0]] if len(names) == 1 else list(values[0])
            for name, value in zip(names, parts, strict=True):
                other.w.values[name] = value
                other.w.names.append(name)
        body = other.block(self.draws.randint(1, 3), depth + 1, loop=True)
        self.w.fresh_number = other.w.fresh_number
        lines = [f"for {target} in {text}:", *indented(body)]
        if self.draws.random() < 0.2:
            lines += ["else:", *indented(self.branch(1, depth + 1))]
        return self.kept(lines)

    def while_loop(self, depth: int) -> Lines:
        if depth > 1:
            raise Misfit
        n = self.w.fresh("n")
        self.w.values[n] = 0
        self.w.bind(n)
        body = self.branch(self.draws.randint(1, 3), depth + 1)
        bound = self.draws.randint(1, 3)
        if self.draws.random() < 0.5:
            lines = [f"{n} = 0", f"while {n} < {bound}:", f"    {n} += 1", *indented(body)]
        else:
            lines = [f"{n} = 0", "while True:", f"    {n} += 1", *indented(body),
                     f"    if {n} >= {bound}:", "        break"]  # fmt: skip
            if any("continue" in line for line in body):
                raise Misfit
        if self.draws.random() < 0.15:
            lines += ["else:", *indented(self.branch(1, depth + 1))]
        return self.kept(lines)

    def tried(self, depth: int) -> Lines:
        body = self.branch(2, depth + 1)
        raising = self.draws.choice(
            ["raise ValueError('a')", "int('a')", "[][1]", "{}['a']", "None.a", "1 / 0", "pass"]
        )
        lines = ["try:", *indented(body), f"    {raising}"]
        lines += [self.draws.choice(["except Exception:", "except (ValueError, TypeError, IndexError, "
                  "KeyError, AttributeError, ZeroDivisionError) as error:"])]  # fmt: skip
        lines += indented(self.branch(1, depth + 1))
        if self.draws.random() < 0.3:
            lines += ["else:", *indented(self.branch(1, depth + 1))]
        if self.draws.random() < 0.4:
            lines += ["finally:", *indented(self.branch(1, depth + 1))]
        return self.kept(lines)

    def with_block(self, depth: int) -> Lines:
        head = self.draws.choice(
            ["torch.no_grad()", "torch.no_grad()", "torch.enable_grad()", "contextlib.nullcontext()",
             "torch.set_grad_enabled(True)", "contextlib.suppress(ValueError)"]
        )  # fmt: skip
        return self.kept([f"with {head}:", *indented(self.branch(2, depth + 1))])

    def matched(self, depth: int) -> Lines:
        subject, _ = self.w.expression("numbers", "lists")
        name = self.w.fresh()
        lines = [f"match {subject}:"]
        cases = ["case 0:", "case 1 | 2:", "case [a9, b9]:", "case [a9, *b9]:", "case {'a': a9}:",
                 "case int() if flag:", "case (_, _, _):", "case str():", "case torch.Tensor():"]  # fmt: skip
        for head in self.draws.sample(cases, 2):
            text, _ = self.w.expression("floats", "numbers")
            lines += ["    " + head, f"        {name} = {text}"]
        text, _ = self.w.expression("floats")
        lines += ["    case _:", f"        {name} = {text}"]
        return self.kept(lines)

    def early_return(self, depth: int) -> Lines:
        if not depth and self.draws.random() < 0.5:
            raise Misfit
        text, _ = self.w.expression("floats", "numbers", "lists")
        head = self.condition()
        if self.w.evaluated(f"bool({head})") and self.draws.random() < 0.8:
            head = f"not ({head})"
        return [f"if {head}:", f"    return {text}"]

    # -- functions --------------------------------------------------------------------------

    def nested(self, depth: int) -> Lines:
        """A function inside the function, perhaps a closure that writes an outer name."""
        name, result = self.w.fresh("f"), self.w.fresh()
        other = Body(self.w.fork(), self.calls, self.profile)
        parameter, _ = self.w.expression("floats", "floats", "numbers")
        other.w.values["p9"] = self.w.evaluated(parameter)
        other.w.names.append("p9")
        body = other.block(2, 2)
        text, _ = other.w.expression("floats", "numbers", "lists")
        self.w.fresh_number = other.w.fresh_number
        outer = [n for n in self.w.those(_simple) if n.isidentifier() and n[-1].isdigit()
                 and not n.startswith(("x", "p9"))]  # fmt: skip
        lines = [f"def {name}(p9, q9=2.0, *r9, **s9):"]
        if outer and self.draws.random() < 0.5 and not depth:
            # what the closure writes may be of another kind than what was there
            changed = self.draws.choice(outer)
            new, _ = other.w.expression("floats", "others", "numbers")
            taken = _targets(body)
            lines += [f"    nonlocal {changed}"]
            body = [line for line in body if changed not in taken] + [f"{changed} = {new}"]
        elif set(_targets(body)) & set(outer):
            raise Misfit
        lines += [*indented(body), f"    return {text}"]
        calls = [f"{name}({parameter})", f"{name}({parameter}, 3.0)", f"{name}(p9={parameter}, z9=1)",
                 f"{name}({parameter}, 1.0, 2, k9=3)", f"{name}(*[{parameter}])"]  # fmt: skip
        lines += [f"{result} = {self.draws.choice(calls)}"]
        if self.draws.random() < 0.2:
            lines += [f"{result} = {self.draws.choice(calls)}"]
        return self.kept(lines)

    def lambdas(self, depth: int) -> Lines:
        name = self.w.fresh()
        forms = ["(lambda a9: a9 * 2)({x})", "(lambda a9, b9=1: a9 + b9)({x})", "list(map(lambda a9: a9.sum(), [{x}, {s}]))",
                 "sorted([3, 1, 2], key=lambda a9: -a9)", "functools.partial(torch.sum, dim={d})({x})",
                 "functools.reduce(lambda a9, b9: a9 + b9, [{x}, {s}, {s}])", "max([{x}, {s}], key=lambda a9: a9.sum().item())",
                 "[f9({x}) for f9 in (torch.sin, torch.tanh)]", "(torch.sin if flag else torch.cos)({x})",
                 "dict(a=torch.relu, b=torch.sigmoid)['a']({x})", "getattr(torch, 'sin')({x})", "getattr({x}, 'sum')()",
                 "(lambda *a9: a9[0] + a9[1])({x}, {s})", "(lambda **a9: a9['q'])(q={x})", "[a9 for a9 in {x} if a9.sum() > 0]",
                 "{{i9: a9.sum() for i9, a9 in enumerate({x})}}", "sum(a9.sum() for a9 in {x})", "[[b9 for b9 in a9] for a9 in [{x}, {s}]]",
                 "next(a9 for a9 in [{x}, {s}])", "(lambda a9: lambda b9: a9 + b9)({x})({s})", "[a9 + b9 for a9, b9 in zip({x}, {x})]",
                 "functools.partial(F.softmax, dim=-1)({x})", "(lambda f9, a9: f9(a9))(torch.exp, -{x}.abs())", "torch.Tensor.sum({x})",
                 "list(filter(lambda a9: a9.sum() > 0, {x}))", "torch.stack([a9 * i9 for i9, a9 in enumerate({x})])"]  # fmt: skip
        text = self.w.filled(self.draws.choice(forms))
        lines = self.run([f"{name} = {text}"])
        self.w.bind(name)
        return lines

    def helper(self, depth: int) -> Lines:
        """A function of the module, called here; it may write into its argument."""
        if depth:
            raise Misfit
        name, result = f"h{self.w.fresh_number}_{self.w.tag}", self.w.fresh()
        self.w.fresh_number += 1
        inner = Writer(self.draws, self.w.tag)
        inner.features, inner.fresh_number = self.w.features, self.w.fresh_number
        text, _ = self.w.expression("floats", "views")
        other, value = self.w.expression("floats", "numbers", "others", "lists")
        inner.values["a9"], inner.values["b9"] = self.w.evaluated(text), value
        inner.names = ["a9", "b9"]
        inner.values["flag"] = self.w.values.get("flag", False)
        body = Body(inner, None, self.profile)
        lines = body.block(self.draws.randint(1, 3), 1)
        if any("flag" in line for line in lines):
            raise Misfit
        if self.draws.random() < 0.5:
            lines += body.optional(body.written, 1)
        given, _ = inner.expression("floats", "numbers", "lists")
        if "flag" in given:
            raise Misfit
        head = self.draws.choice(
            ["(a9, b9)", "(a9, b9=None)", "(a9: torch.Tensor, b9)", "(*c9)", "(a9, *, b9)"]
        )
        opening = ["    a9, b9 = c9"] if head == "(*c9)" else []
        definition = [f"def {name}{head}:", *opening, *indented(lines), f"    return {given}"]
        keyword = "b9=" if head in ("(a9, *, b9)",) else ""
        call = [f"{result} = {name}({text}, {keyword}{other})"]
        self.run(definition)
        lines = self.run(call)
        self.before += ["", "", *definition]
        self.w.bind(result)
        self.w.fresh_number = inner.fresh_number
        return lines


def _simple(value: Any) -> bool:
    return isinstance(value, (torch.Tensor, int, float, list, dict, tuple))


def _targets(lines: Lines) -> set[str]:
    """The names that statements bind, except in functions inside them."""
    import ast

    found: set[str] = set()

    def look(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.Lambda)):
                continue
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                found.add(child.id)
            look(child)

    look(ast.parse("def _w():\n" + "\n".join("    " + line for line in lines)).body[0])
    return {n for n in found if not n.endswith("9")}


def _weighted(profile: str, depth: int) -> tuple[list[Callable[[Body, int], Lines]], list[int]]:
    from confusion import confused
    from scenes import scene

    forms: dict[Callable[[Body, int], Lines], int] = {
        Body.assigned: 12, Body.row: 10, Body.unpacked: 3, Body.gathered: 2, Body.walrus: 1,
        Body.ternary: 2, Body.deleted: 1, Body.asserted: 1, Body.if_else: 5, Body.for_loop: 4,
        Body.while_loop: 2, Body.tried: 1, Body.with_block: 1, Body.matched: 1,
        Body.early_return: 2, Body.nested: 2, Body.lambdas: 3, Body.helper: 3, Body.updated: 1,
        scene: 8,
    }  # fmt: skip
    if profile in ("writes", "mixed"):
        forms |= {Body.written: 6, Body.aliased: 8, Body.container: 5, Body.updated: 4}
    if profile in ("kinds", "mixed"):
        forms |= {confused: 9, Body.container: 3, Body.tried: 3, Body.nested: 4}
    if depth > 1:
        forms = {f: n for f, n in forms.items() if f in (
            Body.assigned, Body.row, Body.written, Body.aliased, Body.unpacked, Body.container,
            Body.ternary, Body.lambdas, Body.if_else, Body.gathered)}  # fmt: skip
    return list(forms), list(forms.values())
