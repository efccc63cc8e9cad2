"""A padded Tensor has numpy's elements, its own dtype, and a gradient of what was padded."""

from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest

from migrate.helpers.images import padded_image

SIDES = ((2, 2, 2, 0), (1, 0, 1, 0), (0, 0, 0, 0), (0, 1, 0, 3))  # left, top, right, bottom


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
@pytest.mark.parametrize("shape", [(2, 3, 4, 4), (5, 7)])
def test_a_padded_tensor_has_the_elements_of_numpy(shape: tuple[int, ...], mode: str) -> None:
    source, compared = np.random.RandomState(0), 0
    for left, top, right, bottom in SIDES:
        around = ((0, 0),) * (len(shape) - 2) + ((top, bottom), (left, right))
        for dtype in ("float32", "uint8", "int64", "bool"):
            array = (source.rand(*shape) * 9).astype(dtype)
            values = {"constant_values": 1} if mode == "constant" else {}
            wanted = np.pad(array, around, mode, **values)  # type: ignore[call-overload]
            made = padded_image(ms.Tensor(array), (left, top, right, bottom), 1, mode)
            assert made.asnumpy().dtype == array.dtype and np.array_equal(made.asnumpy(), wanted)
            compared += wanted.size
    assert compared > 500


def test_a_padded_tensor_hands_its_gradient_on() -> None:
    for left, top, right, bottom in SIDES:
        array = np.random.RandomState(1).rand(2, 3, 4, 4).astype(np.float32)

        def padded(x: ms.Tensor) -> ms.Tensor:
            return padded_image(x, (left, top, right, bottom))  # noqa: B023

        cotangent = np.random.RandomState(2).rand(*padded(ms.Tensor(array)).shape)
        weight = ms.Tensor(cotangent.astype(np.float32))
        gradient = ms.grad(lambda x: (padded(x) * weight).sum())(ms.Tensor(array))  # noqa: B023
        rows, columns = slice(top, top + 4), slice(left, left + 4)
        assert np.allclose(gradient.asnumpy(), cotangent[..., rows, columns], atol=1e-6)
