"""Models: what training leaves behind to predict with."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.checks import check_integer, check_matrix
from jaxsolvers.features import product
from jaxsolvers.members import Array

__all__ = ["LinearModel"]

_BLOCK_SCORES = 1 << 24  # scores computed at a time where only a part of them is kept
_LARGEST_BLOCK = 4096  # rows


@dataclasses.dataclass(frozen=True, eq=False)
class LinearModel:
    """One linear ranker, or K of them.

    score_k(x) = <coef_k, x> + intercept_k.

    Attributes:
      coef: (d,) for one ranker, (K, d) for many.
      intercept: () or (K,); 0 without one, -inf for a ranker that diverged in training (its
        coef is 0, so that it is never predicted).
      classes: (K,) labels in the order of the rankers, the two labels (negative, positive) of a
        binary ranker, or None for regression.

    Example:
      >>> import jax.numpy as jnp, numpy as np, jaxsolvers as js
      >>> model = js.LinearModel(jnp.eye(2), jnp.zeros(2), np.array(["a", "b"]))
      >>> model.predict(np.array([[0.0, 1.0]])).tolist()
      ['b']
    """

    coef: Any
    intercept: Any
    classes: np.ndarray | None

    @property
    def n_features(self) -> int:
        """d, the number of columns X must have."""
        return int(self.coef.shape[-1])

    def decision_function(self, X: Any, classes: Any = None) -> Array:
        """Scores of the rows.

        Args:
          X: (n, d) array of any real dtype.
          classes: labels of the rankers wanted, in the order wanted; all by default.

        Returns:
          (n,) for one ranker, (n, K) for many, in the dtype of coef.

        Raises:
          ValueError: X of another width or not 2-d, or a label that is not a class.
        """
        coef, intercept = self.coef, self.intercept
        if classes is not None:
            chosen = self._positions(classes)
            coef, intercept = coef[chosen], intercept[chosen]
        pieces = list(self._blocks(X, coef, intercept))
        return jnp.concatenate(pieces) if len(pieces) > 1 else pieces[0]

    def predict(self, X: Any, threshold: float = 0.0) -> np.ndarray:
        """Predicted labels.

        Many rankers: the class of the largest score, ties to the first. One ranker of a
        classification loss: the positive label where the score exceeds ``threshold``. Regression:
        the scores.

        Args:
          X: (n, d).
          threshold: score above which a binary ranker says yes.

        Returns:
          (n,) NumPy array of the dtype of the training labels.

        Raises:
          ValueError: X of another width or not 2-d.
        """
        if self.coef.ndim == 1:
            scores = np.asarray(self.decision_function(X))
            if self.classes is None:
                return scores
            return self.classes[(scores > threshold).astype(np.intp)]
        pieces = [np.asarray(_best(s)) for s in self._blocks(X, self.coef, self.intercept)]
        best = np.concatenate(pieces)
        return best if self.classes is None else self.classes[best]

    def top_k(self, X: Any, k: int) -> tuple[Array, Array]:
        """The k best classes of each row.

        Args:
          X: (n, d).
          k: how many, 1 ... K.

        Returns:
          (indices (n, k) int32 into ``classes``, scores (n, k)), best first, ties to the lowest
          index.

        Raises:
          ValueError: a single ranker, k out of range, X of another width or not 2-d.
        """
        if self.coef.ndim == 1:
            raise ValueError("top_k needs one ranker per class, this model has a single one")
        k = check_integer(k, "k", 1, self.coef.shape[0])
        found = [_top(s, k=k) for s in self._blocks(X, self.coef, self.intercept)]
        scores, indices = zip(*found, strict=True)
        return jnp.concatenate(indices), jnp.concatenate(scores)

    def _positions(self, classes: Any) -> np.ndarray:
        if self.coef.ndim == 1 or self.classes is None:
            raise ValueError("classes: this model has a single ranker, there is nothing to choose")
        known = {label: i for i, label in enumerate(self.classes.tolist())}
        wanted = np.asarray(classes)
        if wanted.ndim != 1:
            raise ValueError(f"classes must be a list of classes of this model, got {classes!r}")
        unknown = [label for label in wanted.tolist() if label not in known]
        if unknown:
            raise ValueError(f"classes: {unknown[0]!r} is not a class of this model")
        return np.array([known[label] for label in wanted.tolist()], np.int32)

    def _blocks(self, X: Any, coef: Any, intercept: Any) -> Any:
        """Yield the scores of consecutive rows, computed in few shapes whatever n is."""
        X = check_matrix(X, self.n_features)
        coef, intercept = jnp.asarray(coef), jnp.asarray(intercept)
        device = min(coef.devices(), key=lambda device: device.id)
        most = min(_LARGEST_BLOCK, max(1, _BLOCK_SCORES * self.n_features // max(1, coef.size)))
        for start in range(0, max(X.shape[0], 1), most):
            piece = X[start : start + most]
            count = piece.shape[0]
            shape = (min(most, 1 << max(count - 1, 0).bit_length()), X.shape[1])
            if isinstance(piece, jax.Array):
                padding = ((0, shape[0] - count), (0, 0))
                padded: Any = jnp.pad(piece.astype(coef.dtype), padding)
            else:
                padded = np.zeros(shape, coef.dtype)
                padded[:count] = piece
            yield _scores(coef, intercept, jax.device_put(padded, device))[:count]


@jax.jit
def _scores(coef: Array, intercept: Array, X: Array) -> Array:
    scores = product(X, coef.T)
    return scores + (intercept if coef.ndim == 1 else intercept[None])


@jax.jit
def _best(scores: Array) -> Array:
    return jnp.argmax(scores, axis=1).astype(jnp.int32)


@partial(jax.jit, static_argnames="k")
def _top(scores: Array, *, k: int) -> tuple[Array, Array]:
    # -0 ranks below 0 there, but the two are a tie.
    values, indices = jax.lax.top_k(jnp.where(scores == 0, 0, scores), k)
    return values, indices.astype(jnp.int32)
