"""In: the arguments of ``torch2ms``. Out: its commands; their work is done in migrate.cli."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from migrate import __version__
from migrate.cli import options as o
from migrate.cli import terminal
from migrate.records.outcomes import Problem

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
weights_app = typer.Typer(no_args_is_help=True, help="Checkpoints: torch and MindSpore.")
app.add_typer(table_app, name="table")
app.add_typer(weights_app, name="weights")


@app.callback()
def torch2ms(
    version: o.Version = False,
    install_completion: o.InstallCompletion = None,
    show_completion: o.ShowCompletion = None,
) -> None:
    """Moves PyTorch code to MindSpore and proves the move, Cell by Cell."""


@app.command()
def convert(
    source: o.Input,
    out: o.To = None,
    diff: o.Diff = False,
    strict: o.Strict = False,
    helpers: o.HelperStyle = None,
    train_style: o.TrainStyle = None,
    target: o.TargetStyle = "portable",
    exclude: o.Exclude = None,
    mappings: o.Mappings = None,
    follow: o.Follow = None,
    no_follow: o.NoFollow = None,
    follow_path: o.FollowPath = None,
    force: o.Force = False,
    trace: o.Trace = None,
    input: o.Spec = None,
    torch_python: o.TorchPython = None,
    choices: o.Choices = None,
    jobs: o.Jobs = 0,
    no_cache: o.NoCache = False,
    version: o.Version = False,
) -> None:
    """Convert PyTorch code to MindSpore. Input files are never written.

    What cannot be converted is flagged in the output (# TODO(torch2ms CODE)) and listed here;
    what is right but for graph mode, which refuses it, is marked apart (# Graph mode (CODE)).
    Folders: not what is hidden, virtual environments, caches, build output, what .gitignore
    names, over 20 MB. OUT/torch2ms.json records what was decided.

    A second conversion merges with what was edited by hand in OUT since; where both changed, the
    file has both, marked as by git, and the exit code is 1.

    \b
    Examples:
      torch2ms convert project/ -o project_ms/ --exclude 'tests/'
      torch2ms convert net.py --diff
      torch2ms convert net.py -o out --trace 'Net(10)' --input 2x3x32x32
    """
    from migrate.cli.convert import Options, run
    from migrate.cli.own import given

    if out is None and not diff:
        raise Problem("-o", "nothing says where to write", "input files are never written",
                      f"torch2ms convert {source} -o OUT, or --diff to see it")  # fmt: skip
    nowhere = source.resolve().parent / f".{source.name}.shown"  # never made
    own = given(source, exclude, mappings, (follow, no_follow, follow_path), choices)
    style = train_style or own.train_style
    request = own.request(source, out or nowhere, target, helpers or "", jobs, style)
    runs = (tuple(trace or ()), tuple(input or ()), torch_python)
    raise typer.Exit(run(request, Options(diff, strict, force, *runs, not no_cache)))


@app.command()
def fix(
    out: o.Out,
    format: o.FixFormat = "text",
    replay: o.Replay = None,
    choices: o.Choices = None,
    version: o.Version = False,
) -> None:
    """Go through what is flagged in an output, decide each place, and remember the decisions.

    Shows original and output side by side, why it is flagged, what is known of it and what it
    may become. What is decided goes into torch2ms-choices.toml beside pyproject.toml, which
    convert reads the next time, and the output is converted anew; hand edits in it are merged.

    \b
    Examples:
      torch2ms fix out
      torch2ms fix out/net.py
      torch2ms fix out --format json > flags.json
      torch2ms fix out --replay decisions.toml
    """
    from migrate.cli.fix import Options, run

    raise typer.Exit(run(out, Options(format, replay, choices)))


@app.command()
def scan(
    source: o.Input,
    format: o.ScanFormat = "text",
    target: o.TargetStyle = "portable",
    exclude: o.Exclude = None,
    mappings: o.Mappings = None,
    every: o.Every = False,
    jobs: o.Jobs = 0,
    no_cache: o.NoCache = False,
    version: o.Version = False,
) -> None:
    """Assess code before any work: what convert would do, the hard places first.

    Plans the whole conversion and writes nothing. Exit codes are those of convert.

    \b
    Examples:
      torch2ms scan project/
      torch2ms scan project/ --format json > scan.json
    """
    from migrate.cli.own import given
    from migrate.cli.questions import Options
    from migrate.cli.questions import scan as run

    own = given(source, exclude, mappings)
    options = Options(target, format, own.exclude, own.mappings, jobs, every, not no_cache)
    raise typer.Exit(run(source, options))


@app.command()
def check(
    paths: o.Checked,
    fail_on: o.FailOn = None,
    baseline: o.BaselineFile = None,
    update_baseline: o.Update = False,
    format: o.CheckFormat = "text",
    exclude: o.Exclude = None,
    mappings: o.Mappings = None,
    jobs: o.Jobs = 0,
    no_cache: o.NoCache = False,
    version: o.Version = False,
) -> None:
    """Say what converting would flag, for hooks and CI. Writes nothing, loads no framework.

    A line is silenced by a comment with a reason: # torch2ms: ignore[API104] reason

    \b
    Examples:
      torch2ms check net.py train.py
      torch2ms check . --baseline torch2ms-baseline.json --format github
    """
    from migrate.cli.check import Options, run

    given = (tuple(exclude or ()), tuple(mappings or ()), jobs, not no_cache)
    options = Options(tuple(fail_on or ()), baseline, update_baseline, format, *given)
    raise typer.Exit(run(paths, options))


@app.command()
def verify(
    out: o.Verified,
    other: o.Port = None,
    build: o.Build = None, input: o.Spec = None, mode: o.Modes = None,
    json: o.Json = None, jobs: o.Models = None, timeout: o.Timeout = None,
    k: o.Factor = None, rtol: o.Relative = None, atol: o.Absolute = None,
    torch_python: o.TorchPython = None, map: o.Mapped = None,
    steps: o.Steps = None, loss: o.Loss = None, target: o.Labels = None,
    optimizer: o.Optimizer = None, write_tests: o.TestFolder = None,
    device: o.DeviceName = None, memory: o.Memory = None,
    cluster: o.Cluster = None, magnitude: o.Magnitudes = None, script: o.Script = None,
    version: o.Version = False,
) -> None:  # fmt: skip
    """Run original and output side by side and compare every Cell, in PyNative and Graph mode.

    Without --build, every model that can be built without arguments is found and verified;
    pyproject.toml may name models: [[tool.torch2ms.verify.model]] with build, input and file.

    \b
    Examples:
      torch2ms verify out
      torch2ms verify out/net.py --build 'Net(10)' --input 2x3x64x64
      torch2ms verify zoo_ms --cluster local:2     # its models in two processes of dask
      torch2ms verify out/net.py --steps 3 --loss 'nn.CrossEntropyLoss()' --target '4:int64<10'
      torch2ms verify out --script 'main.py --epochs 1'            # a training script
      torch2ms verify net_torch:Net net_ms:Net --input 2x3x64x64   # a port written by hand
    """
    from migrate.cli import verify as one
    from migrate.cli import verify_pair as pair
    from migrate.workspace.settings import VerifySettings

    given = VerifySettings(
        build=tuple(build or ()), input=tuple(input or ()), mode=mode, jobs=jobs, timeout=timeout,
        k=k, rtol=rtol, atol=atol, torch_python=torch_python, steps=steps, loss=tuple(loss or ()),
        target=tuple(target or ()), optimizer=tuple(optimizer or ()), device=device,
        memory=memory, cluster=cluster, magnitudes=tuple(magnitude or ()),
        script=tuple(script or ()),
    )  # fmt: skip
    if other is None:
        raise typer.Exit(one.run(Path(out), given, json, write_tests))
    if write_tests:
        raise Problem("--write-tests", "not for a pair", "only converted code has a record",
                      "write a test with assert_parity (docs/verify.md)")  # fmt: skip
    raise typer.Exit(pair.run(out, other, given, json, map))


@app.command()
def report(
    out: o.Out,
    file: o.ReportFile = None,
    format: o.Format = None,
    compare: o.Compare = None,
    version: o.Version = False,
) -> None:
    """Write the report of a conversion, with what verify found; or what changed between two.

    --compare fails (exit code 1) where something got worse: a flag, a verdict, a model less.

    \b
    Examples:
      torch2ms report out -o report.html
      torch2ms report out --format github
      torch2ms report --compare old/ new/ -o changes.md
    """
    from migrate.cli.report import run, run_compare

    if compare is not None:
        raise typer.Exit(run_compare(compare, out, file, format))
    raise typer.Exit(run(out, file, format))


@app.command()
def explain(
    name: o.Name,
    mappings: o.Mappings = None,
    version: o.Version = False,
) -> None:
    """Say what becomes of a torch name, why, and how that was checked; or what a flag means.

    \b
    Examples:
      torch2ms explain torch.nn.BatchNorm2d
      torch2ms explain API104
    """
    from migrate.cli.own import given
    from migrate.cli.questions import explain as run

    raise typer.Exit(run(name, given(Path.cwd(), None, mappings).mappings))


@app.command()
def rules(
    names: o.RuleParts = None,
    check: o.CheckRules = False,
    mappings: o.Mappings = None,
    version: o.Version = False,
) -> None:
    """List the rules of conversion; say which of them decides a line of a file.

    --check converts the examples in rules of your own (docs/contributing.md).

    \b
    Examples:
      torch2ms rules members
      torch2ms rules net.py:12
      torch2ms rules --check --mappings gate_rule.py
    """
    from migrate.cli import rules as run
    from migrate.cli.own import given

    own = given(Path.cwd(), None, mappings).mappings
    if check:
        raise typer.Exit(run.check(own))
    path, _, line = names[0].rpartition(":") if names else ("", "", "")
    if path.endswith(".py") and line.isdigit():
        raise typer.Exit(run.at(Path(path), int(line), own))
    raise typer.Exit(run.show(tuple(names or ()), own))


@app.command()
def doctor(version: o.Version = False) -> None:
    """Look at Python, torch, MindSpore, numpy and the processor, and advise."""
    from migrate.cli.questions import doctor as run

    raise typer.Exit(run())


@table_app.callback()
def table(version: o.Version = False) -> None:
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
def facts(version: o.Version = False) -> None:
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


@weights_app.callback()
def weights(version: o.Version = False) -> None:
    """Checkpoints: from torch to MindSpore and back."""


@weights_app.command("convert")
def convert_weights(
    source: o.Checkpoint,
    target: o.CheckpointOut,
    record: o.Recorded,
    build: o.BuildOne = None,
    to: o.Side = None,
    base: o.Base = None,
    only_weights: o.OnlyWeights = False,
    partial: o.Partial = False,
    shard_size: o.ShardSize = 0,
    force: o.Replace = False,
    torch_python: o.TorchPython = None,
    version: o.Version = False,
) -> None:
    """Convert a checkpoint between torch and MindSpore by the names of the conversion.

    The ending of OUT says what is written. Every tensor is accounted for: if one has no partner,
    or one of the model's is not in the file, nothing is written and the exit code is 1. An
    optimizer's state, the epoch and other plain values come along. No code in a file is run.

    \b
    Examples:
      torch2ms weights convert net.pth net.ckpt --record out/net.py --build 'Net(10)'
      torch2ms weights convert model.safetensors.index.json net.ckpt --record out
      torch2ms weights convert net.ckpt net.pth --record out --base first.pth
    """
    from migrate.cli.weights import Wanted, run

    wanted = Wanted(
        to, build, base, only_weights, partial, shard_size * 10**6, force, torch_python
    )  # fmt: skip
    raise typer.Exit(run(source, target, record, wanted))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Gives the exit code; never raises but for an interrupt."""
    if terminal.COMPLETING in os.environ:
        terminal.prepare_completion()
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
