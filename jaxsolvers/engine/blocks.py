"""Which blocks of rows a run works on: how many rows, over which columns, by which form."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.csr import Csr
from jaxsolvers.engine.dense_slabs import DenseSlabs, dense_shape
from jaxsolvers.engine.gram_lanes import GramLanes
from jaxsolvers.engine.gram_slabs import GRAM_BYTES, gram_slabs
from jaxsolvers.engine.inputs import Examples
from jaxsolvers.engine.lane_slabs import MOST_LANES, LaneSlabs, lane_rows, lane_shape, lanes_of_tile
from jaxsolvers.engine.order import epoch_order
from jaxsolvers.engine.own_rows import OwnRows
from jaxsolvers.engine.ranker_slabs import ranker_slabs
from jaxsolvers.engine.row_slabs import RowShape, RowSlabs, row_shape, sample_blocks
from jaxsolvers.engine.sharding import n_devices
from jaxsolvers.engine.sizes import next_power_of_two
from jaxsolvers.engine.slabs import Data, Slabs
from jaxsolvers.engine.targets import Targets
from jaxsolvers.protocol import Regularizer, Solver

BLOCK_ROWS = 128  # rows of a block unless asked otherwise
GRAM_BATCH = 32  # batches of at least so many rows are matrix products by themselves
GRAM_RANKERS = 16  # on a CPU so many rankers or fewer run faster row by row


class Blocks(NamedTuple):
    """The blocks of a run."""

    rows: int  # a multiple of the batch size
    restricted: bool  # to the columns that their rows hold
    gram: bool  # swept by their Gram matrix


def choose_blocks(
    solver: Solver,
    examples: Examples,
    batch_size: int,
    wanted: int | None,
    order: np.ndarray | None,
    tile: int,
    platform: str,
    apart: bool = False,
) -> Blocks:
    """The blocks for a run; ``wanted`` rows, if not None, rounded up to whole batches.

    Rankers that count rounds ``apart``, each leaving out rows of its own, cannot share debts.
    """
    # With a kernel the products of a block's rows are among its values: they cost a gather.
    wide = platform != "cpu" or tile > GRAM_RANKERS
    gram = solver.gram and (wide or solver.gram_kernel is not None) and batch_size < GRAM_BATCH
    shared = not apart or solver.debt == "none"
    if examples.sparse and solver.lazy and shared and solver.gram_kernel is None:
        rows = batch_size
        # Only a Gram sweep gains by several rounds in a block; debts in unequal steps forbid it.
        if gram and wanted is not None:
            rows = -(-wanted // batch_size) * batch_size
        elif gram:
            rows = _cheapest(examples.values, batch_size, order, platform)
        return Blocks(rows, True, gram and rows > batch_size)
    if wanted is None:
        rounds = max(1, BLOCK_ROWS // batch_size)
        rounds = min(rounds, next_power_of_two(-(-examples.n // batch_size)))
    else:
        rounds = -(-wanted // batch_size)
    return Blocks(rounds * batch_size, False, gram)


def choose_lanes(
    solver: Solver,
    own: OwnRows,
    batch_size: int,
    wanted: int | None,
    lanes: int | None,
    width: int,
    itemsize: int,
    platform: str,
) -> tuple[Blocks, int]:
    """The blocks and the lanes of a tile for rankers with ``own`` rows of ``width`` coordinates.

    ``wanted`` rows and ``lanes``, if not None, are those of the run that is continued.
    """
    room = MOST_LANES
    if solver.kernel is not None:
        room = min(room, GRAM_BYTES // (width * width * itemsize))
    if lanes is None:
        lanes = lanes_of_tile(own.lengths, batch_size, width, itemsize, room, platform)
    if wanted is None:
        lane_bytes = lanes * width * itemsize
        rows = lane_rows(own.lengths, batch_size, BLOCK_ROWS, lane_bytes, platform)
    else:
        rows = -(-wanted // batch_size) * batch_size
    # No Gram matrix serves two lanes: on a CPU their products cost more than row by row saves.
    gram = solver.gram and (platform != "cpu" or solver.kernel is not None)
    return Blocks(rows, False, gram and rows > 1 and batch_size < GRAM_BATCH), lanes


def one_by_one(solver: Solver, examples: Examples, lanes: int | None) -> bool:
    """Whether rankers with rows of their own are trained one after another.

    ``lanes``, if not None, are those of a tile of the run that is continued.
    """
    lazy = examples.sparse and solver.lazy and solver.kernel is None
    return lazy and lanes in (None, 1)


def own_slabs(data: Data, blocks: Blocks, lanes: int, make: Callable[..., Slabs]) -> Slabs:
    """The slabs of rankers with rows of their own."""
    if blocks.restricted:
        return ranker_slabs(data, blocks.rows, make)
    kind = LaneSlabs if data.kernel is None else GramLanes
    shape = lane_shape(data.n, blocks.rows, lanes, data.width, data.examples.dtype.itemsize)
    return kind(data, shape, lanes * n_devices(data.mesh), blocks.gram)


def _cheapest(values: Csr, batch_size: int, order: np.ndarray | None, platform: str) -> int:
    """Rows of a block that cost least by the columns that blocks turn out to share."""
    costs = {}
    for rows in (batch_size, 16, 32, 64, 128):
        block = -(-rows // batch_size) * batch_size
        if block <= max(values.shape[0], batch_size):
            columns = float(sample_blocks(values, block, order)[:, 0].mean())
            costs[block] = _row_cost(columns, block, batch_size, platform)
    return min(costs, key=lambda block: (costs[block], block))


def _row_cost(columns: float, block: int, batch_size: int, platform: str) -> float:
    """Nanoseconds per row and ranker, as measured on two CPU cores with tiles of 512."""
    if platform != "cpu":
        return 1 / block  # there each step of a loop waits for the host: the fewer the better
    if block == batch_size:
        return 1.1 * columns / block
    return 1.2 * columns / block + 0.04 * columns + 8.0


def make_slabs(
    data: Data,
    like: Slabs | None = None,
    *,
    blocks: Blocks,
    solver: Solver,
    batch_size: int,
    tile: int,
) -> Slabs:
    """The slabs of some rows; of the sizes of ``like``, for the same programs, where they fit."""
    examples = data.examples
    if data.kernel is not None:
        return gram_slabs(data, blocks.rows, blocks.gram)
    if not blocks.restricted:
        shape = dense_shape(examples.n, data.width, examples.dtype.itemsize, blocks.rows)
        return DenseSlabs(data, shape if like is None else like.shape, blocks.gram)
    order = epoch_order(data.order, examples.n, data.words, 0, data.window)
    repeats = data.order == "uniform"
    sizes = row_shape(examples.values, blocks.rows, order, tile, repeats)
    parted = solver.debt == "steps" and batch_size > 1
    steps = partial(_host_rounds, solver) if parted else None
    if isinstance(like, RowSlabs):
        fits = all(map(operator.le, sizes.levels[-1], like.levels[-1]))
        sizes = RowShape(
            like.shape, max(like.entries, sizes.entries), like.levels if fits else sizes.levels
        )
    return RowSlabs(data, sizes.slab, sizes.entries, sizes.levels, steps)


def _host_rounds(solver: Solver, weight: np.ndarray) -> np.ndarray:
    """Rounds that batches with these weights (blocks, k) count."""
    return np.asarray(jax.vmap(lambda row: solver.rounds(row))(jnp.asarray(weight)))


def check_sparse(solver: Solver, targets: Targets) -> None:
    """Raise a ValueError if the solver cannot train on rows that leave out coordinates."""
    for prefix, part in solver.parts():
        if isinstance(part, Regularizer) and not part.separable:
            raise ValueError(
                f"{prefix.rstrip('.')} {type(part).__name__} couples the coordinates, which sparse "
                "rows leave out: make X dense, X.toarray(), or take a separable regularizer"
            )
    if targets.negatives is not None and solver.lazy and solver.debt != "none":
        raise ValueError(
            f"negatives must be None for {type(solver).__name__} with this regularizer on sparse "
            "rows (rankers would count rounds apart); AdaGradRDA takes it"
        )
