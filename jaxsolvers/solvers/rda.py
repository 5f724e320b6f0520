"""Regularized dual averaging."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxsolvers.losses import Hinge
from jaxsolvers.members import Array, Number, member, number, part
from jaxsolvers.protocol import Entry, Loss, Problem, Regularizer
from jaxsolvers.regularizers.separable import NoRegularizer
from jaxsolvers.solvers.compensated import added
from jaxsolvers.solvers.first_order import FirstOrder, feature_axes

__all__ = ["RDA"]


class RDAState(NamedTuple):
    t: Entry  # () int32, rounds done
    gradient_sum: Entry  # (d,) sum_s eta_s g_s
    rate_sum: Entry = None  # () sum_s eta_s, and what it is too large by; None for a number
    rate_lost: Entry = None
    centre: Entry = None  # (d,) x_1; None for 0

    @property
    def axes(self) -> RDAState:
        return feature_axes(self, "t", "rate_sum", "rate_lost")


@member
class RDA(FirstOrder):
    """Regularized dual averaging, one step size for all coordinates.

    Minimises ``(1/m) sum_i l(<w, x_i>, y_i) + phi(w)`` by, after round t,

        w_{t+1} = argmin_w  eta <sum_{s<=t} g_s, w> + eta t phi(w) + sqrt(t)/2 ||w - x_1||^2

    (Xiao, JMLR 2010, eq. 8 with beta_t = sqrt(t)/eta); with an l1 regularizer it is
    ``-eta sqrt(t) soft(mean g, strength)``, with exact zeros. A schedule weights each round
    inside the sums. A batch is one round with its mean gradient.

    Args:
      learning_rate: eta, > 0; or a schedule, a function of the round t = 1, 2, ... (int32).
      loss: any loss.
      regularizer: phi; an intercept column is left out of it.

    Raises (from ``validate``, called by ``fit``):
      ValueError: a number out of its range.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> X, y = np.array([[1, 0], [-1, 0]], "float32"), np.array([1, -1])
      >>> fit = js.fit(js.RDA(0.5, regularizer=js.regularizers.L1(0.01)), X, y, epochs=5)
      >>> fit.model.predict(X).tolist(), float(fit.model.coef[1])
      ([1, -1], 0.0)
    """

    learning_rate: Any = number(above=0, schedule=True)
    loss: Any = part(Loss, default=Hinge())
    regularizer: Any = part(Regularizer, default=NoRegularizer())

    def init(self, problem: Problem, dtype: Any) -> RDAState:
        rates = [jnp.zeros((), dtype) if self.scheduled else None for _ in range(2)]
        return RDAState(
            t=jnp.zeros((), jnp.int32),
            gradient_sum=jnp.zeros(problem.shape, dtype),
            rate_sum=rates[0],
            rate_lost=rates[1],
            centre=self.centre(problem, dtype),
        )

    def absorb(
        self, state: RDAState, gradient: Array, square: Array | None = None, rounds: Number = 1
    ) -> RDAState:
        t = state.t + rounds
        eta = self.rate(t, gradient.dtype)
        rate_sum, rate_lost = state.rate_sum, state.rate_lost
        if self.scheduled:
            step = eta * jnp.asarray(rounds).astype(eta.dtype)
            rate_sum, rate_lost = added(rate_sum, step, rate_lost)
        gradient_sum = state.gradient_sum + eta * gradient
        return RDAState(t, gradient_sum, rate_sum, rate_lost, state.centre)

    def weights(self, state: RDAState) -> Array:
        dtype = state.gradient_sum.dtype
        # The objective times sqrt(t): one division, in the regularizer.
        metric = jnp.full_like(state.gradient_sum, jnp.sqrt(jnp.maximum(state.t, 1).astype(dtype)))
        total = state.rate_sum
        if total is None:
            total = self.rate(state.t, dtype) * state.t.astype(dtype)
        linear = -state.gradient_sum
        linear = linear if state.centre is None else metric * state.centre + linear
        return self.regularizer.solve(linear, metric, total)
