"""In: image Tensors. Out: torchvision.utils: grids of them, and files with such grids."""

import math

import numpy as np
from mindspore import Tensor
from PIL import Image


def stretched(image, value_range):
    """The image between 0 and 1, where the range (by default its own) was."""
    low, high = map(float, (image.min(), image.max()) if value_range is None else value_range)
    return (np.clip(image, low, high) - low) / max(high - low, 1e-5)


def grid_in_numpy(
    tensor, nrow=8, padding=2, normalize=False, value_range=None, scale_each=False, pad_value=0.0
):
    """Reproduces torchvision.utils.make_grid for arrays: (channels, height, width)."""
    if not isinstance(tensor, (Tensor, list)):
        raise TypeError(f"tensor or list of tensors expected, got {type(tensor)}")
    parts = tensor if isinstance(tensor, list) else [tensor]
    for part in parts:
        if not isinstance(part, Tensor):
            raise TypeError(
                f"tensor or list of tensors expected, got a list containing {type(part)}"
            )
    images = np.stack([part.asnumpy() for part in parts])
    images = images if isinstance(tensor, list) else images[0]
    if images.ndim == 2:
        images = images[None]
    if images.ndim == 3:
        images = images[None]
    if images.ndim == 4 and images.shape[1] == 1:
        images = np.concatenate((images, images, images), 1)
    if normalize is True:
        if value_range is not None and not isinstance(value_range, tuple):
            raise TypeError("value_range has to be a tuple (min, max) if specified.")
        if not np.issubdtype(images.dtype, np.floating):
            raise TypeError(f"images of {images.dtype} cannot be divided in place")
        if scale_each is True:
            images = np.stack([stretched(image, value_range) for image in images])
        else:
            images = stretched(images, value_range)
    if len(images) == 1:
        return images[0]
    count, channels = images.shape[:2]
    columns = min(nrow, count)
    height, width = images.shape[2] + padding, images.shape[3] + padding
    rows = math.ceil(count / columns)
    size = (channels, height * rows + padding, width * columns + padding)
    grid = np.full(size, pad_value, images.dtype)
    for number, image in enumerate(images):
        top = number // columns * height + padding
        left = number % columns * width + padding
        grid[:, top : top + height - padding, left : left + width - padding] = image
    return grid


def image_grid(
    tensor, nrow=8, padding=2, normalize=False, value_range=None, scale_each=False, pad_value=0.0
):
    """Reproduces torchvision.utils.make_grid."""
    return Tensor(
        grid_in_numpy(tensor, nrow, padding, normalize, value_range, scale_each, pad_value)
    )


def save_image(
    tensor, fp, format=None, nrow=8, padding=2, normalize=False, value_range=None,
    scale_each=False, pad_value=0.0,
):  # fmt: skip
    """Reproduces torchvision.utils.save_image, which writes the same file by PIL."""
    grid = grid_in_numpy(tensor, nrow, padding, normalize, value_range, scale_each, pad_value)
    if not np.issubdtype(grid.dtype, np.floating):
        raise TypeError(f"an image of {grid.dtype} cannot be rounded; make it float first")
    pixels = np.clip(grid * 255 + 0.5, 0, 255).transpose(1, 2, 0).astype(np.uint8)
    Image.fromarray(pixels).save(fp, format=format)
