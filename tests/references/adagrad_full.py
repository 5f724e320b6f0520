"""AdaGrad with a full metric: Duchi, Hazan, Singer, JMLR 12 (2011), Fig. 2, eqs. (3) and (4).

With G = sum_s g_s g_s' (round t included) and H = delta I + G^{1/2}, round t solves

    rda      w = argmin  eta <sum_s g_s, x> + eta t phi(x) + 1/2 <x, H x>
    mirror   w = argmin  eta <g_t, x> + eta phi(x) + 1/2 <x - w, H (x - w)>

for phi = strength ||x||_1. With delta = 0 and a singular G (and strength 0) the step stays within
the span of the gradients.
"""

from dataclasses import dataclass, field

import numpy as np

from . import losses


@dataclass
class FullRun:
    """One entry per round, taken at the weights before it; `w` also has the last ones."""

    w: list[np.ndarray] = field(default_factory=list)  # (d,), T + 1 of them
    gradient: list[np.ndarray] = field(default_factory=list)  # (d,)
    loss: list[float] = field(default_factory=list)


def eigen(G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of a positive semi-definite matrix, null ones exactly 0, and vectors."""
    values, vectors = np.linalg.eigh(G)
    return np.where(values > 1e-12 * values.max(), values, 0), vectors


def lasso(H: np.ndarray, linear: np.ndarray, threshold: float, start: np.ndarray) -> np.ndarray:
    """Argmin of 1/2 <x, H x> - <linear, x> + threshold ||x||_1, H > 0, coordinate by coordinate."""
    x = start.copy()
    while True:
        before = x.copy()
        for j in range(len(x)):
            rest = linear[j] - H[j] @ x + H[j, j] * x[j]
            x[j] = np.sign(rest) * max(abs(rest) - threshold, 0) / H[j, j]
        if np.abs(x - before).max() <= 1e-14 * max(1, np.abs(x).max()):
            return x


def adagrad_full(
    X: np.ndarray,
    y: np.ndarray,
    *,
    form: str,
    learning_rate: float,
    delta: float = 0.0,
    strength: float = 0.0,
    loss: str = "hinge",
) -> FullRun:
    """One row per round, in order; `form` is "rda" or "mirror"."""
    n, d = X.shape
    run, w, G, total = FullRun(), np.zeros(d), np.zeros((d, d)), np.zeros(d)
    for t in range(1, n + 1):
        score = float(X[t - 1] @ w)
        g = losses.slope(loss, score, y[t - 1], None) * X[t - 1]
        run.w.append(w)
        run.gradient.append(g)
        run.loss.append(losses.value(loss, score, y[t - 1], None))
        G, total = G + np.outer(g, g), total + g
        values, vectors = eigen(G)
        s = delta + np.sqrt(values)
        H = (vectors * s) @ vectors.T
        if strength == 0:
            inverse = (vectors * np.divide(1, s, out=np.zeros(d), where=s > 0)) @ vectors.T
            moved = inverse @ (total if form == "rda" else g)
            w = (0 if form == "rda" else w) - learning_rate * moved
        elif form == "rda":
            w = lasso(H, -learning_rate * total, learning_rate * t * strength, w)
        else:
            w = lasso(H, H @ w - learning_rate * g, learning_rate * strength, w)
    run.w.append(w)
    return run
