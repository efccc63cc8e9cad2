"""Say what kind of work the code of a flag asks for, the hardest first."""

from __future__ import annotations

from typing import Literal

Work = Literal["design", "rewrite", "check"]

# Hardest first: what a person reads from top to bottom.
WORK: tuple[Work, ...] = ("design", "rewrite", "check")
MEANS = {
    "design": "another structure is needed: loops, data, optimizers, processes, libraries",
    "rewrite": "a line needs another way to say it",
    "check": "an annotation, or a look at the line, is enough",
}
_TOPICS: dict[str, Work] = {
    "LOP": "design",
    "OPT": "design",
    "DAT": "design",
    "CKP": "design",
    "DEV": "check",
}
# Codes that ask for more or less than their topic; docs/flags.md says what each means.
_CODES: dict[str, Work] = {
    "API100": "check",
    "API102": "check",
    "API103": "check",
    "API106": "check",
    "API107": "check",
    "API108": "check",
    "API109": "check",
    "API113": "check",
    "API114": "check",
    "ENV113": "design",
    "ENV114": "check",
    "ENV115": "check",
    "ENV501": "design",
    "ENV510": "check",
    "ENV511": "check",
    "ENV512": "check",
    "RNG101": "check",
    "RNG102": "check",
}


def work_of(code: str) -> Work:
    """The kind of work of a code; a code that is not listed is a line to rewrite."""
    return _CODES.get(code) or _TOPICS.get(code.rstrip("0123456789"), "rewrite")
