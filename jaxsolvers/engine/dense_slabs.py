"""Slabs with all columns: of dense rows, on the host or on a device, and of sparse ones.

Sparse rows come here where a solver cannot leave out what a row does not touch: a slab at a time
they are made dense.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.csr import Csr
from jaxsolvers.engine.sizes import next_power_of_two
from jaxsolvers.engine.slabs import Features, Slabs, SlabShape
from jaxsolvers.features import Dense
from jaxsolvers.members import Array

SLAB_BYTES = 1 << 24


def dense_shape(n: int, width: int, itemsize: int, block: int) -> SlabShape:
    """A power of two of blocks: about SLAB_BYTES of features, no more than n needs."""
    fitting = max(1, SLAB_BYTES // (block * width * itemsize))
    needed = -(-n // block)
    return SlabShape(min(1 << (fitting.bit_length() - 1), next_power_of_two(needed)), block)


@dataclasses.dataclass(frozen=True, eq=False)
class DenseSlabs(Slabs):
    """Slabs whose blocks hold every column."""

    gram: bool

    def features(self, rows: np.ndarray, live: np.ndarray, contiguous: bool) -> Features:
        x = self.put(self.gathered(rows, live, contiguous))
        n_blocks = -(-len(rows) // self.shape.rows)
        segments = np.array([[0, n_blocks]], np.int32)
        return Features(Dense(x), _grams(x) if self.gram else None, segments, [(0, 1, 1)])

    def gathered(self, rows: np.ndarray, live: np.ndarray, contiguous: bool) -> Any:
        """The rows as blocks (S, B, d), those not ``live`` all zeros, where X lies."""
        if isinstance(self.data.examples.values, jax.Array):
            return self._on_device(rows, live, contiguous)
        return self._on_host(rows, live, contiguous)

    def _on_host(self, rows: np.ndarray, live: np.ndarray, contiguous: bool) -> np.ndarray:
        # A new buffer each time: a device may go on reading the previous one.
        d, count = self.data.examples.d, len(live)
        at: Any = slice(int(rows[0]), int(rows[0]) + count) if contiguous else rows
        values = self.data.examples.values
        buffer = np.empty((self.shape.size, self.data.width), self.data.examples.dtype)
        if isinstance(values, Csr):
            buffer[:count, :d] = values.take(at).dense(self.data.examples.dtype)
        else:
            buffer[:count, :d] = values[at]
        buffer[:count, d:] = 1
        buffer[count:] = 0
        if not live.all():
            buffer[:count][~live] = 0
        return buffer.reshape(self.shape.blocks, self.shape.rows, self.data.width)

    def _on_device(self, rows: np.ndarray, live: np.ndarray, contiguous: bool) -> Array:
        values, size = self.data.examples.values, self.shape.size
        form = (self.shape, self.data.intercept, self.data.examples.dtype)
        if contiguous and len(rows) == size and live.all():
            return _slice(values, np.int32(rows[0]), form=form)
        index = np.full(size, self.data.examples.n, np.int32)
        index[: len(rows)] = np.where(live, rows, self.data.examples.n)
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
