"""RDA and FOBOS: Xiao, JMLR 11 (2010), and Duchi, Singer, JMLR 10 (2009), with one step size.

Round t, with g the mean of s_i g_i over the live rows of the batch:

    rda     w = prox(x_1 - (1/sqrt t) sum_s eta_s g_s; 1, (1/sqrt t) sum_s eta_s)
    fobos   w = prox(w - eta_t/sqrt t g; 1, eta_t/sqrt t)

With a constant eta the first is prox(-eta sqrt(t) gbar; 1, eta sqrt(t)), gbar the mean of all g.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import losses, regularizers
from .progress import Progress, as_weights, live_rows

Rate = float | Callable[[int], float]


@dataclass
class ProximalRun(Progress):
    """One entry per batch; a batch without live rows repeats what was there."""

    w: list[np.ndarray] = field(default_factory=list)  # (d,)
    rated_sum: list[np.ndarray] = field(default_factory=list)  # (d,) sum of eta_s g_s
    t: list[int] = field(default_factory=list)  # the counter after the batch


def proximal(
    X: np.ndarray,
    y: np.ndarray,
    batches: Sequence[Sequence[int]],
    *,
    form: str,
    learning_rate: Rate,
    loss: str = "hinge",
    parameter: float | None = None,
    regularizer: str = "none",
    strengths: dict[str, Any] | None = None,
    weights: np.ndarray | None = None,
    centre: np.ndarray | None = None,
) -> ProximalRun:
    """Run one round per batch; the arguments are those of ``adagrad``."""
    if form not in ("rda", "fobos"):
        raise ValueError(f"unknown form {form!r}; known: 'rda', 'fobos'")
    d = X.shape[1]
    s = as_weights(weights, len(X))
    centre = np.zeros(d) if centre is None else np.asarray(centre, float)
    run = ProximalRun()
    w, total, rates, t = centre.copy(), np.zeros(d), 0.0, 0
    for batch in batches:
        live = live_rows(batch, s)
        scores = [float(w @ X[i]) for i in live]
        run.record(loss, parameter, scores, [y[i] for i in live], [s[i] for i in live])
        if live:
            t += 1
            eta = learning_rate(t) if callable(learning_rate) else learning_rate
            g = np.zeros(d)
            for i, z in zip(live, scores, strict=True):
                g += s[i] * losses.slope(loss, z, y[i], parameter) * X[i] / len(live)
            total, rates = total + eta * g, rates + eta
            if form == "rda":
                z, tau = centre - total / math.sqrt(t), rates / math.sqrt(t)
            else:
                z, tau = w - eta / math.sqrt(t) * g, eta / math.sqrt(t)
            w = regularizers.prox(regularizer, z, np.ones(d), tau, **(strengths or {}))
        run.w.append(w.copy())
        run.rated_sum.append(total.copy())
        run.t.append(t)
    return run
