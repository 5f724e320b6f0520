"""Objectives, losses and duals of a group of rankers in training, on any rows."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.csr import Csr
from jaxsolvers.engine.sharding import shards
from jaxsolvers.engine.slabs import Data
from jaxsolvers.engine.tile import Group, Plan
from jaxsolvers.members import Array, Leaf
from jaxsolvers.metrics.objectives import penalties, penalty_and_loss
from jaxsolvers.metrics.primal_dual import (
    Rankers,
    duals_of,
    offsets_of,
    primal_and_dual,
    rankers_weights,
    with_duals,
)
from jaxsolvers.models import LinearModel
from jaxsolvers.models.kernel import kernel_model
from jaxsolvers.protocol import Loss, Solver, State

_NUMBERS = 1 << 22  # of a block of duals


def measured(
    given: Solver, group: Group, data: Data, trained: Data, plan: Plan, tile: int, gap: bool
) -> dict[str, np.ndarray]:
    """The "loss" and the "objective" of a group's rankers on some rows, and the "gap" if asked.

    Args:
      given: the solver as the user made it.
      group: the rankers.
      data: the rows.
      trained: those of the training, the same ones if the gap is asked for.
      plan: of the run.
      tile: T; whole tiles are measured, so that the bits do not depend on who is beside whom.
      gap: whether the solver's duals are wanted.

    Returns:
      (rankers,) float64 each, without the dummies.
    """
    by_model = data.kernel is not None or plan.together is not None
    parts = [
        _by_model(given, own, data, trained, gap) if by_model else _by_rows(own, data, gap)
        for own in tiles_of(group, tile)
    ]
    return {name: np.concatenate([part[name] for part in parts])[: group.size] for name in parts[0]}


def tiles_of(group: Group, tile: int) -> list[Group]:
    """The tiles of a group that hold rankers, each on one device, dummies among its rankers."""
    device = shards(group.lanes.alive)[0].device

    def at(leaf: Array, i: int) -> Array:
        return jax.device_put(shards(leaf)[i], device)

    def cut(i: int) -> Group:
        solver = group.solver.map_numbers(
            lambda leaf: at(leaf.value, 0 if leaf.shared else i),
        )
        parts = jax.tree.map(lambda leaf: at(leaf, i), (group.assignment, group.lanes))
        return Group(solver, parts[0], parts[1], tile)

    return [cut(i) for i in range(-(-group.size // tile))]


def _by_rows(group: Group, data: Data, gap: bool) -> dict[str, np.ndarray]:
    positive, negative = (np.asarray(field) for field in group.assignment[1:3])
    rankers = Rankers(group.solver, group.lanes.state, _codes(group), positive / negative)

    def target_of(at: slice) -> Array:
        return _targets(group, data, at)

    values = primal_and_dual(
        rankers, data.examples.values, target_of, data.weight, data.intercept, bounded=gap
    )
    found = {"loss": values.loss, "objective": values.primal}
    return found if values.dual is None else found | {"gap": values.primal - values.dual}


def dual_objective(group: Group, data: Data, penalty: np.ndarray | None = None) -> np.ndarray:
    """``sum_i p_i d(a_i) - penalty(w)`` of rankers whose solver keeps duals, (rankers,) float64.

    ``w`` is what the solver keeps, equal to ``w(a)`` up to rounding: no row is touched. With a
    kernel ``penalty`` is given.
    """
    numbers, state = with_duals(_numbers(group)), _state(group)
    duals = np.asarray(duals_of(state))
    while hasattr(state, "inner"):
        state = state.inner
    if penalty is None:
        penalty = np.asarray(penalties(numbers, rankers_weights(numbers, state)), np.float64)
    count, n = duals.shape
    positive, negative = (np.asarray(field)[:count] for field in group.assignment[1:3])
    total, term = np.zeros((2, count))
    size = min(n, max(1, _NUMBERS // count))
    for start in range(0, n, size):
        at = slice(start, min(start + size, n))
        missing = size - (at.stop - start)
        target = _targets(group, data, at)
        sums = _dual_sums(
            numbers.loss,
            np.pad(duals[:, at], [(0, 0), (0, missing)]),
            jnp.pad(target, [(0, 0)] * (target.ndim - 1) + [(0, missing)]),
            _codes(group),
            np.pad(data.weight[at].astype(duals.dtype), (0, missing)),
            positive / negative,
        )
        total += np.asarray(sums[0], np.float64)
        term += np.asarray(sums[1], np.float64)
    return term / total - penalty


@jax.jit
def _dual_sums(
    loss: Loss, duals: Array, target: Array, codes: Array, weight: Array, positive: Array
) -> tuple[Array, Array]:
    """Sums over the rows of weights and of dual terms, (T,)."""

    def one(loss: Loss, dual: Array, own: Array, code: Array, factor: Array) -> Any:
        if own.dtype == jnp.int32:
            own = jnp.where(own == code, 1, -1).astype(dual.dtype)
        p = jnp.where(own > 0, factor, 1) * weight
        return jnp.sum(p), jnp.sum(p * loss.dual_term(own, dual))  # type: ignore[attr-defined]

    axes = (loss.ranker_axes(), 0, 0 if target.ndim == 2 else None, 0, 0)
    return jax.vmap(one, in_axes=axes)(loss, duals, target, codes, positive)


def _state(group: Group) -> State:
    return jax.tree.map(lambda leaf: leaf[: group.size], group.lanes.state)


def _codes(group: Group) -> np.ndarray:
    return np.asarray(group.assignment.code)[: group.size]


def _numbers(group: Group) -> Solver:
    """The solver with the numbers of the rankers, without the dummies."""

    def cut(leaf: Leaf) -> Array:
        return leaf.value if leaf.shared else leaf.value[: group.size]

    return group.solver.map_numbers(cut)


def _targets(group: Group, data: Data, at: slice) -> Array:
    """Targets of some rows: codes or floats for all rankers (B,), or signs (rankers, B)."""
    if isinstance(data.target, Csr):
        dense = data.target.take(at).dense(np.int8)[:, _codes(group)]
        return jnp.asarray(np.where(dense, 1, -1).T, data.examples.dtype)
    kind = np.int32 if data.target.dtype == np.int32 else data.examples.dtype
    return jnp.asarray(data.target[at], kind)


def _by_model(
    given: Solver, group: Group, data: Data, trained: Data, gap: bool
) -> dict[str, np.ndarray]:
    """:func:`measured` of kernels, and of classes that are one problem: through their model."""
    coef: Any = np.asarray(rankers_weights(group.solver, group.lanes.state))
    alive = np.asarray(group.lanes.alive)
    coef = np.where(alive.reshape(-1, *(1,) * (coef.ndim - 1)), coef, 0)
    bias = offsets_of(group.solver, group.lanes.state)
    model: Any = None
    target: Any = data.target

    def own(leaf: Leaf) -> Any:
        return leaf.value if jnp.ndim(leaf.value) <= leaf.spec.rank else leaf.value[_codes(group)]

    if trained.kernel is None:
        coef, constant = _split(coef[0], data.intercept)
        constant = constant if bias is None else np.asarray(bias)[0]
        model = LinearModel(jnp.asarray(coef), jnp.asarray(constant), None)
    else:
        constant = coef.sum(axis=1) * data.intercept
        if bias is not None:
            constant = constant + np.where(alive, np.asarray(bias), 0)
        single = not isinstance(target, Csr) and target.dtype != np.int32
        if single:
            coef, constant = coef[0], constant[0]
        else:
            signs = np.asarray(_targets(group, data, slice(0, data.examples.n)))
            if signs.ndim == 1:
                signs = np.where(signs == _codes(group)[:, None], 1, -1)
            target, given = signs.T, given.map_numbers(own)
        rows = trained.examples.values
        model = kernel_model(given.kernel, rows, coef, jnp.asarray(constant), None, "label")
    parts = penalty_and_loss(given, model, data.examples.values, target, data.weight)
    penalty, loss = (np.asarray(part, np.float64) for part in parts)
    found = {"loss": loss, "objective": penalty + loss}
    if gap:
        found["gap"] = penalty + loss - dual_objective(group, trained, penalty)
    return found


def _split(coef: np.ndarray, intercept: bool) -> tuple[np.ndarray, np.ndarray]:
    if intercept:
        return coef[:, :-1], coef[:, -1]
    return coef, np.zeros(len(coef), coef.dtype)
