"""Make programs from seeds: functions, Modules and training loops that torch runs stably."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from cases import Call, calls
from harness import Numpy
from models import model_program, training_program
from programs import Program
from scenes import scene_program
from statements import Body, Lines, indented
from torch_side import Oracle, TookLong, limited, oracle
from writer import Misfit, Writer

SHAPES = ((2, 3), (3,), (4,), (2, 3, 4), (3, 3), (2, 2), (1, 4), (4, 4), (2, 4), (5,))
CHOICES = ((0, False), (1, True), (2, True), (3, False), (1, False), (2, False), (0, True))
# statements of a function: most write nothing through views, some confuse kinds
PROFILES = (("plain", 70), ("writes", 10), ("kinds", 14), ("mixed", 6))
SHARES = (("call", 62), ("model", 17), ("train", 7), ("scene", 14))
# programs with a caller in the file, as nearly all of a project's functions have: 6 of 10 functions
# are annotated as well, so that about 15 of 100 programs have neither
CALLED = {"call": 0.625, "model": 0.85, "train": 0.85, "scene": 0.85}


def programs(
    seed: int, start: int, stop: int, bare: bool = False
) -> Iterator[tuple[Program, Oracle]]:
    """The programs of these numbers; a number whose draws give no valid program is drawn anew.

    ``bare``: none of them has a caller.
    """
    for number in range(start, stop):
        for attempt in range(40):
            draws = random.Random(f"{seed}/{number}/{attempt}")
            kind = draws.choices([k for k, _ in SHARES], [n for _, n in SHARES])[0]
            found = one(draws, number, kind, bare)
            if found is not None:
                yield found
                break


def one(
    draws: random.Random, number: int, kind: str, bare: bool = False
) -> tuple[Program, Oracle] | None:
    """A program that torch runs, with what it gives; None: these draws give none."""
    make = {"call": call_program, "model": model_program, "train": training_program,
            "scene": scene_program}[kind]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            torch.manual_seed(0)
            with limited(4.0):
                program = make(draws, number)
            if not bare and draws.random() < CALLED[kind]:
                program = called(draws, program)
            return oracle(program)
        except (Exception, TookLong):  # what was drawn does not fit together, or has no end
            return None


def called(draws: random.Random, program: Program) -> Program:
    """The program with a function that calls it, which may read the arguments behind that."""
    tag, given = program.name.removeprefix("p"), program.calls[0]
    values = [_written(value) for value in given]
    built = [f"net = {program.entry}()"] if program.kind == "model" else []
    entry = "net" if built else program.entry
    keeps = draws.random() < 0.5
    if keeps:
        names = [f"a{i}" for i in range(len(values))]
        lines = [f"{name} = {value}" for name, value in zip(names, values, strict=True)]
        kept = [n for n, v in zip(names, given, strict=True) if isinstance(v, (np.ndarray, list))]
        lines += [*built, f"out = {entry}({', '.join(names)})", f"return out, {', '.join(kept)}"]
    else:
        lines = [*built, f"return {entry}({', '.join(values)})"]
    text = "\n".join([program.text.rstrip("\n"), "", "", f"def main{tag}():", *indented(lines)])
    return replace(program, text=text + "\n", lent=keeps)


def _written(value: Any) -> str:
    """An expression of a value like this one."""
    if isinstance(value, Numpy):
        return f"np.ones({value.array.shape}, np.float32)"
    if isinstance(value, np.ndarray):
        if value.dtype == np.float32:
            return f"torch.randn({', '.join(map(str, value.shape)) or '()'})"
        return f"torch.zeros({value.shape}, dtype=torch.{value.dtype})"
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value)) + "]"
    return repr(value)


def array(draws: random.Random, shape: tuple[int, ...]) -> np.ndarray:
    random_state = np.random.RandomState(draws.randrange(2**31))
    numbers = random_state.standard_normal(shape)
    numbers = np.where(np.abs(numbers) < 0.05, numbers + np.copysign(0.05, numbers), numbers)
    return np.asarray(numbers, np.float32)


def _renamed(call: Call, names: list[str]) -> Call:
    import re

    text = re.sub(r"\bx(\d+)\b", lambda m: names[int(m.group(1))], call.text)
    return Call(call.key, text, call.forward, call.inputs)


def call_program(draws: random.Random, number: int) -> Program:
    """A function of tensors and plain values with other functions and classes beside it."""
    tag = f"{number}"
    writer = Writer(draws, tag)
    names, arrays = [], []
    for _ in range(draws.randint(1, 2)):
        names.append(f"x{len(names)}")
        arrays.append(array(draws, draws.choice(SHAPES)))
    if draws.random() < 0.4:
        names.append(f"x{len(names)}")
        arrays.append(array(draws, arrays[-1].shape))
    rows = []
    for call in draws.sample(calls()[0], draws.choice([0, 1, 1, 2])):
        given = call.arrays()
        if sum(a.size for a in given) > 600:
            continue
        mine = [f"x{len(names) + i}" for i in range(len(given))]
        rows.append(_renamed(call, mine))
        names += mine
        arrays += given
        writer.features.add(f"row {call.key}")
    values: list[Any] = list(arrays)
    if draws.random() < 0.15:
        names.append(f"x{len(names)}")
        values.append(Numpy(array(draws, draws.choice(SHAPES))))
    if draws.random() < 0.2:
        names.append(f"x{len(names)}")
        values.append([array(draws, (3,)), array(draws, (3,))])
    options = draws.sample(CHOICES, 2)
    for name, value in zip(names, values, strict=True):
        writer.values[name] = _in_torch(value)
        writer.names.append(name)
    writer.values["n"], writer.values["flag"] = options[0]
    writer.names.append("n")
    profile = draws.choices([p for p, _ in PROFILES], [n for _, n in PROFILES])[0]
    writer.features.add(f"profile {profile}")
    body = Body(writer, rows, profile)
    parameters = [*names, "n", "flag"]
    if draws.random() < 0.6:
        parameters = [f"{p}: torch.Tensor" if isinstance(v, np.ndarray) else p
                      for p, v in zip(names, values, strict=True)] + ["n: int", "flag: bool = False"]  # fmt: skip
    lines = body.block(draws.randint(2, 6))
    lines += [f"return {returned(body)}"]
    text = assembled(body, f"def f{tag}({', '.join(parameters)}):", lines)
    chosen = tuple((*values, n, flag) for n, flag in options)
    return Program(f"p{tag}", "call", text, f"f{tag}", chosen,
                   features=frozenset(writer.features))  # fmt: skip


def _in_torch(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    if isinstance(value, Numpy):
        return value.array.copy()
    return [torch.from_numpy(v.copy()) for v in value]


def assembled(body: Body, head: str, lines: Lines) -> str:
    before = "\n".join(body.before).strip("\n")
    text = "\n".join([head, *indented(lines)]) + "\n"
    return f"{before}\n\n\n{text}" if before else text


def returned(body: Body) -> str:
    """An expression of what the function has computed."""
    from writer import _is_usable

    writer, draws = body.w, body.draws
    shown = [
        n for n in dict.fromkeys(body.shown) if n in writer.names and _is_usable(writer.values[n])
    ]
    rest = [n for n in writer.those(_is_usable) if n not in shown]
    chosen = [*shown[-4:], *rest[-3:]][:5] or rest[:1]
    if not chosen:
        raise Misfit
    forms = ["[{}]", "({},)", "{}", "dict"]
    form = draws.choice(forms)
    if form == "dict":
        return "{" + ", ".join(f"'{n}': {n}" for n in chosen) + "}"
    if len(chosen) == 1 and form == "{}":
        return chosen[0]
    return form.format(", ".join(chosen))
