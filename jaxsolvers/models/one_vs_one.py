"""One-vs-one models: a ranker per pair of classes, and a vote of them."""

from __future__ import annotations

import dataclasses
import os
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.checks import check_option
from jaxsolvers.members import Array
from jaxsolvers.models import one_vs_one_file
from jaxsolvers.models.archive import write_archive
from jaxsolvers.models.kernel import KernelModel
from jaxsolvers.models.linear import LinearModel

__all__ = ["OneVsOneModel"]

METHODS = ("vote", "margin")


@dataclasses.dataclass(frozen=True, eq=False)
class OneVsOneModel:
    """K (K - 1)/2 rankers, one per pair of classes.

    Ranker p stands for ``pairs[p] = (a, b)``, a < b: its score is above 0 for class a. A ranker
    that diverged in training (intercept -inf) has no vote and no margin.

    Attributes:
      rankers: a LinearModel or KernelModel of the K (K - 1)/2 rankers, without classes.
      classes: (K,) labels.

    Raises:
      ValueError: another number of rankers than there are pairs of classes.

    Example:
      >>> import jax.numpy as jnp, numpy as np, jaxsolvers as js
      >>> rankers = js.LinearModel(jnp.array([[1.0, -1], [1, 0], [0, 1]]), jnp.zeros(3), None)
      >>> model = js.OneVsOneModel(rankers, np.array(["a", "b", "c"]))
      >>> model.pairs.tolist(), model.predict(np.array([[1.0, 2.0], [-1.0, -2.0]])).tolist()
      ([[0, 1], [0, 2], [1, 2]], ['b', 'c'])
    """

    rankers: LinearModel | KernelModel
    classes: np.ndarray

    def __post_init__(self) -> None:
        classes = np.asarray(self.classes)
        object.__setattr__(self, "classes", classes)
        if not isinstance(self.rankers, LinearModel | KernelModel):
            raise ValueError(
                f"rankers must be a LinearModel or a KernelModel, got {type(self.rankers).__name__}"
            )
        n_classes = len(classes) if classes.ndim == 1 else 0
        n_pairs = n_classes * (n_classes - 1) // 2
        if n_pairs == 0 or self.rankers.n_rankers != n_pairs:
            raise ValueError(
                f"classes must be K labels for rankers of the K (K - 1)/2 pairs, got shape "
                f"{classes.shape} for {self.rankers.n_rankers} rankers"
            )

    @property
    def pairs(self) -> np.ndarray:
        """(P, 2) int32 positions of both classes of each ranker, a < b, in ascending order."""
        first, second = np.triu_indices(len(self.classes), 1)
        return np.stack([first, second], axis=1).astype(np.int32)

    @property
    def intercept(self) -> Any:
        """(P,), -inf for a ranker that diverged in training."""
        return self.rankers.intercept

    @property
    def n_features(self) -> int:
        """Columns X must have."""
        return self.rankers.n_features

    def decision_function(self, X: Any) -> Array:
        """Scores of the rows by all rankers, in the order of ``pairs``.

        Args:
          X: (n, d) array of any real dtype, or any sparse matrix.

        Returns:
          (n, P), above 0 for the first class of the pair; of the dtype of the coefficients
          (float32 if that has 16 bits).

        Raises:
          ValueError: X of another width, not 2-d or not finite.
        """
        return self.rankers.decision_function(X)

    def predict(self, X: Any, method: str = "vote") -> np.ndarray:
        """Predicted labels.

        "vote": the class with most votes, of each ranker one: for its first class where the score
        is above 0, else for its second. Ties go to the class of the larger sum of margins, and
        then to the first class. "margin": the class of the largest sum of margins,
        ``sum_b s_ab`` with ``s_ba = -s_ab``, ties to the first class. A pair that never saw the
        row's class may have a large margin for it: on most data votes are right more often.

        Args:
          X: (n, d), dense or sparse.
          method: "vote" (default) or "margin".

        Returns:
          (n,) NumPy array of the dtype of the training labels.

        Raises:
          ValueError: an unknown method, X of another width, not 2-d or not finite.
        """
        check_option(method, "method", METHODS)
        scorer = self.rankers.scorer()
        X = scorer.check(X)
        n_classes = len(self.classes)
        place, sign = _tables(n_classes)
        found = []
        for block in scorer.blocks(X, per_row=n_classes * n_classes):
            ((_, scores),) = scorer.panels(block, len(self.pairs))
            best = _best(scores, place, sign.astype(scores.dtype), vote=method == "vote")
            found.append(np.asarray(best)[: block.count])
        return self.classes[np.concatenate(found)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to exactly this path; ``js.load`` reads it.

        The file is NumPy's .npz without pickle, as that of ``LinearModel.save``: the entries of
        the rankers' own file without classes, with kind "OneVsOneModel"; ``rankers``, their own
        kind; ``labels``, the K classes.

        Args:
          path: the file; no extension is added, an existing file is replaced.

        Raises:
          ValueError: classes that are neither strings nor numbers of one kind; a kernel that is a
            function.
          OSError: the file cannot be written; one that was there is then untouched.
        """
        write_archive(path, one_vs_one_file.KIND, one_vs_one_file.pack(self.rankers, self.classes))


def _tables(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """For classes (a, b): the ranker of the pair, and +1 where a is its first, -1 its second."""
    first, second = np.triu_indices(n_classes, 1)
    place = np.zeros((n_classes, n_classes), np.int32)
    place[first, second] = place[second, first] = np.arange(len(first))
    sign = np.zeros((n_classes, n_classes), np.int8)
    sign[first, second], sign[second, first] = 1, -1
    return place, sign


@partial(jax.jit, static_argnames="vote")
def _best(scores: Array, place: Array, sign: Array, *, vote: bool) -> Array:
    """Position of the winner of each row, from the scores (R, P) of the pairs."""
    sound = jnp.isfinite(scores)
    # (R, K, K), antisymmetric: sums over a fixed axis, where a scatter would add in any order.
    margins = jnp.where(sound, scores, 0)[:, place] * sign[None]
    total = jnp.sum(margins, axis=2)
    if vote:
        for_first = (scores > 0)[:, place]
        wins = jnp.where(sign[None] > 0, for_first, ~for_first)
        wins = wins & sound[:, place] & (sign != 0)[None]
        votes = jnp.sum(wins.astype(jnp.int32), axis=2)
        ahead = votes == jnp.max(votes, axis=1, keepdims=True)
        total = jnp.where(ahead, total, -jnp.inf)
    return jnp.argmax(total, axis=1).astype(jnp.int32)
