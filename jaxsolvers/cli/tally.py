"""Rows, non-zeros, labels and query ids of data, counted as chunks pass by."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from jaxsolvers.csr import is_sparse


class Tally:
    """Counts of what was added.

    Example:
      >>> tally = Tally()
      >>> tally.add(np.array([[1.0, 0.0], [2.0, 3.0]]), np.array([1, 1]))
      >>> found = tally.result()
      >>> found["rows"], found["nonzeros"], found["labels"]
      (2, 3, {1: 2})
    """

    def __init__(self) -> None:
        self.rows = self.features = self.nonzeros = self.empty = self.most = 0
        self.fewest: int | None = None
        self.labels: Counter[Any] | None = None
        self.several = False
        self.unlabelled = 0
        self.queries: set[int] | None = None

    def add(self, X: Any, y: Any = None, qid: Any = None) -> None:
        """Count some rows: X (n, d), y (n,) or (n, K) or None, qid (n,) or None."""
        lengths = _nonzeros(X)
        self.rows += X.shape[0]
        self.features = int(X.shape[1])
        self.nonzeros += int(lengths.sum())
        self.empty += int((lengths == 0).sum())
        self.most = max(self.most, int(lengths.max()))
        least = int(lengths.min())
        self.fewest = least if self.fewest is None else min(self.fewest, least)
        if y is not None:
            self.labels = Counter() if self.labels is None else self.labels
            self._add_labels(y)
        if qid is not None:
            self.queries = (self.queries or set()) | set(np.unique(qid).tolist())

    def result(self) -> dict[str, Any]:
        """The counts by name; labels by label, or the range of real targets."""
        found: dict[str, Any] = {
            "rows": self.rows,
            "features": self.features,
            "nonzeros": self.nonzeros,
            "nonzeros_per_row": {
                "min": self.fewest,
                "mean": self.nonzeros / self.rows,
                "max": self.most,
            },
            "rows_without_nonzero": self.empty,
        }
        if self.several:
            assert self.labels is not None
            found["labels_per_row"] = sum(self.labels.values()) / self.rows
            found["rows_without_label"] = self.unlabelled
        if self.labels is not None and self._real():
            total = sum(label * number for label, number in self.labels.items())
            found["targets"] = {
                "min": min(self.labels),
                "mean": total / self.rows,
                "max": max(self.labels),
                "different": len(self.labels),
            }
        else:
            found["labels"] = None if self.labels is None else dict(sorted(self.labels.items()))
        found["queries"] = None if self.queries is None else len(self.queries)
        return found

    def _add_labels(self, y: Any) -> None:
        assert self.labels is not None
        if is_sparse(y) or y.ndim == 2:
            self.several = True
            present = _present(y)
            self.unlabelled += int((present.sum(axis=1) == 0).sum())
            per_label = np.asarray(present.sum(axis=0)).ravel()
            self.labels.update({int(k): int(per_label[k]) for k in np.flatnonzero(per_label)})
        else:
            labels, numbers = np.unique(y, return_counts=True)
            self.labels.update(dict(zip(labels.tolist(), numbers.tolist(), strict=True)))

    def _real(self) -> bool:
        """Whether the labels are numbers that are not whole, so many that they are no classes."""
        labels = list(self.labels or ())
        real = all(isinstance(label, float) for label in labels)
        return real and len(labels) > 2 and not all(label.is_integer() for label in labels)


def _nonzeros(X: Any) -> np.ndarray:
    """Entries of each row that are not 0, (n,)."""
    if not is_sparse(X):
        return np.count_nonzero(X, axis=1)
    counts = np.concatenate([[0], np.cumsum(X.data != 0)])
    return counts[X.indptr[1:]] - counts[X.indptr[:-1]]


def _present(y: Any) -> Any:
    """(n, K) of 0 and 1: 1 where a row has the label."""
    positive = y > 0
    return positive.astype(np.int64)
