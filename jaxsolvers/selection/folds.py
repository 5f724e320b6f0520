"""Folds: which rows are held out together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jaxsolvers import checks
from jaxsolvers.csr import Csr
from jaxsolvers.engine.order import FOLD_STREAM, raw_bits
from jaxsolvers.engine.targets import Targets


class Folds(NamedTuple):
    """Every row's fold."""

    codes: np.ndarray  # (n,) int32
    names: list[Any]  # the folds as they were given, by code


def folds_of(folds: Any, targets: Targets, weight: np.ndarray, words: np.ndarray) -> Folds:
    """The folds of the rows.

    Args:
      folds: their number, or an id per row (n,).
      targets: of all rows; rows of labels are dealt out class by class.
      weight: (n,), rows of weight 0 go anywhere.
      words: of the key.

    Raises:
      ValueError: folds of another shape, too many of them, one without a row to score or to train
        on, or one without which only one class is left; the message names it.
    """
    n = len(weight)
    if np.ndim(folds) == 0:
        live = int((weight > 0).sum())
        if live < 2:
            raise ValueError(f"X must have two rows of weight > 0 or more for folds, got {live}")
        count = checks.check_integer(folds, "folds", 2, live)
        found = Folds(_dealt(count, targets, weight, words), list(range(count)))
    else:
        ids = checks.check_vector(folds, n, "folds")
        if ids.dtype == object or (ids.dtype.kind == "f" and not np.isfinite(ids).all()):
            raise ValueError("folds must be integers or strings, an id per row, without NaN")
        names, codes = np.unique(ids, return_inverse=True)
        if len(names) < 2:
            raise ValueError(f"folds must hold two ids or more, got only {names.tolist()}")
        found = Folds(codes.astype(np.int32), names.tolist())
    _check(found, targets, weight)
    return found


def _dealt(count: int, targets: Targets, weight: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Rows in a random order, class by class, dealt out to the folds one at a time."""
    n = len(weight)
    labels = _labels(targets)
    by_class = np.zeros(n) if labels is None else labels
    order = np.lexsort((raw_bits(words, 0, n, FOLD_STREAM), by_class, weight <= 0))
    codes = np.empty(n, np.int32)
    codes[order] = np.arange(n) % count
    return codes


def _labels(targets: Targets) -> np.ndarray | None:
    """Each row's label as a number, None for real targets and for sets of labels."""
    if isinstance(targets.values, Csr) or targets.classes is None:
        return None
    return targets.values


def _check(folds: Folds, targets: Targets, weight: np.ndarray) -> None:
    labels, live = _labels(targets), weight > 0
    for code, name in enumerate(folds.names):
        own = live & (folds.codes == code)
        others = live & ~own
        for rows, what in ((own, "to score"), (others, "to train on")):
            if not rows.any():
                raise ValueError(
                    f"folds must leave rows of weight > 0 {what}, fold {name!r} has none"
                )
        if labels is not None and targets.classes is not None:
            left = np.unique(labels[others])
            if len(left) < 2:
                at = int(left[0]) if targets.values.dtype == np.int32 else int(left[0] > 0)
                raise ValueError(
                    f"folds must leave two classes to train on: without fold {name!r} only "
                    f"{targets.classes[at : at + 1].tolist()[0]!r} is left"
                )
