"""AdaGrad with a full metric: Duchi, Hazan, Singer, JMLR 12 (2011), Fig. 1, eqs. (3) and (4).

With G the sum of g g' (round t included), within blocks of columns, and H = delta I + G^{1/2} from
an eigendecomposition, round t minimises over x in X and in c + span(H)

    1/2 (x - c)' H (x - c) + p'x + tau phi(x)

    rda      c = x_1, p = sum_s eta_s g_s, tau = sum_s eta_s
    mirror   c = w_t, p = eta_t g_t,       tau = eta_t

by a closed form where phi is a function of ||x||_2, else by plain proximal gradient steps, or, if
H is singular, by plain Douglas-Rachford steps, until nothing moves.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import losses, regularizers
from .progress import Progress, as_weights, live_rows

Prox = Callable[[np.ndarray, np.ndarray, float], np.ndarray]  # (z, h, tau) -> x
SEPARABLE = ("none", "l1", "squared_l2", "elastic_net", "box", "nonnegative")
ROTATING = ("none", "squared_l2", "l2_norm", "l2_ball")
Rate = float | Callable[[int], float]


@dataclass
class FullRun(Progress):
    """One entry per batch; a batch without live rows repeats what was there."""

    w: list[np.ndarray] = field(default_factory=list)  # (d,)
    gradient: list[np.ndarray] = field(default_factory=list)  # (d,) the batch's sum
    rated_sum: list[np.ndarray] = field(default_factory=list)  # (d,) sum of eta_s g_s
    accumulator: list[np.ndarray] = field(default_factory=list)  # (d, d) G, 0 between blocks
    t: list[int] = field(default_factory=list)  # the counter after the batch
    doubt: float = math.inf  # least |log(eigenvalue / threshold)| over all roots


def blocks(d: int, size: int | None) -> list[slice]:
    """The blocks of columns."""
    size = size or d
    return [slice(first, min(first + size, d)) for first in range(0, d, size)]


def eigen(G: np.ndarray, tolerance: float = 1e-12) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of a positive semi-definite matrix, null ones exactly 0, and vectors."""
    values, vectors = np.linalg.eigh(G)
    return np.where(values > tolerance * values.max(), values, 0), vectors


def root(G: np.ndarray, size: int | None, tolerance: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Eigenvalues (d,) and vectors (d, d) of G^{1/2} by blocks, and how near one is to rounding."""
    d, doubt = len(G), math.inf
    roots, vectors = np.zeros(d), np.zeros((d, d))
    for block in blocks(d, size):
        values, vectors[block, block] = eigen(G[block, block], tolerance)
        roots[block] = np.sqrt(values)
        every = np.linalg.eigvalsh(G[block, block])
        some = every[every > 1e-14 * every.max()]
        if len(some):
            doubt = min(doubt, np.abs(np.log(some / (tolerance * every.max()))).min())
    return roots, vectors, doubt


def solve(
    h: np.ndarray,
    Q: np.ndarray,
    centre: np.ndarray,
    push: np.ndarray,
    tau: float,
    prox: Prox,
    rotates: bool = False,
) -> np.ndarray:
    """The minimiser in the metric Q diag(h) Q'; `rotates`: phi is a function of ||x||_2."""
    live = h > 0
    if not live.any():
        return centre.copy()
    c, p = Q.T @ centre, Q.T @ push
    if rotates:
        c[live] = prox(c[live] - p[live] / h[live], h[live], tau)
        return Q @ c
    inside = (Q * live) @ Q.T
    seen = np.diag(inside) > 1e-9  # coordinates with history
    H, L = (Q * h) @ Q.T, h.max()
    force, x = inside @ push, centre.copy()

    def step(v: np.ndarray, metric: float) -> np.ndarray:
        safe = np.where(seen, v, 0)
        return np.where(seen, prox(safe, np.where(seen, metric, 1.0), tau), centre)

    if live.sum() == seen.sum():
        for _ in range(20_000):
            after = step(x - (H @ (x - centre) + force) / L, L)
            if np.abs(after - x).max() <= 1e-15 * np.abs(after).max():
                return after
            x = after
        return x
    rho = math.sqrt(h[live].min() * L)
    pull = (Q * np.where(live, rho / (rho + h), 0)) @ Q.T
    shift = Q @ np.where(live, p / (rho + h), 0)
    v = x
    for _ in range(20_000):
        near = centre + pull @ (v - centre) - shift
        x = step(2 * near - v, rho)
        v = v + x - near
        if np.abs(x - near).max() <= 1e-14 * np.abs(x).max():
            break
    return x


def any_prox(name: str, strengths: dict[str, Any]) -> Prox:
    """The prox; of the separable regularizers all at once: soft threshold, divide, clip."""
    if name not in SEPARABLE:
        return lambda z, h, tau: regularizers.prox(name, z, h, tau, **strengths)
    numbers = dict(strengths)
    if name in ("l1", "squared_l2"):
        numbers = {{"l1": "l1", "squared_l2": "l2"}[name]: numbers["strength"]}
    if name == "nonnegative":
        numbers = {"lower": 0.0}
    l1, l2 = (np.asarray(numbers.get(key, 0.0)) for key in ("l1", "l2"))
    lower, upper = numbers.get("lower", -np.inf), numbers.get("upper", np.inf)

    def prox(z: np.ndarray, h: np.ndarray, tau: float) -> np.ndarray:
        b = h * z
        b = b - np.clip(b, -tau * l1, tau * l1)
        return np.clip(b / (h + tau * l2), lower, upper)

    return prox


def adagrad_full(
    X: np.ndarray,
    y: np.ndarray,
    batches: Sequence[Sequence[int]],
    *,
    form: str,
    learning_rate: Rate,
    delta: float = 0.0,
    initial_accumulator: float = 0.0,
    loss: str = "hinge",
    parameter: float | None = None,
    regularizer: str = "none",
    strengths: dict[str, Any] | None = None,
    accumulate: str = "example",
    weights: np.ndarray | None = None,
    centre: np.ndarray | None = None,
    block_size: int | None = None,
    refresh: int = 1,
    tolerance: float = 1e-12,
) -> FullRun:
    """Run one step per batch; the arguments are those of ``adagrad``, and

    block_size: columns per block of H.
    refresh: the root is taken after rounds 1, refresh + 1, ...; of a batch that counts several
      rounds when one of them is among these.
    tolerance: share of a block's largest eigenvalue of G below which one is 0.
    """
    if form not in ("rda", "mirror"):
        raise ValueError(f"unknown form {form!r}; known: 'rda', 'mirror'")
    X, y = np.asarray(X, float), np.asarray(y, float)
    s, d = as_weights(weights, len(X)), X.shape[1]
    prox = any_prox(regularizer, strengths or {})
    one_number = all(np.ndim(value) == 0 for value in (strengths or {}).values())
    rotates = regularizer in ROTATING and one_number
    mask = np.zeros((d, d))
    for block in blocks(d, block_size):
        mask[block, block] = 1

    run = FullRun()
    centre = np.zeros(d) if centre is None else np.asarray(centre, float)
    w, total, rates, t = centre.copy(), np.zeros(d), 0.0, 0
    G = initial_accumulator * np.eye(d)
    roots, Q = np.zeros(d), np.eye(d)
    for batch in batches:
        gradient = np.zeros(d)
        live = live_rows(batch, s)
        scores = [float(w @ X[i]) for i in live]
        run.record(loss, parameter, scores, [y[i] for i in live], [s[i] for i in live])
        if live:
            rows = [
                s[i] * losses.slope(loss, z, y[i], parameter) * X[i]
                for i, z in zip(live, scores, strict=True)
            ]
            if accumulate == "batch":
                rows = [sum(rows) / len(live)]
            rounds, gradient = len(rows), sum(rows)
            for own in rows:
                G = G + mask * np.outer(own, own)
            if any(r % refresh == 1 % refresh for r in range(t + 1, t + rounds + 1)):
                roots, Q, doubt = root(G, block_size, tolerance)
                run.doubt = min(run.doubt, doubt)
            t += rounds
            eta = learning_rate(t) if callable(learning_rate) else learning_rate
            total, rates = total + eta * gradient, rates + eta * rounds
            if form == "rda":
                w = solve(delta + roots, Q, centre, total, rates, prox, rotates)
            else:
                w = solve(delta + roots, Q, w, eta * gradient, eta * rounds, prox, rotates)
        run.w.append(w.copy())
        run.gradient.append(gradient)
        run.rated_sum.append(total.copy())
        run.accumulator.append(G.copy())
        run.t.append(t)
    return run
