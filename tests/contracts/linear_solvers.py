"""A linear-step solver of ten lines, to hold the contract of ``LinearStep`` to its word.

It uses what the library's do not: a bias in the scalars, a ball around a factor b other than 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxsolvers.losses import Hinge
from jaxsolvers.members import choice, member, number, part
from jaxsolvers.protocol import Loss, Problem
from jaxsolvers.solvers.linear_step import LinearStep


class Biased(NamedTuple):
    t: Any  # () int32
    bias: Any  # ()


@member
class ShrinkingSGD(LinearStep):
    """Steps w <- (1 - eta lam) w + eta v x with a bias, in a ball of radius 1 on demand."""

    own_bias = True
    eta: Any = number(above=0)
    lam: Any = number(above=0)
    loss: Any = part(Loss, default=Hinge())
    project: bool = choice(False, True, default=False)

    def start(self, problem: Problem, dtype: Any) -> Biased:
        return Biased(jnp.zeros((), jnp.int32), jnp.zeros((), dtype))

    def round(self, scalars, score, target, weight, square_norm, dual):
        _, slope = self.loss.value_and_slope(score, target)
        live = jnp.sum((weight > 0).astype(score.dtype))
        c = -self.eta * weight * slope / jnp.maximum(live, 1)
        bias = scalars.bias + jnp.sum(jnp.where(weight > 0, c, 0))
        return Biased(scalars.t + 1, bias), 1 - self.eta * self.lam, c, None

    def intercept(self, scalars: Biased) -> Any:
        return scalars.bias

    def radius(self, scalars: Biased) -> Any:
        return jnp.ones_like(scalars.bias) if self.project else None
