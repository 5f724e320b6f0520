"""Roots of monotone functions of one unknown, at any scale and in a fixed number of trips.

The operators of norms, balls and the simplex come down to one unknown: a threshold, a level, a
radius. It may be 1e-30 in one problem and 1e30 in the next (metrics are roots of sums of squared
gradients), where halving an interval of real numbers spends every trip on the exponent and ends
with an absolute accuracy that is worth nothing. So :func:`largest` halves an interval of *bit
patterns*: read as integers, floats of one sign are in order, and two neighbours differ by 1. 32
trips pin a float32 down to its last bit (64 a float64), whatever its size.

Searches have no useful derivative. Everything here runs under ``stop_gradient`` and is followed by
one *closing* Newton step, which is differentiated: a Newton step at a root has the derivative that
the implicit function theorem asks for. Taken from a float beside the root, it also makes up for
the rounding of the search, so that nothing large is ever subtracted from something alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsolvers.members import Array
from jaxsolvers.regularizers.separable import divide

__all__ = ["largest", "norm", "root_of_norm", "total"]

Axis = int | None  # summed over, kept with size 1; None: all axes

# From within a factor 2 below the root; `root_of_norm` says why few are enough.
NEWTON_TRIPS = 8


def total(terms: Array, axis: Axis) -> Array:
    """The sum over ``axis``, which is kept with size 1."""
    return jnp.sum(terms, axis=axis, keepdims=True)


def norm(x: Array, axis: Axis) -> Array:
    """||x||_2 over ``axis``, kept with size 1: no overflow, derivative 0 at x = 0."""
    size = lax.stop_gradient(jnp.max(jnp.abs(x), axis=axis, keepdims=True, initial=0))
    some = size != 0  # NaN as well
    unit = jnp.where(some, x, 1) / jnp.where(some, size, 1)
    return jnp.where(some, size * jnp.sqrt(total(unit * unit, axis)), 0)


def largest(
    holds: Callable[[Array], Array], shape: Any, dtype: Any, *, signed: bool, trips: int = 0
) -> Array:
    """The largest float at which ``holds`` is still true.

    Args:
      holds: (shape) -> (shape) bool, true up to some point and false beyond it.
      shape: of the unknowns, all searched at once.
      dtype: float32 or float64.
      signed: whether to search all floats or those >= 0.
      trips: halvings; 0 for as many as find the last bit.

    Returns:
      (shape) that float, or with fewer trips one below it; the lowest of all (-inf or 0) where
      ``holds`` is false everywhere.
    """
    bits = jnp.finfo(dtype).bits
    integer = {32: np.int32, 64: np.int64}[bits]
    infinity = np.array(np.inf, dtype).view(integer)  # floats >= 0 have the patterns below it

    def as_float(key: Array) -> Array:  # a negative key stands for the float of opposite sign
        size = lax.bitcast_convert_type(jnp.abs(key), dtype)
        return jnp.where(key < 0, -size, size)

    def halve(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = (low & high) + ((low ^ high) >> 1)  # the mean, rounded down, without overflow
        still = holds(as_float(middle))
        return jnp.where(still, middle, low), jnp.where(still, high, middle)

    low = jnp.full(shape, -infinity if signed else 0, integer)
    high = jnp.full(shape, infinity, integer)
    return as_float(lax.fori_loop(0, trips or bits, halve, (low, high))[0])


def root_of_norm(terms: Callable[..., tuple[Array, Array]], axis: Axis, *operands: Array) -> Array:
    """The u > 0 with ||q(u)||_2 = 1 over ``axis``, for q decreasing in u, differentiable.

    The Newton step on 1/||q||, which is concave or convex and nearly linear in u,

        u += (n - 1) n^2 / sum q^2 g,     n = ||q||,  g = -d log q / du,

    never overshoots from the left. A few halvings of the bit pattern come first and end within a
    factor 2 of the root. From the end of a bracket alone, steps that multiply u by 3/2 can be all
    there is: with metrics 1e30 and 1e-30 that is 100 of them.

    Args:
      terms: ``terms(u, *operands) -> (q, g)``.
      axis: the axis of the norm.
      operands: arrays that q depends on, the first of its shape; derivatives reach them.

    Returns:
      u, with ``axis`` kept at size 1.
    """
    dtype = operands[0].dtype
    shape = jnp.sum(operands[0], axis=axis, keepdims=True).shape
    constant = lax.stop_gradient(operands)

    def step(u: Array, operands: Any) -> Array:
        q, g = terms(u, *operands)
        square = total(q * q, axis)
        n = jnp.sqrt(square)
        return u + divide((n - 1) * square, total(q * q * g, axis))

    def holds(u: Array) -> Array:
        q, _ = terms(u, *constant)
        return total(q * q, axis) > 1

    exponent_bits = jnp.finfo(dtype).bits - jnp.finfo(dtype).nmant - 1
    u = largest(holds, shape, dtype, signed=False, trips=exponent_bits + 1)
    u = jnp.maximum(u, jnp.finfo(dtype).tiny)
    u = lax.fori_loop(0, NEWTON_TRIPS, lambda _, u: step(u, constant), u)
    return step(lax.stop_gradient(u), operands)
