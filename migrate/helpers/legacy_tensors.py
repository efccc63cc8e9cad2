"""In: what torch's old tensor constructors take. Out: tensors of the dtype in the name."""

import mindspore as ms
from mindspore import ops


def legacy_tensor(data, dtype):
    """One list, array or tensor in ``dtype``; whole numbers are sizes, filled with zeros.

    Raises ValueError for one tuple of whole numbers, which torch takes for data if it is a tuple
    and for sizes if it is a torch.Size: here a shape is a tuple.
    """
    if len(data) == 1 and isinstance(data[0], tuple) and all(type(n) is int for n in data[0]):
        raise ValueError(f"{data[0]} may be a shape or data: pass *shape, or list(data)")
    if len(data) == 1 and not isinstance(data[0], int):
        if isinstance(data[0], ms.Tensor):
            return data[0].astype(dtype)
        return ms.tensor(data[0], dtype=dtype)
    if len(data) == 0:
        return ms.tensor([], dtype=dtype)
    return ops.full(tuple(data), 0, dtype=dtype)


def DefaultTensor(*data):
    """torch.Tensor: a tensor as it is; else the data as float32; numbers are sizes of zeros."""
    if len(data) == 1 and isinstance(data[0], ms.Tensor):
        return data[0]
    return legacy_tensor(data, ms.float32)


def FloatTensor(*data):
    """torch.FloatTensor: the data as float32; numbers are sizes, filled with zeros."""
    return legacy_tensor(data, ms.float32)


def DoubleTensor(*data):
    """torch.DoubleTensor: the data as float64; numbers are sizes, filled with zeros."""
    return legacy_tensor(data, ms.float64)


def HalfTensor(*data):
    """torch.HalfTensor: the data as float16; numbers are sizes, filled with zeros."""
    return legacy_tensor(data, ms.float16)


def LongTensor(*data):
    """torch.LongTensor: the data as int64; numbers are sizes, filled with zeros."""
    return legacy_tensor(data, ms.int64)


def IntTensor(*data):
    """torch.IntTensor: the data as int32; numbers are sizes, filled with zeros."""
    return legacy_tensor(data, ms.int32)


def ShortTensor(*data):
    """torch.ShortTensor: the data as int16; numbers are sizes, filled with zeros."""
    return legacy_tensor(data, ms.int16)


def CharTensor(*data):
    """torch.CharTensor: the data as int8; numbers are sizes, filled with zeros."""
    return legacy_tensor(data, ms.int8)


def ByteTensor(*data):
    """torch.ByteTensor: the data as uint8; numbers are sizes, filled with zeros."""
    return legacy_tensor(data, ms.uint8)


def BoolTensor(*data):
    """torch.BoolTensor: the data as bool; numbers are sizes, filled with zeros."""
    return legacy_tensor(data, ms.bool_)


class TensorsOf(type):
    """The class of a class that every Tensor of its dtype is an instance of."""

    def __instancecheck__(cls, value):
        return isinstance(value, ms.Tensor) and value.dtype == cls.dtype


def TensorOf(dtype):
    """torch.LongTensor and its kin in ``isinstance``: every Tensor of that dtype is one."""
    return TensorsOf("TensorOf", (), {"dtype": dtype})
