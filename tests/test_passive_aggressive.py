"""Passive-aggressive steps are the minimisers they are defined by; AROW's covariance stays one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references import joint as reference_joint
from references import losses as reference_losses
from references.passive_aggressive import step
from scipy.optimize import minimize_scalar
from solver_references import FLOAT
from tolerances import assert_close

import jaxsolvers as js
from jaxsolvers.features import Dense
from jaxsolvers.protocol import Batch, Problem

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("variant", ["pa", "pa1", "pa2"])
@pytest.mark.parametrize("name", ["hinge", "epsilon_insensitive", "absolute", "logistic"])
def test_the_closed_forms_are_minimisers_along_the_row(name: str, variant: str) -> None:
    """W' = w + c x: the least 1/2 c^2 q + C l(z + c q, y)^p, or with l = 0 for "pa"."""
    if name == "logistic" and variant != "pa1":
        return
    parameter = 0.3 if name == "epsilon_insensitive" else None
    for _ in range(40):
        z, C, q = 2 * RNG.normal(), 10 ** RNG.uniform(-2, 1), 10 ** RNG.uniform(-1, 1)
        y = 2 * RNG.normal() if name in ("epsilon_insensitive", "absolute") else RNG.choice([-1, 1])
        c = step(name, variant, z, y, q, C, parameter)

        def loss(c: float, z: float = z, q: float = q, y: float = y) -> float:
            return reference_losses.value(name, z + c * q, y, parameter)

        if variant == "pa":
            assert loss(c) < 1e-12
            assert loss(0) == 0 or loss(c * (1 - 1e-6)) > 0  # no shorter step will do
            continue

        def objective(c: float, f: Callable[..., float] = loss, q=q, C=C) -> float:
            return c * c * q / 2 + C * f(c) ** (2 if variant == "pa2" else 1)

        reach = 2 * (abs(z) + abs(y) + 1) / q
        best = minimize_scalar(
            objective, bounds=(-reach, reach), method="bounded", options={"xatol": 1e-12}
        )
        assert objective(c) <= best.fun + 1e-12
        assert abs(c - best.x) < 1e-4 * (1 + reach)


@pytest.mark.parametrize("loss", [js.losses.Hinge(), js.losses.Logistic()])
def test_the_full_covariance_of_arow_stays_symmetric_and_shrinks(loss: js.losses.Loss) -> None:
    """Eigenvalues in [0, 1], never above those of the round before, over rows of all sizes."""
    solver = js.AROW(0.1, "full", loss).cast(FLOAT)
    X = RNG.normal(size=(200, 4)) * 10 ** RNG.uniform(-2, 2, size=(200, 1))
    y = np.sign(X[:, 0] + 0.5 * X[:, 1])
    rows = Batch(
        Dense(jnp.asarray(X, FLOAT)[:, None]), jnp.asarray(y, FLOAT)[:, None],
        jnp.ones((200, 1), FLOAT), jnp.arange(200, dtype=jnp.int32)[:, None],
    )  # fmt: skip

    @jax.jit
    def run(solver: js.AROW, rows: Batch) -> jax.Array:
        def one(state, batch):
            state, _ = solver.update(state, batch)
            return state, state.covariance

        return jax.lax.scan(one, solver.init(Problem((4,), 200), FLOAT), rows)[1]

    found = np.asarray(run(solver, rows), np.float64)
    np.testing.assert_array_equal(found, np.swapaxes(found, 1, 2))
    values = np.linalg.eigvalsh(found)
    slack = 1e-5 if np.float32 == FLOAT else 1e-13
    assert values.min() > -slack and values.max() < 1 + slack
    assert (np.diff(values, axis=0) < slack).all()


def multiclass(
    X: np.ndarray, y: np.ndarray, weight: np.ndarray, C: float, variant: str, cost: Any
) -> np.ndarray:
    """The weights (rounds, 3, d) after each row: the class that violates most, by the letter."""
    w, found = np.zeros((3, X.shape[1])), []
    for x, label, s in zip(X, y, weight, strict=True):
        loss, slope = reference_joint.hinge(w @ x, int(label), cost)
        q, most = 2 * x @ x, C * s
        length = loss / q if q > 0 else 0.0
        if variant == "pa1":
            length = min(length, most)
        elif variant == "pa2" and q > 0:
            length = loss / (q + 1 / (2 * most))
        w = w - length * np.outer(slope, x)
        found.append(w)
    return np.array(found)


@pytest.mark.parametrize("variant", ["pa", "pa1", "pa2"])
@pytest.mark.parametrize("cost", [None, np.array([[0, 1, 3], [0.5, 0, 1], [2, 1, 0]])])
def test_multiclass_steps_equal_the_numpy_loop(variant: str, cost: np.ndarray | None) -> None:
    X, y = RNG.normal(size=(40, 4)).astype(FLOAT).astype(float), RNG.integers(0, 3, 40)
    X[[3, 9]], weight = 0, RNG.uniform(0.2, 2, 40).astype(FLOAT).astype(float)
    solver = js.PassiveAggressive(0.4, variant, js.losses.MulticlassHinge(cost)).cast(FLOAT)
    rows = Batch(
        Dense(jnp.asarray(X, FLOAT)[:, None]), jnp.asarray(y, jnp.int32)[:, None],
        jnp.asarray(weight, FLOAT)[:, None], jnp.arange(40, dtype=jnp.int32)[:, None],
    )  # fmt: skip

    @jax.jit
    def run(solver: js.PassiveAggressive, rows: Batch) -> jax.Array:
        def one(state, batch):
            state, _ = solver.update(state, batch)
            return state, solver.weights(state)

        return jax.lax.scan(one, solver.init(Problem((3, 4), 40), FLOAT), rows)[1]

    expected = multiclass(X, y, weight, 0.4, variant, cost)
    assert_close(run(solver, rows), expected, "reference")
    fit = js.fit(solver, X.astype(FLOAT), y, order="cyclic")
    assert_close(fit.model.coef, multiclass(X, y, np.ones(40), 0.4, variant, cost)[-1], "reference")


def test_losses_and_variants_that_do_not_fit_are_refused_by_name() -> None:
    X, y = np.eye(2, dtype="float32"), np.array([1, -1])
    with pytest.raises(ValueError, match=r"loss of PassiveAggressive .* Hinge, .* SquaredHinge"):
        js.fit(js.PassiveAggressive(loss=js.losses.SquaredHinge()), X, y)
    with pytest.raises(ValueError, match=r"variant must be 'pa1' with the logistic loss.*'pa2'"):
        js.fit(js.PassiveAggressive(1.0, "pa2", js.losses.Logistic()), X, y)
    with pytest.raises(ValueError, match=r"loss of AROW must be Hinge or Logistic, got Squared"):
        js.fit(js.AROW(loss=js.losses.Squared()), X, y)
    for solver in (js.AROW(), js.PassiveAggressive()):
        with pytest.raises(ValueError, match="batch_size"):
            js.fit(solver, X, y, batch_size=2)


@pytest.mark.parametrize(
    "solver", [js.AROW(), js.PassiveAggressive(), js.PassiveAggressive(1.0, "pa")]
)
def test_a_row_of_zeros_moves_no_weight(solver: js.AROW) -> None:
    X, y = np.zeros((3, 2), "float32"), np.array([1, -1, 1])
    fit = js.fit(solver, X, y, epochs=2)
    np.testing.assert_array_equal(fit.model.coef, 0)
