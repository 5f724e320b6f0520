"""Stochastic gradient descent with shrinking weights: Zhang, ICML 2004, and NORMA: Kivinen, Smola
and Williamson, NIPS 2002.

Both minimise lam/2 ||w||^2 + mean of s_i l(<w, x_i>, y_i) by the literal step

    w <- (1 - eta_t lam) w - (eta_t / k_t) sum_i s_i l'_i x_i

with eta_t = eta (Zhang) or eta_t = c / (lam sqrt(t)) (NORMA).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from . import losses
from .progress import Progress, as_weights, live_rows


@dataclass
class SGDRun(Progress):
    """One entry per round; a round without live rows repeats what was there."""

    w: list[np.ndarray] = field(default_factory=list)  # (d,) after the round
    t: list[int] = field(default_factory=list)  # the counter after the round


def norma_rate(lam: float, c: float) -> Callable[[int], float]:
    """The step of NORMA: t -> c / (lam sqrt(t))."""
    return lambda t: c / (lam * math.sqrt(t))


def sgd(
    X: np.ndarray,
    y: np.ndarray,
    batches: Sequence[Sequence[int]],
    *,
    lam: float,
    rate: Callable[[int], float],
    loss: str = "hinge",
    parameter: float | None = None,
    weights: np.ndarray | None = None,
) -> SGDRun:
    """Run one round per batch.

    Args:
      X: rows (m, d).
      y: targets (m,).
      batches: index arrays into the rows; they may differ in length and repeat rows.
      lam: the regularisation strength.
      rate: t -> eta_t, t from 1.
      loss, parameter: a name from `losses` and its parameter.
      weights: sample weights (m,), used as given; a row of weight 0 is padding.
    """
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    s = as_weights(weights, len(X))
    run, w, t = SGDRun(), np.zeros(X.shape[1]), 0
    for batch in batches:
        live = live_rows(batch, s)
        scores = [float(w @ X[i]) for i in live]
        run.record(loss, parameter, scores, [y[i] for i in live], [s[i] for i in live])
        if live:
            t += 1
            direction = np.zeros_like(w)
            for i, z in zip(live, scores, strict=True):
                direction -= s[i] * losses.slope(loss, z, y[i], parameter) * X[i]
            w = (1.0 - rate(t) * lam) * w + (rate(t) / len(live)) * direction
        run.w.append(w.copy())
        run.t.append(t)
    return run
