"""AdaGrad: its accumulator, its stabiliser, and the regularizers inside its step."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsolvers as js
from jaxsolvers.features import Dense
from jaxsolvers.protocol import Batch, Problem, Solver

F = jnp.result_type(float)
RTOL = 1e-12 if jnp.result_type(float) == np.float64 else 1e-6
both_forms = pytest.mark.parametrize("form", [js.AdaGradRDA, js.AdaGradFOBOS])
REGULARIZERS = {
    "none": js.regularizers.NoRegularizer(),
    "l1": js.regularizers.L1(0.1),
    "l2": js.regularizers.SquaredL2(0.1),
    "elastic": js.regularizers.ElasticNet(0.1, 0.1),
    "box": js.regularizers.Box(-1.0, 1.0),
    "nonnegative": js.regularizers.NonNegative(),
}
every_regularizer = pytest.mark.parametrize("name", REGULARIZERS)


def absorb(solver: Solver, *gradients: list[float], start: list[float] | None = None):
    """(weights, state) after one round per gradient; ``start`` for the mirror form only."""
    solver = solver.cast(F)
    state = solver.init(Problem((len(gradients[0]),)), F)
    if start is not None:
        state = state._replace(current=jnp.asarray(start, F))
    for gradient in gradients:
        state = solver.absorb(state, jnp.asarray(gradient, F))
    return np.asarray(solver.weights(state)), state


@both_forms
@every_regularizer
def test_a_zero_gradient_on_zero_weights_is_no_step_case_001(form, name):
    with jax.debug_nans(True), jax.debug_infs(True):
        weights, state = absorb(form(0.1, regularizer=REGULARIZERS[name]), [0.0, 0.0])
    np.testing.assert_array_equal(weights, [0, 0])
    np.testing.assert_array_equal(state.accumulator, [0, 0])
    assert int(state.t) == 1


@every_regularizer
def test_a_coordinate_without_history_keeps_its_weight_case_001(name):
    solver = js.AdaGradFOBOS(0.1, regularizer=REGULARIZERS[name])
    with jax.debug_nans(True):
        weights, _ = absorb(solver, [0.0, 0.2], start=[0.75, 0.5])
    assert weights[0] == 0.75 and weights[1] < 0.5


@both_forms
def test_the_state_is_made_from_a_shape_alone_case_001(form):
    like = jax.ShapeDtypeStruct((2,), F)
    solver = form(0.1, initial_accumulator=0.5).cast(F)
    state = solver.init(Problem(like.shape), like.dtype)
    shapes = jax.eval_shape(lambda s: s.init(Problem(like.shape), like.dtype), solver)
    for leaf, shape in zip(jax.tree.leaves(state), jax.tree.leaves(shapes), strict=True):
        assert (leaf.shape, leaf.dtype) == (shape.shape, shape.dtype)
    np.testing.assert_array_equal(state.accumulator, [0.5, 0.5])
    np.testing.assert_array_equal(solver.weights(state), [0, 0])


@both_forms
@pytest.mark.parametrize("batch_size", [1, 3])
def test_a_column_without_data_keeps_weight_zero_for_all_rankers_case_002(form, batch_size):
    X = np.array([[1, 0], [2, 0], [-1, 0]], F)
    model = js.fit_one_vs_rest(form(0.1), X, np.arange(3), batch_size=batch_size).model
    assert np.isfinite(model.coef).all()
    np.testing.assert_array_equal(model.coef[:, 1], np.zeros(3))
    assert np.any(model.coef[:, 0])


@both_forms
def test_the_accumulator_starts_where_the_argument_says_case_004(form):
    weights, state = absorb(form(0.1, delta=1e-8), [1e-3])
    np.testing.assert_allclose(-weights, [0.1 * 1e-3 / (1e-3 + 1e-8)], rtol=RTOL)
    np.testing.assert_allclose(state.accumulator, [1e-6], rtol=RTOL)
    weights, _ = absorb(form(0.1, delta=1e-8, initial_accumulator=1.0), [1e-3])
    np.testing.assert_allclose(-weights, [1e-4], rtol=1e-6)


@both_forms
def test_a_fit_starts_the_accumulator_where_the_argument_says_case_004(form):
    X, y = np.array([[1e-3], [0.0]], F), [1, -1]
    for initial, right in ((0.0, 0.0999990), (1.0, 1.0e-4)):
        solver = form(0.1, delta=1e-8, initial_accumulator=initial)
        coef = js.fit(solver, X, y, order="cyclic").model.coef
        np.testing.assert_allclose(coef, [right], rtol=2e-6)
    assert "initial_accumulator:" in form.__doc__


@both_forms
def test_delta_is_added_outside_the_root_case_005(form):
    weights, _ = absorb(form(1.0, delta=1e-7), [1e-4])
    np.testing.assert_allclose(-weights, [1e-4 / (1e-4 + 1e-7)], rtol=RTOL)
    np.testing.assert_allclose(-weights, [0.999001], rtol=1e-6)


def test_dual_averaging_with_l1_has_exact_zeros_case_040():
    solver = js.AdaGradRDA(1.0, regularizer=js.regularizers.L1(0.1))
    weights, _ = absorb(solver, [0.3, 0.05, -0.3, -0.1])
    np.testing.assert_allclose(weights, [-2 / 3, 0, 2 / 3, 0], rtol=RTOL)
    assert weights[1] == 0 and weights[3] == 0


def test_dual_averaging_weighs_l1_by_the_rounds_case_040():
    solver = js.AdaGradRDA(0.5, delta=1.0, regularizer=js.regularizers.L1(0.1))
    weights, _ = absorb(solver, [0.3], [0.4])
    right = -(0.5 * 0.7 - 0.5 * 2 * 0.1) / (1 + 0.5)  # sqrt(0.09 + 0.16) = 0.5
    np.testing.assert_allclose(weights, [right], rtol=RTOL)


def test_the_regularizer_stays_out_of_the_accumulator_case_041():
    solver = js.AdaGradFOBOS(0.1, regularizer=js.regularizers.SquaredL2(0.5))
    weights, state = absorb(solver, [0.2], start=[1.0])
    np.testing.assert_allclose(state.accumulator, [0.04], rtol=RTOL)
    np.testing.assert_allclose(weights, [0.72], rtol=RTOL)


@both_forms
@every_regularizer
def test_no_regularizer_enters_the_accumulator_case_041(form, name):
    _, state = absorb(form(0.1, regularizer=REGULARIZERS[name]), [0.2, -3.0], [0.5, 0.0])
    np.testing.assert_allclose(state.accumulator, [0.29, 9.0], rtol=RTOL)


def single_rows(solver: Solver, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The weights after one round per row, each a call of its own."""
    solver = solver.cast(F)
    state = solver.init(Problem(X.shape[1:]), F)
    step = jax.jit(lambda solver, state, batch: solver.update(state, batch)[0])
    for i in range(len(X)):
        row, target = jnp.asarray(X[i : i + 1]), jnp.asarray(y[i : i + 1])
        batch = Batch(Dense(row), target, jnp.ones(1), jnp.array([i], jnp.int32))
        state = step(solver, state, batch)
    return np.asarray(solver.weights(state))


@both_forms
def test_l2_acts_alike_on_single_rows_and_on_batches_case_038(form):
    rng = np.random.default_rng(38)
    X = rng.normal(size=(20, 3)).astype(F)
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=20) > 0, 1, -1).astype(F)

    def solver(strength: float) -> Solver:
        return form(0.5, regularizer=js.regularizers.SquaredL2(strength))

    norms = {}
    for strength in (0.0, 1.0):
        rows = single_rows(solver(strength), X, y)
        ones, fours = (
            np.asarray(js.fit(solver(strength), X, y, batch_size=k, order="cyclic").model.coef)
            for k in (1, 4)
        )
        np.testing.assert_allclose(ones, rows, rtol=1e-6, atol=1e-7)
        norms[strength] = [np.linalg.norm(w) for w in (rows, ones, fours)]
    np.testing.assert_array_less(norms[1.0], 0.9 * np.array(norms[0.0]))
