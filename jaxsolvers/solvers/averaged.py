"""Averages of the iterates, around any solver."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple, Self

import jax.numpy as jnp

from jaxsolvers.members import Array, Number, choice, member, number, part
from jaxsolvers.protocol import Batch, Entry, Info, Problem, Solver, State
from jaxsolvers.solvers.running import Running
from jaxsolvers.solvers.survey import within

__all__ = ["Averaged"]


class Counts(NamedTuple):
    t: Entry  # () int32, rounds seen
    averaged: Entry  # () int32, rounds in the average


class AveragedState(NamedTuple):
    inner: State
    average: Entry  # of the weights' shape
    counts: Counts

    @property
    def axes(self) -> AveragedState:
        return AveragedState(self.inner.axes, ("feature",), Counts((), ()))


@member
class Averaged(Solver):
    """The mean of the iterates w_t of a solver, t > start, instead of the last one.

    uniform: ``avg = (1/N) sum_t w_t`` over the rounds start < t <= T. It counts w_1 = 0 and
    leaves out w_{T+1} (Pegasos, Corollary 1); start > 0 is suffix averaging. polynomial:
    ``avg_n = (1 - g) avg_{n-1} + g w_n, g = (power + 1)/(n + power)`` over the same rounds.
    Where no round is past ``start`` the last weights are returned. A batch that counts k rounds
    ("example") counts k times. Inside a sweep the average costs one more matrix product.

    Args:
      solver: the solver whose iterates are averaged.
      start: rounds left out at the beginning, an integer >= 0.
      kind: "uniform" or "polynomial".
      power: exponent of the polynomial average, > 0; 3 by default.

    Raises (from ``validate``, called by ``fit``):
      ValueError: a number out of its range, an unknown choice.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> X, y = np.array([[1, 0], [-1, 0]], "float32"), np.array([1, -1])
      >>> js.fit(js.Averaged(js.Pegasos(0.1)), X, y, epochs=5).model.predict(X).tolist()
      [1, -1]
    """

    solver: Any = part(Solver)
    start: Number = number(default=0, minimum=0, integer=True)
    kind: str = choice("uniform", "polynomial", default="uniform")
    power: Number = number(default=3.0, above=0)

    @property
    def loss(self) -> Any:
        return self.solver.loss

    @property
    def kernel(self) -> Any:
        return self.solver.kernel

    @property
    def gram(self) -> bool:  # type: ignore[override]
        return self.solver.gram

    @property
    def single_row(self) -> bool:  # type: ignore[override]
        return self.solver.single_row

    @property
    def joint(self) -> bool:  # type: ignore[override]
        return self.solver.joint

    def init(self, problem: Problem, dtype: Any) -> AveragedState:
        return AveragedState(
            inner=self.solver.init(problem, dtype),
            average=jnp.zeros(problem.shape, dtype),
            counts=Counts(jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32)),
        )

    def weigh(self, counts: Counts, weight: Array, rounds: Array) -> tuple[Counts, Array, Array]:
        """How much of the average a batch of ``rounds`` rounds keeps, and how much it adds."""
        dtype = weight.dtype
        t = counts.t + rounds
        new = jnp.clip(t - self.start, 0, rounds)
        n = counts.averaged + new
        if self.kind == "uniform":
            add = new.astype(dtype) / jnp.maximum(n, 1).astype(dtype)
            keep = 1 - add
        else:
            # The product of the 1 - g of each new round: all of them see the same weights.
            i = jnp.arange(1, weight.shape[0] + 1, dtype=jnp.int32)
            before = (counts.averaged + i - 1).astype(dtype)
            ratio = before / (before + 1 + self.power)
            keep = jnp.prod(jnp.where(i <= new, ratio, 1))
            add = 1 - keep
        return Counts(t, n), keep, add

    def update(self, state: AveragedState, batch: Batch) -> tuple[AveragedState, Info]:
        weights = self.solver.weights(state.inner)
        inner, info = self.solver.update(state.inner, batch)
        rounds = jnp.where(info.finite, self.solver.rounds(batch.weight), 0)
        running = Running(state.average, state.counts, self)
        running = running.take(weights, batch.weight, rounds)
        return AveragedState(inner, running.value, running.counts), info

    def sweep(
        self, state: AveragedState, block: Batch, batch_size: int = 1
    ) -> tuple[AveragedState, Info]:
        running = Running(state.average, state.counts, self)
        inner, running, info = self.solver.averaged_sweep(state.inner, block, batch_size, running)
        return AveragedState(inner, running.value, running.counts), info

    def weights(self, state: AveragedState) -> Array:
        some = state.counts.averaged > 0
        return jnp.where(some, state.average, self.solver.weights(state.inner))

    def penalty(self, weights: Array) -> Array:
        return self.solver.penalty(weights)

    def theory(self, state: AveragedState, largest_norm: Number | None = None) -> dict[str, Array]:
        return self.solver.theory(state.inner, largest_norm)

    def rounds(self, weight: Array) -> Array:
        return self.solver.rounds(weight)

    def surveys(self) -> tuple[Any, ...]:
        return within(self.solver.surveys())

    def without_kernel(self) -> Solver:
        return dataclasses.replace(self, solver=self.solver.without_kernel())

    def free_intercept(self) -> Self:
        return dataclasses.replace(self, solver=self.solver.free_intercept())
