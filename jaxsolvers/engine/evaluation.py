"""Rows that a run is measured on and not trained on."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxsolvers.csr import Csr
from jaxsolvers.engine.inputs import Examples, check_rows, check_sample_weight


@dataclasses.dataclass(frozen=True, eq=False)
class Evaluation:
    """An ``eval_set``, read like the rows of the training."""

    examples: Examples
    target: np.ndarray | Csr  # as Targets.values
    weight: np.ndarray  # (n,)


def read_eval_set(
    given: Any, examples: Examples, read_target: Callable[[Any, int], Any]
) -> Evaluation | None:
    """The rows of ``eval_set``; None without one.

    Args:
      given: (X, y) or (X, y, sample_weight).
      examples: those of the training, of the same width and dtype.
      read_target: (y, n) -> the targets as those of the training.

    Raises:
      ValueError: of another form, or as for X, y and sample_weight; the message names eval_set.
    """
    if given is None:
        return None
    if not isinstance(given, tuple | list) or len(given) not in (2, 3):
        found = f"{len(given)} parts" if isinstance(given, tuple | list) else repr(given)
        raise ValueError(f"eval_set must be (X, y) or (X, y, sample_weight), got {found}")
    try:
        rows = check_rows(given[0], examples.d)
        target = read_target(given[1], rows.shape[0])
        weight = check_sample_weight(given[2] if len(given) == 3 else None, rows.shape[0])
    except ValueError as error:
        raise ValueError(f"eval_set: {error}") from None
    return Evaluation(Examples(rows, examples.dtype), target, weight)
