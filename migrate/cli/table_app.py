"""In: the arguments of ``torch2ms table``. Out: its commands; their work is in commands.table."""

from __future__ import annotations

from pathlib import Path

import typer

from migrate.cli import options as o

table_app = typer.Typer(no_args_is_help=True, help="The mapping table: facts, lints, evidence.")


@table_app.callback()
def table(
    version: o.Version = False,
) -> None:
    """The mapping table: facts, lints, evidence."""


@table_app.command("list")
def list_rows(
    names: o.Parts = None,
    mappings: o.Mappings = None,
    version: o.Version = False,
) -> None:
    """List the rows: torch name, target, state of the evidence."""
    from migrate.cli.own import given
    from migrate.cli.table import show

    raise typer.Exit(show(tuple(names or ()), given(Path.cwd(), None, mappings).mappings))


@table_app.command()
def lint(
    mappings: o.Mappings = None,
    version: o.Version = False,
) -> None:
    """Check the rows and cases without running them."""
    from migrate.cli.own import given
    from migrate.cli.table import lint as run

    raise typer.Exit(run(given(Path.cwd(), None, mappings).mappings))


@table_app.command()
def docs(
    context: typer.Context,
    out: o.Pages,
    mappings: o.Mappings = None,
    version: o.Version = False,
) -> None:
    """Write the table as one searchable page (table.html), and the pages made from the program."""
    from migrate.cli.own import given
    from migrate.cli.table import docs as run

    whole = context.find_root().command
    raise typer.Exit(run(out, whole, given(Path.cwd(), None, mappings).mappings))


@table_app.command()
def facts(
    version: o.Version = False,
) -> None:
    """Write mappings/facts again from the installed torch and MindSpore."""
    from migrate.cli.table import facts as run

    raise typer.Exit(run())


@table_app.command("verify")
def verify_rows(
    names: o.Keys = None,
    changed: o.Changed = False,
    mappings: o.Mappings = None,
    jobs: o.Pairs = 2,
    version: o.Version = False,
) -> None:
    """Run the cases of rows on both frameworks and write mappings/evidence.

    Rows of your own alone, where there are any and no row is named; their evidence goes into the
    folder evidence beside them.
    """
    from migrate.cli.own import given
    from migrate.cli.table import verify as run

    own = given(Path.cwd(), None, mappings).mappings
    raise typer.Exit(run(tuple(names or ()), changed, jobs, own))
