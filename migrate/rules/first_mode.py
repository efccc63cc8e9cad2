"""Put Modules that are built into training mode, unless their next mode is set before any use.

torch's Modules start in training mode, Cells do not. What is built as a part of another Module
takes the mode of that; only a root is set, and only if something in it depends on the mode.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from migrate.analysis.cfg import Graph, Node, Unit, evaluated
from migrate.analysis.dataflow import Backward, solve
from migrate.analysis.program import Class, File, Function, method_of
from migrate.analysis.types.inference import Inference
from migrate.analysis.types.kinds import Atom, without_none
from migrate.codegen.substitution import piece
from migrate.records.outcomes import Edit, Outcome, Piece, Wrap
from migrate.rules.mode_dependence import Dependence
from migrate.rules.registry import rewrites
from migrate.sites import module_members
from migrate.sites.scene import Scene, once
from migrate.syntax.trees import children, dotted, last_name, targets_of, within

_WRAPPERS = frozenset(
    "DataParallel DistributedDataParallel compile deepcopy copy script convert_sync_batchnorm "
    "list tuple reversed enumerate zip".split()
)
_SAME = frozenset(
    "to cuda cpu float double half bfloat16 type requires_grad_ share_memory apply npu xpu "
    "to_empty".split()
)
_MODE = frozenset({"train", "eval", "set_train"})
_QUIET = frozenset(
    "parameters named_parameters buffers named_buffers modules named_modules children "
    "named_children state_dict load_state_dict zero_grad weight bias register_forward_hook "
    "register_buffer add_module get_submodule get_parameter register_forward_pre_hook extend "
    "append insert device dtype __class__ __name__ reset_parameters init_weights items values keys "
    "trainable_params get_parameters parameters_and_names".split()
)
_LOOKING = frozenset(
    "print len isinstance type id hasattr getattr setattr repr str callable issubclass".split()
)
_DEPTH = 6


class Use(Enum):
    """What a mention of a Module does."""

    NOTHING = "nothing"  # its mode does not matter
    PART = "part"  # it becomes a part of another Module
    SET = "set"
    RUN = "run"  # it is called, or escapes to where it may be


@dataclass(frozen=True)
class _Place:
    """A name or dotted name in one unit."""

    name: str
    unit: Unit
    file: File
    function: Function | None


class _MayRun(Backward[bool]):
    """Whether a Module may be run from a point on before its mode is set."""

    def __init__(self, modes: Modes, place: _Place, at_end: bool, depth: int) -> None:
        self.modes, self.place, self.at_end, self.depth = modes, place, at_end, depth

    def bottom(self, graph: Graph) -> bool:
        return False

    def final(self, node: Node) -> bool:
        return self.at_end

    def join(self, first: bool, second: bool) -> bool:
        return first or second

    def transfer(self, node: Node, after: bool) -> bool:
        uses = self.modes.uses(self.place, node, self.depth)
        if Use.RUN in uses:
            return True
        return False if Use.SET in uses else after


@dataclass(eq=False)
class Modes:
    """Answers which constructions of a program need a mode."""

    inference: Inference
    dependence: Dependence
    _attributes: dict[tuple[str, str], Use] = field(default_factory=dict)
    _results: dict[str, Use] = field(default_factory=dict)
    _asked: set[tuple[object, ...]] = field(default_factory=set)
    _solved: dict[tuple[int, str, bool], dict[int, tuple[bool, bool]]] = field(default_factory=dict)

    def needs(self, file: File, call: ast.Call, function: Function | None) -> bool:
        """Return whether what a call builds may be run before its mode is set."""
        return self.dependence.depends(file, call) and self._use(file, call, function, 0) is Use.RUN

    def _use(
        self, file: File, node: ast.expr, function: Function | None, depth: int, same: str = ""
    ) -> Use:
        """What becomes of the Module that an expression gives; nothing, where it is bound to the
        name ``same`` that it had."""
        if depth > _DEPTH:
            return Use.RUN
        parent = file.parents.get(id(node))
        while isinstance(parent, ast.Attribute) and parent.value is node:
            call = file.parents.get(id(parent))
            called = isinstance(call, ast.Call) and call.func is parent
            if parent.attr in _MODE and called:
                return Use.SET
            if not (parent.attr in _SAME or parent.attr == "module") or (
                not called and parent.attr in _SAME
            ):
                return self._of_attribute(parent)
            node = call if called else parent  # type: ignore[assignment]
            parent = file.parents.get(id(node))
        if isinstance(parent, ast.Call):
            if parent.func is node:
                return Use.RUN
            return self._argument(file, parent, node, function, depth, same)
        if isinstance(parent, (ast.Starred, ast.IfExp, ast.BoolOp, ast.NamedExpr, ast.Await)):
            tested = isinstance(parent, ast.IfExp) and parent.test is node
            return Use.NOTHING if tested else self._use(file, parent, function, depth, same)
        if isinstance(parent, (ast.List, ast.Tuple, ast.Set, ast.ListComp, ast.GeneratorExp)):
            stored = not isinstance(getattr(parent, "ctx", ast.Load()), ast.Load)
            return Use.RUN if stored else self._use(file, parent, function, depth, same)
        if isinstance(parent, (ast.Dict, ast.DictComp)):
            return self._use(file, parent, function, depth, same)
        if isinstance(parent, ast.Subscript) and parent.value is node:
            return self._use(file, parent, function, depth, same)
        if isinstance(parent, ast.keyword):
            call = file.parents.get(id(parent))
            assert isinstance(call, (ast.Call, ast.ClassDef))
            if isinstance(call, ast.ClassDef):
                return Use.RUN
            return self._argument(file, call, node, function, depth, same)
        return self._statement(file, parent, node, function, depth, same)

    @staticmethod
    def _of_attribute(parent: ast.Attribute) -> Use:
        if parent.attr in _QUIET or not isinstance(parent.ctx, ast.Load):
            return Use.NOTHING
        return Use.RUN

    def _statement(
        self,
        file: File,
        parent: ast.AST | None,
        node: ast.expr,
        function: Function | None,
        depth: int,
        same: str = "",
    ) -> Use:
        if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = targets_of(parent)
            if any(t is node or (same and dotted(t) == same) for t in targets):
                return Use.NOTHING
            found = [self._assigned(file, parent, t, function, depth) for t in targets]
            return max(found, key=list(Use).index)
        if isinstance(parent, ast.Return):
            return self._returned(function)
        if isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is node:
            if isinstance(parent, ast.For) and isinstance(parent.target, ast.Name):
                name = parent.target.id
                return self._from(file, parent, name, function, depth, ahead=True)
            return Use.RUN
        if isinstance(parent, (ast.Expr, ast.Compare, ast.If, ast.While, ast.Assert, ast.UnaryOp)):
            return Use.NOTHING
        return Use.RUN

    def _assigned(
        self,
        file: File,
        statement: ast.stmt,
        target: ast.expr,
        function: Function | None,
        depth: int,
    ) -> Use:
        name = dotted(target)
        root = target
        while isinstance(root, (ast.Attribute, ast.Subscript)) and not name:
            root = root.value
            name = dotted(root)
        method = method_of(function)
        own = method.parameters[0].arg if method is not None and method.parameters else ""
        if own and name.partition(".")[0] == own and "." in name:
            assert method is not None and method.owner is not None
            if self.inference.is_module(method.owner.key):
                return Use.PART
            name = ".".join(name.split(".")[:2])
            later = self._from(file, statement, name, function, depth)
            return later if later is Use.SET else self._attribute(method.owner, name, depth)
        if not name:
            return Use.RUN
        if "." in name:  # model.fc = nn.Linear(...): a part of model
            name = name.partition(".")[0]
        return self._from(file, statement, name, function, depth)

    def _from(
        self,
        file: File,
        statement: ast.AST,
        name: str,
        function: Function | None,
        depth: int,
        ahead: bool = False,
    ) -> Use:
        """What becomes of the Module of a name behind a statement; ``ahead``: of a loop's element,
        in its body."""
        unit: Unit = function.node if function is not None else file.source.tree
        place = _Place(name, unit, file, function)
        visible = function is None or name in function.globals or "." in name
        graph = self.inference.graph(unit)
        point = graph.points.get(id(statement))
        if ahead and isinstance(statement, ast.For):
            point = graph.points.get(id(statement.target))
        if point is None:
            return Use.RUN
        may, ends = self._states(place, depth)[point.index]
        shared = visible and "." not in name
        if may or (ends and shared):
            return Use.RUN
        if ends and any(Use.PART in self.uses(place, n, depth) for n in graph.order):
            return Use.PART
        return Use.NOTHING if ends else Use.SET

    def _states(self, place: _Place, depth: int) -> dict[int, tuple[bool, bool]]:
        """For each node, after it: whether the Module may run before it is set, and whether it may
        come to the end of the unit unset."""
        key = (id(place.unit), place.name, False)
        if key not in self._solved:
            if key in self._asked:
                count = range(-1, len(self.inference.graph(place.unit).nodes))
                return dict.fromkeys(count, (True, True))
            self._asked.add(key)
            graph = self.inference.graph(place.unit)
            plain = solve(_MayRun(self, place, False, depth), graph)
            full = solve(_MayRun(self, place, True, depth), graph)
            found = {}
            for node in graph.nodes:
                may, ends = plain.after(node), full.after(node)
                found[node.index] = (bool(may), bool(ends))
            entry = (bool(plain.before(graph.entry)), bool(full.before(graph.entry)))
            found[-1] = entry
            self._asked.discard(key)
            self._solved[key] = found
        return self._solved[key]

    def uses(self, place: _Place, node: Node, depth: int) -> set[Use]:
        """Return what a node does with the Module of a name."""
        found: set[Use] = set()
        calls = []
        for part in evaluated(node):
            for one in _walk(part):
                if isinstance(one, ast.Call):
                    calls.append(one)
                if dotted(one) == place.name and isinstance(one, (ast.Name, ast.Attribute)):
                    if isinstance(one.ctx, ast.Load):
                        use = self._use(place.file, one, place.function, depth + 1, place.name)
                        found.add(use)
                    elif not _reads(node.part, place.name):
                        found.add(Use.SET)  # another object from here on
        if isinstance(node.part, (ast.FunctionDef, ast.AsyncFunctionDef)):
            mentions = any(dotted(n) == place.name for n in ast.walk(node.part))
            if mentions and place.function is not None:
                found.add(Use.RUN)
        visible = place.function is None or "." in place.name
        if visible and not found:
            for call in calls:
                found |= self._by_call(place, call, depth)
        return found

    def _by_call(self, place: _Place, call: ast.Call, depth: int) -> set[Use]:
        """What a function that is called does with a global or an attribute of self."""
        found = set()
        for function in self._called(call):
            method = function.owner is not None
            if "." in place.name:
                own = function.parameters[0].arg if method and function.parameters else ""
                same = (
                    isinstance(call.func, ast.Attribute)
                    and dotted(call.func.value) == place.name.partition(".")[0]
                )
                if not own or not same:
                    continue
                name = f"{own}.{place.name.partition('.')[2]}"
            elif function.path != place.file.path or place.name in function.locals:
                continue
            else:
                name = place.name
            found.add(self._first(function, name, depth))
        return found

    def _called(self, call: ast.Call) -> Iterator[Function]:
        for atom in without_none(self.inference.kind(call.func)):
            if "::" not in atom.name:
                continue
            key = {"class": f"{atom.name}.__init__", "Object": f"{atom.name}.__call__"}.get(
                atom.kind, atom.name
            )
            function = self.inference.function_of(key)
            if function is not None:
                yield function

    def _first(self, function: Function, name: str, depth: int) -> Use:
        """What a function does first with the Module of a name: of a parameter, a global."""
        if depth > _DEPTH:
            return Use.RUN
        file = self.inference.program.files[function.path]
        place = _Place(name, function.node, file, function)
        may, ends = self._states(place, depth)[-1]
        if may:
            return Use.RUN
        return Use.NOTHING if ends else Use.SET

    def _attribute(self, owner: Class, name: str, depth: int) -> Use:
        """What the methods of a class do with an attribute: each may be the first."""
        key = (owner.key, name.rpartition(".")[2])
        if key not in self._attributes:
            self._attributes[key] = Use.RUN  # what it is while it is being found
            self._attributes[key] = self._of_methods(owner, key[1], depth)
        return self._attributes[key]

    def _of_methods(self, owner: Class, attribute: str, depth: int) -> Use:
        for method in owner.methods.values():
            if method.name == "__init__" or not method.parameters:
                continue
            inside = f"{method.parameters[0].arg}.{attribute}"
            if self._first(method, inside, depth + 1) is Use.RUN:
                return Use.RUN
        for file in self.inference.program.files.values():
            for node in file.of(ast.Attribute):
                if node.attr == attribute and isinstance(node.ctx, ast.Load):
                    kinds = self.inference.kind(node.value)
                    mine = any(a.kind == "Object" and a.name == owner.key for a in kinds)
                    inside_own = isinstance(node.value, ast.Name) and node.value.id == "self"
                    unknown = not kinds or any(a.kind == "unknown" for a in kinds)
                    if (mine or unknown) and not inside_own:
                        where = file.function_at(node)
                        if self._use(file, node, where, depth + 1) is Use.RUN:
                            return Use.RUN
        return Use.NOTHING

    def _argument(
        self,
        file: File,
        call: ast.Call,
        node: ast.expr,
        function: Function | None,
        depth: int,
        same: str = "",
    ) -> Use:
        """What a call does with a Module that it gets."""
        func = call.func
        last = last_name(func)
        kinds = without_none(self.inference.kind(func))
        if any(a.kind == "ref" and a.name == "torch2ms.evaluating" for a in kinds):
            return Use.SET
        if any(a.kind == "ref" and a.name.startswith("torch2ms.") for a in kinds):
            return self._stepped(file, call, function, depth)
        if last in _WRAPPERS:
            return self._use(file, call, function, depth + 1, same)
        result = self.inference.kind(call)
        if result and all(a.kind == "Module" for a in result):
            built = all(a.kind in ("class", "ref") for a in kinds)
            if built and kinds and not self._is_loss(kinds):
                return Use.PART
        if last in _LOOKING:
            return Use.NOTHING
        if last in ("append", "insert", "extend", "add_module", "register_module", "setdefault"):
            return self._stored(file, call, function, depth)
        targets = list(self._called(call))
        if not targets or len(targets) < len(kinds):
            return Use.PART if self._builds_parts(function) else Use.RUN
        found = [self._passed(target, call, node, depth) for target in targets]
        return max(found, key=list(Use).index)

    def _builds_parts(self, function: Function | None) -> bool:
        """Whether a function is a method of a Module that puts it together."""
        method = method_of(function)
        if method is None or method.owner is None or method.name == "forward":
            return False
        plain = not method.decorated("classmethod", "staticmethod")
        return plain and self.inference.is_module(method.owner.key)

    @staticmethod
    def _is_loss(kinds: Iterable[Atom]) -> bool:
        return all(a.name.endswith("Loss") for a in kinds)

    def _stepped(self, file: File, call: ast.Call, function: Function | None, depth: int) -> Use:
        """A step or a loss Cell is built around it: the mode of the step is its own."""
        around = file.parents.get(id(call))
        if isinstance(around, (ast.Call, ast.keyword, ast.Starred)):
            outer = around if isinstance(around, ast.Call) else file.parents.get(id(around))
            if isinstance(outer, ast.Call):
                return self._argument(file, outer, call, function, depth)
        if isinstance(around, ast.Assign):
            return self._statement(file, around, call, function, depth + 1)
        return Use.RUN

    def _stored(self, file: File, call: ast.Call, function: Function | None, depth: int) -> Use:
        """``layers.append(module)``: what becomes of the list."""
        func = call.func
        held = dotted(func.value) if isinstance(func, ast.Attribute) else ""
        assert isinstance(func, ast.Attribute) or not held
        if self._builds_parts(function):
            return Use.PART
        method = method_of(function)
        if method is not None and method.owner is not None and held.startswith("self."):
            return self._attribute(method.owner, held, depth + 1)
        around = file.parents.get(id(call))
        if not held or "." in held or not isinstance(around, ast.Expr):
            return Use.RUN
        return self._from(file, around, held, function, depth + 1)

    def _passed(self, target: Function, call: ast.Call, node: ast.expr, depth: int) -> Use:
        names = [p.arg for p in target.parameters]
        bound = target.owner is not None and not target.decorated("staticmethod")
        names = names[1:] if bound else names
        name = dict(zip(map(id, call.args), names, strict=False)).get(id(node))
        name = next((k.arg for k in call.keywords if k.value is node), name)
        starred = any(isinstance(a, ast.Starred) for a in call.args)
        every = {*names, *(a.arg for a in target.node.args.kwonlyargs)}
        if name is None or name not in every or starred:
            return Use.RUN
        return self._first(target, name, depth + 1)

    def _returned(self, function: Function | None) -> Use:
        """What the callers of a function do with the Module that it returns."""
        if function is None or (function.owner is None and function.parent is not None):
            return Use.RUN
        if self._builds_parts(function):
            return Use.PART
        if function.key not in self._results:
            self._results[function.key] = Use.RUN  # what it is while it is being found
            self._results[function.key] = self._of_callers(function)
        return self._results[function.key]

    def _of_callers(self, function: Function) -> Use:
        found = False
        for file, call, where in self.inference.program.calls.get(function.name, ()):
            atoms = without_none(self.inference.kind(call.func))
            if atoms and all(a.name != function.key and a.kind != "unknown" for a in atoms):
                continue
            found = True
            if self._use(file, call, where, 0) in (Use.RUN, Use.NOTHING):
                return Use.RUN
        return Use.PART if found else Use.RUN


@once
def of(inference: Inference) -> Modes:
    """Return what is known of a program."""
    return Modes(inference, Dependence(inference))


@rewrites()
def set_train(scene: Scene) -> Iterator[Edit]:
    """Yield ``Net().set_train()`` for what may be run before its mode is set.

    torch's constructors set the mode themselves: a ``train`` of the class's own is not called.
    """
    modes = of(scene.inference)
    for call in scene.file.of(ast.Call):
        if not _builds(scene, call) or not modes.needs(scene.file, call, scene.function(call)):
            continue
        site, built = scene.site("torch.nn.Module.train", call), piece(scene.source, call)
        parts: tuple[str | Piece, ...] = (built, ".set_train()")
        needs: frozenset[str] = frozenset()
        if any(module_members.chooses(scene, a.name) for a in scene.kind(call)):
            cell, root = scene.spelling.local("mindspore.nn.Cell")
            parts, needs = (f"{cell}.set_train(", built, ")"), frozenset({root})
        yield Wrap(site, Outcome.CONVERTED, parts, needs=needs)


def _builds(scene: Scene, call: ast.Call) -> bool:
    """Whether a call builds a Module of a class of torch or of the program."""
    result = scene.kind(call)
    if not result or any(a.kind != "Module" for a in result):
        return False
    kinds = scene.kind(call.func)
    if not kinds:
        return False
    for atom in kinds:
        if atom.kind == "class":
            owner = scene.inference.class_of(atom.name)
            if owner is not None and any(map(_is_written, owner.node.bases)):
                return False
            continue
        built = atom.kind == "ref" and atom.name.startswith("torch.nn.")
        last = atom.name.rpartition(".")[2]
        if not built or not last[:1].isupper() or last in _WRAPPERS:
            return False
    return True


def _is_written(base: ast.expr) -> bool:
    """Whether a class is a loss Cell that stands around Modules of the program."""
    return ast.unparse(base).startswith("_torch2ms")


def _reads(part: ast.AST | None, name: str) -> bool:
    """Whether a statement binds a name to something made of its own value."""
    value = getattr(part, "value", None)
    return value is not None and any(dotted(n) == name for n in within(value))


def _walk(part: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that are evaluated with a part, those of lambdas included."""
    waiting = [part]
    while waiting:
        one = waiting.pop()
        yield one
        if not isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            waiting += children(one)
