"""Find what is wrong with a Table: its rows, their templates and references, their cases."""

from __future__ import annotations

import ast
import builtins
import difflib
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from migrate.mapping.row import (
    CASE_KEYS,
    CODES,
    POLICY_DROP,
    POLICY_REFUSE,
    ROW_KEYS,
    Row,
    TableError,
)
from migrate.mapping.signatures import Param, Signature
from migrate.mapping.table import Table, is_pattern, read_toml
from migrate.mapping.templates import LIBRARIES
from migrate.syntax.trees import all_names, dotted, stored_names

ROOTS = frozenset({"mindspore", "helpers"}) | LIBRARIES


@dataclass(frozen=True)
class Finding:
    """What is wrong, why it matters, what to do."""

    what: str
    why: str
    next_step: str


def torch_arguments(row: Row) -> tuple[str, ...]:
    """The names of all arguments of the signatures that the row answers for, in order."""
    names = [param.name for one in row.signatures if not says_nothing(one) for param in one.params]
    return tuple(dict.fromkeys(names))


def says_nothing(signature: Signature) -> bool:
    """Whether the facts know no more than ``(*args, **kwargs)``."""
    return [param.kind for param in signature.params] == ["args", "kwargs"]


def argument_uses(template: str, arguments: tuple[str, ...]) -> Counter[str]:
    """How often each torch argument (and ``self``) stands in a template; empty if not Python."""
    try:
        tree = ast.parse(template.strip(), mode="eval")
    except SyntaxError:
        return Counter()
    wanted = {*arguments, "self"}
    named = (node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    return Counter(name for name in named if name in wanted)


def lint_template(table: Table, row: Row, part: str, template: str) -> Iterator[Finding]:
    """Problems of one template of a row."""
    try:
        tree = ast.parse(template.strip(), mode="eval").body
    except SyntaxError as error:
        yield Finding(f"{part} is not one Python expression", str(error.msg), "correct it")
        return
    arguments = torch_arguments(row)
    for name, count in sorted(argument_uses(template, arguments).items()):
        if count > 1:
            why = "its expression would be evaluated more than once"
            yield Finding(f"{part} uses {name} {count} times", why, "use a helper function")
    yield from _free_names(tree, arguments, part)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            yield from _target_exists(table, node, part)
        if isinstance(node, ast.Call):
            yield from _call(table, row, node, part)


def _free_names(tree: ast.expr, arguments: tuple[str, ...], part: str) -> Iterator[Finding]:
    bound = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    bound |= stored_names(tree)
    known = {*arguments, *ROOTS, *bound, "self", *dir(builtins)}
    free = all_names(tree) - known
    for name in sorted(free):
        near = difflib.get_close_matches(name, [*arguments, *ROOTS], n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"arguments: {', '.join(arguments)}"
        yield Finding(f"{part} uses {name!r}", "it is no argument of the torch name", hint)


def _target_exists(table: Table, node: ast.expr, part: str) -> Iterator[Finding]:
    name = dotted(node)
    root, _, rest = name.partition(".")
    if root == "helpers" and rest and "." not in rest and rest not in table.helpers.paths:
        near = difflib.get_close_matches(rest, table.helpers.paths, n=1)
        hint = f"did you mean helpers.{near[0]}?" if near else "write it in migrate/helpers/"
        yield Finding(f"{part} uses {name}", "there is no such helper", hint)
    if root == "mindspore" and rest and not _is_known(table, name):
        near = difflib.get_close_matches(name, table.mindspore.names, n=1, cutoff=0.8)
        hint = f"did you mean {near[0]}?" if near else "see mappings/facts for what there is"
        yield Finding(f"{part} uses {name}", "MindSpore has no such name", hint)


def _is_known(table: Table, name: str) -> bool:
    if table.mindspore.kind(name):
        return True
    return any(known.startswith(name + ".") for known in table.mindspore.names)


def _call(table: Table, row: Row, node: ast.Call, part: str) -> Iterator[Finding]:
    name = dotted(node.func)
    root = name.partition(".")[0]
    if root == "self" and name.count(".") == 1 and row.name.startswith("torch.Tensor."):
        name = f"mindspore.Tensor.{name.rpartition('.')[2]}"
        if not table.mindspore.kind(name):
            yield Finding(
                f"{part} calls {name}", "Tensor has no such method", "use ops or a helper"
            )
            return
    elif root not in ROOTS:
        return
    signatures = table.target_signatures(name)
    reasons = [_misfit(node, signature) for signature in signatures]
    if signatures and all(reasons):
        takes = "; ".join(", ".join(p.name for p in one.params) for one in signatures)
        yield Finding(f"{part} calls {name} with {reasons[0]}", f"it takes ({takes})", "correct it")


def _misfit(node: ast.Call, signature: Signature) -> str:
    """Why the call does not fit the signature; "" when it does."""
    slots = [param for param in signature.params if param.kind in ("pos", "any")]
    kinds = {param.kind for param in signature.params}
    starred = any(isinstance(value, ast.Starred) for value in node.args)
    if len(node.args) > len(slots) and "args" not in kinds and not starred:
        return f"{len(node.args)} positional arguments"
    named = {param.name for param in signature.params if param.kind in ("any", "kw")}
    given = [keyword.arg for keyword in node.keywords if keyword.arg is not None]
    unknown = [name for name in given if name not in named]
    if unknown and "kwargs" not in kinds:
        return f"an argument {unknown[0]!r}"
    taken = {param.name for param in slots[: len(node.args)]} & set(given)
    if taken:
        return f"{sorted(taken)[0]!r} given twice"
    if starred or any(keyword.arg is None for keyword in node.keywords):
        return ""
    filled = {param.name for param in slots[: len(node.args)]} | set(given)
    required = [
        param.name
        for param in signature.params
        if param.default is None and param.kind not in ("args", "kwargs")
    ]
    lacking = [name for name in required if name not in filled]
    return f"no {lacking[0]!r}" if lacking else ""


WHY = "a caller that we do not see uses torch's arguments"
# A call that gives one of these to a ref without them raises TypeError: loud, never wrong.
MAY_LACK = frozenset({"out", "generator", "layout", "pin_memory", "requires_grad", "memory_format"})


def lint_ref(table: Table, row: Row) -> Iterator[Finding]:
    """The reference takes torch's arguments: same names, same order, same defaults."""
    if not row.ref:
        return
    targets = table.target_signatures(row.ref)
    if not targets:
        known = (
            table.mindspore.kind(row.ref)
            or row.ref.partition(".")[2] in table.helpers.paths
            or row.ref in dir(builtins)
            or row.ref.partition(".")[0] in LIBRARIES
        )
        if not known:
            yield Finding(f"ref {row.ref} does not exist", WHY, "correct the name")
        return
    if not row.signatures:
        return
    reasons = [
        list(_differences(wanted, target)) for target in targets for wanted in row.signatures
    ]
    if all(reasons):
        best = min(reasons, key=len)
        yield Finding(
            f"ref {row.ref}: {'; '.join(best)}", WHY, "write a helper with torch's signature"
        )


def lint_unread(table: Table, row: Row) -> Iterator[Finding]:
    """Every argument of torch's that a helper takes is one that it reads."""
    node = table.helpers.definition(row.ref.partition(".")[2])
    if isinstance(node, ast.ClassDef):
        inits = (n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__")
        node = next(inits, None)
    if not row.ref.startswith("helpers.") or node is None:
        return
    loaded = (n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    read = {n.id for n in loaded}
    given = node.args
    for name in (a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)):
        silent = name in row.drop | POLICY_DROP or name == "generator"  # all draw from one stream
        if name not in read and name in torch_arguments(row) and not silent:
            what = f"ref {row.ref} takes {name} and never reads it"
            yield Finding(what, WHY, f'use it, raise, or drop = ["{name}"] with a reason')


def _differences(wanted: Signature, target: Signature) -> Iterator[str]:
    theirs = {param.name: param for param in target.params}
    if says_nothing(wanted) or {"args", "kwargs"} <= {param.kind for param in target.params}:
        return
    for param in wanted.params:
        other = theirs.get(param.name)
        if other is None:
            if not (param.kind == "kw" and param.name in MAY_LACK):
                yield f"no argument {param.name!r}"
            continue
        if not _same_default(param, other):
            yield f"{param.name} is {other.default} where torch has {param.default}"
    shared = [p for p in wanted.params if p.name in theirs and theirs[p.name].kind != "args"]
    ours = [p.name for p in shared if p.kind in ("pos", "any")]
    order = [p.name for p in target.params if p.kind in ("pos", "any")]
    if order[: len(ours)] != ours:
        yield f"the order is ({', '.join(order)}) where torch has ({', '.join(ours)})"
    extra = [p for p in target.params if p.default is None and wanted.param(p.name) is None]
    for param in extra:
        if param.kind not in ("args", "kwargs"):
            yield f"it wants an argument {param.name!r} of its own"


def _same_default(param: Param, other: Param) -> bool:
    if param.kind in ("args", "kwargs") or param.default == other.default:
        return True
    if param.default is None:
        return True  # torch requires it: a default more does no harm
    if other.default is None:
        return False
    ours, theirs = _value(param.default), _value(other.default)
    return ours == theirs and (isinstance(ours, bool) == isinstance(theirs, bool))


def _value(source: str) -> object:
    """A default as a value; names of dtypes compare by their last part."""
    try:
        return ast.literal_eval(source)
    except (ValueError, SyntaxError):
        return source.rpartition(".")[2]


DECISIONS = ("to", "rule", "flag")
WHEN = frozenset(
    {
        *("given", "omitted", "literal", "list without None", "no list", "holding 0"),
        *("int", "float", "bool", "str", "tuple", "list", "None", "dtype", "device", "Tensor"),
        *("plain list", "number", "numbers", "selection", "made whole", "complex"),
        "mixed dtypes",
        *("data", "Size", "ref", "range"),
    }
)

# what makes a row mean something else than it says
_FATAL = ("keys", "format", "decision", "templates")


@dataclass(frozen=True)
class Problem:
    """One broken promise of the table: where it stands, what is wrong, why, what next."""

    lint: str
    file: str
    key: str
    what: str
    why: str
    next_step: str

    @property
    def message(self) -> str:
        return f"{self.file}: {self.key}: {self.what} ({self.why}); {self.next_step}"


def lint(table: Table, rules: Path | None = None) -> tuple[Problem, ...]:
    """All problems of a table, in the order of its files. ``rules``: the rule functions."""
    rules = rules or Path(__file__).resolve().parents[1] / "rules"
    known = _rule_functions(rules)
    found = [*_orders(table), *_case_problems(table)]
    for key in table.raw:
        found += _of_key(table, key, known)
    return tuple(found)


def broken(table: Table, files: Collection[Path]) -> tuple[Problem, ...]:
    """What a user's rows say that would be passed over: unknown keys, arguments, decisions."""
    keys = [key for key in table.raw if table.files[key] in files]
    return tuple(
        problem
        for key in keys
        for problem in _of_key(table, key, frozenset())
        if problem.lint in _FATAL
    )


def _of_key(table: Table, key: str, rules: frozenset[str]) -> Iterator[Problem]:
    file = str(table.files[key])
    yield from _unknown_keys(key, frozenset(table.raw[key]), ROW_KEYS, file)
    try:
        row = table.row(key)
    except TableError as error:
        yield Problem("format", file, key, str(error), "unreadable", "correct it")
        return
    if row is not None:
        yield from _row_problems(table, row, rules)


def _row_problems(table: Table, row: Row, rules: frozenset[str]) -> Iterator[Problem]:
    checks: tuple[Callable[[Table, Row], Iterator[Finding]], ...] = (
        _decision,
        _name,
        _totality,
        _conditions,
        _templates,
        lint_ref,
        lint_unread,
        _case,
    )
    for check in checks:
        for finding in check(table, row):
            yield _problem(row, check.__name__.strip("_").removeprefix("lint_"), finding)
    if row.rule and row.rule not in rules:
        near = difflib.get_close_matches(row.rule, rules, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "write it in migrate/rules/"
        finding = Finding(f"there is no rule {row.rule!r}", "nothing would decide the call", hint)
        yield _problem(row, "rule", finding)


def _problem(row: Row, name: str, finding: Finding) -> Problem:
    return Problem(name, row.file, row.key, finding.what, finding.why, finding.next_step)


def _decision(table: Table, row: Row) -> Iterator[Finding]:
    given = [part for part in DECISIONS if getattr(row, part)]
    if len(given) != 1 and not (not given and row.ref):
        yield Finding(
            f"has {' and '.join(given) or 'no decision'}",
            "a row is decided by exactly one of to, rule, flag",
            "keep one of them (ref alone is enough for a name that is never called)",
        )
    if row.flag and (row.flag[:3] not in CODES or not row.flag[3:].isdigit()):
        yield Finding(
            f"flag {row.flag!r} is not a code",
            "codes are stable",
            f"use {', '.join(CODES)} + number",
        )
    if row.flag and not row.reason:
        yield Finding("flags without a reason", "a refusal says why", 'add reason = "..."')
    for part in ("weights", "layout", "holds", "attrs", "forward"):
        if getattr(row, part) and row.kind not in ("class", "function"):
            yield Finding(f"{part} on a {row.kind}", "only classes have it", "remove it")


def _name(table: Table, row: Row) -> Iterator[Finding]:
    root = row.name.partition(".")[0]
    if is_pattern(row.name):
        if not row.flag:
            why = "it stands for names that nobody has looked at one by one"
            yield Finding("decides for many names", why, "flag, or write a row for each")
        return
    written = "signature" in table.raw[row.key]
    # the facts do not list what objects hold, such as torch.backends.cuda.matmul and Modules
    owner, _, last = row.name.rpartition(".")
    private = last[0] == "_" and table.kind(owner) == "class"
    held = table.kind(owner) == "constant" or private
    if root == "torch" and not table.kind(row.name) and not (written or held):
        near = table.suggest(row.name)
        hint = f"did you mean {near}?" if near else "give its signature = ..."
        yield Finding("torch has no such name", "the row would never be used", hint)
    elif root == "torch" and table.torch.canonical(row.name) != row.name:
        other = table.torch.canonical(row.name)
        yield Finding(f"is another name of {other}", "rows stand under the public name", "move it")
    elif root != "torch" and not written and row.to and not row.flag:
        yield Finding("has no signature", "the facts cover torch only", "add signature = ...")
    stem = Path(row.file).stem
    if stem.partition(".")[0] != root and Path(row.file) not in table.user_files:
        why = "a file holds the names of one package"
        yield Finding(f"stands in {stem}.toml", why, "move it")


def _totality(table: Table, row: Row) -> Iterator[Finding]:
    """Every torch argument is used, admitted at one value, or dropped by name."""
    for name in sorted(row.drop & POLICY_REFUSE):
        yield Finding(
            f"drops {name}=",
            "that changes what the call does",
            f"use it or only = {{ {name} = ... }}",
        )
    omitted = {arg for arg, value in row.when.items() if value == "omitted"}
    covered = set(row.only) | row.drop | omitted | POLICY_DROP | POLICY_REFUSE
    for part in ("to", "mint"):
        template = getattr(row, part)
        used = set(argument_uses(template, torch_arguments(row)))
        for name in torch_arguments(row) if template else ():
            if name not in covered | used:
                yield Finding(
                    f"{part} says nothing of the argument {name}",
                    "a call that gives it would lose it",
                    f'use it in the template, or only = {{ {name} = "..." }}, or drop = ["{name}"]',
                )


def _conditions(table: Table, row: Row) -> Iterator[Finding]:
    arguments = torch_arguments(row)
    for part, names in (("only", row.only), ("when", row.when), ("drop", row.drop)):
        for name in names:
            around = ("selection", "made whole", "numbers", "complex", "mixed dtypes")
            receiver = part == "when" and name == "self" and row.when[name] in around
            if name not in arguments and arguments and not receiver:
                near = difflib.get_close_matches(name, arguments, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"it has: {', '.join(arguments)}"
                yield Finding(f"{part} names {name!r}", "torch has no such argument here", hint)
    for name, value in row.when.items():
        if value not in WHEN:
            yield Finding(
                f"when {name} = {value!r}", "that condition is unknown", f"one of {sorted(WHEN)}"
            )
    for name, values in row.only.items():
        for value in values:
            try:
                ast.parse(value, mode="eval")
            except SyntaxError:
                yield Finding(f"only {name} = {value!r}", "it is not Python", "write it as source")


def _templates(table: Table, row: Row) -> Iterator[Finding]:
    for part in ("to", "mint"):
        if template := getattr(row, part):
            yield from lint_template(table, row, part, template)


def _case(table: Table, row: Row) -> Iterator[Finding]:
    case = table.case(row.key)
    if row.flag:
        return
    if case is None:
        yield Finding(
            "has no case", "an unexecuted row proves nothing", "add one in mappings/cases/"
        )
        return
    if not case.calls and not case.why:
        yield Finding("its case has no calls", "nothing would be executed", "add calls or a why")
    for call in case.calls:
        try:
            tree = ast.parse(call, mode="eval")
        except SyntaxError as error:
            yield Finding(f"case {call!r} is not Python", str(error.msg), "correct the call")
            continue
        names = all_names(tree)
        inputs = {f"x{number}" for number in range(len(case.inputs))}
        lacking = sorted(n for n in names if n[:1] == "x" and n[1:].isdigit() and n not in inputs)
        if lacking:
            yield Finding(f"case uses {', '.join(lacking)}", "no such input", "add it to inputs")
    if len(case.modes) < 2 and not case.why:
        yield Finding("its case leaves a mode out", "graph mode is a promise", "add why = ...")


def _case_problems(table: Table) -> Iterator[Problem]:
    for key in table.case_keys:
        case = table.case(key)
        if case is not None and key not in table.raw:
            near = difflib.get_close_matches(key, table.raw, n=1, cutoff=0.8)
            hint = f"did you mean {near[0]}?" if near else "write the row or remove the case"
            yield Problem("case", case.file, key, "there is no such row", "it is never run", hint)
    own = [path.parent / "cases" / path.name for path in table.user_files]
    ours = sorted((table.folder / "cases").glob("*.toml"))
    for path in [*ours, *(file for file in own if file.is_file())]:
        for key, values in read_toml(path).items():
            yield from _unknown_keys(key, frozenset(values), CASE_KEYS, str(path))


def _unknown_keys(
    key: str, given: frozenset[str], known: frozenset[str], file: str
) -> Iterator[Problem]:
    for name in sorted(given - known):
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(known))}"
        yield Problem("keys", file, key, f"unknown key {name!r}", "it would be ignored", hint)


def _orders(table: Table) -> Iterator[Problem]:
    """Keys are sorted within a file, so that two people add rows in different places."""
    folders = (table.folder, table.folder / "cases")
    for path in [file for folder in folders for file in sorted(folder.glob("*.toml"))]:
        for before, after in pairwise(read_toml(path)):
            if after.replace(":", "\x00") < before.replace(":", "\x00"):
                yield Problem(
                    "order",
                    str(path),
                    after,
                    f"stands after {before}",
                    "keys are sorted",
                    "move it",
                )


def _rule_functions(folder: Path) -> frozenset[str]:
    names = [
        node.name
        for path in sorted(folder.glob("*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
    ]
    return frozenset(names)
