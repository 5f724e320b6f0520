"""AdaGrad with a full metric against eigendecompositions in NumPy, round by round."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import members
import numpy as np
import pytest
from references.adagrad_full import adagrad_full
from tolerances import assert_close

import jaxsolvers as js
from jaxsolvers.features import Dense
from jaxsolvers.protocol import Batch, Problem
from jaxsolvers.regularizers.full_metric import rank_tolerance

FLOAT = np.dtype(jnp.result_type(float))
ROUNDS, D = 50, 6
L1, NONE = js.regularizers.L1(0.02), js.regularizers.NoRegularizer()
NET = js.regularizers.ElasticNet(0.01, 0.1)
FORMS = {js.FullAdaGradRDA: "rda", js.FullAdaGradFOBOS: "mirror"}
both_forms = pytest.mark.parametrize("form", list(FORMS), ids=["rda", "mirror"])


class Lane(NamedTuple):
    """A stream with the numbers of its solver."""

    delta: float
    initial: float
    X: np.ndarray  # (ROUNDS, k, D)


def lanes(k: int) -> list[Lane]:
    """Rows of full rank, a few rows again and again, rows in a plane; delta 0 and more."""
    rng = np.random.default_rng(3)
    free = 0.7 * rng.normal(size=(ROUNDS, k, D))
    free[:, :, 2] = 0  # never seen
    few = np.broadcast_to(0.7 * rng.normal(size=(2, 1, D)), (2, k, D))[np.arange(ROUNDS) % 2]
    plane = rng.normal(size=(ROUNDS, k, 2)) @ rng.normal(size=(2, D))
    return [
        Lane(0.0, 0.0, free),
        Lane(0.5, 0.0, free),
        Lane(0.0, 0.0, few),
        Lane(0.1, 0.0, few),
        Lane(0.0, 0.0, plane),
        Lane(0.0, 0.3, plane),
    ]


@jax.jit
def paths(solver: Any, rounds: Batch) -> Any:
    """States and weights after each round, of every lane."""

    def one(solver: Any, rounds: Batch) -> Any:
        def one_round(state: Any, batch: Batch) -> Any:
            state, _ = solver.update(state, batch)
            return state, (state, solver.weights(state))

        return jax.lax.scan(one_round, solver.init(Problem((D,), 0), FLOAT), rounds)[1]

    return jax.vmap(one)(solver, rounds)


CONFIGS: list[tuple[int, dict[str, Any]]] = [
    (1, {"block_size": None, "regularizer": NONE}),
    (1, {"block_size": 4, "regularizer": L1, "refresh": 5}),
    (7, {"block_size": None, "regularizer": L1, "accumulate": "example", "refresh": 5}),
    (7, {"block_size": 3, "regularizer": NET, "accumulate": "example", "compensated": True}),
    (7, {"block_size": 4, "regularizer": js.regularizers.SquaredL2(0.1), "accumulate": "batch"}),
    (7, {"block_size": None, "regularizer": js.regularizers.Box(-0.3, 0.2), "accumulate": "batch"}),
]


@pytest.mark.parametrize(("k", "config"), CONFIGS)
@both_forms
def test_every_round_equals_an_eigendecomposition(form: Any, k: int, config: Any) -> None:
    rng = np.random.default_rng(k)
    own = lanes(k)
    X = np.stack([lane.X for lane in own]).astype(FLOAT)
    y = np.where(X @ rng.normal(size=D) + 0.5 * rng.normal(size=X.shape[:3]) > 0, 1.0, -1.0)
    s = rng.uniform(0.5, 1.5, y.shape) * (rng.random(y.shape) < 0.9)
    loss = js.losses.Logistic()  # smooth: no decision that float32 might take otherwise
    numbers = {
        "delta": np.array([lane.delta for lane in own]),
        "initial_accumulator": np.array([lane.initial for lane in own]),
    }
    solver = form(0.3, loss=loss, trips=1500, **numbers, **config).cast(FLOAT)
    solver = solver.map_numbers(lambda leaf: jnp.broadcast_to(leaf.value, len(own)))
    index = jnp.zeros(y.shape, jnp.int32)
    states, w = paths(
        solver, Batch(Dense(jnp.asarray(X)), jnp.asarray(y, FLOAT), jnp.asarray(s, FLOAT), index)
    )
    name, strengths = members.reference_regularizer(config["regularizer"], D)
    size = config.get("block_size") or D
    for at, lane in enumerate(own):
        flat = np.arange(ROUNDS * k).reshape(ROUNDS, k).tolist()
        run = adagrad_full(
            X[at].reshape(-1, D), y[at].ravel(), flat, weights=s[at].astype(FLOAT).ravel(),
            form=FORMS[form], learning_rate=0.3, delta=lane.delta, loss="logistic",
            initial_accumulator=lane.initial, regularizer=name, strengths=strengths,
            accumulate=config.get("accumulate", "example"), block_size=size,
            refresh=config.get("refresh", 1), tolerance=rank_tolerance(FLOAT, size),
        )  # fmt: skip
        print(
            form.__name__,
            k,
            config.get("regularizer"),
            at,
            np.abs(np.asarray(w[at]) - np.array(run.w)).max() / np.abs(run.w).max(),
            run.doubt,
            np.asarray(states.residual[at]).max(),
        )
