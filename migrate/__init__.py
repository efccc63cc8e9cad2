"""torch2mindspore: moves PyTorch code to MindSpore and proves the move, Cell by Cell.

The functions of this package are those of the command ``torch2ms``: ``convert``,
``convert_source``, ``scan``, ``verify``, ``assert_parity`` and ``weights``; ``Rule`` is the base of
rules of your own. Importing it loads none of them.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing alone takes longer to import than the rest of this file
if TYPE_CHECKING:
    from typing import Any

    from migrate.api import convert, convert_source, scan, verify, weights
    from migrate.records.outcomes import Problem
    from migrate.rules.own_rules import Facts, Rule
    from migrate.testing.parity import assert_parity

__version__ = "0.1.0"
__all__ = [
    "Facts",
    "Problem",
    "Rule",
    "assert_parity",
    "convert",
    "convert_source",
    "scan",
    "verify",
    "weights",
]
_WHERE = {
    "Facts": "rules.own_rules",
    "Problem": "records.outcomes",
    "Rule": "rules.own_rules",
    "assert_parity": "testing.parity",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_WHERE.get(name, 'api')}")
    value = globals()[name] = getattr(module, name)
    return value
