"""The host loop: slabs by tiles, epochs, chunks, resumed runs; and ``fit``."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh

from jaxsolvers import checks
from jaxsolvers.engine.batches import is_one_shot
from jaxsolvers.engine.certificate import certificate
from jaxsolvers.engine.evaluation import read_eval_set
from jaxsolvers.engine.finish import finished
from jaxsolvers.engine.inputs import Examples
from jaxsolvers.engine.job import Job, Options, check_solver, prepare
from jaxsolvers.engine.lanes import Result, open_group
from jaxsolvers.engine.lineup import Lineup
from jaxsolvers.engine.online import over_batches
from jaxsolvers.engine.progress import Progress
from jaxsolvers.engine.record import recorded
from jaxsolvers.engine.reports import report_empty, report_lost
from jaxsolvers.engine.state import TrainState
from jaxsolvers.engine.stopping import Seen
from jaxsolvers.engine.stream import read_given
from jaxsolvers.engine.survey import survey
from jaxsolvers.engine.targets import Targets
from jaxsolvers.engine.tile import advance
from jaxsolvers.engine.totals import Totals, endings, joined, nothing
from jaxsolvers.models import KernelModel, LinearModel
from jaxsolvers.models.kernel import expansion_model, kernel_model
from jaxsolvers.protocol import Info, Regularizer, Solver


class Fit(NamedTuple):
    """What ``fit`` returns.

    Attributes:
      model: the weights, ready to predict: a LinearModel, of a solver with a kernel a KernelModel,
        of ``js.structured`` a StructuredModel.
      state: pass it as ``state=`` to train on.
      history: per epoch, (epochs,) or (epochs, K): ``progressive_loss`` (mean loss of each row
        before its round, weighted), ``mistakes`` and ``violations`` (counts of rows),
        ``seconds`` (epochs,). With many rankers also ``positives``, the number of rows that have
        the ranker's label and a weight above 0; what ``record`` asks for; with ``eval_set``
        ``eval_loss``; with ``tol`` what is watched. NaN in epochs after a ranker stopped.
        Per ranker, () or (K,): ``stopped``, the rule that ended its training, "objective", "gap"
        or "eval_set" of ``tol``, else "epochs" (all were made) or "lost" (it left the floats);
        ``epochs_run`` in this call; and where the run proves one, ``certificate``: no weights
        have an objective below it, up to the rounding of the working dtype. Of SDCA that is its
        dual objective, so that the objective minus it is the gap. Of Pegasos with the hinge loss,
        not projected, it is ``N/(k T) - lam/2 ||w||^2`` (N violations in T rounds of k rows, w
        the last weights), in a run from the first round on that visits all rows equally often
        ("permutation" or "cyclic", k a divisor of n) at equal weights. Other solvers and runs
        have none, nor have kernels.
    """

    model: Any
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
    tol: float | None = None,
    patience: int = 5,
    eval_set: Any = None,
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
        (16-bit trains in float32, integers in the default float). A list of batches (X, y) or
        (X, y, sample_weight), or anything else that gives them anew whenever it is iterated, is
        such a source. An iterator of batches is read once, in one epoch: each batch trains as if
        ``fit(solver, *batch, state=...)`` continued the run, the counters and averages included;
        weights are used as given, rounds end with their batch, the history has a row per batch,
        and the first batch shows which labels there are.
      y: (n,); None with a source, batches or an iterator. For a classification loss two values of
        any kind, coded -1 and +1 in sorted order; for a joint loss (``MulticlassHinge``) any
        number of them, the classes in sorted order; for a regression loss real targets.
      epochs: passes over the rows, >= 1; 1 by default.
      batch_size: rows per round, 1 ... n; 1 by default.
      order: "permutation" (default; each epoch visits every row once, in a new order; the rows
        of a source within windows of some 32 MB), "uniform" (an epoch is n independent draws,
        the sampling of the theory; not of a source) or "cyclic" (file order).
      key: seed of the orders, an int or a JAX key; 0 by default.
      sample_weight: (n,) >= 0; only ratios count. Weight 0 leaves a row out. None with a source.
      intercept: "none" (default) or "column": a constant 1 beside the features. First-order
        solvers leave it unregularized; Pegasos, SDCA, SVRG, SGD and NORMA regularize it;
        PassiveAggressive and AROW, without a penalty, treat it like any feature.
      state: ``Fit.state`` of an earlier call: ``epochs`` more with its settings. Rankers that
        stopped stay as they are when the same ``tol`` and ``patience`` are given again.
      tol: a ranker stops when its objective, the regularizer included, improved by less than
        ``tol`` >= 0 for ``patience`` epochs one after another; with SDCA its duality gap (the
        least objective so far minus the dual objective, which never grows and cannot improve by
        tol any more once it is below), with ``eval_set`` the loss there. An epoch improves by the
        least value before it minus its own; the first one has none before it. The value costs a
        pass over the rows per epoch. A ranker that stopped keeps its weights to the bit, and the
        others move together. None never stops early.
      patience: see ``tol``; 5 by default.
      eval_set: rows to measure on, (X, y) or (X, y, sample_weight), as those of the training; the
        weights of positives count. Their mean loss goes into the history as ``eval_loss``.
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
    options = Options(
        epochs=epochs,
        batch_size=batch_size,
        order=order,
        key=key,
        sample_weight=sample_weight,
        intercept=intercept,
        state=state,
        tol=tol,
        patience=patience,
        eval_set=eval_set,
        record=record,
        block_size=block_size,
        mesh=mesh,
        progress=progress,
    )
    if is_one_shot(X):
        return over_batches(partial(_fit, solver), solver, X, y, options)
    return _fit(solver, X, y, options)


def _fit(solver: Solver, X: Any, y: Any, options: Options) -> Fit:
    examples, y, sample_weight = read_given(X, y, options.sample_weight)
    targets = targets_alone(solver, y, examples, options.known_classes())
    solver.check_shapes(None, examples.d, targets.together)

    def read_target(y: Any, n: int) -> np.ndarray:
        return _answers(solver, y, n, examples.dtype, targets.classes)

    evaluation = read_eval_set(options.eval_set, examples, read_target)
    options = dataclasses.replace(options, sample_weight=sample_weight, evaluation=evaluation)
    coef, intercepts, after, history = train(solver, examples, targets, options)
    model = make_model(solver, examples, coef[0], intercepts[0], targets.classes)
    return Fit(model, state_alone(after), history_alone(history))


def state_alone(state: TrainState) -> TrainState:
    """The state of one ranker, without the axis of the rankers."""
    (tile,) = state.solver_state
    tile, alive, seen = jax.tree.map(lambda leaf: leaf[0], (tile, state.alive, state.seen))
    return dataclasses.replace(state, solver_state=tile, alive=alive, seen=seen)


def history_alone(history: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The history of a single ranker without the axis of the rankers."""
    return {
        name: values if name == "seconds" or values.shape[-1:] != (1,) else values[..., 0]
        for name, values in history.items()
    }


def make_model(
    solver: Solver,
    examples: Examples,
    coef: Any,
    intercept: Any,
    classes: np.ndarray | None,
    output: str = "label",
) -> LinearModel | KernelModel:
    """The model of trained weights, over features, training rows or support vectors."""
    if solver.kernel is None:
        return LinearModel(coef, intercept, classes, output)
    if solver.own_vectors:
        return expansion_model(solver.kernel, coef, intercept, classes, output)
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
        return Targets(_answers(solver, y, examples.n, examples.dtype, None), 1, None, np.ones(()))
    classes = np.unique(checks.check_labels(y, examples.n)) if known is None else known
    values = _answers(solver, y, examples.n, examples.dtype, classes)
    if len(classes) == 1:
        raise ValueError(f"y must hold two classes for {name}, got only {classes.tolist()[0]!r}")
    if solver.loss.joint:
        return Targets(values, 1, classes, np.ones(()), together=len(classes), joint=True)
    if len(classes) > 2:
        shown = ", ".join(map(repr, classes[:5].tolist()))
        raise ValueError(
            f"y must be -1/+1 or hold two values for {name}, got {len(classes)}: {shown} ...; "
            "fit_one_vs_rest takes many classes, and so does a joint loss (MulticlassHinge)"
        )
    return Targets(values, 1, classes, np.ones(()))


def _answers(
    solver: Solver, y: Any, n: int, dtype: np.dtype, classes: np.ndarray | None
) -> np.ndarray:
    """The targets of n rows: real ones without ``classes``, else -1/+1 or positions of classes."""
    if classes is None:
        checks.check_vector(y, n)
        name = type(solver.loss).__name__
        values = checks.check_reals(y, "y", f"hold real numbers for {name}")
        with np.errstate(over="ignore"):
            checks.check_finite(values.astype(dtype), "y")
        return values
    labels = checks.check_labels(y, n)
    known = classes.tolist()
    unknown = [label for label in np.unique(labels).tolist() if label not in known]
    if unknown:
        raise ValueError(f"y holds the label {unknown[0]!r}, the classes are {known[:20]}")
    codes = np.searchsorted(classes, labels)
    return codes.astype(np.int32) if solver.loss.joint else np.where(codes == 1, 1.0, -1.0)


def train(
    solver: Solver, examples: Examples, targets: Targets, options: Options
) -> tuple[Any, Any, TrainState, dict[str, np.ndarray]]:
    """Train all rankers; the engine behind every front.

    Returns:
      (coef (K, d), intercept (K,), state, history with (epochs, K) and (K,) arrays).
    """
    job, chunk = prepare(solver, examples, targets, options)
    n_rankers, rule, own = targets.n_rankers, job.measures.rule, targets.own
    together = chunk if own is None else job.group  # rankers that see the same slabs
    visits = examples.n * n_rankers if own is None else int(own.lengths.sum())
    seen = None
    if rule is not None:
        seen = Seen.of(rule, n_rankers, None if job.before is None else job.before.seen)
    result = Result(job, n_rankers, chunked=chunk < n_rankers)
    parts: list[dict[str, np.ndarray]] = []
    bounds: list[np.ndarray | None] = []
    with Progress(options.progress, visits * len(job.epochs)) as bar:
        for start in range(0, n_rankers, together):
            lineup, part = _train_chunk(job, start, min(start + together, n_rankers), seen, bar)
            parts.append(part)
            counts = np.nansum(part["violations"], axis=0)
            for group, at in lineup.home():
                result.take(group, at)
                bounds.append(certificate(job, group, counts[at - start :][: group.size]))
            del lineup, group
    history = joined(parts)
    epochs = len(history["seconds"])
    coef, intercept, state = result.finish(job.epochs.start + epochs, seen)
    history |= endings(history, seen, state.alive)
    told = [bound for bound in bounds if bound is not None]
    if told:
        history["certificate"] = np.concatenate(told)
    if targets.copies.count > 1:
        if not state.alive.any():
            report_lost(solver, state.alive)
        return coef, intercept, state, history  # of the others the caller tells
    if targets.per_ranker:
        live = (job.slabs.data.weight > 0).astype(float)
        positives = targets.positives(live).astype(int)
        history["positives"] = np.tile(positives, (epochs, 1))
        if not options.stream:
            report_empty(positives, targets)
    report_lost(solver, state.alive, targets)
    return coef, intercept, state, history


def untrained(
    solver: Solver, examples: Examples, targets: Targets, options: Options
) -> tuple[Any, Any]:
    """(coef, intercept) of :func:`train` before the first round."""
    job, chunk = prepare(solver, examples, targets, options)
    n_rankers = targets.n_rankers
    result = Result(job, n_rankers, chunked=chunk < n_rankers)
    for start in range(0, n_rankers, job.group):
        rankers = np.arange(start, min(start + job.group, n_rankers))
        result.take(open_group(job, rankers), start)
    return result.finish(job.epochs.start, None)[:2]


def _train_chunk(
    job: Job, start: int, stop: int, seen: Seen | None, bar: Progress
) -> tuple[Lineup, dict[str, np.ndarray]]:
    lineup, slabs = Lineup(job, start, stop), job.slabs.of(start, stop)
    if seen is not None:
        lineup.put_away(seen.stopped[start:stop])
    epochs: list[Totals] = []
    told: list[dict[str, np.ndarray]] = []
    waiting: tuple[Totals, list[Info]] | None = None
    began = time.perf_counter()
    for epoch in job.epochs:
        if lineup.count == 0:
            break
        totals, groups = Totals(stop - start, lineup.places()), lineup.groups
        epochs.append(totals)
        groups[:] = survey(job, groups, epoch)
        for slab, count in slabs.epoch(epoch):
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
            bar.advance(count * lineup.count)
        groups[:] = finished(job, groups, epoch)
        found = [recorded(job.measures, group, job.plan) for group in groups]
        told.append({name: totals.of_groups([own[name] for own in found]) for name in found[0]})
        if seen is not None and waiting is not None:
            waiting[0].add(waiting[1])
            waiting = None
            trained = np.flatnonzero(totals.trained)
            own = {name: told[-1][name][trained] for name in seen.rule.watched}
            seen.see(start + trained, own)
            totals.ended = time.perf_counter()
            lineup.put_away(seen.stopped[start:stop] | ~totals.alive)
        elif not all(past.alive.any() for past in epochs) and stop - start == len(job.live):
            break  # every ranker is lost: train reports it
    if waiting is not None:
        waiting[0].add(waiting[1])
    ends = [began, *(past.ended for past in epochs)]
    rows = [
        past.history(end - begin) | more
        for past, more, (begin, end) in zip(epochs, told, itertools.pairwise(ends), strict=True)
    ]
    if not rows:
        return lineup, nothing(stop - start, job.measures.names)
    return lineup, {name: np.stack([row[name] for row in rows]) for name in rows[0]}
