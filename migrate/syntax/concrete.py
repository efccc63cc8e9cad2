"""The LibCST tree of a file, with the place of each node, by which nodes of ast are found in it."""

from __future__ import annotations

import ast
import bisect
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

import libcst as cst
from libcst._nodes.internal import CodegenState

from migrate.records.outcomes import Span
from migrate.syntax.lines import first_start, is_elif, line_begin, line_end, shares_line
from migrate.syntax.source import Source

Node = cst.CSTNode
_FOLD = "_torch2ms_same_"
# Nodes that nothing asks the place of.
_NO_PLACE = frozenset((
    cst.SimpleWhitespace, cst.ParenthesizedWhitespace, cst.Newline, cst.Comma, cst.Dot,
    cst.LeftSquareBracket, cst.RightSquareBracket, cst.AssignEqual,
    cst.Colon, cst.Semicolon, cst.TrailingWhitespace,
))  # fmt: skip


class _Position:
    """Record the inner place of a node: without the white space and parentheses around it."""

    __slots__ = ("end_node", "node", "start", "state")

    def __init__(self, state: Placing, node: Node, start: Node | None, end: Node | None) -> None:
        self.state, self.node, self.end_node = state, node, end
        self.start = state.at

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        places, end = self.state.places, self.state.at
        if self.end_node is not None and id(self.end_node) in places:
            end = places[id(self.end_node)][2]
        places[id(self.node)] = (self.node, self.start, end)


class Placing(CodegenState):
    """Generates the text of a tree, and records where each node lies in it, in characters.

    A node that stands in the tree twice has the place of the last.
    """

    def __init__(self, default_indent: str, default_newline: str) -> None:
        super().__init__(default_indent, default_newline)
        self.at = 0
        self.places: dict[int, tuple[Node, int, int]] = {}
        self.parents: dict[int, Node] = {}
        self.begins: dict[int, int] = {}  # right behind the colon of a header
        self.comments: list[str] = []  # a node of a template may stand in the tree twice
        self._open: list[tuple[Node, int]] = []

    def add_indent_tokens(self) -> None:
        for token in self.indent_tokens:
            self.tokens.append(token)
            self.at += len(token)

    def add_token(self, value: str) -> None:
        self.tokens.append(value)
        self.at += len(value)

    def before_codegen(self, node: Node) -> None:
        if type(node) in _NO_PLACE:
            return
        if self._open:
            self.parents[id(node)] = self._open[-1][0]
        self._open.append((node, self.at))
        if isinstance(node, cst.BaseSuite):
            self.begins[id(node)] = self.at

    def after_codegen(self, node: Node) -> None:
        if type(node) in _NO_PLACE:
            return
        _, start = self._open.pop()
        if type(node) is cst.Comment:
            self.comments.append(node.value)
        if id(node) not in self.places:
            self.places[id(node)] = (node, start, self.at)

    def record_syntactic_position(  # type: ignore[override]
        self, node: Node, *, start_node: Node | None = None, end_node: Node | None = None
    ) -> _Position:
        return _Position(self, node, start_node, end_node)

    @property
    def text(self) -> str:
        return "".join(self.tokens)


class Unfolding(Placing):
    """The same, with the text of the source for each name that stands for statements of it."""

    def __init__(self, module: cst.Module, folds: Mapping[str, str]) -> None:
        super().__init__(module.default_indent, module.default_newline)
        self.folds = folds

    def add_token(self, value: str) -> None:
        super().add_token(self.folds.get(value, value))


def generated(module: cst.Module, folds: Mapping[str, str] | None = None) -> Placing:
    """Return the text of a module and the places of its nodes."""
    state = (
        Unfolding(module, folds)
        if folds
        else Placing(module.default_indent, module.default_newline)
    )
    module._codegen(state)
    return state


def _unchanged(source: Source, changed: Sequence[Span]) -> list[Span]:
    """Return the runs of statements on lines of their own that nothing in ``changed`` touches."""
    starts = sorted(changed)
    ends = [*accumulate((s.end for s in starts), max)]
    found: list[Span] = []

    def touched(start: int, end: int) -> bool:
        at = bisect.bisect_right(starts, (end, 1 << 62))
        return at > 0 and ends[at - 1] >= start

    def walk(node: ast.AST) -> None:
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            held = getattr(node, name, None)
            if not isinstance(held, list):
                continue
            if name in ("handlers", "cases"):
                for one in held:
                    walk(one)
            elif held:
                fold(held)

    def fold(block: Sequence[ast.stmt]) -> None:
        first: int | None = None
        last = 0
        for statement in block:
            start, end = first_start(source, statement), source.span(statement).end
            begin = line_begin(source, start if first is None else first)
            if not shares_line(source, statement) and not is_elif(source, statement):
                if not touched(begin, line_end(source, end)):
                    first, last = start if first is None else first, end
                    continue
                begin = line_begin(source, start)
                if not touched(begin, line_end(source, end)):
                    found.append(Span(first, last))  # type: ignore[arg-type]
                    first, last = start, end
                    continue
            if first is not None:
                found.append(Span(first, last))
            first = None
            walk(statement)
        if first is not None:
            found.append(Span(first, last))

    fold(source.tree.body)
    return sorted(found)


class _Spaced(cst.CSTTransformer):
    """Give handlers the white space in front of their colons, in the order of the source."""

    def __init__(self, spaces: Sequence[str]) -> None:
        super().__init__()
        self._next, self._open = iter(spaces), list[str]()

    def visit_ExceptHandler(self, node: cst.ExceptHandler) -> None:
        self._open.append(next(self._next))

    def visit_ExceptStarHandler(self, node: cst.ExceptStarHandler) -> None:
        self._open.append(next(self._next))

    def leave_ExceptHandler(
        self, original_node: cst.ExceptHandler, updated_node: cst.ExceptHandler
    ) -> cst.ExceptHandler:
        return updated_node.with_changes(**self._behind())

    def leave_ExceptStarHandler(
        self, original_node: cst.ExceptStarHandler, updated_node: cst.ExceptStarHandler
    ) -> cst.ExceptStarHandler:
        return updated_node.with_changes(**self._behind())

    def _behind(self) -> dict[str, cst.SimpleWhitespace]:
        space = self._open.pop()
        return {"whitespace_before_colon": cst.SimpleWhitespace(space)} if space else {}


_SPACED = re.compile(r"except\b[^\n#]*[ \t]:|\\\n")


def _parsed(text: str) -> cst.Module:
    """Return the tree of a file, with the white space in ``except A :`` that LibCST loses."""
    module = cst.parse_module(text)
    if "except" not in text or not _SPACED.search(text):
        return module
    data, starts = text.encode(), [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    handlers = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.ExceptHandler)]
    spaces = []
    for handler in sorted(handlers, key=lambda n: (n.lineno, n.col_offset)):
        last = handler.type if handler.name is None else None  # LibCST keeps ``as e :``
        behind = ""
        if last is not None:
            assert last.end_lineno is not None and last.end_col_offset is not None
            begin = starts[last.end_lineno - 1] + last.end_col_offset
            between = data[begin : data.index(b":", begin)].decode()
            behind = between[len(between.rstrip(" \t\\\n\r")) :]
        spaces.append(behind)
    made = module.visit(_Spaced(spaces)) if any(spaces) else module
    assert isinstance(made, cst.Module)
    return made


class Concrete:
    """A file as LibCST has it. Places are in bytes, like those of ``Source``.

    Statements that nothing in ``changed`` touches are folded: a name stands for them in the tree.
    LibCST reads and writes 10,000 lines a second, and most statements of a file stay as they are.
    ``tail`` is what LibCST would lose at the end: white space, comments that are indented.
    """

    def __init__(self, source: Source, changed: Sequence[Span]) -> None:
        self.source = source
        self.folds: dict[str, str] = {}
        texts: list[bytes] = []
        self._folded, self._longer = [-1], [0]  # places in the folded text, what to add behind
        position = length = 0
        for number, span in enumerate(_unchanged(source, changed)):
            name = f"{_FOLD}{number}_"
            self.folds[name] = source.text(span)
            texts += [source.data[position : span.start], name.encode()]
            length += span.start - position + len(name)
            position = span.end
            self._folded.append(length)
            self._longer.append(position - length)
        text = b"".join((*texts, source.data[position:])).decode("utf-8")
        self.module, self.tail = _parsed(text), ""
        state = generated(self.module)
        lines = re.findall(r"[^\n]*\n|[^\n]+$", text)
        # LibCST loses empty lines at the end that hold spaces, and comments there that are indented
        while state.text != text and lines and lines[-1].strip()[:1] in ("", "#"):
            self.tail = lines.pop() + self.tail
            text = "".join(lines)
            if not lines or lines[-1].strip()[:1] not in ("", "#"):
                self.module = _parsed(text)
                state = generated(self.module)
        if state.text != text:
            raise ValueError(f"{source.path}: LibCST writes another text than it has read")
        self.parents = state.parents
        at = bytes_of(text)
        self.spans: dict[int, Span] = {}
        self.at: dict[Span, list[Node]] = {}
        self.comments: list[cst.Comment] = []
        self.begins = {
            key: self._placed(at[start] if at is not None else start)
            for key, start in state.begins.items()
        }
        self.wholes: dict[int, Span] = {}  # of tuples and generators, with their parentheses
        for key, (node, start, end) in state.places.items():
            begin, behind = (start, end) if at is None else (at[start], at[end])
            span = Span(self._placed(begin), self._placed(behind))
            if type(node) is cst.Comment:
                self.comments.append(node)
            self.spans[key] = span
            self.at.setdefault(span, []).append(node)
        for key, (node, _, _) in state.places.items():
            if isinstance(node, (cst.Tuple, cst.GeneratorExp)):
                self.wholes[key] = self._with_parentheses(node, self.spans[key], state, at)
                self.at.setdefault(self.wholes[key], []).append(node)

    def _placed(self, offset: int) -> int:
        """Return the offset in the source of one in the folded text."""
        return offset + self._longer[bisect.bisect_right(self._folded, offset) - 1]

    def _with_parentheses(
        self, node: cst.Tuple | cst.GeneratorExp, span: Span, state: Placing, at: list[int] | None
    ) -> Span:
        """Return the place of a tuple or generator as ast has it: with parentheses, if any."""
        data = self.source.data
        if not node.lpar and isinstance(node, cst.Tuple):
            return span
        start = span.start
        if node.lpar:  # white space and comments may lie between
            ends = state.places[id(node.lpar[-1])][1], state.places[id(node.rpar[0])][2]
            return Span(*(self._placed(p if at is None else at[p]) for p in ends))
        call = self.parents.get(id(self.parents.get(id(node))))
        if isinstance(call, cst.Call):
            return Span(data.rfind(b"(", 0, start), self.spans[id(call)].end)
        return span

    def span(self, node: Node) -> Span:
        return self.spans[id(node)]

    def ancestors(self, node: Node) -> Iterator[Node]:
        """Yield what holds a node, from the inside to the module."""
        parent = self.parents.get(id(node))
        while parent is not None:
            yield parent
            parent = self.parents.get(id(parent))


def bytes_of(text: str) -> list[int] | None:
    """Return the offset in bytes of each character of a text; None where they are the same."""
    if text.isascii():
        return None
    found = [0, *accumulate(len(c.encode()) for c in text)]
    return [*found, *found[-1:] * 2]  # a line end that LibCST adds at the end of the file


_SKIPPED = frozenset((
    "lpar", "rpar", "lbracket", "rbracket", "comma", "semicolon", "equal", "dot", "operator",
    "lbrace", "rbrace", "leading_lines", "lines_after_decorators", "header", "footer", "newline",
    "trailing_whitespace", "star", "indent",
))  # fmt: skip
_FIELDS: dict[type, tuple[str, ...]] = {}


def fields(kind: type) -> tuple[str, ...]:
    """Return the fields of a class of nodes that may hold expressions or statements."""
    found = _FIELDS.get(kind)
    if found is None:
        names: Any = getattr(kind, "__dataclass_fields__", {})
        found = tuple(n for n in names if n not in _SKIPPED and not n.startswith("whitespace"))
        _FIELDS[kind] = found
    return found
