"""Sparse blocks: an ordinary dense round on the active columns of the state, and nothing else.

A block touches the columns that its rows hold. Their entries are gathered from every "feature"
field of the state, the dense rounds run on them and the result is put back; the other
coordinates are left for later. What a round would have done to them is made up for exactly:

- *debts*: a proximal solver owes them a prox per round. ``last``, one stamp per column and the
  same for all rankers, says since when (``Solver.age`` settles it).
- *scales*: some solvers multiply all weights in a round. A column of zeros whose coordinate is 1
  goes through the rounds with the active ones, and shows the factor; it is kept beside the state
  until it would leave the floats.

All is settled when the program ends: stamps and factors never leave it. Inside, the rankers of a
tile lie on the last axis: the T numbers of a column are contiguous. (Of classes trained together
a tile holds one lane, and it is their K numbers that are.)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsolvers.features import Dense, merge, restrict
from jaxsolvers.members import Array, Leaf
from jaxsolvers.protocol import Batch, Info, Solver, State, beside
from jaxsolvers.solvers.compensated import added

# (solver, state, alive, block, what else one ranker needs) -> (state, alive, info)
Step = Callable[[Solver, State, Array, Batch, Any], tuple[State, Array, Info]]


class Tile(NamedTuple):
    """A tile in training, its "feature" fields as (columns, rankers)."""

    state: State
    alive: Array  # (T,)
    factor: Array | None  # (T,) what "feature" fields are to be multiplied by
    last: Array | None  # (columns,) the clock when each column was up to date
    clock: Array | None  # () what each column would owe by now in this program, ``Solver.dues``
    fast: Array | None  # () what rounding put into the clock; None for a count of rounds


class Form(NamedTuple):
    """What is static about the state: the axis of the rankers in each of its leaves."""

    lanes: State  # 1 in "feature" fields, 0 in the others
    one: State  # shapes for one ranker

    @property
    def features(self) -> State:
        """Which leaves are "feature" fields."""
        return jax.tree.map(bool, self.lanes)


def form_of(state: State) -> Form:
    """The form of a tile's state, rankers on the leading axis."""

    def lane_axis(names: tuple[str, ...]) -> int:
        return int(bool(names) and names[-1] == "feature")

    lanes = jax.tree.map(lane_axis, state.axes, is_leaf=lambda node: type(node) is tuple)
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), state)
    return Form(lanes, one)


def one_ranker(solver: Solver) -> Solver:
    """Shapes of the solver's numbers for one ranker of a tile."""

    def shape(leaf: Leaf) -> Any:
        dims = leaf.value.shape if leaf.shared else leaf.value.shape[1:]
        return jax.ShapeDtypeStruct(dims, leaf.value.dtype)

    return solver.map_numbers(shape)


def enter(solver: Solver, state: State, alive: Array, form: Form, n_columns: int) -> Tile:
    """A tile's state as it is trained here."""
    scales = one_ranker(solver).scales(form.one)
    dues = jax.eval_shape(solver.dues, state, jax.ShapeDtypeStruct((), jnp.int32))
    owes = solver.debt != "none"
    return Tile(
        state=_features_first(state, form),
        alive=alive,
        factor=jnp.ones(alive.shape, _dtype(form)) if scales else None,
        last=jnp.zeros(n_columns, dues.dtype) if owes else None,
        clock=jnp.zeros((), dues.dtype) if owes else None,
        fast=jnp.zeros((), dues.dtype) if owes and _is_float(dues.dtype) else None,
    )


def leave(solver: Solver, tile: Tile, form: Form, step: Array) -> tuple[State, Array]:
    """The state, rankers first again, with all debts and factors settled."""
    state = tile.state
    if tile.factor is not None:
        state = _scaled(state, tile.factor, form)
    if tile.last is not None and tile.clock is not None:
        gap = tile.clock - tile.last
        state = _over_rankers(solver, form, _age)(solver, state, gap, step)
    state = _over_rankers(solver, form, _recomputed)(solver, state)
    return _features_last(state, form), tile.alive


def rounds(
    step: Step,
    solver: Solver,
    tile: Tile,
    form: Form,
    columns: Array,
    block: Batch,
    inputs: Any,
    axes: Any,
    per_round: Array,
    batch_size: int,
) -> tuple[Tile, Info]:
    """The rounds of one block, on its active columns.

    Args:
      step: one ranker's rounds.
      solver: numbers of the whole tile.
      tile: the tile before.
      form: of its state.
      columns: (m,) the block's active columns.
      block: its rows over them; the weights are those of the rows.
      inputs, axes: what ``step`` takes besides, and the axes of the rankers in it.
      per_round: () int32, how far the counter moves in each round.
      batch_size: rows per round.
    """
    n_columns = _n_columns(tile.state, form)
    own = restricted_numbers(solver, columns, n_columns)
    part = jax.tree.map(
        lambda leaf, wide: restrict(leaf, columns) if wide else leaf, tile.state, form.features
    )
    last, clock, fast = tile.last, tile.clock, tile.fast
    if last is not None and clock is not None:
        assert len(block.weight) == batch_size  # blocks of several rounds leave no debts
        gap = clock - restrict(last, columns)
        # A plain sum of 1e6 step sizes in float32 is a percent off.
        clock, fast = added(clock, solver.dues(tile.state, solver.rounds(block.weight)), fast)
        part = _over_rankers(own, form, _age)(own, part, gap, per_round)
        last = merge(last, columns, jnp.broadcast_to(clock, columns.shape))
    factor = tile.factor
    if factor is not None:
        part = _scaled(part, factor, form)
        part = jax.tree.map(
            lambda leaf, wide: jnp.concatenate([leaf, jnp.ones_like(leaf[:1])]) if wide else leaf,
            part,
            form.features,
        )
        block = block._replace(x=_with_witness(block.x))

    def one(solver: Solver, state: State, *rest: Any) -> tuple[State, Array, Info]:
        state, alive, info = step(solver, _features_last(state, form), *rest)
        return _features_first(state, form), alive, info

    mapped: Any = jax.vmap(
        one,
        in_axes=(own.ranker_axes(), form.lanes, 0, None, axes),
        out_axes=(form.lanes, 0, 0),
    )
    part, alive, info = mapped(own, part, tile.alive, block, inputs)
    state = tile.state
    if factor is not None:
        part, witness = _without_witness(part, form)
        state, factor = _kept_in_range(state, factor * witness, part, form)
        part = _scaled(part, 1 / factor, form)
    state = jax.tree.map(
        lambda leaf, new, wide: merge(leaf, columns, new) if wide else new,
        state,
        part,
        form.features,
    )
    return Tile(state, alive, factor, last, clock, fast), info


def restricted_numbers(solver: Solver, columns: Array, n_columns: int) -> Solver:
    """The solver for the active columns: its arrays over the features cut to them."""

    def cut(leaf: Leaf) -> Array:
        value = leaf.value
        if leaf.spec.rank != 1 or value.shape[-1] == 1:  # one number serves all features
            return value
        # The intercept's column, the last, has no number of its own.
        own = columns if value.shape[-1] == n_columns else columns[:-1]
        return restrict(value, own, axis=value.ndim - 1)

    return solver.map_numbers(cut)


def _age(solver: Solver, state: State, gap: Array, step: Array) -> State:
    return solver.age(state, gap, step)


def _recomputed(solver: Solver, state: State) -> State:
    return solver.recomputed(state)


def _over_rankers(solver: Solver, form: Form, function: Any) -> Any:
    """``function(solver, state, *shared) -> state`` for all rankers of a tile."""

    def one(solver: Solver, state: State, *shared: Array) -> State:
        return _features_first(function(solver, _features_last(state, form), *shared), form)

    def mapped(solver: Solver, state: State, *shared: Array) -> State:
        axes = (solver.ranker_axes(), form.lanes, *(None for _ in shared))
        return jax.vmap(one, in_axes=axes, out_axes=form.lanes)(solver, state, *shared)

    return mapped


def _features_first(state: State, form: Form) -> State:
    """The "feature" axis, the last, moved to the front."""
    return jax.tree.map(
        lambda leaf, wide: jnp.moveaxis(leaf, -1, 0) if wide else leaf, state, form.features
    )


def _features_last(state: State, form: Form) -> State:
    return jax.tree.map(
        lambda leaf, wide: jnp.moveaxis(leaf, 0, -1) if wide else leaf, state, form.features
    )


def _scaled(state: State, factor: Array, form: Form) -> State:
    return jax.tree.map(
        lambda leaf, wide: leaf * beside(factor[None], leaf) if wide else leaf, state, form.features
    )


def _with_witness(x: Dense) -> Dense:
    zeros = jnp.zeros((x.values.shape[0], 1), x.values.dtype)
    return dataclasses.replace(x, values=jnp.concatenate([x.values, zeros], axis=1))


def _without_witness(part: State, form: Form) -> tuple[State, Array]:
    """The state of the active columns, and the factor that all others owe, (T,)."""
    seen = [
        leaf[-1]
        for leaf, wide in zip(jax.tree.leaves(part), jax.tree.leaves(form.features), strict=True)
        if wide
    ]
    cut = jax.tree.map(lambda leaf, wide: leaf[:-1] if wide else leaf, part, form.features)
    return cut, seen[0].reshape(seen[0].shape[0], -1)[:, 0]  # the same of classes together


def _kept_in_range(state: State, factor: Array, part: State, form: Form) -> tuple[State, Array]:
    """The factor of a ranker multiplied into its state before it, or what is divided by it,
    leaves the floats.
    """
    size, limits = jnp.abs(factor), jnp.finfo(factor.dtype)
    limit = limits.smallest_normal**0.25
    out = (size < limit) | (size > 1 / limit)
    for leaf, wide in zip(jax.tree.leaves(part), jax.tree.leaves(form.features), strict=True):
        if wide:
            largest = jnp.max(jnp.abs(leaf), axis=(0, *range(2, leaf.ndim)))
            out = out | (largest > limits.max * jnp.minimum(size, 1))

    # A loop of no or one trip: unlike a branch it updates the state in place.
    def multiply(_: Array, carry: tuple[State, Array]) -> tuple[State, Array]:
        state, factor = carry
        return _scaled(state, jnp.where(out, factor, 1), form), jnp.where(out, 1, factor)

    return lax.fori_loop(0, jnp.any(out).astype(jnp.int32), multiply, (state, factor))


def _is_float(dtype: Any) -> bool:
    return jnp.issubdtype(dtype, jnp.floating)


def _n_columns(state: State, form: Form) -> int:
    wide = zip(jax.tree.leaves(state), jax.tree.leaves(form.features), strict=True)
    return next(leaf.shape[0] for leaf, feature in wide if feature)


def _dtype(form: Form) -> Any:
    leaves = zip(jax.tree.leaves(form.one), jax.tree.leaves(form.features), strict=True)
    return next(leaf.dtype for leaf, wide in leaves if wide)
