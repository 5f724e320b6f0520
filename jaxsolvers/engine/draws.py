"""What rankers draw for themselves: independent of tiles, chunks, devices and batches."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxsolvers.members import Array


def drawn(words: Array, code: Array, index: Array, share: Array) -> Array:
    """Whether a ranker keeps each row, with probability ``share``.

    Args:
      words: (2,) uint32, key of the epoch.
      code: () int32, the ranker.
      index: (B,) int32, the rows among the n examples.
      share: () the probability.

    Returns:
      (B,) bool; the same row gets the same answer wherever and whenever it is asked for.
    """
    # The implementation is named: the default one may depend on how keys are batched.
    own = jax.random.fold_in(jax.random.wrap_key_data(words, impl="threefry2x32"), code)

    def row(index: Array) -> Array:
        return jax.random.bits(jax.random.fold_in(own, index), dtype=jnp.uint32)

    # The upper 24 bits are exact in every float dtype.
    uniform = (jax.vmap(row)(index) >> 8).astype(share.dtype) * 2.0**-24
    return uniform < share
