"""What all models answer: scores, predictions, the best classes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from jaxsolvers.checks import check_integer, check_option
from jaxsolvers.members import Array
from jaxsolvers.models import answers
from jaxsolvers.models.scores import Rankers


class Model:
    """One ranker, or K of them; a subclass says how rows are scored."""

    intercept: Any  # () or (K,)
    classes: np.ndarray | None  # (K,), (2,) of a single ranker, or None
    output: str  # what predict answers for many rankers

    def _rankers(self, chosen: np.ndarray | None = None) -> Rankers:
        """What scores rows: all rankers, or those at these positions."""
        raise NotImplementedError

    def scorer(self) -> Rankers:
        """What scores rows in blocks, for models made of this one."""
        return self._rankers()

    def _check_output(self) -> None:
        check_option(self.output, "output", answers.OUTPUTS)
        if self.output != "label" and self.n_rankers is None:
            raise ValueError(f"output must be 'label' for a single ranker, got {self.output!r}")

    @property
    def n_rankers(self) -> int | None:
        """K, or None for a single ranker."""
        shape = np.shape(self.intercept)
        return shape[0] if shape else None

    def decision_function(self, X: Any, classes: Any = None) -> Array:
        """Scores of the rows.

        Args:
          X: (n, d) array of any real dtype, or any sparse matrix.
          classes: labels of the rankers wanted, in the order wanted; only these are computed.
            All by default.

        Returns:
          (n,) for one ranker, (n, K) for many, in the model's dtype (float32 if that has 16 bits).

        Raises:
          ValueError: X of another width, not 2-d or not finite, or a label that is not a class.
        """
        rankers = self._rankers(None if classes is None else self._positions(classes))
        return answers.all_scores(rankers, rankers.check(X))

    def predict(self, X: Any, threshold: Any = 0.0) -> Any:
        """Predicted labels.

        Many rankers, by ``output``: "label": the class of the largest score, ties to the first.
        "indicator": which classes score above ``threshold``. "csr": the same as a sparse matrix,
        of which only the positive entries are ever made. "sets": the same as tuples of labels.

        One ranker of a classification loss: the positive label where the score exceeds
        ``threshold``. Regression: the scores.

        Args:
          X: (n, d), dense or sparse.
          threshold: score above which a ranker says yes: one number or, for many rankers, one per
            class (K,); 0 by default, and without use where the answer knows no yes ("label" of
            many rankers, regression).

        Returns:
          (n,) NumPy array of the dtype of the training labels; "indicator": (n, K) bool NumPy
          array; "csr": (n, K) bool ``scipy.sparse.csr_matrix``; "sets": list of n tuples of
          labels, in the order of the classes (positions without ``classes``).

        Raises:
          ValueError: X of another width, not 2-d or not finite; a threshold of another shape,
            NaN, or other than 0 where it has no use.
        """
        level = answers.check_threshold(threshold, self.n_rankers)
        decides = self.output != "label" or (self.n_rankers is None and self.classes is not None)
        if not decides and (level != 0).any():
            asked = "a regression model" if self.classes is None else "output 'label'"
            raise ValueError(f"threshold must be 0 for {asked}, it has no use there: {threshold!r}")
        rankers = self._rankers()
        X = rankers.check(X)
        if self.n_rankers is None:
            scores = np.asarray(answers.all_scores(rankers, X))
            if self.classes is None:
                return scores
            yes = scores > answers.rounded_down(level, scores.dtype)
            return self.classes[yes.astype(np.intp)]
        if self.output == "label":
            best = answers.best(rankers, X)
            return best if self.classes is None else self.classes[best]
        if self.output == "indicator":
            return answers.indicator(rankers, X, level)
        positions, starts = answers.positives(rankers, X, level)
        if self.output == "csr":
            from jaxsolvers.data.extras import scipy_sparse

            entries = (np.ones(len(positions), bool), positions, starts)
            shape = (X.shape[0], self.n_rankers)
            return scipy_sparse("output 'csr'").csr_matrix(entries, shape=shape)
        labels = (positions if self.classes is None else self.classes[positions]).tolist()
        return [tuple(labels[start:stop]) for start, stop in pairwise(starts.tolist())]

    def top_k(self, X: Any, k: int) -> tuple[Array, Array]:
        """The k best classes of each row.

        Args:
          X: (n, d), dense or sparse.
          k: how many, 1 ... K.

        Returns:
          (indices (n, k) int32 into ``classes``, scores (n, k)), best first, ties to the lowest
          index.

        Raises:
          ValueError: a single ranker, k out of range, X of another width, not 2-d or not finite.
        """
        if self.n_rankers is None:
            raise ValueError("top_k needs one ranker per class, this model has a single one")
        k = check_integer(k, "k", 1, self.n_rankers)
        rankers = self._rankers()
        return answers.top(rankers, rankers.check(X), k)

    def _positions(self, classes: Any) -> np.ndarray:
        if self.n_rankers is None or self.classes is None:
            raise ValueError("classes: this model has a single ranker, there is nothing to choose")
        known = {label: i for i, label in enumerate(self.classes.tolist())}
        wanted = np.asarray(classes)
        if wanted.ndim != 1 or wanted.size == 0:
            raise ValueError(f"classes must be a list of classes of this model, got {classes!r}")
        if wanted.dtype == bool and self.classes.dtype != bool:
            raise ValueError("classes must be labels, got a mask: model.classes[mask] are those")
        unknown = [label for label in wanted.tolist() if label not in known]
        if unknown:
            raise ValueError(f"classes: {unknown[0]!r} is not a class of this model")
        return np.array([known[label] for label in wanted.tolist()], np.int32)
