"""In: a call and the kinds of its parts. Out: the kind of its result."""

from __future__ import annotations

import ast
from functools import lru_cache, partial

from migrate.analysis.program import Function, method_of
from migrate.analysis.summaries import ANY
from migrate.analysis.types import contents, datasets, looked_up, parametric, python_results, values
from migrate.analysis.types.annotations import annotated
from migrate.analysis.types.given import Given
from migrate.analysis.types.kinds import (
    ARRAY,
    GIVEN,
    HANDING_ON,
    MODULE,
    NOTHING,
    PACKED,
    SCALAR,
    STR,
    TENSOR,
    UNKNOWN,
    Atom,
    Kind,
    Site,
    element,
    fixed_tuple,
    from_text,
    indirect,
    join,
    kind,
    ordered,
    sequence,
)
from migrate.analysis.types.named import name_pattern
from migrate.analysis.types.results import OF_STEPS
from migrate.mapping import calls
from migrate.mapping.table import Signature, Table
from migrate.syntax.trees import is_super


class Calling(Given):
    """Evaluates calls; what a call proves or changes is noted in the frame."""

    def _Call(self, node: ast.Call) -> Kind:
        if is_super(node):
            return self._super()
        callee = self.kind(node.func)
        args = tuple(self.kind(a) for a in node.args)
        for keyword in node.keywords:
            self.kind(keyword.value)
        if isinstance(node.func, ast.Attribute) and self._only_a_tensor(node, node.func):
            self._taken_for_tensor(node.func.value)
            callee = values.attribute(TENSOR, node.func.attr, self.world)
            self.world.kinds[id(node.func)] = callee
        elif isinstance(node.func, ast.Attribute) and self._only_a_module(node.func):
            self.saw(node.func.value, MODULE)
            callee = values.attribute(MODULE, node.func.attr, self.world)
            self.world.kinds[id(node.func)] = callee
        elif isinstance(node.func, ast.Attribute) and self._only_a_string(node, node.func):
            self.saw(node.func.value, STR)
            self.world.kinds[id(node.func.value)] = STR
            callee = values.attribute(STR, node.func.attr, self.world)
            self.world.kinds[id(node.func)] = callee
        called = frozenset(a for a in callee if a.kind not in _NOT_CALLED)
        if called and called != callee:
            callee = self.world.kinds[id(node.func)] = called
        for value in (*node.args, *(k.value for k in node.keywords)) if self.links else ():
            given = self.world.kinds[id(value)]
            self.world.kinds[id(value)] = contents.also_at(given, self.linked)
        self.world.note_call(node)
        found = [self._called(atom, node, args) for atom in ordered(callee) if atom.kind != "None"]
        self._changed(node, callee, args)
        given = join(*found) if found or not callee else UNKNOWN
        return contents.filled(given, id(node))

    def _super(self) -> Kind:
        method = method_of(self.function)
        return kind("super", method.owner.key) if method and method.owner else UNKNOWN

    def _called(self, atom: Atom, node: ast.Call, args: tuple[Kind, ...]) -> Kind:
        world = self.world
        if atom.kind == "ref":
            return self._torch_call(atom.name, node, args)
        if atom.kind == "method":
            function = world.function_of(atom.name)
            if function is not None:
                return self._returned(function, node, atom)
            if atom.name.startswith("torch.Tensor."):
                return self._torch_call(atom.name, node, args)
            return self._put_by_method(atom, node, args) or values.call_method(atom, args, world)
        if atom.kind == "function":
            function = world.function_of(atom.name)
            return self._returned(function, node, atom) if function else UNKNOWN
        if atom.kind == "class":
            return values.instance_of(atom, args, world)
        if atom.kind == "Module":
            self._tensors_into(atom, node)
            asked = looked_up.given(atom, node, self.path, world)
            return asked or _of_packed(args, values.call_module(frozenset((atom,)), world), atom)
        if atom.kind == "Object":
            called = world.member(atom.name, "__call__")
            functions = [f for a in ordered(called) if (f := world.function_of(a.name))]
            return join(*map(world.returns_any, functions)) if functions else UNKNOWN
        if atom.kind == "callable":
            return join(*atom.items)
        if atom.kind == "Step":
            return self._stepped(atom, node, args)
        if atom.kind == "partial":
            parts = [self._called_through(a, node, args) for i in atom.items for a in ordered(i)]
            return join(*parts) or UNKNOWN
        if len(args) == len(node.args):  # Python's own take what a star unpacks one by one
            pairs = zip(args, node.args, strict=True)
            args = tuple(element(a) if isinstance(n, ast.Starred) else a for a, n in pairs)
        if atom.kind == "builtin":
            return self._builtin(atom.name, node, args)
        if atom.name in ("typing.cast", "typing_extensions.cast") and len(node.args) == 2:
            written = values.resolved(annotated(node.args[0], world.kinds), world)
            return args[1] if written == UNKNOWN else written
        if atom.kind == "foreign" and world.table.needs_torch(atom.name):
            return GIVEN  # a Tensor, mostly
        passed = (*args, *(world.kinds[id(k.value)] for k in node.keywords))
        if atom.kind == "foreign":
            return _of_numpy(python_results.foreign(atom.name, passed), node)
        given = python_results.given(atom.name, passed) if atom.kind == "instance" else UNKNOWN
        return _of_numpy(given, node)

    def _called_through(self, atom: Atom, node: ast.Call, args: tuple[Kind, ...]) -> Kind:
        """Return the result of a function called by ``map`` or a partial, whose arguments are not
        those of the node.
        """
        if atom.kind == "Module" or self.world.function_of(atom.name) is not None:
            return parametric.given_by(frozenset((atom,)), self.world)
        return self._called(atom, node, args)

    def _builtin(self, name: str, node: ast.Call, args: tuple[Kind, ...]) -> Kind:
        found = self._mapped(node, args) if name == "map" else self._member_lookup(name, node)
        found = found or python_results.builtin(name, args, node, self.world.kinds)
        if name not in _LAZY:
            return found
        at = contents.NO_SITES.union(*map(contents.all_sites, args))
        return frozenset(a._replace(sites=at) if a.kind == "iterator" else a for a in found)

    def _returned(self, function: Function, node: ast.Call, atom: Atom) -> Kind:
        """Return the result of a function of the project; its body proves the arguments."""
        found = self._given_back(function, node)
        self._shown_by(function, node)
        if len(self.world.overriding(function)) == 1:
            found = self._of_arguments(function, node, atom) or found
        if not any(a.items or contents.is_container(a) for a in found):
            return found
        also: frozenset[tuple[str, Site]] = frozenset()
        if self.world.effects(function).returned:  # it may be, or hold, an argument
            passed = [*node.args, *(k.value for k in node.keywords)]
            passed += [node.func.value] if isinstance(node.func, ast.Attribute) else []
            also = also.union(*(contents.by_kind(self.world.kinds[id(p)]) for p in passed))
        return contents.received(found, id(node), also=also)

    def _of_arguments(self, function: Function, node: ast.Call, atom: Atom) -> Kind:
        """Return the result of a function for the arguments of one call; nothing if all calls
        agree.
        """
        given = self.world.results_of(function)
        holder = node.func.value if isinstance(node.func, ast.Attribute) else None
        of = self.world.kinds.get(id(holder), NOTHING)
        bound = atom.kind == "method" and not any(a.kind == "class" for a in of)
        if not given or (function.owner is not None and not bound):
            return NOTHING  # ``Base.method(self, x)`` passes what a bound method has
        unpacked = any(isinstance(a, ast.Starred) for a in node.args)
        unpacked = unpacked or any(k.arg is None for k in node.keywords)

        def own(name: str) -> Kind | None:
            passed = parametric.passed(function, node, name)
            if passed is not None:
                return indirect(self.world.kinds[id(passed)])
            return None if unpacked else self.world.argument(function, name)

        return parametric.instance(given, own, parametric.closed_over(atom), self.world)

    def _given_back(self, function: Function, node: ast.Call) -> Kind:
        """The result of a method: of any that overrides it, unless it is called by its class."""
        holder = node.func.value if isinstance(node.func, ast.Attribute) else None
        of = self.world.kinds.get(id(holder), NOTHING)
        exact = function.owner is None or (of and all(a.kind in ("class", "super") for a in of))
        return self.world.returns(function) if exact else self.world.returns_any(function)

    def _member_lookup(self, name: str, node: ast.Call) -> Kind:
        """``getattr(x, "name")``, and ``getattr(x, f"layer{i}")`` of an object of the project."""
        if name != "getattr" or len(node.args) < 2:
            return NOTHING
        holder, text = self.world.kinds[id(node.args[0])], node.args[1]
        if isinstance(text, ast.Constant):
            return values.attribute(holder, str(text.value), self.world)
        found = [self.world.kinds[id(other)] for other in node.args[2:]]
        for atom in ordered(holder):
            if atom.kind not in ("Module", "Object") or "::" not in atom.name:
                return UNKNOWN
            names, loose = self.world.named_by(atom.name, name_pattern(text))
            one = frozenset((atom,))
            found += [loose, *(values.attribute(one, n, self.world) for n in names)]
        return join(*found)

    # -- effects --------------------------------------------------------------------------------

    def _put_by_method(self, atom: Atom, node: ast.Call, args: tuple[Kind, ...]) -> Kind:
        """Record that ``layers.append(x)`` adds the kind of ``x`` to the elements of ``layers``.

        Return the result of ``setdefault``, the new container of ``copy``, nothing for other
        methods.
        """
        owner, _, name = atom.name.rpartition(".")
        holder = atom.items[0] if atom.items else NOTHING
        if name == "copy" and any(map(contents.is_container, holder)):
            return contents.made_at(holder, id(node))
        named = {k.arg or "": self.world.kinds[id(k.value)] for k in node.keywords}
        added = contents.put_in(atom.name, args, named)
        if added is None:
            return NOTHING
        added, key = contents.filled(added, id(node)), ""
        if owner == "dict" or owner.endswith("Dict"):
            first = node.args[0] if node.args and name == "setdefault" else None
            key = str(first.value) if isinstance(first, ast.Constant) else contents.ANY_KEY
            if name == "update" and not node.args and "" not in named:
                for key, value in named.items():
                    self.put(holder, value, key)
                return NOTHING
        self.put(holder, added, key)
        target = node.func.value if isinstance(node.func, ast.Attribute) else None
        if isinstance(target, ast.Name) and target.id in self.env:
            self.world.kinds[id(target)] = self.env[target.id]  # as it is now
        if name != "setdefault":
            return NOTHING
        return join(*(i for a in holder for i in a.items), added)

    def _changed(self, node: ast.Call, callee: Kind, args: tuple[Kind, ...]) -> None:
        """Forget what a call may change: attributes, and what containers hold."""
        given = [*args, *[self.world.kinds[id(k.value)] for k in node.keywords]]
        if _is_harmless(callee) and not any(map(_runs, given)):
            return
        holder = node.func.value if isinstance(node.func, ast.Attribute) else None
        owner = self.world.kinds[id(holder)] if holder is not None else NOTHING
        at = contents.all_sites(owner).union(*map(contents.all_sites, _handed(node, given)))
        if not (at or self.paths or self.links):
            return
        for atom in (a for value in given for a in value):  # ``map(items.append, others)``
            if atom.kind == "method" and atom.items and contents.puts(atom.name):
                self.put(atom.items[0], UNKNOWN, contents.ANY_KEY)
        changes = self.world.changes(node)
        gone = changes.attributes
        if gone and self.paths:
            whole = ANY in gone
            self.paths = {p: v for p, v in self.paths.items() if not (whole or p[1] in gone)}
        held = self._held_by(gone)
        if not at and not held:
            return
        functions, all_known = self._run_by(callee)
        put_in = at and (changes.contents or not gone.isdisjoint(_attributes_of(node)))
        for function in functions:
            given_at = partial(self._given_at, function, node, at)
            for site, name in sorted(self.world.kept(function), key=str):
                self.join_sites(given_at(site), name, contents.anything(join(*args)))
            for site, put in self.world.put_into_given(function).items() if put_in else ():
                self.grow(given_at(site), contents.brought(put, id(node), given_at))
            for name in sorted(held):
                put = self.world.put_into(function, name)
                self.grow(frozenset((name,)), contents.brought(put, id(node), given_at))
        if not all_known:
            self.grow((at if put_in else contents.NO_SITES) | held, UNKNOWN)

    def _given_at(
        self, function: Function, node: ast.Call, at: contents.Sites, site: Site
    ) -> contents.Sites:
        """Return the caller's sites of an argument; those of every argument if it is not known."""
        if not contents.is_given(site):
            return contents.NO_SITES
        name, depth = contents.parameter_of(site)
        holder = node.func.value if isinstance(node.func, ast.Attribute) else None
        of = {a.kind for a in self.world.kinds.get(id(holder), NOTHING)}
        unpacked = any(isinstance(a, ast.Starred) for a in node.args)
        if unpacked or any(k.arg is None for k in node.keywords) or not name:
            return at
        if of & ({"class", "super"} if function.owner is not None else {"Module", "Object"}):
            return at  # ``Base.method(self, x)`` passes what a bound method has
        passed = parametric.passed(function, node, name)
        if passed is None:
            told = name in parametric.parameter_names(function)  # its default is taken
            return contents.NO_SITES if told else at
        levels = contents.levels(self.world.kinds[id(passed)])
        return levels[depth] if depth < len(levels) else contents.NO_SITES

    def _held_by(self, names: frozenset[str]) -> frozenset[str]:
        """Return the sites of what attributes of these names hold, as far as variables see it."""
        if not names:
            return frozenset()
        self.effects.wide = True
        here = contents.NO_SITES.union(*map(contents.all_sites, self.env.values()))
        sites = (s for s in here.union(self.links) if isinstance(s, str) and s[0] == ".")
        return frozenset(s for s in sites if ANY in names or s[1:].rstrip("[]") in names)

    def _run_by(self, callee: Kind) -> tuple[list[Function], bool]:
        """Return the functions of the project that a call runs; whether these are all."""
        found: list[Function] = []
        every = True
        for atom in callee:
            names = ("__init__",) if atom.kind == "class" else ("forward", "__call__")
            if atom.kind in ("function", "method"):
                function = self.world.function_of(atom.name)
                found += [function] if function is not None else []
            elif "::" in atom.name and atom.kind in ("class", "Module", "Object"):
                members = [m for n in names for m in ordered(self.world.member(atom.name, n))]
                functions = [self.world.function_of(m.name) for m in members]
                found += [f for f in functions if f is not None]
            elif atom.kind not in ("ref", "builtin", "foreign", "None"):
                every = False
        return found, every

    def _stepped(self, atom: Atom, node: ast.Call, args: tuple[Kind, ...]) -> Kind:
        """Return the result of a training step: that of its network, and the norm if wanted."""
        self._into_module(node)
        if atom.name.endswith("WithLossCell"):
            return TENSOR
        given = [self._called(a, node, args) for i in atom.items for a in ordered(i)]
        result = join(*given) or TENSOR
        if atom.name.endswith("WithEvalCell"):  # loss, outputs, labels
            result = TENSOR if result == UNKNOWN else result  # as of any Module
            return fixed_tuple((TENSOR, result, args[1] if len(args) > 1 else TENSOR))
        if not atom.keys:
            return result
        places = next((a.items for a in result if a.fixed), (result,))
        return fixed_tuple((*places, TENSOR))

    def _from_callback(self, node: ast.Call, args: tuple[Kind, ...]) -> Kind:
        """Return what Model passes to a callback: the batch, or the result of the step."""
        steps = [a for a in ordered(args[1] if len(args) > 1 else NOTHING) if a.kind == "Step"]
        found = (self._stepped(a, node, (TENSOR,) * 8) for a in steps)
        return join(*found) or sequence("tuple", TENSOR)

    def _measured(self, model: Kind, node: ast.Call) -> Kind:
        """Return the result of Model.eval: that of the eval() of its Metric."""
        metrics = [m for a in model for i in a.items for d in i for v in d.items for m in v]
        members = [m for a in metrics for m in self.world.member(a.name, "eval")]
        functions = [self.world.function_of(m.name) for m in members]
        return join(*(self.world.returns(f) for f in functions if f)) or UNKNOWN

    def _torch_call(self, name: str, node: ast.Call, args: tuple[Kind, ...]) -> Kind:
        table = self.world.table
        if name == "torch2ms.run_eval":
            return self._measured(args[0], node)
        if name in ("torch2ms.batch", "torch2ms.net_outputs", "torch2ms.outputs"):
            return self._from_callback(node, args)
        if name == "torch2ms.EvalModel":
            return frozenset((Atom("Step", name, args[2:3]),))
        if name.startswith("torch2ms.") and name not in OF_STEPS:
            norm = [k.arg for k in node.keywords if k.arg == "returns_norm"]
            return frozenset((Atom("Step", name, args[:1], tuple(norm)),))
        named = {k.arg: self.world.kinds[id(k.value)] for k in node.keywords if k.arg}
        dataset = datasets.made(name, named, args, self.world)
        if dataset is not None:
            return dataset
        if name in parametric.WRAPPING or name in parametric.CHANGING:
            return parametric.given_back(name, args)
        if name in parametric.CALLERS:
            return parametric.given_by(args[0] if args else UNKNOWN, self.world)
        if table.kind(name) == "class" and name.startswith("torch.nn."):
            made = values.instance_of(Atom("ref", name), args, self.world)
            made = _keyed(made, "inplace") if self._works_inplace(name, node, args) else made
            indices = bound_to("return_indices", node, table, name)
            return _keyed(made, "return_indices") if any(map(_is_true, indices)) else made
        signatures = table.signatures(name)
        self._tensor_arguments(node, name)
        if name == "torch.Tensor.type":
            return TENSOR if node.args or node.keywords else STR
        several = _several(name, node, table)
        if several:
            return several
        if len(signatures) == 1 and signatures[0].fields:
            return _result(signatures[0])
        if len(signatures) > 1 and table.kind(name) != "class":
            bound, _ = calls.choose(node.args, node.keywords, signatures, self.names_of)
            results = {_result(b.signature) for b in bound} if bound else set()
            written = any(row.result for row in table.rows(name))
            if len(results) == 1 and not written and (found := results.pop()) != UNKNOWN:
                return self.world.results.of_call(name) if found == TENSOR else found
        return self.world.results.of_call(name)

    def _works_inplace(self, name: str, node: ast.Call, args: tuple[Kind, ...]) -> bool:
        """``nn.ReLU(inplace=True)``, also as the first layer of a Sequential that computes."""
        if name == "torch.nn.Sequential":
            for layer in args:
                if any("inplace" in a.keys for a in layer):
                    return True
                if not any(map(_hands_on, layer)):
                    return False
            return False
        return any(_is_true(v) for v in bound_to("inplace", node, self.world.table, name))

    def _tensor_arguments(self, node: ast.Call, name: str) -> None:
        """Infer Tensor for an argument whose parameter accepts only Tensors."""
        if name.startswith("torch.Tensor.") or not node.args:
            return
        if name == "torch.from_numpy":
            self.saw(node.args[0], ARRAY)
            return
        signatures = self.world.table.signatures(name)
        for index, arg in enumerate(node.args):
            params = [s.params[index] for s in signatures if index < len(s.params)]
            admitted = {p.type for p in params if p.kind != "kw"}
            if admitted == {"Tensor"}:
                self.saw_tensor(arg)
            elif admitted == {"Tensor[]"} and isinstance(arg, (ast.List, ast.Tuple)):
                for part in arg.elts:
                    if not isinstance(part, ast.Starred):
                        self.saw_tensor(part)

    def _tensors_into(self, atom: Atom, node: ast.Call) -> None:
        """Torch's own layers take Tensors."""
        if atom.name.startswith("torch.nn.") and atom.name not in (
            "torch.nn.Identity",
            "torch.nn.Sequential",
            "torch.nn.Module",
        ):
            for arg in node.args[:1]:
                self.saw_tensor(arg)
        self._into_module(node)

    def _mapped(self, node: ast.Call, args: tuple[Kind, ...]) -> Kind:
        """Return the kind of ``map(f, items)``: an iterator over the results of ``f``."""
        each = tuple(element(a) for a in args[1:])
        found = []
        for atom in ordered(args[0] if args else NOTHING):
            function = self.world.function_of(atom.name) if atom.kind == "function" else None
            if function is not None and isinstance(function.node, ast.Lambda):
                given = {p.arg: k for p, k in zip(function.parameters, each, strict=False)}
                self.effects.lasting = False
                found.append(self.world.returns_with(function, given))
            else:
                found.append(self._called_through(atom, node, each))
        return sequence("iterator", join(*found) or UNKNOWN)


# builtins that call an argument, or change it
# calling one of these raises
_NOT_CALLED = frozenset(
    "None Tensor int float bool str list tuple dict Size dtype device iterator text".split()
)
_CHANGING = frozenset(("setattr", "delattr", "exec", "eval", "vars", "map", "filter", "sorted",
                       "next", "iter", "list", "tuple", "sum", "max", "min"))  # fmt: skip
_LAZY = ("map", "filter", "zip", "enumerate", "iter", "reversed")
_HOLDING = ("torch.nn.Module", "torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict",
            "torch.nn.DataParallel", "torch.nn.parallel.DistributedDataParallel")  # fmt: skip
_METHODS = ("torch.Tensor.", "str.", "list.", "dict.", "tuple.", "Size.", "int.", "float.")
_CALLED = frozenset(("function", "method", "class", "partial", "callable", "unknown"))


@lru_cache(maxsize=4096)
def _is_harmless(callee: Kind) -> bool:
    """Return whether a call runs none of its arguments and changes none of them."""
    for atom in callee:
        if atom.kind == "method":
            if not atom.name.startswith(_METHODS):
                return False
        elif atom.kind == "Module":  # a layer of torch's that holds no others
            if "." not in atom.name or atom.items or atom.name in _HOLDING:
                return False
        elif atom.kind not in ("ref", "builtin", "foreign") or atom.name in _CHANGING:
            return False
    return True


@lru_cache(maxsize=4096)
def _runs(value: Kind) -> bool:
    """Return whether an argument may be code of the program, or an object that holds some."""
    return any(a.kind in _CALLED or "::" in a.name for a in value)


def _attributes_of(node: ast.Call) -> frozenset[str]:
    """Return the attributes whose contents a call is passed, or that hold its receiver."""
    passed = [*node.args, *(k.value for k in node.keywords), node.func]
    inside = (n for p in passed for n in ast.walk(p))
    return frozenset(n.attr for n in inside if isinstance(n, ast.Attribute))


# arguments that make several results of one, and what a call with them gives
_SEVERAL = {
    "as_tuple": sequence("tuple", TENSOR),
    "get_infos": sequence("tuple", TENSOR),
    "return_counts": sequence("tuple", TENSOR),
    "return_indices": fixed_tuple((TENSOR, TENSOR)),
    "return_inverse": sequence("tuple", TENSOR),
}


def _several(name: str, node: ast.Call, table: Table) -> Kind:
    """Return the kind of a function called for several results; nothing if it is not."""
    found: list[Kind] = []
    may_be_asked = table.torch.places(name).keys() | {k.arg for k in node.keywords}
    if may_be_asked.isdisjoint(_SEVERAL):
        return NOTHING
    for argument, result in _SEVERAL.items():
        for value in bound_to(argument, node, table, name):
            if _is_true(value):
                return result
            if not (isinstance(value, ast.Constant) and not value.value):
                found.append(UNKNOWN)
    return join(*found)


def bound_to(argument: str, node: ast.Call, table: Table, name: str) -> list[ast.expr]:
    """What a call passes for an argument, by keyword or by place."""
    found = [k.value for k in node.keywords if k.arg == argument]
    places = table.torch.places(name).get(argument, ())
    return [*found, *(node.args[i] for i in places if i < len(node.args))]


def _of_numpy(found: Kind, node: ast.Call) -> Kind:
    """Return Array for ``numpy.random`` calls with a size; unknown for arrays of objects."""
    found = ARRAY if found == SCALAR and node.keywords else found
    return kind("instance") if found == ARRAY and _of_objects(node) else found


def _of_objects(node: ast.Call) -> bool:
    """``np.array(items, dtype=object)``: an array that may hold anything."""
    return any(k.arg in ("dtype", None) and not _of_numbers(k.value) for k in node.keywords)


def _of_numbers(dtype: ast.expr) -> bool:
    """``np.float32``, ``int``, ``"f4"``: written out, and not object."""
    if isinstance(dtype, ast.Name):
        return dtype.id in ("int", "float", "bool")
    text = dtype.value if isinstance(dtype, ast.Constant) else getattr(dtype, "attr", "dtype")
    return text not in ("object", "object_", "O", "dtype", None)


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _handed(node: ast.Call, given: list[Kind]) -> list[Kind]:
    """Return what the callee gets; of what is unpacked into arguments, what it holds."""
    whole = [not isinstance(a, ast.Starred) for a in node.args]
    whole += [k.arg is not None for k in node.keywords]
    if all(whole):
        return given
    pairs = zip(given, whole, strict=True)
    return [k if is_whole else join(*(i for a in k for i in a.items)) for k, is_whole in pairs]


def _hands_on(layer: Atom) -> bool:
    """Return whether the result of a layer may be its argument, or a view of it."""
    owner, _, last = layer.name.rpartition(".")
    if layer.kind != "Module" or not owner.startswith("torch.nn"):
        return False
    inner = [a for kind in layer.items for a in kind]
    return last in HANDING_ON or (last == "Sequential" and all(map(_hands_on, inner)))


def _keyed(value: Kind, key: str) -> Kind:
    return frozenset(Atom(a.kind, a.name, a.items, (*a.keys, key)) for a in value)


def _result(signature: Signature) -> Kind:
    found, fields = from_text(signature.result), signature.fields
    if fields:
        return frozenset(Atom(a.kind, a.name, a.items, fields, a.direct, a.fixed) for a in found)
    return found


_RECURRENT = ("torch.nn.LSTM", "torch.nn.GRU", "torch.nn.RNN")


def _of_packed(args: tuple[Kind, ...], found: Kind, layer: Atom) -> Kind:
    """Return the result of a recurrent layer: a packed sequence stays packed."""
    if layer.name not in _RECURRENT or not args or not args[0] >= PACKED:
        return found
    packed = [Atom("tuple", items=(PACKED, *a.items[1:]), fixed=True) for a in found]
    return frozenset(packed) | (NOTHING if args[0] == PACKED else found)
