"""In: nothing. Out: what a person decided about a flagged place, and what is asked about one."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from migrate.records.result import Frozen

Form = Literal["expression", "statement", "receiver", "keep"]
FORMS: tuple[Form, ...] = ("expression", "statement", "receiver", "keep")
RECEIVERS = ("Tensor", "plain")  # what a receiver may be said to be


class Key(Frozen):
    """A place, told by what is written there: lines may move, and the layout may change.

    ``within`` is the function or class that holds it ("Net.forward"), ``statement`` its statement
    with blanks as one (the head alone of a compound one), ``name`` what is flagged; ``number``
    counts from 1 the references of that name in equal statements there.
    """

    file: str
    within: str = ""
    statement: str
    name: str
    number: int = 1

    @property
    def id(self) -> str:
        """Short, and the same in every run."""
        parts = (self.file, self.within, self.statement, self.name, str(self.number))
        return sha256("\0".join(parts).encode()).hexdigest()[:12]


class Choice(Key):
    """What becomes of a place: an expression or statement in MindSpore, what its receiver is, or
    the text as it stands (``keep``).

    ``was`` is the expression that ``becomes`` took the place of; ``note`` says why.
    """

    form: Form
    becomes: str = ""
    was: str = ""
    note: str = ""

    @property
    def key(self) -> Key:
        return Key(**{name: getattr(self, name) for name in Key.model_fields})


@dataclass(frozen=True)
class Asked:
    """A flagged place, and what is known of it.

    ``expression`` is what a choice of that form replaces, "" where only a statement can be, and
    ``receiver`` what a method is called on; ``kinds``: what that may be; ``values``: what binds it.
    ``forms`` are those that can be chosen here. Lines count from 1, in the source and the output.
    """

    key: Key
    line: int
    column: int
    code: str
    reason: str
    next_step: str
    original: str
    output: str
    output_line: int
    expression: str = ""
    receiver: str = ""
    kinds: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    forms: tuple[Form, ...] = ()
