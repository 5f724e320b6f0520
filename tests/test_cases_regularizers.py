"""Regularizers by themselves, the projection of Pegasos, and the scale of the objective."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsolvers as js
from jaxsolvers.features import Dense
from jaxsolvers.protocol import Batch, Problem
from jaxsolvers.solvers.gram_sweep import project

F = jnp.result_type(float)
RTOL = 1e-10 if jnp.result_type(float) == np.float64 else 1e-5


def test_l1_has_the_sub_gradient_zero_at_zero_case_047():
    slope = jax.grad(lambda w: js.regularizers.L1(0.5).value(w))(jnp.array([0.0, -2.0]))
    np.testing.assert_array_equal(slope, [0, -0.5])


def test_the_penalties_have_finite_derivatives_at_zero_case_047():
    members = (
        js.regularizers.NoRegularizer(),
        js.regularizers.L1(0.5),
        js.regularizers.SquaredL2(0.5),
        js.regularizers.ElasticNet(0.5, 0.5),
        js.regularizers.NonNegative(),
    )
    for regularizer in members:
        slope = jax.grad(regularizer.value)(jnp.zeros(2))
        np.testing.assert_array_equal(slope, [0, 0], err_msg=type(regularizer).__name__)


def test_one_strength_serves_a_tree_of_weights_under_jit_case_049():
    tree = (jnp.array([0.5, -2.0]), jnp.array([1.0]))

    @jax.jit
    def prox(regularizer, tree):
        one = jnp.ones((), F)
        return jax.tree.map(lambda w: regularizer.prox(w, jnp.ones_like(w), one), tree)

    for strength in (0.5, np.float32(0.5), np.float64(0.5), jnp.asarray(0.5)):
        first, second = prox(js.regularizers.L1(strength).cast(F), tree)
        np.testing.assert_array_equal(first, [0, -1.5])
        np.testing.assert_array_equal(second, [0.5])


def test_the_ball_of_pegasos_keeps_the_zero_vector_case_050():
    def projected(vector: jax.Array) -> jax.Array:
        _, factor = project(jnp.sum(vector * vector), jnp.ones(()))
        return factor * vector

    with jax.debug_nans(True):
        np.testing.assert_array_equal(projected(jnp.zeros(2)), [0, 0])
        np.testing.assert_array_equal(jax.jacobian(projected)(jnp.zeros(2)), np.eye(2))
    np.testing.assert_allclose(projected(jnp.array([3.0, 4.0])), [0.6, 0.8], rtol=RTOL)
    inside = jnp.array([0.2, -0.3])
    np.testing.assert_array_equal(projected(inside), inside)


@pytest.mark.parametrize("project", [False, True])
def test_a_round_of_pegasos_has_a_derivative_at_zero_weights_case_110(project):
    solver = js.Pegasos(0.5, project=project).cast(F)
    state = solver.init(Problem((2,), loss_at_zero=1.0), F)
    target, weight, index = jnp.ones(1), jnp.ones(1), jnp.zeros(1, jnp.int32)

    def after(vector: jax.Array, row: jax.Array) -> jax.Array:
        batch = Batch(Dense(row[None]), target, weight, index)
        return solver.weights(solver.update(state._replace(vector=vector), batch)[0])

    slopes = jax.jit(jax.jacobian(after, (0, 1)))
    for row in (jnp.array([0.25, 0.5]), jnp.zeros(2)):
        with jax.debug_nans(True):
            by_vector, by_row = slopes(jnp.zeros(2), row)
        assert np.isfinite(by_vector).all() and np.isfinite(by_row).all()
        np.testing.assert_allclose(by_vector, 2 * np.eye(2), rtol=RTOL)


@pytest.mark.parametrize(
    "solver",
    [
        js.Pegasos(0.1, project=True),
        js.AdaGradRDA(0.1, regularizer=js.regularizers.SquaredL2(0.1)),
        js.AdaGradFOBOS(0.1, regularizer=js.regularizers.ElasticNet(0.1, 0.1)),
    ],
    ids=lambda solver: type(solver).__name__,
)
def test_the_first_step_from_zero_weights_is_finite_case_110(solver):
    X, y = np.array([[0, 0], [0, 0], [1, 0], [0, -1]], F), [1, -1, 1, -1]
    with jax.debug_nans(True):
        fit = js.fit(solver, X, y, order="cyclic", epochs=2)
    assert np.isfinite(fit.model.coef).all() and (np.asarray(fit.model.coef) > 0).all()


def ridge(X: np.ndarray, y: np.ndarray, lam: float) -> np.ndarray:
    """The minimiser of lam/2 ||w||^2 + mean (y - <w, x>)^2 / 2."""
    return np.linalg.solve(lam * np.eye(X.shape[1]) + X.T @ X / len(X), X.T @ y / len(X))


def test_the_loss_is_a_mean_over_rows_case_052():
    X = np.array([[0.3, 0.1], [0.2, -0.3], [-0.1, 0.2], [0.25, 0.2]])
    y, lam = np.array([1.0, -0.5, 0.25, 2.0]), 0.1
    right = ridge(X, y, lam)
    solver = js.Pegasos(lam, loss=js.losses.Squared())
    for times in (1, 10):
        rows, targets = np.tile(X, (times, 1)).astype(F), np.tile(y, times)
        np.testing.assert_allclose(ridge(rows, targets, lam), right, rtol=1e-4)
        fit = js.fit(solver, rows, targets, epochs=300, batch_size=4 * times)
        np.testing.assert_allclose(fit.model.coef, right, atol=1e-3)
    assert "mean over rows" in " ".join(js.Pegasos.__doc__.split())


def test_the_penalty_has_its_half_case_053():
    model = js.LinearModel(jnp.array([2.0]), jnp.zeros(()), np.array([-1, 1]))
    X, y = np.array([[1.0]], F), np.array([1])
    found = js.metrics.objective(js.Pegasos(0.5), model, X, y)
    np.testing.assert_allclose(found, 1.0, rtol=RTOL)
    by_regularizer = js.AdaGradRDA(0.1, regularizer=js.regularizers.SquaredL2(0.5))
    np.testing.assert_allclose(js.metrics.objective(by_regularizer, model, X, y), 1.0, rtol=RTOL)
    far = js.metrics.objective(js.Pegasos(0.5), model, np.array([[-1.0], [1.0]], F), [1, 1])
    np.testing.assert_allclose(far, 1.0 + 3 / 2, rtol=RTOL)


def test_the_intercept_has_no_scale_and_no_place_in_coef_case_055():
    solver = js.Pegasos(0.1)
    X = np.array([[1, 0, 2], [0, 1, 0], [2, 1, 1], [0, 0, 1]], F)
    y = [1, -1, 1, -1]
    model = js.fit(solver, X, y, intercept="column").model
    assert model.coef.shape == (3,) and model.intercept.shape == ()
    appended = js.fit(solver, np.hstack([X, np.ones((4, 1), F)]), y).model.coef
    np.testing.assert_allclose(np.append(model.coef, model.intercept), appended, rtol=RTOL)
    with pytest.raises(ValueError, match="intercept"):
        js.fit(solver, X, y, intercept=0)
