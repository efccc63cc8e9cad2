"""In: matrices and vectors. Out: their products, norms, inverses and solutions, as torch's."""

import mindspore as ms
from mindspore import nn, ops
from mindspore.scipy import linalg

from migrate.helpers.complex_numbers import absolute, conj, real
from migrate.helpers.creation import broadcast_shapes
from migrate.helpers.dtypes import as_float, is_whole
from migrate.helpers.functional import vector_norm


def matmul(input, other):
    """torch.matmul; a product over no elements is zero, where MindSpore leaves it undefined."""
    product = ops.matmul(input, other)
    return product if input.shape[-1] else ops.zeros_like(product)


def grouped_mm(mat_a, mat_b, *, offs=None):
    """torch.nn.functional.grouped_mm: one product for each group, of the rows of ``mat_a``, of the
    columns of ``mat_b``, or of what is summed; ``offs`` holds the ends of the groups.

    Every product is of full size and masked, so that shapes do not depend on data. What no group
    holds becomes 0; torch leaves it as it was in memory.
    """
    if offs is None:
        return matmul(mat_a, mat_b)
    groups, rows, columns = range(offs.shape[0]), mat_a.ndim == 2, mat_b.ndim == 2
    sizes = (mat_a if rows else mat_b).shape
    place = ops.arange(sizes[-1] if columns else sizes[0])
    starts = ops.cat((ops.zeros_like(offs[:1]), offs[:-1]))
    inside = [ops.logical_and(place >= starts[i], place < offs[i]) for i in groups]
    if rows and columns:
        none, nil = ops.zeros_like(mat_a), ops.zeros_like(mat_b)
        parts = [(ops.where(m, mat_a, none), ops.where(m[:, None], mat_b, nil)) for m in inside]
        return ops.stack([matmul(a, b) for a, b in parts])
    found = [matmul(mat_a if rows else mat_a[i], mat_b if columns else mat_b[i]) for i in groups]
    masks = [m if columns else m[:, None] for m in inside]
    return sum([ops.where(m, y, ops.zeros_like(y)) for m, y in zip(masks, found)])


def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    """torch.addmm: beta * input + alpha * (mat1 @ mat2); beta 0 leaves the input out."""
    beta, alpha = factors_of(input, beta, alpha)
    product = matmul(mat1, mat2)
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product.broadcast_to(broadcast_shapes(input.shape, product.shape))
    return (input if beta == 1 else input * beta) + product


def factors_of(input, beta, alpha):
    """The factors of a product that is added to ``input``: torch cuts those of whole numbers."""
    return (int(beta), int(alpha)) if is_whole(input) else (beta, alpha)


def addbmm(input, batch1, batch2, *, beta=1, alpha=1):
    """torch.addbmm: beta * input + alpha * the sum of all products of a batch."""
    beta, alpha = factors_of(input, beta, alpha)
    return ops.addbmm(input, batch1, batch2, beta=beta, alpha=alpha)


def multi_dot(tensors):
    """torch.linalg.multi_dot: the product of all matrices, from left to right."""
    result = tensors[0]
    for one in tensors[1:]:
        result = matmul(result, one)
    return result


def vecdot(x, y, dim=-1):
    """torch.linalg.vecdot: the sum of conj(x) * y along ``dim``; zero over no elements."""
    product = conj(x) * y
    total = product.sum(dim)
    return total if product.size else ops.zeros_like(total)


def tensordot(a, b, dims=2):
    """torch.tensordot: over the last ``dims`` axes of ``a`` and first of ``b``, or two lists."""
    if isinstance(dims, int):
        dims = (list(range(a.ndim - dims, a.ndim)), list(range(dims)))
    ours = [axis % a.ndim for axis in dims[0]]
    theirs = [axis % b.ndim for axis in dims[1]]
    for mine, other in zip(ours, theirs):
        if a.shape[mine] != b.shape[other]:  # one of them has length 1 and is repeated
            a = a.sum(mine, keepdims=True) if b.shape[other] == 1 else a
            b = b.sum(other, keepdims=True) if a.shape[mine] == 1 else b
    rows = [axis for axis in range(a.ndim) if axis not in ours]
    columns = [axis for axis in range(b.ndim) if axis not in theirs]
    left = ops.permute(a, tuple(rows + ours))
    right = ops.permute(b, tuple(theirs + columns))
    inner = extent(left.shape[len(rows) :])
    product = matmul(
        left.reshape((extent(left.shape[: len(rows)]), inner)),
        right.reshape((inner, extent(right.shape[len(theirs) :]))),
    )
    return product.reshape(left.shape[: len(rows)] + right.shape[len(theirs) :])


def extent(shape):
    """The number of elements in a shape."""
    total = 1
    for size in shape:
        total = total * size
    return total


def stacked(A, B):
    """Two stacks of matrices, broadcast to the same leading axes."""
    batch = broadcast_shapes(A.shape[:-2], B.shape[:-2])
    return A.broadcast_to(batch + A.shape[-2:]), B.broadcast_to(batch + B.shape[-2:])


def cdist(x1, x2, p=2.0):
    """torch.cdist: distances between the rows of two stacks, whose leading axes broadcast."""
    x1, x2 = stacked(x1, x2)
    if x1.ndim <= 3:
        return ops.cdist(x1, x2, float(p))
    flat = ops.cdist(x1.flatten(0, -3), x2.flatten(0, -3), float(p))
    return flat.reshape((*x1.shape[:-1], x2.shape[-2]))


def identity(A, rows, columns):
    """The identity of ``rows`` x ``columns`` for every matrix of the stack ``A``."""
    return ops.eye(rows, columns, A.dtype).broadcast_to((*A.shape[:-2], rows, columns))


def solve(A, B, *, left=True):
    """torch.linalg.solve: X with A X = B (or X A = B); a singular matrix raises."""
    if not left:
        return solve_columns(A.mT, B.mT).mT
    if B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1]):
        return solve_columns(A, B.unsqueeze(-1)).squeeze(-1)
    return solve_columns(A, B)


def solve_columns(A, B):
    """X with A X = B for stacks of matrices, which broadcast."""
    A, B = stacked(A, B)
    return ops.matrix_solve(A, B) if B.size else B


def solve_ex(A, B, *, left=True, check_errors=False):
    """torch.linalg.solve_ex: (solution, zeros); a singular matrix raises here."""
    return solve(A, B, left=left), ops.zeros(A.shape[:-2], ms.int32)


def inverse(A):
    """torch.linalg.inv (torch.inverse); a singular matrix raises."""
    return solve_columns(A, identity(A, A.shape[-1], A.shape[-1]))


def inv_ex(A, *, check_errors=False):
    """torch.linalg.inv_ex: (inverse, zeros); a singular matrix raises here."""
    return inverse(A), ops.zeros(A.shape[:-2], ms.int32)


def solve_triangular(A, B, *, upper, left=True, unitriangular=False):
    """torch.linalg.solve_triangular: X with A X = B (or X A = B) for one triangle of A."""
    if not left:
        A, B = A.mT, B.mT
    A, B = stacked(A, B)
    X = B
    if B.size:
        X = linalg.solve_triangular(A, B, lower=bool(upper) != left, unit_diagonal=unitriangular)
    return X if left else X.mT


def triangular_solve(b, A, upper=True, transpose=False, unitriangular=False):
    """torch.triangular_solve: (X with A X = b or A^T X = b, A)."""
    matrix = A.mT if transpose else A
    solution = solve_triangular(matrix, b, upper=upper != transpose, unitriangular=unitriangular)
    return solution, stacked(A, b)[0]


def tensorinv(A, ind=2):
    """torch.linalg.tensorinv: the inverse of A as a map of its last axes to its first ``ind``."""
    rows = extent(A.shape[:ind])
    return inverse(A.reshape((rows, rows))).reshape(A.shape[ind:] + A.shape[:ind])


def tensorsolve(A, B, dims=None):
    """torch.linalg.tensorsolve: X with tensordot(A, X, X.ndim) = B; ``dims`` go to the end of A."""
    if dims is not None:
        moved = [axis % A.ndim for axis in dims]
        A = ops.permute(A, tuple([axis for axis in range(A.ndim) if axis not in moved] + moved))
    result = solve(A.reshape((B.size, B.size)), B.reshape((-1,)))
    return result.reshape(A.shape[B.ndim :])


def matrix_norm(input, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    """torch.linalg.matrix_norm by rows and columns, or by singular values."""
    if dtype is not None:
        input = input.astype(dtype)
    if ord == "fro" or (input.size == 0 and ord in ("nuc", 2)):
        return vector_norm(input, 2, tuple(dim), keepdim)
    rows, columns = dim[0] % input.ndim, dim[1] % input.ndim
    if ord in ("nuc", 2, -2):
        values = real(ops.svd(ops.movedim(input, (rows, columns), (-2, -1)), False, False))
        result = values.sum(-1) if ord == "nuc" else values[..., 0 if ord == 2 else -1]
        for axis in sorted((rows, columns)) if keepdim else ():
            result = result.unsqueeze(axis)
        return result
    first, last = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = absolute(input).sum(first, keepdims=True)
    result = ops.amax(sums, last, True) if ord > 0 else ops.amin(sums, last, True)
    return result if keepdim else result.sum((rows, columns))


def linalg_norm(input, ord=None, dim=None, keepdim=False, *, dtype=None):
    """torch.linalg.norm: of all elements, or of vectors or matrices."""
    if ord is None:
        return vector_norm(input, 2, dim, keepdim, dtype=dtype)
    matrices = (
        isinstance(ord, str) or input.ndim == 2
        if dim is None
        else (not isinstance(dim, int) and len(dim) == 2)
    )
    if matrices:
        return matrix_norm(input, ord, (0, 1) if dim is None else dim, keepdim, dtype=dtype)
    return vector_norm(input, ord, dim, keepdim, dtype=dtype)


def addr(input, vec1, vec2, *, beta=1, alpha=1):
    """torch.addr: beta * input + alpha * the outer product; beta 0 leaves the input out."""
    beta, alpha = factors_of(input, beta, alpha)
    product = alpha * (vec1.unsqueeze(1) * vec2.unsqueeze(0))
    result = product if beta == 0 else beta * input + product
    return result.astype(input.dtype) if input.dtype == vec1.dtype == vec2.dtype else result


def vander(x, N=None, increasing=False):
    """torch.vander: the powers of ``x`` as columns, falling unless ``increasing``."""
    x = x.reshape((1,)) if x.ndim == 0 else x
    count = x.shape[-1] if N is None else N
    powers = list(range(count)) if increasing else list(range(count - 1, -1, -1))
    return ops.stack([ops.ones_like(x) if p == 0 else ops.pow(x, p) for p in powers], -1)


def cov(input, *, correction=1, fweights=None, aweights=None):
    """torch.cov in the dtype of ``input``; of whole numbers in float32."""
    found = ops.cov(input, correction=correction, fweights=fweights, aweights=aweights)
    return found.astype(as_float(input).dtype)


def corrcoef(input):
    """torch.corrcoef: correlation of the rows, kept within [-1, 1]."""
    covariance = cov(input)
    if covariance.ndim == 0:
        return covariance / covariance
    spread = ops.sqrt(ops.diagonal(covariance))
    found = covariance / spread.unsqueeze(1) / spread.unsqueeze(0)
    return ops.where(ops.isnan(found), found, ops.clamp(found, -1, 1))


def det(A):
    """torch.linalg.det (torch.det) of a stack of matrices of any size, singular ones included."""
    if A.shape[-1] == 0:
        return ops.ones(A.shape[:-2], A.dtype)
    return Determinant()(A)


class Determinant(nn.Cell):
    """The determinant, with the adjugate as gradient: it exists for singular matrices too.

    From A = U S V^T: the gradient is det(U) det(V) U S' V^T, where S' has at i the product of all
    singular values but the i-th.
    """

    def construct(self, A):
        return A[..., 0, 0] if A.shape[-1] == 1 else ops.det(A)

    def bprop(self, A, out, dout):
        n = A.shape[-1]
        if n == 1:
            return (dout.unsqueeze(-1).unsqueeze(-1),)
        values, u, v = ops.svd(A)
        own = ops.eye(n, n, ms.bool_)
        others = ops.where(own, ops.ones_like(A), values.unsqueeze(-2)).prod(-1)
        scale = dout * ops.det(u) * ops.det(v)
        exact = ops.matmul(u * (others * scale.unsqueeze(-1)).unsqueeze(-2), v.mT)
        # far from singular the inverse is the more accurate way
        sound = (values[..., -1] > 1e-3 * values[..., 0]).unsqueeze(-1).unsqueeze(-1)
        plain = (dout * out).unsqueeze(-1).unsqueeze(-1) * ops.inverse(A).mT
        return (ops.where(sound, plain, exact),)


def slogdet(A):
    """torch.linalg.slogdet: (sign, logarithm of the absolute value) of the determinant."""
    n = A.shape[-1]
    if n == 0:
        return ops.ones(A.shape[:-2], A.dtype), ops.zeros(A.shape[:-2], A.dtype)
    if n == 1:
        size = absolute(A[..., 0, 0])
        return A[..., 0, 0] / size if ops.is_complex(A) else ops.sign(A[..., 0, 0]), ops.log(size)
    sign, size = ops.slogdet(A)
    return sign, real(size)


def logdet(A):
    """torch.logdet: nan for a negative determinant, -inf for a singular matrix."""
    sign, size = slogdet(A)
    return ops.where(sign < 0, ops.full_like(size, float("nan")), size)
