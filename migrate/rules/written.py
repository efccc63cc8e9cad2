"""In: a call, an augmented assignment or an indexed assignment. Out: the tensor that it changes."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import islice

from migrate.analysis.program import File, Function, Program
from migrate.analysis.storage import REGISTRIES
from migrate.analysis.types.calling import bound_to
from migrate.analysis.types.kinds import ARRAY, Atom, is_all
from migrate.rules.torch_sharing import is_moved, is_written, layer_shares
from migrate.rules.views import changed_alone, viewed
from migrate.sites.buffer_gradients import is_data
from migrate.sites.forward_names import line
from migrate.sites.scene import Scene
from migrate.syntax.lines import begins_line
from migrate.syntax.trees import all_names

_NO_TENSOR = frozenset(
    "list tuple dict Size str int float bool Module Optimizer Object class".split()
)
_LOOKING = frozenset("len enumerate zip reversed".split())
# a function of a module, whose name may end in "_" as well: utils.zero_first_(x)
SEQUENCE = "torch.nn.Sequential"  # its first layer may change the argument; the result is another
_CLIPPING = frozenset(("torch.nn.ReLU", "torch.nn.ReLU6"))
UNPADDING = "torch.nn.utils.rnn.unpad_sequence"  # torch transposes the argument itself
_CALLED_BY_NAME = frozenset("ref function foreign class builtin".split())


class Holder(Enum):
    """What holds the tensor that is changed."""

    NAME = "a variable of the function"
    ITEM = "a part of such a variable"
    OUTER = "a variable of somebody else"
    PLACE = "an attribute, or a part of one"
    ELEMENT = "an element of a container"
    VIEW = "a view of a variable of the function, by a statement that can put it back"
    TEMPORARY = "a value without a name"


@dataclass(frozen=True)
class Target:
    """``expr`` is the tensor changed; ``name`` the variable, where one can be bound anew."""

    holder: Holder
    expr: ast.expr
    name: str = ""


def written_by(scene: Scene, node: ast.Call) -> ast.expr | None:
    """The argument or receiver that a call surely changes."""
    func = node.func
    if isinstance(func, ast.Attribute) and is_written(func.attr):
        kinds = scene.kind_names(func.value)
        named = any(a.kind in _CALLED_BY_NAME for a in scene.kind(func))
        if ("Tensor" in kinds or not kinds & _NO_TENSOR) and not named:
            return func.value
    if (into := told_out(scene, node)) is not None:
        return into
    first = first_argument(node)
    if first is None:
        return None
    for atom in called(scene, func):
        if atom.kind == "Module" and "inplace" in atom.keys and atom.name != SEQUENCE:
            return first
        if atom.kind == "ref" and atom.name.startswith("torch."):
            last = atom.name.rpartition(".")[2]
            if is_written(last) and not atom.name.startswith("torch.Tensor."):
                return first
            if atom.name.startswith("torch.nn.functional.") and works_inplace(scene, node, True):
                return first
    return None


def first_argument(node: ast.Call) -> ast.expr | None:
    """Return the argument that comes first, also where it is named: ``torch.relu_(input=x)``."""
    named = (k.value for k in node.keywords if k.arg == "input")
    return node.args[0] if node.args else next(named, None)


def told_out(scene: Scene, node: ast.Call) -> ast.expr | None:
    """Return the Tensor that a function of torch writes its result into: ``out=``, one Tensor."""
    given = next((k.value for k in node.keywords if k.arg == "out"), None)
    if given is None or not is_all(scene.kind(given), "Tensor"):
        return None
    atoms = scene.kind(node.func)
    return given if atoms and all(is_function(a) for a in atoms) else None


def told_outs(scene: Scene, node: ast.Call) -> tuple[ast.Name, ...]:
    """Return the variables that a function of torch writes several results into."""
    given = next((k.value for k in node.keywords if k.arg == "out"), None)
    if not isinstance(given, (ast.Tuple, ast.List)):
        return ()
    names = tuple(n for n in given.elts if isinstance(n, ast.Name))
    distinct = len({n.id for n in names}) == len(given.elts) > 1
    if not distinct or not all(is_all(scene.kind(n), "Tensor") for n in names):
        return ()
    return names if scene.kind(node.func) and all(map(is_function, scene.kind(node.func))) else ()


def is_listed(scene: Scene, node: ast.Call) -> bool:
    """Return whether ``torch.tensor`` is given numbers or a list, which both frameworks copy."""
    data = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "data")]
    listed = ("list", "tuple", "Size", "int", "float", "bool")
    return bool(data) and is_all(scene.kind(data[0]), *listed)


def is_function(atom: Atom) -> bool:
    """Return whether an atom is a function of torch by its name."""
    return atom.kind == "ref" and atom.name.startswith("torch.")


def transposes(call: ast.Call) -> bool:
    """Return whether torch's unpad_sequence transposes its argument in place."""
    given = [*call.args[2:3], *(k.value for k in call.keywords if k.arg == "batch_first")]
    return not any(isinstance(v, ast.Constant) and v.value is True for v in given)


def called(scene: Scene, func: ast.expr) -> frozenset[Atom]:
    """Return what a call runs; ``self.act.forward(x)`` runs the layer."""
    forward = isinstance(func, ast.Attribute) and func.attr == "forward"
    layers = scene.kind(func.value) if forward and isinstance(func, ast.Attribute) else frozenset()
    return scene.kind(func) | layers


def works_inplace(scene: Scene, node: ast.Call, surely: bool) -> bool:
    """Whether ``inplace`` is True, or (not ``surely``) may be."""
    for atom in scene.kind(node.func):
        if atom.kind == "ref":
            for value in bound_to("inplace", node, scene.table, atom.name):
                if isinstance(value, ast.Constant):
                    return value.value is True
                return not surely
    return False


def is_chain(scene: Scene, node: ast.expr) -> bool:
    """Whether a call gives the memory of its receiver: ``y.mul_(2)``, ``y.detach()``."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return cuts_off(scene, node) or written_by(scene, node) is node.func.value


def cuts_off(scene: Scene, node: ast.Call) -> bool:
    """Whether a call is ``x.detach()`` of a Tensor: as ``x.data``, x without its gradient."""
    func = node.func
    if not isinstance(func, ast.Attribute) or func.attr != "detach" or node.args or node.keywords:
        return False
    return is_all(scene.kind(func.value), "Tensor")


def target_of(scene: Scene, expr: ast.expr) -> Target:
    """Who holds the tensor that ``expr`` is."""
    whole = expr
    while True:
        if isinstance(expr, ast.Attribute) and is_data(scene, expr):
            expr = expr.value
        elif is_chain(scene, expr):
            assert isinstance(expr, ast.Call) and isinstance(expr.func, ast.Attribute)
            expr = expr.func.value
        else:
            break
    if isinstance(expr, ast.Name):
        return Target(_of_name(scene, expr), expr, expr.id)
    if isinstance(expr, ast.Attribute):
        view = is_all(scene.kind(expr.value), "Tensor")
        return _of_view(scene, expr, whole) if view else Target(Holder.PLACE, expr)
    if isinstance(expr, ast.Subscript):
        return _of_item(scene, expr)
    return _of_view(scene, expr, whole)


def _of_view(scene: Scene, expr: ast.expr, whole: ast.expr) -> Target:
    """``x.t()``, ``x[1:][0]`` of a variable that is bound anew; else a value without a name."""
    base = viewed(scene, expr)
    if base is None or _of_name(scene, base) is not Holder.NAME or not changed_alone(scene, expr):
        return Target(Holder.TEMPORARY, whole)
    return Target(Holder.VIEW, expr, base.id)


def _of_name(scene: Scene, node: ast.Name) -> Holder:
    function = scene.file.function_at(node)
    if function is None or node.id in function.locals or _in_comprehension(scene, node):
        return Holder.NAME
    return Holder.OUTER


def _in_comprehension(scene: Scene, node: ast.Name) -> bool:
    for current in scene.around(node, ast.stmt):
        for clause in getattr(current, "generators", ()):
            if node.id in all_names(clause.target):
                return True
    return False


def _of_item(scene: Scene, node: ast.Subscript) -> Target:
    """``y[i]``, ``y[i][j]``, ``self.buf[i]`` of Tensors; an element of a list or dict."""
    base = node.value
    if is_all(scene.kind(node.slice), "str"):  # no Tensor has such an index
        return Target(Holder.ELEMENT, node)
    while isinstance(base, ast.Subscript) and is_all(scene.kind(base.value), "Tensor"):
        if not is_all(scene.kind(base.slice), "int"):
            return _of_view(scene, node, node.value)
        base = base.value
    if not _may_be_tensor(scene, base):
        view = _of_view(scene, node, node)  # x.chunk(2)[0]
        return view if view.holder is Holder.VIEW else Target(Holder.ELEMENT, node)
    if isinstance(base, ast.Attribute) and is_data(scene, base):
        base = base.value
    if isinstance(base, ast.Name):
        inner = _of_name(scene, base)
        holder = Holder.ITEM if inner is Holder.NAME else Holder.OUTER
        return Target(holder, base, base.id)
    if isinstance(base, ast.Attribute) and not is_all(scene.kind(base.value), "Tensor"):
        return Target(Holder.PLACE, base)
    if isinstance(base, ast.Subscript):
        return Target(Holder.ELEMENT, base)
    return _of_view(scene, node, base)


def _may_be_tensor(scene: Scene, node: ast.expr) -> bool:
    names = scene.kind_names(node)
    return "Tensor" in names or not names & _NO_TENSOR


def is_shared_array(scene: Scene, node: ast.expr) -> bool:
    """Return whether an array is the memory of a Tensor: ``x.numpy()``, or a name for it.

    What comes from another device is an array of its own.
    """
    if isinstance(node, ast.Name):
        held = scene.facts.values(node)
        return bool(held) and all(
            value is not None and not isinstance(value, ast.Name) and is_shared_array(scene, value)
            for value in held
        )
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr != "numpy" or not is_all(scene.kind(node.func.value), "Tensor"):
        return False
    return not is_moved(node)


def written_array(scene: Scene, call: ast.AST) -> ast.expr | None:
    """Return the array that a method of numpy's changes, which may be the memory of a Tensor."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    array, name = call.func.value, call.func.attr
    if name == "put" and not _puts_values(call):
        return None
    if name in ("put", "itemset", "partition") and any(
        a.kind == "unknown" or (a.kind == "instance" and a.name.startswith("numpy"))
        for a in scene.kind(array)
    ):
        return array
    changes = name in ("put", "itemset", "partition", "fill", "sort", "resize")
    return array if changes and is_shared_array(scene, array) else None


def _puts_values(call: ast.Call) -> bool:
    """Return whether ``put`` may be an array's, of indices and values; a queue's takes an item."""
    given = [*call.args, *call.keywords]
    known = {k.arg for k in call.keywords} <= {None, "indices", "values", "mode"}
    spread = any(isinstance(g, ast.Starred) or getattr(g, "arg", "") is None for g in given)
    return known and (spread or len(given) > 1)


def may_be_tensor(kinds: frozenset[str]) -> bool:
    """Return whether a value of these kinds may be a Tensor that nobody recognised."""
    return not kinds or "unknown" in kinds


def adds_elements(scene: Scene, item: ast.AugAssign) -> bool:
    """Return whether what is added is no number: nothing that takes it in place is a Tensor."""
    return is_all(scene.kind(item.value), "list", "tuple", "dict", "set", "str")


def is_element(scene: Scene, node: ast.expr) -> bool:
    """Return whether a node is an element of what is surely a container, read by a plain key."""
    if not isinstance(node, ast.Subscript) or isinstance(node.slice, ast.Slice):
        return False
    kind = scene.kind(node.value)
    return is_all(kind, "list", "dict") or (is_all(kind, "instance") and not kind & ARRAY)


def unsure_item(scene: Scene, target: ast.expr) -> bool:
    """Return whether ``target = v`` sets an element of what may be a Tensor, where nothing tells.

    Nothing that has a text for an index is a Tensor.
    """
    if not isinstance(target, ast.Subscript) or not may_be_tensor(scene.kind_names(target.value)):
        return False
    return not is_all(scene.kind(target.slice), "str")


def unsure_target(scene: Scene, target: ast.expr) -> bool:
    """Return whether ``target += y`` binds a name, or changes what ``.data`` gives."""
    return isinstance(target, ast.Name) or is_data(scene, target)


def first_layer(scene: Scene, called: ast.expr) -> frozenset[Atom]:
    """Return what comes first in a Sequential or list that ``self`` has as attribute, where it is
    stored once."""
    first = _first_of(scene, called)
    return scene.kind(first) if first is not None else frozenset()


def sure_rounds(scene: Scene, function: Function | None) -> frozenset[int]:
    """Return the loops of a function that go round once at least, by id: over lists of layers that
    are built with some."""
    loops = function.of(ast.For) if function is not None else ()
    if not loops:
        return frozenset()
    known: dict[int, bool] = scene.inference.program.notes.setdefault("loops that go round", {})
    for loop in [n for n in loops if id(n) not in known and isinstance(n, ast.For)]:
        known[id(loop)] = _goes_round(scene, loop.iter)
    return frozenset(id(n) for n in loops if known.get(id(n)))


def _goes_round(scene: Scene, node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute):
        return _first_of(scene, node) is not None
    for name in ("zip", "enumerate", "reversed"):
        if given := _arguments(node, name):
            return all(_goes_round(scene, one) for one in (given if name == "zip" else given[:1]))
    bounds = _arguments(node, "range")
    if len(bounds) == 1 and (counted := _arguments(bounds[0], "len")):
        return _goes_round(scene, counted[0])
    return False


def _first_of(scene: Scene, called: ast.expr) -> ast.expr | None:
    if not isinstance(called, ast.Attribute) or getattr(called.value, "id", "") != "self":
        return None
    inference, owner = scene.inference, scene.owner(called)
    if owner is None:
        return None
    objects = [owner, *inference.summaries.graph.derived(owner)]
    kin = {key for one in objects for key in line(inference, one.key)}
    owners = [o for o in inference.program.holders.get(called.attr, ()) if o.key in kin]
    methods = [method for one in owners for method in one.stores.get(called.attr, ())]
    found = (t for m in methods for t in inference.index.stores(m) if t.attr == called.attr)
    stored = list(islice(found, 2))
    if len(stored) != 1 or methods[0].path != scene.file.path:
        return None
    value = scene.statement(stored[0])
    made = value.value if isinstance(value, ast.Assign) else None
    listed = isinstance(made, ast.Call) and _is_list(scene, made)
    shown = made.args[0] if listed and isinstance(made, ast.Call) and made.args else made
    if not _only_grows(inference.program, called.attr):
        return None
    if listed and isinstance(made, ast.Call) and not (made.args or made.keywords):
        layers = _first_appended(scene, stored[0])
    elif isinstance(shown, (ast.List, ast.Tuple)):
        layers = shown.elts
    elif isinstance(made, ast.Call) and all(a.name == SEQUENCE for a in scene.kind(made.func)):
        layers = made.args
    else:
        return None
    if not layers or isinstance(layers[0], ast.Starred):
        return None
    return layers[0]


def _first_appended(scene: Scene, stored: ast.Attribute) -> list[ast.expr]:
    """Return what is appended first to a list that is stored empty, in the statements behind."""
    statement = scene.statement(stored)
    block = getattr(scene.parent(statement), "body", [])
    behind = block[block.index(statement) + 1 :] if statement in block else []
    for item in behind:
        calls = [n for n in ast.walk(item) if isinstance(n, ast.Call)]
        own = [c for c in calls if all_names(c.func) == {"self"}]
        if not own:
            continue
        first = item.value if isinstance(item, ast.Expr) else None
        if own != [first] or not isinstance(first, ast.Call) or len(first.args) != 1:
            return []
        func = first.func
        appends = isinstance(func, ast.Attribute) and func.attr == "append"
        grown = func.value if appends and isinstance(func, ast.Attribute) else None
        return first.args if getattr(grown, "attr", "") == stored.attr else []
    return []


def leading(scene: Scene, node: ast.Call) -> ast.Name | None:
    """Return the variable that the first layer of a Sequential changes, where a statement before
    can do that: ``x = self.block[0](x)``.

    A ReLU that runs twice changes nothing more, and what else the statement does with the variable
    comes behind the call: ``x + self.block(x)`` adds when both are there.
    """
    name, statement = node.args[0] if len(node.args) == 1 else None, scene.statement(node)
    layers = first_layer(scene, node.func)
    clips = layers and all(a.name in _CLIPPING and "inplace" in a.keys for a in layers)
    if not isinstance(name, ast.Name) or node.keywords or not clips:
        return None
    if not isinstance(statement, (ast.Assign, ast.Return, ast.Expr)):
        return None
    if not begins_line(scene.source, statement):
        return None
    above: list[ast.AST] = []
    current = scene.parent(node)
    while current is not None and current is not statement:
        if not isinstance(current, (ast.BinOp, ast.Call, ast.Tuple, ast.List, ast.keyword)):
            return None  # it may not be evaluated, or more than once
        above.append(current)
        current = scene.parent(current)
    others = (n for n in ast.walk(statement) if isinstance(n, ast.Name) and n.id == name.id)
    loads = (n for n in others if n is not name and isinstance(n.ctx, ast.Load))
    return name if all(scene.parent(n) in above for n in loads) else None


def follows_another(scene: Scene, node: ast.Call, expr: ast.expr) -> bool:
    """Return whether a layer of a loop that works in place is passed what another one made.

    ``for layer in self.layers: x = layer(x)``, where the first of them makes a new tensor.
    """
    statement = scene.parent(node)
    loop = scene.parent(statement) if isinstance(statement, ast.Assign) else None
    if not isinstance(statement, ast.Assign) or not isinstance(loop, ast.For):
        return False
    layers, variable = _each_of(loop, node.func)
    names = (getattr(expr, "id", ""), variable)
    if layers is None or statement not in loop.body or not all(names):
        return False
    before = loop.body[: loop.body.index(statement)]
    stores = [n for s in loop.body for n in ast.walk(s) if getattr(n, "id", "") in names]
    stored = [n for n in stores if not isinstance(getattr(n, "ctx", None), ast.Load)]
    leaving = any(isinstance(n, ast.Continue) for s in before for n in ast.walk(s))
    if leaving or stored != statement.targets:
        return False
    first = first_layer(scene, layers)
    return bool(first) and not any("inplace" in a.keys or layer_shares(a) for a in first)


def _each_of(loop: ast.For, called: ast.expr) -> tuple[ast.expr | None, str]:
    """Return the list of which a loop calls each element in turn, and the variable of the loop:
    ``for layer in layers``, ``for i, layer in enumerate(layers)``, ``for i in range(len(layers))``
    with ``layers[i]``; None if it is none of these."""
    target, given = loop.target, loop.iter
    if isinstance(called, ast.Name):
        if isinstance(target, ast.Tuple) and (listed := _arguments(given, "enumerate")):
            target, given = target.elts[-1], listed[0]
        return (given, called.id) if getattr(target, "id", "") == called.id else (None, "")
    bounds = _arguments(given, "range")
    if len(bounds) == 2 and getattr(bounds[0], "value", None) == 0:
        bounds = bounds[1:]
    counted = _arguments(bounds[0], "len") if len(bounds) == 1 else []
    if not isinstance(called, ast.Subscript) or not isinstance(target, ast.Name) or not counted:
        return None, ""
    same = ast.unparse(counted[0]) == ast.unparse(called.value)
    index = getattr(called.slice, "id", "") == target.id
    return (called.value, target.id) if same and index else (None, "")


def _arguments(node: ast.expr, function: str) -> list[ast.expr]:
    """Return what a call of a builtin is given by place; [] for any other expression."""
    named = isinstance(node, ast.Call) and getattr(node.func, "id", "") == function
    return node.args if named and isinstance(node, ast.Call) and not node.keywords else []


def clips_each(scene: Scene, node: ast.AST) -> bool:
    """Return whether a loop does nothing but clip each element of a list in its place:
    ``for i in range(len(xs)): xs[i] = self.relu(xs[i])``. Of two that are one tensor it does not
    matter which is clipped."""
    statement = scene.parent(node)
    loop = scene.parent(statement) if isinstance(statement, ast.Assign) else None
    if not isinstance(node, ast.Call) or not isinstance(statement, ast.Assign):
        return False
    if not isinstance(loop, ast.For) or loop.body != [statement] or len(statement.targets) != 1:
        return False
    target, value = statement.targets[0], node.args[0] if len(node.args) == 1 else None
    if value is None or node.keywords or ast.unparse(target) != ast.unparse(value):
        return False
    atoms = scene.kind(node.func)
    clips = atoms and all(a.name in _CLIPPING and "inplace" in a.keys for a in atoms)
    return bool(clips) and _each_of(loop, value)[0] is not None


def _only_grows(program: Program, attribute: str) -> bool:
    """Return whether nothing in the program may put another layer first in a container."""
    known: dict[str, bool] = program.notes.setdefault("containers that grow", {})
    if attribute not in known:
        computed = (
            len(c.args) > 1 and not isinstance(c.args[1], ast.Constant)
            for _, c, _ in program.calls.get("setattr", ())
        )  # fmt: skip
        known[attribute] = not any(computed) and all(
            node.attr != "_modules" and (node.attr != attribute or _is_harmless(file, node))
            for file in program.files.values()
            for node in file.of(ast.Attribute)
        )
    return known[attribute]


# what a list of layers has that leaves the first one where it is
_ASKED_OF_LISTS = frozenset("append extend parameters named_parameters modules named_modules "
                            "children named_children apply train eval to cuda cpu state_dict "
                            "requires_grad_".split())  # fmt: skip


def _is_harmless(file: File, node: ast.Attribute) -> bool:
    """Return whether a container is bound, called, iterated, measured or appended to."""
    around = file.parents.get(id(node))
    if not isinstance(node.ctx, ast.Load):
        return isinstance(node.ctx, ast.Store) and getattr(node.value, "id", "") == "self"
    if isinstance(around, ast.For | ast.comprehension):
        return around.iter is node
    if isinstance(around, ast.Subscript):
        return isinstance(around.ctx, ast.Load)
    if isinstance(around, ast.Attribute):
        return around.attr in _ASKED_OF_LISTS
    if not isinstance(around, ast.Call):
        return False
    return around.func is node or getattr(around.func, "id", "") in _LOOKING


def _is_list(scene: Scene, made: ast.Call) -> bool:
    """Return whether a call makes a list of Modules."""
    return {a.name for a in scene.kind(made.func)} == {"torch.nn.ModuleList"}


def entry_of(place: ast.Subscript) -> str:
    """Return the name under which an element lies: ``x.__dict__["a"]`` is the attribute."""
    key = key_of(place.slice)
    return key[2:-2] if key and getattr(place.value, "attr", "") in REGISTRIES else key


@lru_cache(maxsize=1 << 14)
def key_of(index: ast.expr) -> str:
    """Return the name of a dict's entry: entries with different names are distinct."""
    text = index.value if isinstance(index, ast.Constant) else None
    return f"['{text}']" if isinstance(text, str) else ""
