"""Let rules of users decide: they see LibCST nodes with what is known of them, and give new ones.

Only what a rule looks for is parsed by LibCST, and only then is it imported: it costs a sixth of a
second. Nodes of the original that a rule puts into its own are pieces of the source, so what other
rules make of them, their parentheses and the checks of the output are those of any edit.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from migrate.codegen.helper_copy import bound
from migrate.codegen.substitution import piece
from migrate.mapping.calls import BoundCall, bind
from migrate.mapping.table import Table
from migrate.records.outcomes import (
    Decision,
    Edit,
    Outcome,
    Piece,
    Problem,
    Refusal,
    Removal,
    Span,
    last_place,
)
from migrate.rules import registry
from migrate.rules.callers import fate
from migrate.rules.data_attribute import compiled
from migrate.rules.registry import Examples, Registered, Registry, Stage
from migrate.sites.references import Form, Reference, direct_name
from migrate.sites.scene import Scene

if TYPE_CHECKING:
    import libcst as cst

CODE = "OWN101"
# the class of a LibCST node -> that of the node which stands for it in the analysis
_CLASSES: Mapping[str, type[ast.expr]] = MappingProxyType({
    "Attribute": ast.Attribute, "Await": ast.Await, "BinaryOperation": ast.BinOp,
    "BooleanOperation": ast.BoolOp, "Call": ast.Call, "Comparison": ast.Compare,
    "Dict": ast.Dict, "DictComp": ast.DictComp, "FormattedString": ast.JoinedStr,
    "GeneratorExp": ast.GeneratorExp, "IfExp": ast.IfExp, "Lambda": ast.Lambda, "List": ast.List,
    "ListComp": ast.ListComp, "Set": ast.Set, "SetComp": ast.SetComp, "Subscript": ast.Subscript,
    "Tuple": ast.Tuple, "UnaryOperation": ast.UnaryOp,
})  # fmt: skip
# how files name MindSpore's modules
_USUAL: Mapping[str, str] = MappingProxyType({
    "ms": "mindspore", "mindspore": "mindspore", "nn": "mindspore.nn", "ops": "mindspore.ops",
    "mint": "mindspore.mint",
})  # fmt: skip
_INSIDE = (ast.Tuple, ast.GeneratorExp)  # their parentheses count as a part of them in ast alone
_MARK = "_torch2ms_piece_"


class Rule:
    """A rule of your own: derive from it, say what it looks for, and decide (docs/contributing.md).

    Attributes:
        looks_for: torch names ("torch.chunk", "torch.Tensor.view", "company.gate"), or classes of
            LibCST expressions (``libcst.Subscript``).
        before, after: rules that are asked later, or earlier; "torch2ms" stands for all of ours.
            What an earlier rule converts is decided; what ours refuse, yours may still convert.
        imports: packages of your own that the new code uses, beside mindspore.
        result: the type of what a function that torch does not have gives: "Tensor".
        becomes: (before, after) pairs; ``stays`` and ``flagged``: code. All are examples, which
            ``torch2ms rules --check`` converts. Statements are the body of a function with the
            parameters ``x, y: torch.Tensor, n: int, parts: list``.
    """

    looks_for: ClassVar[tuple[str | type, ...]] = ()
    before: ClassVar[tuple[str, ...]] = ()
    after: ClassVar[tuple[str, ...]] = ()
    imports: ClassVar[tuple[str, ...]] = ()
    result: ClassVar[str] = ""
    becomes: ClassVar[tuple[tuple[str, str], ...]] = ()
    stays: ClassVar[tuple[str, ...]] = ()
    flagged: ClassVar[tuple[str, ...]] = ()

    def decide(self, node: Any, facts: Facts) -> cst.BaseExpression | str | Refusal | None:
        """Return what a matched node becomes.

        Args:
            node: the LibCST node: a call with its arguments where a name is called.
            facts: what is known of it and of the nodes in it.

        Returns:
            A new expression (nodes of the old one may be part of it; MindSpore is spelled in full,
            ``mindspore.ops.relu``, and imported as the file needs), or its text;
            ``facts.refuse(why)``; None: the rule does not apply. The expression ``None`` for a
            statement of its own takes that away.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Facts:
    """What is known of a matched node, and of the nodes inside it.

    ``name``: the torch name that was found, "" for a class of nodes. ``in_graph``: graph mode may
    compile the place.
    """

    name: str
    path: str
    line: int
    in_graph: bool
    _scene: Scene
    _node: ast.expr
    _nodes: Mapping[int, ast.expr]
    _cst: Mapping[int, Any]

    def kinds(self, node: cst.BaseExpression) -> frozenset[str]:
        """Return the kinds that a value may be of: {"Tensor"}, {"int", "None"}, {"unknown"}."""
        return self._scene.kind_names(self._ast(node)) or frozenset({"unknown"})

    def resolved(self, node: cst.BaseExpression) -> str:
        """Return the torch name that an expression spells, or a method of a Tensor; "" for none."""
        known = self._ast(node)
        if isinstance(known, ast.Attribute) and self._scene.kind_names(known.value) == {"Tensor"}:
            return f"torch.Tensor.{known.attr}"
        return direct_name(self._scene, known) or ""

    def values(self, node: cst.BaseExpression) -> tuple[str, ...]:
        """Return the expressions that may have bound a name, as text; () where one is unknown."""
        known = self._ast(node)
        if not isinstance(known, ast.Name):
            return (self._scene.source.text_of(known),)
        reach, found = self._scene.facts.reach(known), self._scene.facts.values(known)
        texts = [self._scene.source.text_of(value) for value in found if value is not None]
        whole = not reach.outside and len(texts) == len(reach.bindings)
        return tuple(texts) if whole else ()

    def is_read_after(self, name: str) -> bool:
        """Return whether the value that a variable has here may be read behind the statement."""
        return self._scene.facts.read_after(name, self._scene.statement(self._node))

    def missed_by(self) -> str:
        """Return who else sees what an in-place call changes: an alias, a caller; or ""."""
        missed = fate(self._scene, self._node).missed
        return missed.by if missed is not None else ""

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments of a matched call by torch's names; those of ``*sizes`` are a tuple.

        Empty where no one signature of torch takes them for sure.
        """
        found = [b for b in self._bound() if isinstance(b, BoundCall)]
        if len(found) != 1:
            return {}
        return {
            name: tuple(map(self._of, value)) if isinstance(value, tuple) else self._of(value)
            for name, value in found[0].values.items()
        }

    def template(self, text: str, **nodes: cst.BaseExpression) -> cst.BaseExpression:
        """Return ``"mindspore.ops.clip({x}, 0.0)"`` as an expression with nodes put in."""
        import libcst as cst

        names = {f"{_MARK}{name}_": node for name, node in nodes.items()}
        spelled = text.format(**{name: f"{_MARK}{name}_" for name in nodes})
        parsed = cst.parse_expression(spelled)

        class Put(cst.CSTTransformer):
            def leave_Name(
                self, original_node: cst.Name, updated_node: cst.Name
            ) -> cst.BaseExpression:
                return names.get(original_node.value, updated_node)

        made = parsed.visit(Put())
        assert isinstance(made, cst.BaseExpression)
        return made

    def refuse(self, reason: str, next_step: str = "") -> Refusal:
        """Return a flag for the place: why it is not converted, and what to do."""
        return Refusal(self._scene.site(self.name or "expression", self._node), CODE, reason,
                       next_step)  # fmt: skip

    def _bound(self) -> list[object]:
        if not isinstance(self._node, ast.Call):
            return []
        call = self._node
        signatures = self._scene.table.signatures(self.name)
        return [bind(call.args, call.keywords, signature) for signature in signatures]

    def _of(self, node: ast.expr) -> Any:
        return self._cst[id(node)]

    def _ast(self, node: cst.BaseExpression) -> ast.expr:
        known = self._nodes.get(id(node))
        if known is None:
            raise ValueError("facts are about the matched node and the nodes inside it")
        return known


# -- one place ----------------------------------------------------------------------------------


def _decide(rule: Rule, scene: Scene, node: ast.AST, name: str) -> Decision | None:
    """Ask about one reference, or about the call of it."""
    parent = scene.parent(node)
    whole = parent if isinstance(parent, ast.Call) and parent.func is node else node
    loaded = isinstance(getattr(whole, "ctx", ast.Load()), ast.Load)
    return _made(rule, scene, whole, name) if loaded and isinstance(whole, ast.expr) else None


def _visit(
    rule: Rule, registered: str, file: str, scene: Scene
) -> Iterator[Edit | tuple[Refusal, Reference]]:
    """Ask about all nodes of the classes that a rule looks for; what raises costs its place."""
    kinds = [_CLASSES[c.__name__] for c in rule.looks_for if isinstance(c, type)]
    for node in (n for kind in kinds for n in scene.file.of(kind)):
        if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            continue
        text = " ".join(scene.source.text_of(node).split())[:40]
        try:
            made = _made(rule, scene, node, "")
        except Exception as error:
            why = f"the rule {registered} raised {last_place(error)}"
            made = Refusal(scene.site(text, node), "INT901", why, f"correct {file}")
        if isinstance(made, Edit):
            yield made
        elif made is not None:
            refusal = replace(made, site=scene.site(text, node), rule=registered)
            yield refusal, Reference(node, text, Form.STATEMENT)


def _made(rule: Rule, scene: Scene, node: ast.expr, name: str) -> Decision | None:
    root, nodes = _parsed(scene, node)
    known = {id(one): found for one, found in nodes}
    site = scene.site(name or "expression", node)
    facts = Facts(
        name, scene.file.path, site.line, compiled(scene, node), scene, node, known,
        {id(found): one for one, found in nodes},
    )  # fmt: skip
    found = rule.decide(root, facts)
    if found is None or isinstance(found, Refusal):
        return found
    made = facts.template(found) if isinstance(found, str) else found
    parts, needs = _parts(scene, made, nodes, node, rule.imports)
    statement = scene.parent(node)
    if parts == ("None",) and isinstance(statement, ast.Expr):
        return Removal(site.at(scene.source.span(statement)), Outcome.CONVERTED, ())
    helped = any(need.startswith("helpers.") for need in needs)
    outcome = Outcome.HELPER if helped else Outcome.CONVERTED
    return Edit(site, outcome, parts, needs=needs)


def expression(scene: Scene, node: ast.expr, name: str, text: str) -> Edit:
    """Return the edit that puts an expression of MindSpore, as a person wrote it, for a node.

    Text that stands in the old expression as well is a piece of it, and converted as ever.

    Raises:
        ValueError, libcst.ParserSyntaxError: it is no expression.
    """
    import libcst as cst

    _, nodes = _parsed(scene, node)
    made = cst.parse_expression(text).visit(_in_full(scene))
    assert isinstance(made, cst.BaseExpression)
    parts, needs = _parts(scene, made, nodes, node, ())
    return Edit(scene.site(name, node), Outcome.CONVERTED, parts, needs=needs)


def statement(scene: Scene, text: str) -> tuple[tuple[str | Piece, ...], frozenset[str]]:
    """Return statements of MindSpore, as a person wrote them, as text and import roots."""
    import libcst as cst

    made = cst.parse_module(text.strip("\n") + "\n").visit(_in_full(scene))
    parts, needs = _parts(scene, made, [], None, ())
    return ("".join(map(str, parts)).rstrip("\n"),), needs


def _in_full(scene: Scene) -> cst.CSTTransformer:
    """Return what spells ``ops.relu`` in full, where the file has no ``ops`` of its own."""
    import libcst as cst

    class Full(cst.CSTTransformer):
        def leave_Attribute(
            self, original_node: cst.Attribute, updated_node: cst.Attribute
        ) -> cst.BaseExpression:
            root = updated_node.value
            usual = _USUAL.get(root.value, "") if isinstance(root, cst.Name) else ""
            if not usual or getattr(root, "value", "") in scene.spelling.taken:
                return updated_node
            return updated_node.with_changes(value=cst.parse_expression(usual))

    return Full()


def _parsed(
    scene: Scene, node: ast.expr
) -> tuple[cst.BaseExpression, list[tuple[cst.BaseExpression, ast.expr]]]:
    """Return an expression as LibCST has it, and its nodes beside those of the analysis."""
    import libcst as cst
    from libcst.metadata import MetadataWrapper, PositionProvider

    source, start = scene.source, scene.source.span(node).start
    text = f"({source.text_of(node)}\n)"  # brackets around it may hold its lines
    module = cst.parse_module(text)
    lines = text.split("\n")
    begins = [start - 1]
    for line in lines:
        begins.append(begins[-1] + len(line.encode()) + 1)
    inside = [n for n in ast.walk(node) if isinstance(n, ast.expr)]
    by_span = {source.span(n): n for n in reversed(inside) if not isinstance(n, _INSIDE)}
    by_first: dict[Span, ast.expr] = {
        source.span(_first(n)): n for n in inside if isinstance(n, _INSIDE) and _first(n)
    }
    positions = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)

    def offset(line: int, column: int) -> int:
        return begins[line - 1] + len(lines[line - 1][:column].encode())

    spans = {
        id(one): Span(offset(at.start.line, at.start.column), offset(at.end.line, at.end.column))
        for one, at in positions.items()
        if isinstance(one, cst.BaseExpression)
    }
    found: list[tuple[cst.BaseExpression, ast.expr]] = []
    for one in positions:
        if isinstance(one, cst.Tuple | cst.GeneratorExp):
            first = one.elt if isinstance(one, cst.GeneratorExp) else (
                one.elements[0].value if one.elements else None
            )  # fmt: skip
            known = by_first.get(spans[id(first)]) if first is not None else None
        elif isinstance(one, cst.BaseExpression):
            known = by_span.get(spans[id(one)])
        else:
            continue
        if known is not None:
            found.append((one, known))
    outer = next(one for one, known in found if known is node)
    root = outer.with_changes(lpar=outer.lpar[1:], rpar=outer.rpar[:-1])
    return root, [(root if one is outer else one, known) for one, known in found]


def _first(node: ast.expr) -> Any:
    elements = node.elts if isinstance(node, ast.Tuple) else [getattr(node, "elt", None)]
    return elements[0] if elements else None


def _parts(
    scene: Scene,
    made: cst.CSTNode,
    nodes: list[tuple[cst.BaseExpression, ast.expr]],
    whole: ast.expr | None,
    imports: Sequence[str],
) -> tuple[tuple[str | Piece, ...], frozenset[str]]:
    """Return new code as text and pieces of the source, and the import roots that it needs.

    A copy of an old node, as a transformer of LibCST leaves it, is that node.
    """
    import libcst as cst

    module = cst.Module([])
    known = {id(one): found for one, found in nodes}
    copies = {module.code_for_node(one): found for one, found in nodes if found is not whole}
    roots = ("mindspore", "helpers", *imports)
    pieces: list[Piece] = []
    needs: set[str] = set()

    class Marked(cst.CSTTransformer):
        """Puts a mark for every piece, and spells what is imported as the file does."""

        def __init__(self) -> None:
            super().__init__()
            self.instead: dict[int, cst.BaseExpression] = {}

        def on_visit(self, node: cst.CSTNode) -> bool:
            if not isinstance(node, cst.BaseExpression):
                return True
            old = known.get(id(node)) or copies.get(module.code_for_node(node))
            name = _dotted(node) if old is None else ""  # the program may have a module helpers
            if old is not None:
                self.instead[id(node)] = cst.Name(f"{_MARK}{len(pieces)}_")
                pieces.append(piece(scene.source, old))
            elif name.partition(".")[0] in roots:
                text, root = _spelled(scene, name, imports)
                needs.add(root)
                self.instead[id(node)] = cst.parse_expression(text)
            return id(node) not in self.instead

        def on_leave(self, original_node: Any, updated_node: Any) -> Any:
            return self.instead.get(id(original_node), updated_node)

    marked = made.visit(Marked())
    assert isinstance(marked, cst.CSTNode)
    texts = re.split(_MARK + r"(\d+)_", module.code_for_node(marked))
    parts = [pieces[int(one)] if place % 2 else one for place, one in enumerate(texts)]
    return tuple(part for part in parts if part), frozenset(needs - {""})


def _dotted(node: cst.BaseExpression) -> str:
    """Return the text of a name or of names with dots between them; "" for all else."""
    names: list[str] = []
    current: Any = node
    while type(current).__name__ == "Attribute":
        names.append(current.attr.value)
        current = current.value
    if type(current).__name__ != "Name":
        return ""
    return ".".join([current.value, *reversed(names)])


def _spelled(scene: Scene, name: str, imports: Sequence[str]) -> tuple[str, str]:
    root, _, rest = name.partition(".")
    if root in imports:
        return f"{scene.spelling.alias(root)}.{rest}", root
    if root == "helpers":
        bound((name,))  # raises here, where it costs a place, what else would cost the file
    return scene.spelling.local(name)


# -- what users bring ---------------------------------------------------------------------------


def loaded(files: Iterable[Path], table: Table) -> tuple[Registry, Table]:
    """Return our rules with those in files of users, and the table with the names of these.

    Raises:
        Problem: a file cannot be imported or holds no rule; a rule looks for nothing that is
            known; rules are in conflict.
    """
    rules = [rule for path in files for rule in _of_file(path)]
    unknown: dict[str, dict[str, str]] = {}
    for rule in (r for r in rules if r.stage is Stage.DECIDES):
        _check(rule, table)
        for name in (n for n in rule.names if not table.has(n)):
            flag = {"flag": CODE, "reason": f"the rule {rule.name} does not convert this use of it"}
            result = rule.run.args[0].result if isinstance(rule.run, partial) else ""
            unknown[name] = {**flag, **({"result": result} if result else {})}
    files_of = {name: Path(r.file) for r in rules for name in r.names if name in unknown}
    covering = replace(
        table, raw={**table.raw, **unknown}, files={**table.files, **files_of}
    ) if unknown else table  # fmt: skip
    ours = registry.ours()
    return (ours.with_rules(rules) if rules else ours), covering


def _of_file(path: Path) -> list[Registered]:
    module = _imported(path)
    classes = [
        value for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Rule)
        and value.__module__ == module.__name__
    ]  # fmt: skip
    if not classes:
        raise Problem(str(path), "no rule in it", "it defines no class that derives from Rule",
                      "from migrate import Rule, and derive from it")  # fmt: skip
    return [_registered(one, str(path)) for one in classes]


def _imported(path: Path) -> ModuleType:
    """Import a file: as the module of its package, or alone under a name of its own."""
    name, folder = path.stem, path.parent
    while (folder / "__init__.py").is_file():
        name, folder = f"{folder.name}.{name}", folder.parent
    try:
        spec = importlib.util.find_spec(name) if "." in name else None
        if spec is not None and spec.origin and Path(spec.origin).resolve() == path.resolve():
            return importlib.import_module(name)
        spec = importlib.util.spec_from_file_location(f"torch2ms_rules_{path.stem}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    except Exception as error:
        step = "correct that file, or take it out of [tool.torch2ms]"
        raise Problem(str(path), "rules cannot be imported", last_place(error), step) from error
    return module


def _registered(made: type[Rule], file: str) -> Registered:
    names = [one for one in made.looks_for if isinstance(one, str)]
    kinds = [one for one in made.looks_for if isinstance(one, type)]
    where = f"{file}: {made.__name__}"
    if not made.looks_for or (names and kinds):
        raise Problem(where, "looks for nothing", "looks_for holds torch names, or LibCST classes",
                      "name what it looks for")  # fmt: skip
    for kind in kinds:
        if kind.__name__ not in _CLASSES:
            raise Problem(where, f"cannot look for {kind.__name__}", "it is no expression",
                          f"one of {', '.join(_CLASSES)}")  # fmt: skip
    rule, name = made(), f"{Path(file).stem}.{made.__name__}"
    run = partial(_visit, rule, name, file) if kinds else partial(_decide, rule)
    return Registered(
        name, Stage.REWRITES if kinds else Stage.DECIDES, run,
        frozenset() if kinds else frozenset((Form.NAME, Form.MEMBER)),
        frozenset(names or (f"libcst.{kind.__name__}" for kind in kinds)), made.before, made.after,
        Examples(tuple(made.becomes), tuple(made.stays), tuple(made.flagged)), file,
        " ".join((made.__doc__ or "").partition("\n\n")[0].split()),
    )  # fmt: skip


def _check(rule: Registered, table: Table) -> None:
    for name in sorted(rule.names):
        if name.startswith("torch.") and not table.has(name):
            near = table.suggest(name)
            raise Problem(f"{rule.file}: {rule.name}", f"torch has no {name}", "nothing is found",
                          f"did you mean {near}?" if near else "check the name")  # fmt: skip
        if "." not in name:
            raise Problem(f"{rule.file}: {rule.name}", f"{name} is no full name",
                          "names are looked for in full", "as torch.chunk")  # fmt: skip
