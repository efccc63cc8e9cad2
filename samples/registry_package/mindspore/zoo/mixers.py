import mindspore as ms
from mindspore import nn
from .torch_helpers import LayerNorm

from .registry import ACTIVATIONS, MODELS


class Mix(nn.Cell):
    def __init__(self, size, hidden, act):
        super().__init__()
        self.up = nn.Dense(size, hidden)
        self.down = nn.Dense(hidden, size)
        self.act = ACTIVATIONS.build(act)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.down(self.act(self.up(x)))


@MODELS.register("token_mixer")
def token_mixer(tokens, width, depth=2, **rest):
    """A builder may be registered as well as a class."""
    return TokenMixer(tokens, width, depth, **rest)


class TokenMixer(nn.Cell):
    def __init__(self, tokens, width, depth, act="gelu", classes=10):
        super().__init__()
        self.norms = nn.CellList([LayerNorm(width) for _ in range(2 * depth)])
        self.over_tokens = nn.CellList([Mix(tokens, 2 * tokens, act) for _ in range(depth)])
        self.over_width = nn.CellList([Mix(width, 2 * width, act) for _ in range(depth)])
        self.head = nn.Dense(width, classes)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        for number, (tokens, width) in enumerate(zip(self.over_tokens, self.over_width)):
            mixed = tokens(self.norms[2 * number](x).swapaxes(1, 2))
            x = x + mixed.swapaxes(1, 2)
            x = x + width(self.norms[2 * number + 1](x))
        return self.head(x.mean(axis=1))
