"""AdaGrad with a diagonal metric, in its RDA and its composite mirror descent (FOBOS) form."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.losses import Hinge
from jaxsolvers.members import Array, Number, choice, member, number, part
from jaxsolvers.protocol import Debt, Entry, Loss, Problem, Regularizer, keep_where
from jaxsolvers.regularizers.separable import NoRegularizer
from jaxsolvers.solvers.compensated import added
from jaxsolvers.solvers.first_order import FirstOrder, feature_axes
from jaxsolvers.solvers.guarantees import gamma, regret_bound_rda

__all__ = ["AdaGradFOBOS", "AdaGradRDA"]


class Lost(NamedTuple):
    """What rounding has put into the sums; None where a sum is a plain one."""

    gradient_sum: Entry = None  # (d,)
    accumulator: Entry = None  # (d,)
    rate_sum: Entry = None  # ()


class AdaGradRDAState(NamedTuple):
    t: Entry  # () int32, rounds done
    gradient_sum: Entry  # (d,) sum_s eta_s g_s
    accumulator: Entry  # (d,) G = initial_accumulator + sum_s g_s^2
    rate_sum: Entry = None  # () sum_s eta_s; None where eta is a number
    centre: Entry = None  # (d,) x_1; None for 0
    lost: Lost = Lost()

    @property
    def axes(self) -> AdaGradRDAState:
        return feature_axes(self, "t", "rate_sum")


class AdaGradFOBOSState(NamedTuple):
    t: Entry  # () int32, rounds done
    current: Entry  # (d,) w
    accumulator: Entry  # (d,) G = initial_accumulator + sum_s g_s^2
    lost: Lost = Lost()

    @property
    def axes(self) -> AdaGradFOBOSState:
        return feature_axes(self, "t")


@member
class _AdaGrad(FirstOrder):
    """What all forms share: their numbers, and the metric H_t = delta + sqrt(G_t)."""

    learning_rate: Any = number(above=0, schedule=True)
    delta: Number = number(default=0.0, minimum=0)
    loss: Any = part(Loss, default=Hinge())
    regularizer: Any = part(Regularizer, default=NoRegularizer())
    accumulate: str = choice("example", "batch", default="example")
    initial_accumulator: Number = number(default=0.0, minimum=0)
    compensated: bool = choice(False, True, default=False)

    def counts_rows(self) -> bool:
        return self.accumulate == "example"

    def metric(self, accumulator: Array) -> Array:
        return self.delta + jnp.sqrt(accumulator)

    def summed_rate(self, state: Any, eta: Array, rounds: Number) -> tuple[Any, Any]:
        """sum_s eta_s with ``rounds`` more, and what rounding took; (None, None) for a number."""
        if not self.scheduled:
            return None, None
        step = eta * jnp.asarray(rounds).astype(eta.dtype)
        return added(state.rate_sum, step, state.lost.rate_sum)  # compensated: it costs nothing

    def total_rate(self, t: Array, rate_sum: Array | None, dtype: Any) -> Array:
        """sum_s eta_s of rounds 1 ... t, ()."""
        return self.rate(t, dtype) * t.astype(dtype) if rate_sum is None else rate_sum

    def validate(self, prefix: str = "") -> None:
        super().validate(prefix)
        start = (self.delta, self.initial_accumulator)
        traced = any(isinstance(value, jax.core.Tracer) for value in start)
        some = traced or any(np.all(np.asarray(value) > 0) for value in start)
        if self.regularizer.needs_metric and not some:
            raise ValueError(
                f"{prefix}delta must be > 0 with {type(self.regularizer).__name__} (features "
                f"without history could not reach its domain), got {self.delta!r}"
            )

    def nothing_lost(self, problem: Problem, dtype: Any, *names: str) -> Lost:
        """Zeros for the sums named, if this solver keeps what they lose."""
        if not self.compensated:
            return Lost()
        return Lost(**{name: jnp.zeros(problem.shape, dtype) for name in names})

    def spread(self, state: Any, initial: Number) -> dict[str, Array]:
        """What the regret bounds are written in, as far as it came after ``initial``."""
        return {"gamma": gamma(state.accumulator, initial)}

    def theory(self, state: Any, largest_norm: Number | None = None) -> dict[str, Array]:
        return self.spread(state, self.initial_accumulator)

    def regret_bound(self, state: Any) -> dict[str, Array]:
        """The bound of the dual averaging form, with the weights as the comparator."""
        if self.scheduled:
            return {}  # the theorem has one rate
        weights = self.weights(state)
        start = jnp.zeros_like(weights) if state.centre is None else state.centre
        bound = regret_bound_rda(
            weights,
            start=start,
            learning_rate=self.learning_rate,
            delta=self.delta,
            penalty_at_start=self.penalty(start),
            **self.spread(state, 0.0),  # with the initial accumulator, as H has it
        )
        return {"regret_bound": bound}


@member
class AdaGradRDA(_AdaGrad):
    """Adaptive gradients, regularized dual averaging form.

    Minimises ``(1/m) sum_i l(<w, x_i>, y_i) + phi(w)`` by, after round t,

        w_{t+1} = argmin_w  eta <sum_{s<=t} g_s, w> + eta t phi(w) + 1/2 <w, H_t w>,
        H_t = delta + sqrt(initial_accumulator + sum_{s<=t} g_s^2)    (coordinate by coordinate),

    (Duchi, Hazan, Singer, JMLR 2011, eq. 3 with the diagonal metric of Fig. 1). With a schedule
    eta_s stands inside the sums, ``sum_s eta_s g_s`` and ``sum_s eta_s``. With an l1 regularizer
    the weights have exact zeros. A coordinate without any gradient keeps 0. Gradients beyond 1e19
    or below 1e-19 leave float32 when squared: scale X.

    Args:
      learning_rate: eta, > 0; or a schedule, a function of the round t = 1, 2, ... (int32) to
        eta_t >= 0. A batch that counts k rounds takes the rate of its last.
      delta: added to the root, >= 0; the regret bound asks for delta >= max |g|.
      loss: any loss of one score.
      regularizer: phi; an intercept column is left out of it.
      accumulate: "example": a batch of k rows is k rounds whose gradients are all taken at the
        weights before it (t += k, squares per row); "batch": it is one round with their mean.
      initial_accumulator: value of the accumulator before round 1, >= 0.
      compensated: whether the sums keep what rounding takes from them (Kahan): for runs of 1e6
        rounds and more in float32; False by default.

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
        lost = self.nothing_lost(problem, dtype, "gradient_sum", "accumulator")
        rates = [jnp.zeros((), dtype) if self.scheduled else None for _ in range(2)]
        return AdaGradRDAState(
            t=jnp.zeros((), jnp.int32),
            gradient_sum=jnp.zeros(problem.shape, dtype),
            accumulator=jnp.full(problem.shape, self.initial_accumulator, dtype),
            rate_sum=rates[0],
            centre=self.centre(problem, dtype),
            lost=lost._replace(rate_sum=rates[1]),
        )

    def absorb(
        self,
        state: AdaGradRDAState,
        gradient: Array,
        square: Array | None = None,
        rounds: Number = 1,
    ) -> AdaGradRDAState:
        square = gradient * gradient if square is None else square
        t, lost = state.t + rounds, state.lost
        eta = self.rate(t, gradient.dtype)
        gradient_sum, of_gradient = added(state.gradient_sum, eta * gradient, lost.gradient_sum)
        accumulator, of_square = added(state.accumulator, square, lost.accumulator)
        rate_sum, of_rate = self.summed_rate(state, eta, rounds)
        lost = Lost(of_gradient, of_square, of_rate)
        return AdaGradRDAState(t, gradient_sum, accumulator, rate_sum, state.centre, lost)

    def weights(self, state: AdaGradRDAState) -> Array:
        metric = self.metric(state.accumulator)
        tau = self.total_rate(state.t, state.rate_sum, metric.dtype)
        if state.centre is None:
            return self.regularizer.solve(-state.gradient_sum, metric, tau)
        moved = self.regularizer.solve(metric * state.centre - state.gradient_sum, metric, tau)
        return jnp.where(metric > 0, moved, state.centre)  # no history: the centre

    def theory(self, state: Any, largest_norm: Number | None = None) -> dict[str, Array]:
        return super().theory(state, largest_norm) | self.regret_bound(state)


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
      learning_rate: eta, > 0; or a schedule, a function of the round t = 1, 2, ... (int32) to
        eta_t >= 0. A batch that counts k rounds takes the rate of its last.
      delta: added to the root, >= 0.
      loss: any loss of one score.
      regularizer: phi; an intercept column is left out of it.
      accumulate: "example": a batch of k rows is k rounds whose gradients are all taken at the
        weights before it (squares per row, phi counts k times); "batch": it is one round with
        their mean.
      initial_accumulator: value of the accumulator before round 1, >= 0.
      compensated: whether the sums keep what rounding takes from them (Kahan): for runs of 1e6
        rounds and more in float32; False by default.

    Raises (from ``validate``, called by ``fit``):
      ValueError: a number out of its range, an unknown choice.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> X, y = np.array([[1, 0], [-1, 0]], "float32"), np.array([1, -1])
      >>> js.fit(js.AdaGradFOBOS(0.5), X, y, epochs=5).model.predict(X).tolist()
      [1, -1]
    """

    @property
    def lazy(self) -> bool:  # type: ignore[override]
        # Proxes of unequal rates in a row have a closed form only where they add up.
        return super().lazy and (self.debt != "steps" or not self.scheduled)

    @property
    def debt(self) -> Debt:  # type: ignore[override]
        return self.regularizer.debt

    def init(self, problem: Problem, dtype: Any) -> AdaGradFOBOSState:
        start = self.centre(problem, dtype)
        return AdaGradFOBOSState(
            t=jnp.zeros((), jnp.int32),
            current=jnp.zeros(problem.shape, dtype) if start is None else start,
            accumulator=jnp.full(problem.shape, self.initial_accumulator, dtype),
            lost=self.nothing_lost(problem, dtype, "accumulator"),
        )

    def absorb(
        self,
        state: AdaGradFOBOSState,
        gradient: Array,
        square: Array | None = None,
        rounds: Number = 1,
    ) -> AdaGradFOBOSState:
        square = gradient * gradient if square is None else square
        t = state.t + rounds
        eta = self.rate(t, gradient.dtype)
        accumulator, lost = added(state.accumulator, square, state.lost.accumulator)
        metric = self.metric(accumulator)
        linear = metric * state.current - eta * gradient
        tau = eta * jnp.asarray(rounds).astype(metric.dtype)
        moved = self.regularizer.solve(linear, metric, tau)
        current = jnp.where(metric > 0, moved, state.current)  # no history: keep the value
        after = AdaGradFOBOSState(t, current, accumulator, Lost(accumulator=lost))
        return keep_where(jnp.asarray(rounds) > 0, after, state)

    def dues(self, state: AdaGradFOBOSState, rounds: Array) -> Array:
        if not self.scheduled:
            return rounds
        eta = self.rate(jnp.max(state.t) + rounds, state.current.dtype)  # lost rankers lag behind
        return eta * rounds.astype(eta.dtype)

    def age(self, state: AdaGradFOBOSState, gap: Array, step: Array) -> AdaGradFOBOSState:
        metric = self.metric(state.accumulator)
        # Of every class, where they are trained together.
        count = jnp.broadcast_to(gap.astype(metric.dtype), metric.shape)
        tau = jnp.ones((), metric.dtype)  # with a schedule the gap is the sum of tau
        if not self.scheduled:
            size = step.astype(metric.dtype)
            tau, count = self.rate(state.t, metric.dtype) * size, count / size
        caught_up = self.regularizer.owed(state.current, metric, tau, count)
        return state._replace(current=jnp.where(metric > 0, caught_up, state.current))

    def weights(self, state: AdaGradFOBOSState) -> Array:
        return state.current
