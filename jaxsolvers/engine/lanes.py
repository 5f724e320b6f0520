"""From a job to tiles in training, and from trained tiles to a result.

A state is a tuple of tiles of T rankers, whatever ran it: a mesh of D devices advances D of them
together, chunks advance them later. Nothing is ever joined into whole arrays but the weights, so
that a run holds its state once.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.engine.job import Job
from jaxsolvers.engine.sharding import everywhere, over_rankers, shards
from jaxsolvers.engine.state import TrainState
from jaxsolvers.engine.tile import Group, Lanes, begin
from jaxsolvers.engine.tile_questions import tile_offsets, tile_weights
from jaxsolvers.members import Array, Leaf
from jaxsolvers.protocol import beside


def open_group(job: Job, rankers: np.ndarray, lanes: Lanes | None = None) -> Group:
    """Some rankers and dummies like the last of them, by default before their first round."""
    count, size = len(rankers), job.group
    split = over_rankers(job.plan.mesh)

    def put(values: Any) -> Array:
        part = np.asarray(values)[rankers]
        dummies = np.repeat(part[-1:], size - count, axis=0)
        return jax.device_put(np.concatenate([part, dummies]), split)

    def number(leaf: Leaf) -> Array:
        if leaf.shared:
            return jax.device_put(leaf.value, everywhere(job.plan.mesh))
        return put(leaf.value)

    solver, dtype = job.solver.map_numbers(number), job.slabs.data.examples.dtype
    if lanes is None:
        lanes = begin(
            solver,
            put(job.live.astype(dtype)),
            put(job.at_zero.astype(dtype)),
            put(job.seeds),
            plan=job.plan,
            shape=job.shape,
            n_examples=job.slabs.data.n,
            dtype=dtype,
        )
    return Group(solver, jax.tree.map(put, job.assignment), lanes, count)


def restored(fresh: Lanes, job: Job, before: TrainState, start: int) -> Lanes:
    """The saved tiles from ranker ``start`` on, dummies fresh. What the user holds is copied."""
    first, n_devices = start // job.tile, job.group // job.tile
    saved = before.tiles()[first : first + n_devices]

    def alive(tile: int) -> np.ndarray:
        at = (first + tile) * job.tile
        part = np.atleast_1d(np.asarray(before.alive))[at : at + job.tile]
        return np.concatenate([part, np.ones(job.tile - len(part), bool)])

    def joined(whole: Array, *tiles: Any) -> Array:
        parts = []
        for i, shard in enumerate(shards(whole)):
            part = jnp.array(tiles[i], whole.dtype, copy=True) if i < len(tiles) else shard
            parts.append(jax.device_put(part, next(iter(shard.devices()))))
        return jax.make_array_from_single_device_arrays(whole.shape, whole.sharding, parts)

    state = jax.tree.map(joined, fresh.state, *saved)
    return Lanes(state, joined(fresh.alive, *(alive(i) for i in range(len(saved)))))


class Result:
    """Collects finished groups: their states as they lie, their weights in one array.

    With chunks the states are fetched to the host: what did not fit the device at once would not
    fit there afterwards. The weights go there with chunks and with several devices.
    """

    def __init__(self, job: Job, n_rankers: int, chunked: bool) -> None:
        self._job, self._n, self._chunked = job, n_rankers, chunked
        self._tiles: list[Any] = []
        self._coef: Any = None
        self.alive = np.zeros(n_rankers, bool)
        lead = job.shape[:-1]  # classes trained together
        self.intercept = np.zeros((n_rankers, *lead), job.slabs.data.examples.dtype)

    def take(self, group: Group, start: int) -> None:
        """Take the rankers of a group, the first of which is ranker ``start``."""
        job, stop = self._job, start + group.size
        weights = tile_weights(group.solver, group.lanes.state, plan=job.plan)
        weights, alive = _usable(weights, group.lanes)
        self.alive[start:stop] = np.asarray(alive)[: group.size]
        offsets = tile_offsets(group.solver, group.lanes.state, plan=job.plan)
        if offsets is not None:
            self.intercept[start:stop] = np.asarray(offsets)[: group.size]
        if job.slabs.data.intercept and job.slabs.data.kernel is not None:
            # sum_j alpha_j (k(x_j, x) + 1)
            self.intercept[start:stop] = np.asarray(weights.sum(axis=-1)[: group.size])
        elif job.slabs.data.intercept:
            self.intercept[start:stop] = np.asarray(weights[: group.size, ..., -1])
            weights = weights[..., :-1]
        self._place(weights, start, group.size)
        leaves, structure = jax.tree.flatten(group.lanes.state)
        parts = [shards(leaf) for leaf in leaves]
        for i in range(-(-group.size // job.tile)):
            tile = [np.asarray(part[i]) if self._chunked else part[i] for part in parts]
            self._tiles.append(jax.tree.unflatten(structure, tile))

    def _place(self, weights: Array, start: int, count: int) -> None:
        shape = (self._n, *weights.shape[1:])
        if self._chunked or self._job.group > self._job.tile:
            if self._coef is None:
                self._coef = np.empty(shape, weights.dtype)
            self._coef[start : start + count] = np.asarray(weights)[:count]
        elif count == self._n:
            self._coef = weights[:count]
        else:
            if self._coef is None:
                self._coef = jnp.zeros(shape, weights.dtype, device=weights.sharding)
            self._coef = _put_rows(self._coef, weights[:count], np.int32(start))

    def finish(self, epoch: int, seen: Any) -> tuple[Any, Array, TrainState]:
        """(coef (K, d), intercept (K,), state) after ``epoch`` epochs."""
        job = self._job
        self.intercept[~self.alive] = -np.inf
        state = TrainState(
            solver_state=tuple(self._tiles),
            last=None,
            alive=self.alive,
            epoch=np.int32(epoch),
            position=np.int32(0),
            key_data=job.words,
            settings=job.settings,
            seen=seen,
        )
        return self._coef, jnp.asarray(self.intercept), state


@jax.jit
def _usable(weights: Array, lanes: Lanes) -> tuple[Array, Array]:
    """Weights with those of lost rankers at 0, and which rankers are sound.

    The whole state must be finite: an accumulator at infinity would pass for a weight of 0.
    """
    sound = lanes.alive
    for leaf in (weights, *jax.tree.leaves(lanes.state)):
        sound = sound & jnp.all(jnp.isfinite(leaf).reshape(leaf.shape[0], -1), axis=1)
    return jnp.where(beside(sound, weights), weights, 0), sound


def _rows_put(whole: Array, rows: Array, at: Array) -> Array:
    return jax.lax.dynamic_update_slice_in_dim(whole, rows, at, 0)


_put_rows = jax.jit(_rows_put, donate_argnums=0)
