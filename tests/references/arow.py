"""AROW: Crammer, Kulesza and Dredze, NIPS 2009, as a recursion on the inverse covariance.

A round on (x, y) of weight s minimises, over the mean and the covariance Sigma,

    KL(N(mu', Sigma') || N(mu, Sigma)) + s/(2 r) (l(<mu', x>, y) + x' Sigma' x)

with l the squared hinge (without a half) or, for "logistic", twice the logistic loss. The minimiser
has Sigma'^-1 = Sigma^-1 + s x x'/r; among diagonal covariances only its diagonal moves. With the
squared hinge a row on or beyond the margin changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from .passive_aggressive import logistic_length
from .progress import Progress, as_weights, live_rows


@dataclass
class AROWRun(Progress):
    """One entry per round; a round without live rows repeats what was there."""

    w: list[np.ndarray] = field(default_factory=list)  # (d,) the mean after the round
    covariance: list[np.ndarray] = field(default_factory=list)  # (d, d), or (d,) if diagonal
    t: list[int] = field(default_factory=list)


def arow(
    X: np.ndarray,
    y: np.ndarray,
    batches: Sequence[Sequence[int]],
    *,
    r: float,
    covariance: str,
    loss: str = "hinge",
    weights: np.ndarray | None = None,
) -> AROWRun:
    """Run one round per batch of one row.

    Args:
      X: rows (m, d).
      y: targets -1/+1 (m,).
      batches: one index each.
      r: how much is kept; a row of weight s has r / s.
      covariance: "full" or "diagonal".
      loss: "hinge" or "logistic".
      weights: sample weights (m,), used as given; a row of weight 0 is padding.
    """
    s = as_weights(weights, len(X))
    d = X.shape[1]
    run, mu, precision, t = AROWRun(), np.zeros(d), np.eye(d), 0
    for batch in batches:
        live = live_rows(batch, s)
        scores = [float(mu @ X[i]) for i in live]
        run.record(loss, None, scores, [y[i] for i in live], [s[i] for i in live])
        for i, z in zip(live, scores, strict=True):
            t += 1
            x, own = X[i], r / s[i]
            sigma = np.linalg.inv(precision)
            v = float(x @ sigma @ x)
            if loss == "hinge" and y[i] * z >= 1.0:
                continue
            if loss == "hinge":
                length = (1.0 - y[i] * z) / (v + own)
            else:
                length = logistic_length(y[i] * z, v, 1.0 / own)
            mu = mu + length * y[i] * (sigma @ x)
            outer = np.outer(x, x) / own
            precision = precision + (np.diag(np.diag(outer)) if covariance == "diagonal" else outer)
        sigma = np.linalg.inv(precision)
        run.w.append(mu.copy())
        run.covariance.append(np.diag(sigma).copy() if covariance == "diagonal" else sigma)
        run.t.append(t)
    return run
