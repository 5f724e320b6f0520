"""RDA and FOBOS, one step size for all coordinates, as optax transformations."""

from __future__ import annotations

from typing import Any

import optax

from jaxsolvers.solvers.fobos import FOBOS
from jaxsolvers.solvers.rda import RDA
from jaxsolvers.transforms.leafwise import leafwise

__all__ = ["fobos", "rda"]


def rda(learning_rate: Any, regularizer: Any = None) -> optax.GradientTransformationExtraArgs:
    """Regularized dual averaging on every leaf of the params.

    Each leaf is one weight vector x with the update

        x_{t+1} = argmin_x  <sum_s eta_s g_s, x> + (sum_s eta_s) phi(x) + sqrt(t)/2 ||x - x_1||^2

    (Xiao, JMLR 2010, eq. 8; x_1 is the params that init sees), as ``RDA`` makes it. With ``L1``
    it has exact zeros. It must be the LAST of a chain: whatever scales its updates scales its
    zeros away. The state keeps x_1 and the sum, in float32 for narrower params.

    Args:
      learning_rate: eta > 0, a number or a schedule; a schedule counts updates from 0 and stands
        inside the sums, as a number does that changes. The root of t comes on top of it.
      regularizer: phi, as in :func:`adagrad_rda`.

    Returns:
      A ``GradientTransformationExtraArgs`` whose update needs params; its updates are the new
      weights minus params, in the params' dtype.

    Raises:
      ValueError: a number out of its range; from update, params left out.
      TypeError: from init and update, a regularizer tree of another structure than params.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> tx = js.transforms.rda(0.5, regularizer=js.regularizers.L1(1.0))
      >>> params = jnp.zeros(2)
      >>> tx.update(jnp.array([3.0, 0.5]), tx.init(params), params)[0].tolist()
      [-1.0, 0.0]
    """
    return leafwise("rda", RDA(learning_rate), regularizer)


def fobos(
    learning_rate: Any, regularizer: Any = None, master: bool = False
) -> optax.GradientTransformationExtraArgs:
    """Forward-backward splitting on every leaf of the params.

    Each leaf is one weight vector x with the update

        x_{t+1} = argmin_x  eta_t <g_t, x> + eta_t phi(x) + 1/2 ||x - x_t||^2,  eta_t = eta/sqrt(t)

    (Duchi, Singer, JMLR 2009, eq. 2 and 3), as ``FOBOS`` makes it. With ``L1`` it has exact
    zeros. It must be the LAST of a chain: whatever scales its updates scales its zeros away. The
    state keeps no array unless ``master`` is True; in bfloat16 a step below half the spacing of a
    weight is lost then.

    Args:
      learning_rate: eta > 0, a number or a schedule in its place, which counts updates from 0;
        ``lambda count: eta * (count + 1) ** 0.5`` is a constant step.
      regularizer: phi, as in :func:`adagrad_fobos`.
      master: whether the state holds the weights, as in :func:`adagrad_fobos`.

    Returns:
      A ``GradientTransformationExtraArgs`` whose update needs params; its updates are the new
      weights minus params, in the params' dtype.

    Raises:
      ValueError: a number out of its range; from update, params left out.
      TypeError: from init and update, a regularizer tree of another structure than params.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> tx = js.transforms.fobos(0.5, regularizer=js.regularizers.L1(1.0))
      >>> params = jnp.array([1.0, 0.25])
      >>> tx.update(jnp.zeros(2), tx.init(params), params)[0].tolist()
      [-0.5, -0.25]
    """
    return leafwise("fobos", FOBOS(learning_rate), regularizer, master)
