"""SVRG: stochastic steps whose noise vanishes at the optimum."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsolvers.losses import Logistic
from jaxsolvers.members import Array, Number, member, number, part
from jaxsolvers.protocol import (
    Batch,
    Entry,
    Info,
    Loss,
    Problem,
    Solver,
    all_finite,
    keep_where,
    report,
    split_rows,
)
from jaxsolvers.solvers.sgd import check_shrinking
from jaxsolvers.solvers.survey import Survey

__all__ = ["SVRG"]


class SVRGState(NamedTuple):
    """``w = vector + drift mean``; the snapshot is made of ``mean``, ``slopes``, ``products``."""

    t: Entry  # () int32, rounds done
    drift: Entry  # () c
    vector: Entry  # (d,)
    mean: Entry  # (d,) mu; rounds meet it in ``products`` alone
    slopes: Entry  # (n,) -v_i
    products: Entry  # (n,) <mu, x_i>
    largest: Entry  # () max s_i ||x_i||^2
    live: Entry  # () rows that weigh something
    total: Entry  # () sum of their weights

    @property
    def axes(self) -> SVRGState:
        row = ("example",)
        return SVRGState((), (), ("feature",), ("",), row, row, (), (), ())


class _Surveyed(SVRGState):
    """The state while the snapshot is made: rows reach into ``mean``."""

    @property
    def axes(self) -> SVRGState:
        return _Surveyed(*super().axes)._replace(mean=("feature",))


class _Moving(NamedTuple):
    """What rounds change."""

    t: Array
    drift: Array
    vector: Array
    largest: Array


@member
class SVRG(Solver):
    """Stochastic variance-reduced gradient: a constant step that converges to the optimum.

    Minimises ``lam/2 ||w||^2 + sum_i p_i l(<w, x_i>, y_i)``, p_i = s_i / sum s. Every epoch begins
    with two passes over the rows: they keep the slopes ``v_i = -dl/dz`` at the present weights and
    ``mu = sum_i p_i v_i x_i``. Its rounds then are, for k rows,

        w <- (1 - eta lam) w + eta ((1/k) sum_i m p_i (v - v_i) x_i + mu),     v = -dl/dz at w

    (Johnson, Zhang, NIPS 2013, Fig. 1, the regularizer exact in every round; m rows weigh
    something). As ``w = V + c mu`` a round touches the row's columns alone. The state keeps two
    numbers per row and ranker, 2 n K numbers, and belongs to the rows of one data set. An
    intercept column is regularized like any feature.

    Args:
      lam: regularization strength, > 0.
      learning_rate: the step eta, > 0 and < 1/lam. None (default) is ``1/(3 L)`` with
        ``L = max_i m p_i ||x_i||^2 sup l'' + lam``. Losses with kinks (hinge, perceptron, absolute,
        eps-insensitive) have no such L: they get ``1/(3 (max m p_i ||x_i||^2 + lam))``, which is a
        heuristic, and SVRG ends near their optimum, not in it (``js.SDCA`` reaches it).
      loss: any loss of one score; the logistic loss by default.

    Raises (from ``validate``, called by ``fit``):
      ValueError: lam or learning_rate <= 0 or not finite; learning_rate * lam >= 1.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> X = np.array([[1, 0.2], [-1, 0.1], [-0.5, -0.3], [0.4, 0.1]], "float32")
      >>> y = np.array([1, -1, -1, 1])
      >>> js.fit(js.SVRG(0.1), X, y, epochs=10).model.predict(X).tolist()
      [1, -1, -1, 1]
    """

    lazy = True

    lam: Number = number(above=0)
    learning_rate: Number = number(default=None, above=0, optional=True)
    loss: Any = part(Loss, default=Logistic())

    def validate(self, prefix: str = "") -> None:
        super().validate(prefix)
        if self.learning_rate is not None:
            check_shrinking(self.learning_rate, self.lam, prefix)

    def init(self, problem: Problem, dtype: Any) -> SVRGState:
        def numbers(*shape: int) -> Array:
            return jnp.zeros(shape, dtype)

        (d,), n = problem.shape, problem.n_examples
        # Without a survey (rounds fed by hand) all v_i are 0: plain SGD, weights as given.
        return SVRGState(
            t=jnp.zeros((), jnp.int32), drift=numbers(), vector=numbers(d), mean=numbers(d),
            slopes=numbers(n), products=numbers(n), largest=numbers(), live=numbers() + 1,
            total=numbers() + 1,
        )  # fmt: skip

    def weights(self, state: SVRGState) -> Array:
        return state.vector + state.drift * state.mean

    def scales(self, state: SVRGState) -> bool:
        return True

    def surveys(self) -> tuple[Survey, ...]:
        return _Slopes(self), _Products(self)

    def begin_epoch(self, state: SVRGState, rows: Batch) -> SVRGState:
        """The state with a new snapshot: ``rows`` are all rows, each once. ``fit`` does this."""
        for survey in self.surveys():
            state = survey.close(survey.update(survey.open(state), rows)[0])
        return state

    def update(self, state: SVRGState, batch: Batch) -> tuple[SVRGState, Info]:
        moving, score, c = self._step(state, _moving(state), batch)
        return self._checked(state, moving, score, c, batch)

    def sweep(self, state: SVRGState, block: Batch, batch_size: int = 1) -> tuple[SVRGState, Info]:
        def step(moving: _Moving, batch: Batch) -> tuple[_Moving, tuple[Array, Array]]:
            moving, score, c = self._step(state, moving, batch)
            return moving, (score, c)

        # What need not be known round by round is looked at once per block.
        moving, found = jax.lax.scan(step, _moving(state), split_rows(block, batch_size))
        score, c = (values.reshape(block.target.shape) for values in found)
        return self._checked(state, moving, score, c, block)

    def _step(
        self, state: SVRGState, moving: _Moving, batch: Batch
    ) -> tuple[_Moving, Array, Array]:
        """One round, and the score and coefficient of its rows."""
        x, weight, live = batch.x, batch.weight, batch.weight > 0
        ratio = state.live / state.total  # m p_i = ratio s_i
        slope, product = (_take(rows, batch.index) for rows in (state.slopes, state.products))
        # Kept as an array: its rounding must not depend on the program around it.
        raw = jax.lax.optimization_barrier(x.scores(moving.vector))
        score = raw + moving.drift * product
        sizes = jnp.where(live, weight * x.square_norms(), 0)
        largest = jnp.maximum(moving.largest, jnp.max(sizes))
        rate = self._rate(ratio * largest)
        _, new = self.loss.value_and_slope(score, batch.target)
        count = jnp.maximum(jnp.sum(live.astype(raw.dtype)), 1)
        c = jnp.where(live, -(rate / count) * (ratio * weight) * (new - slope), 0)
        some = jnp.any(live)
        b = jnp.where(some, 1 - rate * self.lam, jnp.ones_like(rate))
        drift = b * moving.drift + jnp.where(some, rate, 0)
        vector = b * moving.vector + x.pull_back(c)
        t = moving.t + some.astype(jnp.int32)
        return _Moving(t, drift, vector, largest), score, c

    def _rate(self, largest: Array) -> Array:
        if self.learning_rate is not None:
            return jnp.asarray(self.learning_rate, largest.dtype)
        curvature = 1 if self.loss.curvature is None else self.loss.curvature
        return 1 / (3 * (curvature * largest + self.lam))

    def _checked(
        self, before: SVRGState, moving: _Moving, score: Array, c: Array, batch: Batch
    ) -> tuple[SVRGState, Info]:
        """The state after the rounds with its Info, or ``before`` where they left the floats."""
        finite = all_finite(batch.weight > 0, score, c)
        info = report(self.loss, score, batch.target, batch.weight, finite)
        kept = keep_where(finite, moving, _moving(before))
        return before._replace(**kept._asdict()), info

    def penalty(self, weights: Array) -> Array:
        return self.lam / 2 * jnp.sum(weights * weights)


@member
class _Slopes(Survey):
    """The first pass: v_i of every row, and mu."""

    solver: Any = part(Solver)

    def open(self, state: SVRGState) -> _Surveyed:
        zero = jnp.zeros_like(state.drift)
        return _Surveyed(*state)._replace(
            vector=self.solver.weights(state), drift=zero, mean=jnp.zeros_like(state.mean),
            largest=zero, live=zero, total=zero,
        )  # fmt: skip

    def update(self, state: _Surveyed, batch: Batch) -> tuple[_Surveyed, Info]:
        x, weight, live = batch.x, batch.weight, batch.weight > 0
        score = jax.lax.optimization_barrier(x.scores(state.vector))
        _, slope = self.loss.value_and_slope(score, batch.target)
        slope = jnp.where(live, slope, 0)
        finite = all_finite(live, score, slope)
        sizes = jnp.where(live, weight * x.square_norms(), 0)
        after = state._replace(
            mean=state.mean - x.pull_back(weight * slope),
            slopes=state.slopes.at[batch.index].set(slope, mode="drop"),
            largest=jnp.maximum(state.largest, jnp.max(sizes)),
            live=state.live + jnp.sum(live.astype(score.dtype)),
            total=state.total + jnp.sum(weight),
        )
        info = report(self.loss, score, batch.target, weight, finite)
        return keep_where(finite, after, state), info

    def close(self, state: _Surveyed) -> SVRGState:
        some = state.live > 0  # a ranker that was lost sees no row
        one = jnp.ones_like(state.total)
        live, total = jnp.where(some, state.live, one), jnp.where(some, state.total, one)
        return SVRGState(*state)._replace(mean=state.mean / total, live=live, total=total)


@member
class _Products(Survey):
    """The second pass: <mu, x_i> of every row."""

    solver: Any = part(Solver)

    def open(self, state: SVRGState) -> _Surveyed:
        return _Surveyed(*state)

    def update(self, state: _Surveyed, batch: Batch) -> tuple[_Surveyed, Info]:
        live = batch.weight > 0
        product = jax.lax.optimization_barrier(batch.x.scores(state.mean))
        finite = all_finite(live, product)
        products = state.products.at[batch.index].set(jnp.where(live, product, 0), mode="drop")
        info = report(self.loss, product, batch.target, batch.weight, finite)
        return keep_where(finite, state._replace(products=products), state), info

    def close(self, state: _Surveyed) -> SVRGState:
        return SVRGState(*state)


def _moving(state: SVRGState) -> _Moving:
    return _Moving(state.t, state.drift, state.vector, state.largest)


def _take(rows: Array, index: Array) -> Array:
    # JAX's default fill is NaN, and a padded row must read a finite number.
    return jnp.take(rows, index, mode="fill", fill_value=0)
