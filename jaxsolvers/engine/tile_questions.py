"""What else a tile's rankers are asked for: weights, biases, theory, bounds, scores of all rows.

And what is done to them between epochs. Each is one program per device, as the training is.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec

from jaxsolvers.engine.sharding import AXIS
from jaxsolvers.engine.slabs import Slab
from jaxsolvers.engine.tile import (
    Assignment,
    Lanes,
    Plan,
    block_of,
    entry,
    own_weights,
    per_device,
    specs_of,
)
from jaxsolvers.features import Rows, restrict
from jaxsolvers.members import Array
from jaxsolvers.protocol import Solver, State, keep_where


@partial(jax.jit, static_argnames=("plan", "opens"), donate_argnames="lanes")
def through_survey(look: Any, lanes: Lanes, *, plan: Plan, opens: bool) -> Lanes:
    """The lanes as a survey takes them over, or as it hands them back."""

    def one(look: Any, state: State) -> State:
        return look.open(state) if opens else look.close(state)

    def tile(look: Any, lanes: Lanes) -> Lanes:
        state = jax.vmap(one, in_axes=(look.ranker_axes(), 0))(look, lanes.state)
        return lanes._replace(state=state)

    split = PartitionSpec(AXIS)
    return per_device(plan, tile, (specs_of(look), split), split)(look, lanes)


@partial(jax.jit, static_argnames="plan")
def tile_weights(solver: Solver, state: State, *, plan: Plan) -> Array:
    """The weights of a tile's rankers, (T, d)."""
    split = PartitionSpec(AXIS)
    return per_device(plan, _weights_of, (specs_of(solver), split), split)(solver, state)


def _weights_of(solver: Solver, state: State) -> Array:
    def one(solver: Solver, state: State) -> Array:
        return solver.weights(state)

    return jax.vmap(one, in_axes=(solver.ranker_axes(), 0))(solver, state)


@partial(jax.jit, static_argnames="plan")
def tile_offsets(solver: Solver, state: State, *, plan: Plan) -> Array | None:
    """The biases of a tile's rankers, (T,) or of classes together (T, K); None without."""

    def tile(solver: Solver, state: State) -> Array | None:
        def one(solver: Solver, state: State) -> Array | None:
            return solver.offset(state)

        return jax.vmap(one, in_axes=(solver.ranker_axes(), 0))(solver, state)

    split = PartitionSpec(AXIS)
    return per_device(plan, tile, (specs_of(solver), split), split)(solver, state)


@partial(jax.jit, static_argnames="plan")
def tile_theory(solver: Solver, lanes: Lanes, *, plan: Plan) -> dict[str, Array]:
    """What the rankers' states tell (``Solver.theory``), fields (T,); NaN for lost rankers."""

    def tile(solver: Solver, lanes: Lanes) -> dict[str, Array]:
        def one(solver: Solver, state: State, alive: Array) -> dict[str, Array]:
            told = solver.theory(state)
            return {name: jnp.where(alive, value, jnp.nan) for name, value in told.items()}

        return jax.vmap(one, in_axes=(solver.ranker_axes(), 0, 0))(solver, *lanes)

    split = PartitionSpec(AXIS)
    return per_device(plan, tile, (specs_of(solver), split), split)(solver, lanes)


class Scored(NamedTuple):
    """Rows as some rankers of a tile meet them, (rankers, rows) each."""

    score: Array  # <w, x>, without a bias
    target: Array
    weight: Array  # a row that is drawn with a probability weighs that share


@partial(jax.jit, static_argnames=("plan", "count"))
def tile_scores(
    solver: Solver,
    lanes: Lanes,
    assignment: Assignment,
    slab: Slab,
    first: Array,
    *,
    plan: Plan,
    count: int,
) -> Scored:
    """The rows of a slab for the ``count`` rankers of each device's tile from ``first`` on."""

    def tile(
        solver: Solver, lanes: Lanes, assignment: Assignment, slab: Slab, first: Array
    ) -> Scored:
        solver, state, own = _cut((solver, lanes.state, assignment), first, count)
        weights = _weights_of(solver, state)

        def block(i: Array) -> Scored:
            if isinstance(slab.x, Rows):
                columns, x = slab.x.block(i, len(slab.x.levels) - 1)
                active = restrict(weights, columns, axis=1)
            else:
                x, active = entry(slab.x, i), weights
            rows, target, axis = block_of(plan, solver, slab, i, x, None, own)
            fold = entry(slab.fold, i)

            def one(solver: Solver, w: Array, target: Array, own: Assignment) -> Scored:
                weight = own_weights(solver, own, target, rows.weight, fold)
                if own.share is not None:
                    weight = jnp.where(target > 0, weight, own.share * weight)
                return Scored(x.scores(w), target, weight)

            return jax.vmap(one, in_axes=(solver.ranker_axes(), 0, axis, 0))(
                solver, active, target, own
            )

        found = lax.map(block, jnp.arange(slab.weight.shape[0], dtype=jnp.int32))
        return jax.tree.map(lambda a: jnp.moveaxis(a, 0, 1).reshape(count, -1), found)

    split, whole = PartitionSpec(AXIS), PartitionSpec()
    specs = (specs_of(solver), split, split, whole, whole)
    return per_device(plan, tile, specs, split)(solver, lanes, assignment, slab, first)


@partial(jax.jit, static_argnames=("plan", "count"), donate_argnames="lanes")
def tile_finish(
    solver: Solver, lanes: Lanes, scored: Scored, first: Array, *, plan: Plan, count: int
) -> Lanes:
    """The lanes after ``Solver.finish`` of those rankers. ``lanes`` is donated."""

    def tile(solver: Solver, lanes: Lanes, scored: Scored, first: Array) -> Lanes:
        def one(solver: Solver, state: State, alive: Array, scored: Scored) -> State:
            return keep_where(alive, solver.finish(state, *scored), state)

        own, state, alive = _cut((solver, lanes.state, lanes.alive), first, count)
        mapped = jax.vmap(one, in_axes=(own.ranker_axes(), 0, 0, 0))
        after = mapped(own, state, alive, scored)
        whole = jax.tree.map(
            lambda old, new: lax.dynamic_update_slice_in_dim(old, new, first, 0), lanes.state, after
        )
        return Lanes(whole, lanes.alive)

    split, whole = PartitionSpec(AXIS), PartitionSpec()
    specs = (specs_of(solver), split, split, whole)
    return per_device(plan, tile, specs, split)(solver, lanes, scored, first)


def _cut(tree: tuple[Any, ...], first: Array, count: int) -> tuple[Any, ...]:
    """A solver and what else has rankers on its leading axes, for ``count`` of them."""

    def own(leaf: Array) -> Array:
        return lax.dynamic_slice_in_dim(leaf, first, count)

    solver, *rest = tree
    numbers = solver.map_numbers(lambda leaf: leaf.value if leaf.shared else own(leaf.value))
    return numbers, *jax.tree.map(own, rest)


@partial(jax.jit, static_argnames="plan")
def tile_bound(solver: Solver, lanes: Lanes, violations: Array, *, plan: Plan) -> Array | None:
    """What ``Solver.bound`` makes of the violations (T,) of a run, (T,); None without a bound."""

    def tile(solver: Solver, state: State, violations: Array) -> Array | None:
        def one(solver: Solver, state: State, violations: Array) -> Array | None:
            return solver.bound(state, violations, plan.batch_size)

        axes = (solver.ranker_axes(), 0, 0)
        return jax.vmap(one, in_axes=axes)(solver, state, violations)

    split = PartitionSpec(AXIS)
    return per_device(plan, tile, (specs_of(solver), split, split), split)(
        solver, lanes.state, violations
    )
