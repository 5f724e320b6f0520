"""Dtypes: what is kept, what is promoted, what is refused."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references import pegasos as reference

import jaxsolvers as js
from jaxsolvers.engine import run
from jaxsolvers.engine.order import epoch_order, key_words
from jaxsolvers.engine.tile import advance
from jaxsolvers.features import Dense
from jaxsolvers.protocol import Batch, Problem

SOLVERS = {
    "pegasos": js.Pegasos(0.1),
    "projected": js.Pegasos(0.1, project=True),
    "rda": js.AdaGradRDA(0.1, regularizer=js.regularizers.ElasticNet(0.1, 0.1)),
    "mirror": js.AdaGradFOBOS(0.1, regularizer=js.regularizers.Box(-1.0, 1.0)),
    "mean": js.Averaged(js.Pegasos(0.1)),
    "polynomial": js.Averaged(js.AdaGradFOBOS(0.1), kind="polynomial"),
}
LOSSES = (
    js.losses.Hinge(),
    js.losses.SquaredHinge(),
    js.losses.SmoothedHinge(0.5),
    js.losses.Logistic(),
    js.losses.Squared(),
)
X = np.random.default_rng(19).normal(size=(8, 3)).astype(np.float32)
Y = np.array([0, 1, 2, 0, 1, 2, 0, 1])


def dtypes(tree: Any) -> set[str]:
    """The names of the dtypes of all leaves."""
    return {np.dtype(leaf.dtype).name for leaf in jax.tree.leaves(tree)}


@pytest.mark.parametrize("name", SOLVERS)
def test_a_round_in_float32_stays_in_float32_case_019(name):
    solver = SOLVERS[name].cast(np.float32)
    state = solver.init(Problem((3,), loss_at_zero=1.0), np.float32)
    rows = Batch(
        Dense(jnp.asarray(X[:4])),
        jnp.ones(4, np.float32),
        jnp.ones(4, np.float32),
        jnp.arange(4, dtype=np.int32),
    )
    after, info = jax.eval_shape(lambda s, state, rows: s.update(state, rows), solver, state, rows)
    assert dtypes(after) == {"float32", "int32"}
    assert dtypes(info) == {"float32", "bool"}
    assert jax.eval_shape(solver.weights, state).dtype == np.float32


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_a_loss_keeps_the_dtype_of_the_scores_case_019(loss):
    for dtype in (np.float16, jnp.bfloat16, np.float32):
        score, target = jnp.zeros(2, dtype), jnp.ones(2, dtype)
        value, slope = jax.eval_shape(loss.cast(dtype).value_and_slope, score, target)
        assert value.dtype == slope.dtype == dtype


@pytest.mark.parametrize("name", ["projected", "rda", "polynomial"])
def test_a_fit_in_float32_stays_in_float32_case_019(name):
    fit = js.fit_one_vs_rest(SOLVERS[name], X, Y, batch_size=4, intercept="column")
    assert dtypes(fit.state.solver_state) == {"float32", "int32"}
    assert fit.model.coef.dtype == fit.model.intercept.dtype == np.float32
    assert fit.model.decision_function(X.astype(np.float64)).dtype == np.float32
    assert fit.model.top_k(X, 2)[1].dtype == np.float32


def test_the_kind_of_the_learning_rate_changes_no_dtype_and_no_trace_case_020():
    rates = (0.125, jnp.bfloat16(0.125), np.float32(0.125), np.float64(0.125), np.float16(0.125))
    fits = [js.fit(js.AdaGradFOBOS(rates[0], delta=0.5), X, Y == 0)]
    before = advance._cache_size()
    fits += [js.fit(js.AdaGradFOBOS(rate, delta=0.5), X, Y == 0) for rate in rates[1:]]
    assert advance._cache_size() == before
    for fit in fits:
        assert dtypes((fit.model.coef, fit.state.solver_state)) == {"float32", "int32"}
        np.testing.assert_array_equal(fit.model.coef, fits[0].model.coef)
    whole = js.fit(js.AdaGradFOBOS(1, delta=np.int64(2)), X, Y == 0)
    np.testing.assert_array_equal(
        whole.model.coef, js.fit(js.AdaGradFOBOS(1.0, delta=2.0), X, Y == 0).model.coef
    )


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16])
def test_low_precision_rows_with_any_learning_rate_train_in_float32_case_020(dtype):
    for rate in (0.1, jnp.bfloat16(0.1), np.float64(0.1)):
        fit = js.fit(js.AdaGradRDA(rate), X.astype(dtype), Y == 0)
        assert dtypes((fit.model.coef, fit.state.solver_state)) == {"float32", "int32"}


@pytest.mark.parametrize("kind", ["array", "list", "view"])
def test_float64_without_64_bit_mode_warns_once_case_022(kind, x64):
    wide = X.astype(np.float64)
    given = {"array": wide, "list": wide.tolist(), "view": np.asfortranarray(wide)}[kind]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit = js.fit_one_vs_rest(js.Pegasos(0.1), given, Y, epochs=3)
        fit.model.predict(given)
    assert len(caught) == (0 if x64 else 1)
    assert fit.model.coef.dtype == (np.float64 if x64 else np.float32)
    if not x64:
        assert "64" in str(caught[0].message) and caught[0].filename == __file__
        single = js.fit_one_vs_rest(js.Pegasos(0.1), X, Y, epochs=3)
        np.testing.assert_array_equal(fit.model.coef, single.model.coef)


def test_scores_have_full_float32_accuracy_case_023():
    rng = np.random.default_rng(23)
    rows = rng.random((256, 4096), np.float32)
    coef = rng.random((2, 4096), np.float32)
    model = js.LinearModel(jnp.asarray(coef), jnp.zeros(2, np.float32), np.array(["a", "b"]))
    right = rows.astype(np.float64) @ coef.T.astype(np.float64)
    np.testing.assert_allclose(model.decision_function(rows), right, rtol=1e-5)
    np.testing.assert_array_equal(model.predict(rows), model.classes[right.argmax(axis=1)])


def test_float32_rows_are_never_copied_to_float64_case_025(monkeypatch):
    rng = np.random.default_rng(25)
    rows = rng.normal(size=(1000, 100)).astype(np.float32)
    y = np.where(rows[:, 0] + rng.normal(size=1000) > 0, 1, -1)
    seen: set[str] = set()

    def watched(*args: Any, **static: Any) -> Any:
        results = advance(*args, **static)
        seen.update(dtypes((args, results)))
        return results

    monkeypatch.setattr(run, "advance", watched)
    fit = js.fit(js.Pegasos(0.1, loss=js.losses.Logistic()), rows, y)
    assert seen == {"float32", "int32", "uint32", "bool"}  # uint32: the key of the epoch
    assert fit.model.coef.dtype == np.float32
    order = epoch_order("permutation", 1000, key_words(0), 0)
    exact = reference.pegasos(rows, y, order[:, None], lam=0.1, loss="logistic").w[-1]
    scores = np.asarray(fit.model.decision_function(rows))
    np.testing.assert_allclose(scores, rows.astype(np.float64) @ exact, atol=1e-4)


def test_low_precision_rows_do_not_stall_the_accumulators_case_026():
    # bfloat16 stops at 256 equal increments of 1.
    rows = np.ones((600, 1), jnp.bfloat16)
    y = np.where(np.arange(600) == 0, -1, 1)
    fit = js.fit(js.AdaGradFOBOS(1e-6), rows, y, order="cyclic", batch_size=200)
    np.testing.assert_array_equal(fit.state.solver_state.accumulator, [600])
