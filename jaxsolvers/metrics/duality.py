"""How far a dual solver is from the optimum: a certificate per ranker."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxsolvers.checks import check_matrix, host_array
from jaxsolvers.csr import check_csr, is_sparse
from jaxsolvers.members import Array, Leaf
from jaxsolvers.metrics.checks import checked_weights
from jaxsolvers.metrics.model_targets import answers_of, rows_of
from jaxsolvers.metrics.primal_dual import Rankers, duals_of, primal_and_dual, with_duals
from jaxsolvers.protocol import Solver

__all__ = ["duality_gap"]


def duality_gap(
    solver: Solver,
    state: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: ArrayLike | None = None,
) -> Array:
    """Objective minus dual objective: beside a ranker's bias no weights have one lower by more.

    ``P(w) - D(a)`` with ``P(w) = lam/2 ||w||^2 + sum_i p_i l(<w, x_i>, y_i)`` at the state's
    weights (an intercept column's among them; of ``Averaged`` the mean) and
    ``D(a) = sum_i p_i d(a_i) - lam/2 ||w(a)||^2`` at its duals (Shalev-Shwartz, Zhang, JMLR 14,
    2013, eq. 2), p_i the normalised weights, ``positive_weight`` of the training included. Exact
    up to the rounding of the working dtype: about 1e-7 of the objective in float32. Rows are
    taken in blocks and rankers in tiles.

    Args:
      solver: the solver that made the state, ``js.SDCA`` or ``Averaged`` around it; or
        ``js.Pegasos(lam, bias="search")``, whose gap is that at its bias.
      state: ``Fit.state`` of ``fit`` or ``fit_one_vs_rest``.
      X: the n rows of the training, in their order, dense or sparse.
      y: their labels, real targets or indicator, as in ``js.metrics.objective``.
      sample_weight: (n,) >= 0, as in the training; equal weights by default.

    Returns:
      () for one ranker, (K,) for many; NaN for a ranker that diverged.

    Raises:
      ValueError: a solver without duals, a state that is none or not of it, other rows.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> X, y = np.eye(2, dtype="float32"), np.array([-1, 1])
      >>> fit = js.fit(js.SDCA(1.0), X, y)
      >>> float(js.metrics.duality_gap(js.SDCA(1.0), fit.state, X, y))
      0.0
    """
    solver.validate()
    if with_duals(solver) is None:
        raise ValueError(f"solver must be one with duals (js.SDCA), got {type(solver).__name__}")
    if not hasattr(state, "settings") or not hasattr(state, "tiles"):
        raise ValueError(f"state must be the state of a fit, got {type(state).__name__}")
    settings, tiles = state.settings, state.tiles()
    if settings.turns is not None:
        raise ValueError(
            "state must be one of js.fit or js.fit_one_vs_rest, got one of pairs of classes, whose "
            "rankers see rows of their own"
        )
    if dict(settings.solver)["type"] != type(solver).__name__:
        made = dict(settings.solver)["type"]
        raise ValueError(f"state was made by {made}, got solver = {type(solver).__name__}")
    X = check_csr(X, settings.n_features) if is_sparse(X) else check_matrix(X, settings.n_features)
    duals = duals_of(tiles[0])
    if duals is None:
        raise ValueError("state must hold dual variables, got one of a solver without them")
    n = duals.shape[-1]
    if X.shape[0] != n:
        raise ValueError(f"X must be the {n} rows of the training, got shape {tuple(X.shape)}")
    several = np.ndim(state.alive) > 0
    alive = np.atleast_1d(np.asarray(state.alive))
    y = check_csr(y, name="y") if is_sparse(y) else host_array(y, "y")
    if y.shape not in ((n,), (n, len(alive)) if several else (n,)):
        raise ValueError(f"y must have shape ({n},) or be an indicator of it, got {y.shape}")
    labels = settings.classes
    classes = None if labels is None else np.array(labels, np.dtype(settings.label_dtype))
    targets = answers_of(classes, len(alive) if several else None, y)
    given, _ = checked_weights(sample_weight, n)
    weight = np.ones(n) if given is None else np.asarray(given, np.float64)
    dtype = np.dtype(settings.dtype)
    positive = np.broadcast_to(np.asarray(settings.positive_weight, dtype), alive.shape)
    solver.check_shapes(len(alive) if several else None, settings.n_features)
    own = solver.cast(dtype).for_rankers(len(alive))
    gaps: list[np.ndarray] = []
    for start in range(0, len(alive), settings.tile):
        stop = min(start + settings.tile, len(alive))

        def cut(leaf: Leaf, start: int = start, stop: int = stop) -> Array:
            return leaf.value if leaf.shared else leaf.value[start:stop]

        def target_of(at: slice, start: int = start, stop: int = stop) -> Array:
            rows = rows_of(targets, at, several, dtype)
            return rows[start:stop] if rows.ndim == 2 else rows

        rankers = Rankers(
            own.map_numbers(cut),
            jax.tree.map(lambda leaf, count=stop - start: leaf[:count], tiles[len(gaps)]),
            np.arange(start, stop, dtype=np.int32),
            positive[start:stop],
        )
        found = primal_and_dual(rankers, X, target_of, weight, settings.intercept == "column")
        gaps.append(found.primal - found.dual)
    gap = np.where(alive, np.concatenate(gaps), np.nan)
    return jnp.asarray(gap if several else gap[0], dtype)
