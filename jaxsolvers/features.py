"""Layouts: how the rows of a block are stored. The only file that knows.

Solvers see rows through the few verbs of :class:`Layout`; nothing else gathers, scatters or
multiplies features. ``Dense`` and ``Gram`` live here today. ``Rows`` (sparse, flat per block:
indices, values, row; padding index d, padding value 0) answers the same verbs; what it adds is
``restrict`` and ``merge``, by which the engine runs an ordinary dense step on the active columns
only.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol, Self

import jax
import jax.numpy as jnp

from jaxsolvers.members import Array, arrays

# A TPU's default product is bfloat16 and recent GPUs' is tf32: one ranker alone would differ
# from the same ranker in a batch, and scores would be off by 1e-3.
PRECISION = jax.lax.Precision.HIGHEST


def product(a: Array, b: Array) -> Array:
    """Matrix product at full accuracy of the working dtype."""
    return jnp.matmul(a, b, precision=PRECISION)


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

    def restrict(self, vector: Array) -> Array:
        """The entries of a "feature" field that these rows can touch."""

    def merge(self, vector: Array, part: Array) -> Array:
        """``vector`` with the entries taken by ``restrict`` replaced by ``part``."""


@arrays
class Dense:
    """Rows as a matrix ``values`` (B, d)."""

    values: Array

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

    def scales(self) -> Array:
        return jnp.max(jnp.abs(self.values), axis=-1)

    def square_norms(self) -> Array:
        return jnp.sum(self.values * self.values, axis=-1)

    def gram(self) -> Array:
        return product(self.values, self.values.T)

    def square_norm(self, vector: Array) -> Array | None:
        return jnp.sum(vector * vector)

    def split(self, k: int) -> Self:
        rows, width = self.values.shape
        return dataclasses.replace(self, values=self.values.reshape(rows // k, k, width))

    def restrict(self, vector: Array) -> Array:
        return vector

    def merge(self, vector: Array, part: Array) -> Array:
        return part


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

    def restrict(self, vector: Array) -> Array:
        return vector

    def merge(self, vector: Array, part: Array) -> Array:
        return part
