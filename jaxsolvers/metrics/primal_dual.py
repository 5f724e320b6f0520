"""The objective and the dual objective of many rankers at a state, in blocks of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.csr import Csr
from jaxsolvers.features import product
from jaxsolvers.members import Array
from jaxsolvers.metrics.objectives import penalties
from jaxsolvers.protocol import Loss, Solver, State

_ROWS = 4096
_NUMBERS = 1 << 22  # of a block of rows or of scores


class Values(NamedTuple):
    """Per ranker, float64."""

    loss: np.ndarray  # (T,) sum_i p_i l_i
    primal: np.ndarray  # (T,) penalty(w) + that
    dual: np.ndarray | None  # (T,) sum_i p_i d_i - penalty(w(a)), None without duals


class Rankers(NamedTuple):
    """Some rankers and what tells them apart; numbers and states lead with T."""

    solver: Solver
    state: State
    code: Any  # (T,) int32
    positive: Any  # (T,) factor on the weights of positive rows


def with_duals(solver: Solver) -> Any:
    """The solver that keeps the duals, in its wrappers or not; None without one."""
    while hasattr(solver, "solver"):
        solver = solver.solver
    return solver if getattr(solver, "has_dual", False) else None


def duals_of(state: State) -> Any:
    """The duals (T, n) of a state of such a solver."""
    while hasattr(state, "inner"):
        state = state.inner
    return state.dual


def primal_and_dual(
    rankers: Rankers,
    X: Any,
    target_of: Callable[[slice], Any],
    weight: np.ndarray,
    intercept: bool,
    bounded: bool = True,
) -> Values:
    """Evaluate both objectives.

    ``w(a) = (1/lam) sum_i p_i a_i x_i`` is added up afresh: the dual objective is a lower bound
    whatever rounding did to the weights.

    Args:
      rankers: T of them.
      X: (n, d) array or Csr.
      target_of: rows -> (B,) int32 class codes or floats for all rankers, or signs (T, B).
      weight: (n,) >= 0, scaled so that no sum overflows.
      intercept: whether a constant column follows the features.
      bounded: whether the dual objective is wanted of a solver that keeps the duals of the rows.
    """
    solver = rankers.solver
    weights = np.asarray(rankers_weights(solver, rankers.state))
    (count, width), dtype = weights.shape, weights.dtype
    offsets = offsets_of(solver, rankers.state)
    offsets = np.zeros(count, dtype) if offsets is None else offsets
    dual_solver: Any = with_duals(solver) if bounded else None
    duals = None if dual_solver is None else np.asarray(duals_of(rankers.state))
    total, loss, term = np.zeros((3, count))
    pulled = None if duals is None else np.zeros(weights.shape, dtype)
    size = max(1, min(_ROWS, X.shape[0], _NUMBERS // count, max(64, 4 * _NUMBERS // width)))
    for start in range(0, X.shape[0], size):
        at = slice(start, min(start + size, X.shape[0]))
        columns, x = _block(X, at, size, intercept, dtype)
        missing = size - (at.stop - start)
        target = jnp.pad(target_of(at), [(0, 0)] * (np.ndim(target_of(at)) - 1) + [(0, missing)])
        own = weights[:, columns]
        found = _sums(
            solver.loss, np.pad(own, [(0, 0), (0, x.shape[1] - own.shape[1])]),
            None if duals is None else np.pad(duals[:, at], [(0, 0), (0, missing)]),
            x, target, offsets, rankers.code, np.pad(weight[at].astype(dtype), (0, missing)),
            rankers.positive,
        )  # fmt: skip
        for sums, more in zip((total, loss, term), found[:3], strict=True):
            sums += np.asarray(more, np.float64)
        if pulled is not None:
            pulled[:, columns] += np.asarray(found[3])[:, : own.shape[1]]
    mean = loss / total
    primal = np.asarray(penalties(solver, weights), np.float64) + mean
    if pulled is None:
        return Values(mean, primal, None)
    lam = np.broadcast_to(np.asarray(dual_solver.lam), (count,))
    at_duals = pulled / (total * lam).astype(dtype)[:, None]
    return Values(mean, primal, term / total - np.asarray(penalties(solver, at_duals), np.float64))


def _block(
    X: Any, at: slice, size: int, intercept: bool, dtype: Any
) -> tuple[Any, Array | np.ndarray]:
    """The columns that some rows hold, and the rows over them, padded to one of few shapes."""
    width, count = X.shape[1], at.stop - at.start
    if not isinstance(X, Csr):
        rows = jnp.asarray(X[at], dtype)
        if intercept:
            rows = jnp.concatenate([rows, jnp.ones((count, 1), dtype)], axis=1)
        return slice(0, width + intercept), jnp.pad(rows, [(0, size - count), (0, 0)])
    part = X.take(at)
    columns, local = part.active()
    m = len(columns)
    x = np.zeros((size, 1 << m.bit_length()), dtype)
    x[np.repeat(np.arange(count), part.lengths), local] = part.data
    if intercept:
        columns = np.append(columns, np.int32(width))
        x[:count, m] = 1
    return columns, x


@jax.jit
def rankers_weights(solver: Solver, state: State) -> Array:
    """The weights of rankers, those of each as :meth:`Solver.weights` gives them."""

    def one(solver: Solver, state: State) -> Array:
        return solver.weights(state)

    return jax.vmap(one, in_axes=(solver.ranker_axes(), 0))(solver, state)


@jax.jit
def offsets_of(solver: Solver, state: State) -> Array | None:
    """The biases of rankers, () or of classes together (K,) each; None without biases."""

    def one(solver: Solver, state: State) -> Array | None:
        return solver.offset(state)

    return jax.vmap(one, in_axes=(solver.ranker_axes(), 0))(solver, state)


@jax.jit
def _sums(
    loss: Any,
    weights: Array,
    duals: Array | None,
    x: Array,
    target: Array,
    offsets: Array,
    codes: Array,
    weight: Array,
    positive: Array,
) -> tuple[Array, Array, Array, Array]:
    """Sums over the rows of weights, losses and dual terms, (T,), and of p_i a_i x_i, (T, d)."""

    def one(
        loss: Loss, w: Array, dual: Any, own: Array, bias: Array, code: Array, factor: Array
    ) -> Any:
        if own.dtype == jnp.int32:
            own = jnp.where(own == code, 1, -1).astype(w.dtype)
        p = jnp.where(own > 0, factor, 1) * weight
        value, _ = loss.value_and_slope(product(x, w) + bias, own)
        sums = jnp.sum(p), jnp.sum(p * value)
        if dual is None:
            return *sums, jnp.zeros((), w.dtype), jnp.zeros_like(w)
        term = loss.dual_term(own, dual) - dual * bias  # type: ignore[attr-defined]
        return *sums, jnp.sum(p * term), product(p * dual, x)

    axes = (loss.ranker_axes(), 0, None if duals is None else 0, 0 if target.ndim == 2 else None)
    return jax.vmap(one, in_axes=(*axes, 0, 0, 0))(
        loss, weights, duals, target, offsets, codes, positive
    )
