"""The rows of one ranker in ranked order, and what is above them and tied with them."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsolvers.metrics.queries import Queries


class Ties(NamedTuple):
    """Rows sorted by query and descending score; a tie is a run of equal scores in a query."""

    first: jax.Array  # (n,) position of the first row of the tie
    last: jax.Array  # (n,)
    sorted: tuple[jax.Array, ...]  # what was sorted along, (n,) each


class Ranking(NamedTuple):
    """Rows sorted by query and descending score, (n,) each, counted by weight."""

    weights: jax.Array
    gains: jax.Array  # the weight of a positive row, 0 for a negative one
    rows: jax.Array  # rows of the query up to this one: its rank
    above: jax.Array  # rows above the tie
    tied: jax.Array  # rows in the tie
    gains_above: jax.Array
    gains_tied: jax.Array
    all_gains: jax.Array  # per query


def sort_rows(queries: Queries, scores: jax.Array, *along: jax.Array) -> Ties:
    """The rows in ranked order; ``along`` are (n,) arrays to bring into it."""
    # Every operand is a sort key, so that tied rows come in one order whatever the input order:
    # permuting the rows changes no bit of a result.
    order = (descending(scores),) if queries.codes is None else (queries.codes, descending(scores))
    operands = lax.sort((*order, *along), num_keys=len(order) + len(along))
    differs = jnp.zeros(scores.size - 1, bool)
    for key in operands[: len(order)]:
        differs |= key[1:] != key[:-1]
    edge, place = jnp.ones(1, bool), lax.iota(jnp.int32, scores.size)
    first = lax.cummax(jnp.where(jnp.concatenate([edge, differs]), place, 0))
    ends = jnp.where(jnp.concatenate([differs, edge]), place, scores.size)
    return Ties(first, lax.cummin(ends, reverse=True), tuple(operands[len(order) :]))


def rank(
    queries: Queries, positive: jax.Array, scores: jax.Array, weights: jax.Array | None = None
) -> Ranking:
    """The ranking of (n,) rows, counted one by one without weights."""
    if weights is None:
        # Counts are int32: a float32 counter stops at 2^24.
        ties = sort_rows(queries, scores, positive)
        (positive,) = ties.sorted
        weights = jnp.ones(scores.size, jnp.int32)
        rows = lax.iota(jnp.int32, scores.size) - queries.first + 1
        above, tied = ties.first - queries.first, ties.last - ties.first + 1
    else:
        ties = sort_rows(queries, scores, positive, weights)
        positive, weights = ties.sorted
        rows = queries.running(weights)
        above = rows[ties.first] - weights[ties.first]
        tied = rows[ties.last] - above
    gains = jnp.where(positive, weights, 0)
    hits = queries.running(gains)
    gains_above = hits[ties.first] - gains[ties.first]
    gains_tied = hits[ties.last] - gains_above
    return Ranking(weights, gains, rows, above, tied, gains_above, gains_tied, hits[queries.last])


def descending(scores: jax.Array) -> jax.Array:
    """Integers that sort by descending score and are equal where the scores are.

    They are the bits of the floats: comparing floats ties denormals where XLA flushes them to 0.
    """
    if jnp.issubdtype(scores.dtype, jnp.floating):
        kind = jnp.dtype(f"int{8 * scores.dtype.itemsize}")
        bits = lax.bitcast_convert_type(scores, kind)
        # The bits of negative floats grow with the magnitude: mirror them, -0.0 onto 0.0.
        scores = jnp.where(bits < 0, jnp.iinfo(kind).min - bits, bits)
    return ~scores  # unlike a minus sign, right for unsigned and for the smallest integer
