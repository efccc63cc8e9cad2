"""In: a net and its inputs. Out: every call of every Cell: what it received and gave back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mindspore as ms

from migrate.parity.cells import Net
from migrate.parity.channel import describe as describe_error


@dataclass(frozen=True)
class Seen:
    """One call of one Cell, nested values as they were."""

    path: str
    call: int
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any


@dataclass(frozen=True)
class Run:
    """All calls in the order in which they ended.

    ``error`` is what broke the run off, ``inside`` the Cells that ran then, innermost last, and
    ``received`` the shapes that the innermost was given.
    """

    calls: tuple[Seen, ...]
    error: str = ""
    inside: tuple[str, ...] = ()
    received: tuple[tuple[int, ...], ...] = ()

    def find(self, path: str, call: int) -> Seen | None:
        return next((seen for seen in self.calls if (seen.path, seen.call) == (path, call)), None)


def watch(net: Net, args: Any, kwargs: Any) -> Run:
    """Call the whole net and keep the calls of all its Cells; never raises for user code."""
    calls: list[Seen] = []
    counts: dict[str, int] = {}
    inside: list[tuple[str, Any]] = []

    def enter(path: str) -> Callable[..., None]:
        def note(cell: Any, given: Any) -> None:
            inside.append((path, given))

        return note

    def hook(path: str) -> Callable[..., None]:
        def keep(cell: Any, given: Any, named: Any, result: Any) -> None:
            inside.pop()
            number = counts.get(path, 0)
            counts[path] = number + 1
            calls.append(Seen(path, number, tuple(given), dict(named), result))

        return keep

    handles = [
        cell.register_forward_hook(hook(path), with_kwargs=True)
        for path, cell in net.cells.items()
    ]  # fmt: skip
    handles += [cell.register_forward_pre_hook(enter(path)) for path, cell in net.cells.items()]
    try:
        net.root(*args, **kwargs)
    except Exception as error:  # user code; what ran until then is known
        answer = describe_error(error)
        return Run(
            tuple(calls),
            f"{answer['type']}: {answer['message']}",
            tuple(path for path, _ in inside),
            _shapes(inside[-1][1] if inside else ()),
        )
    finally:
        for handle in handles:
            handle.remove()
    return Run(tuple(calls))


def _shapes(given: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(value.shape) for value in given if isinstance(value, ms.Tensor))
