"""Adaptive regularization of weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsolvers.features import product
from jaxsolvers.losses import Hinge, Logistic
from jaxsolvers.losses.dual import logistic_root
from jaxsolvers.members import Array, Number, choice, member, number, part
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
)

__all__ = ["AROW"]


class AROWState(NamedTuple):
    t: Entry  # () int32, rounds done
    mean: Entry  # (d,) mu
    covariance: Entry  # (d,) or (d, d) Sigma

    @property
    def axes(self) -> AROWState:
        names = ("feature",) * jnp.ndim(self.covariance)
        return AROWState((), ("feature",), names)


@member
class AROW(Solver):
    """Adaptive regularization of weights: a Gaussian over the weights that grows surer.

    The weights are the mean mu of N(mu, Sigma), mu = 0 and Sigma = I at first. On a row of weight
    s, with v = x' Sigma x and r' = r/s, a row with y <mu, x> < 1 moves both (Crammer, Kulesza,
    Dredze, NIPS 2009, Fig. 1 and eq. 9-11):

        mu    <- mu + alpha y Sigma x,     alpha = (1 - y <mu, x>) / (v + r')
        full:      Sigma <- Sigma - (Sigma x)(Sigma x)' / (v + r')
        diagonal:  Sigma_i <- 1 / (1/Sigma_i + x_i^2 / r'),

    the diagonal form being the exact minimiser among diagonal covariances. With the logistic loss
    every row moves Sigma, and alpha = sigma(-u)/r' with u = y <mu, x> + (v/r') sigma(-u).
    Rounds are of one row. An intercept column is a feature like any other.

    Args:
      r: > 0; larger is more careful. 1 by default.
      covariance: "diagonal", d numbers per ranker, also on sparse rows; or "full", d^2 of them.
      loss: Hinge or Logistic.

    Raises (from ``validate``, called by ``fit``):
      ValueError: r <= 0 or not finite; another loss.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> X, y = np.array([[1, 0.2], [-1, 0.1]], "float32"), np.array([1, -1])
      >>> js.fit(js.AROW(), X, y, epochs=2).model.predict(X).tolist()
      [1, -1]
    """

    single_row = True

    r: Number = number(above=0, default=1.0)
    covariance: str = choice("diagonal", "full", default="diagonal")
    loss: Any = part(Loss, default=Hinge())

    @property
    def lazy(self) -> bool:  # type: ignore[override]
        # Of a full covariance all columns move.
        return self.covariance == "diagonal"

    def validate(self, prefix: str = "") -> None:
        super().validate(prefix)
        if not isinstance(self.loss, (Hinge, Logistic)):
            given = type(self.loss).__name__
            raise ValueError(f"{prefix}loss of AROW must be Hinge or Logistic, got {given}")

    def init(self, problem: Problem, dtype: Any) -> AROWState:
        (d,) = problem.shape
        full = self.covariance == "full"
        sigma = jnp.eye(d, dtype=dtype) if full else jnp.ones((d,), dtype)
        return AROWState(jnp.zeros((), jnp.int32), jnp.zeros((d,), dtype), sigma)

    def update(self, state: AROWState, batch: Batch) -> tuple[AROWState, Info]:
        x, weight = batch.x, batch.weight
        score = x.scores(state.mean)
        row = x.pull_back(jnp.ones_like(weight))
        diagonal = self.covariance == "diagonal"
        spread = state.covariance * row if diagonal else product(state.covariance, row)
        variance = jnp.maximum(jnp.sum(spread * row), 0)
        margin, share = batch.target * score, weight / self.r
        if isinstance(self.loss, Hinge):
            moves = (weight > 0) & (margin < 1)
            alpha = share * (1 - margin) / (1 + share * variance)
        else:
            moves = weight > 0
            root = logistic_root(margin, jnp.zeros_like(margin), share * variance)
            alpha = share * jax.nn.sigmoid(-root)
        alpha = jnp.where(moves, batch.target * alpha, 0)
        finite = all_finite(weight > 0, score, alpha, share * variance)
        # Kept as arrays: they would otherwise be computed anew for every coordinate.
        step, share = lax.optimization_barrier((alpha[0], jnp.where(moves, share, 0)[0]))
        if diagonal:
            covariance = state.covariance / (1 + share * spread * row)
        else:
            # A vector times itself: the covariance stays symmetric to the bit.
            lost = jnp.sqrt(share / (1 + share * variance)) * spread
            covariance = state.covariance - lost[:, None] * lost[None]
        after = AROWState(state.t + 1, state.mean + step * spread, covariance)
        info = report(self.loss, score, batch.target, weight, finite)
        return keep_where(finite & (weight[0] > 0), after, state), info

    def weights(self, state: AROWState) -> Array:
        return state.mean

    def penalty(self, weights: Array) -> Array:
        return jnp.zeros((), weights.dtype)
