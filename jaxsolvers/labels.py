"""What users hand in as y for many rankers: labels, or sets of labels in several forms."""

from __future__ import annotations

import collections.abc
import itertools
from typing import Any, NamedTuple

import numpy as np

from jaxsolvers import checks
from jaxsolvers.csr import Csr, check_csr, is_sparse

_CHECK_ROWS = 1 << 22  # entries of an indicator looked at together


class Labels(NamedTuple):
    """Labels as codes into ``classes``."""

    codes: np.ndarray | Csr  # (n,) int32, or a set of codes per row, (n, K)
    classes: np.ndarray  # (K,)
    output: str  # how a model answers: "label", or in the form of the sets


def read_labels(y: Any, n: int, classes: Any, known: np.ndarray | None) -> Labels:
    """The labels of n rows, one each or a set each.

    Args:
      y: (n,) labels; an indicator (n, K), array or sparse; or a list of label sets.
      n: rows of X.
      classes: the labels in the order of the rankers, or None.
      known: those of the run that is continued, or None.

    Raises:
      ValueError: of another shape or kind, or with labels that are not among the classes; the
        message names y or classes.
    """
    declared = known if classes is None else _distinct(classes)
    if is_sparse(y):
        return _from_indicator(_sparse_indicator(y), n, declared, "csr")
    if not isinstance(y, (list, tuple)) and np.ndim(y) == 1:
        y = np.asarray(y)  # a Series may hold label sets
    _check_nested(y)
    if _is_list_of_sets(y):
        return _from_sets(list(y), n, declared)
    if isinstance(y, (list, tuple)) or np.ndim(y) != 2:
        labels = checks.check_labels(y, n)
        return _from_labels(labels, declared)
    return _from_indicator(_dense_indicator(checks.host_array(y, "y")), n, declared, "indicator")


def read_single(y: Any, n: int, known: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The labels of n rows, one each: codes (n,) int32 into the classes, and these.

    Args:
      y: (n,) labels.
      n: rows of X.
      known: those of the run that is continued, or None.

    Raises:
      ValueError: of another shape or kind, one class alone, or a label that is not known; the
        message names y.
    """
    labels = checks.check_labels(y, n)
    if known is None and len(found := np.unique(labels)) == 1:
        raise ValueError(f"y must hold at least two classes, got only {found.tolist()[0]!r}")
    codes, classes, _ = _from_labels(labels, known)
    assert isinstance(codes, np.ndarray)
    return codes, classes


def _distinct(classes: Any) -> np.ndarray:
    array = np.asarray(classes)
    if array.ndim != 1 or len(array) < 2:
        raise ValueError(f"classes must be a list of at least two labels, got {classes!r}")
    if len(set(array.tolist())) < len(array):
        raise ValueError("classes must be distinct labels, got one twice")
    return array


def _from_labels(labels: np.ndarray, declared: np.ndarray | None) -> Labels:
    found, codes = np.unique(labels, return_inverse=True)
    if declared is None:
        if len(found) == 1:
            raise ValueError(
                f"y must hold at least two classes, got only {found.tolist()[0]!r}; "
                "declare the others with classes="
            )
        return Labels(codes.astype(np.int32), found, "label")
    return Labels(_positions(found, declared)[codes], declared, "label")


def _positions(found: np.ndarray, declared: np.ndarray) -> np.ndarray:
    position = {label: i for i, label in enumerate(declared.tolist())}
    unknown = [label for label in found.tolist() if label not in position]
    if unknown:
        raise ValueError(
            f"y holds the label {unknown[0]!r}, the classes are {declared.tolist()[:20]}"
        )
    return np.array([position[label] for label in found.tolist()], np.int32)


# ---- sets ------------------------------------------------------------------------------------
def _is_list_of_sets(y: Any) -> bool:
    if isinstance(y, np.ndarray) and y.dtype == object and y.ndim == 1:
        y = y.tolist()
    if not isinstance(y, (list, tuple)) or not all(_is_set(row) for row in y):
        return False
    return bool(y) and not _is_rectangular(y)


def _is_rectangular(y: Any) -> bool:
    """Whether y is nested lists of one length, which NumPy would take for an array."""
    return all(isinstance(row, (list, np.ndarray)) for row in y) and _one_length(y)


def _one_length(y: Any) -> bool:
    return len({len(row) for row in y}) == 1


def _check_nested(y: Any) -> None:
    """Refuse rows that may be those of an indicator as well as label sets."""
    if isinstance(y, np.ndarray) and y.dtype == object and y.ndim == 1:
        y = y.tolist()
    if not isinstance(y, (list, tuple)) or not y or not all(_is_set(row) for row in y):
        return
    if any(isinstance(row, collections.abc.Set) for row in y) or not _one_length(y):
        return
    binary = all(label in (-1, 0, 1) for row in y for label in row)
    if len(y[0]) > 1 and (binary or _is_rectangular(y)):
        raise ValueError(
            f"y is a list of rows of one length, {len(y[0])}: np.asarray(y) if it is an "
            "indicator, a list of sets if these are label sets"
        )


def _is_set(row: Any) -> bool:
    if isinstance(row, np.ndarray):
        return row.ndim == 1
    return isinstance(row, (collections.abc.Sequence, collections.abc.Set)) and not isinstance(
        row, (str, bytes)
    )


def _from_sets(sets: list[Any], n: int, declared: np.ndarray | None) -> Labels:
    if len(sets) != n:
        raise ValueError(f"y must have one entry per row of X ({n}), got {len(sets)}")
    lengths = np.array([len(row) for row in sets])
    flat = list(itertools.chain.from_iterable(sets))
    if len({isinstance(label, str) for label in flat}) > 1:  # NumPy would make all of them strings
        raise ValueError("y must hold labels of one sortable kind, got strings and others")
    labels = checks.check_labels(flat, len(flat)) if flat else np.zeros(0, int)
    found, codes = np.unique(labels, return_inverse=True)
    if declared is None:
        declared, position = found, np.arange(len(found), dtype=np.int32)
    else:
        position = _positions(found, declared)
    _check_width(n, len(declared))
    # A label named twice in a set counts once.
    pairs = np.unique(np.repeat(np.arange(n), lengths) * len(declared) + position[codes])
    rows, codes = np.divmod(pairs, len(declared))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    shape = (n, len(declared))
    found_sets = Csr(np.ones(len(codes), bool), codes.astype(np.int32), indptr, shape)
    return Labels(found_sets, declared, "sets")


def _sparse_indicator(y: Any) -> Csr:
    matrix = check_csr(y, name="y")
    if not np.isin(matrix.data, (0, 1)).all():
        bad = matrix.data[~np.isin(matrix.data, (0, 1))][0]
        raise ValueError(f"y must be a sparse indicator of 0 and 1, got {bad}")
    if matrix.data.all():
        return matrix
    kept = np.flatnonzero(matrix.data)
    indptr = np.searchsorted(kept, matrix.indptr)
    return Csr(matrix.data[kept], matrix.indices[kept], indptr, matrix.shape)


def _dense_indicator(y: np.ndarray) -> Csr:
    n, width = y.shape
    if not checks.is_real(y.dtype):
        raise ValueError(f"y of shape {y.shape} must be an indicator of 0 and 1, got {y.dtype}")
    step = max(1, _CHECK_ROWS // max(width, 1))
    columns, counts = [], []
    negative = y.dtype.kind not in "bu" and bool((y == -1).any())
    no = -1 if negative else 0
    for start in range(0, n, step):
        piece = y[start : start + step]
        if not ((piece == 1) | (piece == no)).all():
            bad = piece[(piece != 1) & (piece != no)][0]
            raise ValueError(
                f"y of shape {y.shape} must be an indicator of 0 and 1, or of -1 and 1, got {bad}"
            )
        columns.append(np.nonzero(piece == 1)[1].astype(np.int32))
        counts.append((piece == 1).sum(axis=1))
    indices = np.concatenate(columns) if columns else np.zeros(0, np.int32)
    indptr = np.concatenate([[0], np.cumsum(np.concatenate([[], *counts]).astype(np.int64))])
    return Csr(np.ones(len(indices), bool), indices, indptr, (n, width))


def _from_indicator(sets: Csr, n: int, declared: np.ndarray | None, output: str) -> Labels:
    _check_width(*sets.shape)
    if sets.shape[0] != n:
        raise ValueError(f"y must be (n,) or (n, K) with n = {n} as in X, got shape {sets.shape}")
    if declared is None:
        declared = np.arange(sets.shape[1])
    elif len(declared) != sets.shape[1]:
        raise ValueError(
            f"classes must name the {sets.shape[1]} columns of y, got {len(declared)} labels"
        )
    return Labels(sets, declared, output)


def _check_width(n: int, width: int) -> None:
    if width < 2:
        raise ValueError(
            f"y must be 1-d, or name at least two labels, got shape {(n, width)}; fit trains a "
            "single ranker"
        )
