"""A regularizer that leaves the last coordinate, the intercept, alone."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from jaxsolvers.members import Array, Number, member, part
from jaxsolvers.protocol import Debt, Regularizer
from jaxsolvers.regularizers.separable import NoRegularizer

__all__ = ["FreeIntercept"]


@member
class FreeIntercept(Regularizer):
    """phi(w) = inner(w without its last coordinate).

    Args:
      inner: the regularizer of the features.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> from jaxsolvers.regularizers.free_intercept import FreeIntercept
      >>> free = FreeIntercept(js.regularizers.L1(1.0))
      >>> free.solve(jnp.array([3.0, 3.0]), jnp.ones(2), 1.0).tolist()
      [2.0, 3.0]
    """

    inner: Any = part(Regularizer)

    @property
    def separable(self) -> bool:  # type: ignore[override]
        return self.inner.separable

    @property
    def lazy(self) -> bool:  # type: ignore[override]
        return self.inner.lazy

    @property
    def debt(self) -> Debt:  # type: ignore[override]
        return self.inner.debt

    @property
    def couples(self) -> bool:  # type: ignore[override]
        return self.inner.couples

    @property
    def rotates(self) -> bool:  # type: ignore[override]
        return isinstance(self.inner, NoRegularizer)  # any other treats one coordinate apart

    @property
    def needs_metric(self) -> bool:  # type: ignore[override]
        return self.inner.needs_metric

    def start(self, shape: tuple[int, ...], dtype: Any) -> Array | None:
        features = self.inner.start((*shape[:-1], shape[-1] - 1), dtype)
        if features is None:
            return None
        return jnp.concatenate([features, jnp.zeros((*shape[:-1], 1), dtype)], axis=-1)

    def value(self, weights: Array) -> Array:
        return self.inner.value(weights[..., :-1])

    def solve(self, linear: Array, metric: Array, tau: Number) -> Array:
        free = NoRegularizer().solve(linear[..., -1:], metric[..., -1:], tau)
        features = self.inner.solve(linear[..., :-1], metric[..., :-1], tau)
        return jnp.concatenate([features, free], axis=-1)

    def owed(self, weights: Array, metric: Array, tau: Number, count: Array) -> Array:
        features = self.inner.owed(weights[..., :-1], metric[..., :-1], tau, count[..., :-1])
        return jnp.concatenate([features, weights[..., -1:]], axis=-1)

    def check_start(self, prefix: str = "regularizer.") -> None:
        self.inner.check_start(prefix)
