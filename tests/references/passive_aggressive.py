"""Passive-aggressive learning: Crammer, Dekel, Keshet, Shalev-Shwartz and Singer, JMLR 7 (2006).

On each row in turn the weights move as little as the variant allows (eq. 2, 6, 7):

    pa    min 1/2 ||w' - w||^2             subject to l(<w', x>, y) = 0
    pa1   min 1/2 ||w' - w||^2 + C s l(<w', x>, y)
    pa2   min 1/2 ||w' - w||^2 + C s l(<w', x>, y)^2

with the closed forms of their Fig. 1 for the hinge and the eps-insensitive loss. For the logistic
loss pa1 has no closed form: its one-variable equation is solved here by bisection.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from . import losses
from .losses import sigmoid
from .progress import Progress, as_weights, live_rows


@dataclass
class PassiveAggressiveRun(Progress):
    """One entry per round; a round without live rows repeats what was there."""

    w: list[np.ndarray] = field(default_factory=list)  # (d,) after the round
    t: list[int] = field(default_factory=list)


def logistic_length(margin: float, q: float, C: float) -> float:
    """Tau in [0, C] with tau = C sigma(-(margin + q tau)), by bisection."""
    low, high = 0.0, C
    for _ in range(200):
        middle = (low + high) / 2.0
        if middle < C * sigmoid(-(margin + q * middle)):
            low = middle
        else:
            high = middle
    return (low + high) / 2.0


def step(
    name: str, variant: str, z: float, y: float, q: float, C: float, parameter: float | None = None
) -> float:
    """The number c of w' = w + c x."""
    if q == 0.0:
        return 0.0
    if name == "logistic":
        return y * logistic_length(y * z, q, C)
    loss = losses.value(name, z, y, parameter)
    direction = -losses.slope(name, z, y, parameter)
    match variant:
        case "pa":
            return direction * loss / q
        case "pa1":
            return direction * min(C, loss / q)
        case "pa2":
            return direction * loss / (q + 1.0 / (2.0 * C))
    raise ValueError(variant)


def passive_aggressive(
    X: np.ndarray,
    y: np.ndarray,
    batches: Sequence[Sequence[int]],
    *,
    C: float,
    variant: str,
    loss: str = "hinge",
    parameter: float | None = None,
    weights: np.ndarray | None = None,
) -> PassiveAggressiveRun:
    """Run one round per batch of one row.

    Args:
      X: rows (m, d).
      y: targets (m,).
      batches: one index each.
      C: aggressiveness; a row of weight s has C s.
      variant: pa, pa1 or pa2.
      loss, parameter: a name from `losses` and its parameter.
      weights: sample weights (m,), used as given; a row of weight 0 is padding.
    """
    s = as_weights(weights, len(X))
    run, w, t = PassiveAggressiveRun(), np.zeros(X.shape[1]), 0
    for batch in batches:
        live = live_rows(batch, s)
        scores = [float(w @ X[i]) for i in live]
        run.record(loss, parameter, scores, [y[i] for i in live], [s[i] for i in live])
        for i, z in zip(live, scores, strict=True):
            t += 1
            q = math.fsum(X[i] * X[i])
            w = w + step(loss, variant, z, y[i], q, C * s[i], parameter) * X[i]
        run.w.append(w.copy())
        run.t.append(t)
    return run
