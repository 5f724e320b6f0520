"""Stochastic gradient descent with a constant step, and the regularizer as a shrinking factor."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.losses import Hinge
from jaxsolvers.members import Array, Number, member, number, part
from jaxsolvers.protocol import Loss, Problem
from jaxsolvers.solvers.linear_step import LinearStep

__all__ = ["SGD"]


class SGDScalars(NamedTuple):
    t: Array  # () int32, rounds done


@member
class SGD(LinearStep):
    """Stochastic sub-gradient descent on an l2-regularized loss with a constant step eta.

    Minimises ``lam/2 ||w||^2 + (1/m) sum_i l(<w, x_i>, y_i)`` by rounds

        w <- (1 - eta lam) w + (eta/k) sum_i v_i x_i,     v = -dl/dz,

    over the k rows of a batch (Zhang, ICML 2004, eq. 4). It ends in a region around the optimum
    whose size is of order eta: average the iterates, ``js.Averaged(js.SGD(...))``, or take a
    smaller step. For losses without a slope bound (squared, squared hinge) eta must be below
    2/(R^2 + lam), R = max ||x||. An intercept column is regularized like any feature.

    Args:
      lam: regularization strength, > 0.
      learning_rate: the step eta, > 0 and < 1/lam.
      loss: any loss of one score, or in ``js.fit`` one of all classes, ``MulticlassHinge`` or
        ``MulticlassLogistic``.

    Raises (from ``validate``, called by ``fit``):
      ValueError: lam or learning_rate <= 0 or not finite; learning_rate * lam >= 1.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> X, y = np.array([[1, 0.2], [-1, 0.1]], "float32"), np.array([1, -1])
      >>> js.fit(js.SGD(0.01, 0.5), X, y, epochs=5).model.predict(X).tolist()
      [1, -1]
    """

    carries = True

    lam: Number = number(above=0)
    learning_rate: Number = number(above=0)
    loss: Any = part(Loss, default=Hinge())

    def validate(self, prefix: str = "") -> None:
        super().validate(prefix)
        check_shrinking(self.learning_rate, self.lam, prefix)

    def start(self, problem: Problem, dtype: Any) -> SGDScalars:
        return SGDScalars(jnp.zeros((), jnp.int32))

    def round(
        self,
        scalars: SGDScalars,
        score: Array,
        target: Array,
        weight: Array,
        square_norm: Array,
        dual: Array | None,
    ) -> tuple[SGDScalars, Array, Array, None]:
        c = self.learning_rate * self.mean_steps(score, target, weight)
        return SGDScalars(scalars.t + 1), 1 - self.learning_rate * self.lam, c, None

    def penalty(self, weights: Array) -> Array:
        return self.lam / 2 * jnp.sum(weights * weights)


def check_shrinking(learning_rate: Any, lam: Any, prefix: str) -> None:
    """Raise a ValueError if rounds ``(1 - learning_rate lam) w`` would turn the weights around."""
    numbers = (learning_rate, lam)
    if any(isinstance(value, jax.core.Tracer) for value in numbers):
        return
    eta, strength = (np.asarray(value, np.float64) for value in numbers)
    if eta.ndim and strength.ndim and eta.shape != strength.shape:
        return  # check_shapes tells which of them is wrong
    shrunk = (eta * strength).max()
    if shrunk >= 1:
        raise ValueError(
            f"{prefix}learning_rate must be below 1/lam, so that no round turns the weights "
            f"around; got learning_rate * lam = {shrunk:g}"
        )
