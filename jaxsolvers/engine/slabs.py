"""Slabs: a fixed number of blocks of rows, the unit that travels to the devices.

An epoch is a sequence of slabs of one shape (S blocks of B rows). Rows are gathered into them in
visiting order, a slab at a time, so that there is never a second copy of X; rows beyond n weigh
0. How the features of a slab are stored is the business of ``dense_slabs`` and ``row_slabs``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh

from jaxsolvers.csr import Csr
from jaxsolvers.engine.inputs import Examples
from jaxsolvers.engine.order import DRAW_STREAM, raw_bits
from jaxsolvers.engine.sharding import everywhere
from jaxsolvers.engine.targets import LabelSets
from jaxsolvers.members import Array, arrays

SLAB_BYTES = 1 << 24


@arrays
class Slab:
    """S blocks of B rows, of which those in ``segments`` are visited."""

    x: Any  # a layout with leading axes (S, B), or Rows
    gram: Array | None  # (S, B, B), once per slab for all tiles
    target: Any  # (S, B) int32 class codes or float values, or LabelSets
    weight: Array  # (S, B) float, 0 for padding
    index: Array  # (S, B) int32 position among the n examples, n for padding
    segments: Array  # (G, L + 1) int32: in each, blocks of level 0, then of level 1, ...
    span: Array  # (2,) int32, the first segment to visit and the one to stop before
    step: Array  # () int32, how far the counter moves in each round with a live row
    draw: Array  # (2,) uint32, key of the draws of this epoch


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
class Slabs:
    """The slabs of one data set. A subclass knows how features are stored."""

    examples: Examples
    target: np.ndarray | Csr  # (n,) int32 codes or float values; (n, K) sets of codes
    weight: np.ndarray  # (n,) float64
    shape: SlabShape
    intercept: bool
    mesh: Mesh
    words: np.ndarray  # raw words of the key
    most_labels: int  # of a block, rounded up; 0 unless targets are sets

    @property
    def width(self) -> int:
        """Columns the solver sees."""
        return self.examples.d + self.intercept

    def put(self, values: Any) -> Array:
        """The values on every device."""
        return jax.device_put(values, everywhere(self.mesh))

    def epoch(self, order: np.ndarray | None, number: int) -> Iterator[tuple[Slab, int]]:
        """Yield (slab, number of rows) in visiting order; None visits 0, 1, ..., n - 1.

        A slab whose pieces must be visited apart comes once for each, the rows with the last.
        """
        n = self.examples.n
        draw = self.put(raw_bits(self.words, number, 1, DRAW_STREAM).view(np.uint32))
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
        return min(start + self.shape.size, self.examples.n)

    def features(self, rows: np.ndarray, live: np.ndarray, contiguous: bool) -> Features:
        """The features of the rows; those not ``live`` are all zeros."""
        raise NotImplementedError

    def _slab(
        self, rows: np.ndarray, draw: Array, contiguous: bool
    ) -> tuple[Slab, list[tuple[int, int, int]]]:
        # A row of weight 0 is all zeros: whatever it held cannot overflow into its block.
        live = self.weight[rows] > 0
        x, gram, segments, pieces = self.features(rows, live, contiguous)
        slab = Slab(
            x=x,
            gram=gram,
            target=self._targets(rows),
            weight=self.put(self.filled(self.weight[rows], 0, self.examples.dtype)),
            index=self.put(self.filled(rows, self.examples.n, np.int32)),
            segments=self.put(segments),
            span=np.zeros(2, np.int32),  # type: ignore[arg-type]
            step=np.int32(1),  # type: ignore[arg-type]
            draw=draw,
        )
        return slab, pieces

    def filled(self, values: np.ndarray, fill: float, dtype: Any) -> np.ndarray:
        """One value per row as (S, B), the padding filled."""
        whole = np.full(self.shape.size, fill, dtype)
        whole[: len(values)] = values
        return whole.reshape(self.shape.blocks, self.shape.rows)

    def _targets(self, rows: np.ndarray) -> Any:
        if not isinstance(self.target, Csr):
            kind = np.int32 if self.target.dtype == np.int32 else self.examples.dtype
            return self.put(self.filled(self.target[rows], -1, kind))
        sets = LabelSets.of(self.target.take(rows), self.shape.blocks, self.shape.rows, self.most_labels)
        return jax.tree.map(self.put, sets)
