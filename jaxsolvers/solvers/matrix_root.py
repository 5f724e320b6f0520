"""Roots of sums of outer products, taken only in the rounds that ask for them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxsolvers.members import Array
from jaxsolvers.regularizers.full_metric import rank_tolerance

__all__ = ["matrix_root", "renewed"]


def matrix_root(sums: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of G^{1/2}, for positive semidefinite G.

    Eigenvalues of G that are rounding beside the largest (``rank_tolerance``) count as 0. A
    matrix that holds no finite number gives NaN.

    Args:
      sums: G, (..., b, b), of which the lower triangle is read.

    Returns:
      (..., b) eigenvalues >= 0, ascending; (..., b, b) eigenvectors, a column each.

    Example:
      >>> roots, _ = matrix_root(jnp.array([[2.0, 2.0], [2.0, 2.0]]))
      >>> [round(float(root), 5) for root in roots]
      [0.0, 2.0]
    """
    size = sums.shape[-1]
    if size == 1:
        return jnp.sqrt(jnp.maximum(sums[..., 0], 0)), jnp.ones_like(sums)
    # Scaled to 1: inside, the decomposition squares the entries.
    scale = jnp.max(jnp.abs(sums), axis=(-2, -1), keepdims=True)
    sound = jnp.isfinite(scale)
    unit = jnp.where(sound, sums / jnp.where(scale > 0, scale, 1), 0)
    values, vectors = _decomposed(unit.reshape(-1, size, size))
    values, vectors = values.reshape(sums.shape[:-1]), vectors.reshape(sums.shape)
    kept = values > rank_tolerance(sums.dtype, size) * values[..., -1:]
    roots = jnp.sqrt(jnp.where(kept, values, 0)) * jnp.sqrt(scale[..., 0])
    return jnp.where(sound[..., 0], roots, jnp.nan), jnp.where(sound, vectors, jnp.nan)


def _decomposed(matrices: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of symmetric matrices (n, b, b)."""

    def one(matrices: Array) -> tuple[Array, Array]:
        return tuple(jnp.linalg.eigh(matrices, symmetrize_input=False))

    # On a CPU jaxlib 0.10 shares a batch out among the threads that run the devices' programs, and
    # waits for them: with several devices all may wait at once, for ever. One matrix needs no help.
    if jax.default_backend() == "cpu" and jax.device_count() > 1:
        return lax.map(one, matrices)
    return one(matrices)


@jax.custom_batching.custom_vmap
def renewed(due: Array, sums: Array, roots: Array, vectors: Array) -> tuple[Array, Array]:
    """``matrix_root(sums)`` for the rankers it is due for, the old one for the others.

    A ``cond`` under ``vmap`` becomes a select and would decompose in every round. Here a batch of
    rankers is one axis of a single ``cond``: in rounds where no ranker is due nothing is done.

    Args:
      due: (n,) bool, which of n rankers ask.
      sums: (n, ..., b, b).
      roots, vectors: (n, ..., b) and (n, ..., b, b), the last ones.
    """

    def anew() -> tuple[Array, Array]:
        new = matrix_root(sums)
        return jax.tree.map(
            lambda a, b: jnp.where(due.reshape(-1, *(1,) * (a.ndim - 1)), a, b),
            new,
            (roots, vectors),
        )

    return lax.cond(jnp.any(due), anew, lambda: (roots, vectors))


@renewed.def_vmap
def _(size: int, batched: Any, *operands: Array) -> tuple[Any, tuple[bool, bool]]:
    """The new axis of rankers merged with the one that is there."""
    whole = [
        operand if own else jnp.broadcast_to(operand, (size, *operand.shape))
        for operand, own in zip(operands, batched, strict=True)
    ]
    merged = renewed(*(operand.reshape(-1, *operand.shape[2:]) for operand in whole))
    apart = tuple(out.reshape(size, -1, *out.shape[1:]) for out in merged)
    return apart, (True, True)
