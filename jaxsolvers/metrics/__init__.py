"""Metrics for classification and ranking, one ranker per column.

Shapes: ``n`` rows (the ranked items), ``K`` rankers. A metric is a pure function of ONE ranker,
mapped over the columns and compiled once per shape. Values are checked before tracing; inside
``jax.jit`` or ``jax.vmap``, where they are unknown, a ranker whose input would be refused or whose
metric is undefined gets NaN without a warning.
"""

from jaxsolvers.metrics.classification import error_rate
from jaxsolvers.metrics.cutoffs import ndcg_at_k, precision_at_k, recall_at_k
from jaxsolvers.metrics.duality import duality_gap
from jaxsolvers.metrics.label_ranking import label_ranking_average_precision
from jaxsolvers.metrics.objectives import objective
from jaxsolvers.metrics.ranking import average_precision, roc_auc
from jaxsolvers.metrics.thresholds import tune_thresholds

__all__ = [
    "average_precision",
    "duality_gap",
    "error_rate",
    "label_ranking_average_precision",
    "ndcg_at_k",
    "objective",
    "precision_at_k",
    "recall_at_k",
    "roc_auc",
    "tune_thresholds",
]
