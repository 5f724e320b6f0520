"""The fields of a linear model as arrays for a file, and back."""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from jaxsolvers.csr import Csr, check_csr

KIND = "LinearModel"
_SPARSE = ("coef_data", "coef_indices", "coef_indptr", "coef_shape")


def pack(coef: Any, intercept: Any, classes: np.ndarray | None, output: str) -> dict[str, Any]:
    """The arrays that ``LinearModel.save`` documents.

    Raises:
      ValueError: classes that are neither strings nor numbers of one kind.
    """
    arrays = {"intercept": _native(intercept), "output": np.array(output)}
    if isinstance(coef, Csr):
        parts = (coef.data, coef.indices, coef.indptr, np.array(coef.shape, np.int64))
        arrays |= {name: _native(part) for name, part in zip(_SPARSE, parts, strict=True)}
    else:
        arrays["coef"] = _native(coef)
    if classes is not None:
        arrays["classes"] = _storable(classes)
    return arrays


def unpack(arrays: dict[str, np.ndarray]) -> tuple[Any, np.ndarray, np.ndarray | None, str]:
    """(coef, intercept, classes, output).

    Raises:
      ValueError: entries are missing or do not make a sound sparse matrix.
    """
    names = ["intercept", "output", *(_SPARSE if "coef_data" in arrays else ["coef"])]
    missing = [name for name in names if name not in arrays]
    if missing:
        raise ValueError(f"it has no entry {missing[0]!r}")
    coef = arrays["coef"] if "coef" in arrays else _sparse(arrays)
    return coef, arrays["intercept"], arrays.get("classes"), str(arrays["output"])


def _sparse(arrays: dict[str, np.ndarray]) -> Csr:
    data, indices, indptr, shape = (arrays[name] for name in _SPARSE)
    if shape.shape != (2,) or any(part.ndim != 1 for part in (data, indices, indptr)):
        raise ValueError("the entries of its sparse coef have other ranks")
    if any(part.dtype.kind != "i" for part in (indices, indptr, shape)):
        raise ValueError("the positions of its sparse coef are no integers")
    # Checked like any CSR matrix from outside: positions fit the shape, entries are finite.
    found = types.SimpleNamespace(
        format="csr", data=data, indices=indices, indptr=indptr, shape=shape.tolist()
    )
    return check_csr(found, name="coef")


def _native(value: Any) -> np.ndarray:
    """On the host, in this machine's byte order; the dtype stays."""
    array = np.asarray(value)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _storable(classes: np.ndarray) -> np.ndarray:
    """Classes as an array that needs no pickle: objects become strings or numbers of one kind."""
    if classes.dtype.kind not in "OT":
        return _native(classes)
    labels = classes.tolist()
    plain = np.array([str(label) for label in labels] if classes.dtype.kind == "T" else labels)
    kinds = {type(label) for label in labels}
    if plain.dtype == object or plain.tolist() != labels or kinds != set(map(type, plain.tolist())):
        found = sorted(kind.__name__ for kind in kinds)
        raise ValueError(
            f"classes must be strings, numbers or bools of one kind to be saved, got {found}"
        )
    return plain
