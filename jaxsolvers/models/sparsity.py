"""Coefficients with few entries: counted, cut down, stored as a sparse matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxsolvers.checks import check_finite, check_reals
from jaxsolvers.csr import Csr

_NUMBERS = 1 << 22  # entries looked at together


def density(coef: Any) -> float:
    """Share of the entries that are not 0."""
    entries = coef.data if isinstance(coef, Csr) else np.asarray(coef)
    return int(np.count_nonzero(entries)) / int(np.prod(coef.shape, dtype=np.float64))


def to_sparse(coef: Any, threshold: float = 0.0) -> Csr:
    """The entries with magnitude > threshold as a (K, d) matrix; (1, d) for a single ranker.

    Raises:
      ValueError: NaN or infinite coefficients.
    """
    if isinstance(coef, Csr):
        kept = _magnitudes(coef.data) > threshold
        place = np.concatenate([[0], np.cumsum(kept)])
        return Csr(coef.data[kept], coef.indices[kept], place[coef.indptr], coef.shape)
    matrix = np.asarray(coef)
    matrix = matrix if matrix.ndim == 2 else matrix[None]
    check_finite(matrix, "coef")
    data, indices, lengths = [], [], []
    rows = max(1, _NUMBERS // matrix.shape[1])
    for start in range(0, matrix.shape[0], rows):
        part = matrix[start : start + rows]
        kept = _magnitudes(part) > threshold
        data.append(part[kept])
        indices.append(np.nonzero(kept)[1].astype(np.int32))
        lengths.append(kept.sum(axis=1))
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    return Csr(np.concatenate(data), np.concatenate(indices), indptr, matrix.shape)


def check_cut(coef: Any, threshold: Any, share: Any) -> float:
    """The threshold, or the one that leaves at most a share of all entries.

    Raises:
      ValueError: both or neither given, or out of range; the message names the argument.
    """
    if (threshold is None) == (share is None):
        raise ValueError(
            f"threshold or density must be given, one of them, got {threshold!r} and {share!r}"
        )
    if share is None:
        cut = _one_number(threshold, "threshold", "be a finite number >= 0")
        if not 0 <= cut < np.inf:
            raise ValueError(f"threshold must be a finite number >= 0, got {threshold!r}")
        return cut
    share = _one_number(share, "density", "be a number in 0 ... 1")
    if not 0 <= share <= 1:
        raise ValueError(f"density must be a number in 0 ... 1, got {share!r}")
    size = int(np.prod(coef.shape, dtype=np.float64))
    keep = int(share * size * (1 + 1e-12))  # 0.29 * 100 is 28.999...
    sizes = _magnitudes(coef.data if isinstance(coef, Csr) else np.asarray(coef).ravel())
    last_out = len(sizes) - keep - 1
    return 0.0 if last_out < 0 else float(np.partition(sizes, last_out)[last_out])


def _one_number(value: Any, name: str, accepted: str) -> float:
    array = check_reals(value, name, accepted)
    if array.ndim > 0:
        raise ValueError(f"{name} must {accepted}, got an array of shape {array.shape}")
    return float(array)


def _magnitudes(entries: np.ndarray) -> np.ndarray:
    wide = np.float64 if entries.dtype.itemsize > 4 or entries.dtype.kind in "iu" else np.float32
    return np.abs(entries.astype(wide, copy=False))
