"""Where each ranker should start to say yes."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import ArrayLike

from jaxsolvers.checks import check_reals
from jaxsolvers.metrics.checks import (
    as_array,
    as_targets,
    check_shapes,
    checked_positives,
    checked_weights,
    is_known,
)
from jaxsolvers.metrics.evaluate import each_column
from jaxsolvers.metrics.per_ranker import ratio
from jaxsolvers.metrics.queries import Mean, queries_of
from jaxsolvers.metrics.ranks import sort_rows

__all__ = ["tune_thresholds"]


def tune_thresholds(
    targets: ArrayLike,
    scores: ArrayLike,
    *,
    beta: float = 1.0,
    positive: object = None,
    sample_weight: ArrayLike | None = None,
) -> Any:
    """The threshold of each ranker whose answers have the largest F measure on these rows.

    ``F_beta = (1 + beta^2) TP / (beta^2 P + YES)``, P positive rows, YES rows with a score above
    the threshold, TP those of them that are positive (van Rijsbergen, Information Retrieval,
    1979). Of several best thresholds it is the highest, midway between the scores it separates.
    Take rows that the rankers were not trained on, and pass the result to
    ``model.predict(X, threshold=...)``, which says yes above it.

    Args:
      targets: (n,) or (n, K), as in ``average_precision``.
      scores: same shape, real, higher first.
      beta: > 0; above 1 misses weigh more than false alarms. 1 by default.
      positive: the label that counts as positive, all others being negative.
      sample_weight: (n,) non-negative, or None for equal weights.

    Returns:
      () for (n,) input, else (K,), a NumPy array of the scores' dtype (ints: float64); inside
      ``jax.jit`` a JAX array. A ranker without positives gets infinity, it never says yes; one
      warning counts such rankers.

    Raises:
      ValueError: as in ``average_precision``; beta <= 0 or not finite.

    Example:
      >>> print(tune_thresholds([1, 0, 1, 0, 0], [0.9, 0.7, 0.6, 0.2, 0.1]))
      0.4
    """
    accepted = "be one finite number > 0"
    given = check_reals(beta, "beta", accepted)
    if given.ndim or not np.isfinite(given) or given <= 0:
        raise ValueError(f"beta must {accepted}, got {beta!r}")
    answers, values = as_targets(targets), as_array("scores", scores)
    check_shapes(answers, "scores", values)
    weights, valid = checked_weights(sample_weight, answers.shape[0], "", None)
    square = np.asarray(given * given, jnp.result_type(float))
    found = each_column(
        last_yes,
        lambda part: checked_positives(part, positive),
        answers,
        values,
        valid,
        (weights, square),
    )
    none: Any
    if is_known(found.value) and is_known(values):
        none = np.asarray(found.skipped) > 0
        if none.any():
            warnings.warn(
                f"tune_thresholds: {none.sum()} of {none.size} rankers have no positive row: their "
                "threshold is infinity, they never say yes",
                stacklevel=2,
            )
        own = np.asarray(values).reshape(len(values), -1)
        xp: Any = np
    else:
        none, own, xp = found.skipped > 0, values.reshape(len(values), -1), jnp
    if not jnp.issubdtype(own.dtype, jnp.floating):
        own = own.astype(float)
    at = xp.asarray(found.value)  # (K, 2)
    columns = xp.arange(at.shape[0])
    here, lower = (own[at[:, side], columns] for side in (0, 1))
    lowest = xp.nextafter(here, xp.full_like(here, -xp.inf))
    lower = xp.where(at[:, 0] == at[:, 1], lowest, lower)
    with np.errstate(invalid="ignore"):
        middle = lower + (here - lower) / 2
    # Beside an infinite score, and between neighbouring floats, there is no middle.
    middle = xp.where((middle >= lower) & (middle < here), middle, lower)
    result = xp.where(none, xp.full_like(middle, xp.inf), middle)
    return result if answers.ndim == 2 else result[0]


def last_yes(
    positive: jax.Array, scores: jax.Array, weights: jax.Array | None, square: jax.Array
) -> Mean:
    """Of one ranker, (n,) columns: a row that scores lowest among the yes, and the next one.

    Rows, not scores: these may be ranks in place of floats that the device cannot hold. Without a
    next row it is the same one twice. ``square`` is beta^2.
    """
    n = scores.size
    queries = queries_of(None, weights, n)  # rows of weight 0 come last, and are not there
    own = jnp.ones(n, jnp.int32) if weights is None else weights
    floating = jnp.issubdtype(scores.dtype, jnp.floating)
    able = scores > -jnp.inf if floating else jnp.ones(n, bool)  # no threshold is below -infinity
    ties = sort_rows(queries, scores, positive, own, able, lax.iota(jnp.int32, n))
    positive, own, able, rows = ties.sorted
    yes = queries.running(own)[ties.last]
    hits = queries.running(jnp.where(positive, own, 0))
    everything = hits[queries.last]
    bottom = square * everything.astype(square.dtype) + yes.astype(square.dtype)
    measure = ratio(hits[ties.last], bottom, 0.0)
    present = jnp.broadcast_to(queries.present, (n,))
    place = jnp.argmax(jnp.where(present & able, measure, -1))  # the first: the highest threshold
    below = jnp.minimum(ties.last[place] + 1, n - 1)
    more = (below > ties.last[place]) & present[below]
    none = jnp.broadcast_to(everything, (n,))[place] <= 0
    pair = jnp.stack([rows[place], jnp.where(more, rows[below], rows[place])])
    return Mean(pair, none.astype(jnp.int32))
