"""Kernel Pegasos: Shalev-Shwartz, Singer, Srebro, Cotter, Math. Programming 127 (2011), Fig. 3.

With signed real coefficients, any loss, weights and batches: in round t

    z_i = sum_j beta_j k(x_j, x_i) / (lam max(t - 1, 1)),
    beta_i <- beta_i - s_i l'_i / k_t   for the live rows i of the batch,

and w_{t+1} = sum_j beta_j phi(x_j) / (lam t). The paper's counts are |beta_j| for hinge and k = 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from . import losses
from .progress import Progress, as_weights, live_rows


@dataclass
class KernelPegasosRun(Progress):
    """One entry per round; a round without live rows repeats what was there."""

    beta: list[np.ndarray] = field(default_factory=list)  # (n,)
    alpha: list[np.ndarray] = field(default_factory=list)  # (n,) of w_{t+1}
    t: list[int] = field(default_factory=list)


def kernel_pegasos(
    K: np.ndarray,
    y: np.ndarray,
    batches: Sequence[Sequence[int]],
    *,
    lam: float,
    loss: str = "hinge",
    parameter: float | None = None,
    weights: np.ndarray | None = None,
) -> KernelPegasosRun:
    """Run one round per batch of positions in the training rows, whose kernel values are K."""
    s = as_weights(weights, len(y))
    run = KernelPegasosRun()
    beta, t = np.zeros(len(y)), 0
    for batch in batches:
        live = live_rows(batch, s)
        scores = [float(K[i] @ beta) / (lam * max(t, 1)) for i in live]
        run.record(loss, parameter, scores, [y[i] for i in live], [s[i] for i in live])
        for i, z in zip(live, scores, strict=True):
            beta[i] -= s[i] * losses.slope(loss, z, y[i], parameter) / len(live)
        t += bool(live)
        run.beta.append(beta.copy())
        run.alpha.append(beta / (lam * max(t, 1)))
        run.t.append(t)
    return run
