"""In: the arguments of ``torch2ms weights``. Out: its command; migrate.cli.weights works."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from migrate.cli import options as o

weights_app = typer.Typer(no_args_is_help=True, help="Checkpoints: torch and MindSpore.")

To = Annotated[
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


@weights_app.callback()
def weights(
    version: o.Version = False,
) -> None:
    """Checkpoints: from torch to MindSpore and back."""


@weights_app.command("convert")
def convert_weights(
    source: o.Checkpoint,
    target: o.CheckpointOut,
    record: o.Recorded,
    build: o.BuildOne = None,
    to: To = None,
    base: Base = None,
    only_weights: OnlyWeights = False,
    partial: Partial = False,
    shard_size: ShardSize = 0,
    force: Replace = False,
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
