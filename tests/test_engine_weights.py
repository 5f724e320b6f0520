"""Sample weights, positive weights and the intercept column, each against doing it by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references import adagrad
from tolerances import assert_bitwise, assert_close, tolerance

import jaxsolvers as js

F = jnp.result_type(float)
RTOL = tolerance("run", F)  # of histories too, which are float64 sums of the working dtype
RNG = np.random.default_rng(12)
X = RNG.normal(size=(8, 3)).astype(F)
Y = np.array([1, -1, 1, 1, -1, -1, 1, -1])
LABELS = np.arange(8) % 3
WEIGHT = np.array([2.0, 1, 1, 3, 1, 1, 1, 1])
SOLVERS = {
    "pegasos": js.Pegasos(0.1),
    "projected": js.Pegasos(0.1, project=True),
    "rda": js.AdaGradRDA(0.1, regularizer=js.regularizers.L1(0.05)),
    "mirror": js.AdaGradFOBOS(0.1, delta=0.5, accumulate="batch"),
    "mean": js.Averaged(js.AdaGradFOBOS(0.1)),
}


@pytest.mark.parametrize("name", SOLVERS)
def test_a_common_factor_does_nothing(name):
    expected = js.fit(SOLVERS[name], X, Y, sample_weight=WEIGHT, epochs=2)
    for factor in (2.0**-1000, 0.25, 2.0**900):
        scaled = js.fit(SOLVERS[name], X, Y, sample_weight=factor * WEIGHT, epochs=2)
        assert_bitwise(scaled.state.solver_state, expected.state.solver_state)
        losses = [fit.history["progressive_loss"] for fit in (scaled, expected)]
        np.testing.assert_array_equal(*losses)


@pytest.mark.parametrize("value", [3, 0.1, 1e-308, 1e308, True, np.int8(7)])
def test_equal_weights_are_no_weights(value):
    expected = js.fit(SOLVERS["mirror"], X, Y).model.coef
    weight = np.full(8, value)
    assert_close(js.fit(SOLVERS["mirror"], X, Y, sample_weight=weight).model.coef, expected, "run")


@pytest.mark.parametrize("name", ["projected", "mirror"])
def test_weight_two_is_a_row_twice_where_a_round_sees_all_rows(name):
    # Rounds of single rows differ: there weight 2 is a longer step, a row twice is two steps.
    options = {"epochs": 5, "order": "cyclic"}
    weighted = js.fit(SOLVERS[name], X, Y, sample_weight=WEIGHT, batch_size=8, **options)
    at = np.repeat(np.arange(8), WEIGHT.astype(int))
    repeated = js.fit(SOLVERS[name], X[at], Y[at], batch_size=len(at), **options)
    assert_close(weighted.model.coef, repeated.model.coef, "run")
    losses = [fit.history["progressive_loss"] for fit in (weighted, repeated)]
    np.testing.assert_allclose(*losses, rtol=RTOL)
    plain = js.fit(SOLVERS[name], X, Y, batch_size=8, **options)
    assert not np.allclose(weighted.model.coef, plain.model.coef, rtol=1e-3)


def test_the_ball_of_a_loss_that_depends_on_y_is_weighted():
    y = np.arange(8.0) - 3
    solver = js.Pegasos(0.01, loss=js.losses.Squared(), project=True)
    weight = np.array([0, 1.0, 1, 1, 1, 1, 1, 2])
    at_zero = float((weight * y**2 / 2).sum() / weight.sum())
    fit = js.fit(solver, 100 * X, y, sample_weight=weight)
    kept = fit.state.solver_state.scalars.loss_at_zero
    np.testing.assert_allclose(kept, at_zero, rtol=1e-6)
    norm = np.linalg.norm(np.asarray(fit.model.coef, np.float64))
    assert norm <= np.sqrt(at_zero / 0.01) * (1 + 1e-5)


@pytest.mark.parametrize("name", ["projected", "mean"])
def test_positive_weights_are_sample_weights_of_each_ranker(name):
    positive = np.array([2.0, 0.5, 1.0])
    options = {"epochs": 2, "batch_size": 2}
    each = js.fit_one_vs_rest(
        SOLVERS[name], X, LABELS, positive_weight=positive, sample_weight=WEIGHT, **options
    )
    for k in range(3):
        own = WEIGHT * np.where(np.equal(LABELS, k), positive[k], 1)
        alone = js.fit(SOLVERS[name], X, np.equal(LABELS, k), sample_weight=own, **options)
        assert_close(each.model.coef[k], alone.model.coef, "run", scale=1.0)
        loss = each.history["progressive_loss"][:, k]
        np.testing.assert_allclose(loss, alone.history["progressive_loss"], rtol=RTOL)


def test_one_positive_weight_serves_all_rankers():
    both = [
        js.fit_one_vs_rest(SOLVERS["rda"], X, LABELS, positive_weight=value).model.coef
        for value in (3, np.full(3, 3.0), np.float32(3), jnp.full(3, 3.0), [3, 3, 3])
    ]
    for coef in both[1:]:
        assert_bitwise(coef, both[0])
    assert not np.array_equal(both[0], js.fit_one_vs_rest(SOLVERS["rda"], X, LABELS).model.coef)


def test_a_positive_weight_without_positive_rows_is_no_weight():
    options = {"classes": range(4), "epochs": 2}
    weighted = js.fit_one_vs_rest(SOLVERS["pegasos"], X, LABELS, positive_weight=9.0, **options)
    plain = js.fit_one_vs_rest(SOLVERS["pegasos"], X, LABELS, **options)
    assert_bitwise(weighted.model.coef[3], plain.model.coef[3])


@pytest.mark.parametrize("name", ["projected", "rda", "mean"])
def test_the_intercept_is_a_constant_column(name):
    # With l1 the column is left alone by AdaGrad; it is told apart below.
    solver = SOLVERS[name] if name != "rda" else js.AdaGradRDA(0.1)
    options = {"epochs": 2, "batch_size": 2}
    fit = js.fit_one_vs_rest(solver, X, LABELS, intercept="column", **options)
    by_hand = js.fit_one_vs_rest(solver, np.hstack([X, np.ones((8, 1), F)]), LABELS, **options)
    assert_bitwise(fit.model.coef, by_hand.model.coef[:, :3])
    assert_bitwise(fit.model.intercept, by_hand.model.coef[:, 3])
    assert_bitwise(
        jax.tree.leaves(fit.state.solver_state), jax.tree.leaves(by_hand.state.solver_state)
    )
    assert fit.model.n_features == 3 and np.any(fit.model.intercept)


def test_the_intercept_column_is_one_wherever_the_rows_lie():
    options = {"intercept": "column", "epochs": 2}
    for order in ("cyclic", "permutation"):
        fits = [
            js.fit(SOLVERS["mirror"], rows, Y, order=order, **options)
            for rows in (X, jnp.asarray(X))
        ]
        assert_bitwise(fits[0].model.intercept, fits[1].model.intercept)
        assert_bitwise(fits[0].model.coef, fits[1].model.coef)


@pytest.mark.parametrize("form", ["rda", "mirror"])
@pytest.mark.parametrize("batch_size", [1, 2])
def test_adagrad_leaves_the_intercept_unregularized(form, batch_size):
    cls = {"rda": js.AdaGradRDA, "mirror": js.AdaGradFOBOS}[form]
    solver = cls(0.1, regularizer=js.regularizers.ElasticNet(0.5, 0.1))
    options = {"order": "cyclic", "batch_size": batch_size, "intercept": "column"}
    y = np.array([1, 1, 1, -1, 1, 1, 1, 1])
    model = js.fit(solver, X, y, **options).model
    rounds = np.arange(8).reshape(-1, batch_size)
    free = {"l1": np.array([0.5, 0.5, 0.5, 0]), "l2": np.array([0.1, 0.1, 0.1, 0])}
    run = adagrad.adagrad(
        np.hstack([X, np.ones((8, 1))]), y, rounds, form=form, learning_rate=0.1,
        regularizer="elastic_net", strengths=free,
    )  # fmt: skip
    found = np.append(np.asarray(model.coef), np.asarray(model.intercept))
    assert_close(found, run.w[-1], "run")
    assert (found[:3] == 0).any() and found[3] > 0.1


@pytest.mark.parametrize("bounds", [(0.0, 0.01), (np.zeros(3), np.full(3, 0.01))])
def test_a_domain_does_not_hold_for_the_intercept(bounds):
    solver = js.AdaGradFOBOS(0.5, regularizer=js.regularizers.Box(*bounds))
    y = np.array([-1, -1, -1, -1, -1, -1, -1, 1])
    model = js.fit(solver, X, y, intercept="column", epochs=3).model
    assert (np.asarray(model.coef) >= 0).all() and (np.asarray(model.coef) <= 0.01).all()
    assert model.intercept < -0.1
