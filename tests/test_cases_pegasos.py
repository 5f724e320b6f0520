"""The step of Pegasos, its projection, its orders and every solver's defaults."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tolerances import tolerance

import jaxsolvers as js
from jaxsolvers.engine.order import epoch_order, key_words
from jaxsolvers.features import Dense
from jaxsolvers.protocol import Batch, Problem, Solver, State

F = jnp.result_type(float)
RTOL = tolerance("reference", F)
HEIGHTS = np.array([170, 180, 190, 120, 130, 140], F)[:, None]
TALL = np.array([1, 1, 1, -1, -1, -1])


def start(solver: Solver, width: int) -> State:
    return solver.init(Problem((width,), loss_at_zero=1.0), F)


def one_row(row: list[float], target: float) -> Batch:
    return Batch(Dense(jnp.asarray([row], F)), jnp.full(1, target), jnp.ones(1), jnp.zeros(1, int))


@pytest.mark.parametrize("lam", [1e-9, 1e-5, 1e-3, 1.0, 1e3, 1e9])
@pytest.mark.parametrize("epochs", [1, 300])
def test_unscaled_rows_give_finite_scores_for_every_lam_case_058(lam, epochs):
    fit = js.fit(js.Pegasos(lam), HEIGHTS, TALL, epochs=epochs, intercept="column")
    assert np.isfinite(fit.model.decision_function(HEIGHTS)).all()
    assert np.isfinite(fit.history["progressive_loss"]).all()


def test_standardised_rows_are_all_classified_case_058():
    rows = (HEIGHTS - HEIGHTS.mean()) / HEIGHTS.std()
    fit = js.fit(js.Pegasos(1e-3), rows, TALL, epochs=1000, intercept="column")
    np.testing.assert_array_equal(fit.model.predict(rows), TALL)


def test_a_row_exactly_on_the_margin_only_shrinks_case_059():
    solver = js.Pegasos(0.5).cast(F)
    state = start(solver, 1)
    one = jnp.ones((), jnp.int32)
    state = state._replace(scalars=state.scalars._replace(t=one), vector=jnp.array([0.5]))
    np.testing.assert_array_equal(solver.weights(state), [1.0])
    state, info = jax.jit(lambda *given: solver.update(*given))(state, one_row([1.0], 1.0))
    np.testing.assert_array_equal(solver.weights(state), [0.5])
    assert int(state.scalars.t) == 2 and info.violations == 0 and info.loss == 0


def test_hinge_losses_are_strict_at_the_margin_case_059():
    for loss in (js.losses.Hinge(), js.losses.SquaredHinge(), js.losses.SmoothedHinge(0.5)):
        for y in (1.0, -1.0):
            _, slope = loss.value_and_slope(jnp.array([y]), jnp.array([y]))
            assert slope[0] == 0
            _, slope = loss.value_and_slope(jnp.array([y * (1 - 1e-6)]), jnp.array([y]))
            assert slope[0] * y < 0


@pytest.mark.parametrize("lam", [0, 0.0, -0.0, -1, -1e-30])
@pytest.mark.parametrize("project", [False, True])
def test_a_strength_that_is_not_positive_is_refused_case_061(lam, project):
    for solver in (js.Pegasos(lam, project=project), js.Averaged(js.Pegasos(lam))):
        with pytest.raises(ValueError, match=r"lam must be a finite number > 0"):
            js.fit(solver, HEIGHTS, TALL)
    with pytest.raises(ValueError, match=r"lam must be .* > 0, got .* at index \(1,\)"):
        js.fit_one_vs_rest(js.Pegasos(np.array([1, lam, 1])), HEIGHTS, [0, 1, 2, 0, 1, 2])


@pytest.mark.parametrize(("project", "right"), [(True, 10.0), (False, 1e5)])
def test_the_projection_is_active_when_asked_case_062(project, right):
    solver = js.Pegasos(0.01, project=project).cast(F)
    state, _ = solver.update(start(solver, 1), one_row([1000.0], 1.0))
    np.testing.assert_allclose(solver.weights(state), [right], rtol=RTOL)


def test_a_projected_vector_never_leaves_the_ball_case_062():
    rng = np.random.default_rng(62)
    rows = (1000 * rng.normal(size=(30, 4))).astype(F)
    targets = np.where(rng.random(30) < 0.5, 1, -1).astype(F)
    solver = js.Pegasos(0.01, project=True).cast(F)
    step = jax.jit(lambda state, batch: solver.update(state, batch)[0])
    state, norms = start(solver, 4), []
    for row, target in zip(rows, targets, strict=True):
        state = step(state, one_row(row, target))
        norms.append(np.linalg.norm(solver.weights(state)))
    assert max(norms) <= 10 * (1 + RTOL) and max(norms) > 9.9


@pytest.mark.parametrize("kind", ["rows", "gram"])
def test_a_fit_stays_inside_the_ball_case_062(kind):
    rng = np.random.default_rng(63)
    rows = (1000 * rng.normal(size=(40, 4))).astype(F)
    labels = np.arange(40) % (20 if kind == "gram" else 3)
    state = None
    for _ in range(3):
        fit = js.fit_one_vs_rest(js.Pegasos(0.01, project=True), rows, labels, state=state)
        norms = np.linalg.norm(fit.model.coef, axis=1)
        assert norms.max() <= 10 * (1 + RTOL) and norms.max() > 9
        state = fit.state


def test_the_order_is_documented_and_selectable_case_064():
    words = key_words(0)
    shuffled = epoch_order("permutation", 5, words, 0)
    np.testing.assert_array_equal(np.sort(shuffled), np.arange(5))
    drawn = [epoch_order("uniform", 5, words, epoch) for epoch in range(20)]
    assert all(rows.shape == (5,) for rows in drawn)
    assert any(len(set(rows.tolist())) < 5 for rows in drawn)
    for order in ("permutation", "uniform"):
        np.testing.assert_array_equal(
            epoch_order(order, 5, words, 3), epoch_order(order, 5, key_words(0), 3)
        )
    assert epoch_order("cyclic", 5, words, 0) is None
    assert '"permutation" (default' in js.fit.__doc__


@pytest.mark.parametrize("order", [None, "permutation", "uniform"])
def test_rows_are_visited_in_the_order_drawn_case_064(order):
    rng = np.random.default_rng(64)
    rows, y = rng.normal(size=(5, 2)).astype(F), np.array([1, -1, 1, 1, -1])
    visited = epoch_order(order or "permutation", 5, key_words(3), 0)
    found = js.fit(js.Pegasos(0.1), rows, y, key=3, **({"order": order} if order else {}))
    by_hand = js.fit(js.Pegasos(0.1), rows[visited], y[visited], order="cyclic")
    np.testing.assert_array_equal(found.model.coef, by_hand.model.coef)
    again = js.fit(js.Pegasos(0.1), rows, y, key=3, order=order)
    np.testing.assert_array_equal(found.model.coef, again.model.coef)


def minimal(cls: type[Solver]) -> Solver:
    """The solver with nothing but its required arguments."""
    required: dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        if field.default is dataclasses.MISSING:
            spec = field.metadata["jaxsolvers"]
            part = js.Pegasos(0.1) if spec.base is Solver else js.kernels.RBF(1.0)
            required[field.name] = {"number": 0.1, "setting": 3}.get(spec.kind, part)
    return cls(**required)


SOLVERS = [
    value
    for name in js.__all__
    if isinstance(value := getattr(js, name), type) and issubclass(value, Solver)
]


@pytest.mark.parametrize("cls", SOLVERS, ids=lambda cls: cls.__name__)
def test_every_solver_trains_with_its_defaults_case_065(cls):
    X = np.array([[1.0, 0.1], [0.8, -0.2], [-1.0, 0.3], [-0.7, 0.0]], F)
    fit = js.fit(minimal(cls), X, np.array([1, 1, -1, -1]), epochs=5)
    np.testing.assert_array_equal(fit.model.predict(X), [1, 1, -1, -1])
    assert len(SOLVERS) >= 4
