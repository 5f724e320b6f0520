"""Losses whose dual problem can be solved one row at a time, and what their steps share."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from jaxsolvers.members import Array
from jaxsolvers.protocol import Loss

__all__ = ["DualLoss", "logistic_root", "positive"]

TRIPS = 16  # relative error 3e-16 for q up to 1e6


class DualLoss(Loss):
    """A loss with a dual number per row, see ``js.SDCA``.

    The dual objective is ``sum_i p_i d(a_i) - lam/2 ||w||^2`` at ``w = (1/lam) sum_i p_i a_i x_i``.
    """

    def dual_step(self, score: Array, target: Array, dual: Array, curvature: Array) -> Array:
        """The row's dual number that maximises the dual objective, all others held.

        Args:
          score: (...) z = <w, x> under the dual number before.
          target: (...) y.
          dual: (...) a, signed: y alpha for classification.
          curvature: (...) q = p ||x||^2 / lam >= 0, by how much the score moves with a.

        Returns:
          a' (...), in the domain of :meth:`dual_term`.
        """
        raise NotImplementedError

    def dual_term(self, target: Array, dual: Array) -> Array:
        """What a row adds to the dual objective, d(a) = -l*(-a); concave, (...)."""
        raise NotImplementedError


def positive(curvature: Array) -> Array:
    """The curvature as a divisor. At 0, a row without features, a quotient goes to its end."""
    return jnp.maximum(curvature, jnp.finfo(curvature.dtype).smallest_normal)


def logistic_root(margin: Array, alpha: Array, curvature: Array) -> Array:
    """The root of the one-variable logistic equation u = M + q (sigma(-u) - alpha).

    Newton from ``clip(0, M - q alpha, M + q (1 - alpha))``, the bracket of the root, and clipped
    to it after each of 16 trips: monotone, without a line search. It is the dual step of the
    logistic loss (SDCA), the step of passive-aggressive with alpha = 0 and q = C ||x||^2, and of
    AROW with alpha = 0 and q = x' Sigma x / r.

    Args:
      margin: (...) float, M = y z.
      alpha: (...) in [0, 1].
      curvature: (...) >= 0, q.

    Returns:
      u (...); sigma(-u) is the new alpha.
    """
    low, high = margin - curvature * alpha, margin + curvature * (1 - alpha)

    def trip(_: int, u: Array) -> Array:
        down = jax.nn.sigmoid(-u)
        excess = u - margin - curvature * (down - alpha)
        # sigma(u) by itself: 1 - sigma(-u) loses all digits where u is large.
        slope = 1 + curvature * down * jax.nn.sigmoid(u)
        return jnp.clip(u - excess / slope, low, high)

    return lax.fori_loop(0, TRIPS, trip, jnp.clip(jnp.zeros_like(margin), low, high))
