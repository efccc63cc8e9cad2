"""In: a Cell. Out: torch.nn.DataParallel around it, as on a machine without CUDA devices."""

from mindspore import nn


class DataParallel(nn.Cell):
    """Reproduces torch.nn.DataParallel on one device: the Cell itself, at the path ``module``."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        self.module, self.dim = module, dim

    def construct(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)
