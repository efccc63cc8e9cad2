"""In: the names a file uses. Out: how it spells MindSpore and helper names; its import lines."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count

from migrate.mapping.templates import LIBRARIES

# import root -> (module it is imported from, its usual name)
_ROOTS = {
    "mindspore": ("", "ms"),
    "mindspore.nn": ("mindspore", "nn"),
    "mindspore.ops": ("mindspore", "ops"),
    "mindspore.mint": ("mindspore", "mint"),
    "mindspore.amp": ("mindspore", "amp"),
    "mindspore.dataset": ("mindspore", "dataset"),
    "mindspore.numpy": ("mindspore", "numpy"),
    "mindspore.Tensor": ("mindspore", "Tensor"),
    "mindspore.Parameter": ("mindspore", "Parameter"),
    "mindspore.common.initializer": ("mindspore.common", "initializer"),
    "mindspore.experimental.optim": ("mindspore.experimental", "optim"),
}
_DIRECT = ("mindspore.Tensor", "mindspore.Parameter")
_MODULES = sys.stdlib_module_names | LIBRARIES | {"mindspore", "numpy"}


@dataclass(frozen=True)
class Spelling:
    """How one file names what it uses.

    ``taken`` are the names that the file binds itself (its torch imports apart); ``direct`` the
    roots that it already imported by their own name (``from torch import Tensor``); ``along``:
    what stands before the names of packages that are converted along.
    """

    taken: frozenset[str]
    direct: frozenset[str] = frozenset()
    along: Mapping[str, str] = field(default_factory=dict)
    _memo: dict[str, str] = field(default_factory=dict, compare=False)

    def local(self, name: str) -> tuple[str, str]:
        """(text, import root): "mindspore.nn.ReLU" is ("nn.ReLU", "mindspore.nn")."""
        if name.startswith("helpers."):
            return self.helper(name), name
        if hasattr(builtins, name.partition(".")[0]):
            return name, ""
        root = self._root(name)
        alias = self.alias(root)
        return alias + name[len(root) :], root

    def _root(self, name: str) -> str:
        for root in sorted(_ROOTS, key=len, reverse=True):
            if root in _DIRECT and root not in self.direct:
                continue
            if name == root or name.startswith(root + "."):
                return root
        head = name.partition(".")[0]
        if head not in self.along and head not in _MODULES:
            raise ValueError(f"{name!r} is the name of nothing that can be imported")
        return head

    def alias(self, root: str) -> str:
        """The local name of an import root; another than usual where the file uses that one."""
        if root not in self._memo:
            _, usual = _ROOTS.get(root, ("", root))
            other = f"ms_{usual}" if usual != "ms" else "mindspore"
            candidates = [usual, other, *(f"{other}{n}" for n in range(2, 9))]
            self._memo[root] = next(c for c in candidates if c not in self.taken)
        return self._memo[root]

    def _outer(self, root: str) -> str:
        """The package that a package converted along lies in, as an import names it."""
        before = self.along.get(root, "")
        return before if before.strip(".") == "" else before.rstrip(".")

    def free(self, name: str, others: Iterable[str]) -> str:
        """Return ``name``, or that with a number, that neither the file nor ``others`` bind."""
        taken = self.taken | set(others)
        numbered = (f"{name}{n}" for n in count(2))
        return name if name not in taken else next(n for n in numbered if n not in taken)

    def helper(self, name: str) -> str:
        """The local name of a helper ("helpers.rearrange")."""
        own = name.partition(".")[2]
        return own if own not in self.taken else self.free(f"torch_{own}", ())

    def lines(self, roots: Iterable[str]) -> list[str]:
        """The import statements for the roots, sorted as a person would."""
        plain: list[str] = []
        named: dict[str, list[str]] = {}
        for root in sorted(set(roots)):
            if not root or root.startswith("helpers."):
                continue
            module, usual = _ROOTS.get(root, (self._outer(root), root))
            alias = self.alias(root)
            if not module:
                plain.append(f"import {root}" + (f" as {alias}" if alias != root else ""))
                continue
            text = usual if alias == usual else f"{usual} as {alias}"
            named.setdefault(module, []).append(text)
        return plain + [
            f"from {module} import {', '.join(sorted(items, key=_import_order))}"
            for module, items in sorted(named.items())
        ]


def _import_order(text: str) -> tuple[bool, str]:
    return (text[:1].islower(), text.lower())
