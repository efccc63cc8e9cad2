"""Convert what goes by the text of a name: ``getattr(nn, text)``, arguments and classes asked for.

``"fused" in inspect.signature(torch.optim.AdamW).parameters``: code that serves many versions of
torch asks so whether it may pass the argument. It may pass what the target makes use of. A Linear
is a Dense in MindSpore: ``"Linear" in m.__class__.__name__`` would hold of none, and what is below
it would be left out in silence.
"""

from __future__ import annotations

import ast
import fnmatch
from dataclasses import replace

from migrate.analysis.types import class_texts
from migrate.analysis.types.class_texts import Asked, of_layers
from migrate.codegen.substitution import piece
from migrate.mapping.row import Row
from migrate.mapping.table_lint import argument_uses, torch_arguments
from migrate.records.outcomes import Edit, Outcome, Piece, Refusal, Site
from migrate.rules.calling import class_name, same_signature
from migrate.rules.exact_types import helpers_of
from migrate.rules.registry import decides
from migrate.sites.forward_names import renamed
from migrate.sites.references import Form
from migrate.sites.scene import Scene
from migrate.syntax.trees import FUNCTIONS, last_name

MAX_CHOICES = 24


def chosen_by_text(scene: Scene, site: Site, name: str, call: ast.Call) -> Edit | None:
    """``getattr(nn, f"Conv{n}d")``: a dictionary of the names that the text can give.

    Another text raises KeyError there, so nothing is silently missed.
    """
    text = call.args[1] if len(call.args) == 2 else None
    if text is None:
        return None
    spelled = _spelled(scene, name, _patterns(scene, text) or ("*",))
    if not spelled:
        return None
    inside = ", ".join(f"'{short}': {local}" for short, local, _ in spelled)
    place = site.at(scene.source.span(call))
    parts = (f"{{{inside}}}[", piece(scene.source, text), "]")
    return Edit(place, Outcome.HELPER, parts, name, frozenset(root for *_, root in spelled))


def namespace(scene: Scene, site: Site, name: str) -> Edit | None:
    """``build(torch.optim, config)``: an object that has what torch's small module has."""
    spelled = _spelled(scene, name, ("*",))
    if not spelled:
        return None
    text, root = scene.spelling.local("helpers.Namespace")
    inside = ", ".join(f"{short}={local}" for short, local, _ in spelled)
    needs = frozenset((root, *(one for *_, one in spelled)))
    return Edit(site, Outcome.HELPER, (f"{text}({inside})",), name, needs)


def _spelled(scene: Scene, space: str, patterns: tuple[str, ...]) -> list[tuple[str, str, str]]:
    """Return the names of a module that patterns meet, with how their targets are spelled and the
    import that these need; [] where there are none, or too many."""
    found: list[tuple[str, str]] = []
    for full in scene.table.names:
        outer, _, short = full.rpartition(".")
        meant = any(fnmatch.fnmatchcase(short, p) for p in patterns)
        if outer == space and meant and not short.startswith("_"):
            rows = [row for row in scene.table.rows(full) if not row.flag]
            targets = (row.ref or same_signature(scene.table, row) for row in rows)
            target = next(targets, "")
            found += [(short, target)] if target else []
    if not 0 < len(found) <= MAX_CHOICES:
        return []
    return [(short, *scene.spelling.local(target)) for short, target in found]


def dtype_by_text(scene: Scene, site: Site, name: str, call: ast.Call) -> Edit | None:
    """``getattr(torch, config.dtype)``: the dtype, where a name says so; all else raises."""
    if name != "torch" or len(call.args) != 2 or call.keywords:
        return None
    user = scene.parent(call)
    if isinstance(user, ast.Attribute) or (isinstance(user, ast.Call) and user.func is call):
        return None
    words = [last_name(n) for n in ast.walk(call.args[1])]
    for around in scene.around(call, ast.stmt):
        words.append((around.arg or "") if isinstance(around, ast.keyword) else "")
    statement = scene.statement(call)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    words += [ast.unparse(target) for target in targets]
    if not any("dtype" in word for word in words):
        return None
    text, root = scene.spelling.local("helpers.dtype_named")
    parts = (f"{text}(", piece(scene.source, call.args[1]), ")")
    place = site.at(scene.source.span(call))
    return Edit(place, Outcome.HELPER, parts, name, frozenset((root,)))


def spelled_out(scene: Scene, name: str, call: ast.Call) -> tuple[ast.Call, str]:
    """Return the outer call of ``getattr(getattr(torch, "compiler", None), "disable", None)``, and
    the name that it spells, "torch.compiler.disable"; "" if that is no plain text."""
    full = name
    while True:
        text = call.args[1] if len(call.args) in (2, 3) and not call.keywords else None
        if not isinstance(text, ast.Constant) or not isinstance(text.value, str):
            return call, ""
        full = f"{full}.{text.value}"
        outer = scene.parent(call)
        asks = isinstance(outer, ast.Call) and getattr(outer.func, "id", "") == "getattr"
        if not isinstance(outer, ast.Call) or not asks or outer.args[:1] != [call]:
            return call, full
        call = outer


def _origins(scene: Scene, node: ast.expr) -> list[ast.expr]:
    """The values that a function binds a variable to; the node itself where there are none."""
    function = scene.function(node)
    if not isinstance(node, ast.Name) or function is None:
        return [node]
    values = [
        item.value
        for item in ast.walk(function.node)
        if isinstance(item, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == node.id for t in item.targets)
    ]
    return values or [node]


def _patterns(scene: Scene, text: ast.expr) -> tuple[str, ...]:
    """What a text can be: f"Conv{n}d" is Conv*d; a parameter, what the program gives it."""
    if guarded := _guarded(scene, text):
        return guarded
    found: list[str] = []
    for node in _origins(scene, text):
        own = _pattern(scene, node)
        if not own:
            return ()
        found += own
    return tuple(found)


def _guarded(scene: Scene, text: ast.expr) -> tuple[str, ...]:
    """Return the texts that an ``if`` around admits: ``if kind in ("LSTM", "GRU"):``."""
    child: ast.AST = text
    parent, asked = scene.parent(child), ast.dump(text)
    while parent is not None and not isinstance(parent, (*FUNCTIONS, ast.ClassDef)):
        inside = isinstance(parent, ast.If) and any(child is s for s in parent.body)
        inside |= isinstance(parent, ast.IfExp) and child is parent.body
        test = getattr(parent, "test", None) if inside else None
        if isinstance(test, ast.Compare) and ast.dump(test.left) == asked:
            (operator, *more), items = test.ops, test.comparators[0]
            texts = items.elts if isinstance(items, (ast.Tuple, ast.List, ast.Set)) else [items]
            listed = isinstance(operator, ast.In) and items not in texts
            known = [t.value for t in texts if isinstance(t, ast.Constant) and type(t.value) is str]
            if (listed or isinstance(operator, ast.Eq)) and not more and len(known) == len(texts):
                return tuple(known)
        child, parent = parent, scene.parent(parent)
    return ()


def _pattern(scene: Scene, node: ast.expr) -> tuple[str, ...]:
    if isinstance(node, ast.JoinedStr):
        parts = [str(v.value) if isinstance(v, ast.Constant) else "*" for v in node.values]
        return ("".join(parts),) if any(p != "*" for p in parts) else ()
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        text = node.func.value
        if node.func.attr == "format" and isinstance(text, ast.Constant):
            pattern = str(text.value).replace("{}", "*")
            return (pattern,) if "{" not in pattern and pattern.strip("*") else ()
    return _given_texts(scene, node) if isinstance(node, ast.Name) else ()


def _given_texts(scene: Scene, node: ast.Name) -> tuple[str, ...]:
    """The literal texts that defaults and calls of the program give a parameter of this name."""
    function = scene.function(node)
    arguments = (*function.parameters, *function.node.args.kwonlyargs) if function else ()
    if node.id not in {a.arg for a in arguments}:
        return ()
    values: list[ast.expr | None] = []
    for file in scene.inference.program.files.values():
        for other in file.functions.values():
            values.append(other.defaults.get(node.id))
        for calls in file.calls.values():
            values += [k.value for call, _ in calls for k in call.keywords if k.arg == node.id]
    texts = {v.value for v in values if isinstance(v, ast.Constant) and isinstance(v.value, str)}
    return tuple(sorted(t for t in texts if t.isidentifier()))


def takes_argument(scene: Scene, node: ast.expr, name: str) -> Edit | None:
    """The edit of the whole comparison; None where no such question is asked."""
    question, argument = _question(scene, node)
    rows = [row for row in scene.table.rows(name) if row.to]
    if question is None or not rows:
        return None
    taken = any(_uses(row, argument) for row in rows)
    answer = taken is isinstance(question.ops[0], ast.In)
    place = Site(name, scene.source.span(question), node.lineno, node.col_offset + 1)
    note = f"whether it takes {argument} is answered as for the target"
    return Edit(place, Outcome.CONVERTED, (str(answer),), rows[0].key, note=note)


def _question(scene: Scene, node: ast.expr) -> tuple[ast.Compare | None, str]:
    """The comparison that asks, and the argument it asks for."""
    call = scene.parent(node)
    if not isinstance(call, ast.Call) or call.args != [node] or call.keywords:
        return None, ""
    found = scene.kind(call.func)
    if not found or any(a.name != "inspect.signature" or a.kind != "foreign" for a in found):
        return None, ""
    arguments = scene.parent(call)
    question = scene.parent(arguments) if isinstance(arguments, ast.Attribute) else None
    if not isinstance(question, ast.Compare) or question.comparators != [arguments]:
        return None, ""
    asks = isinstance(question.ops[0], (ast.In, ast.NotIn))
    named = question.left.value if isinstance(question.left, ast.Constant) else None
    return (question, named) if asks and isinstance(named, str) else (None, "")


def _uses(row: Row, argument: str) -> bool:
    arguments = torch_arguments(row)
    return argument in arguments and argument_uses(row.to, arguments)[argument] > 0


@decides(Form.CLASS_TEXT)
def class_text(scene: Scene, node: ast.Constant, name: str) -> Edit | Refusal:
    """Compare with the Cell's own name where a text tells layers apart by the name of a class."""
    site = scene.site(name, node)
    around: list[ast.AST | None] = [node]
    for _ in range(3):  # a list, a call, a comparison
        around.append(scene.parent(around[-1]) if around[-1] is not None else None)
    asked = [of_layers(n, scene.function(node), scene.table) for n in around if n is not None]
    question = next((a for some in asked for a in some if a.text is node), None)
    if question is None:
        why = f"{node.value!r} is {renamed(scene)[node.value]} in MindSpore, where a class is named"
        return Refusal(site, "API109", why, "test with isinstance", keep=True)
    pairs, text = _pairs(scene, question), str(node.value)
    if _tells(question, text, pairs):
        return Edit(site, Outcome.KEPT, None, name)
    other = dict(pairs).get(text, text)
    if _tells(question, other, pairs):
        return Edit(site, Outcome.CONVERTED, (repr(other),), name)
    if added := _beside(scene, question, around, pairs):
        return Edit(replace(site, span=added[0].span), Outcome.CONVERTED, added, name)
    wrong = ", ".join(f"{a} is {b}" for a, b in sorted(pairs) if a != b)
    why = f"{text!r} tells other classes apart in MindSpore: {wrong}"
    return Refusal(site, "API109", why, "test with isinstance")


def _beside(
    scene: Scene, question: Asked, around: list[ast.AST | None], pairs: tuple[tuple[str, str], ...]
) -> tuple[Piece, str] | tuple[()]:
    """Return the comparison with another beside it, for the Cells that it alone would miss."""
    missed = {b for a, b in pairs if question.meets(a) and not question.meets(b)}
    others = {b for a, b in pairs if not question.meets(a)}
    if missed & others or any(map(question.meets, others)):
        return ()
    for test in (n for n in around if isinstance(n, (ast.Compare, ast.Call))):
        for subject, text, how in class_texts.comparisons(test):
            listed = isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.In, ast.NotIn))
            if text is question.text and not (listed and how == "is") and _is_plain(subject):
                no = class_texts.is_negative(test)
                names = repr(sorted(missed)[0]) if len(missed) == 1 else repr(tuple(sorted(missed)))
                how = ("!=" if no else "==") if len(missed) == 1 else "not in" if no else "in"
                beside = f" {'and' if no else 'or'} {ast.unparse(subject)} {how} {names}"
                return Piece(scene.source.span(test)), beside
    return ()


def _is_plain(subject: ast.expr) -> bool:
    """``name``, ``m.__class__.__name__``, ``type(m).__name__``: what may be asked for twice."""
    while isinstance(subject, ast.Attribute):
        subject = subject.value
    if isinstance(subject, ast.Call) and getattr(subject.func, "id", "") == "type":
        subject = subject.args[0] if len(subject.args) == 1 else subject
    return isinstance(subject, ast.Name)


def _pairs(scene: Scene, question: Asked) -> tuple[tuple[str, str], ...]:
    """The layers that the files spell (else those that are meant), with the names of the Cells.

    Classes of the program keep theirs.
    """
    program = scene.inference.program
    spelled = class_texts.named(scene.table, program)
    meant = {s for s in class_texts.layers(scene.table) if question.meets(s)}
    found = [(c.name, c.name) for c in program.classes.values()]
    for short in spelled if spelled & meant else spelled | meant:
        target = class_name(scene, f"torch.nn.{short}")
        made = helpers_of(scene, f"torch.nn.{short}")  # such an object has the helper's name
        found += [(short, helper.rpartition(".")[2]) for helper, _ in made]
        if target is not None and target[1].to:
            found.append((short, target[0].rpartition(".")[2]))
    return tuple(found)


def _tells(question: Asked, text: str, pairs: tuple[tuple[str, str], ...]) -> bool:
    """Whether a text holds of the Cells of the same layers."""
    new = replace(question, text=ast.Constant(text))
    return all(new.meets(cell) == question.meets(layer) for layer, cell in pairs)


@decides(Form.EVALUATED)
def evaluated(scene: Scene, node: ast.AST, name: str) -> Refusal:
    """Flag ``eval`` of a text that may name torch, and leave the line as it is."""
    return Refusal(
        scene.site(name, node),
        "API111",
        "its text is not converted: nn.X is MindSpore's there, with other arguments and defaults",
        "look the text up in a dictionary of the classes that are meant",
        keep=True,
    )
