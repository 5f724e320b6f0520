"""Losses of the scores of all classes at once."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsolvers.members import Array, member, number
from jaxsolvers.protocol import Loss

__all__ = ["JointLoss", "MulticlassHinge", "MulticlassLogistic"]


class JointLoss(Loss):
    """A loss l(z, y) of the scores z of all classes, whose weights are learnt together.

    The target y is the class's position. A subclass writes :meth:`pointwise`.
    """

    joint = True

    def value_and_slope(self, score: Array, target: Array) -> tuple[Array, Array]:
        """Return the loss and its (sub-)gradient in the scores.

        Args:
          score: (..., C) float, one per class.
          target: (...) int, the position of the right class.

        Returns:
          l(z, y) (...) and dl/dz (..., C), of the scores' dtype.

        Raises:
          ValueError: shapes that do not fit, targets that are not integers in 0 ... C - 1.
        """
        score, target = jnp.asarray(score), jnp.asarray(target)
        if score.ndim == 0 or score.shape[:-1] != target.shape:
            raise ValueError(
                "score must have the shape of y and one more axis for the classes, got "
                f"{score.shape} and {target.shape}"
            )
        if not jnp.issubdtype(target.dtype, jnp.integer):
            raise ValueError(f"y must be positions of classes, integers, got {target.dtype}")
        if not isinstance(target, jax.core.Tracer):
            concrete = np.asarray(target)
            if ((concrete < 0) | (concrete >= score.shape[-1])).any():
                raise ValueError(f"y must be in 0 ... {score.shape[-1] - 1}, got {concrete!r}")
        return self.pointwise(score, target)

    def mistakes(self, score: Array, target: Array) -> Array:
        """1 where no strictly best score is that of the right class, else 0; (...)."""
        right = jnp.take_along_axis(score, target[..., None], axis=-1)
        others = (
            lax.broadcasted_iota(target.dtype, score.shape, score.ndim - 1) != target[..., None]
        )
        return jnp.any(others & (score >= right), axis=-1).astype(score.dtype)


@member
class MulticlassHinge(JointLoss):
    """Hinge loss of all classes together, with the costs of their confusions.

    l(z, y) = max(0, max_{r != y} cost[r, y] + z_r - z_y) ;  dl/dz = +1 at the lowest r that
    attains the maximum and -1 at y if the loss is above 0, else 0   (Crammer and Singer, JMLR
    2001; the costs as in Crammer et al., JMLR 2006). Pass it to ``js.fit`` with any number of
    labels.

    Args:
      cost: (C, C) >= 0, ``cost[r, y]`` the cost of answering r where y is right, 0 on the
        diagonal, classes in the model's order; None (default) for 1 off the diagonal.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> z, y = jnp.array([[0.5, 0.25, 0.0]]), jnp.array([0])
      >>> value, slope = js.losses.MulticlassHinge().value_and_slope(z, y)
      >>> value.tolist(), slope.tolist()
      ([0.75], [[-1.0, 1.0, 0.0]])
    """

    cost: Any = number(default=None, optional=True, minimum=0, rank=2)

    def pointwise(self, score: Array, target: Array) -> tuple[Array, Array]:
        own = _is_class(target, score)
        if self.cost is None:
            costs = jnp.where(own, 0, 1).astype(score.dtype)
        else:
            costs = jnp.asarray(self.cost, score.dtype).T[target]
        right = jnp.take_along_axis(score, target[..., None], axis=-1)
        augmented = jnp.where(own, 0, costs + (score - right))
        value = jnp.max(augmented, axis=-1)
        rival = _is_class(jnp.argmax(augmented, axis=-1), score)
        # value is a max with 0, attained at y: the first r above 0 is another class.
        step = rival.astype(score.dtype) - own.astype(score.dtype)
        return value, jnp.where(value[..., None] > 0, step, 0)

    def validate(self, prefix: str = "") -> None:
        super().validate(prefix)
        check_costs(self.cost, prefix)


def check_costs(cost: Any, prefix: str = "") -> None:
    """Raise a ValueError unless the costs are None or a square table with 0 on its diagonal."""
    if cost is None or isinstance(cost, jax.core.Tracer):
        return
    cost = np.asarray(cost)
    if cost.ndim != 2 or cost.shape[0] != cost.shape[1]:
        raise ValueError(f"{prefix}cost must be a square table (C, C), got shape {cost.shape}")
    if np.diagonal(cost).any():
        raise ValueError(f"{prefix}cost must be 0 on its diagonal, got {np.diagonal(cost)}")


@member
class MulticlassLogistic(JointLoss):
    """Logistic loss of all classes together, free of overflow at any score.

    l(z, y) = log sum_r exp(z_r - z_y) ;  dl/dz = softmax(z) - 1[r = y]. Pass it to ``js.fit``
    with any number of labels.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> loss = js.losses.MulticlassLogistic()
      >>> value, slope = loss.value_and_slope(jnp.zeros((1, 2)), jnp.array([0]))
      >>> round(float(value[0]), 6), slope.tolist()
      (0.693147, [[-0.5, 0.5]])
    """

    def pointwise(self, score: Array, target: Array) -> tuple[Array, Array]:
        right = jnp.take_along_axis(score, target[..., None], axis=-1)
        value = jax.nn.logsumexp(score - right, axis=-1)
        return value, jax.nn.softmax(score, axis=-1) - _is_class(target, score).astype(score.dtype)


def _is_class(target: Array, score: Array) -> Array:
    """Which entries (..., C) are of the class at position ``target`` (...)."""
    return lax.broadcasted_iota(target.dtype, score.shape, score.ndim - 1) == target[..., None]
