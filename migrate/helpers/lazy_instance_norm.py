"""In: torch.nn's arguments of lazy InstanceNorms. Out: Cells sized by their first use."""

from migrate.helpers.lazy import Unsized, materialize
from migrate.helpers.norm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d


class LazyInstanceNorm1d(Unsized):
    """Reproduces torch.nn.LazyInstanceNorm1d; the first call makes it an InstanceNorm1d."""

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
        materialize(self, InstanceNorm1d, x.shape[-2])
        return self.construct(x)


class LazyInstanceNorm2d(Unsized):
    """Reproduces torch.nn.LazyInstanceNorm2d; the first call makes it an InstanceNorm2d."""

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
        materialize(self, InstanceNorm2d, x.shape[-3])
        return self.construct(x)


class LazyInstanceNorm3d(Unsized):
    """Reproduces torch.nn.LazyInstanceNorm3d; the first call makes it an InstanceNorm3d."""

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
        materialize(self, InstanceNorm3d, x.shape[-4])
        return self.construct(x)
