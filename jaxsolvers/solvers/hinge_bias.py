"""The bias that minimises the hinge loss of some rows, by one sort.

For scores z_i without a bias, ``L(b) = sum_i s_i [1 - y_i (z_i + b)]_+`` has its kinks at
``beta_i = y_i - z_i``; its slope right of kink j is ``C_j - W``, C_j the weight of the rows up to j
in ascending order of beta and W that of the positive rows. L is least where C passes W.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxsolvers.members import Array


class _Kinks(NamedTuple):
    row: Array  # (k,) in ascending order of beta, rows of weight 0 last
    beta: Array  # (k,) in that order
    weight: Array  # (k,) likewise
    before: Array  # (k,) C_{j-1}
    positive: Array  # () W


def _kinks(score: Array, target: Array, weight: Array) -> _Kinks:
    live = weight > 0
    own = jnp.where(live, weight, 0)
    beta = jnp.where(live, target - score, jnp.inf)
    row = jnp.arange(beta.shape[0], dtype=jnp.int32)
    # Operands of the sort: gathers and scatters whose indices differ per ranker are slow.
    beta, row, own_sorted = lax.sort((beta, row, own), num_keys=1, is_stable=True)
    up_to = jnp.cumsum(own_sorted)
    positive = jnp.minimum(jnp.sum(jnp.where(target > 0, own, 0)), up_to[-1])
    return _Kinks(row, beta, own_sorted, up_to - own_sorted, positive)


def weighted_steps(score: Array, target: Array, weight: Array) -> Array:
    """s_i v_i of a sub-gradient of ``min_b L(b)`` in the scores: its v sum to 0.

    A row takes part by a share a_i in [0, 1], 1 where it violates at the best b, 0 where it does
    not, and a part where b is its kink: ``v_i = a_i y_i``. Rows of one class give 0.

    Args:
      score, target, weight: (k,) z_i without a bias, -1 or +1, s_i >= 0.

    Returns:
      (k,) s_i a_i y_i.
    """
    kinks = _kinks(score, target, weight)
    safe = jnp.where(kinks.weight > 0, kinks.weight, 1)
    sorted_share = jnp.clip((kinks.positive - kinks.before) / safe, 0, 1)
    _, passed = lax.sort((kinks.row, sorted_share), num_keys=1)
    share = jnp.where(target > 0, 1 - passed, passed)
    live = weight > 0
    both = jnp.any(live & (target > 0)) & jnp.any(live & (target < 0))  # exact, unlike the sums
    return jnp.where(live & both, weight * share * target, 0)


def best_bias(score: Array, target: Array, weight: Array) -> Array:
    """The b that minimises L: the middle of all that do, or their end if there is but one.

    Args:
      score, target, weight: (n,) as in :func:`weighted_steps`.

    Returns:
      (); 0 without a live row.
    """
    return _best(_kinks(score, target, weight))


def beyond_best(score: Array, target: Array, weight: Array) -> Array:
    """``y_i - z_i - b`` at the best b, (k,); exactly 0 where b is a row's kink, 0 of dead rows.

    From the kinks that b is chosen among: scores that are computed again may round otherwise.
    """
    kinks = _kinks(score, target, weight)
    _, beta = lax.sort((kinks.row, kinks.beta), num_keys=1)
    return jnp.where(weight > 0, beta - _best(kinks), 0)


def _best(kinks: _Kinks) -> Array:
    live, after = kinks.weight > 0, kinks.before + kinks.weight
    # The least b with C >= W, and the largest one with at most W below it.
    low = jnp.min(jnp.where(live & (after >= kinks.positive), kinks.beta, jnp.inf))
    high = jnp.min(jnp.where(live & (after > kinks.positive), kinks.beta, jnp.inf))
    low = jnp.where(kinks.positive > 0, low, high)
    high = jnp.where(jnp.isinf(high), low, high)
    middle = low + (high - low) / 2
    return jnp.where(jnp.any(live), middle, 0)
