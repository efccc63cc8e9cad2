"""In: PIL images and image Tensors. Out: what torchvision.transforms.functional makes of them.

Images of PIL go through the calls of PIL that torchvision makes, so the pixels are the same. A
Tensor has the axes (..., height, width); what torchvision interpolates there is refused.
"""

import mindspore as ms
import numpy as np
from mindspore import Tensor, ops
from PIL import Image, ImageEnhance, ImageOps

RESAMPLING = {
    "nearest": Image.NEAREST,
    "nearest-exact": Image.NEAREST,
    "bilinear": Image.BILINEAR,
    "bicubic": Image.BICUBIC,
    "box": Image.BOX,
    "hamming": Image.HAMMING,
    "lanczos": Image.LANCZOS,
}


def is_image(img):
    """Whether it is an image of PIL, and not a Tensor; anything else is refused."""
    if not isinstance(img, (Image.Image, Tensor)):
        raise TypeError(f"an image of PIL or a Tensor is expected, not {type(img).__name__}")
    return isinstance(img, Image.Image)


def only_image(img, what):
    """The image of PIL that a transform asks for."""
    if not is_image(img):
        raise TypeError(f"{what} takes images of PIL here: put it in front of ToTensor()")
    return img


def size_pair(size):
    """(height, width) of a number, or of one or two numbers."""
    sizes = (size,) if isinstance(size, int) else tuple(size)
    if len(sizes) not in (1, 2):
        raise ValueError("a size is one number, or height and width")
    return (int(sizes[0]), int(sizes[-1]))


def height_and_width(img):
    """The size of an image or of an image Tensor."""
    return (img.height, img.width) if is_image(img) else tuple(img.shape[-2:])


def array_of_image(img):
    """The pixels of an image of PIL or array, as (channels, height, width)."""
    kinds = {"I": np.int32, "I;16": np.int16, "F": np.float32}
    if isinstance(img, Image.Image):
        array = np.array(img, kinds.get(img.mode, np.uint8))
        array = array * np.uint8(255) if img.mode == "1" else array
    elif isinstance(img, np.ndarray) and img.ndim in (2, 3):
        array = img
    else:
        raise TypeError(f"an image of PIL or an array of pixels is expected, not {type(img)}")
    array = array[:, :, None] if array.ndim == 2 else array
    return np.ascontiguousarray(array.transpose(2, 0, 1))


def image_to_tensor(pic):
    """Reproduces torchvision.transforms.functional.to_tensor: bytes become 0 to 1."""
    array = array_of_image(pic)
    return Tensor(array.astype(np.float32) / np.float32(255) if array.dtype == np.uint8 else array)


def image_to_bytes(pic):
    """Reproduces torchvision.transforms.functional.pil_to_tensor: values stay."""
    array = np.array(only_image(pic, "PILToTensor"))
    array = array[:, :, None] if array.ndim == 2 else array
    return Tensor(np.ascontiguousarray(array.transpose(2, 0, 1)))


def tensor_to_image(pic):
    """Reproduces torchvision.transforms.functional.to_pil_image for bytes and for 0 to 1."""
    array = pic.asnumpy() if isinstance(pic, Tensor) else np.asarray(pic)
    if isinstance(pic, Tensor):
        array = array[None] if array.ndim == 2 else array
        if array.dtype.kind == "f":
            array = (array * array.dtype.type(255)).astype(np.int64).astype(np.uint8)
        array = array.transpose(1, 2, 0)
    array = array[:, :, None] if array.ndim == 2 else array
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] > 4:
        raise TypeError("an image is made of bytes with one to four channels")
    return Image.fromarray(np.ascontiguousarray(array[:, :, 0] if array.shape[2] == 1 else array))


def image_in_dtype(image, dtype=ms.float32):
    """Reproduces torchvision.transforms.functional.convert_image_dtype for bytes and floats."""
    if image.dtype == dtype:
        return image
    if image.dtype == ms.uint8 and dtype.is_floating_point:
        return image.astype(dtype) / 255
    if image.is_floating_point() and dtype.is_floating_point:
        return image.astype(dtype)
    if image.is_floating_point() and dtype == ms.uint8:
        return (image * (255 + 1.0 - 1e-3)).astype(dtype)
    raise TypeError(f"pixels of {image.dtype} are not converted to {dtype} here")


def normalized_image(tensor, mean, std):
    """Reproduces torchvision.transforms.functional.normalize of a Tensor, channel by channel."""
    if not isinstance(tensor, Tensor) or not tensor.is_floating_point() or tensor.ndim < 3:
        raise TypeError("Normalize takes a float Tensor (..., channels, height, width)")
    mean, std = (Tensor(np.asarray(one), tensor.dtype).reshape((-1, 1, 1)) for one in (mean, std))
    return (tensor - mean) / std


def resized_image(img, size, interpolation="bilinear", max_size=None):
    """Reproduces torchvision.transforms.functional.resize of an image of PIL."""
    height, width = height_and_width(only_image(img, "Resize"))
    sizes = [size] if isinstance(size, int) else list(size)
    if len(sizes) == 2:
        if max_size is not None:
            raise ValueError("max_size is for a size of one number")
        new_height, new_width = sizes
    else:
        short, long = sorted((width, height))
        new_short, new_long = sizes[0], int(sizes[0] * long / short)
        if max_size is not None and max_size <= new_short:
            raise ValueError("max_size is larger than the size of the smaller edge")
        if max_size is not None and new_long > max_size:
            new_short, new_long = int(max_size * new_short / new_long), max_size
        new_width, new_height = (new_short, new_long) if width <= height else (new_long, new_short)
    return img.resize((new_width, new_height), RESAMPLING.get(interpolation, interpolation))


def fill_of(img, fill):
    """The colour that PIL fills with: a number for each channel."""
    channels = len(img.getbands())
    fill = 0 if fill is None else fill
    if isinstance(fill, (int, float)):
        fill = (fill,) * channels
    fill = tuple(fill) * channels if len(fill) == 1 else tuple(fill)
    if len(fill) != channels:
        raise ValueError(f"{len(fill)} numbers fill an image of {channels} channels")
    fill = fill if img.mode == "F" else tuple(int(one) for one in fill)
    return fill[0] if channels == 1 else fill


def padded_image(img, padding, fill=0, padding_mode="constant"):
    """Reproduces torchvision.transforms.functional.pad: left, top, right and bottom."""
    sides = [padding] if isinstance(padding, int) else list(padding)
    left, top, right, bottom = sides * (4 // len(sides))
    if min(left, top, right, bottom) < 0:
        raise ValueError("an image is padded by sizes from 0 on; use a crop for less")
    mode = "constant" if padding_mode == "constant" else padding_mode
    if is_image(img):
        if mode == "constant":
            return ImageOps.expand(img, border=(left, top, right, bottom), fill=fill_of(img, fill))
        array = np.asarray(img)
        around = ((top, bottom), (left, right), (0, 0))[: array.ndim]
        return Image.fromarray(np.pad(array, around, mode))
    for axis, (before, after) in ((-2, (top, bottom)), (-1, (left, right))):
        if mode == "constant":
            sides = [[*img.shape], [*img.shape]]
            sides[0][axis], sides[1][axis] = before, after
            ends = [ops.full(tuple(s), fill, dtype=img.dtype) for s in sides]
            img = ops.cat([p for p in (ends[0], img, ends[1]) if p.shape[axis]], axis)
        else:
            places = np.pad(np.arange(img.shape[axis]), (before, after), mode)
            img = ops.gather(img, Tensor(places), axis)
    return img


def cropped_image(img, top, left, height, width):
    """Reproduces torchvision.transforms.functional.crop; black where there is no image."""
    if is_image(img):
        return img.crop((left, top, left + width, top + height))
    rows, columns = height_and_width(img)
    if top < 0 or left < 0 or top + height > rows or left + width > columns:
        raise ValueError("the crop of a Tensor lies within it")
    return img[..., top : top + height, left : left + width]


def center_cropped(img, output_size):
    """Reproduces torchvision.transforms.functional.center_crop; black where the image ends."""
    height, width = size_pair(output_size)
    rows, columns = height_and_width(img)
    more, wider = max(height - rows, 0), max(width - columns, 0)
    if more or wider:
        sides = (wider // 2, more // 2, (wider + 1) // 2, (more + 1) // 2)
        img = padded_image(img, sides)
        rows, columns = height_and_width(img)
    top, left = round((rows - height) / 2.0), round((columns - width) / 2.0)
    return cropped_image(img, top, left, height, width)


def mirrored_image(img):
    """Reproduces torchvision.transforms.functional.hflip."""
    return ImageOps.mirror(img) if is_image(img) else ops.flip(img, (-1,))


def upside_down(img):
    """Reproduces torchvision.transforms.functional.vflip."""
    return ImageOps.flip(img) if is_image(img) else ops.flip(img, (-2,))


def rotated_image(img, angle, interpolation="nearest", expand=False, center=None, fill=0):
    """Reproduces torchvision.transforms.functional.rotate of an image of PIL."""
    only_image(img, "a rotation")
    mode = RESAMPLING.get(interpolation, interpolation)
    return img.rotate(angle, mode, expand, center, fillcolor=fill_of(img, fill))


def grey_image(img, num_output_channels=1):
    """Reproduces torchvision.transforms.functional.to_grayscale of an image of PIL."""
    grey = only_image(img, "Grayscale").convert("L")
    if num_output_channels not in (1, 3):
        raise ValueError("num_output_channels is 1 or 3")
    return grey if num_output_channels == 1 else Image.merge("RGB", (grey, grey, grey))


def with_brightness(img, brightness_factor):
    """Reproduces torchvision.transforms.functional.adjust_brightness of an image of PIL."""
    return ImageEnhance.Brightness(only_image(img, "a brightness")).enhance(brightness_factor)


def with_contrast(img, contrast_factor):
    """Reproduces torchvision.transforms.functional.adjust_contrast of an image of PIL."""
    return ImageEnhance.Contrast(only_image(img, "a contrast")).enhance(contrast_factor)


def with_saturation(img, saturation_factor):
    """Reproduces torchvision.transforms.functional.adjust_saturation of an image of PIL."""
    return ImageEnhance.Color(only_image(img, "a saturation")).enhance(saturation_factor)


def with_hue(img, hue_factor):
    """Reproduces torchvision.transforms.functional.adjust_hue of an image of PIL."""
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"hue_factor ({hue_factor}) is not in [-0.5, 0.5]")
    if only_image(img, "a hue").mode in ("L", "1", "I", "F"):
        return img
    hue, saturation, value = img.convert("HSV").split()
    turned = np.array(hue, np.uint8) + np.int32(hue_factor * 255).astype(np.uint8)
    return Image.merge("HSV", (Image.fromarray(turned), saturation, value)).convert(img.mode)
