"""In: matrices and vectors. Out: torch.linalg's norms, solvers and decompositions."""

from mindspore import ops

from migrate.helpers.functional import vector_norm


def matrix_norm(input, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    """torch.linalg.matrix_norm by rows and columns; spectral and nuclear norms go to ops."""
    if dtype is not None:
        input = input.astype(dtype)
    if ord == "fro":
        return vector_norm(input, 2, dim, keepdim)
    rows, columns = dim[0] % input.ndim, dim[1] % input.ndim
    if ord in ("nuc", 2, -2):
        return ops.matrix_norm(input, ord, (rows, columns), keepdim)
    first, last = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = input.abs().sum(first, keepdims=True)
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


def inverse(A):
    """torch.linalg.inv; a singular matrix gives zeros, where torch raises."""
    return ops.inverse(A)


def solve(A, B, *, left=True):
    """torch.linalg.solve: X with A X = B (or X A = B), through the inverse of A."""
    if not left:
        return ops.matmul(B, ops.inverse(A))
    if B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1]):
        return ops.matmul(ops.inverse(A), B.unsqueeze(-1)).squeeze(-1)
    return ops.matmul(ops.inverse(A), B)


def solve_triangular(A, B, *, upper, left=True, unitriangular=False):
    """torch.linalg.solve_triangular, through the inverse of the triangle of A."""
    triangle = ops.triu(A) if upper else ops.tril(A)
    if unitriangular:
        eye = ops.eye(A.shape[-1], A.shape[-1], A.dtype)
        triangle = triangle * (1 - eye) + eye
    return ops.matmul(ops.inverse(triangle), B) if left else ops.matmul(B, ops.inverse(triangle))


def multi_dot(tensors):
    """torch.linalg.multi_dot: the product of all matrices, from left to right."""
    result = tensors[0]
    for one in tensors[1:]:
        result = ops.matmul(result, one)
    return result


def vecdot(x, y, dim=-1):
    """torch.linalg.vecdot of real vectors along ``dim``."""
    return (x * y).sum(dim)


def svd(A, full_matrices=True):
    """torch.linalg.svd: (U, S, Vh); the signs of vectors may differ."""
    s, u, v = ops.svd(A, full_matrices)
    return u, s, v.swapaxes(-2, -1)


def svd_usv(input, some=True):
    """torch.svd: (U, S, V); the signs of vectors may differ."""
    s, u, v = ops.svd(input, not some)
    return u, s, v


def svdvals(A):
    """torch.linalg.svdvals: singular values in descending order."""
    return ops.svd(A, False, False)


def addr(input, vec1, vec2, *, beta=1, alpha=1):
    """torch.addr: beta * input + alpha * the outer product; beta 0 leaves the input out."""
    product = alpha * (vec1.unsqueeze(1) * vec2.unsqueeze(0))
    return product if beta == 0 else beta * input + product


def vander(x, N=None, increasing=False):
    """torch.vander: the powers of ``x`` as columns, falling unless ``increasing``."""
    count = x.shape[-1] if N is None else N
    powers = list(range(count)) if increasing else list(range(count - 1, -1, -1))
    return ops.stack([ops.ones_like(x) if p == 0 else ops.pow(x, p) for p in powers], -1)


def corrcoef(input):
    """torch.corrcoef: correlation of the rows, kept within [-1, 1]."""
    covariance = ops.cov(input)
    if covariance.ndim == 0:
        return covariance / covariance
    spread = ops.sqrt(ops.diagonal(covariance))
    return ops.clamp(covariance / spread.unsqueeze(1) / spread.unsqueeze(0), -1, 1)
