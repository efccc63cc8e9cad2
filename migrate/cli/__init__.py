"""The command line ``torch2ms``: one file a command, without the work that it does."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``torch2ms`` with these arguments, or with those of the process; return its exit code."""
    from migrate.cli import app

    return app.main(arguments)
