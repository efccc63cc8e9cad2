"""In: a scene. Out: every torch-derived reference in the file, counted before any decision."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from migrate.analysis.types.calling import bound_to
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import Atom, having, is_all, ordered, without_none
from migrate.analysis.types.own_names import chooses_modes, own_names
from migrate.sites import forward_names, module_members, operator_names, packages, unknown_receivers
from migrate.sites.late_writes import late_setting, registered_child
from migrate.sites.module_members import RENAMED, SETTINGS, is_own
from migrate.sites.packages import followed_name, follows
from migrate.sites.scene import Scene, once
from migrate.sites.unknown_receivers import FORWARD
from migrate.syntax.trees import last_name

CLASS = "torch.nn.Module.__class__"
APPLY = "torch.autograd.Function.apply"
SCHEDULES = "torch.optim.lr_scheduler."


class Form(Enum):
    """What kind of reference a site is."""

    IMPORT = "import"
    NAME = "name"
    MEMBER = "member"
    FIELD = "field"
    UNSURE = "unsure"
    FORWARD = "forward"
    INPLACE = "inplace"
    OWN = "own name"
    SETTING = "setting"
    OPERATOR = "operator"
    GRAPH = "graph mode"
    FOLLOWED = "followed"
    LATE = "setting of a layer"
    CLASS_TEXT = "text of a class's name"
    EVALUATED = "evaluated text"
    PACKAGE = "question about a package"
    STATEMENT = "statement"


@dataclass(frozen=True)
class Reference:
    """A site: its node, the torch name it stands for, and its form; what that assumes."""

    node: ast.AST
    name: str
    form: Form
    assumption: str = ""


def find(scene: Scene) -> list[Reference]:
    """The references, in the order of the text."""
    found: list[Reference] = [*_own(scene), *_switches(scene)]
    found += [
        Reference(text, CLASS, Form.CLASS_TEXT) for text in forward_names.named_classes(scene)
    ]
    found += [
        Reference(call, "torch.nn", Form.EVALUATED) for call in forward_names.evaluated(scene)
    ]
    for node in [n for n in scene.file.nodes if type(n) in _FINDERS]:
        for finder in _FINDERS[type(node)]:
            found += finder(scene, node)
    return sorted(found, key=lambda r: scene.source.span(r.node).start)


@once
def _own_names(inference: Inference) -> frozenset[str]:
    return own_names(inference)


def _own(scene: Scene) -> list[Reference]:
    """The names of the project's Modules that are taken in a Cell: definitions and uses."""
    names = _own_names(scene.inference)
    found: list[Reference] = []
    for node in scene.file.nodes if names else ():
        if isinstance(node, ast.Attribute) and node.attr in names:
            name = f"torch.nn.Module.{node.attr}"
            found += [Reference(node, name, Form.OWN)] if is_own(scene, node) else []
        elif isinstance(node, ast.ClassDef) and scene.is_module_class(scene.file.classes[id(node)]):
            for item in node.body:
                if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    bound: list[ast.AST] = [item] if item.name in names else []
                    bound += [n for d in item.decorator_list for n in ast.walk(d)]
                else:
                    bound = list(item.targets) if isinstance(item, ast.Assign) else []
                for one in bound:
                    name = getattr(one, "name", getattr(one, "id", ""))
                    if name in names:
                        found.append(Reference(one, f"torch.nn.Module.{name}", Form.OWN))
    return found


def _switches(scene: Scene) -> Iterator[Reference]:
    """``def train(self, mode)`` of a Module takes the place of torch's own."""
    for owner in scene.file.classes.values():
        if scene.is_module_class(owner) and chooses_modes(owner):
            yield Reference(owner.methods["train"].node, module_members.TRAIN, Form.OWN)


def _import(scene: Scene, node: ast.Import | ast.ImportFrom) -> list[Reference]:
    inference = scene.inference
    origin = "" if isinstance(node, ast.Import) else node.module or ""
    level = getattr(node, "level", 0)
    own = not inference.program.followed.package_of(scene.file.path)
    if not level and origin and own and inference.program.find_module(scene.file.path, origin):
        return []
    found = []
    for alias in node.names:
        full = f"{origin}.{alias.name}" if origin else alias.name
        if not level and follows(scene, node, alias):
            found.append(Reference(alias, full, Form.FOLLOWED))
            continue
        root = full.partition(".")[0]
        ours = not level and (root in inference.roots or scene.table.needs_torch(full))
        if ours and inference.program.find_module(scene.file.path, root) is None:
            found.append(Reference(alias, full, Form.IMPORT))
    return found


def _chain(scene: Scene, node: ast.Name | ast.Attribute) -> list[Reference]:
    if isinstance(node, ast.Name):
        return _direct(scene, node) if isinstance(node.ctx, ast.Load) else []
    if isinstance(node.ctx, ast.Load):
        return _direct(scene, node) or _attribute(scene, node)
    return _stored(scene, node)


def _operator(scene: Scene, node: ast.AST) -> list[Reference]:
    return [Reference(part, n, Form.OPERATOR) for part, n in operator_names.find(scene, node)]


def _direct(scene: Scene, node: ast.Name | ast.Attribute) -> list[Reference]:
    """A chain that spells a torch name; only the longest one counts."""
    if package := followed_name(scene, node):
        return [Reference(node, package, Form.FOLLOWED)]
    name = direct_name(scene, node)
    if name is None:
        return []
    parent = scene.parent(node)
    if isinstance(parent, ast.Attribute) and (
        direct_name(scene, parent) is not None or _setting(scene, parent)
    ):
        return []
    return [Reference(node, name, Form.NAME)]


def _setting(scene: Scene, node: ast.Attribute) -> str:
    """The name that ``torch.backends.cudnn.benchmark = ...`` writes to; "" for anything else."""
    owner = direct_name(scene, node.value) if isinstance(node.ctx, ast.Store) else None
    name = f"{owner}.{node.attr}" if owner else ""
    return name if name and scene.table.rows(name) else ""


def direct_name(scene: Scene, node: ast.AST) -> str | None:
    """The torch name that a name or attribute chain spells, if it surely does.

    Of several names that all have no counterpart it is the first.
    """
    atoms = scene.kind(node)
    names = sorted({a.name for a in atoms if a.direct})
    if (
        not names
        or (len(names) > 1 and any(not r.flag for n in names for r in scene.table.rows(n)))
        or any(not a.direct and a.kind not in ("unknown", "None") for a in atoms)
    ):
        return None
    return names[0]


def _attribute(scene: Scene, node: ast.Attribute) -> list[Reference]:
    if child := registered_child(scene, node):
        return [Reference(node, child, Form.LATE)]
    atoms = having(scene.kind(node.value), node.attr)
    forms = [_member(scene, atom, node.attr) for atom in atoms]
    if any(a.kind == "unknown" for a in atoms):  # what no class of torch has is of another object
        forms = [
            "" if atom.kind == "torch" and not scene.table.has(form) else form
            for form, atom in zip(forms, atoms, strict=True)
        ]
    names = {name for name in forms if name}
    if names and all(name.startswith(SCHEDULES) for name in names):
        names = {min(names) if len(names) == 1 else _of_schedules(scene, node, names)}
    if not names:
        if some := module_members.of_some_layer(scene, node, names):
            return [Reference(node, some, Form.MEMBER)]
        unsure = not atoms or any(a.kind == "unknown" for a in atoms)
        if unsure and node.attr in SETTINGS and module_members.asks_layer(scene, node):
            return [Reference(node, f"torch.nn.Module.{node.attr}", Form.MEMBER)]
        return _unsure(scene, node, atoms) if unsure else []
    if all(a.kind == "Module" for a in atoms):
        return [Reference(node, min(names), Form.MEMBER)]
    # a Tensor without such an attribute fails in torch as well
    lacking = ("unknown", "Tensor")
    if len(names) == 1 and all(f or a.kind in lacking for f, a in zip(forms, atoms, strict=True)):
        name = next(iter(names))
        form = Form.FIELD if name.startswith("field ") else Form.MEMBER
        return [Reference(node, name, form)]
    if node.attr in RENAMED and any(a.kind == "Module" for a in atoms):
        return [Reference(node, f"torch.nn.Module.{node.attr}", Form.MEMBER)]
    full = f"torch.Tensor.{node.attr}"
    of_module = f"torch.nn.Module.{node.attr}"
    return [Reference(node, of_module if names == {of_module} else full, Form.UNSURE)]


def _of_schedules(scene: Scene, node: ast.Attribute, names: set[str]) -> str:
    """Return the name that one call means of several schedules: only one takes a measure."""
    call, measured = scene.parent(node), f"{SCHEDULES}ReduceLROnPlateau.step"
    given = call.args if isinstance(call, ast.Call) and call.func is node else []
    if measured in names and any(scene.kind_names(a) != {"int"} for a in given):
        return measured
    return f"{SCHEDULES}LRScheduler.{node.attr}"


def _member(scene: Scene, atom: Atom, attribute: str) -> str:
    """The torch name of ``value.attribute``, or "" when it is none of ours."""
    table = scene.table
    if atom.kind == "Tensor":
        full = f"torch.Tensor.{attribute}"
        return full if table.kind(full) or table.rows(full) else ""
    if atom.kind == "Module":
        return module_members.of_module(scene, atom, attribute)
    if attribute == "forward" and atom.kind in ("super", "class"):
        return FORWARD if scene.inference.is_module(atom.name) else ""
    if atom.kind == "super":
        return module_members.of_super(scene, atom, attribute)
    if attribute == "apply" and atom.kind in ("class", "instance", "Object"):
        return APPLY if scene.inference.is_function(atom.name) else ""
    if atom.kind == "tuple" and attribute in atom.keys:
        return f"field {atom.keys.index(attribute)}"
    if atom.kind == "Size" and attribute == "numel":
        return "torch.Size.numel"
    if atom.kind == "Optimizer":
        return f"torch.optim.Optimizer.{attribute}"
    if atom.kind == "device" and attribute in ("type", "index"):
        return f"torch.device.{attribute}"
    if (
        atom.kind == "dtype"
        and not atom.direct
        and attribute in ("is_floating_point", "itemsize", "is_complex", "is_signed")
    ):
        return f"torch.dtype.{attribute}"
    if atom.kind == "torch":
        return table.member(atom.name, attribute)
    if atom.kind == "instance" and (owner := table.of_libraries.get(atom.name)):
        return table.member(owner, attribute)
    return ""


def _unsure(scene: Scene, node: ast.Attribute, atoms: frozenset[Atom]) -> list[Reference]:
    """An unknown receiver whose attribute is called by the name of a Tensor method.

    What only optimizers and their schedules have goes to a helper that looks at the object.
    """
    if name := unknown_receivers.of_training(scene, node):
        return [Reference(node, name, Form.MEMBER)]
    if node.attr == forward_names.NAME:
        return _some_forward(scene, node)
    name = unknown_receivers.method(scene, node, atoms)
    name = name or unknown_receivers.of_modules(scene, node, atoms)
    return [Reference(node, name, Form.UNSURE)] if name else []


def _some_forward(scene: Scene, node: ast.Attribute) -> list[Reference]:
    """``forward`` of something unknown: read, called or bound anew."""
    name, assumed = unknown_receivers.forward(scene, node.value)
    return [Reference(node, name, Form.MEMBER, assumed)] if name else []


def _stored(scene: Scene, node: ast.Attribute) -> list[Reference]:
    """``m.weight = ...`` on an instance of a torch class, ``x.data = ...``, ``p.grad = ...``."""
    if setting := _setting(scene, node):
        return [Reference(node, setting, Form.SETTING)]
    if setting := late_setting(scene, node):
        return [Reference(node, setting, Form.LATE)]
    atoms = without_none(scene.kind(node.value))
    names = {name for atom in atoms if (name := _member(scene, atom, node.attr))}
    if some := module_members.of_some_layer(scene, node, names):
        return [Reference(node, some, Form.MEMBER)]
    if not names and node.attr == forward_names.NAME:
        return _some_forward(scene, node)
    if len(names) != 1:
        return []
    name = next(iter(names))
    return [Reference(node, name, Form.MEMBER)] if not name.startswith("field") else []


def _class(scene: Scene, node: ast.ClassDef) -> list[Reference]:
    """``forward`` of a Module class."""
    return [Reference(n, FORWARD, Form.FORWARD) for n in forward_names.in_class(scene, node)]


def _by_text(scene: Scene, node: ast.Call | ast.Compare) -> list[Reference]:
    found = forward_names.by_text(scene, node)
    return [Reference(found[0], FORWARD, Form.FORWARD, found[1])] if found else []


def _package(scene: Scene, node: ast.Call) -> list[Reference]:
    """``find_spec("torch")`` asks whether torch is there."""
    if name := packages.imported(scene, node):
        return [Reference(node, name, Form.PACKAGE)]
    name = packages.asked(scene, node)
    return [Reference(node.func, name, Form.PACKAGE)] if name else []


def _item(scene: Scene, node: ast.Subscript) -> list[Reference]:
    """``x[i] = v`` changes what may be a Tensor."""
    if not isinstance(node.ctx, ast.Store) or "Tensor" not in scene.kind_names(node.value):
        return []
    if isinstance(scene.parent(node), ast.AugAssign) or is_all(scene.kind(node.slice), "str"):
        return []  # no Tensor has keys
    return [Reference(node, "torch.Tensor.__setitem__", Form.INPLACE)]


HELD = (ast.Name, ast.Attribute, ast.Subscript)  # what somebody else may read by the same name


def _inplace(scene: Scene, node: ast.Call | ast.AugAssign) -> list[Reference]:
    """Code that changes a variable's Tensor: ``x += y``, ``relu(x)`` with ``inplace=True``."""
    if isinstance(node, ast.AugAssign):
        held = node.target.value if isinstance(node.target, ast.Subscript) else node
        tensor = "Tensor" in scene.kind_names(held) | scene.kind_names(node.target)
        return [Reference(node, "torch.Tensor.__iadd__", Form.INPLACE)] if tensor else []
    if not node.args or not isinstance(node.args[0], HELD):
        return []
    asked = unknown_receivers.asking_for_reset(scene, node)
    if asked := asked or module_members.asking_for_part(scene, node):
        return [Reference(node.func, asked, Form.NAME)]
    if setting := late_setting(scene, node):
        return [Reference(node, setting, Form.LATE)]
    name = in_place(scene, node)
    return [Reference(node, name, Form.INPLACE)] if name else []


def in_place(scene: Scene, node: ast.Call) -> str:
    """Return the name of a call that changes its first argument by ``inplace=True``; else ""."""
    func = node.func
    forward = isinstance(func, ast.Attribute) and func.attr == "forward"
    layers = scene.kind(func.value) if forward and isinstance(func, ast.Attribute) else frozenset()
    for atom in ordered(scene.kind(func) | layers):
        if atom.kind == "Module" and "inplace" in atom.keys:
            return f"{atom.name}.forward"
        if atom.kind == "ref" and atom.name.startswith("torch.nn.functional."):
            values = bound_to("inplace", node, scene.table, atom.name)
            if any(isinstance(v, ast.Constant) and v.value is True for v in values):
                return f"{atom.name}(inplace=True)"
    return ""


# one walk over a file asks every node for what its class may be
_FINDERS: dict[type[ast.AST], tuple[Callable[[Scene, Any], list[Reference]], ...]] = {
    ast.Import: (_import,),
    ast.ImportFrom: (_import,),
    ast.Name: (_chain,),
    ast.Attribute: (_chain,),
    ast.ClassDef: (_class,),
    ast.AugAssign: (_inplace,),
    ast.Call: (_inplace, _operator, _by_text, _package),
    ast.Subscript: (_item, _operator),
    **dict.fromkeys((ast.UnaryOp, ast.BinOp, ast.FormattedValue), (_operator,)),
    ast.Compare: (_operator, _by_text),
}


_DRAWN = re.compile(
    r"rand(?:n|int|perm)?(?:_like)?|(?:log_)?normal_?|uniform_|bernoulli_?|multinomial|poisson"
    r"|(?:exponential|geometric|cauchy|random)_|gumbel_softmax|r?sample(?:_n)?"
)
_DRAWING = re.compile(r"dropout|drop_?path|rrelu|fractional_?max_?pool", re.IGNORECASE)


def draws(node: ast.AST) -> bool:
    """Return whether a name is one of what draws random numbers when it runs: a function of torch,
    or a class, as dropout; not what sets weights when they are made."""
    name = last_name(node)
    return bool(_DRAWN.fullmatch(name) or _DRAWING.search(name))
