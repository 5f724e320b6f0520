"""What a finished run tells of the optimum: a number that no weights have an objective below."""

from __future__ import annotations

import jax
import numpy as np

from jaxsolvers.engine.job import Job
from jaxsolvers.engine.measure import dual_objective, tiles_of
from jaxsolvers.engine.sharding import over_rankers
from jaxsolvers.engine.tile import Group
from jaxsolvers.engine.tile_questions import tile_bound
from jaxsolvers.metrics.primal_dual import with_duals


def certificate(job: Job, group: Group, violations: np.ndarray) -> np.ndarray | None:
    """Lower bounds of the objectives of a group's rankers, (rankers,) float64; None without one.

    With duals it is the dual objective at them. Without, ``Solver.bound`` makes one of the number
    of ``violations`` where these stand for duals: every row was visited once in each of the
    epochs, the first of which began with the run, in full batches, and all rows weigh the same.

    Args:
      job: the run.
      group: rankers after it.
      violations: (rankers,) counted over all of its epochs.
    """
    data, solver = job.slabs.data, group.solver
    apart = data.own is not None or data.fold is not None
    if data.kernel is not None or apart or job.plan.together is not None:
        return None
    alive = np.asarray(group.lanes.alive)[: group.size]
    if with_duals(solver) is not None and solver.own_bias:
        return None  # the duals of one bias bound no other
    if with_duals(solver) is not None:
        found = [dual_objective(own, data) for own in tiles_of(group, job.tile)]
        return np.where(alive, np.concatenate(found)[: group.size], np.nan)
    equal = all(
        (np.asarray(values) == 1).all()
        for values in (data.weight, job.assignment.positive, job.assignment.negative)
    )
    whole = data.order != "uniform" and data.n % job.plan.batch_size == 0
    if job.before is not None or not equal or not whole or job.assignment.share is not None:
        return None
    counts = np.zeros(job.group)
    counts[: group.size] = violations
    split = over_rankers(job.plan.mesh)
    given = jax.device_put(counts.astype(data.examples.dtype), split)
    bound = tile_bound(group.solver, group.lanes, given, plan=job.plan)
    if bound is None:
        return None
    return np.where(alive, np.asarray(bound, np.float64)[: group.size], np.nan)
