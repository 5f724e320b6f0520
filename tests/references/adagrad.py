"""AdaGrad with a diagonal metric: Duchi, Hazan, Singer, JMLR 12 (2011), Fig. 1, eqs. (3) and (4).

With G the sum of squared gradients (round t included) and H = delta + sqrt(G), round t solves

    rda      w = prox(x_1 - (1/H) sum_s eta_s g_s; H, sum_s eta_s)
    mirror   w = prox(w   - (1/H) eta_t g_t;       H, eta_t)

with prox(z; H, tau) = argmin 1/2 sum H (x - z)^2 + tau phi(x). A coordinate with H = 0 has no
history and is left out: it stays at its value (mirror) or at its centre x_1 (rda).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from . import losses, regularizers
from .progress import Progress, as_weights, live_rows

Rate = float | Callable[[int], float]


@dataclass(frozen=True)
class State:
    """What one round hands to the next; all vectors (d,)."""

    w: np.ndarray
    centre: np.ndarray  # x_1
    gradient_sum: np.ndarray  # sum of g_s
    rated_sum: np.ndarray  # sum of eta_s g_s
    rate_sum: float  # sum of eta_s
    accumulator: np.ndarray  # G, the initial accumulator included
    t: int


@dataclass
class AdaGradRun(Progress):
    """One entry per batch; a batch without live rows repeats what was there."""

    w: list[np.ndarray] = field(default_factory=list)  # (d,)
    gradient_sum: list[np.ndarray] = field(default_factory=list)  # (d,) sum of g_s
    accumulator: list[np.ndarray] = field(default_factory=list)  # (d,) G
    t: list[int] = field(default_factory=list)  # the counter after the batch


def begin(centre: np.ndarray, initial_accumulator: float = 0.0) -> State:
    """The state before the first round, at w = `centre` (d,)."""
    centre = np.array(centre, dtype=float)
    zero = np.zeros_like(centre)
    return State(centre, centre, zero, zero, 0.0, zero + initial_accumulator, 0)


def step(
    state: State,
    gradient: np.ndarray,
    square: np.ndarray | None = None,
    rounds: int = 1,
    *,
    form: str,
    learning_rate: Rate,
    delta: float = 0.0,
    regularizer: str = "none",
    strengths: dict[str, Any] | None = None,
) -> State:
    """Absorb `rounds` gradients taken at the same weights.

    Args:
      gradient: their sum (d,).
      square: the sum of their squares (d,); by default the square of `gradient`.
      rounds: their number.
      learning_rate: eta, or a function of t, asked once: for the counter after the step.
      The rest as in `adagrad`.
    """
    if form not in ("rda", "mirror"):
        raise ValueError(f"unknown form {form!r}; known: 'rda', 'mirror'")
    t = state.t + rounds
    eta = learning_rate(t) if callable(learning_rate) else learning_rate
    gradient_sum = state.gradient_sum + gradient
    rated_sum = state.rated_sum + eta * gradient
    rate_sum = state.rate_sum + eta * rounds
    accumulator = state.accumulator + (gradient * gradient if square is None else square)

    h = delta + np.sqrt(accumulator)
    if form == "rda":
        x, push, tau = state.centre, rated_sum, rate_sum
    else:
        x, push, tau = state.w, eta * gradient, eta * rounds
    live = h > 0.0  # the others are out of the problem
    own = {
        key: np.asarray(given)[live] if np.ndim(given) else given
        for key, given in (strengths or {}).items()
    }
    w = x.copy()
    z = x[live] - push[live] / h[live]
    w[live] = regularizers.prox(regularizer, z, h[live], tau, **own)
    return replace(
        state,
        w=w,
        gradient_sum=gradient_sum,
        rated_sum=rated_sum,
        rate_sum=rate_sum,
        accumulator=accumulator,
        t=t,
    )


def adagrad(
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
) -> AdaGradRun:
    """Run one step per batch.

    Args:
      X: rows (m, d).
      y: targets (m,).
      batches: index arrays into the rows; they may differ in length and repeat rows.
      form: "rda" (dual averaging, eq. 3) or "mirror" (composite mirror descent, eq. 4).
      learning_rate: eta, or a function t -> eta_t.
      delta: added to sqrt(G).
      initial_accumulator: G before the first round.
      loss, parameter: a name from `losses` and its parameter.
      regularizer, strengths: a name from `regularizers` and its strengths.
      accumulate: "example", a batch of k live rows is k rounds whose gradients s_i g_i are all
        taken at the weights before it; "batch", it is one round with g = (1/k) sum s_i g_i.
      weights: sample weights (m,), used as given; a row of weight 0 is padding.
      centre: x_1 (d,), the start of both forms and what rda returns to; 0 by default.
    """
    if accumulate not in ("example", "batch"):
        raise ValueError(f"unknown accumulate {accumulate!r}; known: 'example', 'batch'")
    X = np.asarray(X, dtype=float)
    y = np.asarray(y, dtype=float)
    s = as_weights(weights, len(X))

    run = AdaGradRun()
    state = begin(np.zeros(X.shape[1]) if centre is None else centre, initial_accumulator)
    for batch in batches:
        live = live_rows(batch, s)
        scores = [float(state.w @ X[i]) for i in live]
        run.record(loss, parameter, scores, [y[i] for i in live], [s[i] for i in live])
        if live:
            k = len(live)
            gradient, square = np.zeros(X.shape[1]), np.zeros(X.shape[1])
            for i, z in zip(live, scores, strict=True):
                own = s[i] * losses.slope(loss, z, y[i], parameter) * X[i]
                gradient += own
                square += own * own
            rounds = k
            if accumulate == "batch":
                gradient = gradient / k
                square, rounds = gradient * gradient, 1
            state = step(
                state,
                gradient,
                square,
                rounds,
                form=form,
                learning_rate=learning_rate,
                delta=delta,
                regularizer=regularizer,
                strengths=strengths,
            )
        run.w.append(state.w.copy())
        run.gradient_sum.append(state.gradient_sum.copy())
        run.accumulator.append(state.accumulator.copy())
        run.t.append(state.t)
    return run
