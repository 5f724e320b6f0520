"""What a selection finds, and how the best point is chosen."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from jaxsolvers.protocol import Solver
from jaxsolvers.selection.grid import Grid
from jaxsolvers.selection.scoring import LARGEST_IS_BEST, Scores


class GridResult(NamedTuple):
    """What ``grid_search`` and ``online_selection`` return.

    Attributes:
      table: columns over the P points: the numbers by name (P,); ``score`` and ``score_std`` (P,),
        mean and standard deviation over the folds (or batches) of ``fold_scores`` (P, folds);
        of several rankers ``class_scores`` (P, folds, K). NaN where a ranker was lost.
      best: the solver with the numbers of the best point.
      best_per_class: the solver with one value per class, each that class's best, as
        ``fit_one_vs_rest`` takes it; None of one ranker or of classes that are one problem.
      model: the model trained on all rows; None with ``refit=False``.
    """

    table: dict[str, np.ndarray]
    best: Solver
    best_per_class: Solver | None
    model: Any


class Choice(NamedTuple):
    """The points chosen."""

    table: dict[str, np.ndarray]
    best: int
    per_class: np.ndarray | None  # (K,)


def choose(grid: Grid, scores: Scores, scoring: str, weight: np.ndarray) -> Choice:
    """The table and the best points.

    Args:
      grid: P points.
      scores: of every point, split and class; NaN where there is none.
      scoring: its name.
      weight: (splits,) what each split counts in the mean.

    Raises:
      FloatingPointError: every point lost a ranker.
    """
    shared, lost = scores.shared, scores.lost
    mean, std = _moments(shared, weight)
    mean = np.where(lost.any(axis=(1, 2)), np.nan, mean)
    if np.isnan(mean).all():
        raise FloatingPointError(
            "the numbers of solver do not suit X: every grid point lost a ranker to the end of "
            "the floating-point range, or has no score"
        )
    if lost.any():
        first = int(np.flatnonzero(lost.any(axis=(1, 2)))[0])
        warnings.warn(
            f"{lost.any(axis=(1, 2)).sum()} of {grid.points} grid points lost rankers to the end "
            f"of the floating-point range (the first: {grid.described(first)}); their scores are "
            "NaN",
            RuntimeWarning,
            stacklevel=3,
        )
    sign = 1 if scoring in LARGEST_IS_BEST else -1
    best = int(np.nanargmax(sign * mean))
    table = {**grid.values, "score": mean, "score_std": std, "fold_scores": shared}
    if scores.per_class is None or scores.per_class.shape[2] == 1:
        return Choice(table, best, None)
    table["class_scores"] = scores.per_class
    own = sign * _moments(np.moveaxis(scores.per_class, 1, 2), weight)[0]  # (P, K)
    own = np.where(lost.any(axis=1), np.nan, own)
    known = ~np.isnan(own).all(axis=0)
    per_class = np.where(known, np.argmax(np.where(np.isnan(own), -np.inf, own), axis=0), best)
    return Choice(table, best, per_class)


def _moments(values: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation over the last axis.

    A split without a score at any point is left out; one without at this point alone gives NaN.
    """
    missing = np.isnan(values).all(axis=0)
    share = np.where(missing, 0.0, weight)
    total = share.sum(axis=-1)
    share = share / np.where(total > 0, total, np.nan)[..., None]
    filled = np.where(missing, 0.0, values)
    mean = (share * filled).sum(axis=-1)
    return mean, np.sqrt((share * (filled - mean[..., None]) ** 2).sum(axis=-1))
