"""First-order solvers: a gradient in, an argmin out.

AdaGrad, RDA and FOBOS share one round: score the rows with the current weights, pull the slopes
back to a gradient and absorb it. A solver writes :meth:`FirstOrder.absorb`, which sees no data,
and :meth:`weights`; the regularizer solves the argmin (``Regularizer.solve``).
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from jaxsolvers.members import Array, Number
from jaxsolvers.protocol import Batch, Info, Solver, State, all_finite, report


class FirstOrder(Solver):
    """Base of the solvers that see the data through gradients only."""

    regularizer: Any

    @property
    def lazy(self) -> bool:  # type: ignore[override]
        return self.regularizer.separable and self.regularizer.lazy

    def absorb(
        self, state: State, gradient: Array, square: Array | None = None, rounds: Number = 1
    ) -> State:
        """Take in the (sub-)gradient of ``rounds`` rounds made at the same weights.

        Args:
          state: the state before.
          gradient: sum of the rounds' gradients, of the weights' shape.
          square: sum of their squares, coordinate by coordinate; None for gradient^2.
          rounds: () int32, how far the counter t moves; 0 leaves the state alone.
        """
        raise NotImplementedError

    def counts_rows(self) -> bool:
        """Whether each live row of a batch is a round of its own ("example")."""
        return False

    def rounds(self, weight: Array) -> Array:
        live = (weight > 0).astype(jnp.int32)
        return jnp.sum(live, dtype=jnp.int32) if self.counts_rows() else jnp.max(live)

    def update(self, state: State, batch: Batch) -> tuple[State, Info]:
        x, weight = batch.x, batch.weight
        score = x.scores(self.weights(state))
        _, slope = self.loss.value_and_slope(score, batch.target)
        live = weight > 0
        coefficient = jnp.where(live, weight * slope, 0)
        if not self.counts_rows():
            count = jnp.sum(live.astype(weight.dtype))
            coefficient = coefficient / jnp.maximum(count, 1)
        apart = self.counts_rows() and weight.shape[0] > 1  # squares of each row
        # A void round for a ranker whose numbers left the floats: its neighbours never notice.
        squares = ((coefficient * x.scales()) ** 2,) if apart else ()
        finite = all_finite(live, score, coefficient, *squares)
        # Kept as an array: it would otherwise be computed anew for every coordinate.
        coefficient = lax.optimization_barrier(jnp.where(finite, coefficient, 0))
        gradient = x.pull_back(coefficient)
        square = x.pull_back_squares(coefficient) if apart else None
        rounds = jnp.where(finite, self.rounds(weight), 0)
        info = report(self.loss, score, batch.target, weight, finite)
        return self.absorb(state, gradient, square, rounds), info

    def penalty(self, weights: Array) -> Array:
        return self.regularizer.value(weights)
