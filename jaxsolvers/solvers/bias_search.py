"""An outer search for the bias around dual steps at a fixed one, in the solver's own state.

``g(b) = min_w lam/2 ||w||^2 + sum_i p_i [1 - y_i (<w, x_i> + b)]_+`` is convex. Duals a_i = y_i
alpha_i bound it from below at *every* bias by the line

    D + slope (b' - b),   D = sum_i p_i a_i (y_i - b) - lam/2 ||w(a)||^2,   slope = -sum_i p_i a_i,

so where the line is above an objective that was reached there is no optimum: that is a bisection
step whose inner gap need not be guessed. The duals do not depend on b, so each inner problem
starts from the last one's solution.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxsolvers.members import Array, Number
from jaxsolvers.protocol import Problem
from jaxsolvers.solvers.hinge_bias import best_bias

# Sums over the rows are good to about so many units of rounding: a line is lowered by them.
SLACK = 32


class SearchScalars(NamedTuple):
    """The scalars of a search."""

    t: Array  # () int32, rounds done
    live: Array  # () total weight of the examples
    reach: Array  # () the largest ||x||^2 met
    trial: Array  # () the bias of the rounds
    low: Array  # () no optimum below
    high: Array  # () no optimum above
    least: Array  # () the lowest objective reached
    bias: Array  # () the best bias for the weights of the last epoch


def start(problem: Problem, dtype: Any) -> SearchScalars:
    """The scalars before round 1."""
    most = float(jnp.finfo(dtype).max)  # not infinity: a state must be finite

    def number(value: float) -> Array:
        return jnp.full((), value, dtype)

    return SearchScalars(
        t=jnp.zeros((), jnp.int32),
        live=jnp.array(problem.live, dtype),
        reach=number(0),
        trial=number(0),
        low=number(-most),
        high=number(most),
        least=number(most),
        bias=number(0),
    )


def after_epoch(
    scalars: SearchScalars,
    dual: Array,
    lam: Number,
    scores: Array,
    targets: Array,
    weights: Array,
) -> SearchScalars:
    """The scalars after an epoch: less is left to search, and the trial moves if that tells.

    Args:
      scalars: those of the rounds.
      dual: (n,) signed duals a_i.
      lam: () regularization strength.
      scores, targets, weights: (n,) <w, x_i>, y_i and the weights, which add up to ``live``.
    """
    share, b = weights / scalars.live, scalars.trial
    bias = best_bias(scores, targets, weights)
    losses = jnp.maximum(1 - targets * (scores + bias), 0)
    # lam ||w||^2 = sum p a <w, x>, in a kernel's space as well.
    penalty = jnp.maximum(jnp.sum(share * dual * scores), 0) / 2
    least = jnp.minimum(scalars.least, penalty + jnp.sum(share * losses))
    slope = -jnp.sum(share * dual)
    bound = jnp.sum(share * dual * (targets - b)) - penalty
    slack = SLACK * jnp.finfo(b.dtype).eps * (least + penalty)
    # Where the line reaches the lowest objective.
    cut = b + (least - bound + slack) / jnp.where(slope == 0, 1, slope)
    # All weights of an optimum are within 1/sqrt(lam), and a kink is a best bias.
    edge = 1 + jnp.sqrt(scalars.reach / lam)
    low = jnp.maximum(jnp.where(slope < 0, jnp.maximum(scalars.low, cut), scalars.low), -edge)
    high = jnp.minimum(jnp.where(slope > 0, jnp.minimum(scalars.high, cut), scalars.high), edge)
    middle, width = low + (high - low) / 2, high - low
    # A trial that is still in the middle has an inner gap too large to tell on which side to go on.
    trial = jnp.where(jnp.abs(b - middle) > width / 4, middle, b)
    return scalars._replace(trial=trial, low=low, high=high, least=least, bias=bias)
