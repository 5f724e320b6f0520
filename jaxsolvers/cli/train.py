"""``jaxsolvers train``: from a file of labelled rows to a saved model."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import time
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from jaxsolvers.cli.evaluate import measure
from jaxsolvers.cli.model_files import precision, save_model, size_of
from jaxsolvers.cli.reading import Reading, Source, for_training, look_at, open_source, read_table
from jaxsolvers.cli.reports import count, print_report, share, shown
from jaxsolvers.cli.solver_options import described, settings_given, solver_from
from jaxsolvers.cli.tasks import choose_task
from jaxsolvers.cli.writing import check_model_place
from jaxsolvers.csr import is_sparse
from jaxsolvers.engine.run import Fit, fit
from jaxsolvers.multiclass import fit_one_vs_rest


class Training(NamedTuple):
    """What is trained on."""

    X: Any  # a matrix, a csr_array or a Source
    y: Any  # labels or indicators; None of a Source
    labels: np.ndarray | None  # the different labels; None for indicators and sets
    zero_based: bool | None


def run(options: argparse.Namespace) -> None:
    """Read, train, save, report.

    Raises:
      ValueError: bad data, bad options, or a model place that is not free.
      FloatingPointError: the training diverged; nothing is saved.
    """
    began = time.perf_counter()
    given = settings_given(options)
    solver_from(options.solver, given)  # what is wrong with it should show before reading
    check_model_place(options.output, options.force)
    for path in (options.data, options.validation):
        if path is not None:
            _check_other(path, options.output)
    with precision(options.float64):
        reading = for_training(options)
        data = _read(options, reading)
        classifies = _loss_classifies(options.solver, given)
        task = choose_task(options.task, data.labels, classifies)
        solver = solver_from(options.solver, given, task == "regression")
        if options.intercept is None:
            options.intercept = "none" if solver.own_bias else "column"
        trained = _fit(options, solver, data, task)
        model = trained.model.sparsify() if options.sparse else trained.model
        save_model(model, _notes(options, data, task, solver), options.output)
        if not options.quiet:
            _print_summary(options, trained, model, data, task, solver)
            print_report({"seconds": f"{time.perf_counter() - began:.1f}"})
        if options.validation is not None:
            print(f"\non {options.validation}:")
            found = measure(model, options.validation, _alike(reading, data, model, options))
            print_report({name: shown(value) for name, value in found.items()})


def _notes(options: argparse.Namespace, data: Training, task: str, solver: Any) -> dict[str, Any]:
    """What the model's file remembers of the training."""
    return {
        "task": task,
        "zero_based": data.zero_based,
        "normalize": options.normalize,
        "rows": _size(data)[0],
        "epochs": options.epochs,
        "intercept": options.intercept,
        "positive_weight": options.positive_weight,
        **described(solver),
    }


def _print_summary(
    options: argparse.Namespace, trained: Fit, model: Any, data: Training, task: str, solver: Any
) -> None:
    rows, entries = _size(data)
    base = {None: "", True: ", first index 0", False: ", first index 1"}[data.zero_based]
    print_report(
        {
            "rows": f"{count(rows)} ({entries / rows:.1f} non-zeros each)",
            "features": f"{count(model.n_features)}{base}",
            "task": f"{task}{_labels(trained, task)}",
            "solver": ", ".join(f"{name}={value}" for name, value in described(solver).items()),
        }
    )
    _print_epochs(trained)
    print_report(
        {
            "model": f"{_shape(model)} coefficients, {share(model.density)} not 0",
            "saved": f"{options.output} ({count(size_of(options.output))} bytes)",
        }
    )


def _read(options: argparse.Namespace, reading: Reading) -> Training:
    seen = look_at(options.data, options.labels)
    several = options.task == "multilabel"
    if options.task == "auto" and seen is not None:
        several = seen.several or seen.unlabelled
    if options.stream:
        if options.order == "uniform":
            raise ValueError("--order uniform needs the rows in memory: leave out --stream")
        source = open_source(options.data, reading, several)
        source.survey()
        return Training(source, None, source.labels, source.stream.zero_based)
    table = read_table(options.data, reading, several)
    if table.y is None:
        raise ValueError(f"{options.data} has no labels y: give them with --labels")
    one_each = not is_sparse(table.y) and table.y.ndim == 1
    labels = np.unique(table.y) if one_each else None
    return Training(table.X, table.y, labels, table.zero_based)


def _fit(options: argparse.Namespace, solver: Any, data: Training, task: str) -> Fit:
    shared = {
        "epochs": options.epochs,
        "batch_size": options.batch_size,
        "order": options.order,
        "key": options.seed,
        "intercept": options.intercept,
        "block_size": options.block_size,
        "progress": _shows_progress(options),
    }
    weight = options.positive_weight
    if solver.loss.joint and task in ("binary", "multiclass"):
        for name in ("negatives", "chunk_size", "positive_weight"):
            if getattr(options, name) is not None:
                loss = type(solver.loss).__name__
                raise ValueError(f"{name} must be left out with {loss}, which has one problem")
        return fit(solver, data.X, data.y, **shared)
    if task in ("multiclass", "multilabel"):
        return fit_one_vs_rest(
            solver,
            data.X,
            data.y,
            positive_weight=weight,
            negatives=options.negatives,
            chunk_size=options.chunk_size,
            **shared,
        )
    for name in ("negatives", "chunk_size"):
        if getattr(options, name) is not None:
            raise ValueError(f"{name} must be left out for --task {task}, which has one ranker")
    if weight is None:
        return fit(solver, data.X, data.y, **shared)
    if task == "regression":
        raise ValueError("positive_weight must be left out for --task regression")
    if not (np.isfinite(weight) and weight > 0):
        raise ValueError(f"positive_weight must be a finite number > 0, got {weight}")
    assert data.labels is not None
    positive = data.labels[-1]
    if isinstance(data.X, Source):
        data.X.weighed = (positive, weight)
        return fit(solver, data.X, **shared)
    weights = np.where(data.y == positive, weight, 1.0)
    return fit(solver, data.X, data.y, sample_weight=weights, **shared)


def _loss_classifies(name: str, given: dict[str, str]) -> bool | None:
    """Whether the loss that was chosen is one of classification; None if none was."""
    if "loss" not in given:
        return None
    return bool(solver_from(name, given).loss.classification)


def _alike(reading: Reading, data: Training, model: Any, options: argparse.Namespace) -> Reading:
    """How the validation file is read: like the training file."""
    return dataclasses.replace(
        reading,
        width=model.n_features,
        zero_based="auto" if data.zero_based is None else data.zero_based,
        labels=None,
        drop=options.drop_new_features,
    )


def _check_other(path: str, output: str) -> None:
    if not os.path.exists(path):
        raise FileNotFoundError(2, "No such file or directory", path)
    if os.path.exists(output) and os.path.samefile(path, output):
        raise ValueError(f"--output must be another file than {path}, which is read")


def _shows_progress(options: argparse.Namespace) -> bool:
    if options.progress is not None:
        return bool(options.progress)
    terminal = not options.quiet and sys.stderr.isatty()
    return terminal and find_spec("tqdm") is not None


def _size(data: Training) -> tuple[int, int]:
    """Rows, and entries that are stored or not 0."""
    if isinstance(data.X, Source):
        return data.X.rows, data.X.entries
    entries = data.X.nnz if is_sparse(data.X) else np.count_nonzero(data.X)
    return int(data.X.shape[0]), int(entries)


def _labels(trained: Fit, task: str) -> str:
    classes = trained.model.classes
    if classes is None:
        return ""
    if task == "binary":
        return f": {classes[0]} and {classes[1]}, the second one is positive"
    return f": {count(len(classes))} labels"


def _shape(model: Any) -> str:
    return " x ".join(count(size) for size in model.coef.shape)


def _print_epochs(trained: Fit) -> None:
    history = trained.history
    losses = history["progressive_loss"]
    for number, loss in enumerate(losses.reshape(len(losses), -1), 1):
        mean = float(np.mean(loss[np.isfinite(loss)])) if np.isfinite(loss).any() else float("nan")
        seconds = history["seconds"][number - 1]
        print(f"epoch {number:<4} progressive loss {mean:<12.6g} {seconds:.2f} s")
