"""In: settings of torchvision.transforms. Out: callables that change images in the same way.

Random ones draw from numpy: the same distributions, other numbers.
"""

import mindspore as ms

from migrate.helpers.images import (
    center_cropped,
    grey_image,
    image_in_dtype,
    image_to_bytes,
    image_to_tensor,
    normalized_image,
    padded_image,
    resized_image,
    tensor_to_image,
)


class Compose:
    """Reproduces torchvision.transforms.Compose: one transform after another."""

    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, img):
        for transform in self.transforms:
            img = transform(img)
        return img


class ToTensor:
    """Reproduces torchvision.transforms.ToTensor: (channels, height, width), bytes as 0 to 1."""

    def __call__(self, pic):
        return image_to_tensor(pic)


class PILToTensor:
    """Reproduces torchvision.transforms.PILToTensor: (channels, height, width), values stay."""

    def __call__(self, pic):
        return image_to_bytes(pic)


class ToPILImage:
    """Reproduces torchvision.transforms.ToPILImage for bytes and floats from 0 to 1."""

    def __call__(self, pic):
        return tensor_to_image(pic)


class ConvertImageDtype:
    """Reproduces torchvision.transforms.ConvertImageDtype for bytes and floats."""

    def __init__(self, dtype=ms.float32):
        self.dtype = dtype

    def __call__(self, image):
        return image_in_dtype(image, self.dtype)


class Normalize:
    """Reproduces torchvision.transforms.Normalize of float Tensors."""

    def __init__(self, mean, std, inplace=False):
        self.mean, self.std = mean, std

    def __call__(self, tensor):
        return normalized_image(tensor, self.mean, self.std)


class Resize:
    """Reproduces torchvision.transforms.Resize of images of PIL, pixel by pixel."""

    def __init__(self, size, interpolation="bilinear", max_size=None, antialias=True):
        self.size, self.interpolation, self.max_size = size, interpolation, max_size

    def __call__(self, img):
        return resized_image(img, self.size, self.interpolation, self.max_size)


class CenterCrop:
    """Reproduces torchvision.transforms.CenterCrop; black where the image ends."""

    def __init__(self, size):
        self.size = size

    def __call__(self, img):
        return center_cropped(img, self.size)


class Pad:
    """Reproduces torchvision.transforms.Pad: left, top, right and bottom."""

    def __init__(self, padding, fill=0, padding_mode="constant"):
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode

    def __call__(self, img):
        return padded_image(img, self.padding, self.fill, self.padding_mode)


class Grayscale:
    """Reproduces torchvision.transforms.Grayscale of images of PIL."""

    def __init__(self, num_output_channels=1):
        self.num_output_channels = num_output_channels

    def __call__(self, img):
        return grey_image(img, self.num_output_channels)
