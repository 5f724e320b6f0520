"""Slabs of sparse rows: flat (column, value) pairs, and the active columns of each block.

Whatever the rows' lengths, a slab holds them one after another. A program however works on blocks
of one width: blocks are sorted into a few *levels* of width, and visited in *segments*, a run of
level 0, then of level 1, ..., so that their order stays what it was and few are padded much.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxsolvers.csr import Csr
from jaxsolvers.engine.sizes import bucket, extended, largest_block
from jaxsolvers.engine.slabs import Features, Slabs, SlabShape
from jaxsolvers.features import Rows

SLAB_ENTRIES = 1 << 21
MOST_LEVELS = 3
SAMPLE = 64  # blocks looked at to choose the levels
COLUMN_COST, LOOP_COST = 1.5, 1500.0  # ns: a column of a block per ranker; a loop of a segment


class Level(NamedTuple):
    """What a block of this level holds at most."""

    columns: int
    entries: int


class RowShape(NamedTuple):
    """The sizes of a run's slabs."""

    slab: SlabShape
    entries: int  # of a slab
    levels: tuple[Level, ...]  # ascending; the last one takes any block


def row_shape(
    values: Csr, block: int, order: np.ndarray | None, n_rankers: int, repeats: bool = False
) -> RowShape:
    """Sizes for blocks of ``block`` rows visited in an order like ``order``.

    ``repeats`` says whether a row may be visited twice in a block.
    """
    n, lengths = values.shape[0], values.lengths
    most = largest_block(lengths, block, repeats)
    total = int(values.indptr[-1])
    entries = bucket(max(most, min(total, SLAB_ENTRIES)))
    rows = min(n, max(block, SLAB_ENTRIES * n // max(total, 1)))
    blocks = bucket(-(-rows // block)) if n > 8 * block else -(-n // block)
    largest = Level(bucket(min(most, values.shape[1])), bucket(most))
    sample = sample_blocks(values, block, order)
    return RowShape(SlabShape(blocks, block), entries, _levels(sample, largest, n_rankers))


def sample_blocks(values: Csr, block: int, order: np.ndarray | None) -> np.ndarray:
    """(active columns, entries) of a few of the blocks, (blocks, 2)."""
    n = values.shape[0]
    if block == 1:
        lengths = values.lengths if n <= 1 << 16 else values.lengths[:: n >> 16]
        return np.stack([lengths, lengths], axis=1)
    count = -(-n // block)
    chosen = np.unique(np.linspace(0, count - 1, min(count, SAMPLE)).astype(int))
    found = []
    for b in chosen:
        at = slice(b * block, min((b + 1) * block, n))
        rows = values.take(at if order is None else order[at])
        found.append((len(np.unique(rows.indices)), len(rows.indices)))
    return np.array(found)


def _levels(sample: np.ndarray, largest: Level, n_rankers: int) -> tuple[Level, ...]:
    """The levels of least expected cost."""
    spread = 1.1 if len(sample) <= SAMPLE else 1.0  # a sample's largest is not the largest
    distinct, of_block = np.unique(sample[:, 0], return_inverse=True)
    sizes = np.array([bucket(int(spread * width)) for width in distinct])
    widths = np.minimum(sizes, largest.columns)[of_block]
    candidates = [w for w in np.unique(widths).tolist() if w < largest.columns][-12:]
    best: tuple[float, tuple[int, ...]] = (np.inf, ())
    for count in range(min(MOST_LEVELS, len(candidates) + 1)):
        for chosen in itertools.combinations(candidates, count):
            sizes = np.array([*chosen, largest.columns])
            share = np.bincount(np.searchsorted(sizes, widths), minlength=len(sizes)) / len(widths)
            # A segment ends where a block is of a lower level than the one before it.
            falls = float(np.sum(share * (np.cumsum(share) - share)))
            cost = COLUMN_COST * n_rankers * float(share @ sizes)
            cost += LOOP_COST * falls * (len(sizes) + 1)
            best = min(best, (cost, chosen))
    levels = []
    for width in best[1]:
        entries = sample[widths <= width, 1].max()
        levels.append(Level(width, min(bucket(int(spread * entries)), largest.entries)))
    return (*levels, largest)


@dataclasses.dataclass(frozen=True, eq=False)
class RowSlabs(Slabs):
    """Slabs whose blocks hold the columns that their rows do."""

    entries: int
    levels: tuple[Level, ...]
    steps: Any  # weights (blocks, B) -> rounds, where blocks of unequal rounds part a slab

    def cut(self, start: int, order: np.ndarray | None) -> int:
        n, block = self.data.examples.n, self.shape.rows
        stop = min(start + self.shape.size, n)
        rows = np.arange(start, stop) if order is None else order[start:stop]
        indptr = self.data.examples.values.indptr
        filled = np.cumsum(indptr[rows + 1] - indptr[rows])
        if filled[-1] <= self.entries:
            return stop
        fitting = int(np.searchsorted(filled, self.entries, side="right"))
        return start + max(1, fitting // block) * block

    def features(self, rows: np.ndarray, live: np.ndarray, contiguous: bool) -> Features:
        count, (blocks, size) = len(rows), dataclasses.astuple(self.shape)
        at = slice(int(rows[0]), int(rows[0]) + count) if contiguous and live.all() else rows[live]
        own = self.data.examples.values.take(at)
        lengths = np.zeros(blocks * size, np.int64)
        lengths[np.flatnonzero(live)] = own.lengths
        ends = np.concatenate([[0], np.cumsum(lengths)])
        starts = ends[::size]
        columns, column_starts, places = own.indices, starts, None
        of_row = None
        if size > 1:
            of_row = np.repeat(np.arange(blocks * size), lengths)
            columns, column_starts, places = _active(own, of_row // size, blocks)
        n_blocks = -(-count // size)
        active, entries = np.diff(column_starts)[:n_blocks], np.diff(starts)[:n_blocks]
        step = self._steps(rows, n_blocks)
        several = len(self.levels) > 1 or self.steps is not None
        table = np.zeros((blocks if several else 1, len(self.levels) + 1), np.int32)
        pieces = _fill_segments(table, self._level(active, entries), step)
        room = self.levels[-1]
        capacity = self.entries + room.entries
        constant = None
        if self.data.intercept:
            constant = self.filled(live.astype(float), 0, self.data.examples.dtype)
        x = Rows(
            columns=extended(columns, self.entries + room.columns, np.int32),
            column_starts=column_starts.astype(np.int32),
            values=extended(own.data, capacity, self.data.examples.dtype),
            places=None if places is None else extended(places, capacity, np.int32),
            rows=None if of_row is None else extended(of_row % size, capacity, np.int32),
            starts=starts.astype(np.int32),
            live=constant,
            n_columns=self.data.width,
            n_rows=size,
            levels=self.levels,
        )
        return Features(jax.tree.map(self.put, x), None, table, pieces)

    def _level(self, active: np.ndarray, entries: np.ndarray) -> np.ndarray:
        columns, most = np.array(self.levels).T
        level = np.maximum(np.searchsorted(columns, active), np.searchsorted(most, entries))
        assert level.max() < len(self.levels), "a block beyond the largest level"
        return level

    def _steps(self, rows: np.ndarray, n_blocks: int) -> np.ndarray:
        """Rounds of each block's batches: 1, or where they must be equal their number."""
        if self.steps is None:
            return np.ones(n_blocks, int)
        weight = np.zeros(n_blocks * self.shape.rows)
        weight[: len(rows)] = self.data.weight[rows] > 0  # only that counts
        return np.asarray(self.steps(weight.reshape(n_blocks, -1)))


def _active(own: Csr, block: np.ndarray, blocks: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The active columns of each block, where each block's start, and the entries' places."""
    d = own.shape[1]
    found, place = np.unique(block * d + own.indices, return_inverse=True)
    starts = np.searchsorted(found, d * np.arange(blocks + 1))
    return found % d, starts, place - starts[block]


def _fill_segments(
    table: np.ndarray, level: np.ndarray, step: np.ndarray
) -> list[tuple[int, int, int]]:
    """Write the segments of blocks with these levels and steps; returns the pieces."""
    n, n_levels = len(level), table.shape[1] - 1
    # A block without a live row (step 0) is a round for nobody: it goes with the one before it.
    real = np.flatnonzero(step > 0)
    if len(real):
        step = step[real[np.maximum(np.searchsorted(real, np.arange(n), side="right") - 1, 0)]]
    parts = np.flatnonzero(step[1:] != step[:-1]) + 1
    new = np.zeros(n, bool)
    new[1:] = level[1:] < level[:-1]
    new[parts] = new[0] = True
    firsts, segment = np.flatnonzero(new), np.cumsum(new) - 1
    counts = np.zeros((len(firsts), n_levels), int)
    np.add.at(counts, (segment, level), 1)
    table[: len(firsts), 0] = firsts
    table[: len(firsts), 1:] = firsts[:, None] + np.cumsum(counts, axis=1)
    edges = [0, *segment[parts].tolist(), len(firsts)]
    steps = np.maximum(step[[0, *parts]], 1).tolist()
    return list(zip(edges[:-1], edges[1:], steps, strict=True))
