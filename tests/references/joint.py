"""Losses of the scores of all classes, and AdaGrad and linear steps on weights (C, d) with them.

Crammer, Singer, JMLR 2 (2001), the costs as in Crammer et al., JMLR 7 (2006); Duchi, Hazan,
Singer, JMLR 12 (2011), eqs. (3) and (4) with the diagonal metric, over all C d coordinates.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

Prox = Callable[[np.ndarray, np.ndarray, float], np.ndarray]  # (z, h, tau) -> x, all (C, d)


def hinge(z: np.ndarray, y: int, cost: np.ndarray | None = None) -> tuple[float, np.ndarray]:
    """max(0, max_{r != y} cost[r, y] + z_r - z_y) and a sub-gradient, for scores z (C,)."""
    best, rival = 0.0, y
    for r in range(len(z)):
        if r != y:
            value = (1.0 if cost is None else cost[r, y]) + z[r] - z[y]
            if value > best:
                best, rival = value, r
    slope = np.zeros(len(z))
    if rival != y:
        slope[rival], slope[y] = 1.0, -1.0
    return best, slope


def logistic(z: np.ndarray, y: int) -> tuple[float, np.ndarray]:
    """Log sum_r exp(z_r - z_y) and its gradient, for scores z (C,)."""
    largest = max(z)
    terms = [math.exp(v - largest) for v in z]
    slope = np.array(terms) / sum(terms)
    slope[y] -= 1.0
    return largest + math.log(sum(terms)) - z[y], slope


class JointRun(NamedTuple):
    """One entry per batch."""

    w: list[np.ndarray]  # (C, d)
    accumulator: list[np.ndarray]  # (C, d)
    t: list[int]
    loss: list[float]  # sums over the live rows of the batch
    mistakes: list[int]  # rows whose class does not score strictly best
    violations: list[int]


def adagrad(
    X: np.ndarray,
    y: np.ndarray,
    batches: Sequence[Sequence[int]],
    loss: Callable[[np.ndarray, int], tuple[float, np.ndarray]],
    prox: Prox,
    *,
    n_classes: int,
    form: str,
    learning_rate: float,
    delta: float,
    accumulate: str,
    weights: np.ndarray,
) -> JointRun:
    """Run AdaGrad on the weights of all classes; the arguments are those of ``adagrad.adagrad``."""
    shape = (n_classes, X.shape[1])
    w, total, G, t = np.zeros(shape), np.zeros(shape), np.zeros(shape), 0
    run = JointRun([], [], [], [], [], [])
    for batch in batches:
        live = [i for i in batch if weights[i] > 0]
        gradient, square = np.zeros(shape), np.zeros(shape)
        sums = [0.0, 0, 0]
        for i in live:
            z = w @ X[i]
            value, slope = loss(z, int(y[i]))
            own = weights[i] * np.outer(slope, X[i])
            gradient, square = gradient + own, square + own * own
            sums[0] += weights[i] * value
            sums[1] += any(z[r] >= z[y[i]] for r in range(n_classes) if r != y[i])
            sums[2] += bool(slope.any())
        if live:
            rounds = len(live)
            if accumulate == "batch":
                gradient, rounds = gradient / rounds, 1
                square = gradient * gradient
            t, G, total = t + rounds, G + square, total + gradient
            h = delta + np.sqrt(G)
            seen = h > 0
            safe = np.where(seen, h, 1.0)
            if form == "rda":
                z, tau = -learning_rate * total / safe, learning_rate * t
            else:
                z, tau = w - learning_rate * gradient / safe, learning_rate * rounds
            w = np.where(seen, prox(np.where(seen, z, 0.0), h, tau), w)
        for record, value in zip(run, (w.copy(), G.copy(), t, *sums), strict=True):
            record.append(value)
    return run


class LinearRun(NamedTuple):
    """One entry per batch."""

    w: list[np.ndarray]  # (C, d)
    bias: list[np.ndarray]  # (C,)
    t: list[int]
    loss: list[float]


def linear(
    X: np.ndarray,
    y: np.ndarray,
    batches: Sequence[Sequence[int]],
    loss: Callable[[np.ndarray, int], tuple[float, np.ndarray]],
    step: Callable[[int], tuple[float, float]],
    *,
    n_classes: int,
    weights: np.ndarray,
    radius: float = math.inf,
    bias: bool = False,
) -> LinearRun:
    """W <- (1 - shrink) w - (rate/k) sum_i s_i dl/dz x_i', then onto the Frobenius ball.

    ``step(t)`` gives (shrink, rate); for Pegasos 1/t and 1/(lam t). A bias takes the same step
    without the shrinking and is outside the ball.
    """
    w, b, t = np.zeros((n_classes, X.shape[1])), np.zeros(n_classes), 0
    run = LinearRun([], [], [], [])
    for batch in batches:
        live, total = [i for i in batch if weights[i] > 0], 0.0
        gradient, slopes = np.zeros_like(w), np.zeros(n_classes)
        for i in live:
            value, slope = loss(w @ X[i] + b, int(y[i]))
            gradient += weights[i] * np.outer(slope, X[i])
            slopes += weights[i] * slope
            total += weights[i] * value
        if live:
            t += 1
            shrink, rate = step(t)
            w = (1 - shrink) * w - rate / len(live) * gradient
            b = b - rate / len(live) * slopes if bias else b
            w = w * min(1.0, radius / max(math.sqrt((w * w).sum()), 1e-300))
        for record, value in zip(run, (w.copy(), b.copy(), t, total), strict=True):
            record.append(value)
    return run


def soft(strength: float) -> Prox:
    """The prox of strength ||w||_1."""

    def prox(z: np.ndarray, h: np.ndarray, tau: float) -> np.ndarray:
        shrink = np.divide(tau * strength, h, out=np.full(h.shape, np.inf), where=h > 0)
        return np.sign(z) * np.maximum(np.abs(z) - shrink, 0)

    return prox


def identity(z: np.ndarray, h: np.ndarray, tau: Any) -> np.ndarray:
    """The prox of 0."""
    return z
