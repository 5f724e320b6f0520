"""Slabs in which every lane of a tile has rows of its own.

Arrays have an axis for the lanes after that of the blocks. A lane visits its rows in the order in
which it would if there were no others; the lanes of a tile go on until the longest one is
done, rows beyond a lane's own weigh 0. Rankers of like lengths therefore share a tile.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from jaxsolvers.engine.dense_slabs import SLAB_BYTES, DenseSlabs
from jaxsolvers.engine.order import DRAW_STREAM, epoch_order, raw_bits
from jaxsolvers.engine.sharding import AXIS
from jaxsolvers.engine.sizes import next_power_of_two
from jaxsolvers.engine.slabs import Slab, Slabs, SlabShape
from jaxsolvers.features import Dense, Layout
from jaxsolvers.members import Array

MOST_LANES = 512
LEAST_ROWS = 16  # of a block that the lanes of a tile must have room for
# What a round of a tile and a pass of one cost beside their lanes, in numbers of a lane: on a CPU
# as measured, elsewhere the launches of kernels, of which fewer are better whatever they hold.
ROUND_NUMBERS, TILE_NUMBERS = {"cpu": 1 << 9}, 1 << 19
# Of a block of all lanes: on a CPU it must stay in a cache.
BLOCK_BYTES = {"cpu": 1 << 22}


def lanes_of_tile(
    lengths: np.ndarray, batch_size: int, width: int, itemsize: int, most: int, platform: str
) -> int:
    """T for rankers of these numbers of rows, descending: what makes an epoch cost least.

    A round costs what its lanes do, dummies and those that are done among them.
    """
    n = len(lengths)
    rows = max(batch_size, LEAST_ROWS)
    room = max(1, min(most, SLAB_BYTES // (rows * width * itemsize), n))
    least = -(-n // room)
    best: tuple[float, int] = (np.inf, 0)
    for tiles in range(least, min(n, 4 * least + 16) + 1):
        size = -(-n // tiles)
        rounds = lengths[::size].sum()
        fixed = ROUND_NUMBERS.get(platform, 1 << 22)
        cost = float(rounds) * (size * width + fixed) + len(lengths[::size]) * TILE_NUMBERS
        best = min(best, (cost, -size))
    return -best[1]


def lane_rows(
    lengths: np.ndarray, batch_size: int, most: int, lane_bytes: int, platform: str
) -> int:
    """Rows of a block: some blocks per ranker, so that the last one wastes little.

    ``lane_bytes`` are those of a row of every lane.
    """
    batches = next_power_of_two(-(-int(lengths.mean()) // batch_size)) // 4
    room = BLOCK_BYTES.get(platform, SLAB_BYTES) // (lane_bytes * batch_size)
    fitting = min(most // batch_size, room)
    return batch_size * max(1, min(1 << max(fitting.bit_length() - 1, 0), batches))


def lane_shape(longest: int, block: int, lanes: int, width: int, itemsize: int) -> SlabShape:
    """A power of two of blocks: about SLAB_BYTES of all lanes, no more than the longest needs."""
    fitting = max(1, SLAB_BYTES // (lanes * block * width * itemsize))
    needed = next_power_of_two(-(-longest // block))
    return SlabShape(min(1 << (fitting.bit_length() - 1), needed), block)


@dataclasses.dataclass(frozen=True, eq=False)
class LaneSlabs(Slabs):
    """The slabs of the rankers start ... stop - 1, a lane each; the other lanes are dummies."""

    lanes: int  # of all devices
    gram: bool
    start: int = 0
    stop: int = 0

    def of(self, start: int, stop: int) -> LaneSlabs:
        return dataclasses.replace(self, start=start, stop=stop)

    @functools.cached_property
    def rows(self) -> np.ndarray:
        """The positions of each lane's rows among all, (lanes, L) int32, then n."""
        own, n = self.data.own, self.data.examples.n
        assert own is not None
        longest = int(own.lengths[self.start : self.stop].max())
        rows = np.full((self.lanes, longest), n, np.int32)
        for lane, ranker in enumerate(range(self.start, self.stop)):
            mine = own.of(ranker)
            rows[lane, : len(mine)] = mine
        return rows

    def put(self, values: Any) -> Array:
        """The values, lanes on the second axis, on the devices of the lanes."""
        return jax.device_put(values, NamedSharding(self.data.mesh, PartitionSpec(None, AXIS)))

    def epoch(self, number: int, survey: bool = False) -> Iterator[tuple[Slab, float]]:
        data, own, everywhere = self.data, self.data.own, super().put
        assert own is not None
        draw = everywhere(raw_bits(data.words, number, 1, DRAW_STREAM).view(np.uint32))
        lengths = own.lengths[self.start : self.stop].tolist()
        # Rankers of one length visit their rows in one order.
        orders = {
            n: np.arange(n) if order is None else order
            for n in set(lengths)
            for order in [epoch_order(data.order, n, data.words, number)]
        }
        longest = max(lengths)
        for start in range(0, longest, self.shape.size):
            stop = min(start + self.shape.size, longest)
            local = np.full((self.lanes, self.shape.size), -1, np.int32)
            for lane, length in enumerate(lengths):
                visited = orders[length][start:stop]
                local[lane, : len(visited)] = visited
            segments = np.array([[0, -(-(stop - start) // self.shape.rows)]], np.int32)
            slab = dataclasses.replace(
                self._slab_of(self._by_block(local)),
                segments=everywhere(segments),
                span=everywhere(np.array([0, 1], np.int32)),
                step=everywhere(np.int32(1)),
                draw=draw,
            )
            yield slab, int((local >= 0).sum()) / len(lengths)

    def _by_block(self, values: np.ndarray) -> np.ndarray:
        """(lanes, S B) as (S, lanes, B)."""
        lanes = values.reshape(self.lanes, self.shape.blocks, self.shape.rows)
        return np.ascontiguousarray(lanes.swapaxes(0, 1))

    def _slab_of(self, local: np.ndarray) -> Slab:
        """The slab of rows (S, lanes, B) of their lanes, -1 for none."""
        data, own = self.data, self.data.own
        assert own is not None
        lane = np.arange(self.lanes)[None, :, None]
        rows, real = self.rows[lane, np.maximum(local, 0)], local >= 0
        rows = np.where(real, rows, 0)
        first = np.zeros(self.lanes, np.int32)
        first[: self.stop - self.start] = own.pairs[self.start : self.stop, 0]
        target = np.where(own.codes[rows] == first[None, :, None], 1, -1)
        weight = np.where(real, self._weights(rows), 0)
        x = jax.tree.map(self.put, self._layout(rows, local, weight > 0))
        return Slab(
            x=x,
            gram=self.put(_grams(x)) if self.gram else None,
            target=self.put(target.astype(data.examples.dtype)),
            weight=self.put(weight.astype(data.examples.dtype)),
            index=self.put(np.where(real, local, data.n).astype(np.int32)),
            segments=None,
            span=None,
            step=None,
            draw=None,
        )

    def _layout(self, rows: np.ndarray, local: np.ndarray, live: np.ndarray) -> Any:
        """The features of the rows (S, lanes, B); those not ``live`` are all zeros."""
        gathered = self._gather.gathered(rows.ravel(), live.ravel(), False)
        return Dense(gathered.reshape(*rows.shape, self.data.width))

    @functools.cached_property
    def _gather(self) -> DenseSlabs:
        shape = SlabShape(self.shape.blocks, self.lanes * self.shape.rows)
        return DenseSlabs(self.data, shape, False)


@jax.jit
def _grams(x: Layout) -> Array:
    return jax.vmap(jax.vmap(_gram))(x)


def _gram(block: Layout) -> Array:
    return block.gram()
