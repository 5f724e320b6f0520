"""Sparse matrices on the host: what any of them becomes before it is used.

Rows are stored one after another as (column, value) pairs, columns ascending, none twice. SciPy is
never imported here: who hands in a SciPy matrix has imported it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from jaxsolvers.checks import MAX_COUNT, check_finite, is_real

_SORT_ENTRIES = 1 << 22  # entries looked at together


@dataclasses.dataclass(frozen=True, eq=False)
class Csr:
    """An (n, d) matrix by rows; the arrays are the user's own where they already fit."""

    data: np.ndarray  # (entries,)
    indices: np.ndarray  # (entries,) int32, ascending within a row
    indptr: np.ndarray  # (n + 1,) int64
    shape: tuple[int, int]

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype

    @property
    def lengths(self) -> np.ndarray:
        """Entries of each row, (n,) int64."""
        return np.diff(self.indptr)

    def take(self, rows: Any) -> Csr:
        """The rows at these positions, in their order; consecutive ones (a slice) are views."""
        if isinstance(rows, slice):
            start, stop, step = rows.indices(self.shape[0])
            if step == 1:
                first, last = self.indptr[start], self.indptr[max(start, stop)]
                indptr = self.indptr[start : max(start, stop) + 1] - first
                shape = (len(indptr) - 1, self.shape[1])
                return Csr(self.data[first:last], self.indices[first:last], indptr, shape)
            rows = np.arange(start, stop, step)
        rows = np.asarray(rows)
        lengths = self.indptr[rows + 1] - self.indptr[rows]
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        # The place of each entry: where its row starts, and how far into the row it is.
        kind = np.int32 if len(self.data) <= MAX_COUNT else np.int64
        places = np.repeat((self.indptr[rows] - indptr[:-1]).astype(kind), lengths)
        places += np.arange(len(places), dtype=kind)
        shape = (len(rows), self.shape[1])
        return Csr(self.data[places], self.indices[places], indptr, shape)

    def active(self) -> tuple[np.ndarray, np.ndarray]:
        """The columns with an entry, ascending, and each entry's place among them (int32)."""
        columns, local = np.unique(self.indices, return_inverse=True)
        return columns.astype(np.int32), local.astype(np.int32)

    def dense(self, dtype: Any) -> np.ndarray:
        """The matrix as an (n, d) array."""
        whole = np.zeros(self.shape, dtype)
        whole[np.repeat(np.arange(self.shape[0]), self.lengths), self.indices] = self.data
        return whole


def is_sparse(X: Any) -> bool:
    """Whether X is a SciPy sparse matrix or array, a JAX BCOO, or a Csr."""
    return isinstance(X, Csr) or hasattr(X, "tocsr") or _is_bcoo(X)


def check_csr(X: Any, width: int | None = None, name: str = "X") -> Csr:
    """Any sparse matrix in canonical form: columns sorted, repeated ones summed.

    What the caller holds is never changed; a matrix that is canonical already is not copied.

    Raises:
      ValueError: not 2-d, of another width, without columns, not of real numbers, with NaN or
        infinity, with positions outside its shape or beyond 2^31 - 1; the message names it.
    """
    if isinstance(X, Csr):
        matrix = X
    else:
        matrix = _from_bcoo(X, name) if _is_bcoo(X) else _from_scipy(X, name)
    shape = matrix.shape
    if width is not None and shape[1] != width:
        raise ValueError(
            f"{name} must be of shape (n, {width}) as in training, got shape {shape}; a file is "
            f"read to that width with n_features={width}"
        )
    if shape[1] == 0:
        raise ValueError(f"{name} must have at least one feature, got shape {shape}")
    if not is_real(matrix.dtype):
        raise ValueError(f"{name} must hold real numbers, got dtype {matrix.dtype}")
    if isinstance(X, Csr):
        return matrix
    matrix = _checked(matrix, name)
    if not _is_canonical(matrix):
        matrix = _canonical(matrix)
    check_stored(matrix, name)
    return matrix


def check_stored(matrix: Csr, name: str) -> None:
    """Raise a ValueError that names the matrix and the place if an entry is NaN or infinite."""
    try:
        check_finite(matrix.data, name)
    except ValueError:
        at = int(np.flatnonzero(~np.isfinite(matrix.data))[0])
        row = int(np.searchsorted(matrix.indptr, at, side="right")) - 1
        place = (row, int(matrix.indices[at]))
        raise ValueError(f"{name} must be finite, got {matrix.data[at]} at {place}") from None


def _is_bcoo(X: Any) -> bool:
    return type(X).__name__ == "BCOO" and hasattr(X, "indices") and hasattr(X, "data")


def _from_bcoo(X: Any, name: str) -> Csr:
    if X.ndim != 2 or X.n_batch or X.n_dense:
        raise ValueError(
            f"{name} must be 2-d (n samples, d features), got a BCOO of shape {tuple(X.shape)} "
            f"with {X.n_batch} batch and {X.n_dense} dense dimensions"
        )
    n, d = map(int, X.shape)
    _check_size(n, d, name)
    positions, data = np.asarray(X.indices).astype(np.int64), np.asarray(X.data)
    # Padding entries of a BCOO lie outside its shape and count nothing.
    inside = (positions < np.array([n, d])).all(axis=1)
    positions, data = positions[inside], data[inside]
    order = np.argsort(positions[:, 0], kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(positions[:, 0], minlength=n))])
    return Csr(data[order], positions[order, 1], indptr, (n, d))


def _from_scipy(X: Any, name: str) -> Csr:
    shape = tuple(int(size) for size in X.shape)
    if len(shape) != 2:
        raise ValueError(f"{name} must be 2-d (n samples, d features), got shape {shape}")
    _check_size(*shape, name)
    if getattr(X, "format", "") != "csr":
        if not is_real(X.dtype):
            raise ValueError(f"{name} must hold real numbers, got dtype {X.dtype}")
        X = X.tocsr()
    return Csr(X.data, X.indices, np.asarray(X.indptr).astype(np.int64), shape)


def _check_size(n: int, d: int, name: str) -> None:
    if max(n, d) > MAX_COUNT:
        raise ValueError(f"{name} must have at most 2^31 - 1 rows and columns, got shape {(n, d)}")


def _checked(matrix: Csr, name: str) -> Csr:
    """The matrix with int32 columns, once its arrays are known to fit together."""
    n, d = matrix.shape
    indptr, indices, data = matrix.indptr, matrix.indices, matrix.data
    sound = indptr.shape == (n + 1,) and indptr[0] == 0 and (np.diff(indptr) >= 0).all()
    if not sound or indptr[-1] > min(len(indices), len(data)):
        raise ValueError(f"{name} must be a sound CSR matrix: its indptr does not fit its entries")
    indices, data = indices[: indptr[-1]], data[: indptr[-1]]
    if len(indices) and (indices.min() < 0 or indices.max() >= d):
        bad = indices[(indices < 0) | (indices >= d)][0]
        raise ValueError(f"{name} must have columns in 0 ... {d - 1}, got the column index {bad}")
    return Csr(data, indices.astype(np.int32, copy=False), indptr, matrix.shape)


def _is_canonical(matrix: Csr) -> bool:
    """Whether the columns of every row ascend strictly."""
    indices, indptr = matrix.indices, matrix.indptr
    starts = np.zeros(len(indices) + 1, bool)
    starts[indptr[:-1]] = True
    for first in range(1, len(indices), _SORT_ENTRIES):
        last = min(first + _SORT_ENTRIES, len(indices))
        rising = indices[first:last] > indices[first - 1 : last - 1]
        if not (rising | starts[first:last]).all():
            return False
    return True


def _canonical(matrix: Csr) -> Csr:
    n, d = matrix.shape
    rows = np.repeat(np.arange(n), matrix.lengths)
    order = np.lexsort((matrix.indices, rows))
    rows, columns, data = rows[order], matrix.indices[order], matrix.data[order]
    new = np.ones(len(rows), bool)
    new[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    first = np.flatnonzero(new)
    if data.dtype == bool:
        data = data.astype(np.int64)
    # Sums of float16 or int8 would leave their range long before the working dtype does.
    if len(first):
        wide = np.float64 if data.dtype.kind == "f" else np.int64
        data = np.add.reduceat(data.astype(wide), first).astype(
            data.dtype if data.dtype.kind == "f" else wide
        )
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[first], minlength=n))])
    return Csr(data, columns[first], indptr, (n, d))
