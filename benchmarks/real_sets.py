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
