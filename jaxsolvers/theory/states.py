"""What a solver's state tells."""

from __future__ import annotations

from jaxsolvers.members import Array, Number
from jaxsolvers.protocol import Solver, State

__all__ = ["of_state"]


def of_state(
    solver: Solver, state: State, *, largest_norm: Number | None = None
) -> dict[str, Array]:
    """What can be told of a run from its last state alone.

    AdaGrad, both forms: "gamma", see :func:`gamma`, the initial accumulator left out. The dual
    averaging form: "regret_bound", see :func:`regret_bound_rda`, against the current weights as
    comparator; it assumes delta >= max_t ||g_t||_inf, a constant learning rate and one gradient
    per round (one row, or ``accumulate="batch"``), none of which a state can show. Pegasos with
    the hinge loss: "bound", see :func:`pegasos_bound`, if ``largest_norm`` is given. ``Averaged``
    tells what its inner solver does. ``fit(..., record=("theory",))`` keeps what AdaGrads tell
    after every epoch.

    Args:
      solver: the solver of ONE ranker; ``solver.free_intercept()`` where an intercept column
        was trained.
      state: its state, such as ``fit.state.solver_state``; map over the tiles of many rankers
        with ``jax.vmap``.
      largest_norm: R = max_i ||x_i||_2, for Pegasos.

    Returns:
      A dict of () arrays, empty where nothing can be told.

    Raises:
      ValueError: solver is not one.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> solver = js.AdaGradRDA(0.5, delta=1.0)
      >>> fit = js.fit(solver, np.eye(2, dtype="float32"), [1, -1])
      >>> {k: float(v) for k, v in js.theory.of_state(solver, fit.state.solver_state).items()}
      {'gamma': 2.0, 'regret_bound': 1.25}
    """
    if not isinstance(solver, Solver):
        raise ValueError(f"solver must be a jaxsolvers solver such as js.AdaGradRDA, got {solver}")
    return solver.theory(state, largest_norm)
