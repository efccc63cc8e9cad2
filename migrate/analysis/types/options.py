"""Find the kinds of command line options: attributes of the result of ``parse_args()``.

``add_argument("--size", type=int, default=3)`` makes ``args.size`` an int, unless the program may
bind it to something else.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.analysis.program import Program
from migrate.analysis.types.kinds import GIVEN, NONE, Kind, join, kind, sequence
from migrate.syntax.trees import last_name

NAMESPACE = "argparse.ArgumentParser.parse_args()"  # not those that a program makes itself
PARSED: Kind = kind("instance", NAMESPACE)
PARSES = ("argparse.ArgumentParser.parse_args", "argparse.ArgumentParser.parse_known_args")
_TYPES = {name: kind(name) for name in ("int", "float", "str", "bool")}


def option(program: Program, name: str) -> Kind:
    """Return what an attribute of the parsed options is; GIVEN where that is not sure."""
    known: dict[str, Kind] | None = program.notes.get("options")
    if known is None:
        known = program.notes["options"] = {} if _is_open(program) else _options(program)
    return known.get(name, GIVEN)


def _options(program: Program) -> dict[str, Kind]:
    found: dict[str, Kind] = {}
    for _, call, _ in program.calls.get("add_argument", ()):
        name = _name(call)
        if not name:
            return {}  # it may be any of them
        found[name] = join(found.get(name, frozenset()), _kind(call))
    stored = set(_stored(program))
    return {name: value for name, value in found.items() if name not in stored}


def _name(call: ast.Call) -> str:
    """Return the attribute of an option: ``dest``, or made of its first long name."""
    texts = [a.value if isinstance(a, ast.Constant) else None for a in call.args]
    dest = next((k.value for k in call.keywords if k.arg == "dest"), None)
    if dest is not None:
        texts = [dest.value if isinstance(dest, ast.Constant) else None]
    words = [t for t in texts if isinstance(t, str)]
    if len(words) < len(texts) or not words or any(k.arg is None for k in call.keywords):
        return ""
    long = [w for w in words if w.startswith("--")]
    return (long or words)[0].lstrip("-").replace("-", "_")


def _kind(call: ast.Call) -> Kind:
    given = {k.arg: k.value for k in call.keywords}
    if "const" in given:
        return GIVEN
    action = getattr(given.get("action"), "value", None if "action" in given else "store")
    if action in ("store_true", "store_false"):
        value = _TYPES["bool"]
    elif action == "store" and "type" not in given:
        value = _TYPES["str"]
    elif action == "store":
        value = _TYPES.get(getattr(given["type"], "id", ""), GIVEN)
    else:
        return GIVEN
    if "nargs" in given and getattr(given["nargs"], "value", "") != "?":
        value = sequence("list", value)
    return value if value == GIVEN else join(value, _default(call, given, action))


def _default(call: ast.Call, given: dict[str | None, ast.expr], action: str) -> Kind:
    """Return what an option is where the command line does not say it."""
    if "default" not in given:
        first = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else ""
        asked = getattr(given.get("required"), "value", False) is not True
        may_lack = action == "store" and asked and (str(first).startswith("-") or "nargs" in given)
        return NONE if may_lack else frozenset()
    try:
        value = ast.literal_eval(given["default"])
    except ValueError:
        return GIVEN
    if value is None:
        return NONE
    if isinstance(value, (list, tuple)):
        parts = [_TYPES.get(type(one).__name__, GIVEN) for one in value]
        return sequence("list" if isinstance(value, list) else "tuple", join(*parts))
    return _TYPES.get(type(value).__name__, GIVEN)


# -- what else may bind it ----------------------------------------------------------------------


def _stored(program: Program) -> Iterator[str]:
    """Yield the attributes that are bound on anything but ``self``."""
    for file in program.files.values():
        for node in file.of(ast.Attribute):
            if not isinstance(node, ast.Attribute) or isinstance(node.ctx, ast.Load):
                continue
            if getattr(node.value, "id", "") != "self":
                yield node.attr


def _is_open(program: Program) -> bool:
    """Return whether options may be bound by names that are not written."""
    if program.calls.get("set_defaults"):
        return True
    own = {function.name for function in program.functions.values()}
    for name in ("setattr", "parse_args", "parse_known_args", "vars"):
        for file, call, _ in program.calls.get(name, ()):
            if _may_bind(name, call, file.parents.get(id(call)), own):
                return True
    held = (n for f in program.files.values() for n in f.of(ast.Attribute))
    return any(isinstance(n, ast.Attribute) and n.attr == "__dict__" and _is_name(n) for n in held)


def _is_name(node: ast.Attribute) -> bool:
    return getattr(node.value, "id", "self") != "self"


def _may_bind(name: str, call: ast.Call, parent: ast.AST | None, own: set[str]) -> bool:
    if name == "setattr":
        word = call.args[1] if len(call.args) == 3 else None
        return not isinstance(word, ast.Constant) and getattr(call.args[0], "id", "") != "self"
    if name.startswith("parse"):
        return len(call.args) > 1 or any(k.arg in ("namespace", None) for k in call.keywords)
    if name == "vars":  # shown, or read by name; anything else may write
        shown = isinstance(parent, (ast.keyword, ast.FormattedValue, ast.Starred, ast.Dict))
        shown = shown or (isinstance(parent, ast.Call) and last_name(parent.func) not in own)
        asked = isinstance(parent, ast.Attribute) and parent.attr in ("items", "keys", "values")
        read = isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Load)
        return not (shown or asked or read)
    return False
