"""Slabs whose lanes hold kernel rows: the values of a row with the rows of its own ranker.

The matrices of a tile's rankers are computed before its first epoch. Where even one of them is
beyond the budget, the rows of a slab are computed when their turn comes.
"""

from __future__ import annotations

import dataclasses
import functools
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from jaxsolvers.csr import Csr
from jaxsolvers.engine.gram_slabs import GRAM_BYTES, gram_layout
from jaxsolvers.engine.inputs import Examples
from jaxsolvers.engine.lane_slabs import LaneSlabs
from jaxsolvers.engine.sharding import AXIS
from jaxsolvers.features import Gram
from jaxsolvers.kernels import Columns, Kernel, dense_tiles, tile_rows
from jaxsolvers.members import Array


class Side:
    """The kernel values of one ranker's rows with each other, on the host, as asked for."""

    def __init__(self, kernel: Kernel, examples: Examples, rows: np.ndarray, device: Any) -> None:
        self.rows, self._examples = rows, examples
        self._columns: Columns | None = None
        if not kernel.precomputed:
            own = examples.take(rows).values
            self._columns = Columns(kernel, own, examples.dtype, device)

    def values(self, at: np.ndarray) -> np.ndarray:
        """Those of some of the rows with all, (len(at), rows)."""
        dtype, some = self._examples.dtype, self._examples.take(self.rows[at]).values
        if self._columns is None:
            dense = some.dense(dtype) if isinstance(some, Csr) else np.asarray(some, dtype)
            return dense[:, self.rows]
        tiles = dense_tiles(some, dtype, tile_rows(some.shape))
        pieces = [np.asarray(self._columns.values(tile, count)) for _, count, tile in tiles]
        return np.concatenate(pieces)

    def diagonal(self, matrix: np.ndarray | None) -> np.ndarray:
        """Those of each row with itself, (rows,); ``matrix`` holds all values, if they are kept."""
        # A function's diagonal would cost calls, a kernel's own is exact.
        traceable = self._columns is not None and self._columns.kernel.traceable
        if matrix is not None and not traceable:
            return np.diagonal(matrix)
        if self._columns is not None:
            return np.asarray(self._columns.diagonal())
        return np.concatenate([self.values(np.array([i]))[:, i] for i in range(len(self.rows))])


@dataclasses.dataclass(frozen=True, eq=False)
class GramLanes(LaneSlabs):
    """Slabs of kernel rows, a ranker per lane."""

    def _layout(self, rows: np.ndarray, local: np.ndarray, live: np.ndarray) -> Gram:
        index = self.put(np.where(live, local, self.data.n).astype(np.int32))
        if self._matrices is None:
            values = self.put(self._computed(local))
        else:
            values = self.put(_taken(self._matrices, index))
        return _layouts(
            values, self._diagonals, index, self._weighted, constant=self.data.intercept
        )

    @property
    def _kept(self) -> bool:
        n = self.data.n
        return n * n * self.data.examples.dtype.itemsize <= GRAM_BYTES

    @functools.cached_property
    def _weighted(self) -> Array:
        """Which of a lane's rows weigh something, (lanes, n) bool."""
        weighted = np.zeros((self.lanes, self.data.n), bool)
        weighted[:, : self.rows.shape[1]] = np.append(self.data.weight, 0)[self.rows] > 0
        return self._by_lane(weighted)

    @functools.cached_property
    def _sides(self) -> list[Side]:
        data, own = self.data, self.data.own
        assert own is not None
        device = data.mesh.devices.flat[0]
        sides = []
        for ranker in range(self.start, self.stop):
            rows = own.of(ranker)
            if data.kernel.precomputed or data.kernel.traceable:
                # Copies of the last row, for a few programs; a user's function sees none of them.
                rows = np.pad(rows, (0, data.n - len(rows)), mode="edge")
            sides.append(Side(data.kernel, data.examples, rows, device))
        return sides

    @functools.cached_property
    def _matrices(self) -> Array | None:
        """The kernel values of each lane's rows, (lanes, n, n)."""
        if not self._kept:
            return None
        n = self.data.n
        matrices = np.zeros((self.lanes, n, n), self.data.examples.dtype)
        for matrix, side in zip(matrices, self._sides, strict=False):
            count = len(side.rows)
            matrix[:count, :count] = side.values(np.arange(count))
        return self._by_lane(matrices)

    @functools.cached_property
    def _diagonals(self) -> Array:
        """The kernel values of each lane's rows with themselves, (lanes, n)."""
        diagonals = np.zeros((self.lanes, self.data.n), self.data.examples.dtype)
        for lane, side in enumerate(self._sides):
            count = len(side.rows)
            matrix = None if self._matrices is None else np.asarray(self._matrices[lane])
            diagonals[lane, :count] = side.diagonal(matrix)[:count]
        return self._by_lane(diagonals)

    def _computed(self, local: np.ndarray) -> np.ndarray:
        """The kernel values of the rows (S, lanes, B), of -1 those of any."""
        values = np.zeros((*local.shape, self.data.n), self.data.examples.dtype)
        for lane, side in enumerate(self._sides):
            at = np.where(local[:, lane] >= 0, local[:, lane], 0)
            found = side.values(at.ravel())
            values[:, lane, :, : len(side.rows)] = found.reshape(*at.shape, -1)
        return values

    def _by_lane(self, values: Any) -> Array:
        return jax.device_put(values, NamedSharding(self.data.mesh, PartitionSpec(AXIS)))


@partial(jax.jit, static_argnames="constant")
def _layouts(values: Array, diagonals: Array, index: Array, keep: Array, *, constant: bool) -> Gram:
    of_lane = partial(gram_layout, constant=constant)
    return jax.vmap(of_lane, in_axes=(1, 0, 1, 0), out_axes=1)(values, diagonals, index, keep)


@jax.jit
def _taken(matrices: Array, index: Array) -> Array:
    """The rows ``index`` (S, lanes, B) of the matrices (lanes, n, n)."""

    def of_lane(matrix: Array, index: Array) -> Array:
        return jnp.take(matrix, index, axis=0, mode="fill", fill_value=0)

    return jax.vmap(of_lane, in_axes=(0, 1), out_axes=1)(matrices, index)
