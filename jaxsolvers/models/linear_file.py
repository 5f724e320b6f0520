"""The fields of a linear model as arrays for a file, and back."""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from jaxsolvers.csr import Csr, check_csr

KIND = "LinearModel"
CSR_PARTS = ("data", "indices", "indptr", "shape")


def pack(coef: Any, intercept: Any, classes: np.ndarray | None, output: str) -> dict[str, Any]:
    """The arrays that ``LinearModel.save`` documents.

    Raises:
      ValueError: classes that are neither strings nor numbers of one kind.
    """
    arrays = {"intercept": native(intercept), "output": np.array(output)}
    if isinstance(coef, Csr):
        arrays |= pack_csr("coef", coef)
    else:
        arrays["coef"] = native(coef)
    if classes is not None:
        arrays["classes"] = storable(classes)
    return arrays


def unpack(arrays: dict[str, np.ndarray]) -> tuple[Any, np.ndarray, np.ndarray | None, str]:
    """(coef, intercept, classes, output).

    Raises:
      ValueError: entries are missing or do not make a sound sparse matrix.
    """
    sparse = "coef_data" in arrays
    missing = [name for name in ("intercept", "output") if name not in arrays]
    if missing or not (sparse or "coef" in arrays):
        raise ValueError(f"it has no entry {[*missing, 'coef'][0]!r}")
    coef = unpack_csr("coef", arrays) if sparse and "coef" not in arrays else arrays["coef"]
    return coef, arrays["intercept"], arrays.get("classes"), str(arrays["output"])


def pack_csr(name: str, matrix: Csr) -> dict[str, np.ndarray]:
    """A sparse matrix as the entries ``<name>_data`` and so on."""
    parts = (matrix.data, matrix.indices, matrix.indptr, np.array(matrix.shape, np.int64))
    return {f"{name}_{part}": native(a) for part, a in zip(CSR_PARTS, parts, strict=True)}


def unpack_csr(name: str, arrays: dict[str, np.ndarray]) -> Csr:
    """The sparse matrix of these entries.

    Raises:
      ValueError: entries are missing or do not make a sound sparse matrix.
    """
    names = [f"{name}_{part}" for part in CSR_PARTS]
    missing = [entry for entry in names if entry not in arrays]
    if missing:
        raise ValueError(f"it has no entry {missing[0]!r}")
    data, indices, indptr, shape = (arrays[entry] for entry in names)
    if shape.shape != (2,) or any(part.ndim != 1 for part in (data, indices, indptr)):
        raise ValueError(f"the entries of its sparse {name} have other ranks")
    if any(part.dtype.kind != "i" for part in (indices, indptr, shape)):
        raise ValueError(f"the positions of its sparse {name} are no integers")
    # Checked like any CSR matrix from outside: positions fit the shape, entries are finite.
    found = types.SimpleNamespace(
        format="csr", data=data, indices=indices, indptr=indptr, shape=shape.tolist()
    )
    return check_csr(found, name=name)


def native(value: Any) -> np.ndarray:
    """On the host, in this machine's byte order; the dtype stays."""
    array = np.asarray(value)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def storable(classes: np.ndarray) -> np.ndarray:
    """Classes as an array that needs no pickle: objects become strings or numbers of one kind."""
    if classes.dtype.kind not in "OT":
        return native(classes)
    labels = classes.tolist()
    plain = np.array([str(label) for label in labels] if classes.dtype.kind == "T" else labels)
    kinds = {type(label) for label in labels}
    if plain.dtype == object or plain.tolist() != labels or kinds != set(map(type, plain.tolist())):
        found = sorted(kind.__name__ for kind in kinds)
        raise ValueError(
            f"classes must be strings, numbers or bools of one kind to be saved, got {found}"
        )
    return plain
