"""Chunks of rows: what a source yields, checked, cut and joined."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from jaxsolvers.checks import (
    check_finite,
    check_matrix,
    check_reals,
    check_vector,
    host_array,
    is_real,
)
from jaxsolvers.csr import check_csr, check_stored, is_sparse
from jaxsolvers.data.extras import scipy_sparse


class QueryChunk(NamedTuple):
    """Rows with their query ids. A type of its own: the third part holds no weights.

    Args:
      X: (n, d).
      y: (n,) or (n, K).
      qid: (n,) int64.

    Example:
      >>> X, y, qid = QueryChunk(np.ones((2, 3)), np.array([1, 0]), np.array([7, 7]))
      >>> qid.tolist()
      [7, 7]
    """

    X: Any
    y: Any
    qid: np.ndarray


def as_csr(X: Any, name: str, dtype: DTypeLike | None = None) -> Any:
    """Any sparse matrix as a canonical ``csr_array``, its memory shared where it can be.

    Raises:
      ValueError: as :func:`check_csr`, or a value is infinite in the dtype; the message names X.
    """
    matrix = check_csr(X, name=name)
    values, indptr = matrix.data, matrix.indptr
    if dtype is not None:
        with np.errstate(over="ignore"):  # what overflows is refused below
            values = values.astype(dtype, copy=False)
        check_stored(dataclasses.replace(matrix, data=values), name)
    if indptr[-1] < 2**31:  # SciPy gives the columns the wider type of the two
        indptr = indptr.astype(np.int32)
    sparse = scipy_sparse("sparse rows")
    return sparse.csr_array((values, matrix.indices, indptr), shape=matrix.shape)


def checked_X(X: Any, width: int | None, dtype: np.dtype, name: str) -> Any:
    """Rows as a NumPy matrix or a ``csr_array`` of the dtype.

    Raises:
      ValueError: another width, another kind, NaN or infinity; the message names X.
    """
    if is_sparse(X):
        if width is not None and X.shape[1:] != (width,):
            raise ValueError(f"{name} must be of shape (n, {width}), got {X.shape}")
        return as_csr(X, name, dtype)
    array = np.asarray(check_matrix(X, width, name))
    with np.errstate(over="ignore"):  # what overflows is refused below
        array = array.astype(dtype, copy=False)
    check_finite(array, name)
    return array


def checked_y(y: Any, n: int, name: str) -> Any:
    """Labels (n,), or indicators (n, K) as a matrix or a ``csr_array``.

    Raises:
      ValueError: another shape; the message names y.
    """
    if is_sparse(y):
        y = as_csr(y, name)
    else:
        y = host_array(y, name)
        if y.ndim == 1:
            return check_vector(y, n, name)
    if y.ndim != 2 or y.shape[0] != n:
        raise ValueError(f"{name} must be of shape ({n},) or ({n}, K), got {y.shape}")
    return y


def checked_weight(weight: Any, n: int, name: str) -> np.ndarray:
    """Weights (n,) float64, finite and not negative; the message of the ValueError names them."""
    check_vector(weight, n, name)
    weight = check_reals(weight, name, "hold numbers >= 0", bools=True)
    if not (np.isfinite(weight) & (weight >= 0)).all():
        bad = weight[~(np.isfinite(weight) & (weight >= 0))][0]
        raise ValueError(f"{name} must be non-negative and finite, got {bad}")
    return weight


class ChunkCheck:
    """Checks the chunks of one epoch, each by itself and against the first.

    Raises:
      ValueError: from a call, for a chunk of another form; the message has its number from 0.
    """

    def __init__(self, n_features: int, dtype: np.dtype):
        self.n_features, self.dtype = n_features, dtype
        self.count = 0
        self._form = ""

    def __call__(self, chunk: Any) -> Any:
        """The chunk with its parts checked and of one dtype."""
        name = f"chunk {self.count}"
        if not isinstance(chunk, (tuple, list)) or len(chunk) not in (2, 3):
            shape = f"{len(chunk)} parts" if isinstance(chunk, (tuple, list)) else repr(chunk)
            raise ValueError(f"{name} must be (X, y) or (X, y, sample_weight), got {shape}")
        X = checked_X(chunk[0], self.n_features, self.dtype, f"X of {name}")
        n = X.shape[0]
        parts = [X, checked_y(chunk[1], n, f"y of {name}")]
        if isinstance(chunk, QueryChunk):
            parts.append(check_vector(chunk.qid, n, f"qid of {name}"))
        elif len(chunk) == 3:
            parts.append(checked_weight(chunk[2], n, f"sample_weight of {name}"))
        names = ("X", "y", "qid" if isinstance(chunk, QueryChunk) else "sample_weight")
        form = "; ".join(
            f"{part} {_form(array)}" for part, array in zip(names, parts, strict=False)
        )
        if n and self._form not in ("", form):
            raise ValueError(
                f"{name} must be of the form of the chunks before, {self._form}, got {form}"
            )
        if n:
            self._form = form
        self.count += 1
        return QueryChunk(*parts) if isinstance(chunk, QueryChunk) else tuple(parts)


def regrouped(chunks: Iterable[Any], rows: int) -> Iterator[Any]:
    """The same rows in chunks of exactly ``rows``, the last one shorter."""
    held: list[Any] = []
    waiting = 0
    for chunk in chunks:
        n, start = chunk[0].shape[0], 0
        while waiting + n - start >= rows:
            stop = start + rows - waiting
            yield _joined([*held, _cut(chunk, start, stop)])
            held, waiting, start = [], 0, stop
        if start < n:
            held.append(_cut(chunk, start, n))
            waiting += n - start
    if held:
        yield _joined(held)


def _cut(chunk: Any, start: int, stop: int) -> Any:
    if start == 0 and stop == chunk[0].shape[0]:
        return chunk
    parts = [part[start:stop] for part in chunk]
    return QueryChunk(*parts) if isinstance(chunk, QueryChunk) else tuple(parts)


def _joined(pieces: list[Any]) -> Any:
    if len(pieces) == 1:
        return pieces[0]
    parts = [_stacked(parts) for parts in zip(*pieces, strict=True)]
    return QueryChunk(*parts) if isinstance(pieces[0], QueryChunk) else tuple(parts)


def _stacked(parts: tuple[Any, ...]) -> Any:
    if is_sparse(parts[0]):
        return scipy_sparse("sparse rows").vstack(parts, format="csr")
    return np.concatenate(parts)


def _form(part: Any) -> str:
    """What must not change from chunk to chunk, as messages show it."""
    kind = "numbers" if is_real(part.dtype) else f"dtype kind {part.dtype.kind!r}"
    width = "".join(f", {size}" for size in part.shape[1:])
    return f"{'CSR' if is_sparse(part) else 'dense'} (n{width}) of {kind}"
