"""Losses: l(score, target) with their slopes, one small dataclass per loss.

``MulticlassHinge`` and ``MulticlassLogistic`` see the scores of all classes at once; the others
see one score.

Slopes carry the true sign, dl/dz; the papers' ``v`` is minus that. "Violates" is strict: a row
exactly on the margin contributes nothing. Only the perceptron violates at equality, since its
weights would otherwise never leave 0.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsolvers.members import Array, Number, member, number
from jaxsolvers.protocol import JointLoss, Loss

__all__ = [
    "Absolute",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Logistic",
    "MulticlassHinge",
    "MulticlassLogistic",
    "Perceptron",
    "SmoothedHinge",
    "Squared",
    "SquaredHinge",
]


@member
class Hinge(Loss):
    """Hinge loss of the support vector machine.

    l(z, y) = [1 - y z]_+ ;  dl/dz = -y if y z < 1, else 0   (Pegasos, eq. 2).

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> value, slope = js.losses.Hinge().value_and_slope(jnp.array([0.5]), jnp.array([1.0]))
      >>> float(value[0]), float(slope[0])
      (0.5, -1.0)
    """

    def pointwise(self, score: Array, target: Array) -> tuple[Array, Array]:
        shortfall = 1 - target * score
        return jnp.maximum(shortfall, 0), jnp.where(shortfall > 0, -target, 0)


@member
class SquaredHinge(Loss):
    """Squared hinge, with its half.

    l(z, y) = [1 - y z]_+^2 / 2 ;  dl/dz = -y [1 - y z]_+. LIBLINEAR's and scikit-learn's
    have no half: their strength is twice ours.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> value, slope = js.losses.SquaredHinge().value_and_slope(jnp.zeros(1), jnp.ones(1))
      >>> float(value[0]), float(slope[0])
      (0.5, -1.0)
    """

    def pointwise(self, score: Array, target: Array) -> tuple[Array, Array]:
        shortfall = jnp.maximum(1 - target * score, 0)
        return shortfall * shortfall / 2, -target * shortfall


@member
class SmoothedHinge(Loss):
    """Hinge with its kink replaced by a parabola of width gamma.

    l(z, y) = u - gamma/2 if u >= gamma, u^2/(2 gamma) if 0 < u < gamma, else 0, u = 1 - y z ;
    dl/dz = -y clip(u/gamma, 0, 1)   (Shalev-Shwartz and Zhang, SDCA, JMLR 2013).

    Args:
      gamma: width of the parabola, > 0; 1 by default.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> value, slope = js.losses.SmoothedHinge(0.5).value_and_slope(jnp.zeros(1), jnp.ones(1))
      >>> float(value[0]), float(slope[0])
      (0.75, -1.0)
    """

    gamma: Number = number(default=1.0, above=0)

    def pointwise(self, score: Array, target: Array) -> tuple[Array, Array]:
        shortfall = 1 - target * score
        inside = jnp.clip(shortfall, 0, self.gamma)
        # On the parabola both terms count; beyond it the second one is the linear excess.
        value = inside * inside / (2 * self.gamma) + jnp.maximum(shortfall - self.gamma, 0)
        return value, -target * (inside / self.gamma)


@member
class Logistic(Loss):
    """Logistic loss, free of overflow at any score.

    l(z, y) = log(1 + exp(-y z)) ;  dl/dz = -y sigma(-y z).

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> value, slope = js.losses.Logistic().value_and_slope(jnp.zeros(1), jnp.ones(1))
      >>> round(float(value[0]), 6), float(slope[0])
      (0.693147, -0.5)
    """

    def pointwise(self, score: Array, target: Array) -> tuple[Array, Array]:
        margin = target * score
        return jax.nn.softplus(-margin), -target * jax.nn.sigmoid(-margin)


@member
class Perceptron(Loss):
    """Perceptron loss; a row on the boundary violates.

    l(z, y) = [-y z]_+ ;  dl/dz = -y if y z <= 0, else 0.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> value, slope = js.losses.Perceptron().value_and_slope(jnp.zeros(1), jnp.ones(1))
      >>> float(value[0]), float(slope[0])
      (0.0, -1.0)
    """

    def pointwise(self, score: Array, target: Array) -> tuple[Array, Array]:
        margin = target * score
        return jnp.maximum(-margin, 0), jnp.where(margin <= 0, -target, 0)


@member
class Squared(Loss):
    """Squared error, for real targets.

    l(z, y) = (y - z)^2 / 2 ;  dl/dz = z - y.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> value, slope = js.losses.Squared().value_and_slope(jnp.array([1.0]), jnp.array([3.0]))
      >>> float(value[0]), float(slope[0])
      (2.0, -2.0)
    """

    classification = False

    def pointwise(self, score: Array, target: Array) -> tuple[Array, Array]:
        residual = score - target
        return residual * residual / 2, residual


@member
class Absolute(Loss):
    """Absolute error, for real targets: the median of the targets minimises it.

    l(z, y) = |y - z| ;  dl/dz = sign(z - y), 0 where they are equal.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> value, slope = js.losses.Absolute().value_and_slope(jnp.array([1.0]), jnp.array([3.0]))
      >>> float(value[0]), float(slope[0])
      (2.0, -1.0)
    """

    classification = False

    def pointwise(self, score: Array, target: Array) -> tuple[Array, Array]:
        residual = score - target
        return jnp.abs(residual), jnp.sign(residual)


@member
class Huber(Loss):
    """Squared error near the target, absolute error far from it, for real targets.

    l(z, y) = r^2/2 if |r| <= delta, else delta (|r| - delta/2), r = z - y ;
    dl/dz = clip(r, -delta, delta)   (Huber, Annals of Mathematical Statistics 35, 1964). In the
    units of the targets; scikit-learn's "huber" of ``SGDRegressor`` is the same function.

    Args:
      delta: the residual where the parabola ends, > 0; 1 by default.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> value, slope = js.losses.Huber(0.5).value_and_slope(jnp.array([1.0]), jnp.array([3.0]))
      >>> float(value[0]), float(slope[0])
      (0.875, -0.5)
    """

    classification = False

    delta: Number = number(default=1.0, above=0)

    def pointwise(self, score: Array, target: Array) -> tuple[Array, Array]:
        residual = score - target
        size = jnp.abs(residual)
        inside = jnp.minimum(size, self.delta)
        # On the parabola inside = size; beyond it no square of a huge residual is taken.
        return inside * (size - inside / 2), jnp.clip(residual, -self.delta, self.delta)


@member
class EpsilonInsensitive(Loss):
    """Absolute error beyond a tube of half width epsilon, of support vector regression.

    l(z, y) = [|y - z| - epsilon]_+ ;  dl/dz = sign(z - y) if |y - z| > epsilon, else 0: a row
    on the edge of the tube contributes nothing.

    Args:
      epsilon: half width of the tube in the units of the targets, >= 0; 0.1 by default. At 0 it
        is the absolute error.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> loss = js.losses.EpsilonInsensitive(0.5)
      >>> value, slope = loss.value_and_slope(jnp.array([1.0, 2.5]), jnp.array([3.0, 3.0]))
      >>> value.tolist(), slope.tolist()
      ([1.5, 0.0], [-1.0, 0.0])
    """

    classification = False

    epsilon: Number = number(default=0.1, minimum=0)

    def pointwise(self, score: Array, target: Array) -> tuple[Array, Array]:
        residual = score - target
        excess = jnp.abs(residual) - self.epsilon
        return jnp.maximum(excess, 0), jnp.where(excess > 0, jnp.sign(residual), 0)


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
        if self.cost is None or isinstance(self.cost, jax.core.Tracer):
            return
        cost = np.asarray(self.cost)
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
