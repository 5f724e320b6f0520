"""Epochs and history, against the plain loops."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from references import adagrad, pegasos
from tolerances import assert_close, tolerance

import jaxsolvers as js
from jaxsolvers.engine.order import epoch_order, key_words

F = jnp.result_type(float)
RTOL = tolerance("run", F)
RNG = np.random.default_rng(11)
N, EPOCHS = 11, 3
ENDS = ("stopped", "epochs_run")
X = RNG.normal(size=(N, 3)).astype(F)
LABELS = np.argmax(X + 0.7 * RNG.normal(size=(N, 3)), axis=1)
WEIGHT = RNG.uniform(0.2, 3, N)
WEIGHT[4] = 0


def batches(order: str, batch_size: int, key: int = 0) -> list[np.ndarray]:
    """The rows of each round of all epochs."""
    rounds = []
    for epoch in range(EPOCHS):
        rows = epoch_order(order, N, key_words(key), epoch)
        rows = np.arange(N) if rows is None else rows
        rounds += [rows[i : i + batch_size] for i in range(0, N, batch_size)]
    return rounds


def per_epoch(values: list[float]) -> np.ndarray:
    """Sums over the rounds of each epoch."""
    return np.asarray(values, float).reshape(EPOCHS, -1).sum(axis=1)


def check(fit: js.Fit, run: Any, k: Any = ...) -> None:
    coef, history = np.asarray(fit.model.coef[k]), fit.history
    assert_close(coef, run.w[-1], "run")
    loss = per_epoch(run.loss) / per_epoch(run.weight)
    np.testing.assert_allclose(history["progressive_loss"].T[k].T, loss, rtol=RTOL)
    np.testing.assert_array_equal(history["mistakes"].T[k].T, per_epoch(run.mistakes))
    np.testing.assert_array_equal(history["violations"].T[k].T, per_epoch(run.violations))


@pytest.mark.parametrize("order", ["permutation", "uniform", "cyclic"])
@pytest.mark.parametrize("batch_size", [1, 4])
def test_one_ranker_against_the_plain_loop(order, batch_size):
    y = np.where(LABELS == 0, 1, -1)
    options = {"epochs": EPOCHS, "order": order, "batch_size": batch_size, "key": 3}
    fit = js.fit(js.Pegasos(0.1), X, y, sample_weight=WEIGHT, **options)
    weights = WEIGHT / WEIGHT[WEIGHT > 0].mean()
    run = pegasos.pegasos(X, y, batches(order, batch_size, 3), lam=0.1, weights=weights)
    check(fit, run)
    shapes = {name: v.shape for name, v in fit.history.items()}
    assert [shapes.pop(name) for name in ENDS] == [(), ()]
    assert set(shapes.values()) == {(EPOCHS,)}
    assert int(fit.state.epoch) == EPOCHS and (fit.history["seconds"] > 0).all()


@pytest.mark.parametrize("batch_size", [1, 4])
def test_many_rankers_against_the_plain_loop(batch_size):
    positive = np.array([1.0, 2.5, 0.3])
    solver = js.AdaGradRDA(0.5, delta=0.1, loss=js.losses.Logistic())
    options = {"epochs": EPOCHS, "batch_size": batch_size, "sample_weight": WEIGHT}
    fit = js.fit_one_vs_rest(solver, X, LABELS, positive_weight=positive, **options)
    for k in range(3):
        y = np.where(np.equal(LABELS, k), 1, -1)
        own = WEIGHT * np.where(y > 0, positive[k], 1)
        run = adagrad.adagrad(
            X, y, batches("permutation", batch_size), form="rda", learning_rate=0.5, delta=0.1,
            loss="logistic", weights=own / own[own > 0].mean(),
        )  # fmt: skip
        check(fit, run, k)
    shapes = {name: values.shape for name, values in fit.history.items()}
    assert shapes.pop("seconds") == (EPOCHS,)
    assert [shapes.pop(name) for name in ENDS] == [(3,), (3,)]
    assert set(shapes.values()) == {(EPOCHS, 3)}


def test_many_lanes_sweep_like_the_plain_loop():
    labels = np.arange(N) % 5  # with 18 classes the sweep works on Gram blocks
    solver = js.Averaged(js.Pegasos(0.2, project=True), start=3)
    fit = js.fit_one_vs_rest(solver, X, labels, classes=np.arange(18), epochs=EPOCHS)
    for k in (0, 4, 17):
        y = np.where(labels == k, 1, -1)
        rounds = batches("permutation", 1)
        run = pegasos.pegasos(X, y, rounds, lam=0.2, project=True, start_average=3)
        run.w = run.average
        check(fit, run, k)


def test_regression_has_no_mistakes():
    y = X @ np.array([1.0, -2.0, 0.5])
    solver = js.AdaGradFOBOS(0.3, loss=js.losses.Squared())
    fit = js.fit(solver, X, y, epochs=EPOCHS, order="cyclic")
    run = adagrad.adagrad(
        X, y, batches("cyclic", 1), form="mirror", learning_rate=0.3, loss="squared"
    )
    loss = per_epoch(run.loss) / N
    np.testing.assert_allclose(fit.history["progressive_loss"], loss, rtol=RTOL)
    np.testing.assert_array_equal(fit.history["mistakes"], np.zeros(EPOCHS))
    np.testing.assert_array_equal(fit.history["violations"], np.full(EPOCHS, N))


def test_every_epoch_asked_for_is_made_even_when_nothing_is_left_to_learn_case_070():
    rows = np.array([[1.0], [-1.0]], F)
    fit = js.fit(js.AdaGradFOBOS(5.0), rows, [1, -1], epochs=50)
    assert len(fit.history["violations"]) == 50 and int(fit.state.epoch) == 50
    assert fit.history["violations"][1:].sum() == 0 and int(fit.state.solver_state.t) == 100


def test_sums_do_not_stop_at_large_counts():
    # A float32 sum of ones stops at 2^24; slabs are summed in float64 on the host.
    fit = js.fit(js.Pegasos(1e6), np.zeros((2, 1), np.float32), [1, -1], epochs=3)
    np.testing.assert_array_equal(fit.history["violations"], [2, 2, 2])
    assert fit.history["violations"].dtype == fit.history["progressive_loss"].dtype == np.float64
