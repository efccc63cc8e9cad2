"""In: a seed. Out: small torch functions that change tensors in place under several names.

Every function takes a tensor of shape 2x3 (float32) that nobody else holds, and gives back a tuple
of tensors. In-place operands are numbers, so any statement fits any shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

NAMES = ("a", "b", "c")

# what a name may be bound to; {0} is a name that has a value
_FRESH = ("{0}.clone()", "{0} + 1", "{0} * 2", "{0}.relu()", "{0}.abs()")
_SHARED = ("{0}", "{0}.view(-1)", "{0}.reshape(-1)", "{0}[0]", "{0}.detach()", "{0}.unsqueeze(0)")
_VIEWS = ("torch.flatten({0})", "torch.reshape({0}, (-1,))", "torch.unsqueeze({0}, 0)", "{0}[0:1]")
_CHANGE = ("{0}.add_(3)", "{0}.mul_(2)", "{0}.sub_(1)", "{0} += 2", "{0} *= 3", "{0}.clamp_(0, 4)")
_WRITE = ("{0}[0] = 5", "{0}[0] += 1")
_WHOLE = ("{0}.zero_()", "{0}.fill_(2)", "{0}.copy_({0} * 3)")
_BOXES = (
    "[{0}, {0} + 1][0]", "dict(k={0})['k']", "{0}.chunk(1)[0]", "({0} if flag else {0} * 2)",
    "list(zip([{0}], [{0} + 1]))[0][0]", "{0}[..., 0]", "{0}.expand_as({0})",
)  # fmt: skip
_IN_BOXES = (
    "for t in ({0},): t.mul_(2)", "[t.add_(1) for t in [{0}]]", "box = [{0}, {0} + 1]; box[0] += 1",
    "{0}[..., 0].fill_(2)", "{0}.mul_(2).add_(1)", "{0}.eq_(0)", "{0}[...] = {0} * 2",
    "{0}.unsqueeze(0).add_(1)", "{0}[None][0] += 1", "{0}.select(0, 0).mul_(2)",
    "{0}.T.add_(2)", "{0}.unsqueeze(0)[0][..., 0] = 7", "{0}.chunk(2)[0].mul_(3)",
)  # fmt: skip
_CALLS = ("same({0})", "grown({0})", "flat({0})", "either({0}, {0} * 2)")
_CALLED = ("raised({0})", "grown({0})", "first({0})", "part({0})", "{0} = grown({0})")
# functions that a program may call, each inside the program that does
HELPERS = {
    "same": "def same(t): return t",
    "grown": "def grown(t):\n        t.add_(1)\n        return t",
    "flat": "def flat(t): return t.reshape(-1)",
    "either": "def either(s, t):\n        if flag:\n            return s\n        return t",
    "raised": "def raised(t):\n        t.mul_(2)\n        t += 1",
    "first": "def first(t):\n        t[0] = 3",
    "part": "def part(t):\n        v = t.view(-1)\n        v.sub_(1)",
}
_LAYERS = ("F.relu({0}, inplace=True)", "F.relu({0}, True)", "torch.relu_({0})")


@dataclass(frozen=True)
class Grammar:
    """Which statements a program may hold."""

    bound: tuple[str, ...] = _FRESH + _SHARED
    changed: tuple[str, ...] = _CHANGE
    used: tuple[str, ...] = ("{0}.add_(1)", "{0}.mul_(2)")
    blocks: bool = True


PLAIN = Grammar()
ELEMENTS = Grammar(changed=_CHANGE + _WRITE)
WRITES = Grammar(changed=_CHANGE + _WHOLE)
LAYERS = Grammar(changed=_CHANGE + _LAYERS)
FUNCTIONS = Grammar(bound=_FRESH + _SHARED + _VIEWS)
BOXES = Grammar(bound=_FRESH + _SHARED + _BOXES, changed=_CHANGE + _IN_BOXES)
CALLS = Grammar(bound=_FRESH + _FRESH + _SHARED + _CALLS, changed=_CHANGE + _CALLED)


def program(name: str, random: Random, grammar: Grammar) -> str:
    """The source of one function called ``name``."""
    first = random.choice(NAMES)
    lines = [f"{first} = x.clone()"]
    known = {first}
    for _ in range(random.randint(3, 6)):
        if grammar.blocks and random.random() < 0.15:
            head = random.choice(("for _ in range(2):", "if flag:"))
            inner = [_line(random, grammar, known, known) for _ in range(random.randint(1, 3))]
            lines += [head, *("    " + line for line in inner)]
        else:
            lines.append(_line(random, grammar, known, NAMES))
    lines.append(f"return ({', '.join(sorted(known))},)")
    text = "".join(lines)
    lines = [h for n, h in HELPERS.items() if f"{n}(" in text] + lines
    return f"def {name}(x: torch.Tensor, flag: bool):\n" + "".join(f"    {n}\n" for n in lines)


def _line(
    random: Random, grammar: Grammar, known: set[str], targets: set[str] | tuple[str, ...]
) -> str:
    """One statement over names that surely have a value; the name it binds joins them."""
    old = random.choice(sorted(known))
    if random.random() < 0.5:
        return random.choice(grammar.changed).format(old)
    kinds = grammar.used if random.random() < 0.2 else grammar.bound
    value = random.choice(kinds).format(old)
    new = random.choice(sorted(targets))
    known.add(new)
    return f"{new} = {value}"


def module(seed: int, count: int, grammar: Grammar) -> str:
    """A module of ``count`` programs p0, p1, ..."""
    random = Random(seed)
    parts = [program(f"p{i}", random, grammar) for i in range(count)]
    return "import torch\nimport torch.nn.functional as F\n\n\n" + "\n\n".join(parts)
