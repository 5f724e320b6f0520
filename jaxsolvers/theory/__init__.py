"""The papers' guarantees, to hold a run against: bounds, lemmas, hindsight and recorded runs.

Functions are written for ONE ranker (``record_run`` and ``regret`` also take K of them at once)
and can be jitted, mapped and differentiated; no value and no derivative is NaN where a coordinate
has no history. Letters: ``d`` features, ``T`` rounds, ``k`` rows of a round, ``n`` rows.
"""

from jaxsolvers.solvers.guarantees import (
    gamma,
    pegasos_bound,
    regret_bound_fobos,
    regret_bound_rda,
    trace_root,
)
from jaxsolvers.theory.hindsight import BestMetric, best_diagonal_metric, best_full_metric
from jaxsolvers.theory.lemmas import Inequality, lemma_4, lemma_10
from jaxsolvers.theory.recording import Recording, record_run, regret
from jaxsolvers.theory.states import of_state

__all__ = [
    "BestMetric",
    "Inequality",
    "Recording",
    "best_diagonal_metric",
    "best_full_metric",
    "gamma",
    "lemma_4",
    "lemma_10",
    "of_state",
    "pegasos_bound",
    "record_run",
    "regret",
    "regret_bound_fobos",
    "regret_bound_rda",
    "trace_root",
]
