"""SDCA: stochastic dual coordinate ascent."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxsolvers.losses import Hinge
from jaxsolvers.losses.dual import DualLoss
from jaxsolvers.members import Array, Number, member, number, part
from jaxsolvers.protocol import Loss, Problem, Solver
from jaxsolvers.solvers.linear_step import LinearStep, LinearStepState

__all__ = ["SDCA"]


class SDCAScalars(NamedTuple):
    t: Array  # () int32, rounds done
    live: Array  # () total weight of the examples


@member
class SDCA(LinearStep):
    """Exact maximisation of the dual over one row at a time; no step size, and a gap to stop by.

    Minimises ``lam/2 ||w||^2 + sum_i p_i l(<w, x_i>, y_i)``, p_i = s_i / sum s (1/m with equal
    weights), through one dual number a_i per row and ``w = (1/lam) sum_i p_i a_i x_i``:

        a_i <- argmax of the dual over a_i,     w <- w + (a_i' - a_i) (p_i/lam) x_i

    (Shalev-Shwartz, Zhang, JMLR 14, 2013, Fig. 1; the step of each loss in closed form, of the
    logistic loss by 16 Newton steps). lam = 1/(C m) for LIBLINEAR's hinge and logistic. What is
    left to gain is known: ``js.metrics.duality_gap``. The duals are one number per row and
    ranker, n K numbers, and belong to the rows of one data set: a state continues on the same
    rows. Rounds are of one row. An intercept column is regularized like any feature.

    Args:
      lam: regularization strength, > 0.
      loss: a loss with a dual step: all of one score but the perceptron.

    Raises (from ``validate``, called by ``fit``):
      ValueError: lam <= 0 or not finite; a loss without a dual step.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> X = np.array([[1, 0.2], [-1, 0.1], [-0.5, -0.3], [0.4, 0.1]], "float32")
      >>> y = np.array([1, -1, -1, 1])
      >>> fit = js.fit(js.SDCA(0.1), X, y, epochs=10)
      >>> fit.model.predict(X).tolist()
      [1, -1, -1, 1]
      >>> bool(js.metrics.duality_gap(js.SDCA(0.1), fit.state, X, y) < 1e-5)
      True
    """

    single_row = True
    joint = False
    carries = True
    has_dual = True

    lam: Number = number(above=0)
    loss: Any = part(Loss, default=Hinge())

    def validate(self, prefix: str = "") -> None:
        super().validate(prefix)
        if not isinstance(self.loss, DualLoss):
            raise ValueError(
                f"{prefix}loss must be one with a dual step for {type(self).__name__} (all of one "
                f"score but the perceptron), got {type(self.loss).__name__}"
            )

    def start(self, problem: Problem, dtype: Any) -> SDCAScalars:
        return SDCAScalars(jnp.zeros((), jnp.int32), jnp.array(problem.live, dtype))

    def round(
        self,
        scalars: SDCAScalars,
        score: Array,
        target: Array,
        weight: Array,
        square_norm: Array,
        dual: Array | None,
    ) -> tuple[SDCAScalars, float, Array, Array | None]:
        share = weight / (scalars.live * self.lam)
        after = self.loss.dual_step(score, target, dual, share * square_norm)
        return scalars._replace(t=scalars.t + 1), 1.0, (after - dual) * share, after

    def carried(self, state: LinearStepState, before: Solver) -> LinearStepState:
        # The duals stay feasible, and w is theirs: (1/lam) sum_i p_i a_i x_i.
        assert isinstance(before, SDCA)
        return state._replace(vector=state.vector * (before.lam / self.lam))

    def penalty(self, weights: Array) -> Array:
        return self.lam / 2 * jnp.sum(weights * weights)
