"""Hundreds of runs that differ in the order of their rows, as one compiled program.

``fit`` draws one order for all its rankers. A solver is a pure function of (numbers, state,
batch), so runs in orders of their own are a vmap over ``update`` with each lane's rows gathered
from one copy of X: seeds outside, values of a number inside, which share the gathered rows.
A lane is the run that ``js.fit(solver, X, y, key=seed)`` makes, its order drawn alike.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.engine.order import epoch_order, key_words
from jaxsolvers.features import Dense, product
from jaxsolvers.members import Array
from jaxsolvers.protocol import Batch, Problem, Solver


def orders(kind: str, n: int, seeds: int, epochs: int) -> np.ndarray:
    """The rows each seed visits in each epoch, (seeds, epochs, n) int32.

    Args:
      kind: "uniform", "permutation" or "cyclic" as in ``js.fit``; "shuffled once" is the cyclic
        order after one shuffle of the file, the permutation of epoch 0 in every epoch.
      n: rows.
      seeds: keys 0 ... seeds - 1.
      epochs: passes.
    """
    drawn = np.empty((seeds, epochs, n), np.int32)
    once = kind == "shuffled once"
    for seed, epoch in np.ndindex(seeds, epochs):
        words, at = key_words(seed), 0 if once else epoch
        rows = epoch_order("permutation" if once else kind, n, words, at)
        drawn[seed, epoch] = np.arange(n) if rows is None else rows
    return drawn


def problem_of(X: Any, at_zero: float = 1.0) -> Problem:
    """All rows with weight 1; ``at_zero`` is l(0), of the hinge 1."""
    n, d = X.shape
    return Problem((d,), n, jnp.asarray(n, X.dtype), jnp.asarray(at_zero, X.dtype))


def taken(X: Array, y: Array, rows: Array) -> Batch:
    """The batch of these rows, (k,) int32, all of weight 1."""
    return Batch(Dense(X[rows]), y[rows], jnp.ones(rows.shape, X.dtype), rows)


def objective(solver: Solver, weights: Array, X: Array, y: Array) -> Array:
    """penalty(w) plus the mean loss, ()."""
    loss, _ = solver.loss.value_and_slope(product(X, weights), y)
    return solver.penalty(weights) + jnp.mean(loss)


@jax.jit
def objectives(solver: Solver, X: Array, y: Array, visits: Array) -> Array:
    """The objective after every epoch of every run.

    Args:
      solver: numbers spread over L values, ``solver.cast(dtype).for_rankers(L)``.
      X: (n, d).
      y: (n,) -1 or +1.
      visits: (seeds, epochs, n) int32, of :func:`orders`; rounds are of one row.

    Returns:
      (seeds, L, epochs).
    """
    axes = solver.ranker_axes()

    def start(solver: Solver) -> Any:
        return solver.init(problem_of(X), X.dtype)

    def update(solver: Solver, state: Any, batch: Batch) -> Any:
        return solver.update(state, batch)[0]

    def reached(solver: Solver, state: Any) -> Array:
        return objective(solver, solver.weights(state), X, y)

    def one_round(states: Any, row: Array) -> tuple[Any, None]:
        batch = taken(X, y, row[None])
        return jax.vmap(update, in_axes=(axes, 0, None))(solver, states, batch), None

    def one_epoch(states: Any, rows: Array) -> tuple[Any, Array]:
        states, _ = jax.lax.scan(one_round, states, rows)
        return states, jax.vmap(reached, in_axes=(axes, 0))(solver, states)

    def one_seed(visits: Array) -> Array:
        states = jax.vmap(start, in_axes=(axes,))(solver)
        return jax.lax.scan(one_epoch, states, visits)[1].T

    return jax.vmap(one_seed)(visits)


@partial(jax.jit, static_argnames="seeds")
def begun(solver: Solver, X: Array, seeds: int) -> Any:
    """The states before round 1, one per seed."""
    state = solver.init(problem_of(X), X.dtype)
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (seeds, *leaf.shape)), state)


@partial(jax.jit, static_argnames="k")
def advanced(
    solver: Solver, X: Array, y: Array, states: Any, start: Array, stop: Array, k: int
) -> tuple[Any, Array]:
    """Rounds start ... stop - 1 of every seed, each of k rows drawn with replacement.

    ``start`` and ``stop`` are () int32 and numbers, not choices: one program does all stretches.

    Returns:
      The states, and the objective of every seed, (seeds,).
    """

    def one_seed(state: Any, seed: Array) -> tuple[Any, Array]:
        own = jax.random.key(seed)

        def one_round(t: Array, state: Any) -> Any:
            rows = jax.random.randint(
                jax.random.fold_in(own, t), (k,), 0, X.shape[0], dtype=jnp.int32
            )
            return solver.update(state, taken(X, y, rows))[0]

        state = jax.lax.fori_loop(start, stop, one_round, state)
        return state, objective(solver, solver.weights(state), X, y)

    seeds = jax.tree.leaves(states)[0].shape[0]
    return jax.vmap(one_seed)(states, jnp.arange(seeds, dtype=jnp.uint32))
