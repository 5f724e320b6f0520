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
from jaxsolvers.features import Rows
from jaxsolvers.members import Array
from jaxsolvers.protocol import Batch, Info, Problem, Solver, State, beside

LARGEST_TILE = 512


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is static in the program, besides shapes and the members' own choices."""

    mesh: Mesh
    batch_size: int
    gram: bool = False  # sparse blocks are swept by their Gram matrix
    together: int | None = None  # classes that one lane trains as one problem
    own: bool = False  # the blocks of a slab hold rows for each lane
    cycle: int | None = None  # classes, of rankers in several copies


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
    fold: Any = None  # (T,) int32, the fold whose rows are held out; None without folds


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
    return per_device(plan, tile, (specs_of(solver), split, split, split), split)(
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
    shared = _sparse_tile if isinstance(slab.x, Rows) else _dense_tile
    tile = partial(_own_tile if plan.own else shared, plan)
    split, whole = PartitionSpec(AXIS), PartitionSpec()
    rows: Any = whole
    if plan.own:
        of_rows: list[Any] = 5 * [PartitionSpec(None, AXIS)] + 4 * [whole]
        rows = Slab(*of_rows)
    return per_device(plan, tile, (specs_of(solver), split, split, rows), split)(
        solver, lanes, assignment, slab
    )


def _own_tile(
    plan: Plan, solver: Solver, lanes: Lanes, assignment: Assignment, slab: Slab
) -> tuple[Lanes, Info]:
    """Rows and targets have an axis for the lanes, after that of the blocks."""
    mapped = jax.vmap(
        partial(_one, plan, slab.draw), in_axes=(solver.ranker_axes(), 0, 0, 0, (0, 0, None))
    )

    def body(i: Array, carry: tuple[Lanes, Info]) -> tuple[Lanes, Info]:
        lanes, sums = carry
        block = Batch(*entry((slab.x, slab.target, slab.weight, slab.index, slab.gram), i))
        state, alive, info = mapped(solver, *lanes, block, (block.target, assignment, None))
        return Lanes(state, alive), sums.plus(info)

    start = (lanes, _nothing(assignment, lanes.alive))
    return lax.fori_loop(slab.segments[0, 0], slab.segments[0, 1], body, start)


def _dense_tile(
    plan: Plan, solver: Solver, lanes: Lanes, assignment: Assignment, slab: Slab
) -> tuple[Lanes, Info]:
    def body(i: Array, carry: tuple[Lanes, Info]) -> tuple[Lanes, Info]:
        lanes, sums = carry
        x, gram = entry((slab.x, slab.gram), i)
        block, target, axis = block_of(plan, solver, slab, i, x, gram, assignment)
        axes = (solver.ranker_axes(), 0, 0, None, (axis, 0, None))
        mapped = jax.vmap(partial(_one, plan, slab.draw), in_axes=axes)
        inputs = target, assignment, entry(slab.fold, i)
        state, alive, info = mapped(solver, *lanes, block, inputs)
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
        block, target, axis = block_of(plan, solver, slab, i, x, gram, assignment)
        tile, info = rounds(
            partial(_one, plan, slab.draw), solver, tile, form, columns, block,
            (target, assignment, entry(slab.fold, i)), (axis, 0, None), slab.step, plan.batch_size,
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
    inputs: tuple[Array, Assignment, Array | None],
) -> tuple[State, Array, Info]:
    """The rounds of a block for one ranker, with its targets and weights."""
    target, assignment, fold = inputs
    weight = own_weights(solver, assignment, target, block.weight, fold)
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


def own_weights(
    solver: Solver, assignment: Assignment, target: Array, weight: Array, fold: Array | None
) -> Array:
    """The weights of rows for one ranker, of the targets' shape, from those of the rows (B,).

    With the ``fold`` (B,) of each row those of the ranker's own one are held out.
    """
    factor = assignment.negative  # a joint loss has no positive rows
    if not solver.loss.joint:
        positive, negative = (f[None] if f.ndim else f for f in assignment[1:3])
        factor = jnp.where(target > 0, positive, negative)
    own = beside(weight, target)
    # A live row stays live however small its weight: what a round counts is the same for all.
    least = jnp.finfo(own.dtype).smallest_normal
    found = jnp.where(own > 0, jnp.maximum(own * factor, least), 0)
    return found if fold is None else jnp.where(beside(fold == assignment.fold, found), 0, found)


def block_of(
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
    weight, index = entry((slab.weight, slab.index), i)
    codes = assignment.code
    if plan.together is not None:
        codes = jnp.arange(plan.together, dtype=codes.dtype)
    if isinstance(slab.target, LabelSets):
        cycle = plan.cycle if plan.together is None else None
        # Some of a tile's rankers may have left it; those in copies stay.
        scattered = plan.together is None and cycle is None
        target = slab.target.block(i, codes, weight.dtype, scattered, cycle)
        axis = 0
    else:
        target, axis = entry(slab.target, i), None
        if target.dtype == jnp.int32 and not solver.loss.joint:
            target = jnp.where(target[None] == codes[:, None], 1, -1)
            target, axis = target.astype(weight.dtype), 0
    if plan.together is not None:
        target, axis = target.T, None
    return Batch(x, target, weight, index, gram), target, axis


def entry(tree: Any, i: Array) -> Any:
    """Entry i of the leading axis of every leaf."""
    return jax.tree.map(lambda a: lax.dynamic_index_in_dim(a, i, keepdims=False), tree)


def _nothing(assignment: Assignment, alive: Array) -> Info:
    zero = jnp.zeros(alive.shape, assignment.positive.dtype)
    return Info(zero, zero, zero, zero, alive)


def specs_of(solver: Solver) -> Solver:
    """How a solver's numbers lie on the devices: those of each ranker beside its lane."""
    split, whole = PartitionSpec(AXIS), PartitionSpec()
    return solver.map_numbers(lambda leaf: whole if leaf.shared else split)


def per_device(plan: Plan, function: Any, in_specs: Any, out_specs: Any) -> Any:
    """The function run by each device on its own tile."""
    return jax.shard_map(
        function, mesh=plan.mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False
    )
