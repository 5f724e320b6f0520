"""Finished tiles gathered into whole arrays."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.engine.job import Job
from jaxsolvers.engine.sharding import over_rankers
from jaxsolvers.engine.state import TrainState
from jaxsolvers.engine.tile import Group, tile_weights
from jaxsolvers.protocol import Array, Solver


class Store:
    """Collects finished tiles into whole arrays without ever holding a second state.

    On one device the arrays stay there. Chunks and meshes are fetched to the host: what does
    not fit one device while it trains would not fit there afterwards.
    """

    def __init__(self, job: Job, n_rankers: int, on_host: bool) -> None:
        self.job, self.n_rankers, self.on_host = job, n_rankers, on_host
        self.state: Any = None
        self.alive = np.zeros(n_rankers, bool)
        self.coef: Any = None
        self.intercept = np.zeros(n_rankers, job.slabs.examples.dtype)

    def take(self, groups: list[Group], start: int, stop: int) -> None:
        """Take the rankers start ... stop - 1 out of ``groups``."""
        self.alive[start:stop] = np.concatenate(
            [np.asarray(group.lanes.alive)[: group.count] for group in groups]
        )
        if self.on_host:
            at = start
            for group in groups:
                self._take_weights(self._weights(group.solver, group.lanes.state), at, group.count)
                at += group.count
        solvers = [group.solver for group in groups]
        counts = [group.count for group in groups]
        leaves = [jax.tree.leaves(group.lanes.state) for group in groups]
        shape = jax.tree.structure(groups[0].lanes.state)
        groups.clear()
        if self.state is None:
            self.state = [None] * shape.num_leaves
        for i in range(shape.num_leaves):
            at = start
            for tile, count in zip(leaves, counts, strict=True):
                self.state[i] = self._placed(self.state[i], tile[i], at, count)
                tile[i] = None
                at += count
        if not self.on_host:
            self.whole = jax.tree.unflatten(shape, self.state)
            at = start
            for solver, count in zip(solvers, counts, strict=True):
                self._take_weights(self._tile_weights(solver, at), at, count)
                at += count
        self.shape = shape

    def _weights(self, solver: Solver, state: Any) -> Array:
        return tile_weights(solver, state, plan=self.job.plan)

    def _tile_weights(self, solver: Solver, at: int) -> Array:
        """A tile's weights from the whole state, padded to T rows: the program has one shape."""
        size = self.job.group

        def cut(leaf: Array) -> Array:
            part = leaf[at : at + size]
            missing = size - part.shape[0]
            if missing:
                part = jnp.concatenate([part, jnp.repeat(part[-1:], missing, axis=0)])
            return jax.device_put(part, over_rankers(self.job.plan.mesh))

        return self._weights(solver, jax.tree.map(cut, self.whole))

    def _take_weights(self, weights: Array, at: int, count: int) -> None:
        d = self.job.slabs.examples.d
        alive = jnp.asarray(self.alive[at : at + count])
        weights, fine = _usable(weights[:count], alive)
        self.alive[at : at + count] = np.asarray(fine)
        if self.job.slabs.intercept:
            self.intercept[at : at + count] = np.asarray(weights[:, d])
            weights = weights[:, :d]
        self.coef = self._placed(self.coef, weights, at, count)

    def _placed(self, whole: Any, tile: Array, at: int, count: int) -> Any:
        shape = (self.n_rankers, *tile.shape[1:])
        if self.on_host:
            whole = np.empty(shape, tile.dtype) if whole is None else whole
            whole[at : at + count] = np.asarray(tile)[:count]
            return whole
        if count == self.n_rankers:
            return tile if tile.shape[0] == count else tile[:count]
        if whole is None:
            whole = jnp.zeros(shape, tile.dtype, device=tile.sharding)
        return _place(whole, tile[:count], np.int32(at))

    def result(self) -> tuple[Any, Array, TrainState]:
        """(coef (K, d), intercept (K,), state)."""
        self.intercept[~self.alive] = -np.inf
        job = self.job
        state = TrainState(
            solver_state=jax.tree.unflatten(self.shape, self.state),
            last=None,
            alive=self.alive,
            epoch=np.int32(job.epochs.stop),
            position=np.int32(0),
            key_data=job.words,
            settings=job.settings,
        )
        return self.coef, jnp.asarray(self.intercept), state


def _usable_weights(weights: Array, alive: Array) -> tuple[Array, Array]:
    fine = alive & jnp.all(jnp.isfinite(weights), axis=1)
    return jnp.where(fine[:, None], weights, 0), fine


_usable = jax.jit(_usable_weights)


def _place_rows(whole: Array, tile: Array, at: Array) -> Array:
    return jax.lax.dynamic_update_slice_in_dim(whole, tile, at, 0)


_place = jax.jit(_place_rows, donate_argnums=0)
