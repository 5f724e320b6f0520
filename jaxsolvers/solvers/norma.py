"""NORMA: online learning with a step that falls like 1/sqrt(t), and forgetting."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxsolvers.losses import Hinge
from jaxsolvers.members import Array, Number, member, number, part
from jaxsolvers.protocol import Loss, Problem
from jaxsolvers.solvers.linear_step import LinearStep

__all__ = ["NORMA"]


class NORMAScalars(NamedTuple):
    t: Array  # () int32, rounds done


@member
class NORMA(LinearStep):
    """Stochastic sub-gradient descent on an l2-regularized loss with step c/(lam sqrt(t)).

    Minimises ``lam/2 ||w||^2 + (1/m) sum_i l(<w, x_i>, y_i)`` by rounds

        w <- (1 - c/sqrt(t)) w + (c/(lam k sqrt(t))) sum_i v_i x_i,     v = -dl/dz,

    over the k rows of a batch (Kivinen, Smola, Williamson, *Online learning with kernels*, NIPS
    2002, with eta_t = c/(lam sqrt(t))). Rows seen long ago are forgotten, which suits targets
    that drift; their mean, ``js.Averaged(js.NORMA(...))``, suits targets that do not. Losses
    without a slope bound (squared, squared hinge) can grow while c R^2/(lam sqrt(t)) is above 2,
    R = max ||x||. An intercept column is regularized like any feature.

    Args:
      lam: regularization strength, > 0.
      c: share of the weights that the first round forgets, > 0 and < 1.
      loss: any loss of one score, or in ``js.fit`` one of all classes, ``MulticlassHinge`` or
        ``MulticlassLogistic``.

    Raises (from ``validate``, called by ``fit``):
      ValueError: lam <= 0 or not finite; c outside (0, 1).

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> X, y = np.array([[1, 0.2], [-1, 0.1]], "float32"), np.array([1, -1])
      >>> js.fit(js.NORMA(0.1, 0.5), X, y, epochs=5).model.predict(X).tolist()
      [1, -1]
    """

    carries = True

    lam: Number = number(above=0)
    c: Number = number(above=0, below=1)
    loss: Any = part(Loss, default=Hinge())

    def start(self, problem: Problem, dtype: Any) -> NORMAScalars:
        return NORMAScalars(jnp.zeros((), jnp.int32))

    def round(
        self,
        scalars: NORMAScalars,
        score: Array,
        target: Array,
        weight: Array,
        square_norm: Array,
        dual: Array | None,
    ) -> tuple[NORMAScalars, Array, Array, None]:
        t = scalars.t + 1
        forgotten = self.c / jnp.sqrt(t.astype(score.dtype))
        c = (forgotten / self.lam) * self.mean_steps(score, target, weight)
        return NORMAScalars(t), 1 - forgotten, c, None

    def penalty(self, weights: Array) -> Array:
        return self.lam / 2 * jnp.sum(weights * weights)
