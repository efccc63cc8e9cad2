"""In: what the old tensor constructors are given. Out: a tensor, or an error where torch's answer
depends on what a tuple was."""

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
