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
from .hinge_bias import best_bias, weighted_steps
from .progress import Progress, as_weights, live_rows


@dataclass
class PegasosRun(Progress):
    """One entry per round; a round without live rows repeats what was there."""

    w: list[np.ndarray] = field(default_factory=list)  # (d,) w_{t+1}, after the round
    t: list[int] = field(default_factory=list)  # the counter after the round
    average: list[np.ndarray] = field(default_factory=list)  # (d,) mean of w_s, s > start
    polynomial: list[np.ndarray] = field(default_factory=list)  # (d,) if a power was given
    bias: list[np.ndarray] = field(default_factory=list)  # () b_{t+1}
    doubt: float = math.inf  # the least gap between two kinks that a batch bias had to order


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
    bias: str = "none",
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
      bias: "unregularized": b <- b - (eta_t / k_t) sum_i s_i l'_i beside w; "batch": the
        sub-gradient of the hinge loss minimised over the batch's own b, and Progress at that b.
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
    w, t, b = first.copy(), t0, 0.0
    for batch in batches:
        live = live_rows(batch, s)
        scores = [float(w @ X[i]) + b for i in live]
        targets, own = [y[i] for i in live], [s[i] for i in live]
        if bias == "batch" and live:
            steps = weighted_steps(scores, targets, own)
            gaps = np.diff(np.unique([c - z for c, z in zip(targets, scores, strict=True)]))
            run.doubt = min([run.doubt, *gaps[gaps > 1e-12].tolist()])
            best = best_bias(scores, targets, own)
            # c - ((c - z) - best) is z + best, exactly on the margin for the row whose kink it is
            scores = [c - ((c - z) - best) for c, z in zip(targets, scores, strict=True)]
        else:
            pairs = zip(live, scores, strict=True)
            steps = [-s[i] * losses.slope(loss, z, y[i], parameter) for i, z in pairs]
        run.record(loss, parameter, scores, targets, own)
        if live:
            t += 1
            eta = 1.0 / (lam * t)
            direction = np.zeros_like(w)
            for i, step in zip(live, steps, strict=True):
                direction += step * X[i]
            w = (1.0 - 1.0 / t) * w + (eta / len(live)) * direction
            if bias == "unregularized":
                b += (eta / len(live)) * sum(steps)
            norm = math.sqrt(w @ w)
            if norm > radius:
                w = (radius / norm) * w
        run.w.append(w.copy())
        run.t.append(t)
        run.bias.append(np.array(b))

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
