"""In: nothing. Out: models for graph mode with try around many things."""

# ruff: noqa
# It is the point that they are written so.

import logging

import torch
from torch import nn

logger = logging.getLogger(__name__)


class ShapeError(Exception):
    pass


def is_compiling():
    try:
        return torch.compiler.is_compiling()
    except Exception:
        try:
            import torch._dynamo as dynamo

            return dynamo.is_compiling()
        except Exception:
            return False


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.b = nn.Linear(6, 6)


class TryCompiling(Two):
    def forward(self, x):
        if not (torch.jit.is_scripting() or is_compiling()):
            x = x * 2
        return self.a(x)


class TryMissingKey(Two):
    def __init__(self):
        super().__init__()
        self.scales = {"low": 0.5}

    def forward(self, x):
        try:
            scale = self.scales["high"]
        except KeyError:
            scale = 3.0
        try:
            low = self.scales["low"]
        except KeyError:
            low = 2.0
        return self.a(x) * scale + low


class TryMember(Two):
    def scale(self):
        try:
            return self.gain
        except AttributeError:
            return 4.0

    def forward(self, x):
        return self.a(x) * self.scale()


class TryRaises(Two):
    def forward(self, x):
        try:
            # the product
            y = self.a(x)
            y = y @ y.T  # square
        except RuntimeError as error:
            logger.error("no product of %s", x.size())
            raise ValueError(f"cannot multiply {x.size()}: {torch.__version__}") from error
        except TypeError:
            raise
        return y


class TryOwnError(Two):
    """Flagged: somebody may wait for that error."""

    def forward(self, x):
        try:
            y = self.a(x)
        except RuntimeError as error:
            raise ShapeError(str(error)) from error
        return self.b(y)


class TryOtherWay(Two):
    """Flagged: nobody knows beforehand whether it fails."""

    def forward(self, x):
        try:
            y = self.a(x.view(2, 3, 2))
        except Exception:
            y = self.b(x)
        return y


class TryElse(Two):
    """Flagged: it is not the question alone."""

    def __init__(self):
        super().__init__()
        self.scales = {"low": 0.5}

    def forward(self, x):
        try:
            scale = self.scales["high"]
        except KeyError:
            scale = 3.0
        else:
            scale = scale * 2
        return self.a(x) * scale
