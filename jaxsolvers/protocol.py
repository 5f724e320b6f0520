"""The protocol: what solvers, losses, regularizers and batches are, and what a round reports.

Letters used everywhere: ``d`` features, ``B`` rows of a block, ``k`` rows of a round, ``n``
examples, ``K`` rankers. Every shape below is the shape for ONE ranker.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Literal, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsolvers.members import Array, Member, Number, arrays

# What a round that does not touch a coordinate leaves undone there: nothing; a prox, and proxes of
# any tau add up; a prox, and only proxes of equal tau have a closed form together.
Debt = Literal["none", "sum", "steps"]
State = Any  # a NamedTuple of arrays with a property `axes`
Entry = Any  # a field of a State: an Array, or in `axes` the names of its axes ("feature", ...)


@arrays
class Problem:
    """What a solver may know before its first round."""

    shape: tuple[int, ...] = dataclasses.field(metadata={"static": True})  # (d,) or (K, d)
    n_examples: int = dataclasses.field(default=0, metadata={"static": True})  # 0: not known
    live: Number = 1.0  # () total weight of the examples
    loss_at_zero: Number | None = None  # () weighted mean of l(0, y); None in a stream
    centre: Any = None  # x_1 of that shape, where training starts; None for 0
    seed: Any = None  # (2,) uint32, of the ranker's own draws; None for zeros


class Batch(NamedTuple):
    """Rows with their targets; ``weight`` 0 marks an inert row (the counter included)."""

    x: Any  # a layout of features.py with B rows
    target: Array  # (B,); of rankers trained together (B, K), of a joint loss (B,) int32
    weight: Array  # (B,) >= 0; of rankers trained together (B, K)
    index: Array  # type: ignore[assignment]  # (B,) int32, each row's place among the n examples
    gram: Any = None  # (B, B) inner products of the rows, if prepared per block


class Info(NamedTuple):
    """Diagnostics of the rows just seen, scored with the weights before their round."""

    weight: Array  # () sum of weights
    loss: Array  # () weighted sum of losses, the regularizer left out
    mistakes: Array  # () live rows whose sign is wrong (0 for regression)
    violations: Array  # () live rows whose loss has a slope
    finite: Array  # () bool: every score and coefficient of a live row was finite

    def plus(self, other: Info) -> Info:
        """Both together: sums add up, ``finite`` holds where it holds in both."""
        return Info(
            weight=self.weight + other.weight,
            loss=self.loss + other.loss,
            mistakes=self.mistakes + other.mistakes,
            violations=self.violations + other.violations,
            finite=self.finite & other.finite,
        )


class Loss(Member):
    """A loss l(z, y) of one score z and one target y, convex in z.

    A subclass writes :meth:`pointwise`; callers use :meth:`value_and_slope`.
    """

    classification: ClassVar[bool] = True  # targets are -1 or +1
    couples_rows: ClassVar[bool] = False
    curvature: Any = None  # sup d2l/dz2 where there is one
    joint: ClassVar[bool] = False  # of the scores of all classes at once, see losses.joint

    def pointwise(self, score: Array, target: Array) -> tuple[Array, Array]:
        """Return (l, dl/dz), elementwise, shapes equal."""
        raise NotImplementedError

    def value_and_slope(self, score: Array, target: Array) -> tuple[Array, Array]:
        """Return the loss and its (sub-)derivative in the score.

        Args:
          score: (...) float, z.
          target: (...) the same shape and dtype; -1 or +1 for classification losses.

        Returns:
          Two arrays of that shape: l(z, y) and dl/dz with its true sign (math: -v).

        Raises:
          ValueError: shapes that differ (nothing broadcasts), or concrete classification
            targets other than -1 and +1.
        """
        if jnp.shape(score) != jnp.shape(target):
            raise ValueError(
                f"score and y must have the same shape, got {jnp.shape(score)} "
                f"and {jnp.shape(target)}"
            )
        if self.classification and not isinstance(target, jax.core.Tracer):
            concrete = np.asarray(target)
            if not np.isin(concrete, (-1, 1)).all():
                raise ValueError(f"y must be -1 or +1 for {type(self).__name__}, got {concrete!r}")
        score = jnp.asarray(score)
        return self.pointwise(score, jnp.asarray(target, score.dtype))

    def mistakes(self, score: Array, target: Array) -> Array:
        """1 where the sign of the score is wrong (a score of 0 is), else 0."""
        if not self.classification:
            return jnp.zeros_like(score)
        return (score * target <= 0).astype(score.dtype)


class Regularizer(Member):
    """A convex function phi of the weights, with domain X, met through :meth:`solve`."""

    separable: ClassVar[bool] = False  # phi is a sum over features
    lazy: ClassVar[bool] = False  # separable, and ``owed`` has a closed form
    debt: ClassVar[Debt] = "steps"  # what a coordinate that a round leaves out owes
    couples: ClassVar[bool] = False  # phi couples rankers
    rotates: ClassVar[bool] = False  # phi is a function of ||x||_2 alone
    needs_metric: ClassVar[bool] = False  # X may miss all points with 0 where the metric is 0

    def value(self, weights: Array) -> Array:
        """phi(weights), a scalar; the indicator of a domain counts 0 inside."""
        raise NotImplementedError

    def solve(self, linear: Array, metric: Array, tau: Number) -> Array:
        """Argmin over X of 1/2 <x, H x> - <linear, x> + tau phi(x), H = diag(metric) >= 0.

        Where metric and linear are both 0 the coordinate is out of the problem: the value
        is 0 and neither it nor its derivative is NaN.
        """
        raise NotImplementedError

    def prox(self, z: Array, metric: Array, tau: Number) -> Array:
        """Argmin over X of 1/2 <x - z, H (x - z)> + tau phi(x), H = diag(metric) > 0."""
        return self.solve(metric * z, metric, tau)

    def owed(self, weights: Array, metric: Array, tau: Number, count: Array) -> Array:
        """``count`` proxes of the same metric > 0 and tau, one after another, in closed form."""
        raise NotImplementedError

    def start(self, shape: tuple[int, ...], dtype: Any) -> Array | None:
        """The point of X where training starts, None for 0."""
        return None

    def check_start(self, prefix: str = "regularizer.") -> None:
        """Raise a ValueError if training cannot start at 0 nor at :meth:`start`."""


class Solver(Member):
    """An online learner as pure functions of (numbers, state, batch)."""

    gram: ClassVar[bool] = False  # sweeps are faster when Batch.gram is prepared
    single_row: ClassVar[bool] = False  # refuses rounds of more than one row
    lazy: ClassVar[bool] = False  # what a row does not touch can be caught up with later
    debt: ClassVar[Debt] = "none"  # what it owes by then
    joint: ClassVar[bool] = False  # takes losses of all classes at once, weights (K, d)
    own_bias: ClassVar[bool] = False  # learns an intercept by itself, no part of the penalty
    finishes: ClassVar[Literal["never", "run", "epoch"]] = "never"  # when it wants ``finish``
    # With a kernel: its rows are features, and the weights (m, 1 + d) support vectors of its own
    # behind their coefficients. Others with a kernel have coefficients of all training rows.
    own_vectors: ClassVar[bool] = False
    carries: ClassVar[bool] = False  # a state can go on under other numbers, see ``carried``
    loss: Any
    kernel: Any = None  # through which it scores rows; None: by their features

    @property
    def gram_kernel(self) -> Any:
        """The kernel whose values with all training rows stand for a row (``Gram``), or None."""
        return None if self.own_vectors else self.kernel

    def init(self, problem: Problem, dtype: Any) -> State:
        """The state before round 1.

        Args:
          problem: shape of the weights, number of examples, their total weight, l(0).
          dtype: working dtype of the floating fields; counters are int32.

        Returns:
          A NamedTuple of arrays, every field its own buffer, so that it can be donated.
        """
        raise NotImplementedError

    def update(self, state: State, batch: Batch) -> tuple[State, Info]:
        """One round on all rows of ``batch``.

        Args:
          state: the state before the round.
          batch: k rows; rows of weight 0 are inert, without a live row nothing changes.

        Returns:
          The state after the round, and the Info of the rows under the weights before it.
        """
        raise NotImplementedError

    def weights(self, state: State) -> Array:
        """The weights w that the state stands for, of ``problem.shape`` (see ``own_vectors``)."""
        raise NotImplementedError

    def offset(self, state: State) -> Array | None:
        """The bias with ``own_bias``, () or of classes together (K,); else None."""
        return None

    def finish(self, state: State, scores: Array, targets: Array, weights: Array) -> State:
        """The state at its end (``finishes``), given <w, x_i> of all rows in their order, (n,)."""
        return state

    def check_rounds(self, batch_size: int, intercept: str, negatives: float | None) -> None:
        """Raise a ValueError if these arguments of a fit do not suit the solver."""
        if self.single_row and batch_size > 1:
            raise ValueError(f"batch_size must be 1 for {type(self).__name__}, got {batch_size}")

    def penalty(self, weights: Array) -> Array:
        """The part of the objective that does not see the data, a scalar."""
        raise NotImplementedError

    def theory(self, state: State, largest_norm: Number | None = None) -> dict[str, Array]:
        """What the papers guarantee of a run, by name, as far as its state tells.

        Args:
          state: the state after any number of rounds.
          largest_norm: max_i ||x_i||_2, where it is known.

        Returns:
          () arrays, always under the same names; empty where nothing can be told.
        """
        return {}

    def bound(self, state: State, violations: Array, batch_size: int) -> Array | None:
        """A number that the objective is nowhere below, (); None where the state tells of none.

        Args:
          state: after whole epochs from the first round on, in each of which every one of the
            rows, all of weight 1, was visited once, in rounds of ``batch_size``.
          violations: () rows that had a slope in their round, counted over all rounds.
        """
        return None

    def rounds(self, weight: Array) -> Array:
        """How far the papers' counter t moves in a round with these row weights, int32."""
        return jnp.any(weight > 0).astype(jnp.int32)

    def scales(self, state: State) -> bool:
        """Whether a round may multiply all coordinates, those the rows do not touch as well."""
        return False

    def dues(self, state: State, rounds: Array) -> Array:
        """What the next ``rounds`` rounds (), made as one, leave every coordinate owing, ().

        It is their number here. With debt "sum" it may be any amount that adds up and is the same
        for all rankers, of a state with any number of them, such as a sum of step sizes.
        """
        return rounds

    def age(self, state: State, gap: Array, step: Array) -> State:
        """The state of coordinates that were left out, brought up to date.

        Args:
          state: its "feature" fields hold any of the coordinates, (m,).
          gap: (m,) the :meth:`dues` of the rounds made without each.
          step: () int32, how far t moved per round; with debt "sum" the rounds may differ.
        """
        return state

    def recomputed(self, state: State) -> State:
        """The state with what it recomputes from its "feature" fields now and then."""
        return state

    def surveys(self) -> tuple[Any, ...]:
        """``solvers.survey.Survey``: passes over all rows before each epoch, one after another."""
        return ()

    def carried(self, state: State, before: Solver) -> State:
        """A state that a solver of other numbers left, of any number of rankers, for these."""
        return state

    def without_kernel(self) -> Solver:
        """The solver that does the rounds once rows come as a ``Gram`` layout."""
        return self

    def free_intercept(self) -> Self:
        """The solver for data whose last column is the constant 1.

        It leaves that column unregularized where its method allows it.
        """
        return self

    def sweep(self, state: State, block: Batch, batch_size: int = 1) -> tuple[State, Info]:
        """The rounds of consecutive ``batch_size`` rows of ``block``, in order.

        ``batch_size`` divides the number of rows. This slow form defines the meaning; a
        solver may override it with an equal faster one.
        """

        # Never the bound method itself: JAX caches traces by function, bound methods hash by the
        # address of their object, and a new solver may live where a freed one did.
        def one_round(state: State, batch: Batch) -> tuple[State, Info]:
            return self.update(state, batch)

        state, infos = lax.scan(one_round, state, split_rows(block, batch_size))
        return state, total(infos)

    def averaged_sweep(
        self, state: State, block: Batch, batch_size: int, running: Any
    ) -> tuple[State, Any, Info]:
        """``sweep`` with a ``solvers.running.Running`` average of the iterates carried along.

        This form defines it.
        """

        def one_round(carry: tuple[State, Any], batch: Batch) -> tuple[tuple[State, Any], Info]:
            state, running = carry
            weights, offset = self.weights(state), self.offset(state)
            state, info = self.update(state, batch)
            rounds = jnp.where(info.finite, self.rounds(batch.weight), 0)
            return (state, running.take(weights, offset, batch.weight, rounds)), info

        rows = split_rows(block, batch_size)
        (state, running), infos = lax.scan(one_round, (state, running), rows)
        return state, running, total(infos)


def split_rows(block: Batch, k: int) -> Batch:
    """The rows in consecutive groups of k along a new leading axis, for a scan over rounds."""

    def pieces(array: Array) -> Array:
        return array.reshape(-1, k, *array.shape[1:])

    x, rest = block.x.split(k), (block.target, block.weight, block.index)
    return Batch(x, *(pieces(array) for array in rest))


def keep_where(condition: Array, after: State, before: State) -> State:
    """``after`` where the () condition holds, else ``before``, leaf by leaf."""
    return jax.tree.map(lambda new, old: jnp.where(condition, new, old), after, before)


def total(infos: Info) -> Info:
    """Sum an Info whose fields have a leading axis."""
    *sums, finite = infos
    weight, loss, mistakes, violations = (jnp.sum(field, axis=0) for field in sums)
    return Info(weight, loss, mistakes, violations, jnp.all(finite, axis=0))


def beside(rows: Array, other: Array) -> Array:
    """``rows`` with as many axes as ``other``, new ones of length 1 behind its own."""
    return rows.reshape(rows.shape + (1,) * (other.ndim - rows.ndim))


def live_rows(weight: Array) -> Array:
    """Which rows weigh something for any class, (B,) bool, from weights (B,) or (B, K)."""
    return jnp.any(weight > 0, axis=tuple(range(1, weight.ndim)))


def all_finite(live: Array, *arrays: Array) -> Array:
    """Whether every entry is finite, those of rows counting only where ``live``, ()."""
    finite = jnp.ones((), bool)
    for array in arrays:
        dead = ~beside(live, array) if array.ndim else jnp.zeros((), bool)
        finite = finite & jnp.all(jnp.isfinite(array) | dead)
    return finite


def report(loss: Loss, score: Array, target: Array, weight: Array, finite: Array) -> Info:
    """The Info of rows (...), those of weight 0 left out; scores of a joint loss are (..., C)."""
    live = weight > 0
    value, slope = loss.value_and_slope(score, target)
    violated = jnp.any(slope != 0, axis=-1) if loss.joint else slope != 0

    def over_live(values: Array) -> Array:
        return jnp.sum(jnp.where(live, values, 0))

    return Info(
        weight=jnp.sum(weight),
        loss=over_live(weight * value),
        mistakes=over_live(loss.mistakes(score, target)),
        violations=over_live(violated.astype(score.dtype)),
        finite=finite,
    )
