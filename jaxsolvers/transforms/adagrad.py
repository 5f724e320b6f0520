"""AdaGrad's two forms as optax transformations."""

from __future__ import annotations

from typing import Any

import optax

from jaxsolvers.members import Number
from jaxsolvers.solvers.adagrad import AdaGradFOBOS, AdaGradRDA
from jaxsolvers.transforms.leafwise import leafwise

__all__ = ["adagrad_fobos", "adagrad_rda"]


def adagrad_rda(
    learning_rate: Any,
    delta: Number = 0.0,
    regularizer: Any = None,
    initial_accumulator: Number = 0.0,
    compensated: bool = False,
) -> optax.GradientTransformationExtraArgs:
    """AdaGrad, regularized dual averaging form, on every leaf of the params.

    Each leaf is one weight vector x with the update, coordinate by coordinate,

        x_{t+1} = argmin_x  <sum eta_s g_s, x> + (sum eta_s) phi(x) + 1/2 <x - x_1, H_t (x - x_1)>,
        H_t = delta + sqrt(initial_accumulator + sum g_s^2),       sums over the rounds s = 1 ... t

    (Duchi, Hazan, Singer, JMLR 2011, eq. 3; x_1 is the params that init sees), as
    ``AdaGradRDA`` makes it. With ``L1`` it has exact zeros. It must be the LAST of a chain:
    whatever scales its updates scales its zeros away.

    The state keeps x_1 and two sums per parameter, in float32 for narrower params: small steps
    are not lost in bfloat16.

    Args:
      learning_rate: eta > 0, a number or a schedule; a schedule counts updates from 0 and stands
        inside the sums, as a number does that changes.
      delta: added to the root, >= 0.
      regularizer: phi: None, a Regularizer for all leaves, a tree of these and None (the mask of
        what is regularized) which is a prefix of params, or a function from params to one of
        them. Under ``optax.inject_hyperparams`` a function needs ``static_args="regularizer"``.
      initial_accumulator: start of the sum of squares, >= 0.
      compensated: whether the sums keep what rounding takes from them.

    Returns:
      A ``GradientTransformationExtraArgs`` whose update needs params; its updates are the new
      weights minus params, in the params' dtype.

    Raises:
      ValueError: a number out of its range; from update, params left out.
      TypeError: from init and update, a regularizer tree of another structure than params.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js, optax
      >>> l1 = js.regularizers.L1(0.1)
      >>> tx = js.transforms.adagrad_rda(1.0, regularizer=l1)
      >>> params = {"w": jnp.zeros(2)}
      >>> gradients = {"w": jnp.array([0.3, 0.05])}
      >>> updates, state = tx.update(gradients, tx.init(params), params)
      >>> [round(w, 4) for w in optax.apply_updates(params, updates)["w"].tolist()]
      [-0.6667, 0.0]
    """
    solver = AdaGradRDA(
        learning_rate,
        delta,
        accumulate="batch",
        initial_accumulator=initial_accumulator,
        compensated=compensated,
    )
    return leafwise("adagrad_rda", solver, regularizer)


def adagrad_fobos(
    learning_rate: Any,
    delta: Number = 0.0,
    regularizer: Any = None,
    initial_accumulator: Number = 0.0,
    compensated: bool = False,
    master: bool = False,
) -> optax.GradientTransformationExtraArgs:
    """AdaGrad, composite mirror descent form, on every leaf of the params.

    Each leaf is one weight vector x with the update, coordinate by coordinate,

        x_{t+1} = argmin_x  eta_t <g_t, x> + eta_t phi(x) + 1/2 <x - x_t, H_t (x - x_t)>,
        H_t = delta + sqrt(initial_accumulator + sum_{s<=t} g_s^2)

    (Duchi, Hazan, Singer, JMLR 2011, eq. 4), as ``AdaGradFOBOS`` makes it: without phi it is the
    AdaGrad of other packages, see ``jaxsolvers.transforms``. With ``L1`` it has exact zeros. It
    must be the LAST of a chain: whatever scales its updates scales its zeros away.

    The state keeps the sum of squares, in float32 for narrower params; x_t is read from params.
    In bfloat16 a step below half the spacing of a weight is lost, and a run of them stands still:
    ``master=True`` prevents that.

    Args:
      learning_rate: eta > 0, a number or a schedule, which counts updates from 0.
      delta: added to the root, >= 0.
      regularizer: phi: None, a Regularizer for all leaves, a tree of these and None (the mask of
        what is regularized) which is a prefix of params, or a function from params to one of
        them. Under ``optax.inject_hyperparams`` a function needs ``static_args="regularizer"``.
      initial_accumulator: start of the sum of squares, >= 0.
      compensated: whether the sum keeps what rounding takes from it.
      master: whether the state holds the weights, in float32 for narrower params; the params then
        follow it, and what else changes them is overruled.

    Returns:
      A ``GradientTransformationExtraArgs`` whose update needs params; its updates are the new
      weights minus params, in the params' dtype.

    Raises:
      ValueError: a number out of its range; from update, params left out.
      TypeError: from init and update, a regularizer tree of another structure than params.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js, optax
      >>> only_w = {"w": js.regularizers.L1(1.0), "b": None}
      >>> tx = js.transforms.adagrad_fobos(0.5, regularizer=only_w)
      >>> params = {"w": jnp.array([2.0, 0.1]), "b": jnp.array(1.0)}
      >>> gradients = {"w": jnp.array([1.0, 0.5]), "b": jnp.array(1.0)}
      >>> updates, state = tx.update(gradients, tx.init(params), params)
      >>> after = optax.apply_updates(params, updates)
      >>> after["w"].tolist(), after["b"].tolist()
      ([1.0, 0.0], 0.5)
    """
    solver = AdaGradFOBOS(
        learning_rate,
        delta,
        accumulate="batch",
        initial_accumulator=initial_accumulator,
        compensated=compensated,
    )
    return leafwise("adagrad_fobos", solver, regularizer, master)
