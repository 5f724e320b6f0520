"""What a solver does over all rows before an epoch: its surveys, run like epochs."""

from __future__ import annotations

import jax

from jaxsolvers.engine.job import Job
from jaxsolvers.engine.tile import Group, advance, through_survey
from jaxsolvers.protocol import Info


def survey(job: Job, groups: list[Group], epoch: int) -> list[Group]:
    """The groups after the surveys that their solver makes before an epoch, if any."""
    for number in range(len(job.solver.surveys())):
        looks = [group.solver.surveys()[number] for group in groups]
        lanes = [
            through_survey(look, group.lanes, plan=job.plan, opens=True)
            for look, group in zip(looks, groups, strict=True)
        ]
        waiting: list[Info] = []
        for slab, _ in job.slabs.epoch(epoch, survey=True):
            infos = []
            for i, group in enumerate(groups):
                lanes[i], info = advance(looks[i], lanes[i], group.assignment, slab, plan=job.plan)
                infos.append(info)
            jax.block_until_ready(waiting)  # no more than two slabs are under way
            waiting = infos
        groups = [
            group._replace(lanes=through_survey(look, own, plan=job.plan, opens=False))
            for look, own, group in zip(looks, lanes, groups, strict=True)
        ]
    return groups
