"""Balls and the simplex: domains of the weights, met through their projections.

The projection of b/h in the metric h is the minimiser of 1/2 <x, H x> - <b, x> over the domain;
tau plays no part. A domain has phi = 0 inside and infinity outside, where "inside" leaves room for
the rounding of a sum (``coupled.slack``): the points that ``solve`` returns are inside.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import jax.numpy as jnp
from jax import lax

from jaxsolvers.members import Array, Number, member, number
from jaxsolvers.protocol import Debt
from jaxsolvers.regularizers.coupled import Coupled, live_part
from jaxsolvers.regularizers.search import largest, norm, root_of_norm
from jaxsolvers.regularizers.separable import Box, Separable, absolute, divide, quotient

__all__ = ["L1Ball", "L2Ball", "LInfBall", "Simplex"]


class _Ball(Coupled):
    """Base: a point inside is its own projection, to the bit."""

    radius: Number

    def size(self, weights: Array) -> Array:
        """The norm of the ball, ()."""
        raise NotImplementedError

    def measure(self, weights: Array, slack: float) -> Array:
        inside = self.size(weights) <= self.radius * (1 + slack)
        return indicator(inside, weights)

    def closest(self, z: Array, metric: Array, tau: Array) -> Array:
        inside = lax.stop_gradient(self.size(z)) <= self.radius
        linear = jnp.where(inside, 0, metric * z)  # no derivative of the branch not taken
        return jnp.where(inside, z, self.argmin(linear, metric, tau))


@member
class L1Ball(_Ball):
    """The domain ||w||_1 <= radius; its boundary points have exact zeros.

    solve: linear/h inside; else soft(linear, t)/h with the t > 0 that puts its l1 norm on the
    radius (Duchi, Shalev-Shwartz, Singer, Chandra, ICML 2008, in a diagonal metric). With weights
    (K, d) it is one ball of all entries.

    Args:
      radius: >= 0, in units of the weights.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> js.regularizers.L1Ball(2.0).prox(jnp.array([3.0, -2.0, 0.5]), jnp.ones(3), 1.0).tolist()
      [1.5, -0.5, 0.0]
    """

    radius: Number = number(minimum=0)

    def size(self, weights: Array) -> Array:
        return jnp.sum(absolute(weights))

    def argmin(self, linear: Array, metric: Array, tau: Array) -> Array:
        live, linear, metric = live_part(linear, metric)
        z = quotient(linear, metric)
        inside = lax.stop_gradient(self.size(z)) <= self.radius
        x = jnp.sign(linear) * fill(absolute(linear), metric, live, self.radius, signed=False)
        return jnp.where(inside, z, x)


@member
class L2Ball(_Ball):
    """The domain ||w||_2 <= radius.

    solve: linear/h inside; else linear / (h + t) with the t > 0 that puts its norm on the radius
    (the secular equation ||linear / (h + t)|| = radius). With weights (K, d) it is one ball of all
    entries.

    Args:
      radius: >= 0, in units of the weights.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> onto = js.regularizers.L2Ball(1.0).prox(jnp.array([3.0, 4.0]), jnp.ones(2), 1.0)
      >>> [round(float(x), 6) for x in onto]
      [0.6, 0.8]
    """

    rotates: ClassVar[bool] = True

    radius: Number = number(minimum=0)

    def size(self, weights: Array) -> Array:
        return norm(weights, None).reshape(())

    def argmin(self, linear: Array, metric: Array, tau: Array) -> Array:
        _, linear, metric = live_part(linear, metric)
        z = quotient(linear, metric)
        inside = lax.stop_gradient(self.size(z)) <= self.radius
        # Where no root is needed the search runs on ones, so that derivatives stay finite.
        idle = inside | (self.radius <= 0)
        b, h = jnp.where(idle, 1, linear), jnp.where(idle, 1, metric)
        radius = jnp.where(idle, 0.5, self.radius)

        def terms(t: Array, b: Array, h: Array, radius: Array) -> tuple[Array, Array]:
            return quotient(b, h + t) / radius, quotient(jnp.ones_like(h), h + t)

        one = (1,) * linear.ndim
        t = root_of_norm(terms, None, b, h, radius.reshape(one))
        onto = jnp.where(idle, 0, quotient(b, h + t))
        return jnp.where(inside, z, onto)


@member
class LInfBall(Separable):
    """The domain max |w| <= radius: a box with one number.

    solve: clip(linear / h, -radius, radius). A coordinate without history keeps 0.

    Args:
      radius: >= 0, in units of the weights.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> js.regularizers.LInfBall(1.0).prox(jnp.array([3.0, -0.5]), jnp.ones(2), 1.0).tolist()
      [1.0, -0.5]
    """

    debt: ClassVar[Debt] = "none"

    radius: Number = number(minimum=0)

    @property
    def box(self) -> Box:
        """The same domain by its bounds."""
        return Box(-self.radius, self.radius)

    def value(self, weights: Array) -> Array:
        return self.box.value(weights)

    def solve(self, linear: Array, metric: Array, tau: Number) -> Array:
        return self.box.solve(linear, metric, tau)

    def prox(self, z: Array, metric: Array, tau: Number) -> Array:
        return self.box.prox(z, metric, tau)


@member
class Simplex(Coupled):
    """The domain w >= 0, sum w = radius: probabilities for radius 1.

    solve: [linear - t]_+ / h with the t, of either sign, that makes the sum equal radius (Duchi,
    Shalev-Shwartz, Singer, Chandra, ICML 2008, in a diagonal metric). With weights (K, d) it is
    one simplex of all entries.

    0 is no point of it: training starts from equal weights, and coordinates without history could
    not be left at 0 alone, so AdaGrad needs delta or initial_accumulator > 0. By itself ``solve``
    shares the radius among the coordinates with metric > 0.

    Args:
      radius: >= 0, the sum of the weights.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> js.regularizers.Simplex(1.0).prox(jnp.array([1.5, 1.0, -0.5]), jnp.ones(3), 1.0).tolist()
      [0.75, 0.25, 0.0]
    """

    needs_metric: ClassVar[bool] = True  # the coordinates with history alone may not be feasible

    radius: Number = number(minimum=0)

    def start(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """The point where training starts: equal weights, of ``shape``."""
        return jnp.broadcast_to(jnp.asarray(self.radius, dtype) / max(math.prod(shape), 1), shape)

    def measure(self, weights: Array, slack: float) -> Array:
        near = jnp.abs(jnp.sum(weights) - self.radius) <= self.radius * slack
        return indicator(near & jnp.all(weights >= 0), weights)

    def argmin(self, linear: Array, metric: Array, tau: Array) -> Array:
        live, linear, metric = live_part(linear, metric)
        return fill(linear, metric, live, self.radius, signed=True)


def indicator(inside: Array, weights: Array) -> Array:
    """0 inside, infinity outside."""
    return jnp.where(inside, jnp.zeros((), weights.dtype), jnp.inf)


def fill(b: Array, metric: Array, live: Array, volume: Array, *, signed: bool) -> Array:
    """[b - t]_+ / h over the live entries, with the t that makes their sum ``volume``.

    With A the entries above t and m the lowest of them, the closing step is

        t = m - (volume - sum_A (b - m)/h) / sum_A 1/h,

    the textbook t = (sum_A b/h - volume) / sum_A 1/h without its cancellation: b - m is rounded
    once and no term exceeds the volume, so a volume far below sum b/h costs no digits.

    Args:
      b, metric, live: (...), metric > 0 everywhere.
      volume: (), >= 0.
      signed: whether t may be negative; else t >= 0.
    """
    most = float(jnp.finfo(b.dtype).max)
    # 1/h, kept so small that the sum of all cannot overflow: h < size/most counts as that.
    area = jnp.where(
        live, jnp.minimum(quotient(jnp.ones_like(metric), metric), most / max(b.size, 1)), 0
    )
    still, shares, limit = lax.stop_gradient((b, area, volume))

    def holds(t: Array) -> Array:
        return jnp.sum(shares * jnp.clip(still - t, 0, most)) > limit

    near = largest(holds, (), b.dtype, signed=signed)
    above = live & ~(still <= near)  # NaN counts: it must reach the answer
    excess = jnp.where(above, b - jnp.min(still, where=above, initial=jnp.inf), 0)
    wet = jnp.where(above, area, 0)
    depth = divide(volume - jnp.sum(wet * excess), jnp.sum(wet))  # of the lowest
    return jnp.where(above & ~(volume <= 0), wet * jnp.maximum(excess + depth, 0), 0)
