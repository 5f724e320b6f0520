"""Pegasos: primal estimated sub-gradient solver for the support vector machine."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.losses import Hinge
from jaxsolvers.members import Array, Number, choice, member, number, part
from jaxsolvers.protocol import Loss, Problem
from jaxsolvers.solvers import bias_search
from jaxsolvers.solvers.bias_search import SearchScalars
from jaxsolvers.solvers.guarantees import pegasos_bound
from jaxsolvers.solvers.hinge_bias import best_bias, beyond_best, weighted_steps
from jaxsolvers.solvers.linear_step import LinearStep, LinearStepState
from jaxsolvers.solvers.sdca import SDCA

__all__ = ["Pegasos"]


class PegasosScalars(NamedTuple):
    t: Array  # () int32, rounds done
    loss_at_zero: Array | None  # () l(0), kept for the radius when projecting
    bias: Array | None = None  # () or, of classes together, (K,); None without one


@member
class Pegasos(LinearStep):
    """Stochastic sub-gradient descent on an l2-regularized loss with step 1/(lam t).

    Minimises ``lam/2 ||w||^2 + (1/m) sum_i l(<w, x_i>, y_i)`` by rounds

        w <- (1 - 1/t) w + (1/(lam t k)) sum_i v_i x_i,     v = -dl/dz,
        w <- min(1, rho/||w||) w,  rho = sqrt(l(0)/lam),    when ``project``

    over the k rows of a batch (Shalev-Shwartz, Singer, Srebro, Cotter, Math. Programming 2011,
    Fig. 1 and 2, with the projection of eq. 6; ||.|| is Frobenius' for weights (K, d)). The loss
    is a mean over rows: repeating every row changes nothing. lam = 1/(C m) for LIBLINEAR's hinge
    and logistic; SGDClassifier's alpha is lam. Losses without a slope bound (squared, squared
    hinge) can grow like exp(R^2/lam), R = max ||x||, while t < L R^2/lam, L the bound of l'':
    ``project=True`` keeps them in the ball; without it lam >= L R^2 is safe.

    Stored as V = lam n_t w with n_t = max(t - 1, 1), which no round needs to shrink.

    Args:
      lam: regularization strength, > 0.
      loss: any loss of one score, or in ``js.fit`` one of all classes, ``MulticlassHinge`` or
        ``MulticlassLogistic``.
      project: whether to project onto the ball that holds the optimum; refused for losses with
        l(0) = 0 (perceptron).
      bias: how a bias b is learnt that is no part of ||w|| (section 6 of the paper); it is the
        model's intercept. "none" (default); a regularized one is ``fit(...,
        intercept="column")``. "unregularized": ``b <- b + (1/(lam t k)) sum_i v_i``; it starts
        with steps of 1/lam and needs many more rounds than 1/lam. "batch" (hinge, batches of 2
        rows or more): each round steps by the sub-gradient at the b that is best for its batch;
        in the end b is the best for all rows at the final w. "search" (hinge, batches of one
        row): dual coordinate steps (``js.SDCA``) at a fixed b, which moves by bisection at the
        ends of epochs once their duality gap tells to which side: some 20 to 100 of them.

    Raises (from ``validate``, called by ``fit``):
      ValueError: lam <= 0 or not finite; project with a loss whose l(0) is 0, or with
        bias="search"; a bias that is not for the loss. From ``fit``: a batch size or an intercept
        column that is not for the bias.

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
    bias: str = choice("none", "unregularized", "batch", "search", default="none")

    @property
    def has_dual(self) -> bool:  # type: ignore[override]
        return self.bias == "search"

    @property
    def single_row(self) -> bool:  # type: ignore[override]
        return self.bias == "search"

    @property
    def own_bias(self) -> bool:  # type: ignore[override]
        return self.bias != "none"

    @property
    def finishes(self) -> Any:  # type: ignore[override]
        return {"batch": "run", "search": "epoch"}.get(self.bias, "never")

    def validate(self, prefix: str = "") -> None:
        super().validate(prefix)
        if self.bias in ("batch", "search") and not isinstance(self.loss, Hinge):
            raise ValueError(
                f"{prefix}bias={self.bias!r} must come with loss Hinge, got "
                f"{type(self.loss).__name__}; bias='unregularized' takes any loss"
            )
        if self.bias == "search" and self.project:
            raise ValueError(f"{prefix}project must be False for bias='search', got True")
        if self.project and self.loss.classification and not self.loss.joint:
            with jax.ensure_compile_time_eval():  # a number also while something else is traced
                at_zero, _ = self.loss.value_and_slope(jnp.zeros(1), jnp.ones(1))
            known = not isinstance(at_zero, jax.core.Tracer)
            if known and jnp.ndim(at_zero) == 1 and np.asarray(at_zero)[0] == 0:
                raise ValueError(
                    f"{prefix}project must be False for {type(self.loss).__name__}: its loss "
                    "at 0 is 0, which bounds no ball around the optimum"
                )

    def check_rounds(self, batch_size: int, intercept: str, negatives: float | None) -> None:
        super().check_rounds(batch_size, intercept, negatives)
        if self.bias == "batch" and batch_size < 2:
            raise ValueError(
                f"batch_size must be at least 2 for Pegasos with bias='batch', got {batch_size}"
            )
        if self.own_bias and intercept != "none":
            raise ValueError(
                f"intercept must be 'none' for Pegasos with bias={self.bias!r}, got {intercept!r}"
            )
        if self.bias == "search" and negatives is not None:
            raise ValueError(
                f"negatives must be None for Pegasos with bias='search', got {negatives}"
            )

    def start(self, problem: Problem, dtype: Any) -> PegasosScalars | SearchScalars:
        if self.bias == "search":
            return bias_search.start(problem, dtype)
        at_zero = jnp.array(problem.loss_at_zero, dtype) if self.project else None
        bias = None if self.bias == "none" else jnp.zeros(problem.shape[:-1], dtype)
        return PegasosScalars(jnp.zeros((), jnp.int32), at_zero, bias)

    def round(
        self,
        scalars: Any,
        score: Array,
        target: Array,
        weight: Array,
        square_norm: Array,
        dual: Array | None,
    ) -> tuple[Any, float, Array, Array | None]:
        if self.bias == "search":
            met = jnp.max(jnp.where(weight > 0, square_norm, 0))
            scalars = scalars._replace(reach=jnp.maximum(scalars.reach, met))
            dual_step = SDCA(self.lam, self.loss).round
            return dual_step(scalars, score, target, weight, square_norm, dual)
        if self.bias == "batch":
            live = jnp.sum((weight > 0).astype(score.dtype))
            c = weighted_steps(score, target, weight) / jnp.maximum(live, 1)
        else:
            c = self.mean_steps(score, target, weight)
        after = scalars._replace(t=scalars.t + 1)
        if self.bias == "unregularized":
            rate = 1 / (self.lam * after.t.astype(score.dtype))
            after = after._replace(bias=scalars.bias + rate * jnp.sum(c, axis=0))
        return after, 1.0, c, None

    def reported(self, score: Array, target: Array, weight: Array, batch_size: int) -> Array:
        if self.bias != "batch":
            return score
        # The loss of a batch is that at its best bias, where some row is exactly on the margin.
        batches = [rows.reshape(-1, batch_size) for rows in (score, target, weight)]
        return target - jax.vmap(beyond_best)(*batches).reshape(-1)

    def scale(self, scalars: Any) -> Array | float:
        if self.bias == "search":
            return 1.0
        return 1 / (self.lam * jnp.maximum(scalars.t, 1).astype(jnp.result_type(self.lam)))

    def intercept(self, scalars: Any) -> Array | float:
        if self.bias == "search":
            return scalars.trial
        return scalars.bias if self.bias == "unregularized" else 0.0

    def offset(self, state: LinearStepState) -> Array | None:
        return state.scalars.bias

    def finish(
        self, state: LinearStepState, scores: Array, targets: Array, weights: Array
    ) -> LinearStepState:
        given = (scores, targets, weights)
        if self.bias == "search":
            after = bias_search.after_epoch(state.scalars, state.dual, self.lam, *given)
        elif self.bias == "batch":
            after = state.scalars._replace(bias=best_bias(*given))
        else:
            return state
        return state._replace(scalars=after)

    def radius(self, scalars: Any) -> Array | None:
        if not self.project:
            return None
        rounds = scalars.t.astype(scalars.loss_at_zero.dtype)
        return jnp.sqrt(scalars.loss_at_zero * self.lam) * rounds

    def penalty(self, weights: Array) -> Array:
        return self.lam / 2 * jnp.sum(weights * weights)

    def theory(
        self, state: LinearStepState, largest_norm: Number | None = None
    ) -> dict[str, Array]:
        proven = isinstance(self.loss, Hinge) and self.bias in ("none", "batch")
        if largest_norm is None or not proven:
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
