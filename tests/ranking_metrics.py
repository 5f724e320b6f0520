"""The ranking metrics as a table, and data for their tests."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from references import ranking

from jaxsolvers import metrics

# Against float64 references. Scores come as integers or ranks, so only the sums are rounded.
RTOL = 1e-12 if jnp.result_type(float) == np.float64 else 1e-5
KS = (5, 1, 99)


def at_ks(metric: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kw: metric(*args, list(KS), **kw)


def expected_ap(*args: Any, **kw: Any) -> Any:
    return metrics.average_precision(*args, ties="expected", **kw)


# Those of the top k have a leading axis of cut-offs.
RANKERS = {
    "step": metrics.average_precision,
    "expected": expected_ap,
    "precision": at_ks(metrics.precision_at_k),
    "recall": at_ks(metrics.recall_at_k),
    "ndcg": at_ks(metrics.ndcg_at_k),
    "auc": metrics.roc_auc,
}
# One query as the formula says: (targets, scores, weights) -> a number per cut-off, NaN where
# undefined.
REFERENCES = {
    "step": ranking.average_precision,
    "expected": lambda t, s, w: ranking.expected_average_precision(t, s),
    "precision": lambda t, s, w: [ranking.hits(t, s, k) / k for k in KS],
    "recall": lambda t, s, w: [ranking.recall(t, s, k) for k in KS],
    "ndcg": lambda t, s, w: [ranking.ndcg(t, s, k) for k in KS],
    "auc": ranking.roc_area,
}
WEIGHTED = ("step", "auc")  # the others have no form for unequal weights
GRADED = ("ndcg",)  # the others take two classes only

every_ranker = pytest.mark.parametrize("metric", RANKERS.values(), ids=list(RANKERS))
every_name = pytest.mark.parametrize("name", RANKERS)
binary = [name for name in RANKERS if name not in GRADED]
every_cutoff = pytest.mark.parametrize(
    "metric", [metrics.precision_at_k, metrics.recall_at_k, metrics.ndcg_at_k]
)


WEIGHTINGS = ("none", "random", "zeros", "huge")


def row_weights(weighting: str) -> np.ndarray | None:
    """Weights of 400 rows."""
    rng = np.random.default_rng(1)
    return {
        "none": None,
        "random": rng.exponential(size=400) ** 2,
        "zeros": rng.exponential(size=400) * (rng.random(400) < 0.5),
        "huge": rng.exponential(size=400) * 1e38,
    }[weighting]


def tied_columns(n: int, rankers: int, levels: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Bool targets with at least one positive per column, integer scores on few levels."""
    rng = np.random.default_rng(seed)
    targets = rng.random((n, rankers)) < 0.3
    targets[rng.integers(n, size=rankers), np.arange(rankers)] = True
    return targets, rng.integers(-levels // 2, levels // 2 + 1, (n, rankers)).astype(np.int32)


def enumerated(targets: Any, scores: Any, value_of_ranked_targets: Callable[..., Any]) -> Any:
    """Mean of a metric of the ranked targets over all orders of the rows that respect scores."""
    orders = [
        order
        for order in itertools.permutations(range(len(scores)))
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order))
    ]
    return np.mean([value_of_ranked_targets([targets[i] for i in o]) for o in orders], axis=0)
