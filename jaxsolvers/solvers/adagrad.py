"""AdaGrad with a diagonal metric, in its RDA and its composite mirror descent (FOBOS) form."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple, Self

import jax.numpy as jnp

from jaxsolvers.losses import Hinge
from jaxsolvers.members import Array, Number, choice, member, number, part
from jaxsolvers.protocol import Debt, Entry, Loss, Problem, Regularizer, keep_where
from jaxsolvers.regularizers.free_intercept import FreeIntercept
from jaxsolvers.regularizers.separable import NoRegularizer
from jaxsolvers.solvers.first_order import FirstOrder
from jaxsolvers.solvers.guarantees import gamma, regret_bound_rda

__all__ = ["AdaGradFOBOS", "AdaGradRDA"]


class AdaGradRDAState(NamedTuple):
    t: Entry  # () int32, rounds done
    gradient_sum: Entry  # (d,) sum_s eta g_s
    accumulator: Entry  # (d,) G = initial_accumulator + sum_s g_s^2

    @property
    def axes(self) -> AdaGradRDAState:
        return AdaGradRDAState((), ("feature",), ("feature",))


class AdaGradFOBOSState(NamedTuple):
    t: Entry  # () int32, rounds done
    current: Entry  # (d,) w
    accumulator: Entry  # (d,) G = initial_accumulator + sum_s g_s^2

    @property
    def axes(self) -> AdaGradFOBOSState:
        return AdaGradFOBOSState((), ("feature",), ("feature",))


@member
class _AdaGrad(FirstOrder):
    """What both forms share: their numbers, and the metric H_t = delta + sqrt(G_t)."""

    learning_rate: Number = number(above=0)
    delta: Number = number(default=0.0, minimum=0)
    loss: Any = part(Loss, default=Hinge())
    regularizer: Any = part(Regularizer, default=NoRegularizer())
    accumulate: str = choice("example", "batch", default="example")
    initial_accumulator: Number = number(default=0.0, minimum=0)

    def counts_rows(self) -> bool:
        return self.accumulate == "example"

    def metric(self, accumulator: Array) -> Array:
        return self.delta + jnp.sqrt(accumulator)

    def free_intercept(self) -> Self:
        return dataclasses.replace(self, regularizer=FreeIntercept(self.regularizer))

    def theory(self, state: Any, largest_norm: Number | None = None) -> dict[str, Array]:
        return {"gamma": gamma(state.accumulator, self.initial_accumulator)}


@member
class AdaGradRDA(_AdaGrad):
    """Adaptive gradients, regularized dual averaging form.

    Minimises ``(1/m) sum_i l(<w, x_i>, y_i) + phi(w)`` by, after round t,

        w_{t+1} = argmin_w  eta <sum_{s<=t} g_s, w> + eta t phi(w) + 1/2 <w, H_t w>,
        H_t = delta + sqrt(initial_accumulator + sum_{s<=t} g_s^2)    (coordinate by coordinate),

    (Duchi, Hazan, Singer, JMLR 2011, eq. 3 with the diagonal metric of Fig. 1). With an l1
    regularizer the weights have exact zeros. A coordinate without any gradient keeps 0. Gradients
    beyond 1e19 or below 1e-19 leave float32 when squared: scale X.

    Args:
      learning_rate: eta, > 0.
      delta: added to the root, >= 0; the regret bound asks for delta >= max |g|.
      loss: any loss of one score.
      regularizer: phi; an intercept column is left out of it.
      accumulate: "example": a batch of k rows is k rounds whose gradients are all taken at the
        weights before it (t += k, squares per row); "batch": it is one round with their mean.
      initial_accumulator: value of the accumulator before round 1, >= 0.

    Raises (from ``validate``, called by ``fit``):
      ValueError: a number out of its range, an unknown choice.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> X, y = np.array([[1, 0], [-1, 0]], "float32"), np.array([1, -1])
      >>> fit = js.fit(js.AdaGradRDA(0.5, regularizer=js.regularizers.L1(0.01)), X, y, epochs=5)
      >>> fit.model.predict(X).tolist(), float(fit.model.coef[1])
      ([1, -1], 0.0)
    """

    def init(self, problem: Problem, dtype: Any) -> AdaGradRDAState:
        return AdaGradRDAState(
            t=jnp.zeros((), jnp.int32),
            gradient_sum=jnp.zeros(problem.shape, dtype),
            accumulator=jnp.full(problem.shape, self.initial_accumulator, dtype),
        )

    def absorb(
        self,
        state: AdaGradRDAState,
        gradient: Array,
        square: Array | None = None,
        rounds: Number = 1,
    ) -> AdaGradRDAState:
        square = gradient * gradient if square is None else square
        return AdaGradRDAState(
            t=state.t + rounds,
            gradient_sum=state.gradient_sum + self.learning_rate * gradient,
            accumulator=state.accumulator + square,
        )

    def weights(self, state: AdaGradRDAState) -> Array:
        tau = self.learning_rate * state.t.astype(state.accumulator.dtype)
        return self.regularizer.solve(-state.gradient_sum, self.metric(state.accumulator), tau)

    def theory(self, state: Any, largest_norm: Number | None = None) -> dict[str, Array]:
        weights = self.weights(state)
        bound = regret_bound_rda(
            weights,  # as the comparator
            learning_rate=self.learning_rate,
            delta=self.delta,
            gamma=gamma(state.accumulator),  # with the initial accumulator, as H has it
            penalty_at_start=self.penalty(jnp.zeros_like(weights)),
        )
        return super().theory(state, largest_norm) | {"regret_bound": bound}


@member
class AdaGradFOBOS(_AdaGrad):
    """Adaptive gradients, composite mirror descent (FOBOS) form.

    Minimises ``(1/m) sum_i l(<w, x_i>, y_i) + phi(w)`` by

        w_{t+1} = argmin_w  eta <g_t, w> + eta phi(w) + 1/2 <w - w_t, H_t (w - w_t)>,
        H_t = delta + sqrt(initial_accumulator + sum_{s<=t} g_s^2)    (coordinate by coordinate),

    (Duchi, Hazan, Singer, JMLR 2011, eq. 4 with the diagonal metric of Fig. 1). A coordinate
    without any gradient keeps its value. Gradients beyond 1e19 or below 1e-19 leave float32 when
    squared: scale X.

    Args:
      learning_rate: eta, > 0.
      delta: added to the root, >= 0.
      loss: any loss of one score.
      regularizer: phi; an intercept column is left out of it.
      accumulate: "example": a batch of k rows is k rounds whose gradients are all taken at the
        weights before it (squares per row, phi counts k times); "batch": it is one round with
        their mean.
      initial_accumulator: value of the accumulator before round 1, >= 0.

    Raises (from ``validate``, called by ``fit``):
      ValueError: a number out of its range, an unknown choice.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> X, y = np.array([[1, 0], [-1, 0]], "float32"), np.array([1, -1])
      >>> js.fit(js.AdaGradFOBOS(0.5), X, y, epochs=5).model.predict(X).tolist()
      [1, -1]
    """

    def init(self, problem: Problem, dtype: Any) -> AdaGradFOBOSState:
        return AdaGradFOBOSState(
            t=jnp.zeros((), jnp.int32),
            current=jnp.zeros(problem.shape, dtype),
            accumulator=jnp.full(problem.shape, self.initial_accumulator, dtype),
        )

    def absorb(
        self,
        state: AdaGradFOBOSState,
        gradient: Array,
        square: Array | None = None,
        rounds: Number = 1,
    ) -> AdaGradFOBOSState:
        square = gradient * gradient if square is None else square
        accumulator = state.accumulator + square
        metric = self.metric(accumulator)
        linear = metric * state.current - self.learning_rate * gradient
        tau = self.learning_rate * jnp.asarray(rounds).astype(metric.dtype)
        moved = self.regularizer.solve(linear, metric, tau)
        current = jnp.where(metric > 0, moved, state.current)  # no history: keep the value
        after = AdaGradFOBOSState(state.t + rounds, current, accumulator)
        return keep_where(jnp.asarray(rounds) > 0, after, state)

    @property
    def debt(self) -> Debt:  # type: ignore[override]
        return self.regularizer.debt

    def age(self, state: AdaGradFOBOSState, gap: Array, step: Array) -> AdaGradFOBOSState:
        metric = self.metric(state.accumulator)
        tau = self.learning_rate * step.astype(metric.dtype)
        count = gap.astype(metric.dtype) / step.astype(metric.dtype)
        caught_up = self.regularizer.owed(state.current, metric, tau, count)
        return state._replace(current=jnp.where(metric > 0, caught_up, state.current))

    def weights(self, state: AdaGradFOBOSState) -> Array:
        return state.current
