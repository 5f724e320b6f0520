"""Small problems, batches and blocks for the laws."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import members
import numpy as np

from jaxsolvers.features import Dense
from jaxsolvers.protocol import Batch, Problem, Solver

FLOAT = np.dtype(jnp.result_type(float))
N, D = 24, 5


def problem(n: int = N, d: int = D, dtype: Any = FLOAT) -> Problem:
    return Problem((d,), n, jnp.asarray(n, dtype), jnp.asarray(0.8, dtype))


def batch(
    solver: Solver, rows: int, seed: int = 0, *, lead: tuple[int, ...] = (), dtype: Any = FLOAT
) -> Batch:
    """Random rows with leading axes ``lead``; targets suit the loss, one row in five weighs 0."""
    rng = np.random.default_rng(seed)
    shape = (*lead, rows)
    X = 0.7 * rng.normal(size=(*shape, D)) * (rng.random((*shape, D)) < 0.8)
    weight = rng.uniform(0.3, 2.0, shape) * (rng.random(shape) < 0.8)
    return Batch(
        Dense(jnp.asarray(X, dtype)),
        jnp.asarray(members.targets(solver.loss, rng, shape), dtype),
        jnp.asarray(weight, dtype),
        jnp.asarray(rng.integers(N, size=shape), jnp.int32),
    )


def with_gram(block: Batch) -> Batch:
    """The block with the products that the fast sweep needs."""
    return block._replace(gram=block.x.gram())


def group(solver: Solver) -> int:
    """A batch size above 1 where the solver takes one."""
    return 1 if solver.single_row else 4


@jax.jit
def update(solver: Solver, state: Any, batch: Batch) -> Any:
    return solver.update(state, batch)


@jax.jit
def weights(solver: Solver, state: Any) -> Any:
    return solver.weights(state)


def trained(solver: Solver, rounds: int = 4, seed: int = 100) -> Any:
    """A state after a few rounds; ``solver`` has its numbers cast."""
    state = solver.init(problem(), FLOAT)
    for t in range(rounds):
        state, _ = update(solver, state, batch(solver, group(solver), seed + t))
    return state


def stack(trees: list[Any]) -> Any:
    """Like trees stacked on a new leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *trees)


def pick(tree: Any, i: int) -> Any:
    """Entry i of every leaf's leading axis."""
    return jax.tree.map(lambda leaf: leaf[i], tree)
