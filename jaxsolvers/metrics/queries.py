"""Rows sorted by query: sums within a query, and means over the queries.

All queries are ranked in one sort and summed in one pass, so memory is O(n) however many queries
there are and however unlike their sizes.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsolvers.metrics.per_ranker import ratio, total


class Mean(NamedTuple):
    """A metric of one ranker."""

    value: jax.Array  # mean over the queries where it is defined, NaN if there is none
    skipped: jax.Array  # int32, queries where it is not


class Queries(NamedTuple):
    """Where the queries lie among the n sorted rows.

    A value per query is () if there is but one query, else (n,), the same at all rows of a query:
    no shape depends on the number of queries.
    """

    codes: jax.Array | None  # (n,) of the rows as given, to sort by; None for one query of all rows
    first: jax.Array  # per query: position of its first row
    last: jax.Array  # per query
    present: jax.Array  # per query: False for the dropped rows, which make a query of their own

    def running(self, terms: jax.Array) -> jax.Array:
        """Sums of the (n,) sorted terms up to each row, within its query."""
        if self.codes is None:
            return lax.cumsum(terms)
        if jnp.issubdtype(terms.dtype, jnp.floating):
            return running_in_runs(terms, self.first)
        sums = lax.cumsum(terms)  # of integers: the difference is exact
        return sums - (sums[self.first] - terms[self.first])

    def total(self, terms: jax.Array) -> jax.Array:
        """The sum of the (n,) sorted terms, per query."""
        return self.running(terms)[self.last]

    def mean(self, values: jax.Array) -> Mean:
        """The mean over the queries of a value per query, without the NaN ones."""
        undefined = jnp.isnan(values)
        if self.codes is None:
            return Mean(values, undefined.astype(jnp.int32))
        ends = self.present & (lax.iota(jnp.int32, values.size) == self.last)
        counted, skipped = ends & ~undefined, ends & undefined
        number = jnp.sum(counted, dtype=jnp.int32)
        value = ratio(total(jnp.where(counted, values, 0)), number)
        return Mean(value, jnp.sum(skipped, dtype=jnp.int32))


def queries_of(codes: jax.Array | None, weights: jax.Array | None, n: int) -> Queries:
    """The queries of n rows with codes 0 ... n - 1; rows of weight 0 are dropped."""
    if codes is None and weights is None:
        return Queries(None, jnp.int32(0), jnp.int32(n - 1), jnp.array(True))
    codes = jnp.zeros(n, jnp.int32) if codes is None else jnp.asarray(codes)
    if weights is not None:
        codes = jnp.where(weights > 0, codes, n)
    ordered = lax.sort(codes)
    first = jnp.searchsorted(ordered, ordered).astype(jnp.int32)
    last = jnp.searchsorted(ordered, ordered, side="right").astype(jnp.int32) - 1
    return Queries(codes, first, last, ordered < n)


def running_in_runs(terms: jax.Array, first: jax.Array) -> jax.Array:
    """Sums of the (n,) terms up to each row, from position ``first`` (n,) of its run on."""
    # Doubling windows (Hillis and Steele, 1986). Differences of one long sum would cancel; here a
    # run's sums are made of its own terms alone, to the bit.
    place = lax.iota(jnp.int32, terms.size)

    def doubled(step: jax.Array, sums: jax.Array) -> jax.Array:
        before = place - (jnp.int32(1) << step)
        return sums + jnp.where(before >= first, sums[jnp.maximum(before, 0)], 0)

    return lax.fori_loop(jnp.int32(0), jnp.int32((terms.size - 1).bit_length()), doubled, terms)
