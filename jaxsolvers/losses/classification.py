"""Losses of one score for targets -1 and +1."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy.special import entr

from jaxsolvers.losses.dual import DualLoss, logistic_root, positive
from jaxsolvers.members import Array, Number, member, number
from jaxsolvers.protocol import Loss

__all__ = ["Hinge", "Logistic", "Perceptron", "SmoothedHinge", "SquaredHinge"]


@member
class Hinge(DualLoss):
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

    def dual_step(self, score: Array, target: Array, dual: Array, curvature: Array) -> Array:
        alpha, shortfall = target * dual, 1 - target * score
        return target * jnp.clip(alpha + shortfall / positive(curvature), 0, 1)

    def dual_term(self, target: Array, dual: Array) -> Array:
        return target * dual


@member
class SquaredHinge(DualLoss):
    """Squared hinge, with its half.

    l(z, y) = [1 - y z]_+^2 / 2 ;  dl/dz = -y [1 - y z]_+. LIBLINEAR's and scikit-learn's
    have no half: their strength is twice ours.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> value, slope = js.losses.SquaredHinge().value_and_slope(jnp.zeros(1), jnp.ones(1))
      >>> float(value[0]), float(slope[0])
      (0.5, -1.0)
    """

    curvature = 1.0

    def pointwise(self, score: Array, target: Array) -> tuple[Array, Array]:
        shortfall = jnp.maximum(1 - target * score, 0)
        return shortfall * shortfall / 2, -target * shortfall

    def dual_step(self, score: Array, target: Array, dual: Array, curvature: Array) -> Array:
        alpha, shortfall = target * dual, 1 - target * score
        return target * jnp.maximum(alpha + (shortfall - alpha) / (1 + curvature), 0)

    def dual_term(self, target: Array, dual: Array) -> Array:
        return target * dual - dual * dual / 2


@member
class SmoothedHinge(DualLoss):
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

    @property
    def curvature(self) -> Number:
        return 1 / self.gamma

    def pointwise(self, score: Array, target: Array) -> tuple[Array, Array]:
        shortfall = 1 - target * score
        inside = jnp.clip(shortfall, 0, self.gamma)
        # On the parabola both terms count; beyond it the second one is the linear excess.
        value = inside * inside / (2 * self.gamma) + jnp.maximum(shortfall - self.gamma, 0)
        return value, -target * (inside / self.gamma)

    def dual_step(self, score: Array, target: Array, dual: Array, curvature: Array) -> Array:
        alpha, shortfall = target * dual, 1 - target * score
        move = (shortfall - self.gamma * alpha) / (self.gamma + curvature)
        return target * jnp.clip(alpha + move, 0, 1)

    def dual_term(self, target: Array, dual: Array) -> Array:
        return target * dual - self.gamma * dual * dual / 2


@member
class Logistic(DualLoss):
    """Logistic loss, free of overflow at any score.

    l(z, y) = log(1 + exp(-y z)) ;  dl/dz = -y sigma(-y z).

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> value, slope = js.losses.Logistic().value_and_slope(jnp.zeros(1), jnp.ones(1))
      >>> round(float(value[0]), 6), float(slope[0])
      (0.693147, -0.5)
    """

    curvature = 0.25

    def pointwise(self, score: Array, target: Array) -> tuple[Array, Array]:
        margin = target * score
        return jax.nn.softplus(-margin), -target * jax.nn.sigmoid(-margin)

    def dual_step(self, score: Array, target: Array, dual: Array, curvature: Array) -> Array:
        root = logistic_root(target * score, target * dual, curvature)
        return target * jax.nn.sigmoid(-root)

    def dual_term(self, target: Array, dual: Array) -> Array:
        # The entropy of alpha, 0 at both ends.
        alpha = target * dual
        return entr(alpha) + entr(1 - alpha)


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
