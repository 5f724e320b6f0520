"""AdaGrad with a full or block-diagonal metric as an optax transformation."""

from __future__ import annotations

from typing import Any

import optax

from jaxsolvers.members import Number
from jaxsolvers.solvers.adagrad_full import FullAdaGradFOBOS, FullAdaGradRDA
from jaxsolvers.transforms.leafwise import leafwise

__all__ = ["full_adagrad"]

_FORMS = {"fobos": FullAdaGradFOBOS, "rda": FullAdaGradRDA}
_BLOCKS = ("block_size", "refresh", "trips")


def full_adagrad(
    learning_rate: Any,
    delta: Number = 0.0,
    regularizer: Any = None,
    initial_accumulator: Number = 0.0,
    form: str = "fobos",
    compensated: bool = False,
    master: bool = False,
    **blocks: Any,
) -> optax.GradientTransformationExtraArgs:
    """AdaGrad with a full metric on every leaf of the params, raveled.

    The updates of :func:`adagrad_fobos` or :func:`adagrad_rda` with

        H_t = delta I + G_t^{1/2},   G_t = initial_accumulator I + sum_{s<=t} g_s g_s'

    (Duchi, Hazan, Singer, JMLR 2011, eq. 3 and 4 with the full metric of Fig. 1), full or full
    within blocks of consecutive entries, as ``FullAdaGradFOBOS`` and ``FullAdaGradRDA`` make it.
    It must be the LAST of a chain: whatever scales its updates scales exact zeros away. The state
    has two (b, b) matrices per block of b entries, and a root costs some 10 b^3 operations: for
    small leaves, or blocks of up to 256 entries.

    Args:
      learning_rate: eta > 0, a number or a schedule, which counts updates from 0 and stands inside
        the sums of the RDA form.
      delta: added to the root, >= 0.
      regularizer: phi, as in :func:`adagrad_fobos`; it sees the raveled leaf.
      initial_accumulator: G before round 1 in units of the identity, >= 0.
      form: "fobos" (mirror descent) or "rda" (dual averaging around the params that init sees).
      compensated: whether the sums keep what rounding takes from them.
      master: whether the state of the mirror form holds the weights, as in :func:`adagrad_fobos`.
      **blocks: whole numbers that shape the program, by their names, and so out of reach of
        ``optax.inject_hyperparams``: ``block_size``, entries per block (None: one block per leaf);
        ``refresh``, rounds between roots, 1 by default; ``trips`` of the iteration per round for
        regularizers without a closed form, 100 by default.

    Returns:
      A ``GradientTransformationExtraArgs`` whose update needs params; its updates are the new
      weights minus params, in the params' dtype.

    Raises:
      ValueError: a number out of its range, an unknown form, master with "rda"; from update,
        params left out.
      TypeError: an unknown keyword; from init and update, a regularizer tree of another structure
        than params.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> tx = js.transforms.full_adagrad(0.5, block_size=2)
      >>> params = jnp.zeros(2)
      >>> updates, state = tx.update(jnp.array([3.0, 4.0]), tx.init(params), params)
      >>> [round(x, 4) for x in updates.tolist()]
      [-0.3, -0.4]
    """
    # optax.inject_hyperparams hands the keywords on as one argument of this name.
    settings = {**blocks.pop("blocks", {}), **blocks}
    unknown = sorted(set(settings) - set(_BLOCKS))
    if unknown:
        raise TypeError(f"full_adagrad takes {', '.join(_BLOCKS)}, got {unknown[0]}")
    if form not in _FORMS:
        raise ValueError(f"form must be one of 'fobos', 'rda', got {form!r}")
    if form == "rda" and master:
        raise ValueError("master must be False with form 'rda', whose state is float32 anyway")
    solver = _FORMS[form](
        learning_rate,
        delta,
        accumulate="batch",
        initial_accumulator=initial_accumulator,
        compensated=compensated,
        **settings,
    )
    return leafwise("full_adagrad", solver, regularizer, master, vectors=True)
