"""In: torch.nn's arguments of lazy BatchNorms. Out: Cells that take their size from first use."""

from migrate.helpers.lazy import Unsized, materialize
from migrate.helpers.norm import BatchNorm1d, BatchNorm2d, BatchNorm3d


class LazyBatchNorm1d(Unsized):
    """Reproduces torch.nn.LazyBatchNorm1d; the first call makes it a BatchNorm1d."""

    def __init__(
        self,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(
            eps=eps,
            momentum=momentum,
            affine=affine,
            track_running_stats=track_running_stats,
            dtype=dtype,
            bias=bias,
        )

    def construct(self, x):
        materialize(self, BatchNorm1d, x.shape[1])
        return self.construct(x)


class LazyBatchNorm2d(Unsized):
    """Reproduces torch.nn.LazyBatchNorm2d; the first call makes it a BatchNorm2d."""

    def __init__(
        self,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(
            eps=eps,
            momentum=momentum,
            affine=affine,
            track_running_stats=track_running_stats,
            dtype=dtype,
            bias=bias,
        )

    def construct(self, x):
        materialize(self, BatchNorm2d, x.shape[1])
        return self.construct(x)


class LazyBatchNorm3d(Unsized):
    """Reproduces torch.nn.LazyBatchNorm3d; the first call makes it a BatchNorm3d."""

    def __init__(
        self,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(
            eps=eps,
            momentum=momentum,
            affine=affine,
            track_running_stats=track_running_stats,
            dtype=dtype,
            bias=bias,
        )

    def construct(self, x):
        materialize(self, BatchNorm3d, x.shape[1])
        return self.construct(x)
