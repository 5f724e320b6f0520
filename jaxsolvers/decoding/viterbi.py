"""The best labels of a chain by max-product (Viterbi, IEEE Trans. Information Theory 13, 1967).

A sequence r_1 ... r_L scores ``start[r_1] + sum_l unary[l, r_l] + sum_l step[r_l, r_{l+1}] +
end[r_L]``. Messages run from the end to the start and labels are then read off from the start, so
that of sequences with equal scores the first in lexicographic order is found: at the first
position where they differ it has the lower label. Everything is for ONE sequence, padded to L
positions of which the first ``length`` >= 1 count; what stands in the others is never looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxsolvers.members import Array


class Chain(NamedTuple):
    """The scores of all labels of one sequence."""

    unary: Array  # (L, K) of each label at each position
    step: Array  # (K, K) of label r (row) followed by label s (column)
    start: Array  # (K,) of the first label
    end: Array  # (K,) of the last label
    length: Array  # () int32, 1 ... L


def inside(chain: Chain) -> Array:
    """Which positions count, (L,) bool."""
    return jnp.arange(chain.unary.shape[0], dtype=jnp.int32) < chain.length


def to_the_right(chain: Chain) -> tuple[Array, Array]:
    """For each label of each position the best score of all that follows it.

    Returns:
      That score (L, K), the end's included, and the next label by which it is reached, (L, K)
      int32, the lowest of equally good ones.
    """

    def position(best: Array, at: tuple[Array, Array]) -> tuple[Array, tuple[Array, Array]]:
        unary, number = at
        through = chain.step + best[None, :]
        follower = lax.argmax(through, 1, jnp.int32)
        score = jnp.where(number == chain.length - 1, chain.end, jnp.max(through, axis=1))
        return jnp.where(number < chain.length, unary + score, 0), (score, follower)

    positions = jnp.arange(chain.unary.shape[0], dtype=jnp.int32)
    nothing = jnp.zeros_like(chain.start)
    return lax.scan(position, nothing, (chain.unary, positions), reverse=True)[1]


def to_the_left(chain: Chain) -> Array:
    """For each label of each position the best score of all that precedes it, (L, K)."""

    def position(score: Array, unary: Array) -> tuple[Array, Array]:
        return jnp.max((score + unary)[:, None] + chain.step, axis=0), score

    return lax.scan(position, chain.start, chain.unary)[1]


def best_labels(chain: Chain) -> Array:
    """The labels of the best sequence, (L,) int32; 0 where no position counts."""
    score, follower = to_the_right(chain)
    first = lax.argmax(chain.start + chain.unary[0] + score[0], 0, jnp.int32)

    def position(label: Array, follower: Array) -> tuple[Array, Array]:
        return follower[label], label

    labels = lax.scan(position, first, follower)[1]
    return jnp.where(inside(chain), labels, 0)


def max_marginals(chain: Chain) -> Array:
    """The score of the best sequence that has label r at position l, (L, K).

    Their largest entry is the best sequence's score, at every position.
    """
    return to_the_left(chain) + chain.unary + to_the_right(chain)[0]
