"""Passive-aggressive steps are the minimisers they are defined by; AROW's covariance stays one."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references import losses as reference_losses
from references.passive_aggressive import step
from scipy.optimize import minimize_scalar
from solver_references import FLOAT

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
