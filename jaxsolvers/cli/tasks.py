"""What labels are to mean: which task a file poses."""

from __future__ import annotations

from typing import Any

import numpy as np


def choose_task(asked: str, labels: Any, classifies: bool | None) -> str:
    """The task of some labels.

    Args:
      asked: "auto" or a task.
      labels: the different labels; None where every row has any number of them.
      classifies: whether the loss that was chosen is one of classification; None if none was
        chosen.

    Raises:
      ValueError: a task that does not fit the labels or the loss.

    Example:
      >>> choose_task("auto", np.array([-1, 1]), None), choose_task("auto", np.arange(9), None)
      ('binary', 'multiclass')
      >>> choose_task("auto", np.array([0.5, 2.0, 7.25]), None)
      'regression'
    """
    if labels is None and asked not in ("auto", "multilabel"):
        raise ValueError(f"--task {asked} needs one label per row, got several or none")
    if labels is not None and asked == "multilabel":
        raise ValueError("--task multilabel needs an indicator (n, K), got one label per row")
    task = asked if asked != "auto" else _found(labels, classifies)
    if task == "regression" and classifies:
        raise ValueError("--task regression needs a loss for real targets, such as --loss squared")
    if task == "binary" and classifies is False:
        raise ValueError("--task binary needs a loss of classification, such as --loss hinge")
    if task == "regression" and labels is not None and labels.dtype.kind not in "biuf":
        raise ValueError(f"--task regression needs numbers as labels, got {labels[:1].tolist()}")
    return task


def _found(labels: Any, classifies: bool | None) -> str:
    if labels is None:
        return "multilabel"
    if classifies is False:
        return "regression"
    if len(labels) <= 2:
        return "binary"
    if labels.dtype.kind == "f" and not (labels == np.trunc(labels)).all():
        if classifies:
            raise ValueError(
                f"--task must be given for labels such as {labels[labels % 1 != 0][0]:g}: "
                "regression (with a loss such as --loss squared) or multiclass"
            )
        return "regression"
    return "multiclass"
