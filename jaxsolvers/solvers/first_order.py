"""First-order solvers: a gradient in, an argmin out.

AdaGrad, RDA and FOBOS share one round: score the rows with the current weights, pull the slopes
back to a gradient and absorb it. A solver writes :meth:`FirstOrder.absorb`, which sees no data,
and :meth:`weights`; the regularizer solves the argmin (``Regularizer.solve``).
"""

from __future__ import annotations

import dataclasses
from typing import Any, Self

import jax.numpy as jnp
from jax import lax

from jaxsolvers.members import Array, Number, is_schedule
from jaxsolvers.protocol import (
    Batch,
    Info,
    Problem,
    Solver,
    State,
    all_finite,
    beside,
    live_rows,
    report,
)
from jaxsolvers.regularizers.free_intercept import FreeIntercept


class FirstOrder(Solver):
    """Base of the solvers that see the data through gradients only."""

    joint = True
    carries = True
    learning_rate: Any
    regularizer: Any

    @property
    def lazy(self) -> bool:  # type: ignore[override]
        # Without debts nothing is owed: each feature's weights follow from its own sums.
        settled = self.debt == "none" or self.regularizer.lazy
        return self.regularizer.separable and settled

    @property
    def scheduled(self) -> bool:
        """Whether the learning rate is a function of t."""
        return is_schedule(self.learning_rate)

    def rate(self, t: Array, dtype: Any) -> Array:
        """The learning rate of round t = 1, 2, ..., (); a schedule is never asked for t = 0."""
        eta = self.learning_rate(jnp.maximum(t, 1)) if self.scheduled else self.learning_rate
        return jnp.asarray(eta, dtype)

    def centre(self, problem: Problem, dtype: Any) -> Array | None:
        """x_1 of the weights' shape, a buffer of its own; None for 0."""
        if problem.centre is not None:
            return jnp.array(problem.centre, dtype)
        return self.regularizer.start(problem.shape, dtype)

    def absorb(
        self, state: State, gradient: Array, square: Array | None = None, rounds: Number = 1
    ) -> State:
        """Take in the (sub-)gradient of ``rounds`` rounds made at the same weights.

        Args:
          state: the state before.
          gradient: sum of the rounds' gradients, of the weights' shape.
          square: sum of their squares, as :meth:`squares` gives them; None for gradient^2.
          rounds: () int32, how far the counter t moves; 0 leaves the state alone.
        """
        raise NotImplementedError

    def counts_rows(self) -> bool:
        """Whether each live row of a batch is a round of its own ("example")."""
        return False

    def rounds(self, weight: Array) -> Array:
        live = live_rows(weight).astype(jnp.int32)
        return jnp.sum(live, dtype=jnp.int32) if self.counts_rows() else jnp.max(live)

    def squares(self, x: Any, coefficient: Array) -> Array:
        """Sum over the rows of the squares of c_i x_i, as :meth:`absorb` takes them."""
        return x.pull_back_squares(coefficient)

    def update(self, state: State, batch: Batch) -> tuple[State, Info]:
        x, weight = batch.x, batch.weight
        score = x.scores(self.weights(state))
        _, slope = self.loss.value_and_slope(score, batch.target)
        live = weight > 0
        coefficient = jnp.where(beside(live, slope), beside(weight, slope) * slope, 0)
        if not self.counts_rows():
            count = jnp.sum(live_rows(weight).astype(weight.dtype))
            coefficient = coefficient / jnp.maximum(count, 1)
        apart = self.counts_rows() and weight.shape[0] > 1  # squares of each row
        # A void round for a ranker whose numbers left the floats: its neighbours never notice.
        squares = ((coefficient * beside(x.scales(), coefficient)) ** 2,) if apart else ()
        finite = all_finite(live, score, coefficient, *squares)
        # Kept as an array: it would otherwise be computed anew for every coordinate.
        coefficient = lax.optimization_barrier(jnp.where(finite, coefficient, 0))
        gradient = x.pull_back(coefficient)
        square = self.squares(x, coefficient) if apart else None
        rounds = jnp.where(finite, self.rounds(weight), 0)
        info = report(self.loss, score, batch.target, weight, finite)
        return self.absorb(state, gradient, square, rounds), info

    def penalty(self, weights: Array) -> Array:
        return self.regularizer.value(weights)

    def free_intercept(self) -> Self:
        free = FreeIntercept(self.regularizer)
        return dataclasses.replace(self, regularizer=free)  # type: ignore[type-var]


def feature_axes(state: Any, *scalars: str) -> Any:
    """The axes of a first-order state: () of the fields named, ("feature",) of the others."""

    def names(name: str, field: Any) -> Any:
        if field is None:
            return None
        if hasattr(field, "_asdict"):
            return feature_axes(field, *scalars)
        return () if name in scalars else ("feature",)

    return type(state)(**{name: names(name, field) for name, field in state._asdict().items()})
