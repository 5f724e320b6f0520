"""Transforms of rows before training: hashed features and unit norms."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import DTypeLike

from jaxsolvers.checks import check_finite, check_integer, check_matrix, check_option, is_real
from jaxsolvers.csr import is_sparse
from jaxsolvers.data.arguments import check_flag, check_float_dtype
from jaxsolvers.data.chunks import as_csr
from jaxsolvers.data.extras import extra, scipy_sparse

__all__ = ["hash_features", "normalize_rows"]

_BLOCK_ENTRIES = 1 << 20


def hash_features(
    tokens: Iterable[Any],
    n_features: int = 2**18,
    signed: bool = True,
    seed: int = 0,
    dtype: DTypeLike = "float32",
) -> Any:
    """Rows of named features as sparse rows of fixed width, by hashing the names.

    ``X[i, |h(name)| mod n_features] += s(name) value``, where h is MurmurHash3 (32 bits) of the
    name in UTF-8 and s = -1 where its sign bit is set, else 1: names that collide then cancel as
    often as they add up (Weinberger et al., ICML 2009). The same names give the same rows in every
    process; nothing is learnt from the rows.

    Args:
      tokens: one entry per row: a mapping ``{name: value}``, or an iterable of names and of pairs
        ``(name, value)``. A name alone has the value 1, and so has a pair with text for a value,
        whose name becomes ``"name=text"``. Names given twice are summed.
      n_features: columns of X, 2^18 by default; a power of two spreads the names evenly.
      signed: whether s is used; False leaves all values as they are.
      seed: another number, another hash: names are hashed as ``"seed:name"`` unless it is 0.
      dtype: of X, float32 or float64.

    Returns:
      X (n, n_features), a scipy ``csr_array`` with int32 indices.

    Raises:
      ValueError: a row is text or no iterable, a name is no text, a value is no finite number;
        the message names the row. An argument is outside of what is said above.
      ImportError: scikit-learn is missing: install ``jaxsolvers[data]``.

    Example:
      >>> X = hash_features([["red", "blue", "red"], {"red": 2.0}, []], n_features=16)
      >>> X.shape, X.toarray()[0].nonzero()[0].size, (X[[0]] - X[[1]]).nnz
      ((3, 16), 2, 1)
    """
    check_integer(n_features, "n_features")
    check_flag(signed, "signed")
    check_integer(seed, "seed", 0)
    kind = check_float_dtype(dtype)
    if isinstance(tokens, (str, bytes)) or not isinstance(tokens, Iterable):
        raise ValueError(f"tokens must be a list of rows, got {tokens!r}")
    module = extra("sklearn.feature_extraction", "hashing features")
    hasher = module.FeatureHasher(
        n_features, input_type="pair", dtype=np.float64, alternate_sign=signed
    )
    prefix = f"{seed}:" if seed else ""
    rows = (_pairs(row, at, prefix) for at, row in enumerate(tokens))
    first = next(rows, None)
    if first is None:
        sparse = scipy_sparse("hashing features")
        return sparse.csr_array((0, n_features), dtype=kind)
    return as_csr(hasher.transform(chain([first], rows)), "hashed rows", kind)


def normalize_rows(X: Any, norm: Literal["l2", "l1", "max"] = "l2", copy: bool = True) -> Any:
    """Rows divided by their norm.

    ``x_i / ||x_i||``: the root of the sum of squares (``"l2"``), the sum (``"l1"``) or the maximum
    (``"max"``) of absolute values. Each row is divided by its largest absolute value first, so
    that no square or sum overflows or vanishes. Zero rows stay zero.

    Args:
      X: (n, d) array of finite real numbers, or any scipy sparse matrix.
      norm: ``"l2"``, ``"l1"`` or ``"max"``.
      copy: False writes into X, a writable NumPy matrix or CSR matrix of floats.

    Returns:
      A NumPy matrix, or for sparse X a ``csr_array`` with repeated entries summed (X itself with
      ``copy=False``). The dtype of floats is kept, integers and bools become float32.

    Raises:
      ValueError: X is not of the form above or holds NaN or infinity; an unknown ``norm``.

    Example:
      >>> import numpy as np
      >>> normalize_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
      [[0.6, 0.8], [0.0, 0.0]]
    """
    check_option(norm, "norm", ("l2", "l1", "max"))
    check_flag(copy, "copy")
    if is_sparse(X):
        rows = _own_csr(X) if copy else _callers_csr(X)
        rows.data[...] = _scaled_entries(rows.data, rows.indptr, norm)
        return rows
    matrix = _own_matrix(X) if copy else _callers_matrix(X)
    step = max(1, _BLOCK_ENTRIES // matrix.shape[1])
    for start in range(0, len(matrix), step):
        block = matrix[start : start + step]
        wide = _wide(block)
        wide = wide / _or_one(np.abs(wide).max(axis=1, keepdims=True))
        block[...] = (wide / _or_one(_norms(wide, norm)[:, None])).astype(block.dtype)
    return matrix


def _pairs(row: Any, at: int, prefix: str) -> Iterator[tuple[str, float]]:
    if isinstance(row, (str, bytes)) or not isinstance(row, Iterable):
        raise ValueError(f"tokens must hold lists or mappings, got {row!r} in row {at}")
    for token in row.items() if hasattr(row, "items") else row:
        name, value = token if isinstance(token, tuple) and len(token) == 2 else (token, 1)
        if not isinstance(name, str):
            raise ValueError(f"tokens must be text or (text, value), got {token!r} in row {at}")
        if isinstance(value, str):
            name, value = f"{name}={value}", 1
        real = math.nan
        if isinstance(value, (int, float, np.integer, np.floating, np.bool_)):
            with contextlib.suppress(OverflowError):  # an int beyond every float
                real = float(value)
        if not math.isfinite(real):
            raise ValueError(f"tokens must have finite values, got {token!r} in row {at}")
        yield prefix + name, real


def _own_csr(X: Any) -> Any:
    dtype = X.dtype if jnp.issubdtype(X.dtype, jnp.floating) else np.dtype(np.float32)
    return as_csr(X, "X", dtype).copy()


def _callers_csr(X: Any) -> Any:
    layout = getattr(X, "format", type(X).__name__)
    if layout != "csr" or not _is_float(X.dtype):
        raise ValueError(
            f"X must be a CSR matrix of floats with copy=False, got {layout} of {X.dtype}"
        )
    check_finite(X.data, "X.data")
    if not X.data.flags.writeable:
        raise ValueError("X must be writable with copy=False, got a read-only array")
    X.sum_duplicates()
    return X


def _own_matrix(X: Any) -> np.ndarray:
    array = np.asarray(check_matrix(X))
    check_finite(array, "X")
    return array.astype(array.dtype if _is_float(array.dtype) else np.float32)


def _callers_matrix(X: Any) -> np.ndarray:
    array = check_matrix(X)
    if array is not X or isinstance(array, jax.Array) or not _is_float(array.dtype):
        raise ValueError(
            f"X must be a NumPy matrix of floats with copy=False, got {type(X).__name__}"
        )
    if not array.flags.writeable:
        raise ValueError("X must be writable with copy=False, got a read-only array")
    check_finite(array, "X")
    return np.asarray(array)


def _scaled_entries(values: np.ndarray, indptr: np.ndarray, norm: str) -> np.ndarray:
    """Stored entries divided by the norm of their row."""
    counts = np.diff(indptr)
    held = np.flatnonzero(counts)  # reduceat gives an empty row the entry of the next one
    if not held.size:
        return values
    starts, counts = indptr[held], counts[held]
    wide = _wide(values)
    wide = wide / np.repeat(_or_one(np.maximum.reduceat(np.abs(wide), starts)), counts)
    if norm == "max":
        return wide
    powers = wide * wide if norm == "l2" else np.abs(wide)
    sums = np.add.reduceat(powers, starts, dtype=np.float64)
    norms = np.sqrt(sums) if norm == "l2" else sums
    return wide / np.repeat(_or_one(norms), counts).astype(wide.dtype)


def _norms(rows: np.ndarray, norm: str) -> np.ndarray:
    if norm == "max":
        return np.abs(rows).max(axis=1)
    sums = np.sum(rows * rows if norm == "l2" else np.abs(rows), axis=1)
    return np.sqrt(sums) if norm == "l2" else sums


def _or_one(sizes: np.ndarray) -> np.ndarray:
    return np.where(sizes > 0, sizes, 1).astype(sizes.dtype)


def _wide(values: np.ndarray) -> np.ndarray:
    # In C order, so that sums are the same to the bit whatever the layout of X.
    return np.ascontiguousarray(values, np.float32 if values.dtype.itemsize == 2 else None)


def _is_float(dtype: Any) -> bool:
    return is_real(dtype) and bool(jnp.issubdtype(np.dtype(dtype).newbyteorder("="), jnp.floating))
