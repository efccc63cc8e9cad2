"""In: settings of torchvision.transforms. Out: callables that change images at random.

The distributions are torchvision's; the numbers are drawn from numpy, so they are others.
"""

import math

import numpy as np
from mindspore import Tensor

from migrate.helpers.images import (
    cropped_image,
    grey_image,
    height_and_width,
    mirrored_image,
    padded_image,
    resized_image,
    rotated_image,
    size_pair,
    upside_down,
    with_brightness,
    with_contrast,
    with_hue,
    with_saturation,
)


def drawn_box(area, scale, ratio):
    """(height, width) of a random area and a random ratio of width to height."""
    target = area * np.random.uniform(*scale)
    aspect = math.exp(np.random.uniform(math.log(ratio[0]), math.log(ratio[1])))
    return round(math.sqrt(target / aspect)), round(math.sqrt(target * aspect))


def drawn_corner(rows, columns, height, width):
    """A random place (top, left) of a box within an image."""
    return np.random.randint(rows - height + 1), np.random.randint(columns - width + 1)


class RandomCrop:
    """Reproduces torchvision.transforms.RandomCrop with other random numbers."""

    def __init__(self, size, padding=None, pad_if_needed=False, fill=0, padding_mode="constant"):
        self.size, self.padding, self.pad_if_needed = size_pair(size), padding, pad_if_needed
        self.fill, self.padding_mode = fill, padding_mode

    def __call__(self, img):
        height, width = self.size
        if self.padding is not None:
            img = padded_image(img, self.padding, self.fill, self.padding_mode)
        rows, columns = height_and_width(img)
        if self.pad_if_needed and (columns < width or rows < height):
            sides = (max(width - columns, 0), max(height - rows, 0))
            img = padded_image(img, sides, self.fill, self.padding_mode)
            rows, columns = height_and_width(img)
        if rows < height or columns < width:
            raise ValueError(f"a crop of {self.size} is larger than the image, {(rows, columns)}")
        top, left = drawn_corner(rows, columns, height, width)
        return cropped_image(img, top, left, height, width)


class RandomHorizontalFlip:
    """Reproduces torchvision.transforms.RandomHorizontalFlip with other random numbers."""

    def __init__(self, p=0.5):
        self.p = p

    def __call__(self, img):
        return mirrored_image(img) if np.random.rand() < self.p else img


class RandomVerticalFlip:
    """Reproduces torchvision.transforms.RandomVerticalFlip with other random numbers."""

    def __init__(self, p=0.5):
        self.p = p

    def __call__(self, img):
        return upside_down(img) if np.random.rand() < self.p else img


class RandomGrayscale:
    """Reproduces torchvision.transforms.RandomGrayscale with other random numbers."""

    def __init__(self, p=0.1):
        self.p = p

    def __call__(self, img):
        return grey_image(img, len(img.getbands())) if np.random.rand() < self.p else img


class RandomResizedCrop:
    """Reproduces torchvision.transforms.RandomResizedCrop with other random numbers."""

    def __init__(
        self,
        size,
        scale=(0.08, 1.0),
        ratio=(0.75, 1.3333333333333333),
        interpolation="bilinear",
        antialias=True,
    ):
        self.size, self.scale, self.ratio = size_pair(size), scale, ratio
        self.interpolation = interpolation

    def _box(self, rows, columns):
        for _ in range(10):
            height, width = drawn_box(rows * columns, self.scale, self.ratio)
            if 0 < width <= columns and 0 < height <= rows:
                return (*drawn_corner(rows, columns, height, width), height, width)
        height, width = rows, columns  # the middle, in the nearest ratio that is admitted
        if columns / rows < min(self.ratio):
            height = round(width / min(self.ratio))
        elif columns / rows > max(self.ratio):
            width = round(height * max(self.ratio))
        return (rows - height) // 2, (columns - width) // 2, height, width

    def __call__(self, img):
        box = self._box(*height_and_width(img))
        return resized_image(cropped_image(img, *box), self.size, self.interpolation)


class RandomRotation:
    """Reproduces torchvision.transforms.RandomRotation with other random numbers."""

    def __init__(self, degrees, interpolation="nearest", expand=False, center=None, fill=0):
        self.degrees = (-degrees, degrees) if isinstance(degrees, (int, float)) else degrees
        self.interpolation, self.expand = interpolation, expand
        self.center, self.fill = center, fill

    def __call__(self, img):
        angle = np.random.uniform(*self.degrees)
        return rotated_image(img, angle, self.interpolation, self.expand, self.center, self.fill)


def jitter_range(value, center=1.0):
    """From where to where a factor of ColorJitter is drawn; None where nothing changes."""
    if isinstance(value, (int, float)):
        low = center - value if center == 0 else max(center - value, 0.0)
        value = (low, center + value)
    low, high = value
    if low > high or (center == 1 and low < 0) or (center == 0 and not -0.5 <= low <= high <= 0.5):
        raise ValueError(f"no range of a factor: {value}")
    return None if low == high == center else (low, high)


class ColorJitter:
    """Reproduces torchvision.transforms.ColorJitter of images of PIL, other random numbers."""

    def __init__(self, brightness=0, contrast=0, saturation=0, hue=0):
        self.changes = [
            (with_brightness, jitter_range(brightness)),
            (with_contrast, jitter_range(contrast)),
            (with_saturation, jitter_range(saturation)),
            (with_hue, jitter_range(hue, center=0)),
        ]

    def __call__(self, img):
        for place in np.random.permutation(len(self.changes)):
            change, limits = self.changes[place]
            img = img if limits is None else change(img, np.random.uniform(*limits))
        return img


class RandomErasing:
    """Reproduces torchvision.transforms.RandomErasing of a Tensor, with other random numbers."""

    def __init__(self, p=0.5, scale=(0.02, 0.33), ratio=(0.3, 3.3), value=0, inplace=False):
        self.p, self.scale, self.ratio, self.value = p, scale, ratio, value

    def __call__(self, img):
        if np.random.rand() >= self.p:
            return img
        channels, rows, columns = img.shape[-3:]
        for _ in range(10):
            width, height = drawn_box(rows * columns, self.scale, self.ratio)
            if height < rows and width < columns:
                top, left = drawn_corner(rows, columns, height, width)
                return self._erased(img, channels, slice(top, top + height), left, width)
        return img

    def _erased(self, img, channels, rows, left, width):
        array = img.asnumpy().copy()
        if self.value == "random":
            value = np.random.standard_normal((channels, rows.stop - rows.start, width))
        else:
            value = np.asarray(self.value, np.float32).reshape(-1, 1, 1)
        array[..., rows, left : left + width] = value
        return Tensor(array)


class RandomApply:
    """Reproduces torchvision.transforms.RandomApply with other random numbers."""

    def __init__(self, transforms, p=0.5):
        self.transforms, self.p = transforms, p

    def __call__(self, img):
        for transform in self.transforms if np.random.rand() <= self.p else ():
            img = transform(img)
        return img


class RandomChoice:
    """Reproduces torchvision.transforms.RandomChoice with other random numbers."""

    def __init__(self, transforms, p=None):
        self.transforms, self.p = transforms, p

    def __call__(self, img):
        chances = None if self.p is None else np.asarray(self.p) / np.sum(self.p)
        return self.transforms[np.random.choice(len(self.transforms), p=chances)](img)


class RandomOrder:
    """Reproduces torchvision.transforms.RandomOrder with other random numbers."""

    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, img):
        for place in np.random.permutation(len(self.transforms)):
            img = self.transforms[place](img)
        return img
