"""Pegasos' step as an optax transformation; the whole tree is one weight vector."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxsolvers.members import Array, Member, Number, member, number
from jaxsolvers.solvers.gram_sweep import project as onto_ball
from jaxsolvers.solvers.pegasos import Pegasos, PegasosScalars
from jaxsolvers.transforms.leafwise import following
from jaxsolvers.transforms.leaves import gradients_of, leaves_of, move, widest, working_dtype

__all__ = ["PegasosState", "pegasos"]


class PegasosState(NamedTuple):
    """The state of :func:`pegasos`."""

    count: Array  # type: ignore[assignment]  # () int32, t0 + rounds done; stays at 2^31 - 1
    current: Any  # the weights, a tree like params; None where the params are


@member
class _Start(Member):
    """The numbers that a stream of gradients does not tell."""

    loss_at_zero: Number = number(above=0)
    t0: Number = number(minimum=0, integer=True)


def pegasos(
    lam: Number,
    project: bool = False,
    loss_at_zero: Number = 1.0,
    t0: Number = 0,
    master: bool = False,
) -> optax.GradientTransformationExtraArgs:
    """Pegasos: sub-gradient steps of size 1/(lam t) on an l2-regularized loss.

    The gradients are those of the loss alone; all leaves together are one weight vector w with

        w <- (1 - 1/t) w - (1/(lam t)) g_t,                 t = t0 + 1, t0 + 2, ...
        w <- min(1, rho/||w||) w,  rho = sqrt(loss_at_zero/lam),    when ``project``

    (Shalev-Shwartz, Singer, Srebro, Cotter, Math. Programming 2011, Fig. 1 and 2; ||w|| over the
    whole tree), as ``Pegasos`` makes it. The paper starts from w = 0: its first step has the
    factor 1 - 1/1 and forgets the params that init sees. A warm start says with ``t0`` how many
    rounds they stand for. It must be the LAST of a chain, the decay is part of its updates.

    Weights are read from params; in bfloat16 a step below half the spacing of a weight is lost
    unless ``master`` is True.

    Args:
      lam: regularization strength, > 0.
      project: whether to project onto the ball that holds the optimum.
      loss_at_zero: mean loss at w = 0, > 0, for the radius: 1 for the hinge, log 2 for logistic.
      t0: rounds behind the params, a whole number >= 0.
      master: whether the state holds the weights, as in :func:`adagrad_fobos`.

    Returns:
      A ``GradientTransformationExtraArgs`` whose update needs params; its updates are the new
      weights minus params, in the params' dtype.

    Raises:
      ValueError: a number out of its range; from update, params left out.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> tx = js.transforms.pegasos(0.5, project=True)
      >>> params = jnp.zeros(2)
      >>> updates, state = tx.update(jnp.array([-3.0, -4.0]), tx.init(params), params)
      >>> [round(x, 4) for x in updates.tolist()]
      [0.8485, 1.1314]
    """
    solver, start = Pegasos(lam, project=project), _Start(loss_at_zero, t0)
    with jax.ensure_compile_time_eval():  # made under jit, it still looks at constants
        solver.validate()
    start.validate()

    def init(params: Any) -> PegasosState:
        leaves, structure = leaves_of(params, "pegasos")
        current = None
        if master:
            own = [jnp.array(leaf, working_dtype(leaf.dtype)) for leaf in leaves]
            current = structure.unflatten(own)
        return PegasosState(jnp.asarray(t0, jnp.int32), current)

    def update(
        updates: Any, state: PegasosState, params: Any = None, **extra_args: Any
    ) -> tuple[Any, PegasosState]:
        leaves, structure = leaves_of(params, "pegasos")
        gradients = gradients_of(updates, params, "pegasos")
        count = following(state.count)
        held = structure.flatten_up_to(state.current) if master else leaves

        def numbers(dtype: Any) -> tuple[Any, PegasosScalars, PegasosScalars]:
            at_zero = jnp.asarray(loss_at_zero, dtype) if project else None
            return (
                solver.cast(dtype),
                PegasosScalars(count - 1, at_zero),
                PegasosScalars(count, at_zero),
            )

        vectors = []  # V = w / scale, as the solver stores it: a round adds to it
        for weights, gradient in zip(held, gradients, strict=True):
            dtype = working_dtype(weights.dtype)
            own, before, _ = numbers(dtype)
            vector = weights.astype(dtype) / own.scale(before)
            vector = jnp.where(before.t > 0, vector, 0)  # round 1 starts from 0
            vectors.append(vector - gradient.astype(dtype))
        shrink = None
        if project:
            own, _, after = numbers(widest(leaves))
            squares = [jnp.sum((v * v).astype(widest(leaves))) for v in vectors]
            total = sum(squares, jnp.zeros((), widest(leaves)))
            _, shrink = onto_ball(total, own.radius(after))
        moves, news = [], []
        for leaf, vector in zip(leaves, vectors, strict=True):
            own, _, after = numbers(vector.dtype)
            factor = own.scale(after)
            if shrink is not None:
                factor = factor * shrink.astype(vector.dtype)
            news.append(factor * vector)
            moves.append(move(leaf, news[-1]))
        current = structure.unflatten(news) if master else None
        return structure.unflatten(moves), PegasosState(count, current)

    return optax.GradientTransformationExtraArgs(init, update)
