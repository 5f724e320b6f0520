"""Averages of the iterates, around any solver."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
from jax import lax

from jaxsolvers.members import Array, Number, choice, member, number, part
from jaxsolvers.protocol import Batch, Entry, Info, Problem, Solver, State
from jaxsolvers.solvers.running import Running
from jaxsolvers.solvers.survey import within

__all__ = ["Averaged"]


class Counts(NamedTuple):
    t: Entry  # () int32, rounds seen
    averaged: Entry  # () int32, rounds in the average
    seed: Entry = None  # (2,) int32, bits for the draws of "random"; None for the other kinds


class AveragedState(NamedTuple):
    inner: State
    average: Entry  # of the weights' shape
    counts: Counts
    offset: Entry  # () the mean bias, kept only where the solver moves one in its rounds

    @property
    def axes(self) -> AveragedState:
        return AveragedState(
            self.inner.axes,
            ("feature",),
            Counts((), (), None if self.counts.seed is None else ("",)),
            None if self.offset is None else (),
        )


@member
class Averaged(Solver):
    """The mean of the iterates w_t of a solver, or one of them at random, instead of the last one.

    uniform: ``avg = (1/N) sum_t w_t`` over the rounds start < t <= T. It counts w_1 = 0 and
    leaves out w_{T+1} (Pegasos, Corollary 1); start > 0 is suffix averaging. polynomial:
    ``avg_n = (1 - g) avg_{n-1} + g w_n, g = (power + 1)/(n + power)`` over the same rounds.
    random: one w_t of the same rounds, each with probability 1/N whatever N turns out to be (the
    n-th takes the place of the one held with probability 1/n). Every ranker
    draws by itself, from the key, its number and t alone.
    Where no round is past ``start`` the last weights are returned. A batch that counts k rounds
    ("example") counts k times. Inside a sweep the average costs one more matrix product.

    Args:
      solver: the solver whose iterates are averaged.
      start: rounds left out at the beginning, an integer >= 0.
      kind: "uniform", "polynomial" or "random".
      power: exponent of the polynomial average, > 0; 3 by default.

    Raises (from ``validate``, called by ``fit``):
      ValueError: a number out of its range, an unknown choice, a solver with a budget.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> X, y = np.array([[1, 0], [-1, 0]], "float32"), np.array([1, -1])
      >>> js.fit(js.Averaged(js.Pegasos(0.1)), X, y, epochs=5).model.predict(X).tolist()
      [1, -1]
    """

    solver: Any = part(Solver)
    start: Number = number(default=0, minimum=0, integer=True)
    kind: str = choice("uniform", "polynomial", "random", default="uniform")
    power: Number = number(default=3.0, above=0)

    def validate(self, prefix: str = "") -> None:
        super().validate(prefix)
        if self.solver.own_vectors:
            raise ValueError(
                f"{prefix}solver must have weights that can be averaged, got "
                f"{type(self.solver).__name__}, whose support vectors change from round to round"
            )
        if self.solver.finishes == "epoch":
            raise ValueError(
                f"{prefix}solver must not search for its bias (bias='search'): iterates of other "
                f"biases have no mean; got {type(self.solver).__name__}"
            )

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
        inner = self.solver.init(problem, dtype)
        offset = self.solver.offset(inner) if self.solver.finishes == "never" else None
        seed: Any = None
        if self.kind == "random":
            given = jnp.zeros(2, jnp.uint32) if problem.seed is None else problem.seed
            seed = lax.bitcast_convert_type(jnp.asarray(given, jnp.uint32), jnp.int32)
        return AveragedState(
            inner=inner,
            average=jnp.zeros(problem.shape, dtype),
            counts=Counts(jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32), seed),
            offset=None if offset is None else jnp.zeros(offset.shape, dtype),
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
        elif self.kind == "random":
            taken = chance(counts.seed, counts.t, dtype) * n.astype(dtype) < new.astype(dtype)
            add = (taken | ((counts.averaged == 0) & (new > 0))).astype(dtype)
            keep = 1 - add
        else:
            # The product of the 1 - g of each new round: all of them see the same weights.
            i = jnp.arange(1, weight.shape[0] + 1, dtype=jnp.int32)
            before = (counts.averaged + i - 1).astype(dtype)
            ratio = before / (before + 1 + self.power)
            keep = jnp.prod(jnp.where(i <= new, ratio, 1))
            add = 1 - keep
        return counts._replace(t=t, averaged=n), keep, add

    def update(self, state: AveragedState, batch: Batch) -> tuple[AveragedState, Info]:
        weights, offset = self.solver.weights(state.inner), self.solver.offset(state.inner)
        inner, info = self.solver.update(state.inner, batch)
        rounds = jnp.where(info.finite, self.solver.rounds(batch.weight), 0)
        running = self._running(state).take(weights, offset, batch.weight, rounds)
        return self._state(inner, running), info

    def sweep(
        self, state: AveragedState, block: Batch, batch_size: int = 1
    ) -> tuple[AveragedState, Info]:
        inner, running, info = self.solver.averaged_sweep(
            state.inner, block, batch_size, self._running(state)
        )
        return self._state(inner, running), info

    def _running(self, state: AveragedState) -> Running:
        return Running(state.average, state.offset, state.counts, self)

    def _state(self, inner: State, running: Running) -> AveragedState:
        return AveragedState(inner, running.value, running.counts, running.offset)

    def weights(self, state: AveragedState) -> Array:
        some = state.counts.averaged > 0
        return jnp.where(some, state.average, self.solver.weights(state.inner))

    def offset(self, state: AveragedState) -> Array | None:
        last = self.solver.offset(state.inner)
        if state.offset is None or last is None:
            return last
        return jnp.where(state.counts.averaged > 0, state.offset, last)

    @property
    def own_bias(self) -> bool:  # type: ignore[override]
        return self.solver.own_bias

    @property
    def finishes(self) -> Any:  # type: ignore[override]
        return self.solver.finishes

    def finish(
        self, state: AveragedState, scores: Array, targets: Array, weights: Array
    ) -> AveragedState:
        inner = self.solver.finish(state.inner, scores, targets, weights)
        return state._replace(inner=inner)

    def check_rounds(self, batch_size: int, intercept: str, negatives: float | None) -> None:
        self.solver.check_rounds(batch_size, intercept, negatives)

    def penalty(self, weights: Array) -> Array:
        return self.solver.penalty(weights)

    def theory(self, state: AveragedState, largest_norm: Number | None = None) -> dict[str, Array]:
        return self.solver.theory(state.inner, largest_norm)

    def bound(self, state: AveragedState, violations: Array, batch_size: int) -> Array | None:
        return self.solver.bound(state.inner, violations, batch_size)

    def rounds(self, weight: Array) -> Array:
        return self.solver.rounds(weight)

    def surveys(self) -> tuple[Any, ...]:
        return within(self.solver.surveys())

    def without_kernel(self) -> Solver:
        return dataclasses.replace(self, solver=self.solver.without_kernel())

    def free_intercept(self) -> Self:
        return dataclasses.replace(self, solver=self.solver.free_intercept())


def chance(seed: Array, t: Array, dtype: Any) -> Array:
    """A uniform number of [0, 1], (), that depends on the seed (2,) and the counter t () alone.

    Both are int32.
    """
    # The implementation is named: the default one may depend on how keys are batched.
    words = lax.bitcast_convert_type(seed, jnp.uint32)
    key = jax.random.wrap_key_data(words, impl="threefry2x32")
    high, low = jax.random.key_data(jax.random.fold_in(key, t)).astype(dtype)
    # 64 bits: a chance of 1/t is met to the precision of the dtype, however large t is.
    return high * 2.0**-32 + low * 2.0**-64
