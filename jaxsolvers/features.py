"""Layouts: how the rows of a block are stored. The only file that knows.

Solvers see rows through the few verbs of :class:`Layout`; nothing else gathers, scatters or
multiplies features. ``Dense`` and ``Gram`` are layouts. ``Rows`` holds the sparse blocks of a
slab; a block of it is its active columns and a ``Dense`` over these, so that an ordinary dense
step runs on the columns that ``restrict`` takes from a state and ``merge`` puts back.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol, Self

import jax
import jax.numpy as jnp
from jax import lax

from jaxsolvers.members import Array, arrays

# A TPU's default product is bfloat16 and recent GPUs' is tf32: one ranker alone would differ
# from the same ranker in a batch, and scores would be off by 1e-3.
PRECISION = jax.lax.Precision.HIGHEST


def product(a: Array, b: Array) -> Array:
    """Matrix product at full accuracy of the working dtype."""
    return jnp.matmul(a, b, precision=PRECISION)


def cut(vector: Array, size: int) -> Array:
    """(..., d) in blocks of ``size`` entries, (..., n_blocks, size), the last padded with 0."""
    n_blocks = -(-vector.shape[-1] // size)
    pad = n_blocks * size - vector.shape[-1]
    padded = jnp.pad(vector, [(0, 0)] * (vector.ndim - 1) + [(0, pad)]) if pad else vector
    return padded.reshape(*vector.shape[:-1], n_blocks, size)


def joined(blocks: Array, length: int) -> Array:
    """What :func:`cut` cut: (..., n_blocks, size) as (..., length) again."""
    return blocks.reshape(*blocks.shape[:-2], -1)[..., :length]


class Layout(Protocol):
    """B rows in some storage; the vector has one entry per *coordinate*.

    Coordinates are features (``Dense``, ``Rows``: d of them) or training examples
    (``Gram``: n of them, the vector then holds the kernel expansion's coefficients).
    """

    @property
    def n_features(self) -> int:
        """Number of coordinates, static."""

    def scores(self, vector: Array) -> Array:
        """<vector, x_i> for each row: (d,) -> (B,), joint weights (K, d) -> (B, K)."""

    def pull_back(self, coefficients: Array) -> Array:
        """sum_i c_i x_i: (B,) -> (d,), joint coefficients (B, K) -> (K, d)."""

    def pull_back_squares(self, coefficients: Array) -> Array:
        """sum_i (c_i x_i)^2 coordinate by coordinate, shapes as ``pull_back``."""

    def pull_back_outer(self, coefficients: Array, size: int) -> Array:
        """sum_i (c_i x_i)(c_i x_i)' within blocks of ``size`` coordinates, the last one padded.

        (B,) -> (n_blocks, size, size), joint coefficients (B, K) -> (K, n_blocks, size, size).
        """

    def scales(self) -> Array:
        """max_j |x_ij|, (B,): c_i times it overflows when a square of (c_i x_i) does."""

    def square_norms(self) -> Array:
        """||x_i||^2, (B,)."""

    def gram(self) -> Array:
        """<x_i, x_j>, (B, B)."""

    def square_norm(self, vector: Array) -> Array | None:
        """||vector||^2 in the geometry of the rows, or None where that needs all the data."""

    def split(self, k: int) -> Any:
        """The rows in groups of k along a new leading axis, for a scan."""


@arrays
class Dense:
    """Rows as a matrix ``values`` (B, d).

    ``whole`` is False where the columns are only the active ones of a sparse block: the other
    coordinates of a vector are then not here.
    """

    values: Array
    whole: bool = dataclasses.field(default=True, metadata={"static": True})

    @property
    def n_features(self) -> int:
        return self.values.shape[-1]

    def scores(self, vector: Array) -> Array:
        return product(self.values, vector.T)

    def pull_back(self, coefficients: Array) -> Array:
        return product(coefficients.T, self.values)

    def pull_back_squares(self, coefficients: Array) -> Array:
        # Rows are scaled to 1 first: x^2 alone may overflow, and 0 times that would be NaN.
        scales = self.scales()
        unit = self.values / jnp.where(scales > 0, scales, 1)[:, None]
        scaled = coefficients * (scales if coefficients.ndim == 1 else scales[:, None])
        return product((scaled * scaled).T, unit * unit)

    def pull_back_outer(self, coefficients: Array, size: int) -> Array:
        # c x is formed before the product: x^2 alone may overflow, and 0 times that would be NaN.
        values = self.values.reshape((1,) * (coefficients.ndim - 1) + self.values.shape)
        rows = jnp.swapaxes(cut(coefficients.T[..., None] * values, size), -3, -2)
        return product(jnp.swapaxes(rows, -2, -1), rows)

    def scales(self) -> Array:
        return jnp.max(jnp.abs(self.values), axis=-1)

    def square_norms(self) -> Array:
        return jnp.sum(self.values * self.values, axis=-1)

    def gram(self) -> Array:
        return product(self.values, self.values.T)

    def square_norm(self, vector: Array) -> Array | None:
        return jnp.sum(vector * vector) if self.whole else None

    def split(self, k: int) -> Self:
        rows, width = self.values.shape
        return dataclasses.replace(self, values=self.values.reshape(rows // k, k, width))


@arrays
class Gram:
    """Rows met only through a kernel with n training examples.

    The vector is the coefficients of the expansion sum_j alpha_j k(x_j, .). A row adds its
    coefficient at its own position ``index``.
    """

    rows: Array  # (B, n) k(x_i, x_j)
    diagonal: Array  # (B,) k(x_i, x_i)
    index: Array  # (B,) int32, position of row i among the n examples; n for padding

    @property
    def n_features(self) -> int:
        return self.rows.shape[-1]

    def scores(self, vector: Array) -> Array:
        return product(self.rows, vector.T)

    def pull_back(self, coefficients: Array) -> Array:
        empty = jnp.zeros((*coefficients.shape[1:], self.n_features), coefficients.dtype)
        return empty.at[..., self.index].add(coefficients.T, mode="drop")

    def pull_back_squares(self, coefficients: Array) -> Array:
        raise ValueError("per-coordinate squares are not defined in a kernel's feature space")

    def pull_back_outer(self, coefficients: Array, size: int) -> Array:
        raise ValueError("outer products are not defined in a kernel's feature space")

    def scales(self) -> Array:
        return jnp.sqrt(self.diagonal)

    def square_norms(self) -> Array:
        return self.diagonal

    def gram(self) -> Array:
        inner = jnp.take(self.rows, self.index, axis=-1, mode="fill", fill_value=0)
        return jnp.where(jnp.eye(inner.shape[0], dtype=bool), self.diagonal[:, None], inner)

    def square_norm(self, vector: Array) -> Array | None:
        return None

    def split(self, k: int) -> Self:
        def groups(array: Array) -> Array:
            return array.reshape(array.shape[0] // k, k, *array.shape[1:])

        return jax.tree.map(groups, self)


@arrays
class Rows:
    """The sparse blocks of a slab, S blocks of B rows, one after another without padding.

    The slices of a block start where ``starts`` says. Beyond the last block the arrays go on for
    one slice more, so that none is ever clamped.
    """

    columns: Any  # (C,) int32, the active columns of each block, ascending
    column_starts: Any  # (S + 1,) int32
    values: Any  # (E,) float
    places: Any  # (E,) int32, place of each entry among its block's columns
    rows: Any  # (E,) int32, its row in the block; both None where B = 1
    starts: Any  # (S + 1,) int32, of values, places and rows
    live: Any  # (S, B) float, the intercept's column; None without one
    n_columns: int = dataclasses.field(metadata={"static": True})  # d, the intercept's among them
    n_rows: int = dataclasses.field(metadata={"static": True})  # B
    levels: Any = dataclasses.field(metadata={"static": True})  # (columns, entries) of a block

    def block(self, i: Array, level: int) -> tuple[Array, Dense]:
        """Block i over its active columns, no more than its level says.

        Returns:
          The columns (m,) and the rows (B, m) over them. Padding columns hold 0 and count from
          ``n_columns`` on, no two alike; the intercept's column, if there is one, is the last.
        """
        width, most_entries = self.levels[level]
        columns, own = _cut(self.columns, self.column_starts, i, width)
        beyond = self.n_columns + jnp.arange(width, dtype=columns.dtype)
        columns = jnp.where(own, columns, beyond)
        if self.places is None:
            values, own = _cut(self.values, self.starts, i, width)
            matrix = jnp.where(own, values, 0)[None]
        else:
            cut = (self.starts, i, most_entries)
            values, own = _cut(self.values, *cut)
            place = jnp.where(own, _cut(self.places, *cut)[0], width)
            row, _ = _cut(self.rows, *cut)
            empty = jnp.zeros((self.n_rows, width), values.dtype)
            matrix = empty.at[row, place].add(values, mode="drop")
        if self.live is not None:
            last = jnp.full((1,), self.n_columns - 1, columns.dtype)
            columns = jnp.concatenate([columns, last])
            constant = lax.dynamic_index_in_dim(self.live, i, keepdims=False)
            matrix = jnp.concatenate([matrix, constant[:, None]], axis=1)
        return columns, Dense(matrix, whole=False)


def _cut(flat: Array, starts: Array, i: Array, size: int) -> tuple[Array, Array]:
    """Slice i of ``flat``, padded to ``size``, and which of its entries are its own."""
    first, last = starts[i], starts[i + 1]
    own = jnp.arange(size, dtype=starts.dtype) < last - first
    return lax.dynamic_slice_in_dim(flat, first, size), own


def restrict(field: Array, columns: Array, axis: int = 0) -> Array:
    """The entries of a "feature" axis at some columns; 0 at padding columns."""
    index = (slice(None),) * (axis % field.ndim)
    # JAX's default fill is NaN.
    return field.at[(*index, columns)].get(mode="fill", fill_value=0)


def merge(field: Array, columns: Array, part: Array) -> Array:
    """``field`` with its leading "feature" axis replaced by ``part`` at some columns."""
    return field.at[columns].set(part, mode="drop", unique_indices=True)
