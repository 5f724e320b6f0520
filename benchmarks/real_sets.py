"""The real data sets, in the folder JAXSOLVERS_DATA names or shared/data beside the checkout.

Nothing of them is in this repository. Each loader gives training and test rows, unit length, and
an indicator of the labels (sparse) or labels (n,).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import jaxsolvers as js


class RealSet(NamedTuple):
    """A data set split for a benchmark."""

    name: str
    X: Any  # (n, d) CSR, float32
    y: Any  # (n, K) CSR indicator, or labels (n,)
    test_X: Any
    test_y: Any

    @property
    def n_labels(self) -> int:
        return self.y.shape[1] if self.y.ndim == 2 else len(np.unique(self.y))


def folder() -> Path | None:
    """Where the sets lie, or None."""
    named = os.environ.get("JAXSOLVERS_DATA")
    root = Path(__file__).resolve().parents[1]
    path = Path(named) if named else root.parent / "shared" / "data"
    return path if (path / "rcv1_topics_27k").is_dir() else None


class Files(NamedTuple):
    """How a set lies in its folder."""

    train: str
    test: str
    n_features: int
    n_labels: int  # 0 for one label per row
    counts: bool = False  # raw word counts, to be weighted by log counts and rarity


SETS = {
    "rcv1_topics_27k": Files(
        "rcv1_train.multilabel.svm.bz2", "rcv1_test.multilabel.svm.bz2", 47236, 103
    ),
    "reuters_moneyfx": Files("money-fx.trn.svm.bz2", "money-fx.tst.svm.bz2", 8315, 0),
    "adult_a9a": Files("a9a.bz2", "a9a.t.bz2", 123, 0),
    "news20_bydate": Files("news20_train.svm.bz2", "news20_test.svm.bz2", 32808, 0, True),
    "bibtex": Files("bibtex_train.multilabel.svm.bz2", "bibtex_test.multilabel.svm.bz2", 1836, 159),
    "delicious": Files(
        "delicious_train.multilabel.svm.bz2", "delicious_test.multilabel.svm.bz2", 500, 983
    ),
    "wordnet_hypernyms": Files(
        "wordnet_train.multilabel.svm.bz2", "wordnet_test.multilabel.svm.bz2", 22371, 17157
    ),
}


def load(name: str) -> RealSet:
    """A set by the name of its folder."""
    where, files = folder(), SETS[name]
    assert where is not None, "the data folder is absent"
    parts = []
    for part in (files.train, files.test):
        data = js.data.read_svmlight(
            where / name / part,
            n_features=files.n_features,
            zero_based=False,
            multilabel=files.n_labels > 0,
        )
        parts.append((data.X, _indicator(data.y, files.n_labels) if files.n_labels else data.y))
    (X, y), (test_X, test_y) = parts
    if files.counts:
        X, test_X = _weighted(X, test_X)
    return RealSet(name, *(_unit(X), y), *(_unit(test_X), test_y))


def with_positives(data: RealSet, limit: int | None = None) -> RealSet:
    """Only the labels that have a training row, the first ``limit`` of them by frequency."""
    counts = np.asarray(data.y.sum(axis=0)).ravel()
    kept = np.flatnonzero(counts)
    if limit is not None:
        kept = np.sort(kept[np.argsort(-counts[kept], kind="stable")[:limit]])
    return data._replace(y=data.y[:, kept], test_y=data.test_y[:, kept])


def _indicator(y: Any, n_labels: int) -> Any:
    import scipy.sparse

    whole = scipy.sparse.csr_matrix(y)
    whole.resize(whole.shape[0], n_labels)
    return whole


def _unit(X: Any) -> Any:
    import scipy.sparse

    return scipy.sparse.csr_matrix(js.data.normalize_rows(X))


def _weighted(X: Any, test_X: Any) -> tuple[Any, Any]:
    """(1 + log count) times log(n / rows with the word), from the training rows."""
    rows = np.bincount(X.indices, minlength=X.shape[1])
    rarity = np.log((1 + X.shape[0]) / (1 + rows)) + 1
    weighted = []
    for part in (X, test_X):
        part = part.copy()
        part.data = ((1 + np.log(part.data)) * rarity[part.indices]).astype(part.dtype)
        weighted.append(part)
    return weighted[0], weighted[1]


class DenseSet(NamedTuple):
    """A dense binary problem: unit rows whose last feature was the constant 1."""

    name: str
    X: np.ndarray  # (n, d) float32
    y: np.ndarray  # (n,) -1.0 or +1.0, float32
    test_X: np.ndarray
    test_y: np.ndarray


def digit_eight() -> DenseSet:
    """usps: the digit 8 against the others, 7,291 rows of 256 pixels in -1 ... 1, 2,007 to test."""
    data = _npz("usps")
    X, test_X = (data[f"x_{part}"] / np.float32(1000) for part in ("train", "test"))
    y, test_y = (_signs(data[f"y_{part}"] == 8) for part in ("train", "test"))
    return DenseSet("usps", _with_one(X), y, _with_one(test_X), test_y)


def cover_type(rows: int) -> DenseSet:
    """covtype: class 1 against the others, ``rows`` of 581,012 and 58,101 others to test.

    All are drawn with a fixed seed (the file begins with a part balanced by class). The ten
    measured columns are brought to mean 0 and deviation 1, the 44 indicators stay.
    """
    data = _npz("covtype")
    drawn = np.random.default_rng(0).permutation(len(data["y"]))[: rows + 58_101]
    measured = data["quant"][drawn].astype(np.float64)
    measured = (measured - measured[:rows].mean(axis=0)) / measured[:rows].std(axis=0)
    wilderness, soil = np.eye(4)[data["wilderness"][drawn]], np.eye(40)[data["soil"][drawn]]
    X = _with_one(np.hstack([measured, wilderness, soil]).astype(np.float32))
    y = _signs(data["y"][drawn] == 1)
    return DenseSet("covtype", X[:rows], y[:rows], X[rows:], y[rows:])


def _npz(name: str) -> Any:
    where = folder()
    assert where is not None, "the data folder is absent"
    return np.load(where / name / f"{name}.npz")


def _signs(positive: np.ndarray) -> np.ndarray:
    return np.where(positive, 1, -1).astype(np.float32)


def _with_one(X: np.ndarray) -> np.ndarray:
    """The rows with a constant 1 behind them, scaled to length 1."""
    whole = np.hstack([X, np.ones((len(X), 1), X.dtype)])
    return whole / np.linalg.norm(whole, axis=1, keepdims=True)
