"""In: images and a grid of places. Out: torch.nn.functional.grid_sample, bicubic included."""

import mindspore as ms
from mindspore import ops

from migrate.helpers.interpolation import cubic_weight


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """torch.nn.functional.grid_sample: MindSpore's for mode='bilinear', by gathering otherwise."""
    if mode == "nearest":
        return nearest_pixels(input, grid, padding_mode, align_corners)
    if mode != "bicubic":
        return ops.grid_sample(input, grid, mode, padding_mode, bool(align_corners))
    height, width = input.shape[2], input.shape[3]
    x = grid_place(grid[..., 0], width, align_corners)
    y = grid_place(grid[..., 1], height, align_corners)
    left, top = ops.floor(x), ops.floor(y)
    pixels = input.reshape((*input.shape[:2], height * width))
    result = 0.0
    for i in (-1, 0, 1, 2):
        rows, seen = neighbour(top + i, height, padding_mode, align_corners)
        across = 0.0
        for j in (-1, 0, 1, 2):
            columns, there = neighbour(left + j, width, padding_mode, align_corners)
            taken = pixels_at(pixels, rows * width + columns, ops.logical_and(seen, there))
            across = across + taken * cubic_weight(ops.abs(x - left - j), -0.75).unsqueeze(1)
        result = result + across * cubic_weight(ops.abs(y - top - i), -0.75).unsqueeze(1)
    return result


def nearest_pixels(input, grid, padding_mode, align_corners):
    """The pixels that are nearest to the places of a grid; halves go to the even one, as in torch,
    and not away from zero."""
    sizes, places, counts = input.shape[2:], 0, True
    for axis in range(len(sizes)):
        at = grid_place(grid[..., len(sizes) - 1 - axis], sizes[axis], align_corners)
        if padding_mode == "reflection":
            at = reflected(at, sizes[axis], align_corners)
        mode = "zeros" if padding_mode == "zeros" else "border"
        place, seen = neighbour(ops.round(at), sizes[axis], mode, align_corners)
        places, counts = places * sizes[axis] + place, ops.logical_and(seen, counts)
    return pixels_at(input.reshape((*input.shape[:2], -1)), places, counts)


def reflected(place, size, align_corners):
    """Places that lie outside, mirrored at the borders as often as it takes."""
    low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
    away = ops.abs(place - low)
    turns = ops.floor(away / max(span, 1.0))
    rest = away - turns * span
    back = turns - 2 * ops.floor(turns / 2) == 1
    return ops.where(back, span - rest, rest) + low


def grid_place(at, size, align_corners):
    """Places from -1 to 1 in units of pixels."""
    return (at + 1) / 2 * (size - 1) if align_corners else ((at + 1) * size - 1) / 2


def neighbour(place, size, padding_mode, align_corners):
    """Whole places as int32 inside 0 ... size - 1, and whether each one counts."""
    seen = ops.logical_and(place >= 0, place <= size - 1)
    if padding_mode == "reflection":
        place = reflected(place, size, align_corners)
    counts = seen if padding_mode == "zeros" else ops.ones_like(seen)
    return ops.clamp(place, 0, size - 1).astype(ms.int32), counts


def pixels_at(pixels, places, counts):
    """(N, C, H, W) out of pixels (N, C, P) at places (N, H, W), 0 where they do not count."""
    flat = places.reshape((places.shape[0], 1, -1))
    flat = flat.broadcast_to((pixels.shape[0], pixels.shape[1], flat.shape[2]))
    taken = ops.gather_elements(pixels, 2, flat)
    taken = taken.reshape((*pixels.shape[:2], *places.shape[1:]))
    return ops.where(counts.unsqueeze(1), taken, ops.zeros_like(taken))
