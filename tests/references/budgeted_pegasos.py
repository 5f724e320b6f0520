"""Kernel Pegasos within a budget: Wang, Crammer, Vucetic, JMLR 13 (2012), sections 4 and 5.

In round t, of one row x with target y and weight s,

    z = sum_j beta_j k(v_j, x) / (lam max(t - 1, 1)),
    beta_x = -s l'(z, y);

a row that is a support vector adds beta_x to its coefficient, another one enters with it, and where
there are then more than ``budget`` vectors one of them, j, goes:

remove: that of smallest |beta_j| sqrt(k(v_j, v_j)).
project: that of smallest beta_j^2 / (K^-1)_jj, with beta_S += beta_j K_SS^-1 K_Sj, S the others.
merge: that of smallest |beta_j| and one m of its sign become z = h v_j + (1 - h) v_m with
    beta_z = beta_j kappa^((1-h)^2) + beta_m kappa^(h^2), kappa = k(v_j, v_m), the h of [0, 1] that
    is best for each pair, and m the one that loses least,
    beta_j^2 + beta_m^2 + 2 beta_j beta_m kappa - beta_z^2. Without one of its sign it is removed.

Everything by loops, solves and a line search over a grid. The vectors have places, because states
are compared: a new one takes the first place whose coefficient is 0, else that of the one that
goes; a merged one that of v_m, unless m is the new one: then that of v_j. Of equal candidates the
one in the first place goes, the new one last.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from . import losses
from .progress import Progress, as_weights, live_rows

GRID = 200
Pair = Callable[[np.ndarray, np.ndarray], float]


@dataclass
class BudgetedPegasosRun(Progress):
    """One entry per round; a round without a live row repeats what was there."""

    t: list[int] = field(default_factory=list)
    vectors: list[np.ndarray] = field(default_factory=list)  # (budget, d), 0 where beta is 0
    beta: list[np.ndarray] = field(default_factory=list)  # (budget,)
    full: int = 0  # rounds in which a vector had to go
    doubt: float = np.inf  # least distance between the best two choices, relative to the best


def budgeted_pegasos(
    X: np.ndarray,
    y: np.ndarray,
    rows: Sequence[int],
    *,
    kernel: Pair,
    lam: float,
    budget: int,
    maintenance: str,
    loss: str = "hinge",
    parameter: float | None = None,
    weights: np.ndarray | None = None,
    ridge: float = 0.0,
) -> BudgetedPegasosRun:
    """Run one round per entry of ``rows``; ``ridge`` times k(v, v) is added to K's diagonal."""
    s = as_weights(weights, len(y))
    run = BudgetedPegasosRun()
    vectors: list[np.ndarray] = [np.zeros(X.shape[1]) for _ in range(budget)]
    beta, t = [0.0] * budget, 0
    for i in rows:
        live = live_rows([i], s)
        for _ in live:
            used = [j for j in range(budget) if beta[j] != 0]
            z = sum(beta[j] * kernel(vectors[j], X[i]) for j in used) / (lam * max(t, 1))
            run.record(loss, parameter, [z], [y[i]], [s[i]])
            step = -s[i] * losses.slope(loss, z, y[i], parameter)
            twins = [j for j in used if np.array_equal(vectors[j], X[i])]
            free = [j for j in range(budget) if beta[j] == 0]
            if twins:
                beta[twins[0]] += step
            elif step != 0 and free:
                vectors[free[0]], beta[free[0]] = X[i].copy(), step
            elif step != 0:
                run.full += 1
                own = ([*vectors, X[i].copy()], [*beta, step])
                if maintenance == "merge":
                    vectors, beta = merged(run, kernel, *own)
                elif maintenance == "project":
                    vectors, beta = projected(run, kernel, *own, ridge)
                else:
                    vectors, beta = removed(run, kernel, *own)
            t += 1
        if not live:
            run.record(loss, parameter, [], [], [])
        run.t.append(t)
        held = [v if b != 0 else 0 * v for v, b in zip(vectors, beta, strict=True)]
        run.vectors.append(np.array(held))
        run.beta.append(np.array(beta))
    return run


Vectors = tuple[list[np.ndarray], list[float]]


def without(vectors: list[np.ndarray], beta: list[float], j: int) -> Vectors:
    """The new vector, the last one, in the place of vector j."""
    vectors, beta = list(vectors), list(beta)
    vectors[j], beta[j] = vectors[-1], beta[-1]
    return vectors[:-1], beta[:-1]


def smallest(run: BudgetedPegasosRun, losses: list[float]) -> int:
    """The first of the smallest. An exact tie is no doubt: both sides break it alike."""
    best = int(np.argmin(losses))
    others = [x for x in losses if x != losses[best]]
    if others and min(others) < np.inf:
        run.doubt = min(run.doubt, (min(others) - losses[best]) / max(abs(losses[best]), 1e-3))
    return best


def removed(
    run: BudgetedPegasosRun, kernel: Pair, vectors: list[np.ndarray], beta: list[float]
) -> Vectors:
    """Without the vector of least norm."""
    norms = [abs(b) * np.sqrt(kernel(v, v)) for v, b in zip(vectors, beta, strict=True)]
    return without(vectors, beta, smallest(run, norms))


def projected(
    run: BudgetedPegasosRun,
    kernel: Pair,
    vectors: list[np.ndarray],
    beta: list[float],
    ridge: float,
) -> Vectors:
    """Without the vector that the others replace best."""
    K = np.array([[kernel(v, u) for u in vectors] for v in vectors])
    K = K + ridge * np.diag(np.diag(K))
    inverse = np.linalg.inv(K)
    j = smallest(run, [b * b / inverse[i, i] for i, b in enumerate(beta)])
    others = [i for i in range(len(beta)) if i != j]
    share = np.linalg.solve(K[np.ix_(others, others)], K[others, j])
    beta = list(beta)
    for i, c in zip(others, share, strict=True):
        beta[i] += beta[j] * c
    return without(vectors, beta, j)


def merged(
    run: BudgetedPegasosRun, kernel: Pair, vectors: list[np.ndarray], beta: list[float]
) -> Vectors:
    """The smallest one and the best of its sign made one."""
    j = smallest(run, [abs(b) for b in beta])
    best, lost = {}, [np.inf] * len(beta)
    for m, b in enumerate(beta):
        if m != j and b * beta[j] > 0:
            kappa = kernel(vectors[j], vectors[m])
            best[m] = best_share(abs(beta[j]), abs(b), kappa)
            value = along(best[m], abs(beta[j]), abs(b), kappa)
            lost[m] = beta[j] ** 2 + b**2 + 2 * beta[j] * b * kappa - value**2
    if not best:
        return without(vectors, beta, j)
    m = smallest(run, lost)
    h, kappa = best[m], kernel(vectors[j], vectors[m])
    z = h * vectors[j] + (1 - h) * vectors[m]
    value = np.sign(beta[j]) * along(h, abs(beta[j]), abs(beta[m]), kappa)
    new = len(beta) - 1
    vectors, beta = list(vectors), list(beta)
    place, gone = (j, m) if m == new else (m, j)
    vectors[place], beta[place] = z, value
    return without(vectors, beta, gone)


def along(h: float, first: float, second: float, kappa: float) -> float:
    """The coefficient of h v_j + (1 - h) v_m."""
    return float(first * kappa ** ((1 - h) ** 2) + second * kappa ** (h**2))


def best_share(first: float, second: float, kappa: float) -> float:
    """The h of [0, 1] of the largest coefficient, by brute force over both halves.

    The best point of a grid over [0, 1/2] and over [1/2, 1] each, its neighbourhood halved by the
    sign of the derivative, and of these the larger one; of equal maxima that nearer to the first.
    A half that ends best at 1/2 has no maximum of its own, unless all is symmetric.
    """
    if kappa == 0:  # two spikes
        return 1.0 if first >= second else 0.0
    log = np.log(kappa)

    def rises(h: float) -> bool:
        left, right = first * kappa ** ((1 - h) ** 2), second * kappa ** (h**2)
        return bool(log * (h * right - (1 - h) * left) > 0)

    ends = []
    for start in (0.0, 0.5):
        grid = start + np.linspace(0, 0.5, GRID + 1)
        at = int(np.argmax([along(h, first, second, kappa) for h in grid]))
        low, high = grid[max(at - 1, 0)], grid[min(at + 1, GRID)]
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if rises(middle) else (low, middle)
        ends.append(float((low + high) / 2))
    own = [h for h in ends if abs(h - 0.5) > 1e-12]
    if first == second or not own:
        return ends[1]
    return max(own, key=lambda h: along(h, first, second, kappa))
