"""The bias that is best for the hinge loss of some rows, from its definition, and a search for it.

L(b) = sum_i s_i [1 - y_i (z_i + b)]_+ is convex, with kinks at y_i - z_i: it is least on an
interval between two of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from .sdca import dual_step, primal


def hinge_loss(z: Sequence[float], y: Sequence[float], s: Sequence[float], b: float) -> float:
    """L(b)."""
    rows = zip(z, y, s, strict=True)
    return float(sum(weight * max(0.0, 1.0 - c * (score + b)) for score, c, weight in rows))


def best_bias(z: Sequence[float], y: Sequence[float], s: Sequence[float]) -> float:
    """The middle of all b that minimise L, their end if there is but one; 0 without a row."""
    kinks = [c - score for score, c, weight in zip(z, y, s, strict=True) if weight > 0]
    if not kinks:
        return 0.0
    values = np.array([hinge_loss(z, y, s, b) for b in kinks])
    least = np.array(kinks)[values <= values.min() + 1e-12 * (1.0 + values.max())]
    return float(least.min() + least.max()) / 2.0


def weighted_steps(z: Sequence[float], y: Sequence[float], s: Sequence[float]) -> list[float]:
    """s_i v_i of a sub-gradient of min_b L(b): b passes kinks until as much weight as the
    positive rows have lies behind it; a negative row behind it and a positive one ahead take part.
    """
    order = sorted(range(len(z)), key=lambda i: y[i] - z[i])  # stable
    left = sum(weight for c, weight in zip(y, s, strict=True) if c > 0)
    steps = [0.0] * len(z)
    for i in order:
        passed = min(s[i], left)
        left -= passed
        steps[i] = s[i] - passed if y[i] > 0 else -passed
    return steps


@dataclass
class SearchRun:
    """One entry per epoch."""

    w: list[np.ndarray] = field(default_factory=list)  # (d,)
    dual: list[np.ndarray] = field(default_factory=list)  # (m,) signed
    trial: list[float] = field(default_factory=list)  # the bias of the next epoch's rounds
    bracket: list[tuple[float, float]] = field(default_factory=list)  # where it may still be
    bias: list[float] = field(default_factory=list)  # the best one for w


def search(
    X: np.ndarray,
    y: np.ndarray,
    *,
    lam: float,
    epochs: int,
    weights: np.ndarray,
    slack: float,
) -> SearchRun:
    """Dual steps in file order at a fixed b, which moves after epochs whose gap allows it.

    Args:
      X, y, weights: rows (m, d), targets -1/+1 and weights > 0.
      lam: the regularisation strength.
      epochs: how many.
      slack: what a lower bound is lowered by, relative to the objectives.
    """
    p, a, b = weights / weights.sum(), np.zeros(len(y)), 0.0
    low, high, least, run = -np.inf, np.inf, np.inf, SearchRun()
    edge = 1.0 + np.sqrt(max(x @ x for x in X) / lam)
    for _ in range(epochs):
        for i in range(len(y)):
            z = primal(X, a, p, lam) @ X[i] + b
            a[i] = dual_step("hinge", z, y[i], a[i], p[i] * float(X[i] @ X[i]) / lam)
        w = primal(X, a, p, lam)
        best, half = best_bias(X @ w, y, p), lam / 2 * float(w @ w)
        least = min(least, half + hinge_loss(X @ w, y, p, best))
        bound, slope = float(p @ (a * (y - b))) - half, -float(p @ a)
        excess = least - bound + slack * (least + half)
        if slope > 0:
            high = min(high, b + excess / slope)
        if slope < 0:
            low = max(low, b + excess / slope)
        low, high = max(low, -edge), min(high, edge)
        if abs(b - (low + high) / 2) > (high - low) / 4:
            b = (low + high) / 2
        for record, value in (
            (run.w, w), (run.dual, a.copy()), (run.trial, b), (run.bracket, (low, high)),
            (run.bias, best),
        ):  # fmt: skip
            record.append(value)
    return run
