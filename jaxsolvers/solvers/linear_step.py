"""Linear-step solvers: everything that does ``w <- b w + c x`` from one scalar function.

Pegasos, NORMA, constant-step SGD, passive-aggressive, SDCA and the perceptron differ only in
the numbers b and c of a round. Such a solver writes :meth:`LinearStep.round` and gets from here
the single round, the exact Gram-block sweep, projection, dual variables, averages and, on a
``Gram`` layout, its kernel machine.

The contract of ``round``, for a round of k rows (k = 1 in an ordinary sweep):

1. The mechanism stores one vector V (over the coordinates of the layout), its square norm when
   there is a radius, and the duals. The solver owns ``scalars`` (counters, a live weight, a bias)
   and the hooks ``scale``, ``intercept`` and ``radius``; the weights are ``w = scale V``.
2. ``score = scale <V, x> + intercept`` under the scalars before the round; then
   ``V <- b V + sum_i c_i x_i``.
3. Rows of weight 0 get c = 0 and keep their dual; with no live row nothing changes at all. The
   mechanism sees to both. Where a score or a c is not finite the round (in a sweep: the block)
   is void for that ranker and Info says so.
4. ``||V||^2 = [b^2 ||V||^2 + 2 b sum c_i raw_i + c'Kc]_+`` with raw_i = <V, x_i>; where it exceeds
   the radius under the new scalars, V is rescaled onto it.
5. An average takes in w before the round; a row repeated inside a block sees its new dual.
6. A solver whose b is always 1 returns the literal ``1.0``: sweeps then skip the factors.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from jaxsolvers.members import Array
from jaxsolvers.protocol import (
    Batch,
    Entry,
    Info,
    Problem,
    Solver,
    all_finite,
    keep_where,
    report,
    split_rows,
)
from jaxsolvers.solvers.gram_sweep import (
    Carry,
    Rows,
    Shared,
    Trace,
    grow,
    is_steady,
    per_row,
    project,
    recurrence,
    suffix_products,
)
from jaxsolvers.solvers.running import Running


class LinearStepState(NamedTuple):
    """State of any linear-step solver."""

    scalars: Any  # the solver's own numbers, each ()
    vector: Entry  # (d,) V
    square_norm: Entry  # () ||V||^2, kept only when the solver has a radius
    dual: Entry  # (n,) one per example, kept only by dual solvers

    @property
    def axes(self) -> LinearStepState:
        return LinearStepState(
            jax.tree.map(lambda _: (), self.scalars),
            ("feature",),
            None if self.square_norm is None else (),
            None if self.dual is None else ("example",),
        )


class LinearStep(Solver):
    """Base of the linear-step solvers; see the module's docstring for the contract."""

    gram: ClassVar[bool] = True
    lazy: ClassVar[bool] = True
    has_dual: ClassVar[bool] = False

    # ---- what a solver writes -------------------------------------------------------------
    def start(self, problem: Problem, dtype: Any) -> Any:
        """The scalars before round 1, a NamedTuple of () arrays."""
        raise NotImplementedError

    def round(
        self,
        scalars: Any,
        score: Array,
        target: Array,
        weight: Array,
        square_norm: Array,
        dual: Array | None,
    ) -> tuple[Any, Array | float, Array, Array | None]:
        """One round as arithmetic.

        Args:
          scalars: the solver's own, before the round.
          score: (k,) ``scale <V, x_i> + intercept`` under those scalars.
          target: (k,) -1/+1, or real for a regression loss.
          weight: (k,) >= 0; rows of weight 0 must not count (divide by the live rows).
          square_norm: (k,) ||x_i||^2.
          dual: (k,) the rows' dual variables, or None without duals.

        Returns:
          (scalars', b, c, dual'): the scalars after the round; the factor () of V; the
          coefficients (k,) added with their sign, ``V <- b V + sum_i c_i x_i``; the new duals
          (k,) or None.
        """
        raise NotImplementedError

    def scale(self, scalars: Any) -> Array | float:
        """W = scale V."""
        return 1.0

    def intercept(self, scalars: Any) -> Array | float:
        """Added to every score."""
        return 0.0

    def radius(self, scalars: Any) -> Any:
        """Bound on ||V||, (); None where nothing is projected."""
        return None

    # ---- what it gets ---------------------------------------------------------------------
    def init(self, problem: Problem, dtype: Any) -> LinearStepState:
        scalars = self.start(problem, dtype)
        bounded = self.radius(scalars) is not None
        return LinearStepState(
            scalars=scalars,
            vector=jnp.zeros(problem.shape, dtype),
            square_norm=jnp.zeros((), dtype) if bounded else None,
            dual=jnp.zeros((problem.n_examples,), dtype) if self.has_dual else None,
        )

    def weights(self, state: LinearStepState) -> Array:
        return self.scale(state.scalars) * state.vector

    def scales(self, state: LinearStepState) -> bool:
        if state.square_norm is not None:
            return True
        row = jax.ShapeDtypeStruct((1,), state.vector.dtype)
        return not is_steady(self, state.scalars, row, None if state.dual is None else row)

    def recomputed(self, state: LinearStepState) -> LinearStepState:
        if state.square_norm is None:
            return state
        # The recursion of a round drifts, 3 % over 1e7 float32 rounds.
        return state._replace(square_norm=jnp.sum(state.vector * state.vector))

    def update(self, state: LinearStepState, batch: Batch) -> tuple[LinearStepState, Info]:
        after, score, c, own = self._step(state, batch)
        return self._checked(state, after, own, score, c, batch)

    def sweep(
        self, state: LinearStepState, block: Batch, batch_size: int = 1
    ) -> tuple[LinearStepState, Info]:
        if block.gram is not None:
            state, _, info = self._gram_sweep(state, block, batch_size, None)
            return state, info

        def step(
            state: LinearStepState, batch: Batch
        ) -> tuple[LinearStepState, tuple[Array, Array]]:
            state, score, c, own = self._step(state, batch)
            if own is not None:
                state = state._replace(dual=_write(state.dual, batch.index, own.after))
            return state, (score, c)

        # What need not be known round by round is looked at once per block.
        dual, own = _read(state.dual, block.index)
        state = state._replace(dual=dual)
        after, (score, c) = jax.lax.scan(step, state, split_rows(block, batch_size))
        if own is not None:
            dual, own_after = _read(after.dual, block.index)
            after, own = after._replace(dual=dual), Own(own, own_after)
        rows = block.target.shape
        return self._checked(state, after, own, score.reshape(rows), c.reshape(rows), block)

    def _step(
        self, state: LinearStepState, batch: Batch
    ) -> tuple[LinearStepState, Array, Array, Any]:
        """One round, with the score, the coefficient and the duals, not yet kept, of its rows."""
        x, square_norm = batch.x, state.square_norm
        # Kept as an array: computed twice, for the score and for the norm, it would be rounded
        # by the program around it, and that differs between devices.
        raw = jax.lax.optimization_barrier(x.scores(state.vector))
        score = self.scale(state.scalars) * raw + self.intercept(state.scalars)
        dual, before = _read(state.dual, batch.index)
        scalars, b, c, own_dual = self.live_round(
            state.scalars, score, batch.target, batch.weight, x.square_norms(), before
        )
        vector = b * state.vector + x.pull_back(c)
        if square_norm is not None:
            exact = x.square_norm(vector)
            square_norm = grow(square_norm, b, c, raw, x.gram()) if exact is None else exact
            square_norm, shrink = project(square_norm, self.radius(scalars))
            live = jnp.any(batch.weight > 0)
            square_norm = jnp.where(live, square_norm, state.square_norm)
            vector = jnp.where(live, shrink, 1) * vector
        own = None if dual is None else Own(before, own_dual)
        return LinearStepState(scalars, vector, square_norm, dual), score, c, own

    def _checked(
        self,
        before: LinearStepState,
        after: LinearStepState,
        own: Any,
        score: Array,
        c: Array,
        batch: Batch,
    ) -> tuple[LinearStepState, Info]:
        """``after`` with its Info, or ``before`` where the rounds left the floats."""
        norms = () if after.square_norm is None else (after.square_norm,)
        finite = all_finite(batch.weight > 0, score, c, *norms)
        info = report(self.loss, score, batch.target, batch.weight, finite)
        dual = after.dual
        if own is not None:
            # Of the rows alone: a choice between two arrays of n would copy them each time.
            dual = _write(dual, batch.index, jnp.where(finite, own.after, own.before))
        kept = keep_where(finite, after._replace(dual=None), before._replace(dual=None))
        return kept._replace(dual=dual), info

    def averaged_sweep(
        self, state: LinearStepState, block: Batch, batch_size: int, running: Running
    ) -> tuple[LinearStepState, Running, Info]:
        if block.gram is None:
            return super().averaged_sweep(state, block, batch_size, running)
        return self._gram_sweep(state, block, batch_size, running)

    def _gram_sweep(
        self, state: LinearStepState, block: Batch, batch_size: int, running: Any
    ) -> tuple[LinearStepState, Any, Info]:
        """The Gram-block form of ``sweep``, with an average carried along.

        Args:
          state: the state before the block.
          block: rows with their ``gram``.
          batch_size: rows per round, a divisor of the number of rows.
          running: the average, a Running, or None.

        Returns:
          The state and the average after the block, and the Info of its rows.
        """
        x = block.x
        dual, before = _read(state.dual, block.index)
        rows = Rows(x.scores(state.vector), block.target, block.weight)
        shared = Shared(block.gram, None if dual is None else _first_occurrence(block.index))
        carry = Carry(
            state.scalars,
            state.square_norm,
            before,
        )
        carry, moves, trace = recurrence(self, carry, rows, shared, batch_size, running is not None)
        norms = () if carry.square_norm is None else (carry.square_norm,)
        finite = all_finite(block.weight > 0, trace.score, moves.left, *norms)
        left = jnp.where(finite, moves.left, 0)
        kept = state.vector
        if moves.whole is not None:
            kept = jnp.where(finite, moves.whole, 1) * kept
        vector = kept + x.pull_back(left)
        square_norm = carry.square_norm
        if square_norm is not None:
            # The recursion drifts (3 % over 1e7 float32 rounds): start each block afresh.
            exact = x.square_norm(vector)
            if exact is not None:
                square_norm = jnp.where(jnp.any(block.weight > 0), exact, square_norm)
        if dual is not None:
            own = jnp.where(finite, carry.dual[shared.first], before)
            dual = _write(dual, block.index, own)
        if running is not None:
            counts, kept_mean, span, weights = self._mean_of_block(
                running, trace, block.weight, batch_size
            )
            mean = kept_mean * running.value + span * state.vector + x.pull_back(weights)
            after = Running(mean, counts, running.rule)
            running = keep_where(finite, after, running)
        info = report(self.loss, trace.score, block.target, block.weight, finite)
        # The vector was kept by its coefficients above: no pass over it is spent on the choice.
        small = LinearStepState(carry.scalars, None, square_norm, None)
        last = keep_where(finite, small, state._replace(vector=None, dual=None))
        last = last._replace(vector=vector, dual=dual)
        return last, running, info

    def _mean_of_block(
        self, running: Running, trace: Trace, weight: Array, batch_size: int
    ) -> tuple[Any, Array, Array, Array]:
        """What the rounds of a block add to an average of w = scale V.

        With V_r the vector before round r, the average after R rounds is
        ``kept avg + sum_r theta_r V_r``, theta_r = scale_r add_r prod_{later} keep. Written over
        V_1 and the block's rows, row i of round r has weight ``c_i A_r``, where
        ``A_r = theta_{r+1} + f_{r+1} A_{r+1}`` collects the later rounds that see it.

        Returns:
          (counts, kept (), weight of V_1 (), weights of the rows (B,)).
        """
        rounds = weight.reshape(-1, batch_size)

        def weigh(counts: Any, rows: Array) -> tuple[Any, tuple[Array, Array]]:
            counts, keep, add = running.rule.weigh(counts, rows, self.rounds(rows))
            return counts, (keep, add)

        counts, (keep, add) = jax.lax.scan(weigh, running.counts, rounds)
        kept = suffix_products(keep)
        theta = trace.scale * add * kept[1:]
        factor = jnp.ones_like(theta) if trace.factor is None else trace.factor

        def collect(later: Array, round_: tuple[Array, Array]) -> tuple[Array, Array]:
            own_theta, own_factor = round_
            return own_theta + own_factor * later, later

        zero = jnp.zeros((), theta.dtype)
        first, after = jax.lax.scan(collect, zero, (theta, factor), reverse=True)
        return counts, kept[0], first, per_row(after, batch_size) * trace.coefficient

    def live_round(
        self,
        scalars: Any,
        score: Array,
        target: Array,
        weight: Array,
        square_norm: Array,
        dual: Any,
    ) -> tuple[Any, Array, Array, Any]:
        """``round`` with rule 3 of the contract."""
        live = weight > 0
        any_live = jnp.any(live)
        after, b, c, new_dual = self.round(scalars, score, target, weight, square_norm, dual)
        after = jax.tree.map(lambda new, old: jnp.where(any_live, new, old), after, scalars)
        c = jnp.where(live, c, 0)
        b = jnp.where(any_live, b, jnp.ones((), c.dtype))
        if new_dual is not None:
            new_dual = jnp.where(live, new_dual, dual)
        return after, b, c, new_dual


class Own(NamedTuple):
    """The duals of some rows, before and after their rounds."""

    before: Array
    after: Array


def _read(dual: Any, index: Array) -> tuple[Any, Any]:
    """All duals, and those of the rows ``index``; None and None without duals.

    A gather may be computed anew by whatever uses it. Were that after the rows' duals are written,
    all n would be copied in every round. What comes out of a loop, here of one trip, is computed.
    """
    if dual is None:
        return None, None

    def take(_: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        # JAX's default fill is NaN, and a padded row must read a finite dual.
        return carry[0], jnp.take(carry[0], index, mode="fill", fill_value=0)

    trips = (index[0] >= 0).astype(jnp.int32)  # 1, which no compiler knows
    return jax.lax.fori_loop(0, trips, take, (dual, jnp.zeros(index.shape, dual.dtype)))


def _write(dual: Array, index: Array, own: Array) -> Array:
    return dual.at[index].set(own, mode="drop")


def _first_occurrence(index: Array) -> Array:
    """For each row of a block the position of the first row with the same index, (B,)."""
    return jnp.argmax(index[:, None] == index[None, :], axis=1).astype(jnp.int32)
