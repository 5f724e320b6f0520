"""Norms of all entries as regularizers: one number decides whether any weight is used at all.

Both solve 1/2 <x, H x> - <b, x> + s ||x||, s = tau strength, whose minimiser is exactly 0 when b
is at most s in the dual norm, and then comes down to one unknown.
"""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jax import lax

from jaxsolvers.members import Array, Number, member, number
from jaxsolvers.regularizers.coupled import Coupled, live_part
from jaxsolvers.regularizers.search import Axis, largest, norm, root_of_norm, total
from jaxsolvers.regularizers.separable import absolute, quotient

__all__ = ["L2Norm", "LInfNorm"]


@member
class L2Norm(Coupled):
    """phi(w) = strength ||w||_2, not squared: all weights are exactly 0, or none is.

    solve: 0 iff ||linear||_2 <= s = tau strength; else linear / (h + s/r), where r = ||x||_2 is
    the root of ||linear / (h r + s)||_2 = 1. With weights (K, d) it is one norm of all entries;
    ``GroupL2`` takes one per row or column.

    The metric case follows the subgradient condition H x + s x/||x|| = linear; with H = 1 it is
    the shrinkage of Duchi and Singer, *FOBOS*, JMLR 2009, section 5.3.

    Args:
      strength: >= 0, per unit of tau; the loss it stands beside is a mean over rows.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> shrunk = js.regularizers.L2Norm(1.0).prox(jnp.array([3.0, 4.0]), jnp.ones(2), 1.0)
      >>> [round(float(x), 6) for x in shrunk]
      [2.4, 3.2]
    """

    rotates: ClassVar[bool] = True

    strength: Number = number(minimum=0)

    def measure(self, weights: Array, slack: float) -> Array:
        return self.strength * norm(weights, None).reshape(())

    def argmin(self, linear: Array, metric: Array, tau: Array) -> Array:
        return shrink(linear, metric, tau * self.strength, None)


@member
class LInfNorm(Coupled):
    """phi(w) = strength max |w|: the largest weights become equal in size.

    solve: 0 iff sum |linear| <= s = tau strength; else sign(linear) min(|linear|/h, t) with
    sum [|linear| - h t]_+ = s: it clips the large entries and leaves the others alone. With
    weights (K, d) it is one norm of all entries; ``GroupLInf`` takes one per row or column.

    The metric case of Duchi and Singer, *FOBOS*, JMLR 2009, section 5.4.

    Args:
      strength: >= 0, per unit of tau; the loss it stands beside is a mean over rows.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> norm = js.regularizers.LInfNorm(1.0)
      >>> norm.prox(jnp.array([3.0, -2.5, 0.5]), jnp.ones(3), 1.0).tolist()
      [2.25, -2.25, 0.5]
    """

    strength: Number = number(minimum=0)

    def measure(self, weights: Array, slack: float) -> Array:
        return self.strength * jnp.max(absolute(weights), initial=0)

    def argmin(self, linear: Array, metric: Array, tau: Array) -> Array:
        return clip_largest(linear, metric, tau * self.strength, None)


def shrink(linear: Array, metric: Array, s: Array, axis: Axis) -> Array:
    """Argmin of 1/2 <x, H x> - <linear, x> + s ||x||_2, for each slice along ``axis``."""
    live, linear, metric = live_part(linear, metric)
    zero = lax.stop_gradient(norm(linear, axis)) <= s
    # Where the answer is 0 the search runs on ones, so that its derivatives stay finite.
    b, h, s = jnp.where(zero, 1, linear), jnp.where(zero, 1, metric), jnp.where(zero, 0, s)

    def terms(r: Array, b: Array, h: Array, s: Array) -> tuple[Array, Array]:
        denominator = h * r + s  # > 0, for the search keeps r > 0
        return quotient(b, denominator), quotient(h, denominator)

    r = root_of_norm(terms, axis, b, h, jnp.broadcast_to(s, zero.shape))
    return jnp.where(live & ~zero, quotient(b, h + quotient(s, r)), 0)


def clip_largest(linear: Array, metric: Array, s: Array, axis: Axis) -> Array:
    """Argmin of 1/2 <x, H x> - <linear, x> + s max |x|, for each slice along ``axis``."""
    live, linear, metric = live_part(linear, metric)
    size = absolute(linear)
    still, h, budget = lax.stop_gradient((size, metric, s))  # what the search sees
    zero = total(still, axis) <= budget

    def holds(t: Array) -> Array:
        return total(jnp.maximum(still - h * t, 0), axis) > budget

    near = largest(holds, zero.shape, linear.dtype, signed=False)
    clipped = live & ~(still <= h * near)  # NaN counts: it must reach the answer
    excess = jnp.where(clipped, size - metric * near, 0)
    area = total(jnp.where(clipped, metric, 0), axis)
    t = near + (total(excess, axis) - s) / jnp.where(area == 0, 1, area)
    # |linear| / h could overflow where h is tiny, but those are the clipped ones.
    free = quotient(jnp.where(clipped, 0, size), jnp.where(clipped, 1, metric))
    x = jnp.sign(linear) * jnp.where(clipped, t, free)
    return jnp.where(live & ~zero, x, 0)
