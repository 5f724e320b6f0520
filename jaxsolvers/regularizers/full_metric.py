"""Regularizers met in a full metric: in its eigenbasis where that is exact, else by splitting.

A metric is ``H = Q diag(h) Q'``, within blocks of coordinates. The problem is

    argmin over x in X and in centre + span(H) of
        1/2 <x - centre, H (x - centre)> + <push, x> + tau phi(x),

the argmin of all of AdaGrad's forms (Duchi, Hazan, Singer, JMLR 2011, eqs. 3 and 4 with the full
metric of Fig. 1). **Singular H.** A null direction of H is out of the problem: x has there what
the centre has, the part of ``push`` in it is dropped, and no regularizer touches it. With an l1
norm this is the minimiser *within the span* of the gradients, which has fewer exact zeros than
one that may leave it. The closed forms take phi of the part in the span.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxsolvers.features import cut, joined, product
from jaxsolvers.members import Array
from jaxsolvers.protocol import Regularizer

__all__ = ["FullMetric", "rank_tolerance", "solve_full"]

# How far a trip goes towards the reflected point: 1 is the fastest where H has full rank but need
# not converge where it has not, 1/2 is the plain splitting.
RELAXATION = 0.85


class FullMetric(NamedTuple):
    """H = Q diag(h) Q' by blocks of b coordinates, the last padded with null directions."""

    values: Any  # (..., n_blocks, b), h >= 0
    vectors: Any  # (..., n_blocks, b, b), a column each

    def rotated(self, blocks: Array) -> Array:
        """Q'x for blocks (..., n_blocks, b)."""
        return product(jnp.swapaxes(self.vectors, -2, -1), blocks[..., None])[..., 0]

    def back(self, blocks: Array) -> Array:
        """Q x for blocks (..., n_blocks, b)."""
        return product(self.vectors, blocks[..., None])[..., 0]


def rank_tolerance(dtype: Any, size: int) -> float:
    """The share of the largest eigenvalue of G below which one is rounding, for (size, size)."""
    eps = float(jnp.finfo(dtype).eps)
    return max(1e-12, size * eps)


def solve_full(
    regularizer: Regularizer,
    centre: Array,
    push: Array,
    metric: FullMetric,
    tau: Array,
    start: Array,
    trips: int,
) -> tuple[Array, Array]:
    """The minimiser above, and how far it is from a fixed point.

    Where phi depends on ``||x||_2`` alone (``Regularizer.rotates``), or where H is diagonal, the
    regularizer's own ``solve`` in the eigenbasis is exact. Else ``trips`` rounds of relaxed
    Douglas-Rachford splitting (Lions, Mercier, SIAM J. Numer. Anal. 1979) between the quadratic in
    the span and the regularizer's prox in the metric rho, with rho = sqrt(h_min h_max) of each
    block, for which errors shrink by (sqrt(c) - 1)/(sqrt(c) + 1) per reflection, c = h_max/h_min
    (Giselsson, Boyd, IEEE Trans. Automat. Control 2017). A trip costs one product with a (b, b)
    matrix per block, and ends with the prox: zeros are exact and x is in X.

    Args:
      regularizer: phi and X.
      centre: (..., d), in X.
      push: (..., d), the linear term.
      metric: H, in blocks of these d coordinates.
      tau: (), >= 0.
      start: (..., d), where the iteration starts: the solution of a problem nearby.
      trips: of the iteration, >= 1.

    Returns:
      x (..., d), and () ``||x - prox(x - (H (x - centre) + push)/L; L, tau)||_2``, L = h_max of
      each block, with the multiplier of the span in the gradient where H is singular, and the part
      of x outside ``centre + span(H)`` in the norm; 0 from a closed form.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> turned = jnp.array([[[0.6, -0.8], [0.8, 0.6]]])
      >>> metric = FullMetric(jnp.array([[1.0, 4.0]]), turned)
      >>> zero, push = jnp.zeros(2), jnp.array([-3.0, 0.5])
      >>> l1 = js.regularizers.L1(1.0)
      >>> x, residual = solve_full(l1, zero, push, metric, jnp.array(1.0), zero, 40)
      >>> [round(float(entry), 4) for entry in x], bool(residual < 1e-5)
      ([0.6849, 0.0], True)
    """
    if regularizer.rotates or metric.values.shape[-1] == 1:
        return _in_eigenbasis(regularizer, centre, push, metric, tau)
    return _by_splitting(regularizer, centre, push, metric, tau, start, trips)


def _in_eigenbasis(
    regularizer: Regularizer, centre: Array, push: Array, metric: FullMetric, tau: Array
) -> tuple[Array, Array]:
    d, size = centre.shape[-1], metric.values.shape[-1]
    middle, force = (metric.rotated(cut(vector, size)) for vector in (centre, push))
    # NaN counts as live: it must reach the answer.
    live = ~(metric.values <= 0)
    linear = jnp.where(live, metric.values * middle - force, 0)
    flat = linear.shape[-1] * linear.shape[-2]
    x = regularizer.solve(joined(linear, flat), joined(metric.values, flat), tau)
    x = jnp.where(live, cut(x, size), middle)
    return joined(metric.back(x), d), jnp.zeros((), centre.dtype)


def _by_splitting(
    regularizer: Regularizer,
    centre: Array,
    push: Array,
    metric: FullMetric,
    tau: Array,
    start: Array,
    trips: int,
) -> tuple[Array, Array]:
    d, size = centre.shape[-1], metric.values.shape[-1]
    h, vectors = metric
    live = ~(h <= 0)  # directions
    force = jnp.where(live, metric.rotated(cut(push, size)), 0)
    most = jnp.max(h, axis=-1, keepdims=True)
    least = jnp.min(jnp.where(live, h, most), axis=-1, keepdims=True)
    rho = jnp.sqrt(least) * jnp.sqrt(most)
    rho = jnp.where(most > 0, rho, 1)

    # A coordinate that all live directions leave out has no history: the prox must not see it.
    share = product(vectors * vectors, live.astype(h.dtype)[..., None])[..., 0]
    seen = joined(~(share <= rank_tolerance(h.dtype, size)), d)

    def per_coordinate(of_block: Array) -> Array:
        return jnp.where(seen, joined(jnp.broadcast_to(of_block, h.shape), d), 0)

    def prox(linear: Array, weight: Array) -> Array:
        x = regularizer.solve(jnp.where(seen, linear, 0), weight, tau)
        return jnp.where(seen, x, centre)

    # The point nearest to v for the quadratic: centre + pull (v - centre) - shift.
    kept = jnp.where(live, rho / (rho + h), 0)
    pull = product(vectors * kept[..., None, :], jnp.swapaxes(vectors, -2, -1))
    shift = metric.back(force / (rho + h))
    weight = per_coordinate(rho)

    def near(v: Array) -> Array:
        moved = product(pull, cut(v - centre, size)[..., None])[..., 0]
        return centre + joined(moved - shift, d)

    def trip(_: Any, v: Array) -> Array:
        inner = near(v)
        return v + 2 * RELAXATION * (prox(weight * (2 * inner - v), weight) - inner)

    # Not with its gradient/rho, where a fixed point from there would begin: an error of start would
    # grow by sqrt(h_max/h_min), and from round to round if the trips are few.
    v = lax.fori_loop(0, trips - 1, trip, start)
    inner = near(v)
    x = prox(weight * (2 * inner - v), weight)

    def outside(vector: Array) -> Array:
        blocks = cut(vector, size)
        return jnp.where(
            seen, vector - joined(metric.back(jnp.where(live, metric.rotated(blocks), 0)), d), 0
        )

    away = metric.rotated(cut(x - centre, size))
    gradient = joined(metric.back(jnp.where(live, h * away + force, 0)), d)
    gradient = gradient + outside(weight * (v - inner))
    steep = per_coordinate(most)
    moved = x - prox(steep * x - gradient, steep)
    astray = outside(x - centre)
    return x, jnp.sqrt(jnp.sum(moved * moved) + jnp.sum(astray * astray))
