"""Slabs whose blocks are kernel rows: the values of each row with all n training rows.

Where the whole matrix (n, n) fits into a budget it is computed once, before the first epoch, and
every slab of every epoch, tile of rankers and chunk gathers from it. Where it does not, the rows of
a slab are computed when their turn comes, once for all rankers trained together.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.csr import Csr
from jaxsolvers.engine.dense_slabs import DenseSlabs, dense_shape
from jaxsolvers.engine.inputs import Examples
from jaxsolvers.engine.slabs import Data, Features, Slabs
from jaxsolvers.engine.stream import Stream
from jaxsolvers.features import Gram
from jaxsolvers.kernels import Columns, Kernel, as_kernel, dense_tiles, tile_rows
from jaxsolvers.members import Array
from jaxsolvers.protocol import Solver

GRAM_BYTES = 1 << 30  # of the matrix (n, n), at most, that is kept


@dataclasses.dataclass(frozen=True, eq=False)
class GramSlabs(Slabs):
    """Slabs of kernel rows."""

    rows: DenseSlabs  # of kernel values, or of the features that ``columns`` turns into them
    columns: Columns | None
    diagonal: Array  # (n,) k(x_i, x_i)
    gram: bool

    def features(self, rows: np.ndarray, live: np.ndarray, contiguous: bool) -> Features:
        count, n = len(rows), self.data.n
        # A user's function sees real rows only: those to fill up with, and dead ones, are masked.
        filled = np.full(self.shape.size, rows[-1])
        filled[:count] = rows
        whole = contiguous and count == self.shape.size
        values = self.rows.features(filled, np.ones(len(filled), bool), whole).x.values
        if self.columns is not None:
            values = self.columns.values(values.reshape(self.shape.size, -1))
            values = self.put(values.reshape(self.shape.blocks, self.shape.rows, n))
        keep = self.data.weight > 0
        index = self.put(self.filled(np.where(live, rows, n), n, np.int32))
        x = gram_layout(
            values,
            self.put(self.diagonal),
            index,
            None if keep.all() else self.put(keep),
            constant=self.data.intercept,
        )
        segments = np.array([[0, -(-count // self.shape.rows)]], np.int32)
        return Features(x, _grams(x) if self.gram else None, segments, [(0, 1, 1)])


def kernel_of(solver: Solver, examples: Examples) -> Kernel | None:
    """The kernel whose values stand for the rows, or None.

    Raises:
      ValueError: rows that no kernel, or not this one, can be computed of; the message names X.
    """
    if solver.gram_kernel is None:
        return None
    kernel = as_kernel(solver.gram_kernel)
    if isinstance(examples.values, Stream):
        raise ValueError(
            "X must be an array or a sparse matrix for a kernel, which is computed with all "
            "training rows; got a source"
        )
    if kernel.precomputed and examples.n != examples.d:
        raise ValueError(
            "X must be the square matrix (n, n) of the training rows' kernel values for "
            f"js.kernels.Precomputed, got shape {(examples.n, examples.d)}"
        )
    return kernel


def gram_slabs(data: Data, block: int, gram: bool) -> GramSlabs:
    """The slabs of a run with a kernel, of blocks of ``block`` rows."""
    kernel, examples, n = data.kernel, data.examples, data.examples.n
    shape = dense_shape(n, n, examples.dtype.itemsize, block)
    columns: Columns | None = None
    if kernel.precomputed:
        diagonal = _diagonal_of(examples)
    else:
        device = data.mesh.devices.flat[0]
        columns = Columns(kernel, examples.values, examples.dtype, device)
        if n * n * examples.dtype.itemsize <= GRAM_BYTES:
            matrix = _matrix(columns, examples)
            # A function's diagonal would cost calls, a kernel's own is exact.
            diagonal = columns.diagonal() if kernel.traceable else jnp.diagonal(matrix)
            examples, columns = Examples(matrix, examples.dtype), None
        else:
            diagonal = columns.diagonal()
    own = dataclasses.replace(data, examples=examples, intercept=False, kernel=None)
    return GramSlabs(data, shape, DenseSlabs(own, shape, False), columns, diagonal, gram)


def _matrix(columns: Columns, examples: Examples) -> Array:
    """The kernel values of all rows with all rows, (n, n), a tile of rows at a time."""
    matrix: Any = None
    size = tile_rows((examples.n, examples.d))
    for start, count, tile in dense_tiles(examples.values, examples.dtype, size):
        values = columns.values(tile, count)
        if count == examples.n:
            return values
        if matrix is None:
            matrix = jnp.zeros((examples.n, examples.n), values.dtype, device=values.sharding)
        matrix = _put_rows(matrix, values, np.int32(start))
    return matrix


def _rows_put(whole: Array, rows: Array, at: Array) -> Array:
    return jax.lax.dynamic_update_slice_in_dim(whole, rows, at, 0)


_put_rows = jax.jit(_rows_put, donate_argnums=0)


def _diagonal_of(examples: Examples) -> Array:
    values = examples.values
    if isinstance(values, Csr):
        row = np.repeat(np.arange(examples.n), values.lengths)
        on = values.indices == row
        diagonal = np.zeros(examples.n, examples.dtype)
        diagonal[row[on]] = values.data[on]
        return jnp.asarray(diagonal)
    return jnp.asarray(values.diagonal(), examples.dtype)


@partial(jax.jit, static_argnames="constant")
def gram_layout(values: Array, diagonal: Array, index: Array, keep: Any, *, constant: bool) -> Gram:
    """The rows as a layout; those of weight 0 are 0, as rows and as columns.

    With a constant feature of 1 beside the others every kernel value is 1 larger.
    """
    live = index < diagonal.shape[0]
    own = diagonal.at[index].get(mode="fill", fill_value=0)
    if constant:
        values, own = values + 1, jnp.where(live, own + 1, 0)
    mask = live[..., None] if keep is None else live[..., None] & keep[None, None, :]
    return Gram(jnp.where(mask, values, 0), own, index)


@jax.jit
def _grams(x: Gram) -> Array:
    def one(block: Gram) -> Array:
        return block.gram()

    return jax.vmap(one)(x)
