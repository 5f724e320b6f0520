"""One ranker per class."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from jax.sharding import Mesh

from jaxsolvers import checks
from jaxsolvers.engine.batches import is_one_shot
from jaxsolvers.engine.evaluation import read_eval_set
from jaxsolvers.engine.job import Options, check_solver
from jaxsolvers.engine.online import over_batches
from jaxsolvers.engine.run import Fit, history_alone, make_model, train
from jaxsolvers.engine.state import TrainState
from jaxsolvers.engine.stream import read_given
from jaxsolvers.engine.targets import Targets
from jaxsolvers.labels import read_labels
from jaxsolvers.protocol import Regularizer, Solver

__all__ = ["fit_one_vs_rest"]


def fit_one_vs_rest(
    solver: Solver,
    X: Any,
    y: Any = None,
    *,
    classes: Any = None,
    positive_weight: Any = None,
    negatives: float | None = None,
    chunk_size: int | None = None,
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
    """Train one ranker per class or label against all the others, all of them at once.

    Ranker k sees target +1 on the rows that have the label ``classes[k]`` and -1 elsewhere; all
    visit the rows in the same order. Weights and state are the same, to the bit, for every
    ``chunk_size`` and mesh. Targets are made a block at a time: no (n, K) array exists.

    A regularizer that couples the rankers (``GroupL2`` with axis -2: the K weights of a feature
    are one group) makes them one problem: they are trained together, the history is theirs
    together (``progressive_loss`` a mean over rows and classes), and numbers are the same for all.

    Args:
      solver: e.g. ``js.AdaGradRDA(0.1)``. A number given as an array of length K is one value
        per ranker.
      X: (n, d) dense or sparse, a source, batches or an iterator of them, as in ``js.fit``.
      y: (n,) labels of any sortable kind, one per row; or any number per row as an indicator
        (n, K) of 0/1 (an array or a SciPy sparse matrix, column k for ranker k; an array also of
        -1/+1) or as a list of n collections of labels (tuples, sets). None with a source.
      classes: the labels in the order of the rankers; by default the sorted labels of y, or the
        column numbers of an indicator. Labels without a row are allowed, rows with other labels
        are not.
      positive_weight: factor on the weight of a ranker's positive rows, > 0; one number or one
        per ranker (K,). 1 by default, or the state's.
      negatives: negative rows drawn per positive row of a ranker, > 0: in every epoch each ranker
        visits its positive rows and a random share of the others, drawn by itself and not
        reweighted. A ranker without positive rows visits all, and so do all by default. Not for
        AdaGradFOBOS with a penalty on sparse rows.
      chunk_size: rankers trained at a time, to bound memory; rounded up to whole tiles. The
        result then lies on the host. All at once by default.
      epochs, batch_size, order, key, sample_weight, intercept, state, tol, patience, eval_set,
        record, block_size, mesh, progress: as in ``js.fit``. Every ranker stops by itself.

    Returns:
      A Fit; ``model.coef`` is (K, d), with a kernel ``model.dual_coef`` (K, n_sv).
      ``history["positives"]`` counts each ranker's positive rows; one warning tells of labels of
      an indicator or a list of sets that have none.

    Raises:
      ValueError: bad input, found before training; the message names the argument.
      FloatingPointError: every ranker diverged. If only some did there is one RuntimeWarning,
        ``state.alive`` says which, and they score -inf.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> X, y = np.eye(3, dtype="float32"), np.array(["ant", "bee", "cat"])
      >>> fit = js.fit_one_vs_rest(js.AdaGradFOBOS(0.5), X, y, epochs=3)
      >>> fit.model.coef.shape, fit.model.predict(X).tolist()
      ((3, 3), ['ant', 'bee', 'cat'])
    """
    check_solver(solver)
    options = Options(
        epochs=epochs,
        batch_size=batch_size,
        order=order,
        key=key,
        sample_weight=sample_weight,
        intercept=intercept,
        positive_weight=positive_weight,
        negatives=negatives,
        state=state,
        tol=tol,
        patience=patience,
        eval_set=eval_set,
        record=record,
        block_size=block_size,
        chunk_size=chunk_size,
        mesh=mesh,
        progress=progress,
    )
    if solver.loss.joint:
        raise ValueError(
            f"loss must be a loss of one score here, got {type(solver.loss).__name__}, which has "
            "all classes at once: js.fit takes it with any number of labels"
        )
    if is_one_shot(X):
        return over_batches(partial(_fit, solver, classes), solver, X, y, options)
    return _fit(solver, classes, X, y, options)


def _fit(solver: Solver, classes: Any, X: Any, y: Any, options: Options) -> Fit:
    examples, y, sample_weight = read_given(X, y, options.sample_weight)
    targets = targets_of_classes(solver, y, examples.n, classes, options)
    solver.check_shapes(None if targets.together else targets.n_classes, examples.d)

    def read_target(y: Any, n: int) -> Any:
        return read_labels(y, n, targets.classes, None).codes

    evaluation = read_eval_set(options.eval_set, examples, read_target)
    options = dataclasses.replace(options, sample_weight=sample_weight, evaluation=evaluation)
    coef, intercepts, after, history = train(solver, examples, targets, options)
    if targets.together:
        coef, intercepts = coef[0], intercepts[0]
        history = history_alone(history)
    model = make_model(solver, examples, coef, intercepts, targets.classes, targets.output)
    return Fit(model, after, history)


def targets_of_classes(solver: Solver, y: Any, n: int, classes: Any, options: Options) -> Targets:
    """The targets of one ranker per class.

    Raises:
      ValueError: as :func:`fit_one_vs_rest` of y, classes, positive_weight and negatives.
    """
    labels = read_labels(y, n, classes, options.known_classes())
    n_classes = len(labels.classes)
    targets = Targets(
        labels.codes,
        n_classes,
        labels.classes,
        _positive_weight(options.resumed("positive_weight", 1.0), n_classes),
        _negatives(options.resumed("negatives", None)),
        labels.output,
    )
    return _together(solver, targets, options) if _coupled(solver) else targets


def _coupled(solver: Solver) -> bool:
    return any(isinstance(part, Regularizer) and part.couples for _, part in solver.parts())


def _together(solver: Solver, targets: Targets, options: Options) -> Targets:
    """The targets of all classes as one problem.

    Raises:
      ValueError: what only rankers trained apart can have.
    """
    name = f"{type(solver).__name__} with a regularizer that couples the rankers"
    if not solver.joint:
        raise ValueError(f"solver must be a first-order solver to couple rankers, got {name}")
    for argument in ("chunk_size", "negatives"):
        value = getattr(options, argument)
        if value is not None:
            raise ValueError(f"{argument} must be None for {name}, got {value!r}")
    return dataclasses.replace(targets, n_rankers=1, together=targets.n_rankers)


def _negatives(value: Any) -> float | None:
    if value is None:
        return None
    rate = checks.check_reals(value, "negatives", "be a finite number > 0")
    if rate.ndim or not np.isfinite(rate) or rate <= 0:
        raise ValueError(f"negatives must be one finite number > 0, got {value!r}")
    return float(rate)


def _positive_weight(value: Any, n_rankers: int) -> np.ndarray:
    weight = checks.check_reals(value, "positive_weight", "be a finite number > 0")
    if weight.shape not in ((), (n_rankers,)):
        raise ValueError(
            f"positive_weight must be one number or one per class ({n_rankers}), "
            f"got shape {weight.shape}"
        )
    if not (np.isfinite(weight) & (weight > 0)).all():
        raise ValueError(f"positive_weight must be finite and > 0, got {value!r}")
    return weight
