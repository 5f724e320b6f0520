"""Sample weights and positive weights: zeros, negatives, and weights that follow their rows."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tolerances import assert_bitwise

import jaxsolvers as js
from jaxsolvers.engine.order import epoch_order, key_words
from jaxsolvers.features import Dense
from jaxsolvers.protocol import Batch, Problem

F = jnp.result_type(float)
RNG = np.random.default_rng(73)
X = RNG.normal(size=(8, 3)).astype(F)
Y = np.array([1, -1, 1, 1, -1, -1, 1, -1])
SOLVERS = {
    "pegasos": js.Pegasos(0.1),
    "projected": js.Pegasos(0.1, project=True, loss=js.losses.SquaredHinge()),
    "rda": js.AdaGradRDA(0.1, regularizer=js.regularizers.L1(0.1)),
    "mirror": js.AdaGradFOBOS(0.1, regularizer=js.regularizers.SquaredL2(0.1)),
    "one round": js.AdaGradFOBOS(0.1, accumulate="batch"),
    "mean": js.Averaged(js.Pegasos(0.1)),
    "polynomial": js.Averaged(js.AdaGradRDA(0.1), kind="polynomial"),
}
every_solver = pytest.mark.parametrize("name", SOLVERS)


def rows(weight: jax.Array, at: slice = slice(0, 4)) -> Batch:
    index = jnp.arange(at.start, at.stop, dtype=jnp.int32)
    return Batch(Dense(jnp.asarray(X[at])), jnp.asarray(Y[at], F), weight, index)


@every_solver
def test_a_round_of_weight_zero_changes_no_bit_of_the_state_case_073(name):
    solver = SOLVERS[name].cast(F)
    step = jax.jit(lambda state, batch: solver.update(state, batch))
    state = solver.init(Problem((3,), loss_at_zero=1.0), F)
    state, _ = step(state, rows(jnp.ones(4)))
    after, info = step(state, rows(jnp.zeros(4), slice(4, 8)))
    assert_bitwise(after, state)
    assert [float(field) for field in info[:4]] == [0, 0, 0, 0]


def test_a_fit_with_only_zero_weights_is_refused_case_073():
    fit = js.fit(js.AdaGradFOBOS(0.1), X, Y)
    before = jax.tree.map(np.array, fit.state)
    for state in (None, fit.state):
        with pytest.raises(ValueError, match="sample_weight must have a positive entry"):
            js.fit(js.AdaGradFOBOS(0.1), X, Y, sample_weight=np.zeros(8), state=state)
    assert_bitwise(jax.tree.map(np.array, fit.state), before)


@every_solver
def test_rows_of_weight_zero_count_for_nothing_in_a_fit_case_073(name):
    live = np.array([1, 0, 1, 1, 0, 1, 1, 1], F)
    options = {"order": "cyclic", "epochs": 2}
    found = js.fit(SOLVERS[name], X, Y, sample_weight=live, **options)
    kept = js.fit(SOLVERS[name], X[live > 0], Y[live > 0], **options)
    assert_bitwise(found.state.solver_state, kept.state.solver_state)
    assert found.history["mistakes"].tolist() == kept.history["mistakes"].tolist()


def test_a_class_whose_rows_all_weigh_zero_leaves_finite_weights_case_074():
    labels, weight = np.array(["a", "a", "a", "b"]), [1, 1, 1, 0]
    solver = js.Pegasos(0.1, project=True)
    fit = js.fit_one_vs_rest(solver, X[:4], labels, sample_weight=weight, positive_weight=2.0)
    assert np.isfinite(fit.model.coef).all() and fit.state.alive.all()
    assert (fit.model.predict(X[:3]) == "a").mean() > 0.5


@pytest.mark.parametrize("bad", [-1.0, np.nan, -np.inf, np.inf, -1e-30])
def test_weights_that_are_negative_or_not_finite_are_refused_case_076(bad):
    weight = np.ones(8)
    weight[-1] = bad
    for front in (js.fit, js.fit_one_vs_rest):
        with pytest.raises(ValueError, match=r"sample_weight must be non-negative and finite, got"):
            front(js.Pegasos(0.1), X, Y, sample_weight=weight)


@pytest.mark.parametrize("batch_size", [1, 2])
@pytest.mark.parametrize(
    ("order", "weight"), [("permutation", [1000.0, 1, 1, 1]), ("uniform", [1.0, 0, 1, 1])]
)
def test_weights_follow_their_rows_case_079(order, weight, batch_size):
    rows, y, weight = X[:4], Y[:4], np.array(weight)
    options = {"batch_size": batch_size, "epochs": 1}
    at = epoch_order(order, 4, key_words(1), 0)
    solver = js.AdaGradFOBOS(0.1)
    found = js.fit(solver, rows, y, order=order, key=1, sample_weight=weight, **options)
    by_hand = js.fit(solver, rows[at], y[at], order="cyclic", sample_weight=weight[at], **options)
    np.testing.assert_array_equal(found.model.coef, by_hand.model.coef)
    unmoved = js.fit(solver, rows[at], y[at], order="cyclic", sample_weight=weight, **options)
    assert not np.array_equal(found.model.coef, unmoved.model.coef)
