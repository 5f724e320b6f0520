"""The host loop: slabs by tiles, epochs, chunks, resumed runs; and ``fit``."""

from __future__ import annotations

import dataclasses
import time
import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from jaxsolvers.engine import inputs
from jaxsolvers.engine.job import Job, Options, Targets, check_solver, prepare
from jaxsolvers.engine.lanes import Result, open_group
from jaxsolvers.engine.order import epoch_order
from jaxsolvers.engine.progress import Progress
from jaxsolvers.engine.state import TrainState
from jaxsolvers.engine.tile import Group, advance
from jaxsolvers.models import LinearModel
from jaxsolvers.protocol import Info, Solver


class Fit(NamedTuple):
    """What ``fit`` returns.

    Attributes:
      model: the weights, ready to predict.
      state: pass it as ``state=`` to train on.
      history: per epoch, (epochs,) or (epochs, K): ``progressive_loss`` (mean loss of each row
        before its round, weighted), ``mistakes`` and ``violations`` (counts of rows),
        ``seconds`` (epochs,).
    """

    model: LinearModel
    state: TrainState
    history: dict[str, np.ndarray]


def fit(
    solver: Solver,
    X: Any,
    y: Any,
    *,
    epochs: int = 1,
    batch_size: int | None = None,
    order: str | None = None,
    key: Any = None,
    sample_weight: Any = None,
    intercept: str | None = None,
    state: TrainState | None = None,
    block_size: int | None = None,
    mesh: Mesh | None = None,
    progress: bool = False,
) -> Fit:
    """Train one ranker on dense rows.

    Args:
      solver: e.g. ``js.Pegasos(1e-4)``; its numbers are single numbers here.
      X: (n, d) NumPy or JAX array (or anything ``np.asarray`` takes) of numbers. Its floating
        dtype is the working dtype (16-bit trains in float32, integers in the default float).
      y: (n,). For a classification loss two values of any kind, coded -1 and +1 in sorted
        order; for a regression loss real targets.
      epochs: passes over the rows, >= 1; 1 by default.
      batch_size: rows per round, 1 ... n; 1 by default.
      order: "permutation" (default; each epoch visits every row once, in a new order),
        "uniform" (an epoch is n independent draws, the sampling of the theory) or "cyclic"
        (file order).
      key: seed of the orders, an int or a JAX key; 0 by default.
      sample_weight: (n,) >= 0; only ratios count. Weight 0 leaves a row out.
      intercept: "none" (default) or "column": a constant 1 beside the features. First-order
        solvers leave it unregularized, Pegasos regularizes it.
      state: ``Fit.state`` of an earlier call: ``epochs`` more with its settings.
      block_size: rows handled together; a speed setting, the default suits most.
      mesh: a ``jax.sharding.Mesh`` with an axis "rankers".
      progress: whether to show a progress bar (tqdm).

    Returns:
      A Fit; ``model.coef`` is (d,).

    Raises:
      ValueError: bad input, found before training; the message names the argument.
      FloatingPointError: the ranker diverged.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> X = np.array([[1, 0.5], [0.8, -0.3], [-1, 0.4], [-0.7, -0.6]], "float32")
      >>> y = np.array(["yes", "yes", "no", "no"])
      >>> js.fit(js.Pegasos(0.1), X, y, epochs=10).model.predict(X).tolist()
      ['yes', 'yes', 'no', 'no']
    """
    options = Options(
        epochs, batch_size, order, key, sample_weight, intercept, state, block_size, None, mesh,
        progress,
    )  # fmt: skip
    check_solver(solver)
    for leaf in solver.numbers():
        if np.ndim(leaf.value) > leaf.spec.rank:
            raise ValueError(
                f"{leaf.name} must be a single number in fit, got an array of shape "
                f"{np.shape(leaf.value)}"
            )
    examples = inputs.check_examples(X)
    known = None if state is None else state.settings.classes
    values, classes = _binary_targets(solver, y, examples.n, known)
    targets = Targets(values, False, 1, classes, np.ones(1))
    coef, intercepts, after, history = train(solver, examples, targets, options)
    (tile,) = after.solver_state
    alone = jax.tree.map(lambda leaf: leaf[0], (tile, after.alive))
    after = dataclasses.replace(after, solver_state=alone[0], alive=alone[1])
    model = LinearModel(coef[0], intercepts[0], classes)
    history = {name: v[:, 0] if v.ndim == 2 else v for name, v in history.items()}
    return Fit(model, after, history)


def _binary_targets(
    solver: Solver, y: Any, n: int, known: tuple[Any, ...] | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Targets as floats, and the two labels they stand for (None for regression)."""
    name = type(solver.loss).__name__
    if not solver.loss.classification:
        values = inputs.check_vector(y, n)
        if values.dtype == bool or not jnp.issubdtype(values.dtype, jnp.number):
            raise ValueError(f"y must hold real numbers for {name}, got dtype {values.dtype}")
        inputs.check_finite(values, "y")
        return values.astype(np.float64), None
    labels = inputs.check_labels(y, n)
    classes = np.unique(labels)
    if known is not None:
        unknown = [label for label in classes.tolist() if label not in known]
        if unknown:
            raise ValueError(f"y holds the label {unknown[0]!r}, the classes are {list(known)}")
        classes = np.array(known, labels.dtype)
    if len(classes) == 1:
        raise ValueError(f"y must hold two classes for {name}, got only {classes.tolist()[0]!r}")
    if len(classes) > 2:
        shown = ", ".join(map(repr, classes[:5].tolist()))
        raise ValueError(
            f"y must be -1/+1 or hold two values for {name}, got {len(classes)}: {shown} ...; "
            "fit_one_vs_rest takes many classes"
        )
    return np.where(labels == classes[1], 1.0, -1.0), classes


def train(
    solver: Solver, examples: inputs.Examples, targets: Targets, options: Options
) -> tuple[Any, Any, TrainState, dict[str, np.ndarray]]:
    """Train all rankers; the engine behind every front.

    Returns:
      (coef (K, d), intercept (K,), state, history with (epochs, K) arrays).
    """
    job, chunk = prepare(solver, examples, targets, options)
    n_rankers = targets.n_rankers
    rows = examples.n * len(job.epochs)
    result = Result(job, n_rankers, chunked=chunk < n_rankers)
    history: list[dict[str, np.ndarray]] = []
    with Progress(options.progress, rows * n_rankers) as bar:
        for start in range(0, n_rankers, chunk):
            groups, part = _train_chunk(job, start, min(start + chunk, n_rankers), bar)
            history.append(part)
            for i, at in enumerate(range(start, n_rankers, job.group)[: len(groups)]):
                result.take(groups[i], at)
            del groups
    coef, intercept, state = result.finish()
    merged = {
        name: np.concatenate([part[name] for part in history], axis=1)
        for name in history[0]
        if name != "seconds"
    }
    merged["seconds"] = np.sum([part["seconds"] for part in history], axis=0)
    _report_dead(solver, state.alive)
    return coef, intercept, state, merged


def _train_chunk(
    job: Job, start: int, stop: int, bar: Progress
) -> tuple[list[Group], dict[str, np.ndarray]]:
    groups = [
        open_group(job, at, min(at + job.group, stop)) for at in range(start, stop, job.group)
    ]
    rows: list[dict[str, np.ndarray]] = []
    n = job.slabs.examples.n
    for epoch in job.epochs:
        began = time.perf_counter()
        totals = _Totals(stop - start)
        order = epoch_order(job.settings.order, n, job.words, epoch)
        waiting: list[Info] = []
        for slab, count in job.slabs.epoch(order):
            infos = []
            for i, group in enumerate(groups):
                lanes, info = advance(
                    group.solver, group.lanes, group.assignment, slab, plan=job.plan
                )
                groups[i] = group._replace(lanes=lanes)
                infos.append(info)
            # One slab is under way while the next is gathered; no more pile up.
            totals.add(waiting, groups)
            waiting = infos
            bar.advance(count * (stop - start))
        totals.add(waiting, groups)
        rows.append(totals.history(time.perf_counter() - began))
        if not totals.alive.any() and len(totals.alive) == len(job.live):
            break  # every ranker is lost: train reports it
    return groups, {name: np.stack([row[name] for row in rows]) for name in rows[0]}


class _Totals:
    """Sums of an epoch over its slabs, in float64 on the host (a float32 sum stops at 2^24)."""

    def __init__(self, n_rankers: int) -> None:
        self.sums = np.zeros((4, n_rankers))
        self.alive = np.ones(n_rankers, bool)

    def add(self, infos: list[Info], groups: list[Group]) -> None:
        start = 0
        for info, group in zip(infos, groups, strict=False):
            stop = start + group.size
            fields = [np.asarray(field)[: group.size] for field in info]
            self.sums[:, start:stop] += np.stack(fields[:4]).astype(np.float64)
            self.alive[start:stop] = fields[4]
            start = stop

    def history(self, seconds: float) -> dict[str, np.ndarray]:
        weight, loss, mistakes, violations = self.sums
        with np.errstate(invalid="ignore"):
            mean = np.where(weight > 0, loss / np.where(weight > 0, weight, 1), np.nan)
        return {
            "progressive_loss": mean,
            "mistakes": mistakes.copy(),
            "violations": violations.copy(),
            "seconds": np.array(seconds),
        }


def _report_dead(solver: Solver, alive: np.ndarray) -> None:
    rates = [leaf.name for leaf in solver.numbers() if leaf.name.endswith(("lam", "learning_rate"))]
    advice = f"change {' or '.join(rates) or 'the step size'}, or scale X"
    if not alive.any():
        raise FloatingPointError(
            f"the learning rate is too large for X: every ranker left the floating-point range; "
            f"{advice}"
        )
    if not alive.all():
        dead = np.flatnonzero(~alive)
        warnings.warn(
            f"{dead.size} of {alive.size} rankers left the floating-point range (the first is "
            f"{dead[0]}; all in state.alive) and score -inf; {advice}",
            RuntimeWarning,
            stacklevel=4,
        )
