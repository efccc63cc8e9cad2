"""Tensors as helpers make and change them: an error where torch's answer depends on what a tuple
was, or where a view is passed to what changes an argument."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("mindspore")


@pytest.mark.slow
def test_a_tuple_of_whole_numbers_is_refused() -> None:
    from migrate.helpers.legacy_tensors import FloatTensor, LongTensor

    with pytest.raises(ValueError, match=r"\(2, 3\) may be a shape or data"):
        FloatTensor((2, 3))
    assert FloatTensor((0.5, 2.0)).asnumpy().tolist() == [0.5, 2.0]
    assert LongTensor([2, 3]).asnumpy().tolist() == [2, 3]
    assert FloatTensor(2, 3).shape == (2, 3)
    assert FloatTensor(np.ones((2, 1))).dtype == FloatTensor(1).dtype


@pytest.mark.slow
def test_the_object_that_is_passed_changes_and_a_view_is_refused() -> None:
    import mindspore as ms

    from migrate.helpers.tensor import change_given

    ms.set_context(mode=ms.PYNATIVE_MODE)

    def doubled(view):
        def run(x):
            y = x * 1.5
            change_given(view(y), view(y) * 2)
            return (y * y).sum()

        return run

    x = ms.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    loss, gradient = ms.value_and_grad(doubled(lambda y: y))(x)
    assert np.allclose(loss.asnumpy(), (9 * x * x).sum().asnumpy())
    assert np.allclose(gradient.asnumpy(), (18 * x).asnumpy())
    views = [lambda y: y[0], lambda y: y[1:], lambda y: y[:, 1:], lambda y: y.T]
    shapes = [lambda y: y.view(-1), lambda y: y.expand_dims(0), lambda y: y.reshape(3, 2)]
    for view in views:
        with pytest.raises(NotImplementedError, match="INP206"):
            doubled(view)(x)
    for view in (*views, *shapes):
        with pytest.raises(NotImplementedError, match="INP206"):
            ms.value_and_grad(doubled(view))(x)
    for shape in shapes:  # one memory: the values are right where no gradient is recorded
        plain = doubled(shape)(ms.Tensor(x.asnumpy()))
        assert np.allclose(plain.asnumpy(), loss.asnumpy())
