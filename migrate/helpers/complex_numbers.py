"""In: Tensors that may hold complex numbers. Out: their parts, sizes, products and conjugates."""

import mindspore as ms
from mindspore import ops

from migrate.helpers.creation import broadcast_shapes
from migrate.helpers.dtypes import as_float


def real(input):
    """torch.real: a real tensor is its own real part."""
    return ops.real(input) if ops.is_complex(input) else input


def conj(input):
    """torch.conj: a real tensor is its own conjugate."""
    return ops.conj(input) if ops.is_complex(input) else input


def magnitude(x):
    """What a norm of ``x`` is made of: the absolute values of complex numbers, real ones as is."""
    return ops.real(ops.abs(x)) if ops.is_complex(x) else x


def absolute(input):
    """torch.abs: of complex numbers it is real, where MindSpore's stays complex."""
    return ops.abs(magnitude(input))


def adjoint(x):
    """torch.adjoint: matrices transposed, and conjugated where they are complex."""
    return conj(x.mT)


def complex_of(real, imag):
    """torch.complex of a real and an imaginary part, which broadcast."""
    shape = broadcast_shapes(real.shape, imag.shape)
    return ops.Complex()(real.broadcast_to(shape), imag.broadcast_to(shape))


def view_as_complex(input):
    """torch.view_as_complex: a new tensor from pairs of parts in the last axis."""
    return ops.Complex()(input[..., 0], input[..., 1])


def complex_pair(left, right):
    """Both operands as Tensors of one complex dtype, where one of them is complex.

    MindSpore multiplies and divides equal dtypes only. Products of complex numbers have no
    gradient there, and graph mode takes no complex number of Python's: both raise.
    """
    dtype = ms.complex128 if is_double(left) or is_double(right) else ms.complex64
    return as_complex(left, dtype), as_complex(right, dtype)


def complex_parts(value):
    """The real and the imaginary part of a Tensor; the latter is 0 for real numbers."""
    if value.is_complex():
        return ops.real(value), ops.imag(value)
    value = as_float(value)
    return value, ops.zeros_like(value)


def complex_product(input, other):
    """The product of Tensors that may be complex, by its parts: they have a gradient."""
    if not (input.is_complex() or other.is_complex()):
        return input * other
    a, b = complex_parts(input)
    c, d = complex_parts(other)
    return ops.Complex()(a * c - b * d, a * d + b * c)


def complex_quotient(input, other):
    """The quotient of Tensors that may be complex, by its parts: they have a gradient."""
    if not (input.is_complex() or other.is_complex()):
        return input / other
    a, b = complex_parts(input)
    c, d = complex_parts(other)
    size = c * c + d * d
    return ops.Complex()((a * c + b * d) / size, (b * c - a * d) / size)


def is_double(value):
    """Whether a Tensor has 64 bits for each part."""
    return isinstance(value, ms.Tensor) and value.dtype in (ms.complex128, ms.float64)


def as_complex(value, dtype):
    """A Tensor or a number as a complex Tensor."""
    return value.astype(dtype) if isinstance(value, ms.Tensor) else ms.Tensor(value, dtype)
