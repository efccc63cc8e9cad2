"""In: pytest. Out: the fixture ``assert_parity``; loaded with every pytest, so it imports late."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def assert_parity(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """`migrate.testing.parity.assert_parity`; modules are looked for beside the test, too."""
    from migrate.testing.parity import assert_parity as function

    folders = (request.path.parent, request.config.rootpath)
    return functools.partial(function, folders=folders)
