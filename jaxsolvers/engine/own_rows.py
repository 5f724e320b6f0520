"""Rankers with rows of their own: each one has two classes, and trains on their rows alone."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class OwnRows:
    """The rows of each ranker, kept as the rows sorted by class: n numbers for all rankers."""

    codes: np.ndarray  # (n,) int32 class of each row
    pairs: np.ndarray  # (P, 2) classes of each ranker, the first is its +1
    n_classes: int
    turns: tuple[int, ...]  # what the caller calls each ranker, see TrainState.settings

    @functools.cached_property
    def _order(self) -> np.ndarray:
        """Rows sorted by class, in file order within each."""
        return np.argsort(self.codes, kind="stable")

    @functools.cached_property
    def _counts(self) -> np.ndarray:
        return np.bincount(self.codes, minlength=self.n_classes)

    @functools.cached_property
    def _ends(self) -> np.ndarray:
        return np.cumsum(self._counts)

    @functools.cached_property
    def lengths(self) -> np.ndarray:
        """Rows of each ranker, (P,)."""
        return self._counts[self.pairs].sum(axis=1)

    @property
    def longest(self) -> int:
        """Rows of a ranker at most."""
        return int(self.lengths.max())

    def of(self, ranker: int) -> np.ndarray:
        """The positions of a ranker's rows among all, ascending."""
        first, second = (
            self._order[self._ends[k] - self._counts[k] : self._ends[k]]
            for k in self.pairs[ranker].tolist()
        )
        return np.sort(np.concatenate([first, second]))

    def signs(self, ranker: int, rows: np.ndarray) -> np.ndarray:
        """+1 for the rows of the ranker's first class, -1 for the others."""
        return np.where(self.codes[rows] == self.pairs[ranker, 0], 1.0, -1.0)

    def sums(self, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of the weights (n,): each ranker's sum, and that of its +1 rows, (P,) both."""
        of_class = np.bincount(self.codes, weights=weight, minlength=self.n_classes)[self.pairs]
        return of_class.sum(axis=1), of_class[:, 0]
