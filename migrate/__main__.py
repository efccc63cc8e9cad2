"""In: ``python -m migrate ARGUMENTS``. Out: the same as ``torch2ms ARGUMENTS``."""

from migrate.cli.app import main

if __name__ == "__main__":
    raise SystemExit(main())
