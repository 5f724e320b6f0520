"""Stochastic variance-reduced gradient: Johnson and Zhang, NIPS 2013, Fig. 1.

Minimises lam/2 ||w||^2 + sum_i p_i l(<w, x_i>, y_i), p_i = s_i / sum s. A snapshot keeps the slopes
v_i = -l'(<w, x_i>, y_i) and mu = sum_i p_i v_i x_i; a round over k live rows is

    w <- (1 - eta lam) w + eta ((1/k) sum_i m p_i (v - v_i) x_i + mu)

with m live rows in all. Before the first snapshot v_i = 0, mu = 0 and m p_i = s_i. Without a rate
eta = 1/(3 L), L = l'' max_i m p_i ||x_i||^2 + lam over the rows known so far.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from . import losses
from .losses import required
from .progress import Progress, as_weights, live_rows

CURVATURE = {"squared_hinge": 1.0, "logistic": 0.25, "squared": 1.0, "huber": 1.0}


@dataclass
class SVRGRun(Progress):
    """One entry per round; a round without live rows repeats what was there."""

    w: list[np.ndarray] = field(default_factory=list)  # (d,) after the round
    t: list[int] = field(default_factory=list)  # the counter after the round
    slopes: list[np.ndarray] = field(default_factory=list)  # (m,) v_i of the snapshot in use
    mean: list[np.ndarray] = field(default_factory=list)  # (d,) mu


def curvature(loss: str, parameter: float | None) -> float:
    """The bound of l'', 1 for a loss with a kink."""
    if loss == "smoothed_hinge":
        return 1.0 / required(loss, parameter)
    return CURVATURE.get(loss, 1.0)


def svrg(
    X: np.ndarray,
    y: np.ndarray,
    batches: Sequence[Sequence[int]],
    *,
    lam: float,
    rate: float | None = None,
    loss: str = "logistic",
    parameter: float | None = None,
    weights: np.ndarray | None = None,
    epoch: int | None = None,
) -> SVRGRun:
    """Run one round per batch.

    Args:
      X: rows (m, d).
      y: targets (m,).
      batches: index arrays into the rows; they may differ in length and repeat rows.
      lam: the regularisation strength.
      rate: eta, None for 1/(3 L).
      loss, parameter: a name from `losses` and its parameter.
      weights: sample weights (m,); a row of weight 0 is padding.
      epoch: rounds between snapshots, the first before round 1; None: no snapshot at all.
    """
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    s = as_weights(weights, len(X))
    run, w, t = SVRGRun(), np.zeros(X.shape[1]), 0
    slopes, mu, ratio, largest = np.zeros(len(X)), np.zeros(X.shape[1]), 1.0, 0.0

    def v(i: int, z: float) -> float:
        return -losses.slope(loss, z, y[i], parameter)

    for number, batch in enumerate(batches):
        if epoch is not None and number % epoch == 0:
            every = live_rows(range(len(X)), s)
            ratio = len(every) / sum(s)
            slopes, mu = np.zeros(len(X)), np.zeros(X.shape[1])
            for i in every:
                slopes[i] = v(i, float(w @ X[i]))
                mu += s[i] / sum(s) * slopes[i] * X[i]
            largest = max(s[i] * float(X[i] @ X[i]) for i in every)
        live = live_rows(batch, s)
        scores = [float(w @ X[i]) for i in live]
        run.record(loss, parameter, scores, [y[i] for i in live], [s[i] for i in live])
        if live:
            t += 1
            largest = max(largest, *(s[i] * float(X[i] @ X[i]) for i in live))
            eta = rate
            if eta is None:
                eta = 1.0 / (3.0 * (curvature(loss, parameter) * ratio * largest + lam))
            direction = mu.copy()
            for i, z in zip(live, scores, strict=True):
                direction += ratio * s[i] * (v(i, z) - slopes[i]) * X[i] / len(live)
            w = (1.0 - eta * lam) * w + eta * direction
        run.w.append(w.copy())
        run.t.append(t)
        run.slopes.append(slopes.copy())
        run.mean.append(mu.copy())
    return run
