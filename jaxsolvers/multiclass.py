"""One ranker per class."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax.sharding import Mesh

from jaxsolvers import checks
from jaxsolvers.engine import inputs
from jaxsolvers.engine.job import Options, Targets, check_solver
from jaxsolvers.engine.run import Fit, train
from jaxsolvers.engine.state import TrainState
from jaxsolvers.models import LinearModel
from jaxsolvers.protocol import Solver

__all__ = ["fit_one_vs_rest"]


def fit_one_vs_rest(
    solver: Solver,
    X: Any,
    y: Any,
    *,
    classes: Any = None,
    positive_weight: Any = None,
    chunk_size: int | None = None,
    epochs: int = 1,
    batch_size: int | None = None,
    order: str | None = None,
    key: Any = None,
    sample_weight: Any = None,
    intercept: str | None = None,
    state: TrainState | None = None,
    block_size: int | None = None,
    mesh: Mesh | None = None,
    progress: bool = False,
) -> Fit:
    """Train one ranker per class against all the others, all of them at once.

    Ranker k sees target +1 where ``y == classes[k]`` and -1 elsewhere; all visit the rows in the
    same order. The result is the same, to the bit, for every ``chunk_size`` and mesh.

    Args:
      solver: e.g. ``js.AdaGradRDA(0.1)``. A number given as an array of length K is one value
        per ranker.
      X: (n, d), as in ``js.fit``.
      y: (n,) labels of any sortable kind.
      classes: the labels in the order of the rankers; sorted labels of y by default. Labels
        without a row are allowed, rows with other labels are not.
      positive_weight: factor on the weight of a ranker's positive rows, > 0; one number or one
        per ranker (K,). 1 by default, or the state's.
      chunk_size: rankers trained at a time, to bound memory; rounded up to whole tiles. The
        result then lies on the host. All at once by default.
      epochs, batch_size, order, key, sample_weight, intercept, state, block_size, mesh,
        progress: as in ``js.fit``.

    Returns:
      A Fit; ``model.coef`` is (K, d).

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
    options = Options(
        epochs=epochs,
        batch_size=batch_size,
        order=order,
        key=key,
        sample_weight=sample_weight,
        intercept=intercept,
        positive_weight=positive_weight,
        state=state,
        block_size=block_size,
        chunk_size=chunk_size,
        mesh=mesh,
        progress=progress,
    )
    check_solver(solver)
    examples = inputs.check_examples(X)
    labels = checks.check_labels(y, examples.n)
    found, codes = _codes(labels, options.known_classes() if classes is None else classes)
    n_rankers = len(found)
    solver.check_shapes(n_rankers, examples.d)
    weight = _positive_weight(options.resumed("positive_weight", 1.0), n_rankers)
    targets = Targets(codes, True, n_rankers, found, weight)
    coef, intercepts, after, history = train(solver, examples, targets, options)
    return Fit(LinearModel(coef, intercepts, found), after, history)


def _codes(labels: np.ndarray, classes: Any) -> tuple[np.ndarray, np.ndarray]:
    """(classes (K,), position of each row's label among them (n,) int32)."""
    found, codes = np.unique(labels, return_inverse=True)
    if classes is None:
        if len(found) == 1:
            raise ValueError(
                f"y must hold at least two classes, got only {found.tolist()[0]!r}; "
                "declare the others with classes="
            )
        return found, codes.astype(np.int32)
    classes = np.asarray(classes)
    if classes.ndim != 1 or len(classes) < 2:
        raise ValueError(f"classes must be a list of at least two labels, got {classes!r}")
    position = {label: i for i, label in enumerate(classes.tolist())}
    if len(position) < len(classes):
        raise ValueError("classes must be distinct labels, got one twice")
    unknown = [label for label in found.tolist() if label not in position]
    if unknown:
        raise ValueError(
            f"y holds the label {unknown[0]!r}, the classes are {classes.tolist()[:20]}"
        )
    where = np.array([position[label] for label in found.tolist()], np.int32)
    return classes, where[codes]


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
