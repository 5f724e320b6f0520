"""Ranking metrics: how well the scores of a ranker put its positive rows first."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import ArrayLike

from jaxsolvers.metrics.checks import (
    as_array,
    check_shapes,
    checked_cutoffs,
    checked_positives,
    checked_scores,
    checked_weights,
    columns,
    is_known,
)
from jaxsolvers.metrics.per_ranker import each_ranker, ratio, total

__all__ = ["average_precision", "precision_at_k"]


def average_precision(
    targets: ArrayLike,
    scores: ArrayLike,
    ties: Literal["step", "expected"] = "step",
    *,
    positive: object = None,
    sample_weight: ArrayLike | None = None,
) -> jax.Array:
    """Average precision: the mean, over the positives, of the precision at their ranks.

    ``AP = (1/P) sum_{i positive} (positives at or above i) / (rows at or above i)``, P positives,
    scores descending. Weights turn the counts into sums of weights and the mean into a weighted
    one. ``ties="step"`` counts a tied group whole, like scikit-learn's
    ``average_precision_score``. ``ties="expected"`` is the mean over uniformly random orders of
    equal scores: a group of N rows, p of them positive, below a rows with P0 positives adds
    ``(p/N) sum_{j=1..N} (P0 + 1 + (j-1) rho) / (a + j)`` to the sum, ``rho = (p-1)/(N-1)``
    (McSherry and Najork, ECIR 2008).

    Args:
      targets: (n,) or (n, K): bool, 0/1 or -1/+1; labels of any kind if ``positive`` is given.
      scores: same shape, real, higher first. Infinities are ranked.
      ties: ``"step"`` or ``"expected"``.
      positive: the label that counts as positive, all others being negative.
      sample_weight: (n,) non-negative, or None for equal weights. Weight 0 drops a row; the others
        must be equal for ``ties="expected"``.

    Returns:
      () for (n,) input, else (K,), in JAX's default float dtype. A ranker without positives has
      none: it gets NaN, and one warning per call counts such rankers.

    Raises:
      ValueError: shapes differ or are empty; a score is NaN; targets are not binary; an unknown
        ``ties``; weights are negative, not finite, all zero, or unequal where they must be equal.

    Example:
      >>> print(average_precision([1, 0], [0.5, 0.5]))
      0.5
      >>> print(average_precision([1, 0], [0.5, 0.5], ties="expected"))
      0.75
    """
    if ties not in ("step", "expected"):
        raise ValueError(f'ties must be "step" or "expected"; got {ties!r}')
    inputs = (targets, scores, positive, sample_weight)
    if ties == "step":
        return _rank_metric("average_precision", _step_ap, inputs)
    return _rank_metric("average_precision", _expected_ap, inputs, equal_for='ties="expected"')


def precision_at_k(
    targets: ArrayLike,
    scores: ArrayLike,
    k: int | Sequence[int] | np.ndarray,
    *,
    positive: object = None,
    sample_weight: ArrayLike | None = None,
) -> jax.Array:
    """Precision at k: the share of positives among the k highest scores, ties averaged.

    ``P@k = (1/k) [positives above + (min(k, n) - rows above) p/N]``: the group of equal scores
    that holds rank min(k, n) has N rows, p of them positive; "above" means a higher score. This is
    the mean over uniformly random orders of equal scores (McSherry and Najork, ECIR 2008). The
    divisor stays k when n < k.

    Args:
      targets: (n,) or (n, K), as in ``average_precision``.
      scores: same shape, real, higher first. Infinities are ranked.
      k: an int >= 1, or a sequence of them in any order; other values do not compile again.
      positive: the label that counts as positive, all others being negative.
      sample_weight: (n,) or None for equal weights. Weight 0 drops a row, the others must be equal.

    Returns:
      () for (n,) input, else (K,), in JAX's default float dtype; a sequence of cut-offs adds a
      leading axis (len(k),) in the order asked. A ranker without positives gets 0.

    Raises:
      ValueError: as in ``average_precision``; ``k`` not a positive integer; unequal weights.

    Example:
      >>> print(precision_at_k([0, 1, 0], [0.9, 0.8, 0.7], [1, 2]))
      [0.  0.5]
    """
    cutoffs, is_sequence = checked_cutoffs(k)
    # k is data, not a static argument: new cut-offs reuse the program.
    ranks = np.asarray([min(one, np.iinfo(np.int32).max) for one in cutoffs], np.int32)
    shared = (ranks, np.asarray(cutoffs, jnp.result_type(float)))
    inputs, name = (targets, scores, positive, sample_weight), "precision_at_k"
    values = _rank_metric(name, _precision_at, inputs, shared, name)
    return jnp.moveaxis(values, -1, 0) if is_sequence else values[..., 0]


def _rank_metric(
    name: str,
    metric: Callable[..., jax.Array],
    inputs: tuple[Any, Any, object, Any],
    shared: tuple[np.ndarray, ...] = (),
    equal_for: str = "",
) -> jax.Array:
    """Check, compute each ranker, and warn about those without positives."""
    targets, scores, positive, sample_weight = inputs
    targets, scores = as_array("targets", targets), as_array("scores", scores)
    check_shapes(targets, "scores", scores)
    weights, valid = checked_weights(sample_weight, len(targets), equal_for)
    positives, binary = checked_positives(columns(targets), positive)
    ranked, orderly = checked_scores(columns(scores))
    valid = jnp.broadcast_to(valid & binary & orderly, ranked.shape[1:])
    values = each_ranker(metric, valid, weights, (positives, ranked), shared)
    if is_known(values):
        skipped = np.isnan(np.asarray(values)).reshape(len(values), -1).any(axis=1).sum()
        if skipped:
            text = f"{name}: skipped {skipped} of {len(values)} rankers, which have no positive row"
            warnings.warn(f"{text}: their value is NaN, leave it out of means", stacklevel=3)
    return values if targets.ndim == 2 else values[0]


# One ranker: pure functions of (n,) columns


class _Ranking(NamedTuple):
    """Rows by descending score, (n,) each, counted by weight; a group is a run of equal scores."""

    weights: jax.Array
    gains: jax.Array  # the weight of a positive row, 0 for a negative one
    rows: jax.Array  # rows up to this one: its rank
    above: jax.Array  # rows above the group
    size: jax.Array  # rows in the group
    positives_above: jax.Array
    positives: jax.Array  # positives in the group
    all_positives: jax.Array  # (), of the ranker


def _rank(weights: jax.Array, positive: jax.Array, scores: jax.Array) -> _Ranking:
    # Every operand is a sort key, so that tied rows come in one order whatever the input order:
    # permuting the rows changes no bit of a result.
    key, positive, weights = lax.sort((_descending(scores), positive, weights), num_keys=3)
    gains = jnp.where(positive, weights, 0)
    rows, hits = lax.cumsum(weights), lax.cumsum(gains)
    place, edge, differs = lax.iota(jnp.int32, key.size), jnp.ones(1, bool), key[1:] != key[:-1]
    first = lax.cummax(jnp.where(jnp.concatenate([edge, differs]), place, 0))
    last = lax.cummin(jnp.where(jnp.concatenate([differs, edge]), place, key.size), reverse=True)
    above, hits_above = rows[first] - weights[first], hits[first] - gains[first]
    groups = (above, rows[last] - above, hits_above, hits[last] - hits_above)
    return _Ranking(weights, gains, rows, *groups, hits[-1])


def _descending(scores: jax.Array) -> jax.Array:
    """Integers that sort by descending score and are equal where the scores are.

    They are the bits of the floats: comparing floats ties denormals where XLA flushes them to 0.
    """
    if jnp.issubdtype(scores.dtype, jnp.floating):
        kind = jnp.dtype(f"int{8 * scores.dtype.itemsize}")
        bits = lax.bitcast_convert_type(scores, kind)
        # The bits of negative floats grow with the magnitude: mirror them, -0.0 onto 0.0.
        scores = jnp.where(bits < 0, jnp.iinfo(kind).min - bits, bits)
    return ~scores  # unlike a minus sign, right for unsigned and for the smallest integer


def _step_ap(weights: jax.Array, positive: jax.Array, scores: jax.Array) -> jax.Array:
    r = _rank(weights, positive, scores)
    precision = ratio(r.positives_above + r.positives, r.above + r.size, 0.0)
    return ratio(total(r.gains.astype(precision.dtype) * precision), r.all_positives)


def _expected_ap(counts: jax.Array, positive: jax.Array, scores: jax.Array) -> jax.Array:
    r = _rank(counts, positive, scores)
    # The positives above the j-th row of a group, given that this row is one. Summed row by row
    # every term is >= 0; the closed form with harmonic numbers cancels for groups at late ranks.
    rho = ratio(r.positives - 1, r.size - 1, 0.0)
    within = (r.rows - r.above - 1).astype(rho.dtype) * rho
    precision = ratio(r.positives_above.astype(rho.dtype) + 1 + within, r.rows, 0.0)
    chance = r.weights.astype(rho.dtype) * ratio(r.positives, r.size, 0.0)
    return ratio(total(chance * precision), r.all_positives)


def _precision_at(counts: jax.Array, *columns_and_cutoffs: jax.Array) -> jax.Array:
    positive, scores, ranks, divisors = columns_and_cutoffs
    r = _rank(counts, positive, scores)
    ranks = jnp.minimum(ranks, r.rows[-1])  # dropped rows hold no rank
    row = jnp.searchsorted(r.rows, ranks)
    share = ratio(r.positives[row], r.size[row])
    hits = r.positives_above[row].astype(share.dtype)
    hits = hits + (ranks - r.above[row]).astype(share.dtype) * share
    return hits / divisors
