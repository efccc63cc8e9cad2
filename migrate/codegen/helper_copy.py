"""Copy the helpers that an output uses, with all they need, and their imports.

A helper is a top-level definition of a file in ``migrate/helpers/``. What it uses is found by ast:
other definitions and constants of its file, helpers of other files, imports.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

from migrate import __version__
from migrate.syntax.trees import FunctionNode, all_parameters, children

_COMPREHENSION = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def free_names(statement: ast.stmt) -> list[ast.Name]:
    """Every name but those of parameters and variables of its functions, classes and loops."""
    return list(_free(statement, frozenset()))


def _free(node: ast.AST, bound: frozenset[str]) -> Iterator[ast.Name]:
    if isinstance(node, ast.Name):
        if node.id not in bound:
            yield node
    elif isinstance(node, FunctionNode):
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        inner = bound - _declared(body) | _parameters(node) | (_stored(body) - _declared(body))
        yield from _each((child for child in _heads(node)), bound)
        yield from _each(body, inner)
    elif isinstance(node, ast.ClassDef):
        yield from _each((*node.decorator_list, *node.bases, *node.keywords), bound)
        own = bound | _stored(node.body)
        for part in node.body:
            # what a class binds is no variable of its methods
            yield from _free(part, bound if isinstance(part, FunctionNode) else own)
    elif isinstance(node, _COMPREHENSION):
        first = node.generators[0].iter
        inner = bound | _stored(g.target for g in node.generators)
        yield from _free(first, bound)
        for child in children(node):
            below = children(child) if isinstance(child, ast.comprehension) else [child]
            yield from _each((part for part in below if part is not first), inner)
    else:
        yield from _each(children(node), bound)


def _each(nodes: Iterable[ast.AST], bound: frozenset[str]) -> Iterator[ast.Name]:
    for node in nodes:
        yield from _free(node, bound)


def _parameters(node: FunctionNode) -> frozenset[str]:
    return frozenset(parameter.arg for parameter in all_parameters(node.args))


def _heads(node: FunctionNode) -> Iterator[ast.AST]:
    """What is evaluated outside the function: decorators, defaults, annotations."""
    yield from getattr(node, "decorator_list", ())
    yield from (d for d in (*node.args.defaults, *node.args.kw_defaults) if d is not None)
    yield from (p.annotation for p in all_parameters(node.args) if p.annotation is not None)
    returns: ast.expr | None = getattr(node, "returns", None)
    if returns is not None:
        yield returns


def _stored(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """The names that statements bind in their own scope."""
    found: set[str] = set()
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, _COMPREHENSION):
            # its variables are its own, but what := binds in it is not
            pending += [n.target for n in ast.walk(node) if isinstance(n, ast.NamedExpr)]
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(a.asname or a.name).partition(".")[0] for a in node.names}
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found.add(node.rest)
        pending += children(node)
    return frozenset(found)


def _declared(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """The names that statements take from the module by ``global``."""
    return frozenset(
        name
        for top in nodes
        for node in ast.walk(top)
        if isinstance(node, ast.Global)
        for name in node.names
    )


_ALIASES = {"mindspore": "ms", "numpy": "np"}
_INSIDE = "migrate.helpers"


class HelperError(Exception):
    """A helper that does not exist or cannot be copied; says where, what, why, next."""


@dataclass(frozen=True)
class Definition:
    """One top-level definition or constant of a file, where ``own`` are definitions and
    ``imported`` import roots, by the names they have there."""

    name: str
    file: str
    order: int
    text: str
    node: ast.stmt = field(repr=False)
    own: Mapping[str, str] = field(repr=False)
    imported: Mapping[str, str] = field(repr=False)
    future: bool = False

    @cached_property
    def _used(self) -> tuple[str, ...]:
        """Free names by place. Found when asked for: an output needs few of all definitions."""
        free = set(free_names(self.node))
        last = {n.id: n for n in ast.walk(self.node) if n in free}
        return tuple(sorted(last, key=lambda key: (last[key].lineno, last[key].col_offset)))

    @property
    def uses(self) -> tuple[str, ...]:
        """The definitions that it uses."""
        return tuple(
            self.own[key] for key in self._used if key in self.own and self.own[key] != self.name
        )

    @property
    def imports(self) -> frozenset[str]:
        """The import roots that it uses."""
        return frozenset(self.imported[key] for key in self._used if key in self.imported)


def read_helpers(file: str, text: str) -> tuple[Definition, ...]:
    """The definitions of one helper file, in order. Raises HelperError."""
    tree = ast.parse(text, file)
    lines = text.splitlines()
    imported: dict[str, str] = {}
    inside: dict[str, str] = {}
    future = False
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            future = True
        elif isinstance(node, ast.Import | ast.ImportFrom):
            _read_import(file, node, imported, inside)
    local = {name: name for node in tree.body for name in names_of(node)}
    own = {**inside, **local}
    found = []
    for order, node in enumerate(tree.body):
        for name in names_of(node):
            body = _text(node, lines)
            found.append(Definition(name, file, order, body, node, own, imported, future))
    return tuple(found)


def names_of(node: ast.stmt) -> tuple[str, ...]:
    """The name that a top-level statement defines, if it can be a helper or a constant of one."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return (node.name,)
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        targets = [node.target]
    if len(targets) == 1 and isinstance(targets[0], ast.Name) and targets[0].id != "__all__":
        return (targets[0].id,)
    return ()


def _read_import(
    file: str,
    node: ast.Import | ast.ImportFrom,
    imported: dict[str, str],
    inside: dict[str, str],
) -> None:
    for alias in node.names:
        if isinstance(node, ast.Import):
            root, bound = alias.name, alias.asname or alias.name.split(".")[0]
        else:
            module = node.module or ""
            root, bound = f"{module}.{alias.name}", alias.asname or alias.name
            if node.level or module.startswith(_INSIDE):
                if bound != alias.name or module == _INSIDE:
                    raise _uncopiable(file, node, f"{alias.name} as {bound}")
                inside[bound] = alias.name
                continue
        if bound != binding(root):
            raise _uncopiable(file, node, ast.unparse(node))
        imported[bound] = root


def binding(root: str) -> str:
    """The name that an import of a root binds in helpers: ms for mindspore."""
    return _ALIASES.get(root, root.rpartition(".")[2])


def _uncopiable(file: str, node: ast.stmt, shown: str) -> HelperError:
    return HelperError(
        f"migrate/helpers/{file}:{node.lineno}: {shown!r} cannot be copied into an output, where "
        "names are bound as 'import mindspore as ms' and 'from x import y'; import it that way"
    )


def _text(node: ast.stmt, lines: list[str]) -> str:
    """The lines of a definition, from the comment or decorator right above it."""
    decorators = getattr(node, "decorator_list", [])
    start = min([node.lineno, *(item.lineno for item in decorators)])
    while start > 1 and lines[start - 2].startswith("#"):
        start -= 1
    assert node.end_lineno is not None
    return "\n".join(lines[start - 1 : node.end_lineno])


_MARK = "# torch2ms helpers"
_INLINE = f"# Helpers from torch2ms {__version__}: what MindSpore lacks, written in MindSpore."
_MODULE = f"{_MARK} {__version__}: written by torch2mindspore, which knows this file by this line."
_DOCSTRING = '"""In: arguments as torch takes them. Out: what torch gives, from MindSpore."""'
_SHARED = ("nn", "ops", "mint", "amp", "dataset", "numpy", "Tensor", "Parameter")


def inline(
    names: Iterable[str],
    rename: Mapping[str, str] | None = None,
    present: frozenset[str] = frozenset(),
) -> tuple[str, frozenset[str]]:
    """The text of helpers to stand in a converted file, and the import roots that it needs.

    Args:
        names: "batch_norm" or "helpers.batch_norm".
        rename: other names for what the text binds or imports (see ``bound``), where the file uses
            those names itself: ``{"Conv2d": "torch_Conv2d", "nn": "ms_nn"}``.
        present: import roots that the file binds already, by the name that the helpers use.

    Returns:
        (text, roots). The text starts with a marker comment and ends with a newline. A root is
        "mindspore" (bound as ``ms``), "mindspore.nn" and the like (bound under its last part) or a
        plain module ("math"); other imports stand in the text itself.

    Raises:
        HelperError: a name is not that of a helper, or cannot be renamed safely.
    """
    chosen = _closure(names)
    other = rename or {}
    roots = frozenset(root for item in chosen for root in item.imports) - present
    shared = frozenset(root for root in roots if _is_shared(root))
    head = [_INLINE, *_import_lines(roots - shared, {**other, **_both(chosen)})]
    return "\n".join(head) + "\n\n\n" + "\n\n\n".join(_texts(chosen, other)) + "\n", shared


def imported(names: Iterable[str]) -> dict[str, str]:
    """The import roots of these helpers by the names they are bound to."""
    return {binding(root): root for item in _closure(names) for root in item.imports}


def bound(names: Iterable[str]) -> frozenset[str]:
    """Every name that the text of these helpers binds or imports. Raises HelperError."""
    chosen = _closure(names)
    return frozenset(
        {item.name for item in chosen} | {binding(r) for item in chosen for r in item.imports}
    )


def _is_shared(root: str) -> bool:
    module, _, name = root.rpartition(".")
    return not module or (module == "mindspore" and name in _SHARED)


def _both(chosen: Sequence[Definition]) -> dict[str, str]:
    """Other names for what is imported under the name of a helper: Normal fills weights in
    MindSpore, and is a distribution of torch's."""
    defined = {item.name for item in chosen}
    names = {binding(root) for item in chosen for root in item.imports}
    return {name: f"ms_{name}" for name in names & defined}


def _texts(chosen: Sequence[Definition], rename: Mapping[str, str]) -> list[str]:
    """The texts of helpers that stand together."""
    both = _both(chosen)
    apart = [{n: both[n] for n in map(binding, item.imports) if n in both} for item in chosen]
    return [_renamed(item, {**rename, **own}) for item, own in zip(chosen, apart, strict=True)]


def _renamed(item: Definition, rename: Mapping[str, str]) -> str:
    """The text of a definition with other names for what it shares with its file."""
    concerned = {*item.uses, item.name, *map(binding, item.imports)} & rename.keys()
    if not concerned:
        return item.text
    tree = ast.parse(item.text)
    statement = tree.body[0]
    lines = [line.encode() for line in item.text.splitlines()]
    places: list[tuple[int, int, str]] = []
    for node in free_names(statement):
        if node.id in concerned:
            if not isinstance(node.ctx, ast.Load) and node.id != item.name:
                raise _unrenamable(item, node.id)
            places.append((node.lineno, node.col_offset, node.id))
    if item.name in concerned and isinstance(statement, ast.FunctionDef | ast.ClassDef):
        column = len("def " if isinstance(statement, ast.FunctionDef) else "class ")
        places.append((statement.lineno, column, item.name))
    for line, column, name in sorted(places, reverse=True):
        text = lines[line - 1]
        end = column + len(name.encode())
        lines[line - 1] = text[:column] + rename[name].encode() + text[end:]
    return b"\n".join(lines).decode()


def _unrenamable(item: Definition, name: str) -> HelperError:
    return HelperError(
        f"migrate/helpers/{item.file}: {item.name}: it binds {name!r} anew, so that cannot be "
        "renamed for a file that uses the name; choose another there"
    )


def module_text(names: Iterable[str]) -> str:
    """A whole module of helpers, marked on its first line. Raises HelperError as ``inline``."""
    chosen = _closure(names)
    roots = {root for item in chosen for root in item.imports}
    lines = [_MODULE, _DOCSTRING, ""]
    if any(item.future for item in chosen):
        lines += ["from __future__ import annotations", ""]
    lines += [*_import_lines(roots, _both(chosen)), "", "", ""]
    return "\n".join(lines) + "\n\n\n".join(_texts(chosen, {})) + "\n"


def is_ours(data: bytes) -> bool:
    """Whether a file is a module of helpers that a conversion wrote."""
    return data.startswith(_MARK.encode())


def names_in(data: bytes) -> frozenset[str]:
    """The helpers that a marked module defines and that still exist."""
    tree = ast.parse(data)
    defined = {name for node in tree.body for name in names_of(node)}
    return frozenset(defined & library().keys())


def closure(names: Iterable[str]) -> tuple[str, ...]:
    """The names with everything they use, in the order of their text. Raises HelperError."""
    return tuple(item.name for item in _closure(names))


def _closure(names: Iterable[str]) -> tuple[Definition, ...]:
    known = library()
    done: dict[str, Definition] = {}
    begun: set[str] = set()

    def add(name: str) -> None:
        if name in begun:
            return
        begun.add(name)
        for used in known[name].uses:
            add(used)
        done[name] = known[name]

    wanted = {name.removeprefix("helpers.") for name in names}
    missing = sorted(wanted - known.keys())
    if missing:
        raise HelperError(
            f"migrate/helpers: no helper {missing[0]!r}: a row or a rule names it; "
            "write it there, or correct the row"
        )
    for name in sorted(wanted, key=lambda key: (known[key].file, known[key].order)):
        add(name)
    return tuple(done.values())


@cache
def library() -> Mapping[str, Definition]:
    """Every definition of migrate/helpers by name. Raises HelperError when two files clash."""
    found: dict[str, Definition] = {}
    for path in sorted((Path(__file__).parents[1] / "helpers").glob("*.py")):
        for item in read_helpers(path.name, path.read_text(encoding="utf-8")):
            other = found.setdefault(item.name, item)
            if other is not item and other.text != item.text:
                raise HelperError(
                    f"migrate/helpers/{item.file}: {item.name!r} is defined in {other.file} too: "
                    "copies of both would clash in one output; rename one, or import it"
                )
    return found


def _import_lines(roots: Iterable[str], rename: Mapping[str, str]) -> list[str]:
    """Import statements for the roots: the standard library, then the rest, each sorted."""
    lines: set[str] = set()
    parts: dict[str, set[str]] = {}
    for root in roots:
        module, _, name = root.rpartition(".")
        alias = rename.get(binding(root), binding(root))
        text = name or root
        shown = text if alias == text else f"{text} as {alias}"
        if module:
            parts.setdefault(module, set()).add(shown)
        else:
            lines.add(f"import {shown}")
    lines |= {f"from {m} import {', '.join(sorted(n))}" for m, n in parts.items()}
    standard = {line for line in lines if line.split()[1].split(".")[0] in sys.stdlib_module_names}

    def order(line: str) -> tuple[bool, str]:
        return line.startswith("from"), line

    first, second = sorted(standard, key=order), sorted(lines - standard, key=order)
    return [*first, *([""] if first and second else []), *second]
