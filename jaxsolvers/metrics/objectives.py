"""The objective a solver minimises, at a model."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxsolvers.members import Array
from jaxsolvers.metrics.checks import checked_weights
from jaxsolvers.models import LinearModel
from jaxsolvers.protocol import Solver

__all__ = ["objective"]


def objective(
    solver: Solver,
    model: LinearModel,
    X: Any,
    y: Any,
    *,
    sample_weight: ArrayLike | None = None,
) -> Array:
    """The regularized mean loss, per ranker.

    ``penalty(w) + sum_i s_i l(<w, x_i> + b, y_i) / sum_i s_i``; the penalty is ``lam/2 ||w||^2``
    for Pegasos and ``phi(w)`` for AdaGrad. Pegasos regularizes an intercept column, AdaGrad does
    not. A ``positive_weight`` of the training is not part of it. Rows are taken in blocks: no
    (n, K) array is made.

    Args:
      solver: the solver that trained the model; its numbers single or one per ranker (K,).
      model: the model, one ranker or K.
      X: (n, d).
      y: (n,) labels as in training, or real targets for regression.
      sample_weight: (n,) >= 0; equal weights by default.

    Returns:
      () for one ranker, (K,) for many.

    Raises:
      ValueError: shapes that do not fit, labels that are not classes of the model.

    Example:
      >>> import jax.numpy as jnp, numpy as np, jaxsolvers as js
      >>> model = js.LinearModel(jnp.array([2.0]), jnp.array(0.0), np.array([-1, 1]))
      >>> float(js.metrics.objective(js.Pegasos(0.5), model, np.ones((1, 1)), np.array([1])))
      1.0
    """
    y = np.asarray(y)
    if y.ndim != 1 or np.ndim(X) != 2 or len(y) != len(X) or len(y) == 0:
        raise ValueError(f"X and y must be (n, d) and (n,); got {np.shape(X)} and {y.shape}")
    given, _ = checked_weights(sample_weight, len(y))
    weight = np.ones(len(y)) if given is None else np.asarray(given, np.float64)
    coef, intercept = jnp.atleast_2d(model.coef), jnp.atleast_1d(model.intercept)
    several = np.ndim(model.coef) == 2
    solver.validate()
    solver.check_shapes(len(coef) if several else None, coef.shape[1])
    solver = solver.cast(coef.dtype).for_rankers(len(coef))
    loss = np.zeros(len(coef))
    for start in range(0, len(y), _ROWS):
        at = slice(start, start + _ROWS)
        scores = jnp.atleast_2d(model.decision_function(X[at]).T)
        target = _targets(model, y[at], coef.dtype)
        losses = _losses(solver, scores, target, jnp.asarray(weight[at], coef.dtype), several)
        loss += np.asarray(losses, np.float64)
    weights = jnp.concatenate([coef, intercept[:, None]], axis=1)
    penalty = _penalties(solver.free_intercept(), weights)
    values = penalty + jnp.asarray(loss / weight.sum(), coef.dtype)
    return values if several else values[0]


_ROWS = 4096


def _targets(model: LinearModel, y: np.ndarray, dtype: Any) -> Array:
    """Class codes (many rankers) or the targets themselves (one ranker), (n,)."""
    if model.classes is None:
        return jnp.asarray(y, dtype)
    code = {label: i for i, label in enumerate(model.classes.tolist())}
    unknown = [label for label in np.unique(y).tolist() if label not in code]
    if unknown:
        raise ValueError(f"y holds the label {unknown[0]!r}, which is not a class of the model")
    codes = np.array([code[label] for label in y.tolist()], np.int32)
    if np.ndim(model.coef) == 2:
        return jnp.asarray(codes)
    return jnp.asarray(2 * codes - 1, dtype)


@partial(jax.jit, static_argnames="several")
def _losses(solver: Solver, scores: Array, target: Array, weight: Array, several: bool) -> Array:
    def one(solver: Solver, code: Array, score: Array) -> Array:
        own = jnp.where(target == code, 1, -1).astype(score.dtype) if several else target
        value, _ = solver.loss.value_and_slope(score, own)
        return jnp.sum(weight * value)

    codes = jnp.arange(scores.shape[0], dtype=jnp.int32)
    return jax.vmap(one, in_axes=(solver.ranker_axes(), 0, 0))(solver, codes, scores)


@jax.jit
def _penalties(solver: Solver, weights: Array) -> Array:
    def one(solver: Solver, weights: Array) -> Array:
        return solver.penalty(weights)

    return jax.vmap(one, in_axes=(solver.ranker_axes(), 0))(solver, weights)
