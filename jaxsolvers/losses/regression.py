"""Losses of one score for real targets."""

from __future__ import annotations

import jax.numpy as jnp

from jaxsolvers.losses.dual import DualLoss, positive
from jaxsolvers.members import Array, Number, member, number

__all__ = ["Absolute", "EpsilonInsensitive", "Huber", "Squared"]


@member
class Squared(DualLoss):
    """Squared error, for real targets.

    l(z, y) = (y - z)^2 / 2 ;  dl/dz = z - y.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> value, slope = js.losses.Squared().value_and_slope(jnp.array([1.0]), jnp.array([3.0]))
      >>> float(value[0]), float(slope[0])
      (2.0, -2.0)
    """

    classification = False

    curvature = 1.0

    def pointwise(self, score: Array, target: Array) -> tuple[Array, Array]:
        residual = score - target
        return residual * residual / 2, residual

    def dual_step(self, score: Array, target: Array, dual: Array, curvature: Array) -> Array:
        return dual + (target - score - dual) / (1 + curvature)

    def dual_term(self, target: Array, dual: Array) -> Array:
        return dual * target - dual * dual / 2


@member
class Absolute(DualLoss):
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

    def dual_step(self, score: Array, target: Array, dual: Array, curvature: Array) -> Array:
        return _tube_step(target - score, dual, curvature, 0.0)

    def dual_term(self, target: Array, dual: Array) -> Array:
        return dual * target


@member
class Huber(DualLoss):
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

    curvature = 1.0

    def pointwise(self, score: Array, target: Array) -> tuple[Array, Array]:
        residual = score - target
        size = jnp.abs(residual)
        inside = jnp.minimum(size, self.delta)
        # On the parabola inside = size; beyond it no square of a huge residual is taken.
        return inside * (size - inside / 2), jnp.clip(residual, -self.delta, self.delta)

    def dual_step(self, score: Array, target: Array, dual: Array, curvature: Array) -> Array:
        move = (target - score - dual) / (1 + curvature)
        return jnp.clip(dual + move, -self.delta, self.delta)

    def dual_term(self, target: Array, dual: Array) -> Array:
        return dual * target - dual * dual / 2


@member
class EpsilonInsensitive(DualLoss):
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

    def dual_step(self, score: Array, target: Array, dual: Array, curvature: Array) -> Array:
        return _tube_step(target - score, dual, curvature, self.epsilon)

    def dual_term(self, target: Array, dual: Array) -> Array:
        return dual * target - self.epsilon * jnp.abs(dual)


def _tube_step(residual: Array, dual: Array, curvature: Array, epsilon: Number) -> Array:
    """clip(soft(residual + q a, epsilon)/q, -1, 1), the dual step of a tube.

    Where q, epsilon and the residual are 0 every dual is as good: a stays.
    """
    q = positive(curvature)
    reach = residual + q * dual
    excess = jnp.sign(reach) * jnp.maximum(jnp.abs(reach) - epsilon, 0)
    return jnp.clip(excess / q, -1, 1)
