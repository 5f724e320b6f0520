"""What else goes into the history at the end of every epoch, and what a stopping rule watches."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.engine.evaluation import Evaluation
from jaxsolvers.engine.measure import measured
from jaxsolvers.engine.slabs import Data
from jaxsolvers.engine.stopping import Rule, check_rule
from jaxsolvers.engine.stream import Stream
from jaxsolvers.engine.targets import Targets
from jaxsolvers.engine.tile import Group, Plan
from jaxsolvers.engine.tile_questions import tile_theory
from jaxsolvers.members import Array
from jaxsolvers.metrics.primal_dual import with_duals
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
    passes = MEASURED.intersection(record)
    if passes and isinstance(data.examples.values, Stream):
        raise ValueError(f"record must hold 'theory' alone for a source, got {record!r}")
    if passes and (data.kernel is not None or solver.own_vectors):
        raise ValueError(
            "record must hold 'theory' alone for a kernel (js.metrics.objective measures it), "
            f"got {record!r}"
        )
    if passes and targets.together is not None:
        raise ValueError(
            "record must hold 'theory' alone for classes that are one problem "
            f"(js.metrics.objective measures it), got {record!r}"
        )
    return tuple(record)


class Measures(NamedTuple):
    """What is measured at the end of every epoch."""

    names: tuple[str, ...]  # of RECORDS, and "eval_loss"
    rule: Rule | None
    data: Data  # the rows of the run
    held_out: Data | None  # those of eval_set
    given: Solver  # as the user made it, numbers cast
    tile: int  # T


def check_measures(
    solver: Solver,
    data: Data,
    targets: Targets,
    record: tuple[str, ...],
    tol: Any,
    patience: Any,
    evaluation: Evaluation | None,
    tile: int,
) -> Measures:
    """What ``record``, ``tol`` and ``eval_set`` ask for together.

    Raises:
      ValueError: a tol or patience that is none; what cannot be watched; the message names tol or
        eval_set.
    """
    # A search for a bias has duals of another bias in each epoch: their gaps do not compare.
    own = "objective" if with_duals(solver) is None or solver.own_bias else "gap"
    rule = check_rule(tol, patience, own if evaluation is None else "eval_set")
    if rule is not None and evaluation is None and isinstance(data.examples.values, Stream):
        raise ValueError(
            f"tol must be None for a source without eval_set (the {own} costs a pass), got {tol!r}"
        )
    argument = "eval_set" if evaluation is not None else "tol" if rule is not None else None
    if argument and solver.own_vectors:
        raise ValueError(
            f"{argument} must be None for {type(solver).__name__}, whose support vectors change "
            "from round to round"
        )
    weighed = np.ndim(targets.positive_weight) > 0 or float(targets.positive_weight) != 1
    if argument and weighed and (targets.together is not None or data.kernel is not None):
        raise ValueError(
            f"{argument} must be None beside positive_weight where a kernel or a regularizer ties "
            "rankers or rows together"
        )
    if argument and data.kernel is not None and data.kernel.precomputed:
        raise ValueError(f"{argument} must be None for js.kernels.Precomputed")
    held_out = None
    if evaluation is not None:
        held_out = dataclasses.replace(
            data,
            examples=evaluation.examples,
            target=evaluation.target,
            weight=evaluation.weight,
            n=evaluation.examples.n,
        )
        record = (*record, "eval_loss")
    if rule is not None:
        record = (*record, *(name for name in rule.watched if name not in record))
    return Measures(record, rule, data, held_out, solver, tile)


def recorded(measures: Measures, group: Group, plan: Plan) -> dict[str, np.ndarray]:
    """What is to be kept of the rankers of a group, (rankers,) each, without the dummies."""
    found: dict[str, np.ndarray] = {}
    names, size = measures.names, group.size
    if not names:  # nothing waits for the device: the next epoch is gathered meanwhile
        return found
    if "theory" in names:
        told = tile_theory(group.solver, group.lanes, plan=plan)
        found |= {name: np.asarray(value, np.float64)[:size] for name, value in told.items()}
    alive = np.asarray(group.lanes.alive)[:size]
    given, data, tile = measures.given, measures.data, measures.tile
    if MEASURED.intersection(names):
        both = measured(given, group, data, data, plan, tile, "gap" in names)
        found |= {name: np.where(alive, both[name], np.nan) for name in names if name in MEASURED}
    if measures.held_out is not None:
        loss = measured(given, group, measures.held_out, data, plan, tile, gap=False)["loss"]
        found["eval_loss"] = np.where(alive, loss, np.nan)
    return found
