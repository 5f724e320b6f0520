"""The objective a solver minimises, at a model."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxsolvers.checks import check_matrix, host_array
from jaxsolvers.csr import Csr, check_csr, is_sparse
from jaxsolvers.members import Array
from jaxsolvers.metrics.checks import checked_weights
from jaxsolvers.metrics.model_targets import answers_of, rows_of
from jaxsolvers.models import KernelModel, LinearModel
from jaxsolvers.protocol import Regularizer, Solver

__all__ = ["objective"]


def objective(
    solver: Solver,
    model: LinearModel | KernelModel,
    X: Any,
    y: Any,
    *,
    sample_weight: ArrayLike | None = None,
) -> Array:
    """The regularized mean loss, per ranker; one number for classes that are one problem.

    ``penalty(w) + sum_i s_i l(<w, x_i> + b, y_i) / sum_i s_i``; the penalty is ``lam/2 ||w||^2``
    for Pegasos and ``phi(w)`` for AdaGrad. Pegasos regularizes an intercept column (no ``bias`` of
    its own), AdaGrad does not. A ``positive_weight`` of the training is not part of it. With a
    joint loss or a regularizer that couples the rankers it is the one objective of all, their
    losses added up. Rows are taken in blocks: no (n, K) array is made.

    Args:
      solver: the solver that trained the model; its numbers single or one per ranker (K,).
      model: the model, one ranker or K, with a dense or sparse coef; or a kernel model, not of a
        precomputed kernel.
      X: (n, d) array, or any sparse matrix.
      y: (n,) labels as in training, or real targets for regression; for K rankers also an
        indicator (n, K), sparse or an array, of 0 and 1 or of -1 and +1.
      sample_weight: (n,) >= 0; equal weights by default.

    Returns:
      () for one ranker or one problem, (K,) for many.

    Raises:
      ValueError: shapes that do not fit, labels that are not classes of the model.

    Example:
      >>> import jax.numpy as jnp, numpy as np, jaxsolvers as js
      >>> model = js.LinearModel(jnp.array([2.0]), jnp.array(0.0), np.array([-1, 1]))
      >>> float(js.metrics.objective(js.Pegasos(0.5), model, np.ones((1, 1)), np.array([1])))
      1.0
    """
    if not hasattr(model, "n_rankers"):
        raise ValueError(
            f"model must be one of js.fit or js.fit_one_vs_rest, got {type(model).__name__}"
        )
    X = check_csr(X, model.n_features) if is_sparse(X) else check_matrix(X, model.n_features)
    y = check_csr(y, name="y") if is_sparse(y) else host_array(y, "y")
    n, several = X.shape[0], model.n_rankers is not None
    if y.shape not in ((n,), (n, model.n_rankers)) or n == 0:
        forms = f"(n,) or (n, {model.n_rankers})" if several else "(n,)"
        raise ValueError(f"X and y must be (n, d) and {forms}; got {X.shape} and {y.shape}")
    given, _ = checked_weights(sample_weight, n)
    weight = np.ones(n) if given is None else np.asarray(given, np.float64)
    solver.validate()
    couples = any(isinstance(part, Regularizer) and part.couples for _, part in solver.parts())
    whole = solver.loss.joint or couples
    if whole and not several:
        raise ValueError(f"model must have many rankers for {type(solver.loss).__name__}, got one")
    if solver.loss.joint and y.shape != (n,):
        raise ValueError(f"y must be (n,) labels for a joint loss, got shape {y.shape}")
    n_rankers = None if whole else model.n_rankers
    solver.check_shapes(n_rankers, model.n_features, model.n_rankers)
    targets = answers_of(model.classes, model.n_rankers, y)
    penalty, loss = penalty_and_loss(solver, model, X, targets, weight)
    values = penalty + loss
    return values[0] if whole or not several else values


def penalty_and_loss(
    solver: Solver, model: LinearModel | KernelModel, X: Any, targets: Any, weight: np.ndarray
) -> tuple[Array, Array]:
    """Both parts of the objective of a model, (K,) each; (1,) of classes that are one problem.

    Args:
      solver: as :func:`objective` takes it.
      model: one ranker or K.
      X: (n, d) array or Csr.
      targets: what ``answers_of`` gives of the rows.
      weight: (n,) >= 0, not all 0.
    """
    n, several = X.shape[0], model.n_rankers is not None
    couples = any(isinstance(part, Regularizer) and part.couples for _, part in solver.parts())
    whole = solver.loss.joint or couples
    loss = np.zeros(model.n_rankers or 1)
    dtype: Any = None
    own = solver
    rows = max(1, min(_ROWS, _NUMBERS // len(loss)))
    for start in range(0, n, rows):
        at = slice(start, start + rows)
        block = X.take(at) if isinstance(X, Csr) else X[at]
        scores = jnp.atleast_2d(model.decision_function(block).T)
        if dtype is None:
            dtype = scores.dtype
            own = solver.cast(dtype)
            own = own if whole else own.for_rankers(len(loss))
        target = rows_of(targets, at, several, dtype)
        losses = _losses(own, scores, target, jnp.asarray(weight[at], dtype), several, whole)
        loss += np.asarray(losses, np.float64)
    intercept = jnp.atleast_1d(jnp.asarray(model.intercept, dtype))[:, None]
    intercept = jnp.zeros_like(intercept) if solver.own_bias else intercept
    weights = jnp.concatenate([_weights(model, dtype), intercept], axis=1)
    if whole:
        mean = jnp.asarray((loss[0] if solver.loss.joint else loss.sum()) / weight.sum(), dtype)
        return own.free_intercept().penalty(weights)[None], mean[None]
    values = penalties(own.free_intercept(), weights)
    return values, jnp.asarray(loss / weight.sum(), dtype)


_ROWS = 4096
_NUMBERS = 1 << 22  # scores of a block


def _weights(model: LinearModel | KernelModel, dtype: Any) -> Array:
    """The weights of each ranker (K, d); of a kernel one number of their norm, (K, 1)."""
    if isinstance(model, KernelModel):
        return jnp.sqrt(jnp.maximum(jnp.atleast_1d(model.square_norms()), 0))[:, None].astype(dtype)
    return jnp.atleast_2d(jnp.asarray(model.densify().coef, dtype))


@partial(jax.jit, static_argnames=("several", "whole"))
def _losses(
    solver: Solver, scores: Array, target: Array, weight: Array, several: bool, whole: bool
) -> Array:
    """Summed losses (K,), or of a joint loss ()."""
    if solver.loss.joint:
        return jnp.sum(weight * solver.loss.value_and_slope(scores.T, target)[0])

    def one(solver: Solver, code: Array, score: Array) -> Array:
        if target.ndim == 2:
            own = target[code]
        elif several:
            own = jnp.where(target == code, 1, -1).astype(score.dtype)
        else:
            own = target
        value, _ = solver.loss.value_and_slope(score, own)
        return jnp.sum(weight * value)

    codes = jnp.arange(scores.shape[0], dtype=jnp.int32)
    axes = None if whole else solver.ranker_axes()
    return jax.vmap(one, in_axes=(axes, 0, 0))(solver, codes, scores)


@jax.jit
def penalties(solver: Solver, weights: Array) -> Array:
    """The part of the objective that does not see the data, (K,) from weights (K, d)."""

    def one(solver: Solver, weights: Array) -> Array:
        return solver.penalty(weights)

    return jax.vmap(one, in_axes=(solver.ranker_axes(), 0))(solver, weights)
