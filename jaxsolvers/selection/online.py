"""Choosing numbers while training: progressive validation."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from jaxsolvers.engine import inputs
from jaxsolvers.engine.inputs import Examples
from jaxsolvers.engine.job import Options
from jaxsolvers.engine.run import make_model, train, untrained
from jaxsolvers.engine.stream import is_source, read_given
from jaxsolvers.engine.targets import Copies
from jaxsolvers.protocol import Problem, Solver
from jaxsolvers.selection.grid import Grid, grid_of
from jaxsolvers.selection.result import GridResult, choose
from jaxsolvers.selection.scoring import SUMS, Scores, Trained, check_scoring, summed
from jaxsolvers.selection.task import Task, check_per_class, task_of

__all__ = ["online_selection"]


def online_selection(
    solver: Solver,
    batches: Iterable[Any],
    *,
    zip: bool = False,
    per_class: bool = False,
    scoring: str | None = None,
    classes: Any = None,
    positive_weight: Any = None,
    batch_size: int | None = None,
    order: str = "cyclic",
    key: Any = None,
    intercept: str | None = None,
    block_size: int | None = None,
    mesh: Mesh | None = None,
) -> GridResult:
    """Train every point of a grid on a stream in one pass, and keep the best by what it foresaw.

    Each batch is first scored by every candidate and then trained on: a candidate's score is the
    mean over all rows of its losses on them before it had seen their batch (progressive
    validation; Blum, Kalai and Langford, COLT 1999). No row is read twice, none is held out, and
    the best candidate is trained already.

    Args:
      solver: with one number or more given as an array, as in ``js.grid_search``.
      batches: an iterable of ``(X, y)`` or ``(X, y, sample_weight)``, or a ``js.data`` source;
        batches of one size share their programs. Weights are divided by their mean over the batch.
      zip, per_class: as in ``js.grid_search``; with per_class every ranker of the model is that of
        its class's best candidate.
      scoring: "loss" (the default: the solver's own) or "error_rate".
      classes: all labels, where the first batch may lack some.
      positive_weight: as in ``js.fit_one_vs_rest``.
      batch_size: rows per round, at most those of the smallest batch; 1 by default.
      order: within a batch, as in ``js.fit``; "cyclic" by default.
      key, intercept, block_size, mesh: as in ``js.fit``.

    Returns:
      A GridResult whose ``fold_scores`` and ``class_scores`` are those of the batches; the model
      is the best candidate as the stream left it.

    Raises:
      ValueError: bad input; the message names the argument. A solver that keeps numbers for each
        row (SDCA) or has a kernel cannot go on from batch to batch.
      FloatingPointError: every candidate lost a ranker.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> X, y = js.data.blobs(400, 20, n_classes=4)
      >>> stream = [(X[i : i + 100], y[i : i + 100]) for i in range(0, 400, 100)]
      >>> found = js.online_selection(js.AdaGradFOBOS(np.array([1e-6, 0.3])), stream)
      >>> found.best.learning_rate, found.table["fold_scores"].shape
      (0.3, (2, 4))
    """
    grid = grid_of(solver, zip)
    if not is_source(batches) and not hasattr(batches, "__iter__"):
        raise ValueError(f"batches must be an iterable of (X, y), got {type(batches).__name__}")
    _check_goes_on(grid)
    options = Options(
        batch_size=batch_size,
        order=order,
        key=key,
        intercept=intercept,
        positive_weight=positive_weight,
        block_size=block_size,
        mesh=mesh,
    )
    shared: list[np.ndarray] = []
    by_class: list[np.ndarray] = []
    totals: list[float] = []
    for batch in batches:
        if not isinstance(batch, (tuple, list)) or len(batch) not in (2, 3):
            raise ValueError(
                f"batches must hold (X, y) or (X, y, sample_weight), got {type(batch).__name__}"
            )
        X, y, weights = (*batch, None)[:3]
        examples, y, _ = read_given(X, y, weights)
        first = not shared
        task = task_of(grid.at(0), y, examples, classes, options)
        if first:
            check_per_class(per_class, task)
            name = check_scoring(scoring or "loss", solver.loss, task.targets, SUMS)
        options = dataclasses.replace(options, sample_weight=weights)
        targets = dataclasses.replace(
            task.targets,
            n_rankers=task.n_rankers * grid.points,
            copies=Copies(grid.points),
        )
        candidates = grid.candidates(task.n_rankers)
        if first:
            coef, intercepts = untrained(candidates, examples, targets, options)
        weight = inputs.check_sample_weight(weights, examples.n)
        found = _scored(grid, task, examples, weight, name, coef, intercepts)
        shared.append(found[0])
        if found[1] is not None:
            by_class.append(found[1])
        totals.append(float(weight.sum()))
        coef, intercepts, state, _ = train(candidates, examples, targets, options)
        options = dataclasses.replace(options, state=state)
    if not shared:
        raise ValueError("batches must hold at least one batch, got none")
    lost = ~np.asarray(state.alive).reshape(grid.points, 1, task.n_rankers)
    per_batch = np.stack(by_class, axis=1) if by_class else None
    scores = Scores(np.stack(shared, axis=1), per_batch, lost)
    choice = choose(grid, scores, name, np.array(totals))
    best_per_class = None if choice.per_class is None else grid.at(choice.per_class)
    lead = (grid.points, task.n_rankers)
    coef, intercepts = (a.reshape(*lead, *a.shape[1:]) for a in (coef, intercepts))
    at: Any = choice.best
    if per_class and choice.per_class is not None:
        at = (choice.per_class, np.arange(task.n_rankers))
    best = grid.at(choice.best)
    model = task.model(best, examples, coef[at], intercepts[at])
    return GridResult(choice.table, best, best_per_class, model)


def _check_goes_on(grid: Grid) -> None:
    """Raise a ValueError for a solver whose state belongs to the rows of one batch."""
    solver = grid.at(0)
    name = type(solver).__name__
    if solver.kernel is not None:
        raise ValueError(f"solver must have no kernel to go from batch to batch, got {name}")
    if solver.finishes != "never" or solver.surveys():
        raise ValueError(
            f"solver must not look at all rows again to go from batch to batch, got {name}"
        )
    dtype = np.dtype(np.float32)
    state = jax.eval_shape(
        lambda: solver.cast(dtype).init(Problem((2,), 1, np.float32(1), np.float32(1)), dtype)
    )
    names = jax.tree.leaves(state.axes, is_leaf=lambda node: type(node) is tuple)
    if any("example" in axes for axes in names):
        raise ValueError(
            f"solver must keep no numbers of single rows to go from batch to batch, got {name}"
        )


def _scored(
    grid: Grid,
    task: Task,
    examples: Examples,
    weight: np.ndarray,
    scoring: str,
    coef: Any,
    intercept: Any,
) -> tuple[np.ndarray, np.ndarray | None]:
    """A batch under all candidates as they are, (P,) and (P, K)."""
    flat = coef.reshape(-1, coef.shape[-1]), intercept.reshape(-1)
    model = make_model(grid.solver, examples, *flat, classes=None)
    loss = grid.candidates().loss.cast(examples.dtype).for_rankers(grid.points)
    trained = Trained(model._rankers(), loss, grid.points, task.targets)
    return summed(trained, examples.values, np.flatnonzero(weight > 0), weight, scoring)
