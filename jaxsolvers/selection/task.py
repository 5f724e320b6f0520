"""What is to be learnt: one ranker, all classes as one problem, or one ranker per class."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jaxsolvers import checks
from jaxsolvers.csr import is_sparse
from jaxsolvers.engine.inputs import Examples
from jaxsolvers.engine.job import Options
from jaxsolvers.engine.run import make_model, targets_alone
from jaxsolvers.engine.targets import Targets
from jaxsolvers.multiclass import targets_of_classes
from jaxsolvers.protocol import Solver


class Task(NamedTuple):
    """The targets, and which of ``fit`` and ``fit_one_vs_rest`` learns them."""

    targets: Targets
    per_class: bool  # fit_one_vs_rest

    @property
    def n_rankers(self) -> int:
        """Rankers with numbers of their own."""
        return self.targets.n_rankers

    def model(self, solver: Solver, examples: Examples, coef: Any, intercept: Any) -> Any:
        """The model of trained weights (rankers, ...)."""
        if not self.per_class or self.targets.together:
            coef, intercept = coef[0], intercept[0]
        targets = self.targets
        return make_model(solver, examples, coef, intercept, targets.classes, targets.output)


def task_of(solver: Solver, y: Any, examples: Examples, classes: Any, options: Options) -> Task:
    """Two labels and real targets are for one ranker, label sets and more labels for many.

    Raises:
      ValueError: as ``fit`` and ``fit_one_vs_rest`` of y, classes and positive_weight.
    """
    per_class = not solver.loss.joint and _has_classes(solver, y, examples.n, classes)
    if per_class:
        targets = targets_of_classes(solver, y, examples.n, classes, options)
    else:
        for name in ("positive_weight", "negatives"):
            value = getattr(options, name)
            if value is not None:
                raise ValueError(
                    f"{name} must be None without a ranker per class (sample_weight weighs rows), "
                    f"got {value!r}"
                )
        known = options.known_classes()
        if known is None and classes is not None:
            known = np.asarray(classes)
        targets = targets_alone(solver, y, examples, known)
    solver.check_shapes(None, examples.d, targets.together)
    return Task(targets, per_class)


def check_per_class(per_class: Any, task: Task) -> None:
    """Raise a ValueError that names ``per_class`` if classes cannot have numbers of their own."""
    if not isinstance(per_class, bool):
        raise ValueError(f"per_class must be True or False, got {per_class!r}")
    if per_class and (not task.per_class or task.targets.together):
        raise ValueError("per_class must be False without rankers per class, got True")


def _has_classes(solver: Solver, y: Any, n: int, classes: Any) -> bool:
    if is_sparse(y):
        return True
    if isinstance(y, (list, tuple)) or np.ndim(y) == 1:
        rows = list(y[:1]) if isinstance(y, (list, tuple)) else np.asarray(y)[:1].tolist()
        if any(hasattr(row, "__len__") and not isinstance(row, (str, bytes)) for row in rows):
            return True
    elif np.ndim(y) == 2:
        return True
    if classes is not None:
        return len(np.unique(np.asarray(classes))) > 2 or not solver.loss.classification
    return solver.loss.classification and len(np.unique(checks.check_labels(y, n))) > 2
