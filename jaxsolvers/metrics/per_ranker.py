"""A metric of one ranker, mapped over the columns and compiled once per shape."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsolvers.metrics.checks import Data


@functools.partial(jax.jit, static_argnums=0)
def each_ranker(
    metric: Callable[..., jax.Array],
    valid: Data,
    weights: Data | None,
    columns: tuple[Data, ...],
    shared: tuple[Data, ...] = (),
) -> jax.Array:
    """(K, ...) values of ``metric``, NaN where ``valid`` (K,) is False."""

    def one(is_valid: jax.Array, columns: tuple[jax.Array, ...]) -> jax.Array:
        # Counts are int32: a float32 counter stops at 2^24.
        counts = jnp.ones(columns[0].shape, jnp.int32) if weights is None else weights
        return jnp.where(is_valid, metric(counts, *columns, *shared), jnp.nan)

    return jax.vmap(one, in_axes=(0, 1))(valid, columns)


def total(terms: jax.Array) -> jax.Array:
    """The sum of (n,) terms."""
    # A tree of sums: in float32 jnp.sum was off by 3e-6 at a million rows with 3 distinct scores.
    return lax.cumsum(terms)[-1]


def ratio(top: jax.Array, bottom: jax.Array, otherwise: float = np.nan) -> jax.Array:
    """``top / bottom`` in the default float dtype, ``otherwise`` where ``bottom`` is 0."""
    dtype = jnp.result_type(float)
    quotient = top.astype(dtype) / jnp.where(bottom == 0, 1, bottom).astype(dtype)
    return jnp.where(bottom == 0, otherwise, quotient)
