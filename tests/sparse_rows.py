"""Fuzzed sparse rows for the tests: whatever a CSR matrix may be."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse


def fuzzed(n: int, d: int, seed: int, dtype: Any = float) -> scipy.sparse.csr_matrix:
    """Rows that are empty, long, unsorted, with repeated columns, explicit zeros and huge gaps.

    The first and the last column are never seen; one row in eight is empty; one is nearly full.
    """
    rng = np.random.default_rng(seed)
    indices, data, indptr = [], [], [0]
    popular = 1 / np.arange(1, d - 1)
    for i in range(n):
        length = 0 if rng.random() < 0.125 else rng.integers(1, 6)
        if i == n // 2:
            length = d
        columns = 1 + rng.choice(d - 2, size=length, p=popular / popular.sum())
        if length > 1 and rng.random() < 0.5:
            columns[1] = columns[0]  # a repeated column, its values to be summed
        values = rng.normal(size=length) * (rng.random(length) < 0.9)
        indices.append(columns)
        data.append(values)
        indptr.append(indptr[-1] + length)
    parts = (np.concatenate(data).astype(dtype), np.concatenate(indices), np.array(indptr))
    matrix = scipy.sparse.csr_matrix((n, d), dtype=dtype)
    matrix.data, matrix.indices, matrix.indptr = parts
    return matrix


def dense(matrix: Any) -> np.ndarray:
    """The matrix as an array, from its entries alone."""
    whole = np.zeros(matrix.shape, matrix.dtype)
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    np.add.at(whole, (rows, matrix.indices), matrix.data)
    return whole
