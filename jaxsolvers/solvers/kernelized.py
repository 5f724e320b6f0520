"""Kernel machines: any linear-step solver that meets its rows through a kernel."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from jaxsolvers.kernels import Kernel
from jaxsolvers.members import Array, Number, member, part
from jaxsolvers.protocol import Batch, Info, Problem, Solver, State
from jaxsolvers.solvers.running import Running

__all__ = ["Kernelized"]


class KernelSolver(Solver):
    """Base of the solvers with a kernel: the rounds are those of :meth:`without_kernel`.

    Its rows come as ``features.Gram``, its weights are the coefficients (n,) of the training rows.
    """

    def without_kernel(self) -> Solver:
        raise NotImplementedError

    @property
    def gram(self) -> bool:  # type: ignore[override]
        return self.without_kernel().gram

    @property
    def single_row(self) -> bool:  # type: ignore[override]
        return self.without_kernel().single_row

    @property
    def joint(self) -> bool:  # type: ignore[override]
        return self.without_kernel().joint

    @property
    def own_bias(self) -> bool:  # type: ignore[override]
        return self.without_kernel().own_bias

    @property
    def finishes(self) -> Any:  # type: ignore[override]
        return self.without_kernel().finishes

    def check_rounds(self, batch_size: int, intercept: str, negatives: float | None) -> None:
        self.without_kernel().check_rounds(batch_size, intercept, negatives)

    def check_shapes(
        self,
        n_rankers: int | None,
        n_features: int,
        n_classes: int | None = None,
        each: str = "class",
    ) -> None:
        super().check_shapes(n_rankers, n_features, n_classes, each)
        check_one_kernel(self)

    def init(self, problem: Problem, dtype: Any) -> State:
        return self.without_kernel().init(problem, dtype)

    def update(self, state: State, batch: Batch) -> tuple[State, Info]:
        return self.without_kernel().update(state, batch)

    def sweep(self, state: State, block: Batch, batch_size: int = 1) -> tuple[State, Info]:
        return self.without_kernel().sweep(state, block, batch_size)

    def averaged_sweep(
        self, state: State, block: Batch, batch_size: int, running: Running
    ) -> tuple[State, Running, Info]:
        return self.without_kernel().averaged_sweep(state, block, batch_size, running)

    def weights(self, state: State) -> Array:
        return self.without_kernel().weights(state)

    def offset(self, state: State) -> Array | None:
        return self.without_kernel().offset(state)

    def finish(self, state: State, scores: Array, targets: Array, weights: Array) -> State:
        return self.without_kernel().finish(state, scores, targets, weights)

    def penalty(self, weights: Array) -> Array:
        """The penalty, of the norm alone: ``weights`` is any vector of the norm of w."""
        return self.without_kernel().penalty(weights)

    def theory(self, state: State, largest_norm: Number | None = None) -> dict[str, Array]:
        return self.without_kernel().theory(state, largest_norm)

    def rounds(self, weight: Array) -> Array:
        return self.without_kernel().rounds(weight)


def check_one_kernel(solver: Solver) -> None:
    """Raise a ValueError if the kernel has a number for each ranker."""
    for leaf in solver.numbers():
        if leaf.name.startswith("kernel.") and jnp.ndim(leaf.value) > 0:
            raise ValueError(
                f"{leaf.name} must be a single number: all rankers share the kernel's values; "
                f"got an array of shape {jnp.shape(leaf.value)}"
            )


@member
class Kernelized(KernelSolver):
    """A linear-step solver on the features that a kernel stands for.

    Its rounds ``w <- b w + sum_i c_i phi(x_i)`` move the coefficients of
    ``w = sum_j alpha_j phi(x_j)`` over the n training rows: ``alpha <- b alpha``, then c_i is
    added at row i; the score of x is ``sum_j alpha_j k(x_j, x)`` (the representer theorem; Pegasos,
    Math. Programming 2011, section 4). Averages, duals and projections are the solver's own.

    Args:
      solver: a linear-step solver such as ``js.Pegasos``, or ``js.Averaged`` around one.
      kernel: one of ``js.kernels``, or a function k(X, Z) -> (n, m) of dense rows. Its numbers are
        single numbers, the same for all rankers.

    Raises (from ``validate``, called by ``fit``):
      ValueError: a solver that is not linear-step or has a kernel already; a number out of range.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> X, y = np.array([[0.0], [1.0], [2.0]], "float32"), np.array([1, -1, 1])
      >>> solver = js.Kernelized(js.Averaged(js.Pegasos(0.01)), js.kernels.RBF(1.0))
      >>> js.fit(solver, X, y, epochs=30).model.predict(X).tolist()
      [1, -1, 1]
    """

    solver: Any = part(Solver)
    kernel: Any = part(Kernel, function=True)

    @property
    def loss(self) -> Any:
        return self.solver.loss

    def validate(self, prefix: str = "") -> None:
        super().validate(prefix)
        if not self.solver.gram or self.solver.kernel is not None:
            name = type(self.solver).__name__
            raise ValueError(
                f"{prefix}solver must be a linear-step solver without a kernel, such as js.Pegasos "
                f"or js.Averaged(js.Pegasos(...)), got {name}"
            )

    def without_kernel(self) -> Solver:
        return self.solver
