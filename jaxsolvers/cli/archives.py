"""Rows and labels from NumPy's files, never unpickled."""

from __future__ import annotations

import zipfile
import zlib
from typing import Any

import numpy as np

from jaxsolvers.checks import check_finite, check_matrix
from jaxsolvers.data.chunks import as_csr
from jaxsolvers.data.extras import scipy_sparse

# What NumPy and the standard library raise on files that are cut off or changed.
_DAMAGE = (
    EOFError,
    KeyError,
    MemoryError,
    NotImplementedError,
    OSError,  # a place beyond the file
    OverflowError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)
_CSR = ("data", "indices", "indptr", "shape")


def read_npz(path: Any, labels: Any, dtype: np.dtype) -> tuple[Any, Any]:
    """Rows and labels of an .npz file.

    Args:
      path: a file with ``X`` (n, d), or the arrays of ``scipy.sparse.save_npz`` in CSR or CSC
        form; and with ``y``, (n,) or an indicator (n, K).
      labels: a file with the labels instead of ``y``, or None.
      dtype: of the rows returned, float32 or float64.

    Returns:
      X, a matrix or a ``csr_array``; and y, or None where there is none.

    Raises:
      ValueError: the file is damaged, holds objects, lacks rows, or holds numbers that are not
        finite; labels are given twice. The message names the file.
    """
    arrays = _arrays(path)
    y = arrays.get("y")
    if labels is not None:
        if y is not None:
            raise ValueError(f"--labels must be left out, {path} has its own labels, y")
        y = _labels(labels)
    try:
        if "X" in arrays:
            X = np.asarray(check_matrix(arrays["X"]))
            with np.errstate(over="ignore"):  # what overflows is refused below
                X = X.astype(dtype, copy=False)
            check_finite(X, "X")
        else:
            X = as_csr(_sparse(arrays, path), "X", dtype)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if X.shape[0] == 0:
        raise ValueError(f"{path}: X must have at least one row, got shape {X.shape}")
    if y is not None and (y.ndim == 0 or y.shape[0] != X.shape[0]):
        raise ValueError(f"y must have one entry per row of X ({X.shape[0]}), got shape {y.shape}")
    return X, y


def _labels(path: Any) -> Any:
    loaded = _loaded(path)
    if isinstance(loaded, np.ndarray):
        return loaded
    return _sparse(loaded, path)


def _arrays(path: Any) -> dict[str, np.ndarray]:
    loaded = _loaded(path)
    if isinstance(loaded, np.ndarray):
        raise ValueError(f"{path} is a single array, an .npz file is needed")
    return loaded


def _loaded(path: Any) -> Any:
    """An array, or the arrays of an archive by name."""
    with open(path, "rb") as file:  # what cannot be opened is no damage
        try:
            found = np.load(file, allow_pickle=False)
            if isinstance(found, np.ndarray):
                return found
            return {name: found[name] for name in found.files}
        except _DAMAGE as error:
            raise ValueError(f"{path} is no sound NumPy file: {error}") from None


def _sparse(arrays: dict[str, np.ndarray], path: Any) -> Any:
    missing = [name for name in _CSR if name not in arrays]
    layout = arrays.get("format", np.array("csr")).item()
    layout = layout.decode("ascii", "replace") if isinstance(layout, bytes) else str(layout)
    if layout not in ("csr", "csc") or missing:
        if "format" in arrays and layout not in ("csr", "csc"):
            raise ValueError(
                f"a sparse matrix must be in CSR or CSC form, got {layout!r}: save_npz(X.tocsr())"
            )
        raise ValueError(
            f"it must have an array X, or {', '.join(_CSR)} of a sparse matrix; got the arrays "
            f"{', '.join(sorted(arrays)) or 'none'}"
        )
    data, indices, indptr, shape = (arrays[name] for name in _CSR)
    kinds = [part.dtype.kind in "iu" and part.ndim == 1 for part in (indices, indptr, shape)]
    if not all(kinds) or data.ndim != 1 or shape.shape != (2,):
        raise ValueError("the arrays of its sparse matrix have other shapes or types than needed")
    sparse = scipy_sparse("reading sparse .npz files")
    make = sparse.csr_array if layout == "csr" else sparse.csc_array
    try:
        matrix = make((data, indices, indptr), shape=tuple(map(int, shape)))
        matrix.check_format(full_check=True)  # conversions trust their indices
    except (TypeError, OverflowError, ValueError) as error:
        raise ValueError(f"the arrays of its sparse matrix do not fit together: {error}") from None
    return matrix
