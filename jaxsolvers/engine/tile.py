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

from jaxsolvers.engine.draws import drawn
from jaxsolvers.engine.restricted import Tile, enter, form_of, leave, rounds
from jaxsolvers.engine.sharding import AXIS
from jaxsolvers.engine.slabs import Slab
from jaxsolvers.engine.targets import LabelSets
from jaxsolvers.features import Rows, restrict
from jaxsolvers.members import Array
from jaxsolvers.protocol import Batch, Info, Problem, Solver, State, beside, keep_where

LARGEST_TILE = 512


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is static in the program, besides shapes and the members' own choices."""

    mesh: Mesh
    batch_size: int
    gram: bool = False  # sparse blocks are swept by their Gram matrix
    together: int | None = None  # classes that one lane trains as one problem


class Lanes(NamedTuple):
    """A tile of rankers in training; every leaf has T rankers on its leading axis."""

    state: State
    alive: Array  # (T,) bool, False once a block's scores or coefficients were not finite


class Assignment(NamedTuple):
    """What tells the rankers of a tile apart."""

    code: Any  # (T,) int32, the class that is +1
    positive: Any  # (T,) factor on the weights of positive rows; (T, K) of classes together
    negative: Any  # (T,) or (T, K), factor on the weights of the others
    share: Any = None  # (T,) probability that a negative row is drawn; None for all of them


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
    seeds: Array,
    *,
    plan: Plan,
    shape: tuple[int, ...],
    n_examples: int,
    dtype: Any,
) -> Lanes:
    """The lanes of a tile before their first round."""

    def one(solver: Solver, live: Array, loss_at_zero: Array, seed: Array) -> State:
        return solver.init(Problem(shape, n_examples, live, loss_at_zero, seed=seed), dtype)

    def tile(solver: Solver, live: Array, loss_at_zero: Array, seeds: Array) -> Lanes:
        axes = (solver.ranker_axes(), 0, 0, 0)
        state = jax.vmap(one, in_axes=axes)(solver, live, loss_at_zero, seeds)
        return Lanes(state, jnp.ones(live.shape, bool))

    split = PartitionSpec(AXIS)
    return _per_device(plan, tile, (_specs(solver), split, split, split), split)(
        solver, live, loss_at_zero, seeds
    )


@partial(jax.jit, static_argnames="plan", donate_argnames="lanes")
def advance(
    solver: Solver, lanes: Lanes, assignment: Assignment, slab: Slab, *, plan: Plan
) -> tuple[Lanes, Info]:
    """All rounds of a slab for a tile. ``lanes`` is donated and updated in place.

    Returns:
      The lanes after the slab and the summed Info of its rows, fields (T,).
    """
    tile = partial(_sparse_tile if isinstance(slab.x, Rows) else _dense_tile, plan)
    split, whole = PartitionSpec(AXIS), PartitionSpec()
    return _per_device(plan, tile, (_specs(solver), split, split, whole), split)(
        solver, lanes, assignment, slab
    )


def _dense_tile(
    plan: Plan, solver: Solver, lanes: Lanes, assignment: Assignment, slab: Slab
) -> tuple[Lanes, Info]:
    def body(i: Array, carry: tuple[Lanes, Info]) -> tuple[Lanes, Info]:
        lanes, sums = carry
        x, gram = _at((slab.x, slab.gram), i)
        block, target, axis = _block(plan, solver, slab, i, x, gram, assignment)
        axes = (solver.ranker_axes(), 0, 0, None, (axis, 0))
        mapped = jax.vmap(partial(_one, plan, slab.draw), in_axes=axes)
        state, alive, info = mapped(solver, *lanes, block, (target, assignment))
        return Lanes(state, alive), sums.plus(info)

    start = (lanes, _nothing(assignment, lanes.alive))
    return lax.fori_loop(slab.segments[0, 0], slab.segments[0, 1], body, start)


def _sparse_tile(
    plan: Plan, solver: Solver, lanes: Lanes, assignment: Assignment, slab: Slab
) -> tuple[Lanes, Info]:
    form = form_of(lanes.state)
    Carry = tuple[Tile, Info]

    def body(level: int, i: Array, carry: Carry) -> Carry:
        tile, sums = carry
        columns, x = slab.x.block(i, level)
        gram = x.gram() if plan.gram else None
        block, target, axis = _block(plan, solver, slab, i, x, gram, assignment)
        tile, info = rounds(
            partial(_one, plan, slab.draw), solver, tile, form, columns, block,
            (target, assignment), (axis, 0), slab.step, plan.batch_size,
        )  # fmt: skip
        return tile, sums.plus(info)

    def segment(g: Array, carry: Carry) -> Carry:
        for level in range(len(slab.x.levels)):
            first, stop = slab.segments[g, level], slab.segments[g, level + 1]
            carry = lax.fori_loop(first, stop, partial(body, level), carry)
        return carry

    tile = enter(solver, lanes.state, lanes.alive, form, slab.x.n_columns)
    start = (tile, _nothing(assignment, lanes.alive))
    tile, sums = lax.fori_loop(slab.span[0], slab.span[1], segment, start)
    return Lanes(*leave(solver, tile, form, slab.step)), sums


def _one(
    plan: Plan,
    draw: Array,
    solver: Solver,
    state: State,
    alive: Array,
    block: Batch,
    private: tuple[Array, Assignment],
) -> tuple[State, Array, Info]:
    """The rounds of a block for one ranker, with its targets and weights."""
    target, assignment = private
    weight = own_weights(solver, assignment, target, block.weight)
    weight = jnp.where(alive, weight, 0)
    if assignment.share is not None:
        chosen = drawn(draw, assignment.code, block.index, assignment.share)
        weight = jnp.where((target > 0) | chosen, weight, 0)
    block = block._replace(target=target, weight=weight)
    if len(weight) == plan.batch_size and block.gram is None:
        state, info = solver.update(state, block)
    else:
        state, info = solver.sweep(state, block, plan.batch_size)
    return state, alive & info.finite, info


def own_weights(solver: Solver, assignment: Assignment, target: Array, weight: Array) -> Array:
    """The weights of rows for one ranker, of the targets' shape, from those of the rows (B,)."""
    factor = assignment.negative  # a joint loss has no positive rows
    if not solver.loss.joint:
        positive, negative = (f[None] if f.ndim else f for f in assignment[1:3])
        factor = jnp.where(target > 0, positive, negative)
    own = beside(weight, target)
    # A live row stays live however small its weight: what a round counts is the same for all.
    least = jnp.finfo(own.dtype).smallest_normal
    return jnp.where(own > 0, jnp.maximum(own * factor, least), 0)


def _block(
    plan: Plan,
    solver: Solver,
    slab: Slab,
    i: Array,
    x: Any,
    gram: Array | None,
    assignment: Assignment,
) -> tuple[Batch, Array, int | None]:
    """Block i, its targets and the axis of the rankers in these.

    Targets are (T, B), or (B,) if all share them; (B, K) for classes trained together.
    """
    weight, index = _at((slab.weight, slab.index), i)
    codes = assignment.code
    if plan.together is not None:
        codes = jnp.arange(plan.together, dtype=codes.dtype)
    if isinstance(slab.target, LabelSets):
        one_by_one = plan.together is None  # some of a tile's rankers may have left it
        target = slab.target.block(i, codes, weight.dtype, one_by_one)
        axis = 0
    else:
        target, axis = _at(slab.target, i), None
        if target.dtype == jnp.int32 and not solver.loss.joint:
            target = jnp.where(target[None] == codes[:, None], 1, -1)
            target, axis = target.astype(weight.dtype), 0
    if plan.together is not None:
        target, axis = target.T, None
    return Batch(x, target, weight, index, gram), target, axis


def _at(tree: Any, i: Array) -> Any:
    return jax.tree.map(lambda a: lax.dynamic_index_in_dim(a, i, keepdims=False), tree)


def _nothing(assignment: Assignment, alive: Array) -> Info:
    zero = jnp.zeros(alive.shape, assignment.positive.dtype)
    return Info(zero, zero, zero, zero, alive)


@partial(jax.jit, static_argnames=("plan", "opens"), donate_argnames="lanes")
def through_survey(look: Any, lanes: Lanes, *, plan: Plan, opens: bool) -> Lanes:
    """The lanes as a survey takes them over, or as it hands them back."""

    def one(look: Any, state: State) -> State:
        return look.open(state) if opens else look.close(state)

    def tile(look: Any, lanes: Lanes) -> Lanes:
        state = jax.vmap(one, in_axes=(look.ranker_axes(), 0))(look, lanes.state)
        return lanes._replace(state=state)

    split = PartitionSpec(AXIS)
    return _per_device(plan, tile, (_specs(look), split), split)(look, lanes)


@partial(jax.jit, static_argnames="plan")
def tile_weights(solver: Solver, state: State, *, plan: Plan) -> Array:
    """The weights of a tile's rankers, (T, d)."""
    split = PartitionSpec(AXIS)
    return _per_device(plan, _weights_of, (_specs(solver), split), split)(solver, state)


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
    return _per_device(plan, tile, (_specs(solver), split), split)(solver, state)


@partial(jax.jit, static_argnames="plan")
def tile_theory(solver: Solver, lanes: Lanes, *, plan: Plan) -> dict[str, Array]:
    """What the rankers' states tell (``Solver.theory``), fields (T,); NaN for lost rankers."""

    def tile(solver: Solver, lanes: Lanes) -> dict[str, Array]:
        def one(solver: Solver, state: State, alive: Array) -> dict[str, Array]:
            told = solver.theory(state)
            return {name: jnp.where(alive, value, jnp.nan) for name, value in told.items()}

        return jax.vmap(one, in_axes=(solver.ranker_axes(), 0, 0))(solver, *lanes)

    split = PartitionSpec(AXIS)
    return _per_device(plan, tile, (_specs(solver), split), split)(solver, lanes)


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
                x, active = _at(slab.x, i), weights
            rows, target, axis = _block(plan, solver, slab, i, x, None, own)

            def one(solver: Solver, w: Array, target: Array, own: Assignment) -> Scored:
                weight = own_weights(solver, own, target, rows.weight)
                if own.share is not None:
                    weight = jnp.where(target > 0, weight, own.share * weight)
                return Scored(x.scores(w), target, weight)

            return jax.vmap(one, in_axes=(solver.ranker_axes(), 0, axis, 0))(
                solver, active, target, own
            )

        found = lax.map(block, jnp.arange(slab.weight.shape[0], dtype=jnp.int32))
        return jax.tree.map(lambda a: jnp.moveaxis(a, 0, 1).reshape(count, -1), found)

    split, whole = PartitionSpec(AXIS), PartitionSpec()
    specs = (_specs(solver), split, split, whole, whole)
    return _per_device(plan, tile, specs, split)(solver, lanes, assignment, slab, first)


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
    specs = (_specs(solver), split, split, whole)
    return _per_device(plan, tile, specs, split)(solver, lanes, scored, first)


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
    return _per_device(plan, tile, (_specs(solver), split, split), split)(
        solver, lanes.state, violations
    )


def _specs(solver: Solver) -> Solver:
    split, whole = PartitionSpec(AXIS), PartitionSpec()
    return solver.map_numbers(lambda leaf: whole if leaf.shared else split)


def _per_device(plan: Plan, function: Any, in_specs: Any, out_specs: Any) -> Any:
    return jax.shard_map(
        function, mesh=plan.mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False
    )
