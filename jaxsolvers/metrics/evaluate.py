"""What all ranking metrics share: checks, tiles of columns, one warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.metrics.checks import (
    Data,
    as_array,
    as_targets,
    check_shapes,
    checked_groups,
    checked_positives,
    checked_scores,
    checked_weights,
    columns,
    is_known,
)
from jaxsolvers.metrics.per_ranker import each_ranker
from jaxsolvers.metrics.queries import Mean

# A metric of ONE ranker, (gains, scores, codes, weights, ...) -> its mean over the queries. The
# first two are (n,) columns; codes (n,) are those of `queries_of`, weights (n,), each or None.
Metric = Callable[..., Mean]

_TILE_ENTRIES = 1 << 24  # of a column times its rows, ranked at a time


def ranking_metric(
    name: str,
    metric: Metric,
    inputs: tuple[Any, Any, object, Any, Any],
    shared: tuple[np.ndarray, ...] = (),
    *,
    equal_for: str = "",
    gains: Callable[[Data, object], tuple[Data, Data]] = checked_positives,
    missing: str = "no positive row",
    stacklevel: int = 3,
) -> jax.Array:
    """Check, compute each ranker, and warn about what has no value.

    Args:
      name: the metric's, for the warning.
      metric: of one ranker.
      inputs: targets, scores, positive, sample_weight and groups as the user gave them.
      shared: further arguments of the metric, the same for all rankers.
      equal_for: what has no form for unequal weights, if anything.
      gains: makes gains of targets, and says which columns are fine.
      missing: what a query without a value has.
      stacklevel: of the warning, 3 if the user called the caller.
    """
    targets, scores, positive, sample_weight, groups = inputs
    targets, scores = as_targets(targets), as_array("scores", scores)
    check_shapes(targets, "scores", scores)
    codes = checked_groups(groups, targets.shape[0])
    weights, valid = checked_weights(sample_weight, targets.shape[0], equal_for, codes)
    found = each_column(
        metric,
        lambda part: gains(part, positive),
        targets,
        scores,
        valid,
        (codes, weights, *shared),
    )
    if is_known(found.value):
        text = _skipped(np.asarray(found.skipped), np.asarray(found.value), codes, weights)
        if text:
            warnings.warn(f"{name}: {text.format(missing=missing)}", stacklevel=stacklevel)
    return found.value if targets.ndim == 2 else found.value[0]


def each_column(
    metric: Metric,
    gains: Callable[[Data], tuple[Data, Data]],
    targets: Data,
    scores: Data,
    valid: Data,
    shared: tuple[Data | None, ...],
) -> Mean:
    """The metric of every column, a tile of columns at a time: (K, ...) each."""
    if not isinstance(targets, (np.ndarray, jax.Array)) and is_known(scores):
        scores = np.asarray(scores)  # tiles of sparse targets are cut on the host
    parts = []
    for at in _tiles(scores.shape):
        tile, right = gains(_columns_at(targets, at))
        ranked, orderly = checked_scores(_columns_at(scores, at))
        fine = jnp.broadcast_to(valid & right & orderly, ranked.shape[1:])
        parts.append(each_ranker(metric, fine, (tile, ranked), shared))
    return parts[0] if len(parts) == 1 else jax.tree.map(lambda *all: jnp.concatenate(all), *parts)


def _tiles(shape: tuple[int, ...]) -> list[slice]:
    """Ranges of columns of about one width, together all."""
    n, number = (*shape, 1)[:2]
    several = -(-n * number // _TILE_ENTRIES)
    width = -(-number // several)
    return [slice(start, min(start + width, number)) for start in range(0, number, width)]


def _columns_at(array: Data, at: slice) -> Data:
    """Columns as a dense (n, k)."""
    if array.ndim == 1:
        return columns(array)
    whole = at.stop - at.start == array.shape[1]  # no copy
    part = array if whole else array[:, at]
    return part if isinstance(part, (np.ndarray, jax.Array)) else part.toarray()


def _skipped(skipped: np.ndarray, values: np.ndarray, codes: Data, weights: Data) -> str:
    """What a warning says about queries (rankers, where all rows are one query) without a value."""
    rankers = len(values)
    skipped = skipped.reshape(rankers, -1).max(axis=1)  # the same at all cut-offs
    if not skipped.any():
        return ""
    none_left = int(np.isnan(values).reshape(rankers, -1).any(axis=1).sum())
    if codes is None:
        text = f"skipped {none_left} of {rankers} rankers, which have {{missing}}"
        return f"{text}: their value is NaN, leave it out of means"
    kept = np.asarray(codes) if weights is None else np.asarray(codes)[np.asarray(weights) > 0]
    queries = np.unique(kept).size
    each = f" ({queries} for each of {rankers} rankers)" if rankers > 1 else ""
    text = f"skipped {skipped.sum()} of {queries * rankers} queries{each}, which have {{missing}}"
    text = f"{text}: they are left out of the mean"
    left = f"; {none_left} of {rankers} rankers have none left, their value is NaN"
    return text + left if none_left else text
