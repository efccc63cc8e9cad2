import torch
import torch.nn as nn

from .registry import ACTIVATIONS, MODELS


class Mix(nn.Module):
    def __init__(self, size, hidden, act):
        super().__init__()
        self.up = nn.Linear(size, hidden)
        self.down = nn.Linear(hidden, size)
        self.act = ACTIVATIONS.build(act)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(self.act(self.up(x)))


@MODELS.register("token_mixer")
def token_mixer(tokens, width, depth=2, **rest):
    """A builder may be registered as well as a class."""
    return TokenMixer(tokens, width, depth, **rest)


class TokenMixer(nn.Module):
    def __init__(self, tokens, width, depth, act="gelu", classes=10):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2 * depth)])
        self.over_tokens = nn.ModuleList([Mix(tokens, 2 * tokens, act) for _ in range(depth)])
        self.over_width = nn.ModuleList([Mix(width, 2 * width, act) for _ in range(depth)])
        self.head = nn.Linear(width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for number, (tokens, width) in enumerate(zip(self.over_tokens, self.over_width)):
            mixed = tokens(self.norms[2 * number](x).transpose(1, 2))
            x = x + mixed.transpose(1, 2)
            x = x + width(self.norms[2 * number + 1](x))
        return self.head(x.mean(dim=1))
