"""In: dtypes. Out: what torch's dtypes know of themselves."""

import mindspore as ms
import numpy as np


def is_floating_dtype(dtype):
    """torch.dtype.is_floating_point."""
    return dtype in (ms.float16, ms.bfloat16, ms.float32, ms.float64)


def is_complex_dtype(dtype):
    """torch.dtype.is_complex."""
    return dtype in (ms.complex64, ms.complex128)


def is_whole(x):
    """Whether a Tensor holds whole numbers or truth values, no fractions and no complex numbers."""
    return not (is_floating_dtype(x.dtype) or is_complex_dtype(x.dtype))


def as_float(x):
    """The tensor itself if it has a fractional part, else as float32, as torch promotes it."""
    return x.astype(ms.float32) if is_whole(x) else x


def is_signed_dtype(dtype):
    """torch.dtype.is_signed: whether it holds negative numbers."""
    return dtype not in (ms.bool_, ms.uint8, ms.uint16, ms.uint32, ms.uint64)


def dtype_size(dtype):
    """torch.dtype.itemsize: bytes of one number."""
    if dtype in (ms.bool_, ms.int8, ms.uint8):
        return 1
    if dtype in (ms.float16, ms.bfloat16, ms.int16, ms.uint16):
        return 2
    if dtype == ms.complex128:
        return 16
    return 4 if dtype in (ms.float32, ms.int32, ms.uint32) else 8


def plain_number(value):
    """A number of numpy's as one of Python's: on the left of a Tensor numpy would compute.

    Raises TypeError for an array, as torch does.
    """
    if isinstance(value, np.ndarray):
        raise TypeError("unsupported operand type(s): 'numpy.ndarray' and 'Tensor'")
    return value.item() if isinstance(value, np.generic) else value


def as_beside(value, other):
    """A Tensor as torch takes it beside another: without dimensions, in the dtype of that."""
    alike = kind_of_numbers(value.dtype) == kind_of_numbers(other.dtype)
    return value.astype(other.dtype) if alike and value.ndim == 0 and other.ndim else value


def kind_of_numbers(dtype):
    """0 for truth values, 1 for whole, 2 for real and 3 for complex numbers."""
    if is_complex_dtype(dtype):
        return 3
    return 2 if is_floating_dtype(dtype) else int(dtype != ms.bool_)


def paired(input, other):
    """Two operands as torch promotes them: among numbers of one kind a Tensor without dimensions
    takes the dtype of the other, where MindSpore takes the wider dtype."""
    if not (isinstance(input, ms.Tensor) and isinstance(other, ms.Tensor)):
        return input, other
    return as_beside(input, other), as_beside(other, input)


class DtypeText(str):
    """The text of a dtype, which is the same by ``repr``."""

    __slots__ = ()
    __repr__ = str.__str__


def dtype_text(value):
    """The text of a dtype as torch writes it, "torch.float32"; what is none stays as it is."""
    if not isinstance(value, ms.Type):
        return value
    return DtypeText(f"torch.{repr(value).rpartition('.')[2]}")


def dtype_named(name):
    """The dtype that torch has under a name; all else of torch was not converted."""
    names = {
        "bool": ms.bool_, "uint8": ms.uint8, "uint16": ms.uint16, "uint32": ms.uint32,
        "uint64": ms.uint64, "int8": ms.int8, "int16": ms.int16, "short": ms.int16,
        "int32": ms.int32, "int": ms.int32, "int64": ms.int64, "long": ms.int64,
        "float16": ms.float16, "half": ms.float16, "bfloat16": ms.bfloat16,
        "float32": ms.float32, "float": ms.float32, "float64": ms.float64,
        "double": ms.float64, "complex64": ms.complex64, "cfloat": ms.complex64,
        "complex128": ms.complex128, "cdouble": ms.complex128,
    }  # fmt: skip
    if name not in names:
        raise NotImplementedError(f"torch2ms API111 torch.{name}")
    return names[name]


def array_dtype(x):
    """``x.numpy().dtype`` of a Tensor, without the array; raises TypeError for bfloat16."""
    return np.dtype(str(x.dtype).lower())
