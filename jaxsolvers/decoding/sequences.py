"""Sequences of many lengths as padded arrays, checked on the host."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxsolvers import checks
from jaxsolvers.decoding.problem import is_floating
from jaxsolvers.members import arrays


@arrays
class Sequences:
    """Sequences padded to L positions; a padded position holds 0 (of ids the first unused one)."""

    x: Any  # (n, L, d) features, or (n, L, a) int32 ids
    label: Any  # (n, L) int32, or None to predict
    length: Any  # (n,) int32, 1 ... L
    n_labels: int = dataclasses.field(metadata={"static": True})  # K


def read_features(X: Any, lengths: Any, vocabulary: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Features of sequences, padded to the longest.

    Args:
      X: a list of n arrays (L_i, d), or (n, L, d); of ids a list of (L_i,) or (L_i, a), or
        (n, L) or (n, L, a), integers in 0 ... vocabulary - 1, -1 for none.
      lengths: (n,) the positions of each sequence that count, with an array X alone.
      vocabulary: the number of ids; None for features.

    Returns:
      x (n, L, d) floats, or (n, L, a) int32 with ``vocabulary`` for none; and lengths (n,).

    Raises:
      ValueError: what is wrong with X or lengths.
    """
    whole = hasattr(X, "shape") and np.asarray(X).dtype != object
    if whole:
        array = np.asarray(X)
        if vocabulary is not None and array.ndim == 2:
            array = array[..., None]
        if array.ndim != 3 or 0 in array.shape:
            wanted = "(n, L, d)" if vocabulary is None else "(n, L) or (n, L, ids)"
            raise ValueError(
                f"X must be {wanted} or a list of sequences, none of these empty; got shape "
                f"{np.shape(X)}"
            )
        length = _lengths(lengths, array)
        padded = np.arange(array.shape[1])[None] >= length[:, None]
        if padded.any():
            array = np.where(padded[..., None], array.dtype.type(0), array)
    else:
        if lengths is not None:
            raise ValueError("lengths must be None for a list of sequences, which have their own")
        array, length = _padded(X, vocabulary)
    if vocabulary is None:
        if not checks.is_real(array.dtype):
            raise ValueError(f"X must hold real numbers, got dtype {array.dtype}")
        checks.check_finite(array, "X")
        if not is_floating(array):
            array = array.astype(jnp.result_type(float))
        return array, length
    return _ids(array, length, vocabulary), length


def _lengths(lengths: Any, array: np.ndarray) -> np.ndarray:
    n, most = array.shape[:2]
    if lengths is None:
        return np.full(n, most, np.int32)
    length = np.asarray(lengths)
    if length.shape != (n,) or length.dtype.kind not in "iu":
        raise ValueError(
            f"lengths must be one integer per sequence ({n}), got {length.dtype} of shape "
            f"{length.shape}"
        )
    if ((length < 1) | (length > most)).any():
        raise ValueError(f"lengths must be in 1 ... {most}, got {length.min()} ... {length.max()}")
    return length.astype(np.int32)


def _padded(X: Any, vocabulary: int | None) -> tuple[np.ndarray, np.ndarray]:
    try:
        rows = [np.asarray(sequence) for sequence in X]
    except (TypeError, ValueError):
        raise ValueError(f"X must be a list of arrays, one per sequence, got {X!r:.200}") from None
    if vocabulary is not None:
        rows = [row[:, None] if row.ndim == 1 else row for row in rows]
    if not rows:
        raise ValueError("X must hold at least one sequence, got none")
    width = max(row.shape[1] if row.ndim == 2 else 0 for row in rows)
    for i, row in enumerate(rows):
        fits = row.ndim == 2 and 0 not in row.shape
        if not fits or (vocabulary is None and row.shape[1] != width):
            wanted = f"(L, {width or 'd'})" if vocabulary is None else "(L,) or (L, ids)"
            raise ValueError(
                f"X must be a list of arrays {wanted} with L >= 1, got shape {row.shape} in "
                f"sequence {i}"
            )
    length = np.array([len(row) for row in rows], np.int32)
    dtype = np.result_type(*{row.dtype for row in rows})
    array = np.full((len(rows), length.max(), width), 0 if vocabulary is None else -1, dtype)
    for i, row in enumerate(rows):
        array[i, : len(row), : row.shape[1]] = row
    return array, length


def _ids(array: np.ndarray, length: np.ndarray, vocabulary: int) -> np.ndarray:
    if array.dtype.kind not in "iu":
        raise ValueError(f"X must hold integer ids for a vocabulary, got dtype {array.dtype}")
    own = np.arange(array.shape[1])[None] < length[:, None]
    wrong = own[..., None] & ((array < -1) | (array >= vocabulary))
    if wrong.any():
        raise ValueError(
            f"X must hold ids in 0 ... {vocabulary - 1}, or -1 for none, got {array[wrong][0]}"
        )
    # One beyond the last: gathered as 0 and dropped by a scatter, where -1 would be the last id.
    return np.where(own[..., None] & (array >= 0), array, vocabulary).astype(np.int32)


def read_labels(
    y: Any, length: np.ndarray, most: int, classes: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Labels of sequences as positions among the classes.

    Args:
      y: a list of n sequences of labels, or (n, L); any labels of one sortable kind.
      length: (n,).
      most: L.
      classes: the labels known before, or None for those found, sorted.

    Returns:
      (n, L) int32 with 0 at padded positions, and the classes (K,).

    Raises:
      ValueError: what is wrong with y.
    """
    n, own = len(length), np.arange(most)[None] < length[:, None]
    if hasattr(y, "shape") and np.ndim(y) == 2:
        if np.shape(y) != (n, most):
            raise ValueError(f"y must be of shape {(n, most)} as X, got {np.shape(y)}")
        flat = np.asarray(y)[own]
    else:
        if not hasattr(y, "__len__") or len(y) != n:
            raise ValueError(f"y must have one sequence of labels per sequence of X ({n})")
        found = [row.tolist() if hasattr(row, "tolist") else row for row in y]
        for i, row in enumerate(found):
            if not isinstance(row, list | tuple) or len(row) != length[i]:
                raise ValueError(
                    f"y must have one label per position of X, {length[i]} in sequence {i}, got "
                    f"{row!r:.100}"
                )
        labels = list(itertools.chain.from_iterable(found))
        if len({isinstance(label, str) for label in labels}) > 1:  # NumPy would make all strings
            raise ValueError("y must hold labels of one sortable kind, got strings and others")
        flat = np.asarray(labels)
    flat = checks.check_labels(flat, int(length.sum()))
    found_classes, codes = np.unique(flat, return_inverse=True)
    if classes is None:
        if len(found_classes) == 1:
            raise ValueError(
                f"y must hold at least two labels, got only {found_classes.tolist()[0]!r}"
            )
        classes = found_classes
    position = {label: i for i, label in enumerate(classes.tolist())}
    unknown = [label for label in found_classes.tolist() if label not in position]
    if unknown:
        raise ValueError(f"y holds the label {unknown[0]!r}, the classes are {list(position)[:20]}")
    table = np.zeros((n, most), np.int32)
    table[own] = np.array([position[label] for label in found_classes.tolist()])[codes]
    return table, classes
