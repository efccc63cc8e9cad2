"""The fixture ``assert_parity`` of pytest; outside of ``migrate``, which a user's own may hide."""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

_APART = Path(__file__).resolve().parent / "migrate" / "parity" / "apart.py"


@pytest.fixture
def assert_parity(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """`migrate.assert_parity`; modules are looked for beside the test, too."""
    spec = importlib.util.spec_from_file_location("torch2ms_apart", _APART)
    assert spec is not None and spec.loader is not None
    apart = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(apart)
    folders = (request.path.parent, request.config.rootpath)
    ours = importlib.util.find_spec("migrate")
    if ours is not None and ours.origin == str(_APART.parents[1] / "__init__.py"):
        return functools.partial(importlib.import_module("migrate").assert_parity, folders=folders)
    imports = apart.install()

    def asserted(*given: Any, **options: Any) -> Any:
        with imports.using(True):
            function = importlib.import_module("migrate.testing.parity").assert_parity
            return function(*given, folders=folders, **options)

    return asserted
