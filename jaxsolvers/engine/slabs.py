"""Slabs: a fixed number of blocks of rows, the unit that travels to the devices.

An epoch is a sequence of slabs of one shape (S blocks of B rows). Rows are gathered into them in
visiting order, a slab at a time, so that there is never a second copy of X; rows beyond n weigh
0. How the features of a slab are stored is the business of ``dense_slabs`` and ``row_slabs``.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh

from jaxsolvers.csr import Csr
from jaxsolvers.engine.inputs import Examples
from jaxsolvers.engine.order import DRAW_STREAM, epoch_order, raw_bits
from jaxsolvers.engine.own_rows import OwnRows
from jaxsolvers.engine.sharding import everywhere
from jaxsolvers.engine.sizes import bucket, largest_block
from jaxsolvers.engine.targets import LabelSets
from jaxsolvers.members import Array, arrays


@arrays
class Slab:
    """S blocks of B rows, of which those in ``segments`` are visited."""

    x: Any  # a layout with leading axes (S, B), or Rows
    gram: Array | None  # (S, B, B), once per slab for all tiles
    target: Any  # (S, B) int32 class codes or float values, or LabelSets
    weight: Array  # (S, B) float, 0 for padding
    index: Array  # (S, B) int32 position among the n examples, n for padding
    segments: Any  # (G, L + 1) int32: in each, blocks of level 0, then of level 1, ...
    span: Any  # (2,) int32, the first segment to visit and the one to stop before
    step: Any  # () int32, how far the counter moves in each round with a live row
    draw: Any  # (2,) uint32, key of the draws of this epoch
    fold: Any = None  # (S, B) int32, the fold of each row, -1 for padding; None without folds


@dataclasses.dataclass(frozen=True)
class SlabShape:
    """Blocks per slab and rows per block."""

    blocks: int
    rows: int

    @property
    def size(self) -> int:
        return self.blocks * self.rows


class Features(NamedTuple):
    """The features of a slab, and how its blocks are to be visited."""

    x: Any
    gram: Array | None
    segments: np.ndarray
    pieces: list[tuple[int, int, int]]  # (first segment, last segment + 1, step), one by one


@dataclasses.dataclass(frozen=True, eq=False)
class Data:
    """What the slabs of a run are made of."""

    examples: Examples
    target: np.ndarray | Csr  # (n,) int32 codes or float values; (n, K) sets of codes
    weight: np.ndarray  # (n,) float64
    intercept: bool
    mesh: Mesh
    words: np.ndarray  # raw words of the key
    order: str
    n: int  # rows of the whole run, of which these are the window-th part, from row `first` on
    first: int = 0
    window: int = 0
    own: OwnRows | None = None  # the rows of each ranker, n of them at most; all by default
    kernel: Any = None  # its values with the n rows are what the solver sees, not the columns of X
    fold: np.ndarray | None = None  # (n,) int32

    def part(self, ranker: int) -> Data:
        """The own rows of a ranker by themselves."""
        assert self.own is not None
        rows = self.own.of(ranker)
        return dataclasses.replace(
            self,
            examples=self.examples.take(rows),
            target=self.own.signs(ranker, rows),
            weight=self.weight[rows],
            own=None,
        )

    @property
    def width(self) -> int:
        """Coordinates the solver sees."""
        return self.examples.d + self.intercept if self.kernel is None else self.n


@dataclasses.dataclass(frozen=True, eq=False)
class Slabs:
    """The slabs of one data set. A subclass knows how features are stored."""

    data: Data
    shape: SlabShape

    @functools.cached_property
    def most_labels(self) -> int:
        """Labels of a block at most, rounded up."""
        sets = self.data.target
        assert isinstance(sets, Csr)
        return bucket(largest_block(sets.lengths, self.shape.rows, self.data.order == "uniform"))

    def of(self, start: int, stop: int) -> Slabs:
        """The slabs that the rankers start ... stop - 1 see."""
        return self

    def put(self, values: Any) -> Array:
        """The values on every device."""
        return jax.device_put(values, everywhere(self.data.mesh))

    def epoch(self, number: int, survey: bool = False) -> Iterator[tuple[Slab, float]]:
        """Yield (slab, rows per ranker) in the epoch's order; in a survey each row comes once.

        A slab whose pieces must be visited apart comes once for each, the rows with the last.
        """
        data, n = self.data, self.data.examples.n
        draw = self.put(raw_bits(data.words, number, 1, DRAW_STREAM).view(np.uint32))
        kind = "cyclic" if survey and data.order == "uniform" else data.order
        order = epoch_order(kind, n, data.words, number, data.window)
        start = 0
        while start < n:
            stop = self.cut(start, order)
            rows = np.arange(start, stop) if order is None else order[start:stop]
            slab, pieces = self._slab(rows, draw, order is None)
            for i, (first, last, step) in enumerate(pieces):
                span = self.put(np.array([first, last], np.int32))
                piece = dataclasses.replace(slab, span=span, step=self.put(np.int32(step)))
                yield piece, (stop - start) * (i == len(pieces) - 1)
            start = stop

    def cut(self, start: int, order: np.ndarray | None) -> int:
        """Where the slab that starts at position ``start`` of the order ends."""
        return min(start + self.shape.size, self.data.examples.n)

    def features(self, rows: np.ndarray, live: np.ndarray, contiguous: bool) -> Features:
        """The features of the rows; those not ``live`` are all zeros."""
        raise NotImplementedError

    def _slab(
        self, rows: np.ndarray, draw: Array, contiguous: bool
    ) -> tuple[Slab, list[tuple[int, int, int]]]:
        # A row of weight 0 is all zeros: whatever it held cannot overflow into its block.
        live = self.data.weight[rows] > 0
        x, gram, segments, pieces = self.features(rows, live, contiguous)
        slab = Slab(
            x=x,
            gram=gram,
            target=self._targets(rows),
            weight=self.put(self.filled(self._weights(rows), 0, self.data.examples.dtype)),
            index=self.put(self.filled(self.data.first + rows, self.data.n, np.int32)),
            segments=self.put(segments),
            span=np.zeros(2, np.int32),
            step=np.int32(1),
            draw=draw,
            fold=self._folds(rows),
        )
        return slab, pieces

    def filled(self, values: np.ndarray, fill: float, dtype: Any) -> np.ndarray:
        """One value per row as (S, B), the padding filled."""
        whole = np.full(self.shape.size, fill, dtype)
        whole[: len(values)] = values
        return whole.reshape(self.shape.blocks, self.shape.rows)

    def _weights(self, rows: np.ndarray) -> np.ndarray:
        """The rows' weights, those above 0 still above it in the working dtype."""
        weight = self.data.weight[rows]
        least = np.finfo(self.data.examples.dtype).smallest_normal
        return np.where(weight > 0, np.maximum(weight, least), 0)

    def _folds(self, rows: np.ndarray) -> Any:
        if self.data.fold is None:
            return None
        return self.put(self.filled(self.data.fold[rows], -1, np.int32))

    def _targets(self, rows: np.ndarray) -> Any:
        if not isinstance(self.data.target, Csr):
            kind = np.int32 if self.data.target.dtype == np.int32 else self.data.examples.dtype
            return self.put(self.filled(self.data.target[rows], -1, kind))
        sets = LabelSets.of(
            self.data.target.take(rows), self.shape.blocks, self.shape.rows, self.most_labels
        )
        return jax.tree.map(self.put, sets)
