"""In: a call at some point of a function. Out: the storages of its result, and what it changes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from functools import reduce

from migrate.analysis.callgraph import CONSTRUCTORS
from migrate.analysis.program import Function
from migrate.analysis.storage import (
    ELEMENTS,
    MAYBE,
    NO_REFS,
    REST,
    SAME,
    VIEW,
    Ref,
    Refs,
    made_as,
    method_owners,
    node_of,
    regions,
    root,
)
from migrate.analysis.types.kinds import Atom, is_all, ordered
from migrate.analysis.types.named import attribute_of
from migrate.analysis.types.parametric import CALLERS
from migrate.rules import hooks
from migrate.rules.alias_findings import ANY, Back, Summary, at_large
from migrate.rules.alias_values import MODULE_ONLY
from migrate.rules.alias_writes import Writes, spread_out, untouched_rest, without
from migrate.rules.called_from import (
    functions_of,
    handed_to,
    is_exact,
    is_told,
    makes_anew,
    may_write,
)
from migrate.rules.torch_sharing import (
    ASKING,
    DIVIDING,
    EINOPS,
    FIRST_ALONE,
    HOLDING,
    METADATA,
    is_apart,
    is_written,
    layer_shares,
    makes_array,
    shares,
)
from migrate.rules.written import (
    SEQUENCE,
    UNPADDING,
    Holder,
    Target,
    entry_of,
    first_layer,
    follows_another,
    is_chain,
    is_listed,
    key_of,
    target_of,
    told_outs,
    transposes,
    works_inplace,
    written_array,
    written_by,
)
from migrate.sites.buffer_gradients import registered
from migrate.sites.scene import Scene
from migrate.syntax.trees import all_parameters

_COLLECTING = frozenset(("append", "extend", "insert", "add", "update", "appendleft"))
_GIVING = frozenset(("values", "copy", "keys"))
_TAKING = frozenset(("pop", "popleft", "get", "setdefault", "popitem"))
_SAME_ELEMENTS = frozenset("list tuple reversed sorted iter set frozenset filter dict".split())
_ORDERED = "collections.OrderedDict"
_FIELDS = {"torch2ms.gradient_of": "grad", "torch2ms.group_weights": "['params']",
           "torch2ms.own_groups": "param_groups"}  # fmt: skip
_FORWARD = "torch.nn.Module.forward"


class Calls(Writes):
    """Evaluates calls as well."""

    def __init__(self, scene: Scene, summary: Callable[[Function], Summary]) -> None:
        super().__init__(scene)
        self.summary = summary
        self._asked: ast.AST | None = None  # the call whose alternatives are gone through
        self._one: Refs = NO_REFS  # what they make, made once for all of them
        self._alone = False  # there is one alternative, which gives what the call gives

    def made(self, node: ast.AST) -> Refs:
        if node is not self._asked:
            return super().made(node)
        self._one = self._one or super().made(node)
        return self._one

    def _Call(self, node: ast.Call) -> Refs:
        mark = len(self.flight)
        expr = written_by(self.scene, node)
        if expr is not None:
            return self._writing(node, expr, mark)
        if outs := told_outs(self.scene, node):
            return self._writing_outs(node, outs, mark)
        array = written_array(self.scene, node)
        if array is not None:
            for part in (*node.args, *(k.value for k in node.keywords)):
                self._argument(part)
            self.set_array(node, array)
            return self.made(node)
        func = node.func
        if is_all(self.scene.kind(node), "super"):
            return self._own()
        receiver = NO_REFS
        if isinstance(func, ast.Attribute):
            asked = func.attr in METADATA or not self._tensor(func.value)
            receiver = self.holders(func.value) if asked else self.value(func.value)
            if func.attr not in METADATA and self._maybe_memory(func.value):
                self.read(ast.unparse(func.value), receiver)
        else:
            self.value(func)
        args = [self._argument(a) for a in node.args]
        named = self._named(node)
        del self.flight[mark:]
        inference = self.scene.inference
        own = any(functions_of(inference, a) for a in self.scene.kind(func))
        if isinstance(func, ast.Attribute) and not self._tensor(func.value) and not own:
            found = self._container_call(node, func.attr, receiver, args, named)
            if found is not None:
                return found
        atoms = [a for a in ordered(self.scene.kind(func)) if a.kind != "None"]
        if isinstance(func, ast.Attribute) and atoms and {a.name for a in atoms} == {_FORWARD}:
            atoms = [a for a in ordered(self.scene.kind(func.value)) if a.kind != "None"]
        if isinstance(func, ast.Attribute) and func.attr == "__setattr__":
            owners = receiver if len(node.args) == 2 else args[0] if args else NO_REFS
            return self._set(node, [owners, *args[-2:]])
        if isinstance(func, ast.Attribute) and func.attr in MODULE_ONLY:  # only a Module has these
            atoms = [a for a in atoms if a.kind != "unknown"]
            if not atoms:
                return self._torch(f"torch.nn.Module.{func.attr}", node, receiver, receiver)
        if not atoms:
            given = NO_REFS.union(*args, *named.values())
            viewed = isinstance(func, ast.Attribute) and shares(func.attr)
            return self._unknown(node, given) | (made_as(receiver, VIEW) if viewed else NO_REFS)
        self._asked, self._one = node, NO_REFS
        self._alone = len(atoms) == 1 and len(functions_of(inference, atoms[0])) == 1
        results = [self._called(a, node, receiver, args, named) for a in atoms]
        for function in handed_to(inference, node):
            self._handed(function, node, NO_REFS.union(*args, *named.values()))
        self._asked = None
        layers = [layer_shares(a) for a in atoms if a.kind == "Module"]
        if len(layers) == len(atoms) and any(layers) and not all(layers):
            results = [made_as(r, MAYBE) if any(x.how for x in r) else r for r in results]
        found = NO_REFS.union(*results, self.held_by_callee(node, receiver))
        seen = hooks.kept(self.scene.inference)
        for classes, refs in ((seen.inputs, NO_REFS.union(*args)), (seen.outputs, found)):
            if classes and any(hooks.holds(classes, a) for a in atoms):
                self.state.put(frozenset((Ref(("outer", "a hook")),)), ELEMENTS, refs)
        return found

    def _named(self, node: ast.Call) -> dict[str, Refs]:
        """Return what is passed by name; under ``**`` what may go to every parameter."""
        found: dict[str, Refs] = {}
        for keyword in node.keywords:
            refs = self.value(keyword.value)
            if keyword.arg:
                found[keyword.arg] = refs
            elif refs and (entries := self.state.keyed(refs)) is not None:
                for key, held in entries.items():
                    found[key[2:-2]] = found.get(key[2:-2], NO_REFS) | held
            else:
                found["**"] = found.get("**", NO_REFS) | refs | self.elements(refs)
        return found

    def _argument(self, node: ast.expr | ast.keyword) -> Refs:
        if isinstance(node, ast.keyword):
            refs = self.value(node.value)
            return refs if node.arg else refs | self.elements(refs)
        if isinstance(node, ast.Starred):
            held = self.elements(refs := self.value(node.value))  # a list is not handed on itself
            return held if is_all(self.scene.kind(node.value), "list", "tuple") else refs | held
        return self.value(node)

    def _unknown(self, node: ast.Call, given: Refs) -> Refs:
        """Return what an unknown callee gives: it may share storage with arguments, writes none."""
        return made_as(self.state.reach(given), MAYBE) | self.made(node)

    def set_array(self, by: ast.AST, array: ast.expr) -> None:
        """``x.numpy()[i] = v`` changes ``x``, and the name that the array has sees it."""
        refs = frozenset(r for r in self.value(array) if r.how < MAYBE)
        self.flight.clear()
        self.note_given(by, refs)
        self.state.write(refs, id(by))
        if isinstance(array, ast.Name):
            self.state.names[array.id] = refs

    # -- what changes an argument ---------------------------------------------------------------

    def _writing(self, node: ast.Call, expr: ast.expr, mark: int) -> Refs:
        chain = is_chain(self.scene, expr)
        refs = self.value(expr) if chain else self.target_refs(target_of(self.scene, expr))
        if follows_another(self.scene, node, expr):
            refs = frozenset(r for r in refs if node_of(root(r.region)) == id(node))
        for part in (*node.args, *(k.value for k in node.keywords)):
            if part is not expr:
                given = self._argument(part)
                held = regions(frozenset(r for r in refs if r.how < MAYBE))
                if chain and held & regions(self.state.reach(given)):
                    # one assignment stands for the whole chain: this is read before it
                    self.found.seen.setdefault(id(node), ast.unparse(part))
        del self.flight[mark:]
        return self.write(node, expr, refs, self._mode(node))

    def _writing_outs(self, node: ast.Call, outs: tuple[ast.Name, ...], mark: int) -> Refs:
        """``torch.max(x, 1, out=(values, places))``; the result holds both."""
        targets = [(o, self.target_refs(target_of(self.scene, o))) for o in outs]
        for part in (*node.args, *(k.value for k in node.keywords if k.arg != "out")):
            self._argument(part)
        del self.flight[mark:]
        mode = self._mode(node)
        return NO_REFS.union(*(self.write(node, out, refs, mode) for out, refs in targets))

    def _mode(self, node: ast.Call) -> str:
        parent = self.scene.parent(node)
        if isinstance(parent, ast.Expr):
            return "bound"
        if isinstance(parent, ast.Assign) and parent.value is node:
            unpacks = any(isinstance(t, (ast.Tuple, ast.List)) for t in parent.targets)
            return "" if unpacks else "again"
        return ""

    def target_refs(self, target: Target) -> Refs:
        """What a write changes; what is stale must not be changed either."""
        if target.holder in (Holder.NAME, Holder.ITEM, Holder.OUTER, Holder.VIEW):
            refs = self.look(target.name)
            if target.holder is Holder.ITEM and not self._tensor(target.expr):
                refs |= self.elements(refs)  # of a list, perhaps
        elif target.holder is Holder.PLACE:
            refs = self.holders(target.expr)
        elif target.holder is Holder.ELEMENT and isinstance(target.expr, ast.Subscript):
            self.value(target.expr.slice)
            held, key = self.holders(target.expr.value), entry_of(target.expr)
            refs = self.state.get(held, key) if key else self.elements(held)
        else:
            return self.value(target.expr)
        self.read(target.name or ast.unparse(target.expr), refs)
        return refs

    # -- what a callee gives ----------------------------------------------------------------------

    def _container_call(
        self, node: ast.Call, name: str, holders: Refs, args: list[Refs], named: dict[str, Refs]
    ) -> Refs | None:
        if name in _COLLECTING and (args or named):
            for refs in args:
                more = self.elements(refs) if name in ("extend", "update") else NO_REFS
                self.state.put(holders, ELEMENTS, refs | more)
            for key, refs in named.items():
                self.state.put(holders, ELEMENTS if key == "**" else f"['{key}']", refs)
            return NO_REFS
        if name in _TAKING:
            self.read(name, holders)
            if name == "setdefault" and len(args) > 1:
                self.state.put(holders, key_of(node.args[0]) or ELEMENTS, args[1])
            return self.elements(holders).union(*args)
        if name in (*_GIVING, "items") and not node.args:
            self.read(name, holders)
            held = self.elements(holders)
            pairs = name == "items"
            return self._pairs(node, NO_REFS, held) if pairs else self._holding(node, held)
        return None

    def _holding(self, node: ast.Call, held: Refs) -> Refs:
        """Return a container that the call makes, with what it holds."""
        made = self.made(node)
        self.state.put(made, ELEMENTS, held)
        return made

    def _pairs(self, node: ast.Call, *places: Refs) -> Refs:
        """``zip``, ``enumerate``, ``items``: an iterator over tuples, place by place."""
        pair = frozenset((self.state.make((id(node), "pair")),))
        self.state.put(pair, ELEMENTS, NO_REFS.union(*places))
        for index, refs in enumerate(places):
            self.state.put(pair, f"#{index}", refs, anew=True)
        return self._holding(node, pair)

    def _called(
        self, atom: Atom, node: ast.Call, receiver: Refs, args: list[Refs], named: dict[str, Refs]
    ) -> Refs:
        given = receiver.union(*args, *named.values())
        handed = NO_REFS.union(*args, *named.values())
        functions = functions_of(self.scene.inference, atom, is_exact(self.scene.inference, node))
        if functions and atom.kind == "partial":
            held = self.holders(node.func)
            results = [self._handed(f, node, given | held) for f in functions]
            return NO_REFS.union(*results)
        if functions and atom.kind != "class":
            bound = atom.kind != "function"
            owner = self.holders(node.func) if atom.kind in ("Module", "Object") else receiver
            results = [self._project(f, node, owner, args, named, bound) for f in functions]
            return NO_REFS.union(*results)
        if atom.name in CALLERS and node.args and (own := self._closures(node.args[0])):
            results = [self._project(f, node, NO_REFS, args[1:], {}, False) for f in own]
            return NO_REFS.union(*results)
        if atom.name == UNPADDING and transposes(node):
            self.change_given(node, args[0] if args else handed, [], False)
        if atom.kind in ("ref", "method") and atom.name.startswith("torch."):
            if atom.name.rpartition(".")[2] in FIRST_ALONE:
                handed = args[0] if args else named.get("input", NO_REFS)
            if atom.name.startswith("torch.Tensor."):
                given = receiver  # a method views its own Tensor: ``x.to(y)`` is none of y
            return self._torch(atom.name, node, receiver, handed if atom.kind == "ref" else given)
        if atom.kind == "ref" and atom.name in EINOPS:
            viewed = made_as(self.state.reach(handed), VIEW) if EINOPS[atom.name] else NO_REFS
            return viewed or self.made(node)
        if atom.kind == "Step":
            return self._stepped(atom, node, args, named)
        if atom.kind == "Module" and atom.name.startswith("torch.nn."):
            if atom.name == SEQUENCE and "inplace" in atom.keys:
                handed = self.change_first(node, handed)
                inner = (a for kind in atom.items for a in kind if a.kind == "Module")
                new = any(not layer_shares(a) for a in inner if "inplace" not in a.keys)
                return self.made(node) if new else made_as(handed, VIEW)
            return self._layers(atom, node, args, named) | self.made_whole(node)
        if atom.kind == "builtin" or atom.name == _ORDERED:
            if atom.name in ("dict", _ORDERED) and not args and named and "**" not in named:
                return self.entries(node, ((f"['{key}']", refs) for key, refs in named.items()))
            return self._builtin(atom.name, node, [*args, *named.values()])
        if atom.name in _FIELDS:
            return self.state.get(args[0], _FIELDS[atom.name])
        if atom.name == "torch2ms.leaf":
            return self._torch("torch.nn.Parameter", node, receiver, handed)
        if atom.name in HOLDING:  # an object of Python's that holds these, or what they hold
            given = NO_REFS.union(*args)
            given = self.contents(given) if HOLDING[atom.name] else given
            for function in handed_to(self.scene.inference, node):  # a factory, which gives these
                given |= self._given_back(function, NO_REFS, self.summary(function).back, {})
            made = self._holding(node, given.union(*named.values()))
            for key, refs in named.items():
                self.state.put(made, ELEMENTS if key == "**" else key, refs, anew=True)
            return made
        if atom.kind == "class" or (atom.kind == "ref" and atom.name.startswith("torch2ms.")):
            made, acts = self.made(node), may_write(self.scene.inference, node, functions)
            if not (acts and is_told(self.scene.inference, atom.name, functions)):
                self.state.put(made, ELEMENTS, given)
            for function in functions if acts else ():
                if function.name == "__post_init__":
                    self._handed(function, node, given)
                else:
                    self._project(function, node, made, args, named, True)
            return made
        if atom.name == "functools.partial":
            return self._holding(node, handed)
        if atom.name == "copy.copy" and args:  # holds what the first one holds
            return made_as(args[0], VIEW) | self.made(node)
        if atom.name == "copy.deepcopy" or makes_array(atom.name, node):  # shares nothing with it
            return self.made(node)
        if atom.kind == "foreign" and self.scene.table.needs_torch(atom.name):
            return NO_REFS  # its import is flagged
        asked = node.func.value if isinstance(node.func, ast.Attribute) else None
        maybe = asked is not None and self._maybe_memory(asked)
        if maybe and isinstance(node.func, ast.Attribute) and shares(node.func.attr):
            return made_as(receiver, VIEW) | self._unknown(node, handed)  # of a Tensor a view
        given = handed | receiver if maybe and not makes_anew(self.scene, node.func) else handed
        return self._unknown(node, given)

    def _closures(self, node: ast.expr) -> list[Function]:
        """Return the functions of the program that an expression is, where it can be no other."""
        atoms = self.scene.kind(node)
        found = [functions_of(self.scene.inference, atom) for atom in ordered(atoms)]
        known = is_all(atoms, "function") and all(found)
        return [function for some in found for function in some] if known else []

    def _layers(self, atom: Atom, node: ast.Call, args: list[Refs], named: dict[str, Refs]) -> Refs:
        """Return what the result of a torch layer shares; of a Sequential, what each layer shares.

        Where the first layer returns a new tensor, writes of the others do not reach the caller.
        Where the order is unknown, that holds if one of them does, and if nothing here reads the
        tensor later.
        """
        handed = NO_REFS.union(*args, *named.values())
        inner = [a for kind in atom.items for a in ordered(kind)]
        before = self.found.given.get(id(node))
        results = {
            a: self._called(a, node, NO_REFS, args, named)
            for a in inner
            if a.kind == "Module" and "::" in a.name
        }
        lent = regions(handed)

        def hands_on(layer: Atom) -> bool:
            if layer in results:
                return any(r.region in lent and r.how < MAYBE for r in results[layer])
            return layer.kind == "Module" and layer_shares(layer)

        first = first_layer(self.scene, node.func)
        makes_new = bool(first) and not any(map(hands_on, first))
        if before is None and (makes_new or not all(map(layer_shares, inner))):
            self.found.given.pop(id(node), None)
        shared = all(map(hands_on, inner))
        given = NO_REFS.union(*results.values())
        if inner and atom.name == SEQUENCE and not shared:
            return frozenset(r for r in given if r.region not in lent)
        return given | (made_as(handed, VIEW) if layer_shares(atom) else NO_REFS)

    def _stepped(
        self, atom: Atom, node: ast.Call, args: list[Refs], named: dict[str, Refs]
    ) -> Refs:
        """Return the result of a training step: that of its network; torch's losses are new."""
        if atom.name.endswith("WithLossCell"):  # the loss is new; the network may change its input
            for one in (a for k in atom.items[:1] for a in k):
                self._called(one, node, NO_REFS, args[:1], {})
            return self.made(node)
        atoms = [a for k in atom.items for a in ordered(k)]
        self._alone = len(atoms) == 1
        inner = [self._called(a, node, NO_REFS, args, named) for a in atoms]
        return NO_REFS.union(*inner, *(() if inner else (*args, *named.values())))

    def _handed(self, function: Function, node: ast.Call, given: Refs) -> Refs:
        """Return the result of a callback that may get any argument of its caller."""
        roots, given, made = given, self.state.reach(given), self.made(node)
        builds = function.name in CONSTRUCTORS
        if builds and not may_write(self.scene.inference, node, (function,)):
            return made
        owners = made if builds else method_owners(given, function.name)
        names = [p.arg for p in all_parameters(function.node.args)]
        own = names[:1] if function.owner is not None and owners else []
        passed = dict.fromkeys(names, given) | dict.fromkeys(own, owners) | {ANY: roots}
        self._acted(function, node, at_large(self.summary(function), "".join(own)), passed)
        return made_as(given, MAYBE) | made

    def _torch(self, name: str, node: ast.Call, receiver: Refs, given: Refs) -> Refs:
        last = name.rpartition(".")[2]
        if last in MODULE_ONLY:
            held = self.state.held(receiver, layers=last.endswith(("modules", "children")))
            named = last.startswith("named_")
            return self._pairs(node, NO_REFS, held) if named else self._holding(node, held)
        if self.scene.table.kind(name) == "class":
            made = self.made(node)
            if last.endswith("Tensor") and len(node.args) == 1:  # of a Tensor it is the same memory
                shared = "Tensor" in self.scene.kind_names(node.args[0])
                return made | made_as(given, VIEW) if shared else made
            if last in ("Parameter", "Buffer"):
                self.state.leaves.add(id(node))
                return made | made_as(frozenset(r for r in given if self.state.is_known(r)), VIEW)
            if not name.startswith("torch.nn.") or last.startswith(("Sequential", "Module", "Par")):
                self.state.put(made, ELEMENTS, given)
            return made
        if last in DIVIDING and self.is_divided(node, receiver or given):
            return self.divided(node)
        if shares(name) and not is_apart(name, node):
            user = self.scene.parent(node)  # ``x.detach().add_(1)`` is a write into x itself
            direct = isinstance(user, ast.Attribute) and is_written(user.attr)
            how = SAME if last == "detach" and direct else VIEW
            itself = name.startswith("torch.nn.Module.") and not last.startswith("get_")
            return made_as(given if itself else self.state.reach(given), how)  # ``net.to(device)``
        if name == "torch.tensor" and not is_listed(self.scene, node):  # a Tensor's memory stays
            return made_as(given, VIEW) | self.made(node)
        if works_inplace(self.scene, node, False):
            return made_as(given, MAYBE) | self.made(node)
        return self.made_whole(node)

    def _builtin(self, name: str, node: ast.Call, args: list[Refs]) -> Refs:
        given = NO_REFS.union(*args)
        if name == "getattr" and args:
            return self.state.get(args[0], attribute_of(node.args[1]) if node.args[1:] else REST)
        if name == "setattr":
            return self._set(node, args)
        if name in ASKING:  # the sum of nothing is the start itself
            return self.made(node).union(*args[1:] if name == "sum" else ())
        if name in ("zip", "enumerate"):
            each = self.rows_of(node, args)
            return self._pairs(node, *([NO_REFS] if name == "enumerate" else []), *each)
        if name in _SAME_ELEMENTS or name == _ORDERED:
            made, found = self.made(node), NO_REFS.union(*self.rows_of(node, args))
            values = self.state.get(found, "#1") if name in ("dict", _ORDERED) else NO_REFS
            self.state.put(made, ELEMENTS, values or found)
            return made
        if name in ("next", "max", "min"):
            return self.contents(given)
        return self._unknown(node, given)

    def _set(self, node: ast.Call, args: list[Refs]) -> Refs:
        """``setattr(m, "name", value)`` binds an attribute; a buffer takes the numbers alone."""
        if len(args) != 3:
            return NO_REFS
        *_, key, value = node.args
        attribute = attribute_of(key)
        holders, refs = args[0], args[2]
        if attribute in registered(self.scene):
            own = self.rebind(id(node), self.state.get(holders, attribute))
            self.lose(id(node), node, own, [value])
            refs = own | made_as(refs, VIEW)
        self.state.put(holders, attribute, refs, anew=True)
        return NO_REFS

    def _project(
        self, function: Function, node: ast.Call, receiver: Refs, args: list[Refs],
        named: dict[str, Refs], bound: bool,
    ) -> Refs:  # fmt: skip
        """Apply the summary of a function of the project: its writes are writes here."""
        summary = self.summary(function)
        bound = bound and not function.decorated("staticmethod")
        names = [p.arg for p in function.parameters][1 if bound else 0 :]
        passed, loose = dict(zip(names, args, strict=False)) | named, frozenset[str]()
        if any(isinstance(a, ast.Starred) for a in node.args) or "**" in named:
            passed, loose = spread_out(function, node, names, args, named)
        elif len(args) > len(names) and function.node.args.vararg is not None:
            passed[function.node.args.vararg.arg] = NO_REFS.union(*args[len(names) :])
        rest = function.node.args.kwarg
        if rest is not None and "**" not in named:
            taken = {p.arg for p in all_parameters(function.node.args) if p is not rest}
            passed[rest.arg] = NO_REFS.union(*(passed.pop(n) for n in [*passed] if n not in taken))
        own = self._fields(receiver, summary.back)
        whole = {p.arg: r for p, r in zip(function.parameters, [receiver], strict=False) if bound}
        self._acted(function, node, summary, passed, whole, loose)
        made = self.given_anew(node, summary) if self._alone else self.made(node)
        if function.decorated("cached_property"):
            return self.state.get(receiver, function.name)  # what the object holds from then on
        if any(function.decorated(name) for name in ("lru_cache", "cache")):
            made = frozenset((Ref(("outer", function.key)),))  # the very object of an earlier call
        elif self._alone and summary.places and not own - self._fields(receiver, summary.back):
            parts = [self._given_back(function, receiver, b, passed) for b in summary.places]
            one = self.state.make((id(node), "parts"))
            for index, refs in enumerate(parts):
                new = {one._replace(how=VIEW) if summary.tied else Ref(("item", one.region, index))}
                self.state.put(made, f"#{index}", refs | new, anew=True)
                self.state.put(made, ELEMENTS, refs | new)
            return made
        # of what the attributes were bound to before as well
        own |= self._given_back(function, receiver, summary.back, passed)
        return own | (made_as(made, VIEW) if summary.tied else made)

    def _acted(
        self, function: Function, node: ast.Call, summary: Summary, passed: dict[str, Refs],
        whole: Mapping[str, Refs] = {}, loose: Collection[str] = (),
    ) -> None:  # fmt: skip
        """What a callee does to what it is passed, and to variables of outside."""
        own = {p.arg for p in all_parameters(function.node.args)}
        outer = {path[0] for path, *_ in summary.kept} - own
        known = {name: self._outside(function, name) for name in outer} | passed
        arguments = function.node.args
        gathering = {a.arg for a in (arguments.vararg, arguments.kwarg) if a is not None}
        for name in sorted(gathering & known.keys()):  # each call makes these anew
            held, known[name] = known[name], frozenset((self.state.make((id(node), name)),))
            self.state.put(known[name], ELEMENTS, held)
        self.effects(node, summary, {**known, **whole}, gathering, function.name == "__init__")
        for path in sorted(summary.outside):
            held = self._at(path, {path[0]: self._outside(function, path[0])}, {})
            self.change(id(node), held)
        for name, how in summary.writes.items():
            if name in summary.items:
                passed[name] = self.with_linked(passed.get(name, NO_REFS))
            given = made_as(passed.get(name, NO_REFS), how)
            apart = untouched_rest(self._unit()) if name in loose else ()
            paths = [p for by, p in summary.behind if by == name and p[0] != name]
            others = [
                without(self._at(p, {**passed, **whole}, {}), apart if p[0] in loose else ())
                for p in sorted(paths)
            ]
            self.change_given(node, given, others, summary.assigns, name in summary.sets)

    def _outside(self, function: Function, name: str) -> Refs:
        """Return what a variable around a function holds."""
        unit = self._unit()
        around = function.parent.node if function.parent is not None else None
        here = around is unit and (unit is not None or function.path == self.scene.file.path)
        return self.look(name) if here else frozenset((Ref(("outer", name)),))

    def _given_back(
        self, function: Function, receiver: Refs, back: Back, passed: dict[str, Refs]
    ) -> Refs:
        """Return what the result of a callee, or one place of its tuple, shares with the caller."""
        found, first = self._fields(receiver, back), function.parameters[:1]
        for name, how in back.shares.items():
            if function.owner is not None and name in (p.arg for p in first):
                found |= made_as(receiver, how)  # the object itself
                continue
            found |= made_as(self.state.reach(passed.get(name, NO_REFS)), how)
        for name, how in back.outer.items():
            found |= made_as(self._outside(function, name), how)
        return found

    def _fields(self, receiver: Refs, back: Back) -> Refs:
        found = NO_REFS
        for path, how in back.fields.items():
            found |= made_as(reduce(self.state.get, path, receiver), how)
        return found

    def _own(self) -> Refs:
        raise NotImplementedError  # in alias_walk

    def _unit(self) -> ast.AST | None:
        raise NotImplementedError  # in alias_walk
