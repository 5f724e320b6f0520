"""The host loop: slabs by tiles, epochs, chunks, resumed runs; and ``fit``."""

from __future__ import annotations

import dataclasses
import itertools
import time
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh

from jaxsolvers import checks
from jaxsolvers.engine.inputs import Examples
from jaxsolvers.engine.job import Job, Options, check_solver, prepare
from jaxsolvers.engine.lanes import Result, open_group
from jaxsolvers.engine.progress import Progress
from jaxsolvers.engine.record import recorded
from jaxsolvers.engine.state import TrainState
from jaxsolvers.engine.stream import read_given
from jaxsolvers.engine.targets import Targets
from jaxsolvers.engine.tile import Group, advance
from jaxsolvers.models import KernelModel, LinearModel
from jaxsolvers.models.kernel import kernel_model
from jaxsolvers.protocol import Info, Regularizer, Solver


class Fit(NamedTuple):
    """What ``fit`` returns.

    Attributes:
      model: the weights, ready to predict: a LinearModel, of a solver with a kernel a KernelModel.
      state: pass it as ``state=`` to train on.
      history: per epoch, (epochs,) or (epochs, K): ``progressive_loss`` (mean loss of each row
        before its round, weighted), ``mistakes`` and ``violations`` (counts of rows),
        ``seconds`` (epochs,). With many rankers also ``positives``, the number of rows that have
        the ranker's label and a weight above 0; and what ``record`` asks for.
    """

    model: Any  # LinearModel | KernelModel
    state: TrainState
    history: dict[str, np.ndarray]


def fit(
    solver: Solver,
    X: Any,
    y: Any = None,
    *,
    epochs: int = 1,
    batch_size: int | None = None,
    order: str | None = None,
    key: Any = None,
    sample_weight: Any = None,
    intercept: str | None = None,
    state: TrainState | None = None,
    record: Sequence[str] = (),
    block_size: int | None = None,
    mesh: Mesh | None = None,
    progress: bool = False,
) -> Fit:
    """Train one ranker, or all classes of a joint loss as one problem.

    Args:
      solver: e.g. ``js.Pegasos(1e-4)``; its numbers are single numbers here.
      X: (n, d) NumPy or JAX array (or anything ``np.asarray`` takes) of numbers; any SciPy sparse
        matrix or JAX BCOO, of which only what is stored is touched; or a ``js.data`` source, read
        once for its labels and then once per epoch. The floating dtype is the working dtype
        (16-bit trains in float32, integers in the default float).
      y: (n,); None with a source. For a classification loss two values of any kind, coded -1 and
        +1 in sorted order; for a joint loss (``MulticlassHinge``) any number of them, the classes
        in sorted order; for a regression loss real targets.
      epochs: passes over the rows, >= 1; 1 by default.
      batch_size: rows per round, 1 ... n; 1 by default.
      order: "permutation" (default; each epoch visits every row once, in a new order; the rows
        of a source within windows of some 32 MB), "uniform" (an epoch is n independent draws,
        the sampling of the theory; not of a source) or "cyclic" (file order).
      key: seed of the orders, an int or a JAX key; 0 by default.
      sample_weight: (n,) >= 0; only ratios count. Weight 0 leaves a row out. None with a source.
      intercept: "none" (default) or "column": a constant 1 beside the features. First-order
        solvers leave it unregularized, linear-step ones (Pegasos, SDCA, SGD, NORMA) regularize it.
      state: ``Fit.state`` of an earlier call: ``epochs`` more with its settings.
      record: names of what else goes into the history at the end of every epoch. "theory": what
        ``js.theory.of_state`` tells of the solver's state, for AdaGrad "gamma" and in the dual
        averaging form "regret_bound". "objective": as ``js.metrics.objective``, the weights of
        positives included; "gap", for SDCA: as ``js.metrics.duality_gap``. These two cost a
        pass over the rows each time, and are not for a source. NaN for a lost ranker.
      block_size: rows handled together; a speed setting, the default suits most.
      mesh: a ``jax.sharding.Mesh`` with an axis "rankers".
      progress: whether to show a progress bar (tqdm).

    Returns:
      A Fit; ``model.coef`` is (d,), of a joint loss (K, d); with a kernel ``model.dual_coef`` is
      (n_sv,).

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
    check_solver(solver)
    examples, y, sample_weight = read_given(X, y, sample_weight)
    options = Options(
        epochs=epochs,
        batch_size=batch_size,
        order=order,
        key=key,
        sample_weight=sample_weight,
        intercept=intercept,
        state=state,
        record=record,
        block_size=block_size,
        mesh=mesh,
        progress=progress,
    )
    targets = targets_alone(solver, y, examples, options.known_classes())
    solver.check_shapes(None, examples.d, targets.together)
    coef, intercepts, after, history = train(solver, examples, targets, options)
    (tile,) = after.solver_state
    alone = jax.tree.map(lambda leaf: leaf[0], (tile, after.alive))
    after = dataclasses.replace(after, solver_state=alone[0], alive=alone[1])
    model = make_model(solver, examples, coef[0], intercepts[0], targets.classes)
    history = {name: v[:, 0] if v.ndim == 2 else v for name, v in history.items()}
    return Fit(model, after, history)


def make_model(
    solver: Solver,
    examples: Examples,
    coef: Any,
    intercept: Any,
    classes: np.ndarray | None,
    output: str = "label",
) -> LinearModel | KernelModel:
    """The model of trained weights, over features or over training rows."""
    if solver.kernel is None:
        return LinearModel(coef, intercept, classes, output)
    return kernel_model(solver.kernel, examples.values, coef, intercept, classes, output)


def targets_alone(solver: Solver, y: Any, examples: Examples, known: np.ndarray | None) -> Targets:
    """Floats for one ranker, with the two labels they stand for, or positions of classes.

    Raises:
      ValueError: what one ranker cannot learn; the message names y or the solver's part.
    """
    name = type(solver.loss).__name__
    for prefix, part in solver.parts():
        if isinstance(part, Regularizer) and part.couples and not solver.loss.joint:
            raise ValueError(
                f"{prefix.rstrip('.')} {type(part).__name__} couples classes, and {name} has one "
                "ranker here: js.fit_one_vs_rest, or a joint loss such as js.losses.MulticlassHinge"
            )
    if not solver.loss.classification:
        checks.check_vector(y, examples.n)
        values = checks.check_reals(y, "y", f"hold real numbers for {name}")
        with np.errstate(over="ignore"):
            checks.check_finite(values.astype(examples.dtype), "y")
        return Targets(values, 1, None, np.ones(()))
    labels = checks.check_labels(y, examples.n)
    classes = np.unique(labels)
    if known is not None:
        unknown = [label for label in classes.tolist() if label not in known.tolist()]
        if unknown:
            raise ValueError(
                f"y holds the label {unknown[0]!r}, the classes are {known.tolist()[:20]}"
            )
        classes = known
    if len(classes) == 1:
        raise ValueError(f"y must hold two classes for {name}, got only {classes.tolist()[0]!r}")
    if solver.loss.joint:
        codes = np.searchsorted(classes, labels).astype(np.int32)
        return Targets(codes, 1, classes, np.ones(()), together=len(classes), joint=True)
    if len(classes) > 2:
        shown = ", ".join(map(repr, classes[:5].tolist()))
        raise ValueError(
            f"y must be -1/+1 or hold two values for {name}, got {len(classes)}: {shown} ...; "
            "fit_one_vs_rest takes many classes, and so does a joint loss (MulticlassHinge)"
        )
    return Targets(np.where(labels == classes[1], 1.0, -1.0), 1, classes, np.ones(()))


def train(
    solver: Solver, examples: Examples, targets: Targets, options: Options
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
    if targets.copies.count > 1:
        if not state.alive.any():
            _report_lost(solver, state.alive, None)
        return coef, intercept, state, merged  # of the others the caller tells
    if targets.per_ranker:
        live = (job.slabs.data.weight > 0).astype(float)
        positives = targets.positives(live).astype(int)
        merged["positives"] = np.tile(positives, (len(merged["seconds"]), 1))
        _report_empty(positives, targets)
    _report_lost(solver, state.alive, targets.classes)
    return coef, intercept, state, merged


def untrained(
    solver: Solver, examples: Examples, targets: Targets, options: Options
) -> tuple[Any, Any]:
    """(coef, intercept) of :func:`train` before the first round."""
    job, chunk = prepare(solver, examples, targets, options)
    n_rankers = targets.n_rankers
    result = Result(job, n_rankers, chunked=chunk < n_rankers)
    for start in range(0, n_rankers, job.group):
        result.take(open_group(job, start, min(start + job.group, n_rankers)), start)
    return result.finish()[:2]


def _train_chunk(
    job: Job, start: int, stop: int, bar: Progress
) -> tuple[list[Group], dict[str, np.ndarray]]:
    groups = [
        open_group(job, at, min(at + job.group, stop)) for at in range(start, stop, job.group)
    ]
    sizes = [group.size for group in groups]
    epochs: list[_Totals] = []
    told: list[dict[str, np.ndarray]] = []
    waiting: tuple[_Totals, list[Info]] | None = None
    began = time.perf_counter()
    for epoch in job.epochs:
        totals = _Totals(sizes)
        epochs.append(totals)
        for slab, count in job.slabs.epoch(epoch):
            infos = []
            for i, group in enumerate(groups):
                lanes, info = advance(
                    group.solver, group.lanes, group.assignment, slab, plan=job.plan
                )
                groups[i] = group._replace(lanes=lanes)
                infos.append(info)
            # One slab is under way while the next is gathered, be it of the next epoch; no more
            # pile up.
            if waiting is not None:
                waiting[0].add(waiting[1])
            waiting = totals, infos
            bar.advance(count * (stop - start))
        told.append(recorded(job.record, groups, job.slabs.data, job.plan))
        if not all(past.alive.any() for past in epochs) and stop - start == len(job.live):
            break  # every ranker is lost: train reports it
    if waiting is not None:
        waiting[0].add(waiting[1])
    ends = [began, *(past.ended for past in epochs)]
    rows = [
        past.history(end - start) | more
        for past, more, (start, end) in zip(epochs, told, itertools.pairwise(ends), strict=True)
    ]
    return groups, {name: np.stack([row[name] for row in rows]) for name in rows[0]}


class _Totals:
    """Sums of an epoch over its slabs, in float64 on the host (a float32 sum stops at 2^24)."""

    def __init__(self, sizes: list[int]) -> None:
        n_rankers = sum(sizes)
        self.sums = {name: np.zeros(n_rankers) for name in Info._fields if name != "finite"}
        self.alive = np.ones(n_rankers, bool)
        self.ended = time.perf_counter()
        self._sizes = sizes

    def add(self, infos: list[Info]) -> None:
        """Wait for a slab, one Info per group, and add it."""
        start = 0
        for info, size in zip(infos, self._sizes, strict=True):
            stop = start + size
            for name, sums in self.sums.items():
                sums[start:stop] += np.asarray(getattr(info, name))[:size]
            self.alive[start:stop] = np.asarray(info.finite)[:size]
            start = stop
        self.ended = time.perf_counter()

    def history(self, seconds: float) -> dict[str, np.ndarray]:
        weight, loss = self.sums["weight"], self.sums["loss"]
        mean = np.where(weight > 0, loss / np.where(weight > 0, weight, 1), np.nan)
        counts = {name: self.sums[name] for name in ("mistakes", "violations")}
        return {"progressive_loss": mean, **counts, "seconds": np.array(seconds)}


def _report_empty(positives: np.ndarray, targets: Targets) -> None:
    """Say once which labels of label sets have no positive row."""
    empty = np.flatnonzero(positives == 0)
    if targets.output != "label" and empty.size and targets.classes is not None:
        first = targets.classes[empty[0] : empty[0] + 1].tolist()[0]
        warnings.warn(
            f"{empty.size} of {positives.size} labels have no positive row (the first is "
            f"{first!r}; all in history['positives']): their rankers only learn to say no",
            UserWarning,
            stacklevel=4,
        )


def _report_lost(solver: Solver, alive: np.ndarray, classes: np.ndarray | None) -> None:
    """Say once which rankers left the floats, and what to change."""
    own = [leaf.name for leaf in solver.numbers() if leaf.name.rsplit(".")[-1] in _RATES]
    advice = f"change {' or '.join(own) or 'the step size'}, or scale X"
    if not alive.any():
        raise FloatingPointError(
            "the learning rate is too large for X: every ranker left the floating-point range; "
            + advice
        )
    if not alive.all():
        lost = np.flatnonzero(~alive)
        label = int(lost[0]) if classes is None else classes[lost[0] : lost[0] + 1].tolist()[0]
        warnings.warn(
            f"{lost.size} of {alive.size} rankers left the floating-point range (the first is "
            f"{label!r}; all in state.alive) and score -inf; {advice}",
            RuntimeWarning,
            stacklevel=4,
        )


_RATES = ("lam", "learning_rate", "C", "c", "r")  # numbers that set a solver's step
