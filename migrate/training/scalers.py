"""Give a step that is written twice, with a gradient scaler and without, one form.

``if use_amp: scaler.scale(loss).backward() ... else: loss.backward() ...`` becomes its first branch
with ``GradScaler(enabled=use_amp)``: a scaler that is not enabled gives the loss back, steps the
optimizer and does nothing else. So it is with ``autocast(enabled=use_amp)``. Where the question is
``if scaler is not None``, one that is not enabled takes the place of None. A block ``with ctx:`` is
its body where ``ctx`` is nothing but ``nullcontext()`` and autocast.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping, Sequence

from migrate.codegen.rewriter import emit
from migrate.codegen.substitution import added, piece
from migrate.records.outcomes import Edit, Outcome, Part, Site, Span
from migrate.rules.stopped import asks_device
from migrate.syntax.lines import (
    above,
    comments,
    indent_of,
    is_elif,
    shares_line,
    statements,
    whole,
)
from migrate.syntax.source import Source, read
from migrate.syntax.trees import all_names, dotted, last_name
from migrate.training.effects import free
from migrate.training.foreign_scaling import behind_apex
from migrate.training.lines import edit, separated
from migrate.training.marks import Act, View, marks
from migrate.training.recorded import opened
from migrate.training.staged import Staged

_CAST_NAMES = ("torch.autocast", "torch.amp.autocast", "torch.amp.autocast_mode.autocast")
_WORDS = (b"GradScaler", b"autocast", b"set_grad_enabled", b".scale(", b"nullcontext(")
_CASTS = ("autocast", "set_grad_enabled")
_SCOPES = (ast.FunctionDef, ast.ClassDef)
_Scope = ast.FunctionDef | ast.ClassDef


def asked_in_front(view: View) -> Iterator[Edit]:
    """Put the question that ``with autocast(device): ...`` asks in front of what it holds.

    What the device is, and whether it is enabled, is found out before the block is entered; here
    nothing in it depends on that, and a Cell that graph mode compiles enters no contexts.
    """
    source = view.file.source
    for item in view.file.of(ast.With):
        contexts = [i.context_expr for i in item.items if i.optional_vars is None]
        asked = all(
            isinstance(c, ast.Call)
            and (names := view.torch_names(c.func))
            and names <= set(_CAST_NAMES)
            and all(asks_device(n, c) for n in names)
            for c in contexts
        )
        function = view.file.function_at(item)
        body = function.node.body if function is not None else source.tree.body
        if not asked or len(contexts) != len(item.items) or not isinstance(body, list):
            continue
        if any(m.act is Act.BACKWARD for m in marks(view, body)):
            indent = indent_of(source, item)
            checks = "".join(f"{source.text_of(c)}\n{indent}" for c in contexts)
            yield edit(source, source.span(item), (checks, statements(source, item.body)))


def prepared(sources: Mapping[str, Source]) -> dict[str, Staged]:
    """Return the files whose steps got lines of their own, and one form, by path."""
    found = separated(sources)
    for path, before in sources.items():
        first = found.get(path)
        source = first.source if first is not None else before
        steps = b".backward(" in source.data and any(w in source.data for w in _WORDS)
        changes = list(_edits(source)) if steps else []
        changes += [] if changes else opened(source)
        changes += behind_apex(source, (e.site.span for e in changes))
        if changes:
            emitted = emit(source, changes)
            new = read(path, source.encode(emitted.data))
            staged = Staged(source, new, emitted, (), (), frozenset())
            found[path] = staged.behind(first) if first is not None else staged
    return found


def _edits(source: Source) -> Iterator[Edit]:
    """Yield the edits of a file: a scaler's own, and those of the branches that it settles."""
    found: list[Edit] = []
    for scope in ast.walk(source.tree):
        if not isinstance(scope, _SCOPES):
            continue
        for made in ast.walk(scope):
            if isinstance(made, ast.If) and (scaler := _made_when(made)) is not None:
                found += _settled(source, scope, made, scaler)
    scopes = [n for n in ast.walk(source.tree) if isinstance(n, (*_SCOPES, ast.Module))]
    for scope in sorted(scopes, key=lambda s: not isinstance(s, ast.ClassDef)):
        taken = [edit.site.span for edit in found]
        more = _told_apart(source, scope)
        if not any(e.site.span.lies_in(taken) for e in more):
            found += more
    taken = [edit.site.span for edit in found]
    found += _casts_apart(source, taken)
    yield from found
    taken = [edit.site.span for edit in found]
    for block in ast.walk(source.tree):
        if isinstance(block, ast.With) and (asked := _asking(source, block)) is not None:
            span = source.span(asked)
            if not span.lies_in(taken):
                yield from _asked_before(source, block, asked)
    for block in ast.walk(source.tree):
        if isinstance(block, ast.With) and _is_cast(block) and (told := _telling(block)):
            span = whole(source, block)
            inside = span.lies_in(taken)
            if not inside and not any(shares_line(source, s) for s in block.body):
                yield from _let_out(source, block, told)
    for block in _without_effect(source):
        span = whole(source, block)
        inside = any(t.start < span.end and span.start < t.end for t in taken)
        if not inside and not any(shares_line(source, s) for s in (block, *block.body)):
            taken.append(span)
            yield _kept(source, block)


def _asking(source: Source, block: ast.With) -> ast.Call | None:
    """Return the autocast of a block whose device is found out when it runs."""
    call = block.items[0].context_expr
    if not _is_cast(block) or not isinstance(call, ast.Call) or last_name(call.func) != "autocast":
        return None
    device = next((k.value for k in call.keywords if k.arg == "device_type"), None)
    device = device or next(iter(call.args), None)
    named = {k.arg: k.value for k in call.keywords}
    enabled = named.get("enabled")
    off = isinstance(enabled, ast.Constant) and not enabled.value
    if device is None or isinstance(device, ast.Constant) or off or _is_cudas(source, call.func):
        return None
    return None if shares_line(source, block) or None in named else call


def _is_cudas(source: Source, func: ast.expr) -> bool:
    """Return whether it is ``torch.cuda.amp.autocast``, which does nothing on a CPU."""
    text = ast.unparse(func)
    root, _, rest = text.partition(".")
    for item in ast.walk(source.tree):
        if isinstance(item, ast.ImportFrom):
            for alias in item.names:
                if (alias.asname or alias.name) == root:
                    text = f"{item.module}.{alias.name}.{rest}"
    return ".cuda." in text


def _asked_before(source: Source, block: ast.With, call: ast.Call) -> Iterator[Edit]:
    """Yield the edits that ask for the device in front of a block: a Cell holds no device."""
    site = source.site("autocast", block)
    yield added(source, site, block, Part.BEFORE, source.text_of(call))
    parts = (piece(source, call.func), '("cuda")')
    yield Edit(source.site("autocast", call), Outcome.KEPT, parts)


def _without_effect(source: Source) -> Iterator[ast.With]:
    """Yield the blocks ``with ctx:`` of a name that only ever is a context without effect."""
    for node in ast.walk(source.tree):
        theirs = isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0]
        names = {a.asname or a.name for a in getattr(node, "names", ()) if isinstance(a, ast.alias)}
        names -= {"torch": {"autocast"}, "contextlib": {"nullcontext"}}.get(str(theirs), set())
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names = {node.name}
        if not names.isdisjoint(("autocast", "nullcontext")):
            return  # of the program
    values: dict[str, list[ast.expr | None]] = {}
    for node in ast.walk(source.tree):
        targets = node.targets if isinstance(node, ast.Assign) else []
        for target in targets if len(targets) == 1 else ():
            if isinstance(target, ast.Name) and isinstance(node, ast.Assign):
                values.setdefault(target.id, []).append(node.value)
    for node in ast.walk(source.tree):  # whatever else binds it is unknown
        bound = {getattr(node, "name", None), getattr(node, "asname", None)}
        bound |= {n.id for n in [node] if isinstance(n, ast.Name) and _stores(n)}
        bound |= {n.arg for n in [node] if isinstance(n, ast.arg)}
        for known in (values[n] for n in bound if n in values):
            known.append(None)
    for node in ast.walk(source.tree):
        held = node.items[0] if isinstance(node, ast.With) and len(node.items) == 1 else None
        if isinstance(node, ast.With) and held is not None and held.optional_vars is None:
            found = values.get(getattr(held.context_expr, "id", ""), [None])
            made = [v for v in found if v is not None]
            if len(found) == 2 * len(made) and all(map(_is_idle, made)):
                yield node


def _is_idle(value: ast.expr) -> bool:
    if isinstance(value, ast.IfExp):
        return _is_idle(value.body) and _is_idle(value.orelse)
    name = last_name(value.func) if isinstance(value, ast.Call) else ""
    return name == "autocast" or (name == "nullcontext" and not value.args)  # type: ignore[attr-defined]


def _made_when(branch: ast.If) -> ast.expr | None:
    """Return what ``if use_amp: scaler = GradScaler()`` binds."""
    only = branch.body[0]
    if branch.orelse or len(branch.body) > 1 or not isinstance(only, ast.Assign):
        return None
    value = only.value
    if not isinstance(value, ast.Call) or last_name(value.func) != "GradScaler":
        return None
    if any(k.arg in ("enabled", None) for k in value.keywords) or len(only.targets) > 1:
        return None
    return only.targets[0]


def _settled(source: Source, scope: _Scope, made: ast.If, scaler: ast.expr) -> list[Edit]:
    """Return the edits for one scaler; none where a branch is more than the step with it."""
    own = isinstance(scaler, ast.Name)
    if own != isinstance(scope, ast.FunctionDef) or (own and _within(scope, made) is not scope):
        return []
    if not own and ast.unparse(getattr(scaler, "value", scaler)) != "self":
        return []
    test, name = ast.unparse(made.test), ast.unparse(scaler)
    bound = [n for n in ast.walk(scope) if _stores(n) and ast.unparse(n) == name]
    if len(bound) != 1 or not _is_steady(scope, made):
        return []
    found = [*_created(source, made, test)]
    steps = 0
    for branch in ast.walk(scope):
        if not isinstance(branch, ast.If) or branch is made or ast.unparse(branch.test) != test:
            continue
        if _is_step(branch.body, branch.orelse, name):
            found.append(_kept(source, branch))
            steps += 1
        elif (call := _cast_apart(branch)) is not None:
            found += _with_test(source, branch.body[0], call, test, branch)
        elif any(last_name(n) == "scale" for n in ast.walk(branch) if isinstance(n, ast.Attribute)):
            return []
    taken = [made, *(n for n in ast.walk(scope) if isinstance(n, ast.If))]
    inside = [b for b in taken if ast.unparse(b.test) == test]
    if not steps or any(shares_line(source, b) or is_elif(source, b) for b in inside):
        return []
    return found


def _told_apart(source: Source, scope: _Scope | ast.Module) -> list[Edit]:
    """Return the edits for scalers of which a test says whether they take part in the steps.

    ``own = scaler if use_amp else GradScaler(enabled=False)`` in front of the steps takes their
    place; that of an attribute is an attribute. Where nothing but steps asks for a scaler that
    may be None, it keeps its name.
    """
    found: list[Edit] = []
    methods = [n for n in scope.body if isinstance(n, ast.FunctionDef)]
    scopes = methods if isinstance(scope, ast.ClassDef) else [scope]
    nodes = [n for inner in scopes for n in _own_nodes(inner)]
    branches = [n for n in nodes if isinstance(n, ast.If)]
    for scaler in sorted({_scales(n) for n in nodes} - {""}):
        steps: list[_Branch] = []
        tests: set[str] = set()
        for branch in branches:
            test, block = _scaled_block(branch, scaler)
            inner = any(branch in ast.walk(s) for b, _ in steps for s in b.body + b.orelse)
            if block and not inner:
                steps.append((branch, block))
                tests.add(_as_asked(source, test, scaler))
        lost = any(shares_line(source, b) or is_elif(source, b) for b, _ in steps)
        inside = [n for _, block in steps for s in block for n in ast.walk(s)]
        if lost or len(tests) != 1 or not any(_scales(n) == scaler for n in inside):
            continue
        asked = tests.pop()
        if isinstance(scope, ast.ClassDef):
            place = _settled_in(scope, scaler, asked)
        else:
            place = _settled_at(scope, scaler, asked, steps)
        if place is not None and (made := _making(source)):
            found += _in_one_form(source, scope, scaler, (asked, made), place, steps)
    return found


_Branch = tuple[ast.If, list[ast.stmt]]


def _in_one_form(
    source: Source,
    scope: _Scope | ast.Module,
    scaler: str,
    told: tuple[str, str],
    place: tuple[ast.stmt, Part],
    steps: Sequence[_Branch],
) -> list[Edit]:
    """Return the edits of steps with a scaler, and of the statement in front that binds it.

    ``told`` are the test whether it takes part, and what stands for it else.
    """
    test, made = told
    inside = {id(n) for b, _ in steps for n in ast.walk(b)}
    reads = [n for n in ast.walk(scope) if isinstance(n, ast.Name) and n.id == scaler]
    alone = test == f"{scaler} is not None" and bool(reads) and all(
        id(n) in inside for n in reads if isinstance(n.ctx, ast.Load)
    )  # fmt: skip
    holder, _, short = scaler.rpartition(".")
    own = scaler if alone else free(f"own_{short}", all_names(scope))
    own = f"{holder}.{own}" if isinstance(scope, ast.ClassDef) else own
    line = f"{own} = {scaler} if {test} else {made}"
    if test == f"{scaler} is not None":
        line = f"{own} = {made} if {scaler} is None else {scaler}"
    found: list[Edit] = [added(source, source.site("scaler", place[0]), *place, line)]
    for branch, block in steps:
        found.append(_kept(source, branch, block))
        for node in (n for s in block for n in ast.walk(s) if own != scaler):
            if isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) == scaler:
                site = Site("scaler", source.span(node), node.lineno, node.col_offset + 1)
                found.append(Edit(site, Outcome.KEPT, (own,)))
    return found


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function or module, without those of what is defined in it."""
    for node in ast.iter_child_nodes(scope):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node
            yield from _own_nodes(node)


def _scales(node: ast.AST) -> str:
    """Return the scaler of ``scaler.scale(loss).backward()``, a variable or an attribute."""
    if not isinstance(node, ast.Attribute) or node.attr != "backward":
        return ""
    call = node.value
    func = call.func if isinstance(call, ast.Call) else None
    named = isinstance(func, ast.Attribute) and func.attr == "scale" and bool(dotted(func.value))
    return dotted(func.value) if named else ""  # type: ignore[union-attr]


def _scaled_block(branch: ast.If, scaler: str) -> tuple[ast.expr, list[ast.stmt]]:
    """Return the test under which a scaler takes part, and that block of a step; else []."""
    test, body, other = branch.test, branch.body, branch.orelse
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, body, other = test.operand, other, body
    elif isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is):
        test = ast.Compare(test.left, [ast.IsNot()], test.comparators)
        body, other = other, body
    return test, body if body and _is_step(body, other, scaler) else []


_STEADY = (
    ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp,
    ast.cmpop, ast.boolop, ast.unaryop, ast.expr_context,
)  # fmt: skip


def _as_asked(source: Source, test: ast.expr, scaler: str) -> str:
    """Return the text of a test, the same for all that ask whether there is a scaler."""
    bound = [
        n.value
        for n in ast.walk(source.tree)
        if isinstance(n, ast.Assign) and scaler in map(ast.unparse, n.targets)
    ]
    text = ast.unparse(test)
    if len(bound) == 1 and isinstance(made := bound[0], ast.IfExp):
        none = isinstance(made.orelse, ast.Constant) and made.orelse.value is None
        text = scaler if none and ast.unparse(made.test) == text else text
    steady = all(isinstance(n, _STEADY) for n in ast.walk(test))
    return (f"{scaler} is not None" if text == scaler else text) if steady else ""


def _settled_in(owner: ast.ClassDef, scaler: str, test: str) -> tuple[ast.stmt, Part] | None:
    """Return where a constructor has bound the attributes that make up a scaler and its test."""
    named = (n for n in owner.body if isinstance(n, ast.FunctionDef) and n.name == "__init__")
    constructor = next(named, None)
    if constructor is None or not constructor.args.args or not test:
        return None
    me = constructor.args.args[0].arg
    held = [*ast.walk(ast.parse(test)), *ast.walk(ast.parse(scaler))]
    if any(isinstance(n, ast.Name) and n.id != me for n in held):
        return None
    return _settled_at(constructor, scaler, test, (), owner)


def _settled_at(
    scope: ast.FunctionDef | ast.Module,
    scaler: str,
    test: str,
    steps: Sequence[_Branch],
    owner: ast.ClassDef | None = None,
) -> tuple[ast.stmt, Part] | None:
    """Return where a scaler and its test are bound for good, before the steps; None if never.

    With the class ``owner`` a constructor binds what nothing else in the class does.
    """
    asked = ast.parse(test or "x()", mode="eval").body
    if not test or not all(isinstance(n, _STEADY) for n in ast.walk(asked)):
        return None
    held = [*ast.walk(asked), *ast.walk(ast.parse(scaler))]
    names = {n.id for n in held if isinstance(n, ast.Name)}
    kept = {n.attr for n in held if isinstance(n, ast.Attribute)}
    stores = {
        id(n)
        for n in (_own_nodes(scope) if owner is None else ast.walk(owner))
        if _stores(n) and (n.id in names if isinstance(n, ast.Name) else n.attr in kept)  # type: ignore[attr-defined]
    }
    here = {id(n) for n in _own_nodes(scope)}
    inner = {id(b) for b, _ in steps}
    end = (i for i, s in enumerate(scope.body) if any(id(n) in inner for n in ast.walk(s)))
    first = next(end, len(scope.body))
    bound = [i for i, s in enumerate(scope.body) if any(id(n) in stores for n in ast.walk(s))]
    if bound:
        return (
            (scope.body[bound[-1]], Part.BEHIND) if bound[-1] < first and stores <= here else None
        )
    begin = 1 if ast.get_docstring(scope) and len(scope.body) > 1 else 0
    asks = isinstance(scope, ast.FunctionDef) and owner is None
    return (scope.body[begin], Part.BEFORE) if asks else None


def _making(source: Source) -> str:
    """Return the text that makes a scaler which is not enabled; "" where torch has no name."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and last_name(node.func) == "GradScaler":
            args = [ast.unparse(a) for a in node.args if isinstance(a, ast.Constant)][:1]
            if dotted(node.func):
                return f"{dotted(node.func)}({', '.join([*args, 'enabled=False'])})"
    imports = (a for n in source.tree.body if isinstance(n, ast.Import) for a in n.names)
    torch = any(a.name == "torch" and a.asname is None for a in imports)
    return "torch.amp.GradScaler('cuda', enabled=False)" if torch else ""


def _is_cast(block: ast.With) -> bool:
    call = block.items[0].context_expr
    return len(block.items) == 1 and isinstance(call, ast.Call) and last_name(call.func) in _CASTS


def _telling(block: ast.With) -> list[ast.stmt]:
    """Return the last statements of a block that only keep a number: ``losses.append(x.item())``.

    They compute nothing that autocast is about, and are no part of the loss.
    """
    found: list[ast.stmt] = []
    for item in reversed(block.body[1:]):
        call = item.value if isinstance(item, ast.Expr) else None
        if not isinstance(call, ast.Call) or last_name(call.func) != "append" or call.keywords:
            break
        if not all(map(_is_number, call.args)):
            break
        found.insert(0, item)
    return found


def _is_number(node: ast.expr) -> bool:
    call = node.func if isinstance(node, ast.Call) and not node.args else None
    return (
        isinstance(call, ast.Attribute) and call.attr == "item" and isinstance(call.value, ast.Name)
    )


def _let_out(source: Source, block: ast.With, told: list[ast.stmt]) -> Iterator[Edit]:
    """Yield the edits that put the last statements of a block behind it."""
    span = Span(whole(source, told[0]).start, whole(source, told[-1]).end)
    site = Site("autocast", span, told[0].lineno, told[0].col_offset + 1)
    yield Edit(site, Outcome.KEPT, ())
    yield added(source, site, block, Part.BEHIND, statements(source, told))


def _within(scope: ast.AST, node: ast.AST) -> ast.AST:
    """Return the innermost function of a scope that holds a node."""
    held = scope
    for inner in ast.walk(scope):
        if isinstance(inner, ast.FunctionDef) and any(n is node for n in ast.walk(inner)):
            held = inner
    return held


def _stores(node: ast.AST) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store)


def _is_steady(scope: _Scope, made: ast.If) -> bool:
    """Return whether the test means the same wherever it is asked: nothing binds it later."""
    if not all(isinstance(n, (ast.Name, ast.Attribute, ast.expr_context))
               for n in ast.walk(made.test)):  # fmt: skip
        return False
    names = {last_name(n) for n in ast.walk(made.test) if isinstance(n, (ast.Name, ast.Attribute))}
    return not any(
        _stores(n) and last_name(n) in names and n.lineno > made.lineno  # type: ignore[attr-defined]
        for n in ast.walk(scope)
    )


# -- branches that are alike ---------------------------------------------------------------------


class _Unscaled(ast.NodeTransformer):
    """Writes a step as it is without its scaler."""

    def __init__(self, scaler: str) -> None:
        self.scaler = scaler

    def visit_With(self, node: ast.With) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return node.body if _is_cast(node) else node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        call = node.value
        method = call.func if isinstance(call, ast.Call) else None
        if not isinstance(call, ast.Call) or not isinstance(method, ast.Attribute):
            return node
        holder = method.value
        if ast.unparse(holder) == self.scaler:
            if method.attr in ("update", "unscale_"):
                return None
            if method.attr == "step" and call.args:
                step = ast.Attribute(call.args[0], "step", ast.Load())
                return ast.Expr(ast.Call(step, call.args[1:], call.keywords))
        if method.attr == "backward" and isinstance(holder, ast.Call) and len(holder.args) == 1:
            loss, scale = holder.args[0], ast.unparse(holder.func)
            if scale == f"{self.scaler}.scale":
                call.func = ast.Attribute(loss, "backward", ast.Load())
        return node


def _is_step(scaled: list[ast.stmt], plain: list[ast.stmt], scaler: str) -> bool:
    """Return whether two blocks are one step, with the scaler and without."""
    if _text(scaled).count(scaler) == 0:
        return False
    unscaled = _Unscaled(scaler).visit(ast.Module(copy.deepcopy(scaled), []))
    return _text(unscaled.body) == _text(plain)


def _cast_apart(branch: ast.If) -> ast.Call | None:
    """Return the call of autocast that is all in which the branches differ."""
    only = branch.body[0]
    if len(branch.body) > 1 or not isinstance(only, ast.With) or len(only.items) > 1:
        return None
    call = only.items[0].context_expr
    if not isinstance(call, ast.Call) or last_name(call.func) != "autocast":
        return None
    if any(k.arg in ("enabled", None) for k in call.keywords) or len(call.args) > 1:
        return None
    return call if _text(only.body) == _text(branch.orelse) else None


def _casts_apart(source: Source, taken: Sequence[Span]) -> Iterator[Edit]:
    """Yield the edits of branches that differ in autocast alone, which their test decides."""
    for branch in ast.walk(source.tree):
        if not isinstance(branch, ast.If) or source.span(branch).lies_in(taken):
            continue
        call = _cast_apart(branch)
        plain = all(isinstance(n, _STEADY) for n in ast.walk(branch.test))
        lost = shares_line(source, branch) or is_elif(source, branch)
        if call is not None and plain and not lost:
            test = ast.unparse(branch.test)
            yield from _with_test(source, branch.body[0], call, test, branch)


def _text(block: Sequence[ast.stmt]) -> str:
    return ast.unparse(ast.Module(list(block), []))


# -- what is written ------------------------------------------------------------------------------


def _created(source: Source, made: ast.If, test: str) -> list[Edit]:
    (only,) = made.body
    assert isinstance(only, ast.Assign) and isinstance(only.value, ast.Call)
    return _with_test(source, only, only.value, test, made)


def _with_test(
    source: Source, item: ast.stmt, call: ast.Call, test: str, branch: ast.If
) -> list[Edit]:
    """Put a statement in the place of the branch, with ``enabled=`` added to a call in it."""
    site = source.site("scaler", branch)
    found = [_kept(source, branch), added(source, site, call, Part.LAST, f"enabled={test}")]
    told = _telling(item) if isinstance(item, ast.With) else []
    if told and isinstance(item, ast.With):
        found += _let_out(source, item, told)
    return found


def _kept(source: Source, branch: ast.If | ast.With, block: Sequence[ast.stmt] = ()) -> Edit:
    """Put one block of a branch in the place of both, behind the comments that have no other."""
    block = block or branch.body
    first, last = above(source, block[0]), source.span(block[-1]).end
    span = source.span(branch)
    told = comments(source, first, last)
    if isinstance(branch, ast.If) and branch.orelse:
        if block is branch.orelse:
            around = comments(source, span.start, first)
        else:
            around = comments(source, above(source, branch.orelse[0]), span.end)
    else:
        around = []
    indent = indent_of(source, branch)
    lines = [f"{c}{source.newline}{indent}" for c in around if c not in told]
    site = Site("scaler", span, branch.lineno, branch.col_offset + 1)
    return Edit(site, Outcome.KEPT, (*lines, statements(source, block)))
