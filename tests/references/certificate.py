"""A lower bound of the hinge objective from how often every row violated its margin."""

from collections.abc import Sequence

import numpy as np


def violation_counts(
    X: np.ndarray, y: np.ndarray, weights: Sequence[np.ndarray], rounds: Sequence[Sequence[int]]
) -> np.ndarray:
    """How often each row violated (y <w, x> < 1 at the weights before its round), (m,)."""
    counts = np.zeros(len(y))
    before = [np.zeros(X.shape[1]), *weights]
    for w, batch in zip(before, rounds, strict=False):
        for i in batch:
            counts[i] += y[i] * (X[i] @ w) < 1
    return counts


def bound_from_counts(
    X: np.ndarray, y: np.ndarray, counts: np.ndarray, *, lam: float, rounds: int, k: int
) -> float:
    """``mean(alpha) - lam/2 ||w(alpha)||^2`` at alpha_i = n_i m/(k T), clipped to [0, 1], with
    ``w(alpha) = (1/(lam m)) sum_i alpha_i y_i x_i`` built afresh.
    """
    m = len(y)
    alpha = np.clip(counts * m / (k * rounds), 0, 1)
    w = X.T @ (alpha * y) / (lam * m)
    return float(alpha.mean() - lam / 2 * w @ w)
