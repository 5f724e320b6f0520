"""Passive-aggressive learning."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsolvers.losses import Absolute, EpsilonInsensitive, Hinge, Logistic, MulticlassHinge
from jaxsolvers.losses.dual import logistic_root, positive
from jaxsolvers.members import Array, Number, choice, member, number, part
from jaxsolvers.protocol import Loss, Problem, beside
from jaxsolvers.solvers.linear_step import LinearStep

__all__ = ["PassiveAggressive"]

_LOSSES = (Hinge, Logistic, EpsilonInsensitive, Absolute, MulticlassHinge)


class PassiveAggressiveScalars(NamedTuple):
    t: Array  # () int32, rounds done


@member
class PassiveAggressive(LinearStep):
    """The smallest change of the weights that does justice to the row at hand.

    On each row of weight s, with loss l and q = ||x||^2, ``w <- w + tau v x`` where v = -dl/dz is
    -1 or +1 and

        pa    tau = l / q                    argmin 1/2 ||w' - w||^2  with  l(<w', x>, y) = 0
        pa1   tau = min(C s, l / q)          argmin 1/2 ||w' - w||^2 + C s l(<w', x>, y)
        pa2   tau = l / (q + 1/(2 C s))      argmin 1/2 ||w' - w||^2 + C s l(<w', x>, y)^2

    (Crammer et al., JMLR 7, 2006, Fig. 1 and eq. 15-17). With the logistic loss pa1 solves
    ``tau = C s sigma(-(y z + q tau))`` by 16 Newton steps. With MulticlassHinge the class that
    violates most is r: ``w_y <- w_y + tau x``, ``w_r <- w_r - tau x``, and q is 2 ||x||^2 (their
    eq. 51, the constraint of that class alone). There is no regularizer and no falling
    rate: the weights follow the last rows, and ``js.Averaged(js.PassiveAggressive())`` is steadier.
    A row of zeros is passed over. The AdaGrad paper's PA is pa1 with C = 1/lambda. Rounds are of
    one row.

    Args:
      C: the most that a row of weight 1 may add (pa1), or its softness (pa2), > 0; 1 by default.
        "pa" does not use it, nor the weights of rows.
      variant: "pa", "pa1" or "pa2".
      loss: Hinge, EpsilonInsensitive, Absolute, MulticlassHinge, or Logistic with "pa1".

    Raises (from ``validate``, called by ``fit``):
      ValueError: C <= 0 or not finite; another loss; Logistic with "pa" or "pa2".

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> X, y = np.array([[1, 0.2], [-1, 0.1]], "float32"), np.array([1, -1])
      >>> js.fit(js.PassiveAggressive(), X, y, epochs=2).model.predict(X).tolist()
      [1, -1]
    """

    single_row = True

    C: Number = number(above=0, default=1.0)
    variant: str = choice("pa1", "pa", "pa2", default="pa1")
    loss: Any = part(Loss, default=Hinge())

    def validate(self, prefix: str = "") -> None:
        super().validate(prefix)
        given = type(self.loss).__name__
        if not isinstance(self.loss, _LOSSES):
            accepted = ", ".join(cls.__name__ for cls in _LOSSES)
            raise ValueError(
                f"{prefix}loss of PassiveAggressive must be one of {accepted}, got {given}"
            )
        if isinstance(self.loss, Logistic) and self.variant != "pa1":
            raise ValueError(
                f"{prefix}variant must be 'pa1' with the logistic loss, which is nowhere 0 and has "
                f"no other form, got {self.variant!r}"
            )

    def start(self, problem: Problem, dtype: Any) -> PassiveAggressiveScalars:
        return PassiveAggressiveScalars(jnp.zeros((), jnp.int32))

    def round(
        self,
        scalars: PassiveAggressiveScalars,
        score: Array,
        target: Array,
        weight: Array,
        square_norm: Array,
        dual: Array | None,
    ) -> tuple[PassiveAggressiveScalars, float, Array, None]:
        value, slope = self.loss.value_and_slope(score, target)
        most = self.C * weight
        if self.loss.joint:  # both classes move the margin
            square_norm = 2 * square_norm
        if isinstance(self.loss, Logistic):
            zero = jnp.zeros_like(score)
            u = logistic_root(target * score, zero, most * square_norm)
            tau, slope = most * jax.nn.sigmoid(-u), -target
        elif self.variant == "pa2":
            # Twice C s above and below: no quotient leaves the floats where the weight is 0.
            tau = 2 * most * value / (2 * most * square_norm + 1)
        else:
            tau = value / positive(square_norm)
            tau = jnp.minimum(tau, most) if self.variant == "pa1" else tau
        tau = jnp.where(square_norm > 0, tau, 0)
        c = -beside(tau, slope) * slope
        return PassiveAggressiveScalars(scalars.t + 1), 1.0, c, None

    def penalty(self, weights: Array) -> Array:
        return jnp.zeros((), weights.dtype)
