"""What else goes into the history at the end of every epoch."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.csr import Csr
from jaxsolvers.engine.slabs import Data
from jaxsolvers.engine.stream import Stream
from jaxsolvers.engine.targets import Targets
from jaxsolvers.engine.tile import Group, Plan, tile_theory
from jaxsolvers.members import Array, Leaf
from jaxsolvers.metrics.primal_dual import Rankers, primal_and_dual, with_duals
from jaxsolvers.protocol import Problem, Solver

RECORDS = ("theory", "objective", "gap")
MEASURED = {"objective", "gap"}  # on the rows


def check_record(
    record: Any, solver: Solver, data: Data, targets: Targets, shape: tuple[int, ...]
) -> tuple[str, ...]:
    """What is kept of every epoch; a ValueError that names ``record`` if that cannot be."""
    accepted = ", ".join(map(repr, RECORDS))
    if not isinstance(record, list | tuple) or any(name not in RECORDS for name in record):
        raise ValueError(
            f"record must be a list or tuple of names among {accepted}, got {record!r}"
        )
    dtype = data.examples.dtype

    def one(solver: Solver) -> dict[str, Array]:
        zero = jnp.zeros((), dtype)
        return solver.theory(solver.init(Problem(shape, 1, zero, zero), dtype))

    # A solver may have no number of its own: its rate is a schedule.
    mapped = jax.vmap(one, in_axes=(solver.ranker_axes(),), axis_size=targets.n_rankers)
    told = "theory" not in record or jax.eval_shape(mapped, solver)
    name = type(solver).__name__
    if not told:
        raise ValueError(
            f"record must not hold 'theory' for {name}, whose state alone tells "
            f"nothing (see js.theory), got {record!r}"
        )
    if "gap" in record and with_duals(solver) is None:
        raise ValueError(f"record must not hold 'gap' for {name} without duals, got {record!r}")
    measured = MEASURED.intersection(record)
    if measured and isinstance(data.examples.values, Stream):
        raise ValueError(f"record must hold 'theory' alone for a source, got {record!r}")
    if measured and (data.kernel is not None or solver.own_vectors):
        raise ValueError(
            "record must hold 'theory' alone for a kernel (js.metrics.objective measures it), "
            f"got {record!r}"
        )
    if measured and targets.together is not None:
        raise ValueError(
            "record must hold 'theory' alone for classes that are one problem "
            f"(js.metrics.objective measures it), got {record!r}"
        )
    return tuple(record)


def recorded(
    record: tuple[str, ...], groups: list[Group], data: Data, plan: Plan
) -> dict[str, np.ndarray]:
    """What is to be kept of a chunk's rankers, (rankers,) each, without the dummies."""
    parts = [_of_group(record, group, data, plan) for group in groups]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _of_group(
    record: tuple[str, ...], group: Group, data: Data, plan: Plan
) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    if "theory" in record:
        told = tile_theory(group.solver, group.lanes, plan=plan)
        found |= {name: np.asarray(value, np.float64) for name, value in told.items()}
    if MEASURED.intersection(record):
        values = _measured(group, data)
        gap = None if values.dual is None else values.primal - values.dual
        both = {"objective": values.primal, "gap": gap}
        alive = np.asarray(group.lanes.alive)[: group.size]
        found |= {name: np.where(alive, both[name], np.nan) for name in record if name in both}
    return {name: value[: group.size] for name, value in found.items()}


def _measured(group: Group, data: Data) -> Any:
    """Both objectives of a group's rankers on the rows of the run."""
    size, assignment = group.size, group.assignment

    def cut(leaf: Leaf) -> Array:
        return leaf.value if leaf.shared else leaf.value[:size]

    code, positive, negative = (np.asarray(field)[:size] for field in assignment[:3])

    def target_of(at: slice) -> Array:
        if isinstance(data.target, Csr):
            signs = np.where(data.target.take(at).dense(np.int8)[:, code], 1, -1)
            return jnp.asarray(signs.T, data.examples.dtype)
        kind = np.int32 if data.target.dtype == np.int32 else data.examples.dtype
        return jnp.asarray(data.target[at], kind)

    state = jax.tree.map(lambda leaf: leaf[:size], group.lanes.state)
    rankers = Rankers(group.solver.map_numbers(cut), state, code, positive / negative)
    return primal_and_dual(rankers, data.examples.values, target_of, data.weight, data.intercept)
