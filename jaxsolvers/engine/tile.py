"""The compiled program: a tile of T rankers by a slab of blocks.

T and the slab's shape are fixed, so that one program serves 1 to any number of rankers (dummies
fill the last tile), any number of rows, chunks, epochs, devices and resumed runs, and gives each
ranker the same bits in all of them. Over a mesh, each device of the axis ``rankers`` runs the
program on its own tile; nothing is communicated.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from jaxsolvers.engine.sharding import AXIS
from jaxsolvers.engine.slabs import Slab
from jaxsolvers.members import Array
from jaxsolvers.protocol import Batch, Info, Problem, Solver, State

LARGEST_TILE = 512


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is static in the program, besides shapes and the members' own choices."""

    mesh: Mesh
    batch_size: int
    labels: bool  # targets are class codes, +1 for the ranker's own; else values for all alike


class Lanes(NamedTuple):
    """A tile of rankers in training; every leaf has T rankers on its leading axis."""

    state: State
    alive: Array  # (T,) bool, False once a block's scores or coefficients were not finite


class Assignment(NamedTuple):
    """What tells the rankers of a tile apart."""

    code: Any  # (T,) int32, the class that is +1
    positive: Any  # (T,) factor on the weights of positive rows
    negative: Any  # (T,) factor on the weights of the others


class Group(NamedTuple):
    """A tile per device, in training."""

    solver: Solver
    assignment: Assignment
    lanes: Lanes
    size: int  # real rankers, the rest are dummies


def tile_size(n_rankers: int) -> int:
    """T: a power of two that depends on the number of rankers alone, at most LARGEST_TILE."""
    return min(LARGEST_TILE, 1 << (n_rankers - 1).bit_length())


@partial(jax.jit, static_argnames=("plan", "shape", "n_examples", "dtype"))
def begin(
    solver: Solver,
    live: Array,
    loss_at_zero: Array,
    *,
    plan: Plan,
    shape: tuple[int, ...],
    n_examples: int,
    dtype: Any,
) -> Lanes:
    """The lanes of a tile before their first round."""

    def one(solver: Solver, live: Array, loss_at_zero: Array) -> State:
        return solver.init(Problem(shape, n_examples, live, loss_at_zero), dtype)

    def tile(solver: Solver, live: Array, loss_at_zero: Array) -> Lanes:
        state = jax.vmap(one, in_axes=(solver.ranker_axes(), 0, 0))(solver, live, loss_at_zero)
        return Lanes(state, jnp.ones(live.shape, bool))

    split = PartitionSpec(AXIS)
    return _per_device(plan, tile, (_specs(solver), split, split), split)(
        solver, live, loss_at_zero
    )


@partial(jax.jit, static_argnames="plan", donate_argnames="lanes")
def advance(
    solver: Solver, lanes: Lanes, assignment: Assignment, slab: Slab, *, plan: Plan
) -> tuple[Lanes, Info]:
    """All rounds of a slab for a tile. ``lanes`` is donated and updated in place.

    Returns:
      The lanes after the slab and the summed Info of its rows, fields (T,).
    """

    def one(
        solver: Solver, state: State, alive: Array, own: Assignment, block: Batch
    ) -> tuple[State, Array, Info]:
        dtype = block.weight.dtype
        if plan.labels:
            target = jnp.where(block.target == own.code, 1, -1).astype(dtype)
        else:
            target = block.target
        factor = jnp.where(target > 0, own.positive, own.negative)
        weight = jnp.where(alive, block.weight * factor, 0)
        block = block._replace(target=target, weight=weight)
        state, info = solver.sweep(state, block, plan.batch_size)
        return state, alive & info.finite, info

    def tile(
        solver: Solver, lanes: Lanes, assignment: Assignment, slab: Slab
    ) -> tuple[Lanes, Info]:
        def body(i: Array, carry: tuple[Lanes, Info]) -> tuple[Lanes, Info]:
            lanes, sums = carry
            x, gram, target, weight, index = jax.tree.map(
                lambda a: lax.dynamic_index_in_dim(a, i, keepdims=False),
                (slab.x, slab.gram, slab.target, slab.weight, slab.index),
            )
            block = Batch(x, target, weight, index, gram)
            mapped = jax.vmap(one, in_axes=(solver.ranker_axes(), 0, 0, 0, None))
            state, alive, info = mapped(solver, lanes.state, lanes.alive, assignment, block)
            return Lanes(state, alive), sums.plus(info)

        zero = jnp.zeros_like(assignment.positive)
        start = (lanes, Info(zero, zero, zero, zero, lanes.alive))
        return lax.fori_loop(0, slab.n_blocks, body, start)

    split, whole = PartitionSpec(AXIS), PartitionSpec()
    return _per_device(plan, tile, (_specs(solver), split, split, whole), split)(
        solver, lanes, assignment, slab
    )


@partial(jax.jit, static_argnames="plan")
def tile_weights(solver: Solver, state: State, *, plan: Plan) -> Array:
    """The weights of a tile's rankers, (T, d)."""

    def tile(solver: Solver, state: State) -> Array:
        def one(solver: Solver, state: State) -> Array:
            return solver.weights(state)

        return jax.vmap(one, in_axes=(solver.ranker_axes(), 0))(solver, state)

    split = PartitionSpec(AXIS)
    return _per_device(plan, tile, (_specs(solver), split), split)(solver, state)


def _specs(solver: Solver) -> Solver:
    split, whole = PartitionSpec(AXIS), PartitionSpec()
    return solver.map_numbers(lambda leaf: whole if leaf.shared else split)


def _per_device(plan: Plan, function: Any, in_specs: Any, out_specs: Any) -> Any:
    return jax.shard_map(
        function, mesh=plan.mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False
    )
