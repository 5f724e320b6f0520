"""The Gram-block sweep: exact sequential rounds at matrix-product speed.

Inside a block of B rows with Gram matrix K, the raw scores ``r_i = <V, x_i>`` of all rows can be
kept up to date without V: a round ``V <- b V + c x_j`` is ``r <- b r + c K_j``. So two matrix
products per block touch the features (the first r, and the final V from the rounds' b and c) and
the recurrence runs on B numbers per ranker. It is blocked once more: a stretch of ``INNER`` rows
starts from one product with all earlier rounds and is kept up to date round by round.

Rankers are *lanes* here and lie on the trailing axis, so that each operation of a round is one
contiguous vector operation. :func:`recurrence` is written for one ranker and takes the lane form
by itself under ``vmap``. Of K classes learnt together V is (K, d), and every raw score and
coefficient of a row is K numbers, an axis of their own before the lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap

from jaxsolvers.features import product
from jaxsolvers.members import Array
from jaxsolvers.protocol import beside

INNER = 16


class Carry(NamedTuple):
    """What passes from round to round, besides the raw scores."""

    scalars: Any
    square_norm: Array | None  # () ||V||^2
    dual: Any  # (B,) kept at the first row of each index


class Rows(NamedTuple):
    """What one ranker knows of the block's rows."""

    raw: Array  # (B,) <V, x_i> before the block; of classes together (B, K)
    target: Array  # (B,)
    weight: Array  # (B,)


class Shared(NamedTuple):
    """What all rankers see alike."""

    gram: Array  # (B, B)
    first: Array | None  # (B,) int32, the first row of the block with the same index


class Trace(NamedTuple):
    """What the rounds did: V <- factor V + sum_i coefficient_i x_i."""

    coefficient: Array  # (B,), of classes together (B, K)
    factor: Array | None  # (rounds,), None where every factor is 1
    score: Array  # like the coefficients, before the round
    scale: Any  # (rounds,) before the round; kept when an average needs it
    intercept: Any  # (rounds,) or (rounds, K) before the round, likewise; None without one


def recurrence(
    solver: Any,
    carry: Carry,
    rows: Rows,
    shared: Shared,
    batch_size: int,
    keep: bool = False,
) -> tuple[Carry, Moves, Trace]:
    """All rounds of a block for one ranker.

    Args:
      solver: a linear-step solver, for ``live_round`` and its hooks.
      carry, rows, shared: the ranker before the block, and the block.
      batch_size: rows per round, a divisor of B.
      keep: whether the trace records scales and intercepts.

    Returns:
      The carry after the block, what its rounds did to V together, and each one's trace.
    """

    def lanes(solver: Any, carry: Carry, rows: Rows, shared: Shared) -> Any:
        return _lanes(solver, carry, rows, shared, batch_size, keep)

    def alone(solver: Any, carry: Carry, rows: Rows, shared: Shared) -> Any:
        solver, carry, rows = jax.tree.map(lambda a: a[..., None], (solver, carry, rows))
        return jax.tree.map(lambda a: a[..., 0], lanes(solver, carry, rows, shared))

    one = custom_vmap(alone)

    @one.def_vmap
    def many(size: int, batched: Any, solver: Any, carry: Carry, rows: Rows, shared: Shared) -> Any:
        if any(jax.tree.leaves(batched[3])):  # each ranker has rows of its own
            axes = jax.tree.map(lambda mapped: 0 if mapped else None, tuple(batched))
            mapped = jax.vmap(alone, in_axes=axes, axis_size=size)
            results = mapped(solver, carry, rows, shared)
        else:

            def to_lanes(leaf: Array, mapped: bool) -> Array:
                if mapped:
                    return jnp.moveaxis(leaf, 0, -1)
                return jnp.broadcast_to(leaf[..., None], (*leaf.shape, size))

            solver, carry, rows = jax.tree.map(to_lanes, (solver, carry, rows), tuple(batched[:3]))
            results = lanes(solver, carry, rows, shared)
            results = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, -1, 0), results)
        return results, jax.tree.map(lambda _: True, results)

    return one(solver, carry, rows, shared)


class Moves(NamedTuple):
    """The rounds so far together: V <- whole V + sum_i left_i x_i."""

    whole: Array | None  # (), None for 1
    left: Array  # (B,) or (B, K)


class _Last(NamedTuple):
    """The round just done, not yet applied to the raw scores of its stretch."""

    coefficient: Array  # (k, lanes) or (k, K, lanes)
    factor: Array | None  # (lanes,)
    column: Array  # (inner, k) products of the stretch's rows with the round's


def _lanes(
    solver: Any, carry: Carry, rows: Rows, shared: Shared, batch_size: int, keep: bool
) -> tuple[Carry, Moves, Trace]:
    """:func:`recurrence` with rankers on the trailing axis of everything but ``shared``."""
    size, n_lanes = rows.raw.shape[0], rows.raw.shape[-1]
    inner = _stretch_rows(size, batch_size)
    own, scalars = jax.tree.map(
        lambda a: jax.ShapeDtypeStruct(a.shape[:-1], a.dtype), (solver, carry.scalars)
    )
    classes, has_dual = rows.raw.shape[1:-1], carry.dual is not None
    steady = carry.square_norm is None and is_steady(
        own, scalars, rows.raw.dtype, batch_size, classes, has_dual
    )

    def stretch(state: tuple[Carry, Moves], start: Array) -> tuple[tuple[Carry, Moves], Trace]:
        carry, moves = state
        cut = partial(lax.dynamic_slice_in_dim, start_index=start, slice_size=inner)
        gram = cut(shared.gram)  # (inner, B)
        own = cut(gram, axis=1)  # (inner, inner)
        raw = _scaled(moves.whole, cut(rows.raw)) + _products(gram, moves.left)
        target, weight = cut(rows.target), cut(rows.weight)
        positions = None if shared.first is None else cut(shared.first)

        def step(
            state: tuple[Carry, Array, _Last], j: Array
        ) -> tuple[tuple[Carry, Array, _Last], Trace]:
            carry, raw, last = state  # raw (inner, lanes), before `last`
            # Applied one step late: a coefficient that comes out of the loop's carry is read,
            # one computed in the same step would be recomputed for each of the inner rows.
            raw = _apply(raw, last)
            pick = partial(lax.dynamic_slice_in_dim, start_index=j, slice_size=batch_size)
            column = pick(own, axis=1)
            at = None if positions is None else pick(positions)

            def one(solver: Any, carry: Carry, r: Array, y: Array, s: Array) -> Any:
                return _round(solver, carry, r, y, s, pick(column))

            # Duals are read and written here, whole rows of lanes: mapped over the lanes a gather
            # would turn all of them around in every round.
            duals = carry.dual
            if at is not None:
                duals, own_duals = read_first(duals, partial(_rows_at, at=at), at)
                carry = carry._replace(dual=own_duals)
            carry, trace = jax.vmap(one, in_axes=-1, out_axes=-1)(
                solver, carry, pick(raw), pick(target), pick(weight)
            )
            if at is not None:
                carry = carry._replace(dual=_with_rows_at(duals, at, carry.dual))
            trace = trace._replace(
                factor=None if steady else trace.factor,
                scale=trace.scale if keep else None,
                intercept=trace.intercept if keep else None,
            )
            return (carry, raw, _Last(trace.coefficient, trace.factor, column)), trace

        nothing = _Last(
            jnp.zeros((batch_size, *raw.shape[1:]), raw.dtype),
            None if steady else jnp.ones((n_lanes,), raw.dtype),
            jnp.zeros((inner, batch_size), raw.dtype),
        )
        js = jnp.arange(0, inner, batch_size, dtype=jnp.int32)
        (carry, _, _), trace = lax.scan(step, (carry, raw, nothing), js)
        trace = _join(trace, 1)
        whole, left = remaining(trace, batch_size)
        before = _scaled(whole, moves.left)
        left = lax.dynamic_update_slice_in_dim(before, left, start, 0)
        whole = None if whole is None or moves.whole is None else whole * moves.whole
        return (carry, Moves(whole, left)), trace

    one = None if steady else jnp.ones((n_lanes,), rows.raw.dtype)
    starts = jnp.arange(0, size, inner, dtype=jnp.int32)
    initial = (carry, Moves(one, jnp.zeros_like(rows.raw)))
    (carry, moves), trace = lax.scan(stretch, initial, starts)
    return carry, moves, _join(trace, 2)


def _scaled(factor: Array | None, rows: Array) -> Array:
    """The rows (..., lanes) times a factor per lane."""
    return rows if factor is None else factor.reshape((1,) * (rows.ndim - 1) + (-1,)) * rows


def _products(gram: Array, coefficients: Array) -> Array:
    """sum_j gram_ij c_j, (inner, B) and (B, ..., lanes) -> (inner, ..., lanes)."""
    flat = coefficients.reshape(coefficients.shape[0], -1)
    return product(gram, flat).reshape(gram.shape[0], *coefficients.shape[1:])


def _apply(near: Array, last: _Last) -> Array:
    c, factor, column = last
    return _scaled(factor, near) + (
        beside(column, c) * c if c.shape[0] == 1 else _products(column, c)
    )


def _round(
    solver: Any,
    carry: Carry,
    raw: Array,
    target: Array,
    weight: Array,
    own: Array,
) -> tuple[Carry, Trace]:
    """One round of one ranker on k rows whose products are ``own`` (k, k), and duals (k,)."""
    scalars, square_norm, dual = carry
    scale = jnp.asarray(solver.scale(scalars), raw.dtype)
    intercept = solver.intercept(scalars)
    score = shifted(scale * raw, intercept)
    scalars, b, c, dual = solver.live_round(scalars, score, target, weight, jnp.diagonal(own), dual)
    if square_norm is not None:
        square_norm = grow(square_norm, b, c, raw, own)
        square_norm, shrink = project(square_norm, solver.radius(scalars))
        b, c = shrink * b, shrink * c
    intercept = None if isinstance(intercept, float) else intercept
    return Carry(scalars, square_norm, dual), Trace(c, b, score, scale, intercept)


def shifted(score: Array, intercept: Array | float) -> Array:
    """Scores (k,) plus an intercept (); of classes together (k, K) and (K,)."""
    return score + (intercept if isinstance(intercept, float) else intercept[None])


def read_first(array: Array, read: Callable[[Array], Array], index: Array) -> tuple[Array, Array]:
    """``array`` and ``read(array)``, in this order, so that the array can be written in place.

    A gather may be computed anew by whatever uses it. Were that after the array is written, all of
    it would be copied in every round. What comes out of a loop, here of one trip, is computed.
    ``index`` holds the places read, >= 0.
    """

    def trip(_: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        return carry[0], read(carry[0])

    trips = (index[0] >= 0).astype(jnp.int32)  # 1, which no compiler knows
    shape = jax.eval_shape(read, array)
    return lax.fori_loop(0, trips, trip, (array, jnp.zeros(shape.shape, shape.dtype)))


def _rows_at(duals: Array, at: Array) -> Array:
    if at.shape[0] == 1:
        return lax.dynamic_slice_in_dim(duals, at[0], 1)
    return duals[at]


def _with_rows_at(duals: Array, at: Array, own: Array) -> Array:
    if at.shape[0] == 1:
        return lax.dynamic_update_slice_in_dim(duals, own, at[0], 0)
    return duals.at[at].set(own)


def is_steady(
    solver: Any,
    scalars: Any,
    dtype: Any,
    batch_size: int = 1,
    classes: tuple[int, ...] = (),
    has_dual: bool = False,
) -> bool:
    """Whether every factor of V is 1: ``round`` returns the literal 1.0 (contract, rule 6).

    ``scalars`` are shapes; ``classes`` is (K,) of classes together.
    """
    factors: list[Any] = []
    row = jax.ShapeDtypeStruct((batch_size,), dtype)
    score = jax.ShapeDtypeStruct((batch_size, *classes), dtype)
    target = jax.ShapeDtypeStruct(row.shape, jnp.int32) if solver.loss.joint else row

    def look(solver: Any, scalars: Any, score: Array, target: Array, row: Array, dual: Any) -> None:
        factors.append(solver.round(scalars, score, target, row, row, dual)[1])

    jax.eval_shape(look, solver, scalars, score, target, row, row if has_dual else None)
    return isinstance(factors[0], float) and factors[0] == 1.0


def _join(trace: Trace, scans: int) -> Trace:
    """Join the axes of one or two ``scans``, and of the rows under the inner one."""

    def joined(leaf: Array, axes: int) -> Array:
        return leaf.reshape(-1, *leaf.shape[axes:])

    def rounds(leaf: Array | None) -> Array | None:
        return None if leaf is None else joined(leaf, scans)

    return Trace(
        joined(trace.coefficient, 2),
        rounds(trace.factor),
        joined(trace.score, 2),
        rounds(trace.scale),
        rounds(trace.intercept),
    )


def remaining(trace: Trace, batch_size: int) -> tuple[Array | None, Array]:
    """What is left of V and of each row's coefficient after all rounds of the trace.

    Returns:
      (f_1 ... f_R, or None for 1; (B,) coefficient_i times the factors of the later rounds).
    """
    if trace.factor is None:
        return None, trace.coefficient
    left = suffix_products(trace.factor)
    return left[0], times_rows(per_row(left[1:], batch_size), trace.coefficient)


def times_rows(per_row: Array, coefficients: Array) -> Array:
    """A number per row, (B, ...), times coefficients (B, ...) or of K classes (B, K, ...)."""
    classes = (1,) * (coefficients.ndim - per_row.ndim)
    return per_row.reshape(per_row.shape[0], *classes, *per_row.shape[1:]) * coefficients


def suffix_products(factors: Array) -> Array:
    """[f_1 ... f_n, f_2 ... f_n, ..., f_n, 1] along the first axis, (n + 1, ...)."""
    one = jnp.ones((1, *factors.shape[1:]), factors.dtype)
    return lax.cumprod(jnp.concatenate([factors, one]), axis=0, reverse=True)


def per_row(per_round: Array, batch_size: int) -> Array:
    """Repeat a number per round for each row of the round."""
    return per_round if batch_size == 1 else jnp.repeat(per_round, batch_size, axis=0)


def _stretch_rows(size: int, k: int) -> int:
    """Rows per stretch: a divisor of ``size``, a multiple of k, at most INNER or k."""
    fitting = [m for m in range(k, min(size, INNER) + 1, k) if size % m == 0]
    return max(fitting, default=k)


def grow(square_norm: Array, b: Array, c: Array, raw: Array, inner: Array) -> Array:
    """||b V + sum c_i x_i||^2 from ||V||^2, raw_i = <V, x_i> and the rows' products (k, k)."""
    if c.ndim > 1:  # of classes together the square of the Frobenius norm
        quadratic = jnp.sum(c * product(inner, c))
    else:
        # Written out: as a matrix product its rounding would depend on the program around.
        quadratic = jnp.sum(c[:, None] * inner * c[None, :])
    return jnp.maximum(b * b * square_norm + 2 * b * jnp.sum(c * raw) + quadratic, 0)


def project(square_norm: Array, radius: Array) -> tuple[Array, Array]:
    """The square norm after projection onto the ball, and the factor that leads there."""
    # An overflowed norm stays: projected onto the ball it would be a silent 0.
    outside = (square_norm > radius * radius) & jnp.isfinite(square_norm)
    length = jnp.sqrt(jnp.where(outside, square_norm, 1))
    return (
        jnp.where(outside, radius * radius, square_norm),
        jnp.where(outside, radius / length, 1),
    )
