"""AdaGrad with a full or block-diagonal metric, in its RDA and its mirror descent (FOBOS) form."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxsolvers.features import cut
from jaxsolvers.members import Array, Number, member, setting
from jaxsolvers.protocol import Entry, Problem, keep_where
from jaxsolvers.regularizers.full_metric import FullMetric, solve_full
from jaxsolvers.solvers.adagrad import Lost, _AdaGrad
from jaxsolvers.solvers.compensated import added
from jaxsolvers.solvers.first_order import feature_axes
from jaxsolvers.solvers.guarantees import trace_root
from jaxsolvers.solvers.matrix_root import renewed

__all__ = ["FullAdaGradFOBOS", "FullAdaGradRDA"]

_MATRICES = ("", "", "")


class Factor(NamedTuple):
    """The root of G when it was last taken: G^{1/2} = Q diag(roots) Q' in each block."""

    roots: Entry  # (n_blocks, b), >= 0, rounding left out
    vectors: Entry  # (n_blocks, b, b), Q

    @property
    def axes(self) -> Factor:
        return Factor(("", ""), _MATRICES)


class FullAdaGradRDAState(NamedTuple):
    t: Entry  # () int32, rounds done
    gradient_sum: Entry  # (d,) sum_s eta_s g_s
    accumulator: Entry  # (n_blocks, b, b) G = initial_accumulator I + sum_s g_s g_s'
    factor: Entry
    current: Entry  # (d,) w
    residual: Entry  # () how far w is from the round's minimiser
    rate_sum: Entry = None  # () sum_s eta_s; None where eta is a number
    centre: Entry = None  # (d,) x_1; None for 0
    lost: Lost = Lost()

    @property
    def axes(self) -> FullAdaGradRDAState:
        return _axes(self)


class FullAdaGradFOBOSState(NamedTuple):
    t: Entry  # () int32, rounds done
    current: Entry  # (d,) w
    accumulator: Entry  # (n_blocks, b, b) G = initial_accumulator I + sum_s g_s g_s'
    factor: Entry
    residual: Entry  # () how far w is from the round's minimiser
    lost: Lost = Lost()

    @property
    def axes(self) -> FullAdaGradFOBOSState:
        return _axes(self)


def _axes(state: Any) -> Any:
    axes = feature_axes(state, "t", "rate_sum", "residual")
    lost = axes.lost
    if lost.accumulator is not None:
        lost = lost._replace(accumulator=_MATRICES)
    return axes._replace(accumulator=_MATRICES, factor=state.factor.axes, lost=lost)


@member
class _FullAdaGrad(_AdaGrad):
    """What both forms share: G and its root, by blocks."""

    block_size: int | None = setting(default=None, optional=True)
    refresh: int = setting(default=1)
    trips: int = setting(default=100)

    lazy = False  # a round moves every coordinate of a block

    def width(self, n_features: int) -> int:
        """Columns of a block."""
        return min(self.block_size or n_features, n_features)

    def squares(self, x: Any, coefficient: Array) -> Array:
        return x.pull_back_outer(coefficient, self.width(x.n_features))

    def spread(self, state: Any, initial: Number) -> dict[str, Array]:
        return {"trace": trace_root(state.accumulator, initial)}

    def started(self, problem: Problem, dtype: Any) -> dict[str, Any]:
        """The fields that both states have, before round 1."""
        start = self.centre(problem, dtype)
        b = self.width(problem.shape[-1])
        per_coordinate = cut(jnp.full(problem.shape, self.initial_accumulator, dtype), b)
        unit = jnp.zeros((*per_coordinate.shape, b), dtype) + jnp.eye(b, dtype=dtype).reshape(
            (1,) * (per_coordinate.ndim - 1) + (b, b)
        )
        return {
            "t": jnp.zeros((), jnp.int32),
            "accumulator": per_coordinate[..., None] * unit,
            "factor": Factor(jnp.zeros_like(per_coordinate), unit),
            "current": jnp.zeros(problem.shape, dtype) if start is None else start,
            "residual": jnp.zeros((), dtype),
            "lost": Lost(accumulator=jnp.zeros_like(unit) if self.compensated else None),
        }

    def renewed(
        self, state: Any, gradient: Array, square: Array | None, t: Array
    ) -> tuple[Array, Any, Factor, FullMetric]:
        """G with a round's gradients, what rounding took from it, its factor, and H."""
        if square is None:
            blocks = cut(gradient, self.width(gradient.shape[-1]))
            square = blocks[..., :, None] * blocks[..., None, :]
        accumulator, lost = added(state.accumulator, square, state.lost.accumulator)
        due = _periods(t, self.refresh) != _periods(state.t, self.refresh)
        operands = (due, accumulator, *state.factor)
        factor = Factor(*(out[0] for out in renewed(*(operand[None] for operand in operands))))
        return accumulator, lost, factor, FullMetric(self.delta + factor.roots, factor.vectors)


def _periods(t: Array, refresh: int) -> Array:
    """Periods of ``refresh`` rounds that t rounds have begun."""
    return (t + (refresh - 1)) // refresh


@member
class FullAdaGradRDA(_FullAdaGrad):
    """Adaptive gradients with a full metric, regularized dual averaging form.

    Minimises ``(1/m) sum_i l(<w, x_i>, y_i) + phi(w)`` by, after round t,

        w_{t+1} = argmin_w  eta <sum_{s<=t} g_s, w> + eta t phi(w) + 1/2 <w, H_t w>,
        H_t = delta I + G_t^{1/2},  G_t = initial_accumulator I + sum_{s<=t} g_s g_s'

    (Duchi, Hazan, Singer, JMLR 2011, eq. 3 with the full metric of Fig. 1), H full or full within
    blocks of columns. With a schedule eta_s stands inside the sums. Without regularizer, with
    squared l2, the l2 norm and its ball the argmin is a closed form in the eigenbasis of H; others
    iterate from the last round's weights (``regularizers.full_metric``), and ``state.residual``
    says how far they came. A direction without any gradient keeps 0: with delta = 0 and few rows
    the weights stay in the span of the gradients, and so does the regularizer's minimiser. In
    float32 eigenvalues of G below b eps times the largest count as 0.

    It holds two (b, b) matrices per block and ranker, and a root costs some 10 b^3 operations.

    Args:
      learning_rate: eta, > 0; or a schedule, a function of the round t = 1, 2, ... (int32) to
        eta_t >= 0. A batch that counts k rounds takes the rate of its last.
      delta: added to the root, >= 0; the regret bound asks for delta >= max ||g||_2.
      loss: any loss.
      regularizer: phi; an intercept column is left out of it.
      accumulate: "example": a batch of k rows is k rounds whose gradients are all taken at the
        weights before it (t += k, outer products per row); "batch": it is one round with their
        mean.
      initial_accumulator: G before round 1 in units of the identity, >= 0.
      compensated: whether the sums keep what rounding takes from them (Kahan); False by default.
      block_size: columns per block of H, consecutive ones, the last block may be short; None for
        one block of all columns, 1 for the diagonal metric.
      refresh: rounds between roots: after rounds 1, refresh + 1, 2 refresh + 1, ...; sums go on.
      trips: of the iteration per round, where there is one.

    Raises (from ``validate``, called by ``fit``):
      ValueError: a number out of its range, an unknown choice.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> X, y = np.array([[1, 2], [-1, -2]], "float32"), np.array([1, -1])
      >>> fit = js.fit(js.FullAdaGradRDA(0.5), X, y, epochs=5)
      >>> fit.model.predict(X).tolist(), fit.state.solver_state.accumulator.shape
      ([1, -1], (1, 2, 2))
    """

    def init(self, problem: Problem, dtype: Any) -> FullAdaGradRDAState:
        fields = self.started(problem, dtype)
        if self.compensated:
            fields["lost"] = fields["lost"]._replace(gradient_sum=jnp.zeros(problem.shape, dtype))
        rates = [jnp.zeros((), dtype) if self.scheduled else None for _ in range(2)]
        fields["lost"] = fields["lost"]._replace(rate_sum=rates[1])
        return FullAdaGradRDAState(
            gradient_sum=jnp.zeros(problem.shape, dtype),
            rate_sum=rates[0],
            centre=self.centre(problem, dtype),
            **fields,
        )

    def absorb(
        self,
        state: FullAdaGradRDAState,
        gradient: Array,
        square: Array | None = None,
        rounds: Number = 1,
    ) -> FullAdaGradRDAState:
        t = state.t + rounds
        eta = self.rate(t, gradient.dtype)
        gradient_sum, of_gradient = added(
            state.gradient_sum, eta * gradient, state.lost.gradient_sum
        )
        accumulator, of_square, factor, metric = self.renewed(state, gradient, square, t)
        rate_sum, of_rate = self.summed_rate(state, eta, rounds)
        centre = jnp.zeros_like(gradient_sum) if state.centre is None else state.centre
        tau = self.total_rate(t, rate_sum, eta.dtype)
        current, residual = solve_full(
            self.regularizer, centre, gradient_sum, metric, tau, state.current, self.trips
        )
        after = FullAdaGradRDAState(
            t, gradient_sum, accumulator, factor, current, residual, rate_sum, state.centre,
            Lost(of_gradient, of_square, of_rate),
        )  # fmt: skip
        return keep_where(jnp.asarray(rounds) > 0, after, state)

    def weights(self, state: FullAdaGradRDAState) -> Array:
        return state.current

    def theory(
        self, state: FullAdaGradRDAState, largest_norm: Number | None = None
    ) -> dict[str, Array]:
        told = super().theory(state, largest_norm)
        # The theorem's metric holds the round's own gradient.
        return told | self.regret_bound(state) if self.refresh == 1 else told


@member
class FullAdaGradFOBOS(_FullAdaGrad):
    """Adaptive gradients with a full metric, composite mirror descent (FOBOS) form.

    Minimises ``(1/m) sum_i l(<w, x_i>, y_i) + phi(w)`` by

        w_{t+1} = argmin_w  eta <g_t, w> + eta phi(w) + 1/2 <w - w_t, H_t (w - w_t)>,
        H_t = delta I + G_t^{1/2},  G_t = initial_accumulator I + sum_{s<=t} g_s g_s'

    (Duchi, Hazan, Singer, JMLR 2011, eq. 4 with the full metric of Fig. 1), H full or full within
    blocks of columns. A direction without any gradient keeps its value. All else as in
    ``FullAdaGradRDA``.

    Args:
      learning_rate: eta, > 0; or a schedule, a function of the round t = 1, 2, ... (int32) to
        eta_t >= 0. A batch that counts k rounds takes the rate of its last.
      delta: added to the root, >= 0.
      loss: any loss.
      regularizer: phi; an intercept column is left out of it.
      accumulate: "example": a batch of k rows is k rounds whose gradients are all taken at the
        weights before it (outer products per row, phi counts k times); "batch": it is one round
        with their mean.
      initial_accumulator: G before round 1 in units of the identity, >= 0.
      compensated: whether the sums keep what rounding takes from them (Kahan); False by default.
      block_size: columns per block of H, consecutive ones, the last block may be short; None for
        one block of all columns, 1 for the diagonal metric.
      refresh: rounds between roots: after rounds 1, refresh + 1, 2 refresh + 1, ...; sums go on.
      trips: of the iteration per round, where there is one.

    Raises (from ``validate``, called by ``fit``):
      ValueError: a number out of its range, an unknown choice.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> X, y = np.array([[1, 2], [-1, -2]], "float32"), np.array([1, -1])
      >>> js.fit(js.FullAdaGradFOBOS(0.5), X, y, epochs=5).model.predict(X).tolist()
      [1, -1]
    """

    def init(self, problem: Problem, dtype: Any) -> FullAdaGradFOBOSState:
        return FullAdaGradFOBOSState(**self.started(problem, dtype))

    def absorb(
        self,
        state: FullAdaGradFOBOSState,
        gradient: Array,
        square: Array | None = None,
        rounds: Number = 1,
    ) -> FullAdaGradFOBOSState:
        t = state.t + rounds
        eta = self.rate(t, gradient.dtype)
        accumulator, lost, factor, metric = self.renewed(state, gradient, square, t)
        tau = eta * jnp.asarray(rounds).astype(eta.dtype)
        current, residual = solve_full(
            self.regularizer, state.current, eta * gradient, metric, tau, state.current, self.trips
        )
        after = FullAdaGradFOBOSState(
            t, current, accumulator, factor, residual, Lost(accumulator=lost)
        )
        return keep_where(jnp.asarray(rounds) > 0, after, state)

    def weights(self, state: FullAdaGradFOBOSState) -> Array:
        return state.current
