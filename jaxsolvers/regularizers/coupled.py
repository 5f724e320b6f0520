"""What the regularizers that tie coordinates together share: precision, and who takes part."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from jaxsolvers.members import Array, Number
from jaxsolvers.protocol import Regularizer

__all__ = ["Coupled", "live_part"]


class Coupled(Regularizer):
    """Base: a subclass writes ``measure`` and ``argmin``, for float32 or float64 arrays only.

    Weights of 16 bits are handled in float32 and returned in their own dtype, since the searches
    need more digits than they have. Integers become floats.
    """

    def measure(self, weights: Array, slack: float) -> Array:
        """phi(weights), (), where sums may pass a bound by a relative ``slack``."""
        raise NotImplementedError

    def argmin(self, linear: Array, metric: Array, tau: Array) -> Array:
        """The minimiser; see ``Regularizer.solve``. All arrays, all of one dtype."""
        raise NotImplementedError

    def closest(self, z: Array, metric: Array, tau: Array) -> Array:
        """The minimiser by its centre; see ``Regularizer.prox``."""
        return self.argmin(metric * z, metric, tau)

    def value(self, weights: Array) -> Array:
        weights, answer = as_floats(weights)
        working = working_dtype(weights)
        allowed = slack(weights.size, answer)
        return self.cast(working).measure(weights.astype(working), allowed).astype(answer)

    def solve(self, linear: Array, metric: Array, tau: Number) -> Array:
        linear, answer = as_floats(linear)
        own, *operands = self._working(linear, metric, tau)
        return own.argmin(*operands).astype(answer)

    def prox(self, z: Array, metric: Array, tau: Number) -> Array:
        z, answer = as_floats(z)
        own, *operands = self._working(z, metric, tau)
        return own.closest(*operands).astype(answer)

    def _working(self, vector: Array, metric: Array, tau: Number) -> Any:
        metric = jnp.asarray(metric)
        working = working_dtype(vector, metric)
        metric = jnp.broadcast_to(metric.astype(working), vector.shape)
        return self.cast(working), vector.astype(working), metric, jnp.asarray(tau, working)


def as_floats(array: Array) -> tuple[Array, Any]:
    """The array, integers and bools as default floats, and the dtype it then has."""
    array = jnp.asarray(array)
    if not jnp.issubdtype(array.dtype, jnp.floating):
        array = array.astype(jnp.result_type(float))
    return array, array.dtype


def working_dtype(*arrays: Array) -> Any:
    """float64 if any array is, else float32."""
    return jnp.float64 if any(a.dtype == jnp.float64 for a in arrays) else jnp.float32


def live_part(linear: Array, metric: Array) -> tuple[Array, Array, Array]:
    """The coordinates that take part: those with history.

    Returns:
      live, (...) bool: metric > 0 (or NaN, which must not be lost); linear, 0 elsewhere; metric,
      1 elsewhere, a stand-in that keeps divisions and derivatives finite and is never summed.
    """
    live = ~(metric <= 0)
    return live, jnp.where(live, linear, 0), jnp.where(live, metric, 1)


def slack(size: int, dtype: Any) -> float:
    """How far, relatively, the sum of a point's entries may pass a radius by rounding alone.

    The entries of a projected point are rounded to ``dtype``, and the sum that checks them rounds
    as well: a few units in the last place, growing like the root of the number of entries.
    """
    return float(jnp.finfo(dtype).eps) * (4 + size**0.5)
