"""In: the arguments of ``torch2ms weights``. Out: its command; migrate.commands.weights works."""

from __future__ import annotations

import typer

from migrate.commands import options as o

weights_app = typer.Typer(no_args_is_help=True, help="Checkpoints: from torch to MindSpore.")


@weights_app.callback()
def weights(
    version: o.Version = False,
) -> None:
    """Checkpoints: from torch to MindSpore."""


@weights_app.command("convert")
def convert_weights(
    source: o.Checkpoint,
    target: o.CheckpointOut,
    record: o.Recorded,
    build: o.BuildOne = None,
    torch_python: o.TorchPython = None,
    version: o.Version = False,
) -> None:
    """Convert a torch checkpoint to MindSpore by the weight names that verify proved.

    Every tensor is accounted for: if one has no partner, or one of the model's is not in the
    file, nothing is written and the exit code is 1. No code that a file holds is run.

    \b
    Examples:
      torch2ms verify out/net.py --build 'Net(10)' --input 2x3x64x64
      torch2ms weights convert net.pth net.ckpt --record out/net.py
      torch2ms weights convert net.safetensors net.ckpt --record out --build 'Net(10)'
    """
    from migrate.commands.weights import run

    raise typer.Exit(run(source, target, record, build, torch_python))
