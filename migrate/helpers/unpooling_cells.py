"""In: torch.nn's arguments of unpooling. Out: Cells that put values back to their places."""

from mindspore import nn

from migrate.helpers.unpooling import max_unpool1d, max_unpool3d


class MaxUnpool1d(nn.Cell):
    """Reproduces torch.nn.MaxUnpool1d: values go to the places that pooling gave, else zero."""

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def construct(self, x, indices, output_size=None):
        return max_unpool1d(x, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool3d(nn.Cell):
    """Reproduces torch.nn.MaxUnpool3d: values go to the places that pooling gave, else zero."""

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def construct(self, x, indices, output_size=None):
        return max_unpool3d(x, indices, self.kernel_size, self.stride, self.padding, output_size)
