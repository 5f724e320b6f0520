"""Pegasos: Shalev-Shwartz, Singer, Srebro, Cotter, Math. Programming 127 (2011), Fig. 1 and 2.

Minimises lam/2 ||w||^2 + mean of s_i l(<w, x_i>, y_i) by the literal steps

    w <- (1 - 1/t) w - (eta_t / k_t) sum_i s_i l'_i x_i,    eta_t = 1/(lam t)
    w <- min(1, rho/||w||) w,                               rho = sqrt(l(0)/lam)   (if projecting)

on w itself, so that it is an independent check of code that carries U = lam t w.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from . import losses
from .averages import polynomial_average, uniform_average
from .progress import Progress, as_weights, live_rows


@dataclass
class PegasosRun(Progress):
    """One entry per round; a round without live rows repeats what was there."""

    w: list[np.ndarray] = field(default_factory=list)  # (d,) w_{t+1}, after the round
    t: list[int] = field(default_factory=list)  # the counter after the round
    average: list[np.ndarray] = field(default_factory=list)  # (d,) mean of w_s, s > start
    polynomial: list[np.ndarray] = field(default_factory=list)  # (d,) if a power was given


def pegasos(
    X: np.ndarray,
    y: np.ndarray,
    batches: Sequence[Sequence[int]],
    *,
    lam: float,
    loss: str = "hinge",
    parameter: float | None = None,
    weights: np.ndarray | None = None,
    project: bool = False,
    loss_at_zero: float | None = None,
    start_average: int = 0,
    polynomial_power: float | None = None,
    w0: np.ndarray | None = None,
    t0: int = 0,
) -> PegasosRun:
    """Run one round per batch.

    Args:
      X: rows (m, d).
      y: targets (m,).
      batches: index arrays into the rows; they may differ in length and repeat rows.
      lam: the regularisation strength.
      loss, parameter: a name from `losses` and its parameter.
      weights: sample weights (m,), used as given; a row of weight 0 is padding.
      project: project onto the ball of radius sqrt(l(0)/lam) after every step.
      loss_at_zero: l(0) for the projection; by default its weighted mean over all rows.
      start_average: only rounds with t > start_average enter the averages.
      polynomial_power: also keep the polynomial average of this power.
      w0, t0: weights (d,) to continue from and their counter, at least 1 if w0 is not zero.
    """
    X = np.asarray(X, dtype=float)
    y = np.asarray(y, dtype=float)
    s = as_weights(weights, len(X))
    first = np.zeros(X.shape[1]) if w0 is None else np.array(w0, dtype=float)
    if t0 < 1 and np.any(first != 0.0):
        raise ValueError("w0 without a counter: t0 must be at least 1")
    radius = math.inf
    if project:
        radius = projection_radius(y, s, lam, loss, parameter, loss_at_zero)

    run = PegasosRun()
    w, t = first.copy(), t0
    for batch in batches:
        live = live_rows(batch, s)
        scores = [float(w @ X[i]) for i in live]
        run.record(loss, parameter, scores, [y[i] for i in live], [s[i] for i in live])
        if live:
            t += 1
            eta = 1.0 / (lam * t)
            direction = np.zeros_like(w)
            for i, z in zip(live, scores, strict=True):
                direction -= s[i] * losses.slope(loss, z, y[i], parameter) * X[i]
            w = (1.0 - 1.0 / t) * w + (eta / len(live)) * direction
            norm = math.sqrt(w @ w)
            if norm > radius:
                w = (radius / norm) * w
        run.w.append(w.copy())
        run.t.append(t)

    run.average = uniform_average(first, run.w, run.t, t0=t0, start=start_average)
    if polynomial_power is not None:
        run.polynomial = polynomial_average(
            first, run.w, run.t, power=polynomial_power, t0=t0, start=start_average
        )
    return run


def projection_radius(
    y: np.ndarray,
    weights: np.ndarray,
    lam: float,
    loss: str = "hinge",
    parameter: float | None = None,
    loss_at_zero: float | None = None,
) -> float:
    """sqrt(l(0)/lam), a ball that holds the optimum of every convex non-negative loss."""
    if loss == "perceptron":
        raise ValueError("the perceptron has l(0) = 0 and so no ball to project on")
    if loss_at_zero is None:
        loss_at_zero = losses.value_at_zero(loss, y, parameter, weights)
    return math.sqrt(loss_at_zero / lam)
