"""Names of how a tensor lies on several devices: they compare and print, and place nothing."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Replicate:
    """torch.distributed.tensor.Replicate: each device has the whole tensor."""


@dataclass(frozen=True)
class Shard:
    """torch.distributed.tensor.Shard: each device has a part along ``dim``."""

    dim: int


@dataclass(frozen=True)
class Partial:
    """torch.distributed.tensor.Partial: the devices hold terms of a reduction."""

    reduce_op: str = "sum"


class DTensor:
    """torch.distributed.tensor.DTensor: no tensor is one here."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("MindSpore has no distributed tensor objects")
