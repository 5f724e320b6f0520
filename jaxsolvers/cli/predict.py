"""``jaxsolvers predict``: the labels or scores of new rows, one line each."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from jaxsolvers.cli.model_files import load_model, precision, ready, task_of
from jaxsolvers.cli.reading import for_model, row_blocks
from jaxsolvers.cli.reports import count
from jaxsolvers.cli.writing import lines_to
from jaxsolvers.models import LinearModel

_SCORES = 1 << 22  # scores held at a time


def run(options: argparse.Namespace) -> None:
    """Write a line per row.

    Raises:
      ValueError: no model, bad data, or an output that the model does not have.
    """
    model, notes = load_model(options.model)
    reading = for_model(options, model, notes)
    with precision(reading.dtype.itemsize > 4):
        answer = _answer(options, model)
        rows = 0
        with lines_to(options.output, options.force) as file:
            for X in row_blocks(options.data, reading):
                for line in answer(X):
                    file.write(line + "\n")
                rows += X.shape[0]
    if options.output not in (None, "-") and not options.quiet:
        print(f"{count(rows)} rows written to {options.output}", file=sys.stderr)


def _answer(options: argparse.Namespace, model: LinearModel) -> Callable[[Any], Iterable[str]]:
    """What makes the lines of some rows."""
    task = task_of(model)
    if options.top_k is not None:
        if model.n_rankers is None:
            raise ValueError("--top-k needs one ranker per class, this model has a single one")
        if not 1 <= options.top_k <= model.n_rankers:
            raise ValueError(f"--top-k must be 1 ... {model.n_rankers}, got {options.top_k}")
    if options.threshold != 0 and (options.scores or options.top_k is not None):
        raise ValueError("--threshold has no use with --scores or --top-k")
    if np.isnan(options.threshold):
        raise ValueError("--threshold must be a number, got nan")
    if options.threshold != 0 and task in ("multiclass", "regression"):
        raise ValueError(f"--threshold has no use for a {task} model")
    names = _names(model, " ," if task == "multilabel" or options.top_k else "")
    model = ready(model)
    if options.scores or task == "regression":
        return lambda X: _scores(model, X)
    if options.top_k is not None:
        return lambda X: _top(model, X, options.top_k, names)
    if task == "multilabel":
        positions = dataclasses.replace(model, output="sets", classes=None)
        return lambda X: (
            ",".join(names[k] for k in row) for row in positions.predict(X, options.threshold)
        )
    if task == "binary":
        return lambda X: map(str, model.predict(X, options.threshold).tolist())
    return lambda X: map(str, model.predict(X).tolist())


def _scores(model: LinearModel, X: Any) -> Iterator[str]:
    step = max(1, _SCORES // (model.n_rankers or 1))
    for start in range(0, X.shape[0], step):
        scores = np.asarray(model.decision_function(X[start : start + step]))
        for row in _texts(scores).reshape(len(scores), -1):
            yield " ".join(row)


def _top(model: LinearModel, X: Any, k: int, names: list[str]) -> Iterator[str]:
    indices, scores = model.top_k(X, k)
    texts = _texts(np.asarray(scores)).tolist()
    for row, found in zip(np.asarray(indices).tolist(), texts, strict=True):
        yield " ".join(f"{names[i]}:{score}" for i, score in zip(row, found, strict=True))


def _texts(scores: np.ndarray) -> np.ndarray:
    """Each score with the fewest digits that read back to its bits."""
    return scores.astype("U")


def _names(model: LinearModel, parting: str) -> list[str]:
    """The classes as text.

    Raises:
      ValueError: a label holds what parts labels or lines.
    """
    classes = [] if model.classes is None else model.classes.tolist()
    if not classes and model.n_rankers is not None:
        classes = list(range(model.n_rankers))
    names = [str(label) for label in classes]
    for name in names:
        if any(character in name for character in "\r\n" + parting):
            raise ValueError(f"the label {name!r} cannot be written in lines of labels")
    return names
