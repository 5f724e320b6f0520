"""Cross-validation of a grid of numbers as rankers of one program."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np
from jax.sharding import Mesh

from jaxsolvers.engine import inputs
from jaxsolvers.engine.inputs import Examples
from jaxsolvers.engine.job import Options
from jaxsolvers.engine.order import key_words
from jaxsolvers.engine.run import make_model, train
from jaxsolvers.engine.stream import is_source, read_given
from jaxsolvers.engine.targets import Copies
from jaxsolvers.protocol import Solver
from jaxsolvers.selection.folds import Folds, folds_of
from jaxsolvers.selection.grid import Grid, grid_of
from jaxsolvers.selection.result import GridResult, choose
from jaxsolvers.selection.scoring import (
    RANKED,
    SUMS,
    Scores,
    Trained,
    check_scoring,
    ranked,
    summed,
)
from jaxsolvers.selection.task import Task, check_per_class, task_of

__all__ = ["grid_search"]


def grid_search(
    solver: Solver,
    X: Any,
    y: Any,
    *,
    folds: Any = 5,
    zip: bool = False,
    per_class: bool = False,
    refit: bool = True,
    scoring: str | None = None,
    classes: Any = None,
    positive_weight: Any = None,
    negatives: float | None = None,
    epochs: int = 1,
    batch_size: int | None = None,
    order: str | None = None,
    key: Any = None,
    sample_weight: Any = None,
    intercept: str | None = None,
    chunk_size: int | None = None,
    block_size: int | None = None,
    mesh: Mesh | None = None,
    progress: bool = False,
) -> GridResult:
    """Cross-validate every point of a grid, all at once, and train the best on all rows.

    Points, folds and classes are rankers of one compiled program: P x folds x K of them, each of
    which leaves out the rows of its fold (their weight is 0 for it). A ranker ends as it would if
    it were trained on its other rows alone, in their order: weights are divided by their mean
    over these rows (a random average, ``Averaged(kind="random")``, draws anew). All points meet
    the rows in the same order.

    With ``batch_size`` above 1 the batches are those of all rows, so that a ranker's are smaller
    by the rows it leaves out. On sparse rows AdaGradFOBOS and FOBOS with a penalty, which owe it to
    the columns a row leaves out, run on rows made dense a slab at a time.

    Args:
      solver: with one number or more given as an array of values, e.g.
        ``js.Pegasos(np.logspace(-5, -2, 7))``. The grid is the product of the arrays, in the order
        of the solver's fields, the last one fastest. An array over the features (of ``Box``) is
        one value, a (m, d) array m of them.
      X: (n, d) dense or sparse rows, as in ``js.fit``.
      y: labels, label sets or real targets. Two labels are for one ranker (as ``js.fit``), real
        targets too, more labels and label sets for one ranker per class (``js.fit_one_vs_rest``),
        with a joint loss for all classes as one problem.
      folds: how many, 2 ... n: rows are dealt out at random, by ``key``, label by label; or an id
        per row (n,).
      zip: whether the arrays are paired, entry by entry, instead of multiplied.
      per_class: whether the model is trained with each class's best numbers instead of those best
        for all.
      refit: whether the model is trained; without it the result's is None.
      scoring: what held-out rows are scored by: "error_rate" (for more than two labels that of the
        predicted labels; the default of classification losses), "loss" (the solver's own, the
        default of the others), "average_precision" or "roc_auc" (means over the classes).
        Weighted by ``sample_weight``.
      classes: the labels in the order of the rankers, as in ``js.fit_one_vs_rest``.
      positive_weight, negatives: as in ``js.fit_one_vs_rest``, for one ranker per class only.
      epochs, batch_size, order, key, sample_weight, intercept, block_size, mesh, progress: as in
        ``js.fit``, for the rankers and for the model.
      chunk_size: rankers trained at a time, to bound memory, as in ``js.fit_one_vs_rest``.

    Returns:
      A GridResult: the table of the scores, the best solver, the best one per class, and the
      model trained on all rows.

    Raises:
      ValueError: bad input, found before training; the message names the argument.
      FloatingPointError: every point lost a ranker. If only some did there is one RuntimeWarning.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> X, y = js.data.blobs(200, 20, n_classes=4)
      >>> found = js.grid_search(js.Pegasos(np.array([1e-3, 1e-2, 10.0])), X, y, folds=4)
      >>> found.table["lam"].tolist(), found.table["fold_scores"].shape
      ([0.001, 0.01, 10.0], (3, 4))
      >>> bool(found.best.lam == found.table["lam"][np.argmin(found.table["score"])])
      True
      >>> found.model.coef.shape
      (4, 20)
    """
    grid = grid_of(solver, zip)
    if is_source(X):
        raise ValueError(
            "X must be an array or a sparse matrix, got a source: js.online_selection takes it"
        )
    examples, y, _ = read_given(X, y, sample_weight)
    options = Options(
        epochs=epochs,
        batch_size=batch_size,
        order=order,
        key=key,
        sample_weight=sample_weight,
        intercept=intercept,
        positive_weight=positive_weight,
        negatives=negatives,
        block_size=block_size,
        chunk_size=chunk_size,
        mesh=mesh,
        progress=progress,
    )
    task = task_of(grid.at(0), y, examples, classes, options)
    check_per_class(per_class, task)
    if not isinstance(refit, bool):
        raise ValueError(f"refit must be True or False, got {refit!r}")
    name = check_scoring(scoring, solver.loss, task.targets, (*SUMS, *RANKED))
    weight = inputs.check_sample_weight(sample_weight, examples.n)
    own = folds_of(folds, task.targets, weight, key_words(0 if key is None else key))
    scores = _cross_validated(grid, task, examples, own, weight, name, options)
    choice = choose(grid, scores, name, np.ones(len(own.names)))
    best = grid.at(choice.best)
    best_per_class = None if choice.per_class is None else grid.at(choice.per_class)
    if not refit:
        return GridResult(choice.table, best, best_per_class, None)
    # The user's labels and dtype were looked at once: no second reading, no second warning.
    chosen = best_per_class if per_class and best_per_class is not None else best
    coef, intercepts, _, _ = train(chosen, examples, task.targets, options)
    model = task.model(chosen, examples, coef, intercepts)
    return GridResult(choice.table, best, best_per_class, model)


def _cross_validated(
    grid: Grid,
    task: Task,
    examples: Examples,
    folds: Folds,
    weight: np.ndarray,
    scoring: str,
    options: Options,
) -> Scores:
    """Train P x folds x rankers and score each on the rows it left out."""
    n_folds, alone = len(folds.names), task.n_rankers
    copies = Copies(grid.points, folds.codes, n_folds)
    targets = dataclasses.replace(task.targets, n_rankers=alone * copies.count, copies=copies)
    candidates = grid.candidates(n_folds * alone)
    coef, intercept, state, _ = train(candidates, examples, targets, options)
    form = (grid.points, n_folds, task.targets.n_classes)
    own = coef.shape[-2:] if candidates.own_vectors else coef.shape[-1:]  # of a ranker
    coef = coef.reshape(*form, *own)
    intercept = intercept.reshape(form)
    loss = grid.candidates().loss.cast(examples.dtype).for_rankers(grid.points)
    shared = np.empty(form[:2])
    per_class = None if task.targets.joint else np.empty(form)
    rows_of = [np.flatnonzero((folds.codes == f) & (weight > 0)) for f in range(n_folds)]
    largest = max(map(len, rows_of))
    for f, rows in enumerate(rows_of):
        model = make_model(
            solver=candidates,
            examples=examples,
            coef=coef[:, f].reshape(-1, *own),
            intercept=intercept[:, f].reshape(-1),
            classes=None,
        )
        trained = Trained(model._rankers(), loss, grid.points, task.targets)
        if scoring in RANKED:
            found: Any = ranked(trained, examples.values, rows, weight, scoring, largest)
        else:
            found = summed(trained, examples.values, rows, weight, scoring)
        shared[:, f] = found[0]
        if per_class is not None:
            per_class[:, f] = found[1]
    lost = ~np.asarray(state.alive).reshape(grid.points, n_folds, alone)
    if per_class is not None:
        _report_undefined(per_class, scoring)
        per_class[np.broadcast_to(lost, per_class.shape)] = np.nan
    shared[lost.any(axis=2)] = np.nan
    return Scores(shared, per_class, lost)


def _report_undefined(per_class: np.ndarray, scoring: str) -> None:
    missing = np.isnan(per_class).all(axis=0)
    if scoring in RANKED and missing.any():
        warnings.warn(
            f"{scoring} has no value for {missing.sum()} of {missing.size} pairs of a fold and a "
            "class, which hold out no positive row (or no other): they are left out of the means",
            UserWarning,
            stacklevel=4,
        )
