"""FOBOS: forward-backward splitting."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxsolvers.losses import Hinge
from jaxsolvers.members import Array, Number, member, number, part
from jaxsolvers.protocol import Debt, Entry, Loss, Problem, Regularizer, keep_where
from jaxsolvers.regularizers.separable import NoRegularizer
from jaxsolvers.solvers.first_order import FirstOrder, feature_axes

__all__ = ["FOBOS"]


class FOBOSState(NamedTuple):
    t: Entry  # () int32, rounds done
    current: Entry  # (d,) w

    @property
    def axes(self) -> FOBOSState:
        return feature_axes(self, "t")


@member
class FOBOS(FirstOrder):
    """Forward-backward splitting, one step size for all coordinates.

    Minimises ``(1/m) sum_i l(<w, x_i>, y_i) + phi(w)`` by

        w_{t+1} = argmin_w  eta_t <g_t, w> + eta_t phi(w) + 1/2 ||w - w_t||^2,  eta_t = eta/sqrt(t)

    (Duchi, Singer, JMLR 2009, eq. 2 and 3). A batch is one round with its mean gradient. On
    sparse rows a squared l2 norm is met with all columns, a slab at a time: its steps of unequal
    size have no closed form in a row.

    Args:
      learning_rate: eta, > 0; or a schedule, a function of the round t = 1, 2, ... (int32) that
        takes the place of eta.
      loss: any loss.
      regularizer: phi; an intercept column is left out of it.

    Raises (from ``validate``, called by ``fit``):
      ValueError: a number out of its range.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> X, y = np.array([[1, 0], [-1, 0]], "float32"), np.array([1, -1])
      >>> js.fit(js.FOBOS(0.5), X, y, epochs=5).model.predict(X).tolist()
      [1, -1]
    """

    learning_rate: Any = number(above=0, schedule=True)
    loss: Any = part(Loss, default=Hinge())
    regularizer: Any = part(Regularizer, default=NoRegularizer())

    @property
    def lazy(self) -> bool:  # type: ignore[override]
        # Proxes of unequal step sizes in a row have a closed form only where they add up.
        return super().lazy and self.debt != "steps"

    @property
    def debt(self) -> Debt:  # type: ignore[override]
        return self.regularizer.debt

    def init(self, problem: Problem, dtype: Any) -> FOBOSState:
        start = self.centre(problem, dtype)
        current = jnp.zeros(problem.shape, dtype) if start is None else start
        return FOBOSState(jnp.zeros((), jnp.int32), current)

    def absorb(
        self, state: FOBOSState, gradient: Array, square: Array | None = None, rounds: Number = 1
    ) -> FOBOSState:
        t = state.t + rounds
        eta = self.rate(t, gradient.dtype) * _decay(t, gradient.dtype)
        linear = state.current - eta * gradient
        current = self.regularizer.solve(linear, jnp.ones_like(linear), eta)
        return keep_where(jnp.asarray(rounds) > 0, FOBOSState(t, current), state)

    def dues(self, state: FOBOSState, rounds: Array) -> Array:
        t = jnp.max(state.t) + rounds  # lost rankers lag behind
        due = _decay(t, state.current.dtype) * rounds.astype(state.current.dtype)
        return due * self.rate(t, due.dtype) if self.scheduled else due

    def age(self, state: FOBOSState, gap: Array, step: Array) -> FOBOSState:
        current = state.current
        # The gap is the sum of the step sizes, eta left out where it is each ranker's own number.
        eta = jnp.ones((), gap.dtype) if self.scheduled else self.rate(state.t, gap.dtype)
        total = jnp.broadcast_to(gap, current.shape)
        return state._replace(
            current=self.regularizer.owed(current, jnp.ones_like(current), eta, total)
        )

    def weights(self, state: FOBOSState) -> Array:
        return state.current


def _decay(t: Array, dtype: Any) -> Array:
    """1/sqrt(t) of round t, ()."""
    return 1 / jnp.sqrt(jnp.maximum(t, 1).astype(dtype))
