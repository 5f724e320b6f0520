"""The end of an epoch for solvers that want all rows scored: ``Solver.finish``."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.engine.job import Job
from jaxsolvers.engine.slabs import Slabs
from jaxsolvers.engine.tile import Group
from jaxsolvers.engine.tile_questions import Scored, tile_finish, tile_scores

SCORES = 1 << 26  # of some rankers with all rows, at most, that are kept at a time


def finished(job: Job, groups: list[Group], epoch: int) -> list[Group]:
    """The groups at the end of an epoch."""
    when = job.solver.finishes
    last = epoch == job.epochs[-1] or job.measures.names
    if when == "never" or (when == "run" and not last):
        return groups
    # In file order, whatever that of the rounds: every row comes once, and in its place.
    slabs = dataclasses.replace(job.slabs, data=dataclasses.replace(job.slabs.data, order="cyclic"))
    count = job.tile
    while count > 1 and count * job.slabs.data.n > SCORES:
        count //= 2
    for first in range(0, min(job.tile, max(group.size for group in groups)), count):
        groups = [_some_finished(job, group, slabs, first, count) for group in groups]
    return groups


def _some_finished(job: Job, group: Group, slabs: Slabs, first: int, count: int) -> Group:
    """A group after ``finish`` of ``count`` rankers of each tile, from ``first`` on."""
    at: dict[str, Any] = {"first": np.int32(first), "plan": job.plan, "count": count}
    parts = []
    for slab, rows in slabs.epoch(0):
        if rows:
            scored = tile_scores(group.solver, group.lanes, group.assignment, slab, **at)
            parts.append(jax.tree.map(lambda a, rows=rows: a[:, :rows], scored))
    whole: Scored = jax.tree.map(lambda *a: jnp.concatenate(a, axis=1), *parts)
    return group._replace(lanes=tile_finish(group.solver, group.lanes, whole, **at))
