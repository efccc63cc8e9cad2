"""In: stacks of matrices. Out: their factors as torch.linalg has them, with gradients."""

import mindspore as ms
from mindspore import nn, ops
from mindspore.ops.operations.math_ops import SelfAdjointEig
from mindspore.scipy.ops import LU

from migrate.helpers.complex_numbers import adjoint, conj, real
from migrate.helpers.linear_algebra import identity, matmul, solve_triangular, stacked


class Cholesky(nn.Cell):
    """The lower Cholesky factor; gradient: Giles 2008, Collected matrix derivative results."""

    def construct(self, A):
        return ops.cholesky(A)

    def bprop(self, A, out, dout):
        inner = ops.matmul(out.mT, dout)
        inner = ops.tril(inner) - 0.5 * ops.tril(ops.triu(inner))
        half = solve_triangular(out.mT, inner, upper=True)
        half = solve_triangular(out, half, upper=False, left=False)
        return (0.5 * (half + half.mT),)


def cholesky(A, upper=False):
    """torch.linalg.cholesky of positive definite matrices; others raise."""
    if A.size == 0:
        return A
    return Cholesky()(A.mT).mT if upper else Cholesky()(A)


def cholesky_ex(A, *, upper=False, check_errors=False):
    """torch.linalg.cholesky_ex: (factor, zeros); a matrix not positive definite raises here."""
    return cholesky(A, upper), ops.zeros(A.shape[:-2], ms.int32)


class CholeskySolution(nn.Cell):
    """X with L L^T X = B, given with both; the gradient of L keeps both triangles, as torch's."""

    def construct(self, B, L, X):
        return X

    def bprop(self, B, L, X, out, dout):
        half = solve_triangular(L, dout, upper=False)
        solved = solve_triangular(L.mT, half, upper=True)
        inner = ops.matmul(solved, X.mT)
        return solved, -ops.matmul(inner + inner.mT, L), ops.zeros_like(X)


def cholesky_solve(B, L, upper=False):
    """torch.cholesky_solve: X with A X = B, where A has the Cholesky factor ``L``."""
    L, B = stacked(adjoint(L) if upper else L, B)
    if B.size == 0:
        return B
    half = solve_triangular(ops.stop_gradient(L), ops.stop_gradient(B), upper=False)
    X = solve_triangular(adjoint(ops.stop_gradient(L)), half, upper=True)
    return CholeskySolution()(B, L, X)


def cholesky_inverse(L, upper=False):
    """torch.cholesky_inverse: the inverse of the matrix that has the Cholesky factor ``L``."""
    return cholesky_solve(identity(L, L.shape[-1], L.shape[-1]), L, upper)


class SquareLU(nn.Cell):
    """The packed factors of A = P L U and the pivots; gradient: de Hoog, Anderssen, Lukas 2011."""

    def construct(self, A):
        packed, pivots, _ = LU()(A)
        return packed, pivots

    def bprop(self, A, out, dout):
        packed, pivots = out
        n = A.shape[-1]
        lower = ops.tril(packed, -1) + identity(A, n, n)
        inner = ops.tril(ops.matmul(lower.mT, ops.tril(dout[0], -1)), -1) + ops.triu(
            ops.matmul(ops.triu(dout[0]), ops.triu(packed).mT)
        )
        half = solve_triangular(lower.mT, inner, upper=True, unitriangular=True)
        half = solve_triangular(ops.triu(packed).mT, half, upper=False, left=False)
        return (ops.matmul(permutation(packed, pivots + 1), half),)


def permutation(packed, pivots):
    """The matrix P of A = P L U from packed factors and their pivots, which count from 1."""
    if packed.size == 0:
        return identity(packed, packed.shape[-2], packed.shape[-2])
    return ops.lu_unpack(ops.stop_gradient(packed), pivots)[0]


def lu_factor(A, *, pivot=True):
    """torch.linalg.lu_factor: (L and U in one matrix, int32 pivots that count from 1)."""
    rows, columns = A.shape[-2:]
    least = min(rows, columns)
    if A.size == 0:
        return A, ops.zeros((*A.shape[:-2], least), ms.int32)
    if rows <= columns:
        packed, pivots = SquareLU()(A[..., :least])
        if rows == columns:
            return packed, pivots + 1
        right = ops.matmul(permutation(packed, pivots + 1).mT, A[..., least:])
        right = solve_triangular(packed, right, upper=False, unitriangular=True)
        return ops.cat((packed, right), -1), pivots + 1
    # the kernel takes no tall matrices: it finds the pivots of one made square with zeros
    zeros = ops.zeros((*A.shape[:-1], rows - columns), A.dtype)
    wide, pivots, _ = LU()(ops.stop_gradient(ops.cat((A, zeros), -1)))
    pivots = pivots[..., :columns] + 1
    sorted_rows = ops.matmul(permutation(wide[..., :columns], pivots).mT, A)
    packed, _ = SquareLU()(sorted_rows[..., :columns, :])
    below = solve_triangular(packed, sorted_rows[..., columns:, :], upper=True, left=False)
    return ops.cat((packed, below), -2), pivots


def lu_factor_ex(A, *, pivot=True, check_errors=False):
    """torch.linalg.lu_factor_ex: (packed factors, pivots, zeros); singular ones give nan here."""
    packed, pivots = lu_factor(A)
    return packed, pivots, ops.zeros(A.shape[:-2], ms.int32)


def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True):
    """torch.lu_unpack: (P, L, U) with A = P L U; what is not asked for is empty."""
    rows, columns = LU_data.shape[-2:]
    least = min(rows, columns)
    P = L = U = ops.zeros((0,), LU_data.dtype)
    if unpack_pivots:
        P = permutation(LU_data, LU_pivots)
    if unpack_data and LU_data.size == 0:
        L = identity(LU_data, rows, least)
        U = ops.zeros((*LU_data.shape[:-2], least, columns), LU_data.dtype)
    elif unpack_data:
        L = ops.tril(LU_data[..., :least], -1) + identity(LU_data, rows, least)
        U = ops.triu(LU_data[..., :least, :])
    return P, L, U


def lu(A, *, pivot=True):
    """torch.linalg.lu: (P, L, U) with A = P L U."""
    packed, pivots = lu_factor(A)
    return lu_unpack(packed, pivots)


def lu_solve(factors, pivots, B, *, left=True, adjoint=False):
    """torch.linalg.lu_solve: X with A X = B (or X A = B, or A^T) from the factors of A."""
    right = B if left else B.mT
    P = permutation(factors, pivots)
    factors = conj(factors) if adjoint else factors
    if adjoint == left:
        half = solve_triangular(factors.mT, right, upper=False)
        X = matmul(P, solve_triangular(factors.mT, half, upper=True, unitriangular=True))
    else:
        half = solve_triangular(factors, matmul(P.mT, right), upper=False, unitriangular=True)
        X = solve_triangular(factors, half, upper=True)
    return X if left else X.mT


class TallQR(nn.Cell):
    """The QR factors of matrices with no more columns than rows; gradient: Walter, Lehmann 2012."""

    def construct(self, A):
        return ops.qr(A)

    def bprop(self, A, out, dout):
        Q, R = out
        inner = ops.triu(ops.matmul(dout[1], R.mT) - ops.matmul(Q.mT, dout[0]))
        inner = inner + inner.mT - ops.tril(inner)  # both triangles, the diagonal once
        outer = dout[0] + ops.matmul(Q, inner)
        return (solve_triangular(R.mT, outer, upper=False, left=False),)


def qr(A, mode="reduced"):
    """torch.linalg.qr: (Q, R); the signs are LAPACK's. 'complete' of tall ones has no gradient."""
    rows, columns = A.shape[-2:]
    least = min(rows, columns)
    size = rows if mode == "complete" else least
    if A.size == 0:
        Q, R = identity(A, rows, size), ops.zeros((*A.shape[:-2], size, columns), A.dtype)
    elif size > columns:
        Q, R = ops.qr(A, "complete")
    else:
        Q, R = TallQR()(A[..., :least])
        if columns > least:
            R = ops.cat((R, ops.matmul(adjoint(Q), A[..., least:])), -1)
    return (ops.zeros((0,), A.dtype) if mode == "r" else Q), R


def svd(A, full_matrices=True):
    """torch.linalg.svd: (U, S, Vh); the signs of vectors may differ."""
    rows, columns = A.shape[-2:]
    least = min(rows, columns)
    if A.size == 0:
        left, right = (rows, columns) if full_matrices else (least, least)
        values = real(ops.zeros((*A.shape[:-2], least), A.dtype))
        return identity(A, rows, left), values, identity(A, right, columns)
    s, u, v = ops.svd(A, False)
    if full_matrices and rows != columns:
        # the vectors that complete the basis have no gradient in torch either
        _, whole_u, whole_v = ops.svd(ops.stop_gradient(A), True)
        u = ops.cat((u, whole_u[..., least:]), -1) if rows > least else u
        v = ops.cat((v, whole_v[..., least:]), -1) if columns > least else v
    return u, real(s), adjoint(v)


def svd_usv(input, some=True, compute_uv=True):
    """torch.svd: (U, S, V); the signs of vectors may differ. Zeros unless ``compute_uv``."""
    u, s, vh = svd(input, not some)
    if not compute_uv:
        rows, columns = input.shape[-2:]
        u = ops.zeros((*input.shape[:-2], rows, rows), input.dtype)
        vh = ops.zeros((*input.shape[:-2], columns, columns), input.dtype)
    return u, s, adjoint(vh)


def svdvals(A):
    """torch.linalg.svdvals: singular values in descending order."""
    return real(ops.svd(A, False, False)) if A.size else svd(A)[1]


class SymmetricEigen(nn.Cell):
    """Eigenvalues and vectors of symmetric matrices; gradient: Giles 2008."""

    def construct(self, A):
        values, vectors = SelfAdjointEig(True)(A)
        return values, vectors

    def bprop(self, A, out, dout):
        values, vectors = out
        gaps = values.unsqueeze(-2) - values.unsqueeze(-1)
        turned = ops.matmul(vectors.mT, dout[1])
        turned = 0.5 * (turned - turned.mT)  # the gradient is that of a symmetric matrix
        turned = turned / ops.where(turned == 0, ops.ones_like(gaps), gaps)
        inner = turned + identity(A, A.shape[-1], A.shape[-1]) * dout[0].unsqueeze(-1)
        return (ops.matmul(ops.matmul(vectors, inner), vectors.mT),)


def eigh(A, UPLO="L"):
    """torch.linalg.eigh: (values in ascending order, vectors); the signs may differ."""
    if A.size == 0:
        return real(ops.zeros(A.shape[:-1], A.dtype)), A
    lower = A if UPLO in ("L", "l") else adjoint(A)
    values, vectors = SymmetricEigen()(lower)
    return real(values), vectors


def eig(A):
    """torch.linalg.eig: (values, vectors), complex, without gradient; the order may differ."""
    if A.size == 0:
        return ops.zeros(A.shape[:-1], ms.complex64), ops.zeros(A.shape, ms.complex64)
    values, vectors = ops.eig(A)
    return values, vectors


def geqrf(input):
    """torch.geqrf: (R with the reflectors below, tau), no gradient; signs of rows may differ."""
    if input.size == 0:
        rows, columns = input.shape[-2:]
        return input, ops.zeros((*input.shape[:-2], min(rows, columns)), input.dtype)
    return ops.geqrf(input)
