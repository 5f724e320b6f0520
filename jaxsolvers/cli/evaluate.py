"""``jaxsolvers evaluate``: how good a model is on labelled rows."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np

from jaxsolvers.checks import check_reals
from jaxsolvers.cli.model_files import load_model, precision, ready, task_of
from jaxsolvers.cli.reading import BLOCK_ROWS, Reading, for_model, look_at, read_table
from jaxsolvers.cli.reports import print_json, print_report, shown
from jaxsolvers.csr import is_sparse
from jaxsolvers.data.extras import scipy_sparse
from jaxsolvers.metrics import average_precision, roc_auc
from jaxsolvers.models import LinearModel

CUTOFFS = (1, 3, 5)
_SCORES = 1 << 22  # scores held at a time


def run(options: argparse.Namespace) -> None:
    """Print the measures that suit the model.

    Raises:
      ValueError: no model, bad data, or labels of another kind than the model's.
    """
    model, notes = load_model(options.model)
    reading = for_model(options, model, notes)
    with precision(reading.dtype.itemsize > 4):
        found = measure(model, options.data, reading)
    if options.json:
        print_json(found)
    else:
        print_report({name: shown(value) for name, value in found.items()})


def measure(model: LinearModel, path: str, reading: Reading) -> dict[str, Any]:
    """The measures of a model on the rows of a file, by name; None where one is undefined.

    Raises:
      ValueError: bad data, no labels, or labels of another kind than the model's.
    """
    task = task_of(model)
    look_at(path, reading.labels)  # refuses labels given twice
    X, y, _ = read_table(path, reading, several=task == "multilabel")
    if y is None:
        raise ValueError(f"{path} has no labels y: give them with --labels")
    if (is_sparse(y) or y.ndim == 2) != (task == "multilabel"):
        wanted = "indicators (n, K)" if task == "multilabel" else "one label per row"
        raise ValueError(f"{path} must have {wanted} for this model, got labels {y.shape}")
    model = ready(model)
    found: dict[str, Any] = {"task": task, "rows": int(X.shape[0])}
    if task == "regression":
        return found | _of_numbers(model, X, check_reals(y, "y", "hold real numbers"))
    if task == "multilabel":
        truth, unknown = _known_columns(y, len(_classes(model)))
        return found | {"labels_unknown": unknown} | _of_rankings(model, X, truth)
    codes = _codes(y, _classes(model), path)
    found["rows_with_unknown_label"] = int((codes < 0).sum())
    if task == "binary":
        return found | _of_two_classes(model, X, codes)
    rows = np.flatnonzero(codes >= 0)
    shape = (len(codes), len(_classes(model)))
    entries = (np.ones(len(rows), bool), (rows, codes[rows]))
    truth = scipy_sparse("evaluating many classes").csr_array(entries, shape=shape)
    return found | _of_rankings(model, X, truth, codes)


def _of_numbers(model: LinearModel, X: Any, y: np.ndarray) -> dict[str, Any]:
    residuals = _scores(model, X).astype(np.float64) - y
    spread = float(np.mean((y - y.mean()) ** 2))
    error = float(np.mean(residuals**2))
    return {
        "mean_squared_error": error,
        "mean_absolute_error": float(np.mean(np.abs(residuals))),
        "r2": 1 - error / spread if spread > 0 else None,
    }


def _of_two_classes(model: LinearModel, X: Any, codes: np.ndarray) -> dict[str, Any]:
    scores = _scores(model, X)
    errors = float(np.mean((scores > 0) != codes))
    positive = codes == 1
    two = bool(positive.any() and (codes == 0).any())
    known = codes >= 0
    return {
        "accuracy": 1 - errors,
        "error_rate": errors,
        "average_precision": float(average_precision(positive[known], scores[known]))
        if positive.any()
        else None,
        "roc_auc": float(roc_auc(positive[known], scores[known])) if two else None,
    }


def _of_rankings(
    model: LinearModel, X: Any, truth: Any, codes: np.ndarray | None = None
) -> dict[str, Any]:
    """Of K rankers: truth is a sparse bool (n, K), codes (n,) where each row has one label."""
    found: dict[str, Any] = {}
    most = min(max(CUTOFFS), truth.shape[1])
    indices = np.concatenate([np.asarray(model.top_k(rows, most)[0]) for rows in _blocks(X)])
    if codes is not None:
        errors = float(np.mean(indices[:, 0] != codes))
        found |= {"accuracy": 1 - errors, "error_rate": errors}
    hits = _hits(truth, indices)
    precisions = _average_precisions(model, X, truth)
    mean = float(np.mean(precisions)) if len(precisions) else None
    found["mean_average_precision"] = mean
    found["classes_averaged"] = len(precisions)
    found["classes_without_rows"] = truth.shape[1] - len(precisions)
    for k in CUTOFFS:
        if k <= most:
            found[f"precision_at_{k}"] = float(hits[:, :k].mean())
    return found


def _average_precisions(model: LinearModel, X: Any, truth: Any) -> np.ndarray:
    """Average precision of the classes that have a row, some rankers at a time."""
    columns = truth.tocsc()
    present = np.flatnonzero(np.diff(columns.indptr))
    classes = _classes(model)
    width = max(1, min(len(present), _SCORES // max(1, truth.shape[0])))
    parts = []
    for start in range(0, len(present), width):
        # The last tile begins early: tiles of one width need one program.
        first = max(0, min(start, len(present) - width))
        tile = present[first : first + width]
        scores = _scores(model, X, classes[tile])
        parts.append(np.asarray(average_precision(columns[:, tile], scores))[start - first :])
    return np.concatenate(parts) if parts else np.zeros(0)


def _scores(model: LinearModel, X: Any, classes: Any = None) -> np.ndarray:
    return np.concatenate(
        [np.asarray(model.decision_function(rows, classes)) for rows in _blocks(X)]
    )


def _blocks(X: Any) -> Iterator[Any]:
    for start in range(0, X.shape[0], BLOCK_ROWS):
        yield X[start : start + BLOCK_ROWS]


def _hits(truth: Any, indices: np.ndarray) -> np.ndarray:
    """(n, k) bool: whether the row has that label."""
    n, width = truth.shape
    lengths = np.diff(truth.indptr)
    pairs = np.repeat(np.arange(n, dtype=np.int64), lengths) * width + truth.indices
    asked = np.arange(n, dtype=np.int64)[:, None] * width + indices
    return np.isin(asked, pairs)


def _known_columns(y: Any, width: int) -> tuple[Any, int]:
    """The first ``width`` columns of an indicator, and how many labels lie beyond."""
    sparse = scipy_sparse("evaluating label sets")
    matrix = sparse.csr_array(y if is_sparse(y) else y > 0)
    matrix.eliminate_zeros()
    if matrix.shape[1] < width:
        parts = (matrix.data, matrix.indices, matrix.indptr)
        return sparse.csr_array(parts, shape=(matrix.shape[0], width)).astype(bool), 0
    known = matrix[:, :width].astype(bool)
    return known, int(matrix.nnz - known.nnz)


def _codes(y: np.ndarray, classes: np.ndarray, path: str) -> np.ndarray:
    """Place of each label among the classes, (n,) int64; -1 for a label that is none of them.

    Raises:
      ValueError: labels of another kind, or not one of them a class.
    """
    kinds = ["number" if a.dtype.kind in "biuf" else "string" for a in (y, classes)]
    if kinds[0] != kinds[1]:
        raise ValueError(
            f"{path} must have labels of the model's kind, {classes.dtype}, got {y.dtype}"
        )
    order = np.argsort(classes)
    at = np.minimum(np.searchsorted(classes, y, sorter=order), len(classes) - 1)
    codes = np.where(classes[order][at] == y, order[at], -1)
    if (codes < 0).all():
        shown_classes, labels = classes[:5].tolist(), np.unique(y)[:5].tolist()
        raise ValueError(
            f"{path} has no label that the model knows: it knows {shown_classes} ..., got {labels}"
        )
    return codes


def _classes(model: LinearModel) -> np.ndarray:
    if model.classes is None:
        assert model.n_rankers is not None
        return np.arange(model.n_rankers)
    return model.classes
