"""Separable regularizers: sums over coordinates, each solved with one division.

``solve(linear, metric, tau)`` is the minimiser over X of

    1/2 <x, H x> - <linear, x> + tau phi(x),     H = diag(metric) >= 0,

in which all of AdaGrad, RDA and FOBOS are written (Duchi, Hazan, Singer, JMLR 2011, section 5).
A coordinate with metric 0 and linear 0 is out of the problem and gets 0.
"""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.members import Array, Number, member, number
from jaxsolvers.protocol import Debt, Regularizer

__all__ = ["L1", "Box", "ElasticNet", "NoRegularizer", "NonNegative", "SquaredL2"]


def soft(z: Array, threshold: Array) -> Array:
    """sign(z) [|z| - threshold]_+, exactly 0 inside, for threshold >= 0."""
    return z - jnp.clip(z, -threshold, threshold)


def absolute(weights: Array) -> Array:
    """|w|, whose derivative at 0 is 0 (jax's own picks 1)."""
    return weights * jnp.sign(weights)


@jax.custom_jvp
def quotient(numerator: Array, denominator: Array) -> Array:
    """Numerator / denominator, whose derivative never squares the denominator.

    The square of a metric of 1e-20 leaves float32, and 0 times the infinity it leaves is NaN.
    """
    return numerator / denominator


@quotient.defjvp
def _quotient_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    numerator, denominator = primals
    answer = quotient(numerator, denominator)
    return answer, (tangents[0] - answer * tangents[1]) / denominator


def divide(numerator: Array, denominator: Array) -> Array:
    """Numerator / denominator, 0 where the denominator is 0; derivatives stay finite too."""
    alive = denominator > 0
    return jnp.where(alive, quotient(numerator, jnp.where(alive, denominator, 1)), 0)


def _quotient(numerator: Array, denominator: Array) -> Array:
    """Numerator / denominator where both tend to 0 together, 1 there."""
    some = denominator > 0
    return jnp.where(some, numerator / jnp.where(some, denominator, 1), 1)


class Separable(Regularizer):
    """Base: a sum over coordinates whose owed proxes have a closed form."""

    separable = True
    lazy = True

    def owed(self, weights: Array, metric: Array, tau: Number, count: Array) -> Array:
        # Members with debt "none" and "sum": proxes add up. A point of a domain stays in it.
        return self.solve(metric * weights, metric, tau * count)


@member
class NoRegularizer(Separable):
    """phi(w) = 0 on the whole space.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> js.regularizers.NoRegularizer().solve(jnp.array([3.0]), jnp.array([2.0]), 1.0).tolist()
      [1.5]
    """

    debt: ClassVar[Debt] = "none"
    rotates: ClassVar[bool] = True

    def value(self, weights: Array) -> Array:
        return jnp.zeros((), weights.dtype)

    def solve(self, linear: Array, metric: Array, tau: Number) -> Array:
        return divide(linear, metric)


@member
class L1(Separable):
    """phi(w) = strength ||w||_1; its minimisers have exact zeros.

    solve: soft(linear, tau strength) / h   (Duchi, Hazan, Singer, eq. 19 and 20).

    Args:
      strength: >= 0, per unit of tau; the loss it stands beside is a mean over rows.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> js.regularizers.L1(1.0).prox(jnp.array([3.0, -0.5]), jnp.ones(2), 1.0).tolist()
      [2.0, 0.0]
    """

    debt: ClassVar[Debt] = "sum"

    strength: Number = number(minimum=0)

    def value(self, weights: Array) -> Array:
        return self.strength * jnp.sum(absolute(weights))

    def solve(self, linear: Array, metric: Array, tau: Number) -> Array:
        return divide(soft(linear, tau * self.strength), metric)


@member
class SquaredL2(Separable):
    """phi(w) = strength/2 ||w||_2^2, with its half.

    solve: linear / (h + tau strength).

    Args:
      strength: >= 0, per unit of tau; the loss it stands beside is a mean over rows.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> js.regularizers.SquaredL2(1.0).prox(jnp.array([3.0]), jnp.ones(1), 1.0).tolist()
      [1.5]
    """

    rotates: ClassVar[bool] = True

    strength: Number = number(minimum=0)

    def value(self, weights: Array) -> Array:
        return self.strength / 2 * jnp.sum(weights * weights)

    def solve(self, linear: Array, metric: Array, tau: Number) -> Array:
        return divide(linear, metric + tau * self.strength)

    def owed(self, weights: Array, metric: Array, tau: Number, count: Array) -> Array:
        return ElasticNet(jnp.zeros_like(metric), self.strength).owed(weights, metric, tau, count)


@member
class ElasticNet(Separable):
    """phi(w) = l1 ||w||_1 + l2/2 ||w||_2^2.

    solve: soft(linear, tau l1) / (h + tau l2).

    Args:
      l1, l2: >= 0, per unit of tau; the loss they stand beside is a mean over rows.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> js.regularizers.ElasticNet(1.0, 1.0).prox(jnp.array([3.0]), jnp.ones(1), 1.0).tolist()
      [1.0]
    """

    l1: Number = number(minimum=0)
    l2: Number = number(minimum=0)

    def value(self, weights: Array) -> Array:
        return self.l1 * jnp.sum(absolute(weights)) + self.l2 / 2 * jnp.sum(weights * weights)

    def solve(self, linear: Array, metric: Array, tau: Number) -> Array:
        return divide(soft(linear, tau * self.l1), metric + tau * self.l2)

    def owed(self, weights: Array, metric: Array, tau: Number, count: Array) -> Array:
        # n times x <- [x - a]_+ / (1 + u) is [q^n x - a (1 - q^n)/u]_+ with q = 1/(1 + u), and
        # n a in the limit u = 0: written so that neither quotient cancels.
        largest = jnp.finfo(metric.dtype).max  # a tiny metric must not make inf / inf
        threshold = jnp.minimum(divide(tau * self.l1, metric), largest)
        u = jnp.minimum(divide(tau * self.l2, metric), largest)
        rate = jnp.log1p(u)
        decay = count * rate
        shrink = threshold * count * _quotient(rate, u) * _quotient(-jnp.expm1(-decay), decay)
        return soft(jnp.exp(-decay) * weights, shrink)


@member
class Box(Separable):
    """The domain lower <= w <= upper, coordinate by coordinate.

    solve: clip(linear / h, lower, upper). A coordinate without history keeps 0.

    Args:
      lower, upper: numbers or arrays over the features, lower <= 0 <= upper when training
        starts from 0 (checked by ``fit``); infinities allowed.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> js.regularizers.Box(-1.0, 2.0).prox(jnp.array([3.0, -3.0]), jnp.ones(2), 1.0).tolist()
      [2.0, -1.0]
    """

    debt: ClassVar[Debt] = "none"

    lower: Number = number(finite=False, rank=1)
    upper: Number = number(finite=False, rank=1)

    def value(self, weights: Array) -> Array:
        inside = jnp.all((weights >= self.lower) & (weights <= self.upper))
        return jnp.where(inside, jnp.zeros((), weights.dtype), jnp.inf)

    def solve(self, linear: Array, metric: Array, tau: Number) -> Array:
        inside = jnp.clip(divide(linear, metric), self.lower, self.upper)
        return jnp.where((metric == 0) & (linear == 0), 0, inside)

    def prox(self, z: Array, metric: Array, tau: Number) -> Array:
        return jnp.clip(z, self.lower, self.upper)  # a point inside keeps its bits

    def validate(self, prefix: str = "") -> None:
        super().validate(prefix)
        if _concrete(self.lower, self.upper) and np.any(
            np.asarray(self.lower) > np.asarray(self.upper)
        ):
            raise ValueError(
                f"{prefix}lower must be <= {prefix}upper, got {self.lower!r} and {self.upper!r}"
            )

    def check_start(self, prefix: str = "regularizer.") -> None:
        if np.any(np.asarray(self.lower) > 0) or np.any(np.asarray(self.upper) < 0):
            raise ValueError(
                f"{prefix}lower and {prefix}upper must enclose the start 0, "
                f"got {self.lower!r} and {self.upper!r}"
            )


@member
class NonNegative(Separable):
    """The domain w >= 0.

    solve: [linear / h]_+.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> js.regularizers.NonNegative().prox(jnp.array([3.0, -3.0]), jnp.ones(2), 1.0).tolist()
      [3.0, 0.0]
    """

    debt: ClassVar[Debt] = "none"

    def value(self, weights: Array) -> Array:
        return jnp.where(jnp.all(weights >= 0), jnp.zeros((), weights.dtype), jnp.inf)

    def solve(self, linear: Array, metric: Array, tau: Number) -> Array:
        return jnp.maximum(divide(linear, metric), 0)


def _concrete(*values: Any) -> bool:
    return not any(isinstance(value, jax.core.Tracer) for value in values)
