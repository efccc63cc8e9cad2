"""In: stacks of matrices. Out: pseudo-inverses, least squares, ranks, exponentials, reflections."""

import mindspore as ms
from mindspore import nn, ops

from migrate.helpers.complex_numbers import absolute, adjoint, magnitude
from migrate.helpers.decompositions import svd, svdvals
from migrate.helpers.linear_algebra import (
    identity,
    inverse,
    matmul,
    matrix_norm,
    solve_triangular,
)


def cutoff(A, values, atol=None, rtol=None):
    """The size below which torch.linalg takes a singular value of ``A`` for zero, per matrix."""
    if rtol is None:
        eps = 2.220446049250313e-16 if A.dtype == ms.float64 else 1.1920928955078125e-07
        rtol = eps * max(A.shape[-2:])
        if isinstance(atol, ms.Tensor):
            rtol = ops.where(atol > 0, ops.zeros_like(atol), ops.full_like(atol, rtol))
        elif atol is not None and atol > 0:
            rtol = 0.0
    largest = values[..., 0] * rtol
    atol = 0.0 if atol is None else atol
    return ops.maximum(largest, atol + ops.zeros_like(largest)).unsqueeze(-1)


class PseudoInverse(nn.Cell):
    """The pseudo-inverse X of A, given with it; gradient: Golub, Pereyra 1973."""

    def construct(self, A, X):
        return X

    def bprop(self, A, X, out, dout):
        turned = dout.mT
        inner = ops.matmul(turned, X)
        reach = ops.matmul(inner, X.mT)
        grad = reach - ops.matmul(X, inner).mT - ops.matmul(ops.matmul(A, X), reach)
        rest = turned - ops.matmul(inner, A)
        return grad + ops.matmul(ops.matmul(X.mT, X), rest), ops.zeros_like(X)


def mirrored(A):
    """The symmetric matrix that the lower triangle of A stands for."""
    return ops.tril(A) + adjoint(ops.tril(A, -1))


def pinv(A, rcond=None, hermitian=False, *, atol=None, rtol=None):
    """torch.linalg.pinv; of ``hermitian`` matrices the lower triangle counts."""
    rtol = rcond if rtol is None else rtol
    if A.size == 0:
        return A.mT
    u, s, vh = svd(ops.stop_gradient(mirrored(A) if hermitian else A), False)
    kept = s > cutoff(A, s, atol, rtol)
    inverted = ops.where(kept, 1 / ops.where(kept, s, ops.ones_like(s)), ops.zeros_like(s))
    return PseudoInverse()(A, ops.matmul(adjoint(vh) * inverted.unsqueeze(-2), adjoint(u)))


def matrix_rank(A, tol=None, hermitian=False, *, atol=None, rtol=None):
    """torch.linalg.matrix_rank: the number of singular values above the tolerance, int64."""
    if A.size == 0:
        return ops.zeros(A.shape[:-2], ms.int64)
    values = svdvals(mirrored(A) if hermitian else A)
    limit = cutoff(A, values, atol, rtol)
    if tol is not None:
        limit = (tol + ops.zeros_like(values[..., 0])).unsqueeze(-1)
    return (values > limit).astype(ms.int32).sum(-1).astype(ms.int64)


def cond(A, p=None):
    """torch.linalg.cond: the norm of A times the norm of its inverse."""
    if A.size == 0:
        return ops.zeros(A.shape[:-2], svdvals(A).dtype)
    if p is None or p in (2, -2):
        values = svdvals(A)
        ratio = values[..., 0] / values[..., -1]
        return 1 / ratio if p == -2 else ratio
    return matrix_norm(A, p) * matrix_norm(inverse(A), p)


def lstsq(A, B, driver=None):
    """torch.linalg.lstsq: (solution, residuals, rank, singular values), A of full rank.

    As in torch, residuals are empty for the driver 'gelsy' (the default) and where A is not tall,
    rank for 'gels', singular values for all but 'gelsd' and 'gelss'. An own rcond is not for us:
    the default driver cuts by a pivoted QR, not by singular values.
    """
    vectors = B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1])
    right = B.unsqueeze(-1) if vectors else B
    solution = matmul(pinv(A), right)
    rows, columns = A.shape[-2:]
    none = ops.zeros((0,), A.dtype)
    residuals = none
    if rows > columns and driver not in (None, "gelsy"):
        residuals = ops.square(magnitude(matmul(A, solution) - right)).sum(-2)
        residuals = residuals.squeeze(-1) if vectors else residuals
    rank = none.astype(ms.int64)
    if driver != "gels":
        rank = matrix_rank(ops.stop_gradient(A))
    values = svdvals(A) if driver in ("gelsd", "gelss") else none
    return (solution.squeeze(-1) if vectors else solution), residuals, rank, values


def svd_lowrank(A, q=6, niter=2, M=None):
    """torch.svd_lowrank: the ``q`` largest of (U, S, V) of A - M, exact instead of randomised."""
    u, s, vh = svd(A if M is None else A - M, False)
    return u[..., :q], s[..., :q], adjoint(vh)[..., :q]


def pca_lowrank(A, q=None, center=True, niter=2):
    """torch.pca_lowrank: svd_lowrank of A, its columns centred unless ``center`` is False."""
    q = min(6, A.shape[-2], A.shape[-1]) if q is None else q
    return svd_lowrank(A - A.mean(-2, keep_dims=True) if center else A, q)


def matrix_exp(A):
    """torch.linalg.matrix_exp by scaling and squaring; nan where the 1-norm is above 2 ** 16."""
    if A.size == 0:
        return A
    one = identity(A, A.shape[-1], A.shape[-1])
    size = ops.amax(absolute(ops.stop_gradient(A)).sum(-2), -1, True).unsqueeze(-1)
    halvings = ops.ceil(ops.log2(ops.maximum(size, ops.ones_like(size))))
    scaled = A * ops.exp2(-halvings)
    result = one
    for k in range(18 if A.dtype == ms.float64 else 12, 0, -1):
        result = one + ops.matmul(scaled, result) / k
    for k in range(16):
        result = ops.where(halvings > k, ops.matmul(result, result), result)
    return ops.where(halvings > 16, ops.full_like(result, float("nan")), result)


def reflectors(input, tau):
    """V and T with H_1 H_2 ... = 1 - V T V^T (Schreiber, Van Loan 1989), as geqrf has them."""
    count = tau.shape[-1]
    V = ops.tril(input[..., :count], -1) + identity(input, input.shape[-2], count)
    across = ops.triu(ops.matmul(adjoint(V), V), 1) * tau.unsqueeze(-1)
    scale = identity(input, count, count) * tau.unsqueeze(-1)
    return V, solve_triangular(across, scale, upper=True, unitriangular=True)


def householder_product(input, tau):
    """torch.linalg.householder_product (torch.orgqr): the first columns of Q."""
    rows, columns = input.shape[-2:]
    Q = identity(input, rows, columns)
    if tau.size == 0 or input.size == 0:
        return Q
    V, T = reflectors(input, tau)
    return Q - ops.matmul(ops.matmul(V, T), adjoint(V[..., :columns, :]))


def ormqr(input, tau, other, left=True, transpose=False):
    """torch.ormqr: Q @ other, or other @ Q, or with the transpose of Q."""
    if tau.size == 0 or other.size == 0:
        return other
    V, T = reflectors(input, tau)
    T = adjoint(T) if transpose else T
    if left:
        return other - ops.matmul(V, ops.matmul(T, ops.matmul(adjoint(V), other)))
    return other - ops.matmul(ops.matmul(ops.matmul(other, V), T), adjoint(V))
