"""SVRG with its snapshots: against NumPy, through the engine, and at the optimum."""

from __future__ import annotations

import types
from typing import Any

import jax
import jax.numpy as jnp
import members
import numpy as np
import pytest
import scipy.sparse
from references import averages, losses
from references.svrg import curvature, svrg
from solver_references import FLOAT, ROUNDS, Data, N, stream
from solver_references import D as WIDTH
from test_solvers_reference import clear
from tolerances import assert_bitwise, assert_close

import jaxsolvers as js
from jaxsolvers.engine import stream as engine_stream
from jaxsolvers.features import Dense
from jaxsolvers.protocol import Batch, Problem

EPOCH = ROUNDS // 2  # rounds between two snapshots


def as_batch(data: Data, at: Any) -> Batch:
    x, y, weight = (jnp.asarray(a[at], FLOAT) for a in (data.X, data.y, data.weight))
    return Batch(Dense(x), y, weight, jnp.asarray(at, jnp.int32))


@jax.jit
def trajectory(solver: Any, rounds: Batch, rows: Batch) -> Any:
    """State and weights after each round; a snapshot of ``rows`` every EPOCH of them."""

    def one_round(state: Any, batch: Batch) -> Any:
        state, _ = solver.update(state, batch)
        return state, (state, solver.weights(state))

    def one_epoch(state: Any, rounds: Batch) -> Any:
        return jax.lax.scan(one_round, solver.begin_epoch(state, rows), rounds)

    parts = jax.tree.map(lambda a: a.reshape(-1, EPOCH, *a.shape[1:]), rounds)
    state = solver.init(Problem((WIDTH,), N), FLOAT)
    found = jax.lax.scan(one_epoch, state, parts)[1]
    return jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), found)


def clear_run(solver: js.SVRG, k: int) -> tuple[Data, Any]:
    """A stream and the reference's run, with no score near a kink, those of snapshots included."""
    name, parameter = members.reference_loss(solver.loss)
    rate = None if solver.learning_rate is None else float(solver.learning_rate)
    for seed in range(200):
        data = stream(solver.loss, k, seed)
        run = svrg(
            data.X, data.y, data.batches, lam=float(solver.lam), rate=rate, loss=name,
            parameter=parameter, weights=data.weight, epoch=EPOCH,
        )  # fmt: skip
        looked = types.SimpleNamespace(w=[run.w[EPOCH - 1]] * 2)
        every = data._replace(index=np.array([[N] * N, np.arange(N)]))
        if clear(run, solver, data) and clear(looked, solver, every):
            return data, run
    raise AssertionError("no clear stream in 200 seeds")


@members.each(members.losses(), "loss")
def test_every_round_and_snapshot_equals_the_numpy_loop(loss: Any) -> None:
    at = members.losses().index(loss)
    for i, rate in enumerate((None, 0.15)):
        k = (1, 7)[(at + i) % 2]
        solver = js.SVRG(0.3, rate, loss=loss)
        data, run = clear_run(solver, k)
        states, weights = trajectory(
            solver.cast(FLOAT), as_batch(data, data.index), as_batch(data, np.arange(N))
        )
        assert_close(weights, np.array(run.w), "reference", name="weights")
        np.testing.assert_array_equal(states.t, run.t)
        assert_close(states.mean, np.array(run.mean), "reference", name="mean")
        slopes = np.array(run.slopes)[:, :N]
        assert_close(-states.slopes, slopes, "reference", name="slopes")
        products = np.array(run.mean) @ data.X[:N].T * (data.weight[:N] > 0)
        assert_close(states.products, products, "reference", name="products")


@members.each(members.losses(), "loss")
def test_the_curvature_of_a_loss_is_the_largest_slope_of_its_slope(loss: Any) -> None:
    name, parameter = members.reference_loss(loss)
    z = np.linspace(-4, 4, 4001)
    largest = max(
        np.abs(np.diff([losses.slope(name, s, y, parameter) for s in z])).max() / (z[1] - z[0])
        for y in ((-1.0, 1.0) if loss.classification else (0.3,))
    )
    if loss.curvature is None:
        assert largest > 400  # it jumps
    else:
        np.testing.assert_allclose(float(loss.curvature), largest, rtol=1e-4)
        assert float(loss.curvature) == curvature(name, parameter)


# ---- through the engine ------------------------------------------------------------------------
ROWS, FEATURES, CLASSES, EPOCHS = 50, 8, 3, 3


def problem() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sparse rows, labels and weights, some of them 0."""
    rng = np.random.default_rng(4)
    X = (rng.normal(size=(ROWS, FEATURES)) * (rng.random((ROWS, FEATURES)) < 0.4)).astype(FLOAT)
    weight = rng.uniform(0.2, 2.0, ROWS) * (rng.random(ROWS) < 0.9)
    return X, rng.integers(CLASSES, size=ROWS), weight


def reference(y: np.ndarray, weight: np.ndarray, k: int) -> Any:
    X, _, _ = problem()
    batches = [list(range(at, min(at + k, ROWS))) for at in range(0, ROWS, k)]
    return svrg(
        X.astype(float), y, batches * EPOCHS, lam=0.05, loss="logistic",
        weights=weight / weight[weight > 0].mean(), epoch=len(batches),
    )  # fmt: skip


@pytest.mark.parametrize("k", [1, 7])
def test_rankers_on_dense_and_sparse_rows_equal_the_numpy_loop(k: int) -> None:
    """In one run, and in two with a stop between them, which leave the same bits."""
    X, labels, weight = problem()
    heavier = np.array([1.0, 3.0, 0.5])
    solver = js.SVRG(0.05)
    settings: dict[str, Any] = {"sample_weight": weight, "positive_weight": heavier}
    start = {**settings, "order": "cyclic", "batch_size": k}
    for rows in (X, scipy.sparse.csr_array(X)):
        fit = js.fit_one_vs_rest(solver, rows, labels, epochs=EPOCHS, **start)
        for c in range(CLASSES):
            y = np.where(labels == c, 1.0, -1.0)
            run = reference(y, weight * np.where(y > 0, heavier[c], 1.0), k)
            assert_close(fit.model.coef[c], run.w[-1], "run", name=f"coef of {c}")
        once = js.fit_one_vs_rest(solver, rows, labels, epochs=1, **start)
        more = js.fit_one_vs_rest(
            solver, rows, labels, epochs=EPOCHS - 1, state=once.state, **settings
        )
        assert_bitwise(more.model.coef, fit.model.coef)


def test_an_average_of_its_iterates_equals_the_numpy_loop() -> None:
    X, labels, weight = problem()
    y = np.where(labels == 0, 1.0, -1.0)
    run = reference(y, weight, 1)
    mean = averages.uniform_average(np.zeros(FEATURES), run.w, run.t)[-1]
    fit = js.fit(
        js.Averaged(js.SVRG(0.05)), X, y, epochs=EPOCHS, order="cyclic", sample_weight=weight
    )
    assert_close(fit.model.coef, mean, "run")


@pytest.mark.parametrize("order", ["uniform", "permutation"])
def test_a_snapshot_sees_every_row_once_whatever_the_order(order: str) -> None:
    X, labels, weight = problem()
    y = np.where(labels == 0, 1.0, -1.0)
    p = weight / weight.sum()
    fit = js.fit(js.SVRG(0.05), X, y, order=order, sample_weight=weight)
    mu = (0.5 * p * y) @ X  # v = y/2 at w = 0
    assert_close(fit.state.solver_state.mean, mu, "run")
    assert_close(fit.state.solver_state.products, X @ mu * (weight > 0), "run")


def test_a_source_trains_like_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_stream, "WINDOW_BYTES", 16 * FEATURES * FLOAT.itemsize)
    X, labels, weight = problem()
    settings: dict[str, Any] = {"order": "cyclic", "epochs": 2, "block_size": 8}
    whole = js.fit_one_vs_rest(js.SVRG(0.05), X, labels, sample_weight=weight, **settings)
    source = js.data.ArraySource(X, labels, weight, rows=7)
    fit = js.fit_one_vs_rest(js.SVRG(0.05), source, **settings)
    assert_close(fit.model.coef, whole.model.coef, "run", scale=1.0)


def test_drawn_negatives_have_the_gradient_of_the_rows_that_were_drawn() -> None:
    """Its mean is one over the rows of the epoch, so that its rounds stay unbiased."""
    X, labels, _ = problem()
    fit = js.fit_one_vs_rest(js.SVRG(0.05), X, labels, negatives=1.0)
    (state,) = fit.state.tiles()
    for c in range(CLASSES):
        slopes = np.asarray(state.slopes[c])
        drawn = slopes != 0  # v = y/2 at w = 0 for all of them
        assert drawn.sum() == float(state.live[c]) < ROWS
        assert_close(state.mean[c], -slopes @ X / drawn.sum(), "run")


def test_it_converges_to_the_optimum_at_a_constant_step() -> None:
    """On smooth losses; on the hinge it comes near."""
    X, labels, weight = problem()
    y = np.where(labels == 0, 1.0, -1.0)

    def excess(loss: Any, epochs: int) -> float:
        best = js.fit(js.SDCA(0.05, loss=loss), X, y, epochs=200, sample_weight=weight)
        fit = js.fit(js.SVRG(0.05, loss=loss), X, y, epochs=epochs, sample_weight=weight)
        ours, theirs = (
            float(
                js.metrics.objective(js.SDCA(0.05, loss=loss), f.model, X, y, sample_weight=weight)
            )
            for f in (fit, best)
        )
        return (ours - theirs) / theirs

    for loss in (js.losses.Logistic(), js.losses.SquaredHinge()):
        assert abs(excess(loss, 100)) < (1e-9 if FLOAT.itemsize == 8 else 1e-6)
    assert excess(js.losses.Hinge(), 60) < 0.05


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        (js.SVRG(0.0), r"lam must be .* > 0.*got 0"),
        (js.SVRG(0.5, 0.0), r"learning_rate must be .* > 0.*got 0"),
        (js.SVRG(0.5, 2.0), r"learning_rate must be below 1/lam.*got learning_rate \* lam = 1"),
        (js.SVRG(0.5, "fast"), r"learning_rate must be "),
    ],
)
def test_numbers_out_of_range_are_refused_by_name(solver: js.SVRG, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        js.fit(solver, np.eye(2), np.array([-1, 1]))
