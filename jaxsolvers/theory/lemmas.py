"""The lemmas behind AdaGrad's bounds, both sides of them, for any stream of gradients."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxsolvers.features import product
from jaxsolvers.members import Array
from jaxsolvers.regularizers.separable import divide
from jaxsolvers.solvers.guarantees import alike, lengths, root, trace_root
from jaxsolvers.solvers.matrix_root import matrix_root

__all__ = ["Inequality", "lemma_4", "lemma_10"]


class Inequality(NamedTuple):
    """Both sides of ``left <= right``, such as a regret and its bound.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> float(js.theory.Inequality(jnp.array(3.0), jnp.array(4.0)).ratio)
      0.75
    """

    left: Array
    right: Array

    @property
    def ratio(self) -> Array:
        """The left side in units of the right one, at most 1 where it holds; 0 for 0 / 0."""
        nothing = self.right == 0
        quotient = self.left / jnp.where(nothing, 1, self.right)
        return jnp.where(nothing, jnp.where(self.left > 0, jnp.inf, 0), quotient)


def lemma_4(gradients: Any) -> Inequality:
    """Both sides of the lemma behind diagonal AdaGrad, for any gradients whatever.

    ``sum_t sum_i g_{t,i}^2 / ||g_{1:t,i}||_2 <= 2 gamma_T`` with 0/0 = 0 (Duchi, Hazan, Singer,
    JMLR 12 (2011), Lemma 4).

    Args:
      gradients: g_1 ... g_T, (T, d).

    Returns:
      An Inequality of () arrays.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> sides = js.theory.lemma_4(jnp.array([[3.0, 0.0], [4.0, 0.0]]))
      >>> round(float(sides.left), 4), float(sides.right)
      (6.2, 10.0)
    """
    (g,) = alike(gradients)
    # In units of the largest of each coordinate: squares of small gradients leave float32.
    unit = lax.stop_gradient(jnp.max(jnp.abs(g), axis=0))
    square = divide(g, jnp.broadcast_to(unit, g.shape)) ** 2
    length = lengths(jnp.cumsum(square, axis=0))
    left = jnp.sum(unit * jnp.sum(divide(square, length), axis=0))
    return Inequality(left, 2 * jnp.sum(unit * length[-1]))


def lemma_10(gradients: Any) -> Inequality:
    """Both sides of the lemma behind full-matrix AdaGrad, for any gradients whatever.

    ``sum_t <g_t, S_t^+ g_t> <= 2 tr(S_T)`` with ``S_t = (sum_{s<=t} g_s g_s')^{1/2}`` and its
    pseudo-inverse (Duchi, Hazan, Singer, JMLR 12 (2011), Lemma 10). One eigendecomposition per
    round. Directions are told from null ones down to 1e-6 of the longest (float32: some 1e-3).

    Args:
      gradients: g_1 ... g_T, (T, d).

    Returns:
      An Inequality of () arrays.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> sides = js.theory.lemma_10(jnp.array([[3.0, 0.0], [4.0, 0.0]]))
      >>> round(float(sides.left), 4), round(float(sides.right), 4)
      (6.2, 10.0)
    """
    (g,) = alike(gradients)
    unit = lax.stop_gradient(jnp.max(jnp.abs(g)))
    g = divide(g, unit)

    def one_round(total: Array, g: Array) -> tuple[Array, Array]:
        total = total + g[:, None] * g[None, :]
        roots, vectors = matrix_root(lax.stop_gradient(total))
        # <g, S^+ g> is the maximum over y of 2 <g, y> - <y, S y>: with the best y held fixed the
        # value is the same, and so is its derivative, without one of the pseudo-inverse.
        inside = lax.stop_gradient(product(g, vectors))
        y = product(vectors, divide(inside, roots))
        return total, 2 * jnp.sum(g * y) - jnp.sum(y * product(root(total), y))

    total, terms = lax.scan(one_round, jnp.zeros((g.shape[1],) * 2, g.dtype), g)
    return Inequality(unit * jnp.sum(terms), 2 * unit * trace_root(total))
