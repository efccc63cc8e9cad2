"""MLP-Mixer (Tolstikhin et al., 2021): image patches mixed by token and channel MLPs."""

from functools import partial

from mindspore import nn, ops
from torch_helpers import Conv1d, Linear


def pair(x):
    return x if isinstance(x, tuple) else (x, x)


class PreNormResidual(nn.Cell):
    """x + fn(norm(x)) for any fn that keeps the shape."""

    def __init__(self, dim, fn):
        super().__init__()
        self.fn = fn
        self.norm = nn.LayerNorm((dim,), epsilon=1e-05)

    def construct(self, x):
        return self.fn(self.norm(x)) + x


class Lambda(nn.Cell):
    """A function as a module, so that it fits into a Sequential."""

    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def construct(self, x):
        return self.fn(x)


def feed_forward(dim, hidden, dropout=0.0, dense=Linear):
    return nn.SequentialCell(
        dense(dim, hidden),
        nn.GELU(approximate=False),
        nn.Dropout(p=dropout),
        dense(hidden, dim),
        nn.Dropout(p=dropout),
    )


class Patchify(nn.Cell):
    """(N, C, H, W) -> (N, H/p * W/p, C*p*p): one row per patch."""

    def __init__(self, patch_size):
        super().__init__()
        self.patch_size = patch_size

    def construct(self, x):
        n, c, h, w = x.shape
        p = self.patch_size
        x = x.reshape(n, c, h // p, p, w // p, p)
        x = x.permute(0, 2, 4, 3, 5, 1)
        return x.reshape(n, (h // p) * (w // p), p * p * c)


def mlp_mixer(
    *,
    image_size=224,
    channels=3,
    patch_size=16,
    dim=512,
    depth=8,
    num_classes=1000,
    expansion_factor=4,
    expansion_factor_token=0.5,
    dropout=0.0,
):
    """The whole network as one Sequential; image sizes must be multiples of patch_size."""
    image_h, image_w = pair(image_size)
    assert image_h % patch_size == 0 and image_w % patch_size == 0, "image is not a whole number of patches"
    num_patches = (image_h // patch_size) * (image_w // patch_size)
    # tokens are mixed along axis 1, which a 1x1 convolution reads as channels
    chan_first, chan_last = partial(Conv1d, kernel_size=1), Linear

    def lambda_fn(x):
        return ops.mean(x, axis=1)

    return nn.SequentialCell(
        Patchify(patch_size),
        nn.Dense((patch_size ** 2) * channels, dim),
        *[
            nn.SequentialCell(
                PreNormResidual(dim, feed_forward(num_patches, int(num_patches * expansion_factor), dropout, chan_first)),
                PreNormResidual(dim, feed_forward(dim, int(dim * expansion_factor_token), dropout, chan_last)),
            )
            for _ in range(depth)
        ],
        nn.LayerNorm((dim,), epsilon=1e-05),
        Lambda(lambda_fn),
        nn.Dense(dim, num_classes),
    ).set_train()
