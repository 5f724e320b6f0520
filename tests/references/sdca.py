"""Stochastic dual coordinate ascent: Shalev-Shwartz and Zhang, JMLR 14 (2013).

Minimises lam/2 ||w||^2 + sum_i p_i l(<w, x_i>, y_i), p_i = s_i / sum s, through one signed dual
number a_i per row (a_i = y_i alpha_i for classification) with w = (1/lam) sum_i p_i a_i x_i. A step
maximises the dual over one a_i; q = p_i ||x_i||^2 / lam measures how far that moves the score.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from . import losses
from .losses import clip, required, sigmoid, sign
from .progress import Progress, as_weights, live_rows
from .regularizers import soft

NAMES = (
    "hinge",
    "squared_hinge",
    "smoothed_hinge",
    "logistic",
    "squared",
    "absolute",
    "huber",
    "epsilon_insensitive",
)


@dataclass
class SDCARun(Progress):
    """One entry per step; a row of weight 0 repeats what was there."""

    w: list[np.ndarray] = field(default_factory=list)  # (d,)
    dual: list[np.ndarray] = field(default_factory=list)  # (m,) signed a
    t: list[int] = field(default_factory=list)  # live steps so far


def sdca(
    X: np.ndarray,
    y: np.ndarray,
    order: Sequence[int],
    *,
    lam: float,
    loss: str = "hinge",
    parameter: float | None = None,
    weights: np.ndarray | None = None,
    dual: np.ndarray | None = None,
) -> SDCARun:
    """Run one dual step per index of `order`, which may repeat rows and span several passes.

    Args:
      X: rows (m, d).
      y: targets (m,).
      lam: the regularisation strength.
      loss, parameter: a name from `NAMES` and the loss's parameter.
      weights: sample weights (m,); only their ratios matter; rows of weight 0 are skipped.
      dual: signed duals (m,) to continue from; 0 by default.
    """
    X = np.asarray(X, dtype=float)
    y = np.asarray(y, dtype=float)
    s = as_weights(weights, len(X))
    p = s / sum(s)
    a = np.zeros(len(X)) if dual is None else np.array(dual, dtype=float)
    w = primal(X, a, p, lam)

    run, t = SDCARun(), 0
    for index in order:
        live = live_rows([index], s)
        scores = [float(w @ X[i]) for i in live]
        run.record(loss, parameter, scores, [y[i] for i in live], [s[i] for i in live])
        for i, z in zip(live, scores, strict=True):
            q = p[i] * float(X[i] @ X[i]) / lam
            a[i] = dual_step(loss, z, y[i], a[i], q, parameter)
            w = primal(X, a, p, lam)
            t += 1
        run.w.append(w.copy())
        run.dual.append(a.copy())
        run.t.append(t)
    return run


def primal(X: np.ndarray, dual: np.ndarray, p: np.ndarray, lam: float) -> np.ndarray:
    """W = (1/lam) sum_i p_i a_i x_i (d,), added up afresh."""
    w = np.zeros(X.shape[1])
    for i in range(len(X)):
        w += p[i] * dual[i] / lam * X[i]
    return w


def dual_step(
    loss: str, z: float, y: float, a: float, q: float, parameter: float | None = None
) -> float:
    """The signed dual that maximises the dual objective over this row, all others held."""
    margin, alpha = y * z, y * a
    match loss:
        case "hinge":
            return y * (clip(alpha + (1.0 - margin) / q, 0.0, 1.0) if q > 0.0 else 1.0)
        case "squared_hinge":
            return y * max(0.0, alpha + (1.0 - margin - alpha) / (1.0 + q))
        case "smoothed_hinge":
            gamma = required(loss, parameter)
            return y * clip(alpha + (1.0 - margin - gamma * alpha) / (gamma + q), 0.0, 1.0)
        case "logistic":
            return y * sigmoid(-logistic_margin(margin, alpha, q))
        case "squared":
            return a + (y - z - a) / (1.0 + q)
        case "huber":
            delta = required(loss, parameter)
            return clip((y - z + q * a) / (1.0 + q), -delta, delta)
        case "absolute" | "epsilon_insensitive":
            epsilon = 0.0 if loss == "absolute" else required(loss, parameter)
            if q > 0.0:
                return clip(soft(y - z + q * a, epsilon) / q, -1.0, 1.0)
            return sign(y) if abs(y) > epsilon else 0.0
    raise ValueError(f"loss {loss!r} has no dual step; known: {NAMES}")


def logistic_margin(margin: float, alpha: float, q: float) -> float:
    """The root of u = margin + q (sigmoid(-u) - alpha), by bisection to the last float."""
    low, high = margin - q * alpha, margin + q * (1.0 - alpha)
    while True:
        u = low + (high - low) / 2.0
        if u in (low, high):
            return u
        if u < margin + q * (sigmoid(-u) - alpha):
            low = u
        else:
            high = u


def dual_term(loss: str, y: float, a: float, parameter: float | None = None) -> float:
    """d(a) of one row: minus the conjugate of its loss at -a; a must lie in the domain."""
    alpha = y * a
    match loss:
        case "hinge":
            return alpha
        case "squared_hinge":
            return alpha - alpha**2 / 2.0
        case "smoothed_hinge":
            return alpha - required(loss, parameter) * alpha**2 / 2.0
        case "logistic":
            return sum(-p * math.log(p) for p in (alpha, 1.0 - alpha) if p > 0.0)
        case "squared" | "huber":
            return a * y - a**2 / 2.0
        case "absolute":
            return a * y
        case "epsilon_insensitive":
            return a * y - required(loss, parameter) * abs(a)
    raise ValueError(f"loss {loss!r} has no dual; known: {NAMES}")


def duality_gap(
    X: np.ndarray,
    y: np.ndarray,
    dual: np.ndarray,
    *,
    lam: float,
    loss: str = "hinge",
    parameter: float | None = None,
    weights: np.ndarray | None = None,
) -> float:
    """Primal minus dual objective of w(a): lam ||w||^2 + sum_i p_i (l_i - d_i)."""
    s = as_weights(weights, len(X))
    p = s / sum(s)
    w = primal(X, dual, p, lam)
    gap = lam * float(w @ w)
    for i in range(len(X)):
        value = losses.value(loss, float(w @ X[i]), y[i], parameter)
        gap += p[i] * (value - dual_term(loss, y[i], dual[i], parameter))
    return gap
