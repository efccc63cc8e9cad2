"""In: rows and facts. Out: `mint = "..."` added to the rows whose function mint has as torch does.

A row gets one where mindspore.mint has a function or class of the same name that takes every
argument of torch's under torch's name, in any order, and asks for no other. It is the signature
that is compared; nothing is executed. Rows that have a `mint` keep it; `--dry-run` only prints.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from migrate.mapping import table
from migrate.mapping.row import POLICY_DROP, POLICY_REFUSE, Row
from migrate.mapping.signatures import Signature
from migrate.mapping.table_lint import lint_template, says_nothing

SPACES = {
    "torch.Tensor.": ("mindspore.mint.", "mindspore.mint.nn.functional."),
    "torch.nn.functional.": ("mindspore.mint.nn.functional.",),
    "torch.": ("mindspore.mint.",),
}
# Same name, another meaning: training with mint.optim changes nothing on CPU, Tensor.unfold slides
# windows over one axis and nn.functional.unfold takes patches.
LEFT_OUT = (
    "torch.Tensor.unfold",
    "torch.optim.",
    "torch.distributed.",
    "torch.Tensor.to",
    "torch.Tensor.type",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dry-run", action="store_true")
    dry = parser.parse_args().dry_run
    rows = table.load()
    by_file: dict[str, dict[str, str]] = {}
    for key in rows.raw:
        row = rows.row(key)
        template = candidate(rows, row) if row is not None and "*" not in key else ""
        if row is not None and template:
            by_file.setdefault(row.file, {})[key] = template
            if dry:
                print(f"{key}\n    {row.to}\n    {template}")
    for file, found in by_file.items():
        print(f"{file}: {len(found)} rows")
        if not dry:
            write(Path(file), found)


def candidate(rows: table.Table, row: Row) -> str:
    """The template, "" where mint has no such name or asks for other arguments."""
    plain = row.to and not (row.mint or row.rule or row.flag) and row.name.startswith("torch.")
    if not plain or row.name.startswith(LEFT_OUT) or not _is_call(row.to):
        return ""
    last = row.name.rpartition(".")[2]
    if row.kind == "method" and row.to.startswith(f"self.{last}("):
        return ""  # Tensor's own method serves both targets
    for name in _names(row.name):
        for target in rows.target_signatures(name):
            made = "" if says_nothing(target) else _template(row, name, _renamed(row, target))
            if made and not list(lint_template(rows, row, "mint", made)):
                return made
    return ""


def _is_call(template: str) -> bool:
    return isinstance(ast.parse(template, mode="eval").body, ast.Call)


def _names(name: str) -> Iterator[str]:
    space = next(one for one in SPACES if name.startswith(one))
    yield from (f"{one}{name.removeprefix(space)}" for one in SPACES[space])


def _renamed(row: Row, target: Signature) -> Signature:
    """The target with torch's names where one parameter alone, in the same place, has another."""
    own = next(iter(row.signatures), None)
    if own is None:
        return target
    shift = 1 if row.kind == "method" else 0
    params = list(target.params)
    names = {param.name for param in params}
    for index, mine in enumerate(own.params):
        place = index + shift
        free = place < len(params) and own.param(params[place].name) is None
        if free and mine.name not in names and mine.kind == params[place].kind == "any":
            params[place] = replace(params[place], name=mine.name)
    changed = sum(a != b for a, b in zip(params, target.params, strict=True))
    return replace(target, params=tuple(params)) if changed == 1 else target


def _template(row: Row, name: str, target: Signature) -> str:
    wanted = {param.name: param for one in row.signatures for param in one.params}
    left_out = {*row.drop, *POLICY_DROP, *POLICY_REFUSE} - {"generator"}
    left_out |= {arg for arg, value in row.when.items() if value == "omitted"}
    # the only value that is admitted is torch's own default: the target has no other
    left_out |= {
        arg
        for arg, values in row.only.items()
        if target.param(arg) is None
        and arg in wanted
        and values in ((wanted[arg].default,), ("None",))
    }
    slots = {param.name: param for param in target.params}
    given = [arg for arg in wanted if arg in slots and arg not in POLICY_DROP and arg != "out"]
    given = [arg for arg in given if row.when.get(arg) != "omitted"]
    lacking = set(wanted) - set(given) - left_out
    own = "self" if row.kind == "method" else ""
    spread = {arg for arg in given if wanted[arg].kind == "args" and slots[arg].kind != "args"}
    if any(f"*{arg}" in row.to for arg in spread):
        return ""  # separate numbers or one list: the helper looks, mint does not
    if lacking or (own and (not target.params or target.params[0].name in wanted)):
        return ""
    arguments = _arguments(given, target, own)
    filled = {*given, *([target.params[0].name] if own else [])}
    required = {
        p.name for p in target.params if p.default is None and p.kind in ("pos", "any", "kw")
    }
    return "" if required - filled else f"{name}({', '.join(arguments)})"


def _arguments(given: list[str], target: Signature, own: str) -> list[str]:
    """By position as far as both orders agree, the rest by keyword."""
    found = [own] if own else []
    in_order = True
    for param in target.params[1 if own else 0 :]:
        if param.name not in given:
            in_order = in_order and param.kind not in ("pos", "any")
        elif param.kind == "args":
            found.append(f"*{param.name}")
        elif param.kind in ("pos", "any") and in_order:
            found.append(param.name)
        else:
            found.append(f"{param.name}={param.name}")
    return found


def write(path: Path, found: Mapping[str, str]) -> None:
    """Add each line behind the `to` of its row; nothing else of the file changes."""
    lines: list[str] = []
    key = ""
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.startswith('["'):
            key = line.partition('"]')[0].removeprefix('["')
        lines.append(line)
        if key in found and line.startswith("to ") and line.rstrip().endswith(("'", '"')):
            lines.append(f'mint = "{found[key]}"\n')
    path.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
