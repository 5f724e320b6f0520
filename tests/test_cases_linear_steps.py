"""SGD, NORMA and SDCA: the scale of their objective, long runs, numbers refused by name."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from references.sgd import norma_rate, sgd

import jaxsolvers as js

F = np.dtype(jnp.result_type(float))
RTOL = 1e-10 if F.itemsize == 8 else 1e-5
RNG = np.random.default_rng(52)
X = RNG.normal(size=(12, 3)).astype(F)
Y = np.where(X[:, 0] + 0.3 * RNG.normal(size=12) > 0, 1.0, -1.0).astype(F)
SHRINKING = {
    "sgd": lambda lam: js.SGD(lam, 0.3),
    "norma": lambda lam: js.NORMA(lam, 0.3),
}


@pytest.mark.parametrize("name", SHRINKING)
def test_a_batch_is_a_mean_over_its_rows_case_052(name: str) -> None:
    once = js.fit(SHRINKING[name](0.2), X, Y, epochs=20, batch_size=12).model.coef
    tiled = js.fit(
        SHRINKING[name](0.2), np.tile(X, (10, 1)), np.tile(Y, 10), epochs=20, batch_size=120
    )
    np.testing.assert_allclose(tiled.model.coef, once, rtol=100 * RTOL)


def test_the_optimum_of_the_dual_does_not_see_repeated_rows_case_052() -> None:
    solver = js.SDCA(0.1, js.losses.Squared())
    w = np.linalg.solve(X.T @ X / 12 + 0.1 * np.eye(3, dtype=F), X.T @ Y / 12)
    once = js.fit(solver, X, Y, epochs=100)
    tiled = js.fit(solver, np.tile(X, (10, 1)), np.tile(Y, 10), epochs=100)
    weighed = js.fit(solver, X, Y, epochs=100, sample_weight=np.full(12, 7.0))
    for fit in (once, tiled, weighed):
        np.testing.assert_allclose(fit.model.coef, w, rtol=1e-4)


def test_the_penalty_has_its_half_case_053() -> None:
    model = js.LinearModel(jnp.array([2.0]), jnp.zeros(()), np.array([-1, 1]))
    for solver in (js.SGD(0.5, 0.1), js.NORMA(0.5, 0.1), js.SDCA(0.5)):
        found = js.metrics.objective(solver, model, np.ones((1, 1), F), [1])
        np.testing.assert_allclose(found, 1.0, rtol=RTOL)


@pytest.mark.parametrize("name", SHRINKING)
def test_the_penalty_acts_alike_on_single_rows_and_on_batches_case_038(name: str) -> None:
    norms = {
        lam: [
            np.linalg.norm(js.fit(SHRINKING[name](lam), rows, Y, batch_size=k, epochs=3).model.coef)
            for rows in (X, scipy.sparse.csr_matrix(X))
            for k in (1, 4)
        ]
        for lam in (0.1, 1.0)
    }
    np.testing.assert_array_less(norms[1.0], 0.9 * np.array(norms[0.1]))


def test_every_epoch_is_made_when_nothing_is_left_to_gain_case_070() -> None:
    fit = js.fit(js.SDCA(1.0, js.losses.SquaredHinge()), X, Y, epochs=50, record=("gap",))
    assert fit.history["gap"].shape == (50,) and int(fit.state.solver_state.scalars.t) == 600
    assert fit.history["gap"][-1] < 1e-5 < fit.history["gap"][0]


@pytest.mark.parametrize("rows", ["dense", "sparse"])
def test_norma_forgets_for_thousands_of_rounds_without_leaving_the_floats_case_178(
    rows: str,
) -> None:
    """With c = 0.99 the product of the factors is below 1e-38 after 1,800 rounds."""
    rng = np.random.default_rng(178)
    n, n_classes = 2500, 40
    values = (rng.normal(size=(n, 6)) * (rng.random((n, 6)) < 0.5)).astype(np.float32)
    labels = rng.permutation(np.arange(n) % n_classes)
    given = scipy.sparse.csr_matrix(values) if rows == "sparse" else values
    fit = js.fit_one_vs_rest(js.NORMA(0.01, 0.99), given, labels, order="cyclic")
    factors = 1 - 0.99 / np.sqrt(np.arange(1, n + 1))
    assert np.log10(factors).sum() < -38
    assert fit.state.alive.all()
    for k in (0, 17):
        y = np.where(labels == k, 1.0, -1.0)
        run = sgd(values, y, np.arange(n)[:, None], lam=0.01, rate=norma_rate(0.01, 0.99))
        scale = np.abs(run.w[-1]).max()
        np.testing.assert_allclose(fit.model.coef[k], run.w[-1], rtol=0, atol=1e-4 * scale)


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        (js.NORMA(0.1, 1.0), r"c must be a finite number > 0 < 1, got 1.0"),
        (js.NORMA(0.1, 0.0), r"c must be .*got 0.0"),
        (js.NORMA(0.0, 0.5), r"lam must be .*got 0.0"),
        (js.SGD(0.5, 2.0), r"learning_rate must be below 1/lam.*got learning_rate \* lam = 1"),
        (js.SGD(0.5, -1.0), r"learning_rate must be .*got -1.0"),
        (js.Averaged(js.SGD(10.0, 0.5)), r"solver\.learning_rate must be below 1/lam.*= 5"),
        (js.SDCA(0.0), r"lam must be .*got 0.0"),
        (js.SDCA(0.1, js.losses.Perceptron()), r"loss must be one with a dual step .*Perceptron"),
        (js.SDCA(0.1, js.losses.MulticlassHinge()), r"loss must be .*MulticlassHinge"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else None,
)
def test_numbers_and_losses_out_of_range_are_refused(solver: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        js.fit(solver, X, Y)


def test_a_product_out_of_range_for_one_class_is_refused() -> None:
    rates = np.array([0.5, 1.0, 3.0])
    with pytest.raises(ValueError, match=r"learning_rate must be below 1/lam.*= 1.5"):
        js.fit_one_vs_rest(js.SGD(0.5, rates), X, np.arange(12) % 3)
    with pytest.raises(ValueError, match=r"lam must be one number or one per class \(3\)"):
        js.fit_one_vs_rest(js.SGD(np.full(2, 0.5), rates / 3), X, np.arange(12) % 3)


def test_what_dual_steps_do_not_take_is_refused() -> None:
    with pytest.raises(ValueError, match="batch_size must be 1 for SDCA, got 4"):
        js.fit(js.SDCA(0.1), X, Y, batch_size=4)
    with pytest.raises(ValueError, match="batch_size must be 1 for SDCA, got 4"):
        js.fit(js.Averaged(js.SDCA(0.1)), X, Y, batch_size=4)
    state = js.fit(js.SDCA(0.1), X, Y).state
    with pytest.raises(ValueError, match=r"state keeps numbers of 12 rows.*got 11"):
        js.fit(js.SDCA(0.1), X[:11], Y[:11], state=state)
