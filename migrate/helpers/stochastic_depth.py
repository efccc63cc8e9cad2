"""In: the branch of a residual net. Out: the branch, or zeros for some of the rows, as trained."""

from mindspore import nn, ops


def stochastic_depth(input, p, mode, training=True):
    """torchvision.ops.stochastic_depth; the random numbers come from mindspore.set_seed.

    Raises ValueError for a ``p`` outside of 0 to 1, and for a mode other than "batch" and "row".
    """
    if p < 0.0 or p > 1.0:
        raise ValueError(f"drop probability has to be between 0 and 1, but got {p}")
    if mode not in ("batch", "row"):
        raise ValueError(f"mode has to be either 'batch' or 'row', but got {mode}")
    if not training or p == 0.0:
        return input
    rows = input.shape[0] if mode == "row" else 1
    kept = ops.rand((rows,) + (1,) * (input.ndim - 1)) < 1.0 - p
    scale = 1.0 / (1.0 - p) if p < 1.0 else 1.0
    return input * (kept * scale).astype(input.dtype)


class StochasticDepth(nn.Cell):
    """Reproduces torchvision.ops.StochasticDepth."""

    def __init__(self, p, mode):
        super().__init__()
        self.p, self.mode = p, mode

    def construct(self, input):
        return stochastic_depth(input, self.p, self.mode, self.training)
