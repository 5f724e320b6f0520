"""Passive-Aggressive: Crammer, Dekel, Keshet, Shalev-Shwartz, Singer, JMLR 7 (2006), Fig. 1.

A row with loss l and q = ||x||^2 > 0 moves w by tau v x, v = -l', with

    pa    tau = l / q        pa1   tau = min(C, l / q)        pa2   tau = l / (q + 1 / (2 C))

A sample weight multiplies C, so it leaves "pa", which has no C, alone unless it is 0. The logistic
loss has the one step tau = C sigma(-u), u = y z + C q sigma(-u), whatever the variant.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from . import losses
from .losses import sigmoid
from .progress import Progress, as_weights, live_rows
from .sdca import logistic_margin


@dataclass
class PassiveAggressiveRun(Progress):
    """One entry per round; a row of weight 0 repeats what was there."""

    w: list[np.ndarray] = field(default_factory=list)  # (d,)
    t: list[int] = field(default_factory=list)  # live rows so far, zero vectors among them


def passive_aggressive(
    X: np.ndarray,
    y: np.ndarray,
    order: Sequence[int],
    *,
    C: float = 1.0,
    variant: str = "pa1",
    loss: str = "hinge",
    parameter: float | None = None,
    weights: np.ndarray | None = None,
    w0: np.ndarray | None = None,
) -> PassiveAggressiveRun:
    """Run one round per index of `order`.

    Args:
      X: rows (m, d).
      y: targets (m,).
      C: the aggressiveness.
      variant: "pa", "pa1" or "pa2".
      loss, parameter: "hinge", "logistic", "absolute" or "epsilon_insensitive" and its epsilon.
      weights: sample weights (m,), used as given.
      w0: weights (d,) to start from; 0 by default.
    """
    if loss not in ("hinge", "logistic", "absolute", "epsilon_insensitive"):
        raise ValueError(f"no passive-aggressive step for loss {loss!r}")
    X = np.asarray(X, dtype=float)
    y = np.asarray(y, dtype=float)
    s = as_weights(weights, len(X))
    w = np.zeros(X.shape[1]) if w0 is None else np.array(w0, dtype=float)

    run, t = PassiveAggressiveRun(), 0
    for index in order:
        live = live_rows([index], s)
        scores = [float(w @ X[i]) for i in live]
        run.record(loss, parameter, scores, [y[i] for i in live], [s[i] for i in live])
        for i, z in zip(live, scores, strict=True):
            t += 1
            q = float(X[i] @ X[i])
            if q == 0.0:
                continue
            if loss == "logistic":
                u = logistic_margin(y[i] * z, 0.0, C * s[i] * q)
                w = w + C * s[i] * sigmoid(-u) * y[i] * X[i]
            else:
                tau = step_size(variant, losses.value(loss, z, y[i], parameter), q, C * s[i])
                w = w - tau * losses.slope(loss, z, y[i], parameter) * X[i]
        run.w.append(w.copy())
        run.t.append(t)
    return run


def step_size(variant: str, loss: float, q: float, C: float) -> float:
    """Tau for a row of this loss, square norm q > 0 and own aggressiveness C."""
    match variant:
        case "pa":
            return loss / q
        case "pa1":
            return min(C, loss / q)
        case "pa2":
            return loss / (q + 1.0 / (2.0 * C))
    raise ValueError(f"unknown variant {variant!r}; known: 'pa', 'pa1', 'pa2'")
