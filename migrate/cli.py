"""In: the arguments of ``torch2ms``. Out: its commands; their work is done in migrate.commands."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal

import typer

from migrate import __version__
from migrate.errors import Problem

app = typer.Typer(
    name="torch2ms",
    help="Moves PyTorch code to MindSpore and proves the move, Cell by Cell.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 clean; 1 something is flagged, or parity fails; 2 usage or unreadable "
    "input; 3 an internal error.",
)
table_app = typer.Typer(no_args_is_help=True, help="The mapping table: facts, lints, evidence.")
app.add_typer(table_app, name="table")


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"torch2ms {__version__}")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
]
Out = Annotated[Path, typer.Argument(help="What convert wrote: a folder or a file.")]


class Target(str, Enum):
    portable = "portable"
    mint = "mint"


class Helpers(str, Enum):
    inline = "inline"
    module = "module"


class Mode(str, Enum):
    both = "both"
    pynative = "pynative"
    graph = "graph"


@app.callback()
def torch2ms(version: Version = False) -> None:
    """Moves PyTorch code to MindSpore and proves the move, Cell by Cell."""


@table_app.callback()
def table(version: Version = False) -> None:
    """The mapping table: facts, lints, evidence."""


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(metavar="FILE|DIR", help="A .py file or a project.")],
    out: Annotated[
        Path,
        typer.Option("-o", "--out", metavar="OUT", help="A folder, or NAME.py for a single file."),
    ],
    diff: Annotated[
        bool, typer.Option("--diff", help="Print a unified diff; write nothing.")
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="All or nothing: when anything is flagged or fails, write nothing."
        ),
    ] = False,
    helpers: Annotated[
        Helpers | None,
        typer.Option(
            help="Where the helpers stand: in each file that uses them, or in one torch_helpers.py "
            "(default: inline for a file, module for a folder)."
        ),
    ] = None,
    target: Annotated[
        Target, typer.Option(help="mindspore.nn/ops (CPU, Ascend), or mindspore.mint (Ascend).")
    ] = Target.portable,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GLOB",
            help="Leave out, as in .gitignore; '!GLOB' takes back in. May be repeated.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files of OUT.")] = False,
    jobs: Annotated[int, typer.Option(min=0, help="Processes; 0: as many as it pays to use.")] = 0,
    version: Version = False,
) -> None:
    """Convert PyTorch code to MindSpore. Input files are never written.

    What cannot be converted is flagged in the output (# TODO(torch2ms CODE)) and listed here.
    Skipped in folders: hidden folders, virtual environments, caches, build output, what
    .gitignore names, files over 20 MB. OUT/torch2ms.json records what was decided.

    \b
    Examples:
      torch2ms convert net.py -o net_ms.py
      torch2ms convert project/ -o project_ms/ --exclude 'tests/'
      torch2ms convert net.py -o out --diff
    """
    from migrate import settings
    from migrate.commands.convert import Options, run
    from migrate.project import Request

    found = settings.nearest(source if source.is_dir() else source.parent, Path.cwd())
    request = Request(
        source, out, target.value, helpers.value if helpers else "",
        (*found.exclude, *(exclude or ())), jobs, found.mappings,
    )  # fmt: skip
    raise typer.Exit(run(request, Options(diff, strict, force)))


@app.command()
def verify(
    out: Out,
    build: Annotated[
        list[str] | None,
        typer.Option(
            metavar="EXPR",
            help="Builds a model; evaluated in each side's own module. May be repeated.",
        ),
    ] = None,
    input: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SPEC", help="An input: 2x3x64x64, 2x16:int64<100, py:None. May be repeated."
        ),
    ] = None,
    mode: Annotated[Mode | None, typer.Option(help="Default: both.")] = None,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the result to FILE as well.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Models side by side.")] = None,
    timeout: Annotated[
        float | None, typer.Option(min=1, help="Seconds for one step of one Cell.")
    ] = None,
    k: Annotated[
        float | None, typer.Option(min=0, help="Factor on torch's own float32 error (3).")
    ] = None,
    rtol: Annotated[float | None, typer.Option(min=0, help="Instead: relative tolerance.")] = None,
    atol: Annotated[float | None, typer.Option(min=0, help="Instead: absolute tolerance.")] = None,
    torch_python: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="The Python that has torch, if it is another one."),
    ] = None,
    version: Version = False,
) -> None:
    """Run original and output side by side and compare every Cell, in PyNative and Graph mode.

    Without --build, every model that can be built without arguments is found and verified;
    pyproject.toml may name models: [[tool.torch2ms.verify.model]] with build, input and file.

    \b
    Examples:
      torch2ms verify out
      torch2ms verify out/net.py --build 'Net(10)' --input 2x3x64x64
    """
    from migrate.commands.verify import Given, run

    given = Given(
        tuple(build or ()), tuple(input or ()), mode.value if mode else None,
        jobs, timeout, k, rtol, atol, torch_python,
    )  # fmt: skip
    raise typer.Exit(run(out, given, json))


@app.command()
def report(
    out: Out,
    file: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Where the report goes.")
    ],
    format: Annotated[
        Literal["html", "json"] | None,
        typer.Option(help="Default: by the ending of FILE, else html."),
    ] = None,
    version: Version = False,
) -> None:
    """Write the report of a conversion, with what verify found.

    \b
    Example:
      torch2ms report out -o report.html
    """
    from migrate.commands.report import run

    raise typer.Exit(run(out, file, format or ("json" if file.suffix == ".json" else "html")))


@app.command()
def explain(
    name: Annotated[str, typer.Argument(help="A torch name: torch.nn.Conv2d, or Conv2d.")],
    version: Version = False,
) -> None:
    """Say what becomes of a torch name, and why.

    \b
    Example:
      torch2ms explain torch.nn.BatchNorm2d
    """
    from migrate.commands.explain import run

    raise typer.Exit(run(name))


@app.command()
def doctor(version: Version = False) -> None:
    """Look at Python, torch, MindSpore, numpy and the processor, and advise."""
    from migrate.commands.doctor import run

    raise typer.Exit(run())


@table_app.command("list")
def list_rows(
    names: Annotated[list[str] | None, typer.Argument(help="Parts of names.")] = None,
    version: Version = False,
) -> None:
    """List the rows: torch name, target, state of the evidence."""
    from migrate.commands.table import show

    raise typer.Exit(show(tuple(names or ())))


@table_app.command()
def lint(version: Version = False) -> None:
    """Check the rows and cases without running them."""
    from migrate.commands.table import lint as run

    raise typer.Exit(run())


@table_app.command()
def facts(version: Version = False) -> None:
    """Write mappings/facts again from the installed torch and MindSpore."""
    from migrate.commands.table import facts as run

    raise typer.Exit(run())


@table_app.command("verify")
def verify_rows(
    names: Annotated[list[str] | None, typer.Argument(help="Rows; default: all.")] = None,
    changed: Annotated[
        bool, typer.Option("--changed", help="Only rows whose evidence is stale.")
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Pairs of workers.")] = 1,
    version: Version = False,
) -> None:
    """Run the cases of rows on both frameworks and write mappings/evidence."""
    from migrate.commands.table import verify as run

    raise typer.Exit(run(tuple(names or ()), changed, jobs))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Gives the exit code; never raises but for an interrupt."""
    try:
        app(args=None if arguments is None else list(arguments), prog_name="torch2ms")
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else int(bool(error.code))
    except Problem as error:
        print(f"{error.where}: {error.what}: {error.why}", file=sys.stderr)
        print(f"  next: {error.next_step}", file=sys.stderr)
        return error.status
    except Exception as error:
        return _internal(error)
    return 0


def _internal(error: Exception) -> int:
    import traceback

    print("".join(traceback.format_exception(error)), file=sys.stderr)
    print(
        f"torch2ms {__version__}: internal error: {type(error).__name__}: {error}\n"
        "  next: please report it with the lines above and the command you gave",
        file=sys.stderr,
    )
    return 3
