"""Answer which Modules compute differently in training and in evaluation."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from migrate.analysis.program import File
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import Atom, without_none
from migrate.syntax.trees import within

_DEPENDENT = ("Dropout", "BatchNorm", "RReLU", "Transformer", "MultiheadAttention", "dropout",
              "rrelu", "batch_norm", "StochasticDepth", "DropBlock", "InstanceNorm")  # fmt: skip
_BY_SETTING = {
    "torch.nn.LSTM": "dropout", "torch.nn.GRU": "dropout", "torch.nn.RNN": "dropout",
    "torch.nn.InstanceNorm1d": "track_running_stats",
    "torch.nn.InstanceNorm2d": "track_running_stats",
    "torch.nn.InstanceNorm3d": "track_running_stats",
}  # fmt: skip
_CONTAINERS = ("torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict")


@dataclass(eq=False)
class Dependence:
    """Answers by class; what is not known depends on the mode."""

    inference: Inference
    _classes: dict[str, bool] = field(default_factory=dict)

    def depends(self, file: File, call: ast.Call) -> bool:
        """Return whether what a call builds computes differently in the two modes."""
        for atom in without_none(self.inference.kind(call.func)):
            if atom.kind == "class" and self._class_depends(atom.name):
                return True
            if atom.kind == "ref" and self._torch_depends(file, call, atom.name):
                return True
            if atom.kind not in ("class", "ref"):
                return True
        return any(self._given_depends(file, a) for a in _given(call))

    def _torch_depends(self, file: File, call: ast.Call | None, name: str) -> bool:
        last = name.rpartition(".")[2]
        if name in _BY_SETTING:
            named = {k.arg for k in call.keywords} if call is not None else {None}
            return _BY_SETTING[name] in named or None in named or len(getattr(call, "args", ())) > 4
        if "BatchNorm" in last and any(map(_keeps_nothing, getattr(call, "keywords", ()))):
            return False
        last = last.removeprefix("Lazy")  # a lazy InstanceNorm keeps statistics unless told not to
        return last.startswith(_DEPENDENT) or last.endswith(("Dropout", "BatchNorm"))

    def _given_depends(self, file: File, node: ast.expr) -> bool:
        """Whether a Module, a class or a list of them that a constructor gets depends on it."""
        if isinstance(node, ast.Call):
            kinds = {a.kind for a in self.inference.kind(node)}
            if kinds & {"Module"} or "unknown" in kinds:
                return self.depends(file, node) if "Module" in kinds else _is_container(node)
            return any(self._given_depends(file, a) for a in node.args)
        if isinstance(node, (ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp, ast.Starred)):
            parts = [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]
            return any(self._given_depends(file, n) for n in parts)
        if isinstance(node, ast.Dict):
            return any(self._given_depends(file, n) for n in node.values)
        return any(self._atom_depends(file, a) for a in self.inference.kind(node))

    def _atom_depends(self, file: File, atom: Atom) -> bool:
        if atom.kind in ("list", "tuple", "dict"):
            return any(self._atom_depends(file, a) for item in atom.items for a in item)
        if atom.kind in ("Module", "class"):
            known = atom.name and atom.name not in ("torch.nn.Module", *_CONTAINERS)
            if "::" in atom.name:
                return self._class_depends(atom.name)
            inner = [a for item in atom.items for a in item]
            if atom.name in _CONTAINERS and inner:
                return any(self._atom_depends(file, a) for a in inner)
            return not known or self._torch_depends(file, None, atom.name)
        if atom.kind == "ref":
            return self._torch_depends(file, None, atom.name)
        if atom.kind == "function" and "::" in atom.name:
            return self._function_depends(atom.name)
        return False

    def _class_depends(self, key: str) -> bool:
        if key in self._classes:
            return self._classes[key]
        self._classes[key] = False  # a class that holds others of its kind
        owner = self.inference.class_of(key)
        if owner is None:
            found = True
        else:
            file = self.inference.program.files[owner.path]
            bases = [a for base in self.inference.bases(key) for a in base]
            found = any(self._base_depends(file, a) for a in bases) or self._nodes_depend(
                file, within(owner.node)
            )
        self._classes[key] = found
        return found

    def _base_depends(self, file: File, atom: Atom) -> bool:
        if atom.kind == "class":
            return self._class_depends(atom.name)
        plain = atom.name in ("torch.nn.Module", *_CONTAINERS)
        return atom.kind != "ref" or (not plain and self._torch_depends(file, None, atom.name))

    def _function_depends(self, key: str) -> bool:
        if key not in self._classes:
            self._classes[key] = False
            function = self.inference.function_of(key)
            file = self.inference.program.files[function.path] if function is not None else None
            self._classes[key] = (
                function is None or file is None or self._nodes_depend(file, function.nodes)
            )
        return self._classes[key]

    def _nodes_depend(self, file: File, nodes: Iterable[ast.AST]) -> bool:
        for node in nodes:
            if isinstance(node, ast.Attribute) and node.attr == "training":
                return True
            if isinstance(node, ast.Call):
                kind = self.inference.kind(node)
                own = isinstance(file.parents.get(id(node)), ast.Assign)
                if own and any(a.kind == "Module" and a.name == "" for a in kind):
                    return True
                refs = [a for a in self.inference.kind(node.func) if a.kind == "ref"]
                if any(self._torch_depends(file, node, a.name) for a in refs):
                    return True
            if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
                for atom in self.inference.kind(node):
                    if atom.kind == "ref" and atom.name in _BY_SETTING:
                        continue
                    if atom.kind in ("class", "ref", "function") and self._atom_depends(file, atom):
                        return True
        return False


def _is_container(node: ast.Call) -> bool:
    return not isinstance(node.func, ast.Name) or node.func.id not in ("range", "len", "int", "str")


def _given(call: ast.Call) -> Iterator[ast.expr]:
    yield from call.args
    yield from (k.value for k in call.keywords)


def _keeps_nothing(keyword: ast.keyword) -> bool:
    """``track_running_stats=False``: the statistics are those of the batch in both modes."""
    value = keyword.value
    off = isinstance(value, ast.Constant) and value.value is False
    return keyword.arg == "track_running_stats" and off
