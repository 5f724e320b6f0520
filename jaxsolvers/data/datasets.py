"""Generated data sets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from jaxsolvers.checks import check_integer
from jaxsolvers.data.arguments import check_float_dtype
from jaxsolvers.data.extras import scipy_sparse
from jaxsolvers.data.zipf import Documents, Zipf, draws_for, poisson_mean

__all__ = ["blobs", "multilabel_text", "sparse_text"]


def blobs(
    n: int, d: int, n_classes: int, seed: int = 0, dtype: str = "float32"
) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors around one centre per class.

    Centres are standard normal in R^d; a row is ``0.5 centre[label] + noise`` with standard
    normal noise, scaled to norm 1.

    Args:
      n: rows, at least one per class.
      d: features.
      n_classes: classes; every label occurs.
      seed: of the NumPy generator.
      dtype: of X.

    Returns:
      X (n, d) and labels (n,) int64.

    Raises:
      ValueError: fewer rows than classes, or a size below 1.

    Example:
      >>> import jaxsolvers as js
      >>> X, y = js.data.blobs(6, 4, 3)
      >>> X.shape, sorted(set(y.tolist()))
      ((6, 4), [0, 1, 2])
    """
    if min(n, d, n_classes) < 1 or n < n_classes:
        raise ValueError(
            f"n must be at least n_classes, and all sizes at least 1; got n={n}, d={d}, "
            f"n_classes={n_classes}"
        )
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((n_classes, d))
    labels = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    rng.shuffle(labels)
    X = 0.5 * centres[labels] + rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X.astype(dtype), labels


def sparse_text(
    n: int,
    d: int,
    n_classes: int,
    nnz: int = 75,
    exponent: float = 1.0,
    seed: int = 0,
    dtype: DTypeLike = "float32",
) -> tuple[Any, np.ndarray]:
    """Sparse rows like tf-idf vectors of documents, one class each.

    Word j = 0, 1, ... has frequency p_j proportional to (j + 1)^-exponent (Zipf's law). Each class
    prefers some words, drawn by p. A document is a number of draws that varies log-normally; 3 of
    10 are words of its class, the others are drawn by p. A word drawn c times has the value
    ``(1 + log c) log(1 + 1/p_j)``, and rows are scaled to norm 1.

    Args:
      n: rows, at least one per class.
      d: features (words).
      n_classes: classes, all equally likely; every label occurs.
      nnz: mean number of different words per row, at most half of d; met within a few percent.
      exponent: of Zipf's law, >= 0; 1 is that of language, 0 makes all words equally likely.
      seed: of the NumPy generator, an integer >= 0.
      dtype: of X, float32 or float64.

    Returns:
      X (n, d), a scipy ``csr_array`` with int32 indices, and labels (n,) int64.

    Raises:
      ValueError: an argument is outside of what is said above.
      ImportError: scipy is missing: install ``jaxsolvers[data]``.

    Example:
      >>> import jaxsolvers as js
      >>> X, y = js.data.sparse_text(100, 1000, 5, nnz=20)
      >>> X.shape, sorted(set(y.tolist())), 15 < X.nnz / 100 < 25
      ((100, 1000), [0, 1, 2, 3, 4], True)
    """
    check_integer(n_classes, "n_classes")
    if check_integer(n, "n") < n_classes:
        raise ValueError(f"n must be at least n_classes, got n={n}, n_classes={n_classes}")
    kind = check_float_dtype(dtype)
    documents = _documents(d, n_classes, nnz, exponent, seed)
    rng = np.random.default_rng([seed, 0])
    labels = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    rng.shuffle(labels)

    def topic(rng: np.random.Generator, rows: np.ndarray) -> np.ndarray:
        return labels[rows]

    return documents.rows(rng, n, topic, kind), labels


def multilabel_text(
    n: int,
    d: int,
    n_labels: int,
    labels_per_row: float = 3.0,
    nnz: int = 75,
    exponent: float = 1.0,
    label_exponent: float = 1.0,
    seed: int = 0,
    dtype: DTypeLike = "float32",
) -> tuple[Any, Any]:
    """Sparse rows like tf-idf vectors of documents with several labels each, or none.

    Labels follow Zipf's law too: k = 0, 1, ... is drawn proportionally to
    (k + 1)^-label_exponent, and the number of draws of a row is Poisson. So some rows have no
    label, and rare labels may have no row, as in real sets. The words of a row are those of
    :func:`sparse_text`, except that each of the 3 in 10 topical ones belongs to one of its labels;
    rows without a label have none.

    Args:
      n: rows.
      d: features (words).
      n_labels: columns of Y.
      labels_per_row: mean number of different labels per row, > 0, at most half of n_labels;
        met within a few percent for large n.
      nnz: mean number of different words per row, at most half of d; met within a few percent.
      exponent: of the words' frequencies, >= 0.
      label_exponent: of the labels' frequencies, >= 0.
      seed: of the NumPy generator, an integer >= 0.
      dtype: of X, float32 or float64.

    Returns:
      X (n, d), a scipy ``csr_array`` of floats, and Y (n, n_labels), one of bools.

    Raises:
      ValueError: an argument is outside of what is said above.
      ImportError: scipy is missing: install ``jaxsolvers[data]``.

    Example:
      >>> import jaxsolvers as js
      >>> X, Y = js.data.multilabel_text(200, 1000, 30, labels_per_row=2.0, nnz=20)
      >>> X.shape, Y.shape, Y.dtype.name, 1.5 < Y.nnz / 200 < 2.5
      ((200, 1000), (200, 30), 'bool', True)
    """
    check_integer(n, "n")
    check_integer(n_labels, "n_labels")
    kind = check_float_dtype(dtype)
    if not 0 < _number(labels_per_row, "labels_per_row") <= n_labels / 2:
        raise ValueError(
            f"labels_per_row must be above 0 and at most n_labels / 2, got {labels_per_row} with "
            f"n_labels={n_labels}"
        )
    zipf = Zipf(n_labels, _number(label_exponent, "label_exponent"))
    documents = _documents(d, n_labels, nnz, exponent, seed)
    rng = np.random.default_rng([seed, 1])
    rate = draws_for(
        labels_per_row, lambda *shape: zipf.draw(rng, shape), poisson_mean, "labels_per_row"
    )
    row = np.repeat(np.arange(n), rng.poisson(rate, n))
    label = zipf.draw(rng, len(row))
    sparse = scipy_sparse("multilabel_text")
    Y = sparse.coo_array((np.ones(len(row), bool), (row, label)), shape=(n, n_labels)).tocsr()
    Y.sum_duplicates()
    Y = sparse.csr_array(
        (Y.data, Y.indices.astype(np.int32), Y.indptr.astype(np.int32)), shape=Y.shape
    )

    def topic(rng: np.random.Generator, rows: np.ndarray) -> np.ndarray:
        first, size = Y.indptr[rows], np.diff(Y.indptr)[rows]
        chosen = first + (rng.random(len(rows)) * size).astype(np.int64)
        topics = np.full(len(rows), -1, np.int32)
        topics[size > 0] = Y.indices[chosen[size > 0]]
        return topics

    return documents.rows(rng, n, topic, kind), Y


def _documents(d: int, n_topics: int, nnz: int, exponent: float, seed: int) -> Documents:
    check_integer(d, "d")
    check_integer(seed, "seed", 0)
    if check_integer(nnz, "nnz") > (d + 1) // 2:
        raise ValueError(f"nnz must be at most half of d, got nnz={nnz}, d={d}")
    return Documents(Zipf(d, _number(exponent, "exponent")), n_topics, nnz, seed)


def _number(value: float, name: str) -> float:
    real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not real or not math.isfinite(value) or value < 0:
        raise ValueError(f"{name} must be a number >= 0, got {value!r}")
    return float(value)
