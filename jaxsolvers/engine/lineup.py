"""The rankers of a chunk: those in training in as few tiles as hold them, the others put away.

T is fixed, and a lane's bits depend neither on its place in the tile nor on its neighbours: when
enough rankers are done, the others move into fewer tiles and go on as if nothing had happened.
What a done ranker's state was at its last epoch is kept on the host until the chunk ends.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.engine.job import Job
from jaxsolvers.engine.lanes import open_group, restored
from jaxsolvers.engine.sharding import over_rankers, shards
from jaxsolvers.engine.sizes import next_power_of_two
from jaxsolvers.engine.tile import Group, Lanes
from jaxsolvers.members import Array


class Lineup:
    """Rankers start ... stop - 1 of a job."""

    def __init__(self, job: Job, start: int, stop: int) -> None:
        self._job, self._start, self._stop = job, start, stop
        self._homes = [
            np.arange(at, min(at + job.group, stop)) for at in range(start, stop, job.group)
        ]
        self.groups = [open_group(job, home) for home in self._homes]
        if job.before is not None:
            for i, home in enumerate(self._homes):
                lanes = restored(self.groups[i].lanes, job, job.before, int(home[0]))
                self.groups[i] = self.groups[i]._replace(lanes=lanes)
        self._rankers = list(self._homes)  # of each group
        self._live = [np.ones(len(home), bool) for home in self._homes]
        self._away: list[tuple[np.ndarray, Any]] = []  # (rankers, their lanes on the host)

    @property
    def count(self) -> int:
        """Rankers in training."""
        return sum(int(live.sum()) for live in self._live)

    def places(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Of each group the lanes in training, and their rankers counted from ``start``."""
        return [
            (np.flatnonzero(live), rankers[live] - self._start)
            for live, rankers in zip(self._live, self._rankers, strict=True)
        ]

    def put_away(self, done: np.ndarray) -> None:
        """Take the rankers that are ``done``, (stop - start,) bool, out of training."""
        for i, (lanes, rankers) in enumerate(self.places()):
            now = done[rankers]
            if now.any():
                taken = _take(self.groups[i].lanes, lanes[now])
                self._away.append((rankers[now] + self._start, taken))
                self._live[i][lanes[now]] = False
        if -(-self.count // self._job.group) < len(self.groups):
            self._compact()

    def _compact(self) -> None:
        kept = [
            (rankers + self._start, _take(group.lanes, lanes))
            for group, (lanes, rankers) in zip(self.groups, self.places(), strict=True)
            if len(lanes)
        ]
        self.groups, self._rankers, self._live = [], [], []
        if not kept:
            return
        rankers, lanes = _joined(kept)
        for first in range(0, len(rankers), self._job.group):
            own = slice(first, first + self._job.group)
            self.groups.append(self._group(rankers[own], _cut(lanes, own)))
            self._rankers.append(rankers[own])
            self._live.append(np.ones(len(rankers[own]), bool))

    def home(self) -> list[tuple[Group, int]]:
        """All rankers where they started, as (group, its first ranker); ends the lineup."""
        if not self._away:
            return [(g, int(home[0])) for g, home in zip(self.groups, self._homes, strict=True)]
        self.put_away(np.ones(self._stop - self._start, bool))
        _, lanes = _joined(self._away)
        self._away = []
        found = []
        for home in self._homes:
            own = slice(int(home[0]) - self._start, int(home[-1]) + 1 - self._start)
            found.append((self._group(home, _cut(lanes, own)), int(home[0])))
        return found

    def _group(self, rankers: np.ndarray, lanes: Lanes) -> Group:
        """A group of these rankers, dummies like the last of them."""
        job, missing = self._job, self._job.group - len(rankers)
        split = over_rankers(job.plan.mesh)

        def put(leaf: np.ndarray) -> Array:
            whole = np.concatenate([leaf, np.repeat(leaf[-1:], missing, axis=0)])
            return jax.device_put(whole, split)

        return open_group(job, rankers, jax.tree.map(put, lanes))


def _take(lanes: Lanes, at: np.ndarray) -> Lanes:
    """Some lanes, ascending, on the host. By a program: views of arrays would bar donating them."""
    pieces = [shards(leaf) for leaf in jax.tree.leaves(lanes)]
    size = len(lanes.alive) // len(pieces[0])
    found = []
    for device in np.unique(at // size):
        own = at[at // size == device] - device * size
        index = np.zeros(next_power_of_two(len(own)), np.int32)  # few sizes, few programs
        index[: len(own)] = own
        rows = _rows([piece[device] for piece in pieces], index)
        found.append([np.asarray(leaf)[: len(own)] for leaf in rows])
    leaves = [np.concatenate(parts) for parts in zip(*found, strict=True)]
    return jax.tree.unflatten(jax.tree.structure(lanes), leaves)


@jax.jit
def _rows(leaves: list[Array], index: Array) -> list[Array]:
    return [jnp.take(leaf, index, axis=0, mode="clip") for leaf in leaves]


def _cut(lanes: Lanes, at: slice) -> Lanes:
    return jax.tree.map(lambda leaf: leaf[at], lanes)


def _joined(parts: list[tuple[np.ndarray, Any]]) -> tuple[np.ndarray, Lanes]:
    """All rankers in ascending order, with their lanes."""
    rankers = np.concatenate([part[0] for part in parts])
    order = np.argsort(rankers)
    lanes = jax.tree.map(
        lambda *leaves: np.concatenate(leaves)[order], *(part[1] for part in parts)
    )
    return rankers[order], lanes
