"""In: functions that recurse deeply, with much and with little memory. Out: their results."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from migrate.syntax import deep

# what is left of the address space holds a stack of 64 MiB, and none of 512
SHORT = """
import resource
from migrate.syntax.deep import deeply

with open("/proc/self/statm") as read:
    used = int(read.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 200 * 1024 * 1024,) * 2)


def down(n):
    return 0 if n == 0 else 1 + down(n - 1)


print(deeply(lambda: down(5_000)))
try:
    deeply(lambda: down(90_000))
except RecursionError:
    print("RecursionError")
"""


def down(n: int) -> int:
    return 0 if n == 0 else 1 + down(n - 1)


def test_many_frames_have_room_and_settings_are_as_before() -> None:
    before = sys.getrecursionlimit(), threading.stack_size()
    assert deep.deeply(lambda: down(50_000)) == 50_000
    with pytest.raises(KeyError):
        deep.deeply(lambda: {}["missing"])
    assert (sys.getrecursionlimit(), threading.stack_size()) == before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the address space")
def test_where_memory_is_short_a_smaller_stack_is_taken() -> None:
    done = subprocess.run([sys.executable, "-c", SHORT], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["5000", "RecursionError"], done.stderr


def test_no_memory_for_any_stack_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def start(thread: threading.Thread) -> None:
        tried.append(threading.stack_size())
        raise RuntimeError("can't start new thread")

    before = sys.getrecursionlimit(), threading.stack_size()
    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(RuntimeError, match="new thread"):
        deep.deeply(lambda: 1)
    assert tried[0] == deep.STACK_BYTES and tried[-1] == deep.LEAST_BYTES
    assert (sys.getrecursionlimit(), threading.stack_size()) == before
