"""In: nothing. Out: the arguments and options of the command line, with their help texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from migrate import __version__
from migrate.cli import terminal


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"torch2ms {__version__}")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
]

Shell = Literal["bash", "zsh", "fish"]
InstallCompletion = Annotated[
    Shell | None,
    typer.Option(
        callback=lambda shell: terminal.install_completion(shell) if shell else None,
        is_eager=True, expose_value=False, metavar="bash|zsh|fish",
        help="Let the shell complete commands and options.",
    ),
]  # fmt: skip
ShowCompletion = Annotated[
    Shell | None,
    typer.Option(
        callback=lambda shell: terminal.show_completion(shell) if shell else None,
        is_eager=True, expose_value=False, metavar="bash|zsh|fish",
        help="Print what --install-completion writes.",
    ),
]  # fmt: skip

# convert
Input = Annotated[
    Path, typer.Argument(metavar="FILE|DIR", help="A .py or .ipynb file, or a project.")
]
To = Annotated[
    Path | None,
    typer.Option(
        "-o", "--out", metavar="OUT",
        help="A folder, or NAME.py for one file. Needed unless --diff is given.",
    ),
]  # fmt: skip
Diff = Annotated[bool, typer.Option("--diff", help="Print a unified diff; write nothing.")]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict", help="All or nothing: if anything is flagged or fails, write nothing."
    ),
]
HelperStyle = Annotated[
    Literal["inline", "module"] | None,
    typer.Option(
        help="Where helpers stand: in each file that uses them, or in one torch_helpers.py "
        "(default: inline for a file, module for a folder)."
    ),
]
TrainStyle = Annotated[
    Literal["cells", "model"] | None,
    typer.Option(
        help="Training loops: calls of Cells (default), or mindspore.train.Model with callbacks "
        "where that does the same."
    ),
]
TargetStyle = Annotated[
    Literal["portable", "mint"],
    typer.Option(help="mindspore.nn/ops (CPU, Ascend), or mindspore.mint (Ascend)."),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        metavar="GLOB", help="Leave out, as in .gitignore; '!GLOB' takes back in. Repeatable."
    ),
]
Mappings = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="Rows (*.toml) or rules (*.py) of your own. Repeatable."),
]
Follow = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PKG",
        help="Convert along what is used of this installed package. Repeatable. Known ones "
        "(torchvision, timm, ...) are followed anyway.",
    ),
]
NoFollow = Annotated[
    list[str] | None,
    typer.Option(metavar="PKG", help="Do not; all: convert no package along. Repeatable."),
]
FollowPath = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="DIR", help="Look for such packages here, too: they need no installing. Repeatable."
    ),
]
Trace = Annotated[
    list[str] | None,
    typer.Option(
        metavar="EXPR",
        help="Run the torch code first (in a folder: FILE.py:EXPR), once with each --input, and "
        "take unsure receivers for what they were. Repeatable.",
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Replace files of OUT, also those that were edited by hand or that convert did not "
        "write: these are kept beside as FILE.orig, and listed.",
    ),
]
Jobs = Annotated[int, typer.Option(min=0, help="Processes; 0: as many as it pays to use.")]

Choices = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="What was decided about flagged places; default: torch2ms-choices.toml of the "
        "project, which torch2ms fix writes.",
    ),
]

# fix
FixFormat = Annotated[
    Literal["text", "json"],
    typer.Option(help="json: list the flags for a program, or what came of --replay."),
]
Replay = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Take the decisions of FILE (.toml or .json) and ask nobody."
    ),
]

NoCache = Annotated[
    bool,
    typer.Option("--no-cache", help="Take and keep no results of earlier runs."),
]

# verify, report
Out = Annotated[Path, typer.Argument(help="What convert wrote: a folder or a file.")]
Verified = Annotated[
    str, typer.Argument(metavar="OUT|TORCH", help="What convert wrote, or a torch MODULE:NAME.")
]
Port = Annotated[
    str | None,
    typer.Argument(metavar="MS", help="Its port written by hand: MODULE:NAME or MODULE:CALL(...)."),
]
Mapped = Annotated[
    Path | None,
    typer.Option("--map", metavar="FILE", help="Which Cell is which: read if there, written."),
]
Build = Annotated[
    list[str] | None,
    typer.Option(metavar="EXPR", help="Builds a model, in each side's own module. Repeatable."),
]
Spec = Annotated[
    list[str] | None,
    typer.Option(metavar="SPEC", help="An input: 2x3x64x64, 2x16:int64<100, py:None. Repeatable."),
]
Modes = Annotated[Literal["both", "pynative", "graph"] | None, typer.Option(help="Default: both.")]
Json = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the result to FILE as well.")
]
TestFolder = Annotated[
    Path | None,
    typer.Option(
        "--write-tests",
        metavar="DIR",
        help="Write pytest files that verify the models again, without this tool.",
    ),
]
Models = Annotated[int | None, typer.Option(min=1, help="Models side by side.")]
Timeout = Annotated[float | None, typer.Option(min=1, help="Seconds for one step of one Cell.")]
Memory = Annotated[
    float | None,
    typer.Option(min=0, help="GiB that each framework's process may use; 0: no limit."),
]
Magnitudes = Annotated[
    list[float] | None,
    typer.Option(
        "--magnitude", metavar="FACTOR",
        help="Compare the model on inputs times FACTOR as well (0.001, 10). Repeatable.",
    ),
]  # fmt: skip
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Models on a dask cluster that sees the same files, tcp://HOST:8786, or in N "
        "processes of one here, local:N.",
    ),
]
DeviceName = Annotated[
    Literal["CPU", "GPU", "Ascend"] | None,
    typer.Option(help="Where MindSpore computes; tested on CPU only."),
]
Steps = Annotated[
    int | None,
    typer.Option(min=0, help="Train the model on both sides for so many steps, and compare."),
]
Loss = Annotated[
    list[str] | None,
    typer.Option(
        metavar="EXPR",
        help="What is called with the result and the targets; a second one is MindSpore's.",
    ),
]
Labels = Annotated[
    list[str] | None, typer.Option(metavar="SPEC", help="A target of the loss, like --input.")
]
Optimizer = Annotated[
    list[str] | None,
    typer.Option(metavar="EXPR", help="An optimizer of `params`; a second one is MindSpore's."),
]
Script = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COMMAND",
        help="Run a converted script as a whole on both sides, with equal weights, data and "
        "seeds, and compare what it prints and the weights it ends with. Repeatable.",
    ),
]
Factor = Annotated[
    float | None, typer.Option(min=0, help="Factor on torch's own float32 error (3).")
]
Relative = Annotated[float | None, typer.Option(min=0, help="Instead: relative tolerance.")]
Absolute = Annotated[float | None, typer.Option(min=0, help="Instead: absolute tolerance.")]
TorchPython = Annotated[
    Path | None, typer.Option(metavar="PATH", help="The Python that has torch, if another one.")
]
ReportFile = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FILE", help="Where the report goes; else printed."),
]
Format = Annotated[
    Literal["html", "json", "md", "sarif", "junit", "github"] | None,
    typer.Option(help="Default: by the ending of FILE (.json, .md, .sarif, .xml), else html."),
]
Compare = Annotated[
    Path | None,
    typer.Option(metavar="OLD", help="An earlier output or JSON report: say what has changed."),
]

# weights
Checkpoint = Annotated[
    Path,
    typer.Argument(metavar="IN", help="A checkpoint of torch or MindSpore, or an index of shards."),
]
CheckpointOut = Annotated[
    Path,
    typer.Argument(
        metavar="OUT", help="The checkpoint to write: .ckpt, .safetensors, .pth, .pt or .bin."
    ),
]
Recorded = Annotated[
    Path, typer.Option(metavar="OUT", help="What convert wrote and verify looked at.")
]
BuildOne = Annotated[
    str | None, typer.Option(metavar="EXPR", help="Which verified model, if there are several.")
]
Side = Annotated[
    Literal["torch", "mindspore"] | None,
    typer.Option(help="Whose file to write; default: as names and endings say."),
]
Base = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A file of torch that gives what MindSpore does not keep."),
]
OnlyWeights = Annotated[
    bool, typer.Option("--only-weights", help="The state dict alone: no optimizer, no epoch.")
]
Partial = Annotated[bool, typer.Option("--partial", help="Write although tensors have no partner.")]
ShardSize = Annotated[
    int, typer.Option(metavar="MB", min=0, help="Several files of this size and an index.")
]
Replace = Annotated[bool, typer.Option("--force", help="Replace OUT.")]

# scan
ScanFormat = Annotated[Literal["text", "json", "md"], typer.Option(help="Of what is printed.")]
Every = Annotated[bool, typer.Option("--all", help="List every place and every name.")]

# check
Checked = Annotated[
    list[Path],
    typer.Argument(metavar="FILE|DIR", help="Files by themselves, folders as projects."),
]
FailOn = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CODE", help="Fail on this code or topic only (API104, API, any, none). Repeatable."
    ),
]
BaselineFile = Annotated[
    Path | None,
    typer.Option(
        "--baseline", metavar="FILE", help="Findings that are accepted: they do not fail."
    ),
]
Update = Annotated[
    bool, typer.Option("--update-baseline", help="Accept what is found now: write the baseline.")
]
CheckFormat = Annotated[
    Literal["text", "github", "json", "sarif"], typer.Option(help="Of what is printed.")
]

# rules
RuleParts = Annotated[
    list[str] | None, typer.Argument(metavar="NAMES|FILE:LINE", help="Parts of names, or a line.")
]
CheckRules = Annotated[
    bool, typer.Option("--check", help="Convert the examples in rules of your own.")
]

# explain, table
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME|CODE",
        help="A torch name (torch.nn.Conv2d, or Conv2d), or the code of a flag (API104).",
    ),
]
Pages = Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Where the pages go.")]
Parts = Annotated[list[str] | None, typer.Argument(help="Parts of names.")]
Keys = Annotated[list[str] | None, typer.Argument(help="Rows; default: all.")]
Changed = Annotated[bool, typer.Option("--changed", help="Only rows whose evidence is stale.")]
Pairs = Annotated[int, typer.Option(min=1, help="Pairs of workers.")]
