"""Slabs: a fixed number of blocks of rows, the unit that travels to the devices.

An epoch is a sequence of slabs of one shape (S blocks of B rows). Rows are gathered into them in
visiting order, a slab at a time, so that there is never a second copy of X; rows beyond n weigh
0. A device-resident X is gathered on its device.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from jaxsolvers.engine.inputs import Examples
from jaxsolvers.engine.sharding import everywhere
from jaxsolvers.features import Dense
from jaxsolvers.members import Array, arrays

SLAB_BYTES = 1 << 24


@arrays
class Slab:
    """S blocks of B rows; ``n_blocks`` of them hold rows."""

    x: Any  # a layout with leading axes (S, B)
    gram: Array | None  # (S, B, B), once per slab for all tiles
    target: Array  # (S, B) int32 class codes or float values
    weight: Array  # (S, B) float, 0 for padding
    index: Array  # (S, B) int32 position among the n examples, n for padding
    n_blocks: Array  # () int32


@dataclasses.dataclass(frozen=True)
class SlabShape:
    """Blocks per slab and rows per block."""

    blocks: int
    rows: int

    @property
    def size(self) -> int:
        return self.blocks * self.rows


def slab_shape(n: int, width: int, itemsize: int, block: int) -> SlabShape:
    """A power of two of blocks: about SLAB_BYTES of features, no more than n needs."""
    fitting = max(1, SLAB_BYTES // (block * width * itemsize))
    needed = -(-n // block)
    return SlabShape(min(1 << (fitting.bit_length() - 1), next_power_of_two(needed)), block)


def next_power_of_two(n: int) -> int:
    """The smallest power of two >= n."""
    return 1 << (n - 1).bit_length()


@dataclasses.dataclass(frozen=True, eq=False)
class Slabs:
    """The slabs of one data set."""

    examples: Examples
    target: np.ndarray  # (n,) int32 codes or float values
    weight: np.ndarray  # (n,) float64
    shape: SlabShape
    intercept: bool
    gram: bool
    mesh: Mesh

    @property
    def width(self) -> int:
        """Columns the solver sees."""
        return self.examples.d + self.intercept

    def epoch(self, order: np.ndarray | None) -> Iterator[tuple[Slab, int]]:
        """Yield (slab, number of rows) in visiting order; None visits 0, 1, ..., n - 1."""
        n = self.examples.n
        for start in range(0, n, self.shape.size):
            stop = min(start + self.shape.size, n)
            yield self._slab(start, stop, order), stop - start

    def _slab(self, start: int, stop: int, order: np.ndarray | None) -> Slab:
        rows = np.arange(start, stop) if order is None else order[start:stop]
        count = stop - start
        grid = (self.shape.blocks, self.shape.rows)

        def filled(values: np.ndarray, fill: float, dtype: Any) -> np.ndarray:
            whole = np.full(self.shape.size, fill, dtype)
            whole[:count] = values
            return whole.reshape(grid)

        # A row of weight 0 is all zeros: whatever it held cannot overflow into its block.
        live = self.weight[rows] > 0
        if isinstance(self.examples.values, jax.Array):
            gathered: Any = self._on_device(start, rows, live, order is None)
        else:
            gathered = self._on_host(live, slice(start, stop) if order is None else rows)
        target_dtype = np.int32 if self.target.dtype == np.int32 else self.examples.dtype
        put = partial(jax.device_put, device=everywhere(self.mesh))
        x = put(gathered)
        return Slab(
            x=Dense(x),
            gram=_grams(x) if self.gram else None,
            target=put(filled(self.target[rows], -1, target_dtype)),
            weight=put(filled(self.weight[rows], 0, self.examples.dtype)),
            index=put(filled(rows, self.examples.n, np.int32)),
            n_blocks=put(np.int32(-(-count // self.shape.rows))),
        )

    def _on_host(self, live: np.ndarray, at: Any) -> np.ndarray:
        # A new buffer each time: a device may go on reading the previous one.
        d, count = self.examples.d, len(live)
        buffer = np.empty((self.shape.size, self.width), self.examples.dtype)
        buffer[:count, :d] = self.examples.values[at]
        buffer[:count, d:] = 1
        buffer[count:] = 0
        if not live.all():
            buffer[:count][~live] = 0
        return buffer.reshape(self.shape.blocks, self.shape.rows, self.width)

    def _on_device(self, start: int, rows: np.ndarray, live: np.ndarray, contiguous: bool) -> Array:
        values, size = self.examples.values, self.shape.size
        form = (self.shape, self.intercept, self.examples.dtype)
        if contiguous and len(rows) == size and live.all():
            return _slice(values, np.int32(start), form=form)
        index = np.full(size, self.examples.n, np.int32)
        index[: len(rows)] = np.where(live, rows, self.examples.n)
        return _gather(values, index, form=form)


Form = tuple[SlabShape, bool, np.dtype]


@partial(jax.jit, static_argnames="form")
def _slice(values: Array, start: Array, *, form: Form) -> Array:
    rows = jax.lax.dynamic_slice_in_dim(values, start, form[0].size)
    return _shaped(rows, jnp.ones((), bool), form)


@partial(jax.jit, static_argnames="form")
def _gather(values: Array, index: Array, *, form: Form) -> Array:
    rows = values.at[index].get(mode="fill", fill_value=0)
    return _shaped(rows, (index < values.shape[0])[:, None], form)


def _shaped(rows: Array, live: Array, form: Form) -> Array:
    shape, intercept, dtype = form
    rows = rows.astype(dtype)
    if intercept:
        constant = jnp.broadcast_to(live.astype(dtype), (rows.shape[0], 1))
        rows = jnp.concatenate([rows, constant], axis=1)
    return rows.reshape(shape.blocks, shape.rows, rows.shape[1])


@jax.jit
def _grams(x: Array) -> Array:
    return jax.vmap(lambda block: Dense(block).gram())(x)
