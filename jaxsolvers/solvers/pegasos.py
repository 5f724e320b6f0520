"""Pegasos: primal estimated sub-gradient solver for the support vector machine."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.losses import Hinge
from jaxsolvers.members import Array, Number, choice, member, number, part
from jaxsolvers.protocol import Loss, Problem
from jaxsolvers.solvers.guarantees import pegasos_bound
from jaxsolvers.solvers.linear_step import LinearStep, LinearStepState

__all__ = ["Pegasos"]


class PegasosScalars(NamedTuple):
    t: Array  # () int32, rounds done
    loss_at_zero: Array | None  # () l(0), kept for the radius when projecting


@member
class Pegasos(LinearStep):
    """Stochastic sub-gradient descent on an l2-regularized loss with step 1/(lam t).

    Minimises ``lam/2 ||w||^2 + (1/m) sum_i l(<w, x_i>, y_i)`` by rounds

        w <- (1 - 1/t) w + (1/(lam t k)) sum_i v_i x_i,     v = -dl/dz,
        w <- min(1, rho/||w||) w,  rho = sqrt(l(0)/lam),    when ``project``

    over the k rows of a batch (Shalev-Shwartz, Singer, Srebro, Cotter, Math. Programming 2011,
    Fig. 1 and 2, with the projection of eq. 6). The loss is a mean over rows: repeating every
    row changes nothing. lam = 1/(C m) for LIBLINEAR's hinge and logistic; SGDClassifier's alpha
    is lam. Losses without a slope bound (squared, squared hinge) can grow like exp(R^2/lam)
    before 1/(lam t) is small: use ``project=True`` there.

    Stored as V = lam n_t w with n_t = max(t - 1, 1), which no round needs to shrink.

    Args:
      lam: regularization strength, > 0.
      loss: any loss of one score.
      project: whether to project onto the ball that holds the optimum; refused for losses with
        l(0) = 0 (perceptron).
      bias: "none"; an intercept as a constant feature is ``fit(..., intercept="column")``.

    Raises (from ``validate``, called by ``fit``):
      ValueError: lam <= 0 or not finite; project with a loss whose l(0) is 0.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> X, y = np.array([[1, 0.2], [-1, 0.1]], "float32"), np.array([1, -1])
      >>> fit = js.fit(js.Pegasos(0.1), X, y, epochs=5)
      >>> fit.model.predict(X).tolist()
      [1, -1]
    """

    lam: Number = number(above=0)
    loss: Any = part(Loss, default=Hinge())
    project: bool = choice(False, True, default=False)
    bias: str = choice("none", default="none")

    def validate(self, prefix: str = "") -> None:
        super().validate(prefix)
        if self.project and self.loss.classification:
            with jax.ensure_compile_time_eval():  # a number also while something else is traced
                at_zero, _ = self.loss.value_and_slope(jnp.zeros(1), jnp.ones(1))
            known = not isinstance(at_zero, jax.core.Tracer)
            if known and jnp.ndim(at_zero) == 1 and np.asarray(at_zero)[0] == 0:
                raise ValueError(
                    f"{prefix}project must be False for {type(self.loss).__name__}: its loss "
                    "at 0 is 0, which bounds no ball around the optimum"
                )

    def start(self, problem: Problem, dtype: Any) -> PegasosScalars:
        at_zero = jnp.array(problem.loss_at_zero, dtype) if self.project else None
        return PegasosScalars(jnp.zeros((), jnp.int32), at_zero)

    def round(
        self,
        scalars: PegasosScalars,
        score: Array,
        target: Array,
        weight: Array,
        square_norm: Array,
        dual: Array | None,
    ) -> tuple[PegasosScalars, float, Array, None]:
        _, slope = self.loss.value_and_slope(score, target)
        live = jnp.sum((weight > 0).astype(score.dtype))
        c = -slope * weight / jnp.maximum(live, 1)
        return scalars._replace(t=scalars.t + 1), 1.0, c, None

    def scale(self, scalars: PegasosScalars) -> Array:
        return 1 / (self.lam * jnp.maximum(scalars.t, 1).astype(jnp.result_type(self.lam)))

    def radius(self, scalars: PegasosScalars) -> Array | None:
        if scalars.loss_at_zero is None:
            return None
        rounds = scalars.t.astype(scalars.loss_at_zero.dtype)
        return jnp.sqrt(scalars.loss_at_zero * self.lam) * rounds

    def penalty(self, weights: Array) -> Array:
        return self.lam / 2 * jnp.sum(weights * weights)

    def theory(
        self, state: LinearStepState, largest_norm: Number | None = None
    ) -> dict[str, Array]:
        if largest_norm is None or not isinstance(self.loss, Hinge):
            return {}
        at_zero = state.scalars.loss_at_zero
        ball = None if at_zero is None else jnp.sqrt(at_zero / self.lam)
        bound = pegasos_bound(state.scalars.t, lam=self.lam, largest_norm=largest_norm, ball=ball)
        return {"bound": bound}

    def bound(self, state: LinearStepState, violations: Array, batch_size: int) -> Array | None:
        # alpha_i = n_i m/(k t) of n_i violations has w(alpha) = w, and lies in [0, 1].
        if self.project or self.bias != "none" or not isinstance(self.loss, Hinge):
            return None
        rounds = jnp.maximum(state.scalars.t, 1).astype(violations.dtype)
        return violations / (batch_size * rounds) - self.penalty(self.weights(state))
