"""A path of regularization strengths, each trained from where the one before it ended."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from jax.sharding import Mesh

from jaxsolvers import checks
from jaxsolvers.engine.inputs import Examples
from jaxsolvers.engine.job import Options
from jaxsolvers.engine.run import state_alone, train
from jaxsolvers.engine.state import TrainState, describe
from jaxsolvers.engine.stream import is_source, read_given
from jaxsolvers.metrics.primal_dual import with_duals
from jaxsolvers.protocol import Solver
from jaxsolvers.selection.grid import grid_of
from jaxsolvers.selection.task import task_of

__all__ = ["LambdaPath", "lambda_path"]


class LambdaPath(NamedTuple):
    """What ``lambda_path`` returns, from the strongest number to the weakest.

    Attributes:
      table: columns over the m numbers: the number by its name and ``epochs`` (m,); with SDCA
        ``objective`` and ``gap`` at the end of each, (m,) or of several rankers (m, K).
      models: m models.
      state: the state at the last number, for ``js.fit`` or ``js.fit_one_vs_rest`` to go on from.
    """

    table: dict[str, np.ndarray]
    models: list[Any]
    state: TrainState


def lambda_path(
    solver: Solver,
    X: Any,
    y: Any,
    *,
    tol: float | None = None,
    classes: Any = None,
    positive_weight: Any = None,
    epochs: int = 10,
    batch_size: int | None = None,
    order: str | None = None,
    key: Any = None,
    sample_weight: Any = None,
    intercept: str | None = None,
    block_size: int | None = None,
    mesh: Mesh | None = None,
    progress: bool = False,
) -> LambdaPath:
    """Train at every strength of regularization, from strong to weak, each from the one before.

    Weights change little from a strength to the next, so that a warm start needs fewer epochs than
    a cold one. SDCA keeps its duals a_i, which stay feasible, and with them
    ``w = (1/lam) sum_i p_i a_i x_i`` at the new lam. Solvers whose state does not depend on the
    strength (AdaGrad, RDA, FOBOS, SGD, NORMA) simply go on. All numbers run through one compiled
    program.

    Args:
      solver: with one number given as an array (m,), e.g. ``js.SDCA(np.logspace(-4, 0, 9))``; it is
        visited from its largest value down.
      X, y: as in ``js.grid_search``; rows, not a source.
      tol: of SDCA: go on to the next number once every ranker's duality gap is at most ``tol``
        times its objective; None (default) for all ``epochs``.
      classes, positive_weight: as in ``js.fit_one_vs_rest``.
      epochs: at each number, at most.
      batch_size, order, key, sample_weight, intercept, block_size, mesh, progress: as in
        ``js.fit``.

    Returns:
      A LambdaPath: a table, a model per number, and the last state.

    Raises:
      ValueError: bad input, found before training; the message names the argument. Solvers whose
        state means something else under another number (Pegasos' step count, averages) are
        refused.
      FloatingPointError: every ranker diverged.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> X, y = js.data.blobs(100, 20, n_classes=3)
      >>> path = js.lambda_path(js.SDCA(np.logspace(-3, 0, 4)), X, y, tol=0.01, epochs=50)
      >>> path.table["lam"].tolist(), path.table["gap"].shape, len(path.models)
      ([1.0, 0.1, 0.01, 0.001], (4, 3), 4)
      >>> bool((path.table["gap"] <= 0.01 * path.table["objective"]).all())
      True
    """
    grid = grid_of(solver, True)
    name = type(solver).__name__
    if len(grid.values) > 1 or next(iter(grid.values.values())).ndim != 1:
        raise ValueError(f"solver must have one array of numbers, got {', '.join(grid.values)}")
    if not solver.carries or solver.kernel is not None:
        raise ValueError(
            "solver must be one whose state can go on under another number (SDCA, SGD, NORMA, "
            f"AdaGrad, RDA, FOBOS), got {name}"
        )
    epochs = checks.check_integer(epochs, "epochs")
    has_gap = with_duals(solver) is not None
    if tol is not None:
        value = checks.check_reals(tol, "tol", "be a finite number > 0 or None")
        if value.ndim or not np.isfinite(value) or value <= 0:
            raise ValueError(f"tol must be a finite number > 0 or None, got {tol!r}")
        if not has_gap:
            raise ValueError(f"tol must be None for {name}, which has no duality gap, got {tol!r}")
    if is_source(X):
        raise ValueError("X must be an array or a sparse matrix, got a source")
    examples, y, sample_weight = read_given(X, y, sample_weight)
    options = Options(
        epochs=epochs if tol is None else 1,
        batch_size=batch_size,
        order=order,
        key=key,
        sample_weight=sample_weight,
        intercept=intercept,
        positive_weight=positive_weight,
        record=("objective", "gap") if has_gap else (),
        block_size=block_size,
        mesh=mesh,
        progress=progress,
    )
    task = task_of(grid.at(0), y, examples, classes, options)
    ((number, values),) = grid.values.items()
    downwards = np.argsort(-values, kind="stable")
    rows: list[dict[str, Any]] = []
    models: list[Any] = []
    before: Solver | None = None
    for point in downwards:
        own = grid.at(int(point))
        if before is not None and options.state is not None:
            after = _carried(options.state, before, own, examples)
            options = dataclasses.replace(options, state=after)
        done = 0
        while True:
            coef, intercepts, state, history = train(own, examples, task.targets, options)
            options = dataclasses.replace(options, state=state)
            done += options.epochs
            last = {name: history[name][-1] for name in options.record}
            if tol is None or done >= epochs or (last["gap"] <= tol * last["objective"]).all():
                break
        if not task.per_class:
            last = {name: value[0] for name, value in last.items()}
        rows.append({number: values[point], "epochs": done, **last})
        models.append(task.model(own, examples, coef, intercepts))
        before = own
    table = {column: np.array([row[column] for row in rows]) for column in rows[0]}
    return LambdaPath(table, models, state_alone(state) if not task.per_class else state)


def _carried(state: TrainState, before: Solver, after: Solver, examples: Examples) -> TrainState:
    """A state as the solver of another number goes on from it."""
    then, now = before.cast(examples.dtype), after.cast(examples.dtype)
    tiles = tuple(now.carried(tile, then) for tile in state.solver_state)
    settings = dataclasses.replace(state.settings, solver=describe(now))
    return dataclasses.replace(state, solver_state=tiles, settings=settings)
