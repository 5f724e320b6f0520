"""Recorded runs and their regret."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsolvers import checks
from jaxsolvers.features import Dense, product
from jaxsolvers.members import Array
from jaxsolvers.protocol import Batch, Problem, Solver, State
from jaxsolvers.solvers.first_order import FirstOrder
from jaxsolvers.solvers.guarantees import alike
from jaxsolvers.solvers.linear_step import LinearStep

__all__ = ["Recording", "record_run", "regret"]


class Recording(NamedTuple):
    """A run, round by round; with K rankers every field has a leading axis K.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> js.theory.record_run(js.Pegasos(1.0), np.eye(2), [1, -1]).weights.shape
      (3, 2)
    """

    weights: Array  # (T + 1, d) w_1 ... w_{T+1}; round t is scored with w_t
    gradients: Array  # (T, d) of the losses at w_t, the regularizer left out
    losses: Array  # (T,) mean loss of each round's rows at w_t
    penalties: Array  # (T,) the regularizer at w_t


def record_run(solver: Solver, X: Any, y: Any, *, batch_size: int = 1) -> Recording:
    """Run a solver once over the rows in their order and keep every round.

    Args:
      solver: a first-order or linear-step solver, e.g. ``js.AdaGradFOBOS(0.1)`` or
        ``js.Pegasos(0.1)``; with K rankers its numbers may be one each.
      X: (n, d) array.
      y: (n,) targets, -1 and +1 for a classification loss; or (K, n) for K rankers on the same
        rows.
      batch_size: k, rows per round; the last round takes what is left. 1 by default.

    Returns:
      A Recording of T = ceil(n/k) rounds; it holds (T + 1) d numbers per ranker twice.

    Raises:
      ValueError: a solver without iterates of its own (``Averaged``), k > 1 where each row
        counts as a round (``accumulate="example"``), targets that do not fit X or the loss.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> run = js.theory.record_run(js.AdaGradFOBOS(0.5), np.eye(2), [1, -1])
      >>> run.weights.tolist()
      [[0.0, 0.0], [0.5, 0.0], [0.5, -0.5]]
    """
    X, y = _checked(solver, X, y)
    batch_size = checks.check_integer(batch_size, "batch_size", 1, X.shape[0])
    if batch_size > 1 and isinstance(solver, FirstOrder) and solver.counts_rows():
        raise ValueError(
            'accumulate must be "batch" for batch_size > 1: with "example" each row is a round, '
            "though their gradients are taken at the same weights"
        )
    if y.ndim == 1:
        solver.check_shapes(None, X.shape[1])
        return _recorded(solver.cast(X.dtype), X, y, batch_size=batch_size)
    solver.check_shapes(y.shape[0], X.shape[1])
    return _all_recorded(solver.cast(X.dtype).for_rankers(y.shape[0]), X, y, batch_size=batch_size)


def regret(
    recording: Recording, comparator: Any, solver: Solver, X: Any, y: Any, *, batch_size: int = 1
) -> Array:
    """The regret of a recorded run against one comparator, after every round.

    ``R_t = sum_{s<=t} l_s(w_s) + phi(w_s) - l_s(u) - phi(u)``; for Pegasos phi is
    ``lam/2 ||w||^2``.

    Args:
      recording: of :func:`record_run` with the same solver, X, y and batch_size.
      comparator: u, (d,), or (K, d) for K rankers; a point of the regularizer's domain.
      solver, X, y, batch_size: what was recorded.

    Returns:
      (T,), or (K, T); the last entry is the regret of the run.

    Raises:
      ValueError: arguments that do not fit each other.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> solver, X, y = js.AdaGradFOBOS(0.5), np.eye(2), [1, -1]
      >>> run = js.theory.record_run(solver, X, y)
      >>> js.theory.regret(run, np.array([1.0, 0.0]), solver, X, y).tolist()
      [1.0, 1.0]
    """
    X, y = _checked(solver, X, y)
    comparator = jnp.asarray(comparator).astype(X.dtype)
    wanted = (*y.shape[:-1], X.shape[1])
    if comparator.shape != wanted:
        raise ValueError(f"comparator must have shape {wanted}, got {comparator.shape}")
    rounds = (*y.shape[:-1], -(-X.shape[0] // batch_size))
    if recording.losses.shape != rounds:
        raise ValueError(
            f"recording must hold {rounds} rounds for this y and batch_size, "
            f"got {recording.losses.shape}"
        )
    solver = solver.cast(X.dtype)
    if y.ndim == 1:
        return _regret(solver, recording, comparator, X, y, batch_size)
    one = partial(_regret, X=X, batch_size=batch_size)
    mapped = solver.for_rankers(y.shape[0])
    axes = (mapped.ranker_axes(), 0, 0, 0)

    def each(solver: Solver, recording: Recording, comparator: Array, y: Array) -> Array:
        return one(solver, recording, comparator, y=y)

    return jax.vmap(each, in_axes=axes)(mapped, recording, comparator, y)


def _checked(solver: Any, X: Any, y: Any) -> tuple[Array, Array]:
    """X and y as arrays of one floating dtype; values are checked where they are known."""
    if not isinstance(solver, FirstOrder | LinearStep):
        raise ValueError(f"solver must be a first-order or linear-step solver, got {solver!r}")
    solver.validate()
    X = checks.check_matrix(X)
    known = not isinstance(X, jax.core.Tracer)
    if known:
        checks.check_finite(X, "X")
    if not isinstance(y, jax.core.Tracer):
        y = checks.check_reals(y, "y", "hold -1 and +1, or real targets for a regression loss")
        if solver.loss.classification and not np.isin(y, (-1, 1)).all():
            raise ValueError(f"y must be -1 or +1 for {type(solver.loss).__name__}, got {y!r}")
    if y.ndim not in (1, 2) or y.shape[-1] != X.shape[0] or y.size == 0:
        raise ValueError(f"y must be ({X.shape[0]},) or (K, {X.shape[0]}), got shape {y.shape}")
    (X,) = alike(X)
    return X, jnp.asarray(y).astype(X.dtype)


@partial(jax.jit, static_argnames="batch_size")
def _recorded(solver: Solver, X: Array, y: Array, batch_size: int) -> Recording:
    n, d = X.shape
    live = _rounds(jnp.ones_like(y), batch_size)
    index = jnp.arange(live.size, dtype=jnp.int32).reshape(live.shape)
    at_zero, _ = solver.loss.value_and_slope(jnp.zeros_like(y), y)
    problem = Problem((d,), n, jnp.asarray(n, X.dtype), jnp.mean(at_zero))

    def one_round(state: State, rows: tuple[Array, Array, Array, Array]) -> tuple[State, Any]:
        x, target, weight, index = rows
        w, layout = solver.weights(state), Dense(x)
        value, slope = solver.loss.value_and_slope(layout.scores(w), target)
        share = weight / jnp.sum(weight)
        seen = (w, layout.pull_back(share * slope), jnp.sum(share * value), solver.penalty(w))
        after, _ = solver.update(state, Batch(layout, target, weight, index))
        return after, seen

    rows = (_rounds(X, batch_size), _rounds(y, batch_size), live, index)
    last, (weights, *rest) = lax.scan(one_round, solver.init(problem, X.dtype), rows)
    return Recording(jnp.concatenate([weights, solver.weights(last)[None]]), *rest)


@partial(jax.jit, static_argnames="batch_size")
def _all_recorded(solver: Solver, X: Array, y: Array, batch_size: int) -> Recording:
    def one(solver: Solver, y: Array) -> Recording:
        return _recorded(solver, X, y, batch_size)

    return jax.vmap(one, in_axes=(solver.ranker_axes(), 0))(solver, y)


def _regret(
    solver: Solver, recording: Recording, comparator: Array, X: Array, y: Array, batch_size: int
) -> Array:
    value, _ = solver.loss.value_and_slope(product(X, comparator), y)
    count = jnp.sum(_rounds(jnp.ones_like(y), batch_size), axis=1)
    theirs = jnp.sum(_rounds(value, batch_size), axis=1) / count + solver.penalty(comparator)
    # Differences first: two long sums would cancel.
    return jnp.cumsum(recording.losses + recording.penalties - theirs)


def _rounds(rows: Array, k: int) -> Array:
    """Rows in groups of k along a new leading axis, the last one filled with zeros."""
    width = [(0, -rows.shape[0] % k)] + [(0, 0)] * (rows.ndim - 1)
    return jnp.pad(rows, width).reshape(-1, k, *rows.shape[1:])
