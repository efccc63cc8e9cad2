"""In: names of helpers that an output uses. Out: their text with all it needs, and imports.

A helper is a top-level definition of a file in ``migrate/helpers/``. What it uses is found by ast:
other definitions and constants of its file, helpers of other files, imports.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from migrate import __version__
from migrate.free_names import free_names
from migrate.helper_source import Definition, HelperError, binding, names_of, read_helpers

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
    for path in sorted((Path(__file__).parent / "helpers").glob("*.py")):
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
