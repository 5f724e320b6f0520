"""Metrics for classification and ranking, one ranker per column.

Shapes: ``n`` rows (the ranked items), ``K`` rankers. A metric is a pure function of ONE ranker,
mapped over the columns and compiled once per shape. Values are checked before tracing; inside
``jax.jit`` or ``jax.vmap``, where they are unknown, a ranker whose input would be refused or whose
metric is undefined gets NaN without a warning.
"""

from jaxsolvers.metrics.classification import error_rate
from jaxsolvers.metrics.objectives import objective
from jaxsolvers.metrics.ranking import average_precision, precision_at_k

__all__ = ["average_precision", "error_rate", "objective", "precision_at_k"]
