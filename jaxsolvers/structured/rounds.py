"""The rounds of a structured problem as rounds of any solver of one weight vector.

At the weights w a round's examples have losses l_i and sub-gradients g_i: to a solver they are rows
g_i with scores <w, g_i>, on which the loss is linear with slope 1. So Pegasos does
``w <- (1 - 1/t) w - (eta_t/k) sum_i s_i g_i`` with its projection, and AdaGrad, RDA and FOBOS
absorb the g_i (of a batch their mean, or each as a round of its own).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxsolvers.features import Dense, product
from jaxsolvers.losses import Hinge
from jaxsolvers.members import Array, member
from jaxsolvers.protocol import Batch, Info, Loss, Regularizer, Solver, State, all_finite
from jaxsolvers.solvers.averaged import Averaged

_TOGETHER = 64  # examples whose losses are computed together


@member
class Linearized(Loss):
    """A convex loss seen from the weights of a round: ``l(z, c) = c + z``, z = <w, g>, slope 1."""

    classification = False

    def pointwise(self, score: Array, target: Array) -> tuple[Array, Array]:
        return target + score, jnp.ones_like(score)


def with_oracle(solver: Any) -> Solver:
    """The solver with the loss that stands for a problem's; a ValueError if it cannot have it."""
    if not isinstance(solver, Solver):
        raise ValueError(f"solver must be a jaxsolvers solver such as js.Pegasos, got {solver!r}")
    solver.validate()
    name = type(solver).__name__
    if solver.kernel is not None:
        raise ValueError(f"solver must have no kernel for a structured problem, got {name}")
    if type(solver.loss) is not Hinge:
        raise ValueError(
            "loss must be left at its default, a structured problem brings its own; got "
            f"{type(solver.loss).__name__}"
        )
    if solver.own_bias:
        raise ValueError(f"solver must have bias='none' for a structured problem, got {name}")
    if solver.surveys():
        raise ValueError(
            f"solver must not look at all examples before an epoch for a structured problem, got "
            f"{name}"
        )
    for prefix, part in solver.parts():
        if isinstance(part, Regularizer):
            part.check_start(prefix)
            if part.couples:
                raise ValueError(
                    f"{prefix.rstrip('.')} {type(part).__name__} couples classes, and a structured "
                    "problem has one vector of weights"
                )
    ready = _replaced(solver)
    try:
        ready.validate()
    except ValueError:
        raise ValueError(
            f"solver must take any loss for a structured problem, such as js.Pegasos or "
            f"js.AdaGradRDA; got {name}"
        ) from None
    return ready


def _replaced(solver: Any) -> Any:
    if isinstance(solver, Averaged):
        return dataclasses.replace(solver, solver=_replaced(solver.solver))
    return dataclasses.replace(solver, loss=Linearized())


@jax.jit
def advance(
    problem: Any,
    solver: Solver,
    state: State,
    alive: Array,
    examples: Any,
    weight: Array,
    index: Array,
) -> tuple[State, Array, Info]:
    """Rounds in order.

    Args:
      problem, solver: cast to the working dtype, the solver with the loss ``Linearized``.
      state: the solver's, before the rounds.
      alive: () bool, False where the weights left the floats: nothing changes then.
      examples: all n of them on the device.
      weight: (n,) >= 0.
      index: (rounds, k) int32, the examples of each round; n for none.

    Returns:
      state, alive and the Info of each round, fields (rounds,).
    """

    def one_round(carry: tuple[State, Array], index: Array) -> tuple[tuple[State, Array], Info]:
        state, alive = carry
        own = jax.tree.map(lambda leaf: leaf.at[index].get(mode="clip"), examples)
        weights = jnp.where(alive, weight.at[index].get(mode="fill", fill_value=0), 0)
        w = _iterate(solver, state)

        def one(example: Any) -> tuple[Array, Array]:
            return problem.oracle(w, example)

        value, slope = jax.vmap(one)(own)
        # A loss or sub-gradient that left the floats makes the round void.
        fine = all_finite(weights > 0, value, slope)
        weights = jnp.where(fine, weights, 0)
        live = weights > 0
        slope = jnp.where(live[:, None], slope, 0)
        offset = value - product(slope, w)
        state, info = solver.update(state, Batch(Dense(slope), offset, weights, index))
        finite = fine & info.finite
        seen = Info(
            weight=jnp.sum(weights),
            loss=jnp.sum(jnp.where(live, weights * value, 0)),
            mistakes=info.mistakes,
            violations=jnp.sum((live & jnp.any(slope != 0, axis=1)).astype(value.dtype)),
            finite=finite,
        )
        return (state, alive & finite), seen

    (state, alive), infos = lax.scan(one_round, (state, alive), index)
    return state, alive, infos


@jax.jit
def losses_of(problem: Any, weights: Array, examples: Any) -> Array:
    """The loss of each example at ``weights``, (n,)."""

    def one(example: Any) -> Array:
        return problem.oracle(weights, example)[0]

    return lax.map(one, examples, batch_size=_TOGETHER)


@jax.jit
def weights_of(solver: Solver, state: State) -> Array:
    """The weights (D,) that a state stands for."""
    return solver.weights(state)


def _iterate(solver: Solver, state: State) -> Array:
    """The weights at which a round is made: of an average those of the solver inside."""
    if isinstance(solver, Averaged):
        return _iterate(solver.solver, state.inner)
    return solver.weights(state)
