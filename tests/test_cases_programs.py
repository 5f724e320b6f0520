"""The compiled program: compilations, constants, single steps, padding and devices."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from jax.sharding import Mesh
from tolerances import assert_bitwise, assert_close, tolerance

import jaxsolvers as js
from jaxsolvers.engine import run
from jaxsolvers.engine.tile import advance
from jaxsolvers.features import Dense
from jaxsolvers.protocol import Batch, Problem, Solver

F = jnp.result_type(float)
FOUR = Mesh(np.array(jax.devices()[:4]), ("rankers",))


def problem(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n + d)
    X = rng.normal(size=(n, d)).astype(F)
    return X, np.where(X[:, 0] + rng.normal(size=n) > 0, 1, -1)


def by_calls(solver: Solver, X: np.ndarray, y: np.ndarray, sizes: list[int]) -> np.ndarray:
    """The weights after consecutive rounds of the given numbers of rows, a call for each."""
    solver = solver.cast(F)
    state = solver.init(Problem(X.shape[1:], loss_at_zero=1.0), F)
    step = jax.jit(lambda state, batch: solver.update(state, batch)[0])
    start = 0
    for size in sizes:
        at = slice(start, start + size)
        index = jnp.arange(at.start, at.stop, dtype=jnp.int32)
        rows, target = jnp.asarray(X[at]), jnp.asarray(y[at], F)
        state = step(state, Batch(Dense(rows), target, jnp.ones(size, F), index))
        start = at.stop
    return np.asarray(solver.weights(state))


@pytest.mark.parametrize("solver", [js.Pegasos(1e-2), js.Pegasos(1e-2, project=True)])
def test_one_call_equals_a_call_per_row_case_121(solver):
    X, y = problem(500, 16)
    fit = js.fit(solver, X, y, order="cyclic")
    assert_close(np.asarray(fit.model.coef), by_calls(solver, X, y, [1] * 500), "run")


@pytest.mark.parametrize("accumulate", ["example", "batch"])
def test_a_short_last_batch_compiles_nothing_new_and_counts_as_it_is_case_122(accumulate):
    X, y = problem(10, 7)
    solver = js.AdaGradFOBOS(0.1, accumulate=accumulate)
    before = advance._cache_size()
    fit = js.fit(solver, X, y, batch_size=4, epochs=3, order="cyclic")
    assert advance._cache_size() - before == 1
    by_hand = by_calls(solver, np.tile(X, (3, 1)), np.tile(y, 3), [4, 4, 2] * 3)
    assert_close(np.asarray(fit.model.coef), by_hand, "rewritten")
    assert int(fit.state.solver_state.t) == (30 if accumulate == "example" else 9)


def test_pegasos_divides_a_short_batch_by_its_own_rows_case_122():
    X, y = problem(10, 7)
    solver = js.Pegasos(0.5, project=True)
    fit = js.fit(solver, X, y, batch_size=4, epochs=3, order="cyclic")
    by_hand = by_calls(solver, np.tile(X, (3, 1)), np.tile(y, 3), [4, 4, 2] * 3)
    assert_close(np.asarray(fit.model.coef), by_hand, "rewritten")
    assert int(fit.state.solver_state.scalars.t) == 9


def test_new_numbers_keys_epochs_and_rows_compile_nothing_case_122():
    X, y = problem(10, 7)
    js.fit(js.AdaGradRDA(0.1), X, y, batch_size=4)
    before = advance._cache_size()
    fit = js.fit(js.AdaGradRDA(0.2, delta=1.0), X, y, batch_size=4, epochs=2, key=1)
    js.fit(js.AdaGradRDA(0.2), X[:9], y[:9], batch_size=4, sample_weight=np.arange(9) + 1)
    js.fit(js.AdaGradRDA(0.2, delta=1.0), X, y, batch_size=4, state=fit.state)
    assert advance._cache_size() == before


def test_rows_are_an_argument_and_no_constant_of_the_program_case_125(monkeypatch):
    X, y = problem(3000, 100)
    programs: list[str] = []

    def watched(*args: Any, **static: Any) -> Any:
        if not programs:
            programs.append(advance.lower(*args, **static).as_text())
        return advance(*args, **static)

    monkeypatch.setattr(run, "advance", watched)
    js.fit(js.Pegasos(0.1), X, y)
    assert X.nbytes > 1_000_000 > len(programs[0]) > 1000
    before = advance._cache_size()
    js.fit(js.Pegasos(0.1), X[::-1].copy(), y[::-1])
    assert advance._cache_size() == before


def test_sparse_rows_are_an_argument_and_no_constant_of_the_program_case_125(monkeypatch):
    rng = np.random.default_rng(0)
    n, d, stored = 20_000, 1000, 1_000_000
    data = rng.normal(size=stored).astype(jnp.result_type(float))
    indices = np.tile(np.sort(rng.choice(d, 50, replace=False)), n)
    X = scipy.sparse.csr_matrix((data, indices, np.arange(0, stored + 1, 50)), shape=(n, d))
    y = rng.integers(0, 2, n)
    programs: list[str] = []

    def watched(*args: Any, **static: Any) -> Any:
        if not programs:
            programs.append(advance.lower(*args, **static).as_text())
        return advance(*args, **static)

    monkeypatch.setattr(run, "advance", watched)
    js.fit(js.Pegasos(0.1), X, y)
    assert X.nnz == 1_000_000 and len(programs[0]) < 1_000_000
    before = advance._cache_size()
    js.fit(js.Pegasos(0.1), 2 * X[::-1], y)
    assert advance._cache_size() == before


@pytest.mark.parametrize("solver", [js.Pegasos(0.1), js.AdaGradFOBOS(0.1)])
def test_sparse_rows_need_no_copy_of_the_weights_per_ranker_case_124(monkeypatch, solver):
    """2,000 rankers of 500 features; 2,000 x 2,000 x 500 numbers would be 8 GB."""
    rng = np.random.default_rng(0)
    n_rankers, d, n = 2000, 500, 40
    X = scipy.sparse.random(n, d, 5 / d, "csr", jnp.result_type(float), rng=rng)
    temporary: list[int] = []

    def watched(*args: Any, **static: Any) -> Any:
        if not temporary:
            compiled = advance.lower(*args, **static).compile()
            temporary.append(compiled.memory_analysis().temp_size_in_bytes)
        return advance(*args, **static)

    monkeypatch.setattr(run, "advance", watched)
    js.fit_one_vs_rest(solver, X, np.arange(n) % n_rankers, classes=np.arange(n_rankers))
    assert 0 < temporary[0] <= 2 * n_rankers * d * X.dtype.itemsize


def test_three_classes_on_four_devices_case_127():
    X, _ = problem(5, 3)
    solver = js.Pegasos(0.1, project=True)
    y = np.array([0, 1, 2, 0, 1])
    alone = js.fit_one_vs_rest(solver, X, y, epochs=3)
    spread = js.fit_one_vs_rest(solver, X, y, epochs=3, mesh=FOUR)
    assert spread.model.coef.shape == (3, 3)
    assert_bitwise(np.asarray(spread.model.coef), np.asarray(alone.model.coef))
    np.testing.assert_array_equal(spread.model.predict(X), alone.model.predict(X))
    for name in ("progressive_loss", "mistakes", "violations"):
        np.testing.assert_array_equal(spread.history[name], alone.history[name])


def test_more_classes_than_devices_case_127():
    X, _ = problem(9, 3)
    y = np.arange(9)
    solver = js.AdaGradFOBOS(0.1)
    alone, spread = (js.fit_one_vs_rest(solver, X, y, mesh=mesh) for mesh in (None, FOUR))
    assert_bitwise(np.asarray(spread.model.coef), np.asarray(alone.model.coef))


def test_a_single_ranker_on_four_devices_case_127():
    X, y = problem(5, 3)
    alone, spread = (js.fit(js.AdaGradFOBOS(0.1), X, y, mesh=mesh) for mesh in (None, FOUR))
    assert_bitwise(np.asarray(spread.model.coef), np.asarray(alone.model.coef))


def test_a_mesh_as_jax_makes_it_by_default_case_127():
    X, y = problem(5, 3)
    alone = js.fit(js.AdaGradFOBOS(0.1), X, y)
    spread = js.fit(js.AdaGradFOBOS(0.1), X, y, mesh=jax.make_mesh((4,), ("rankers",)))
    assert_bitwise(np.asarray(spread.model.coef), np.asarray(alone.model.coef))


@pytest.mark.parametrize("block_size", [None, 15])
@pytest.mark.parametrize("mesh", [None, FOUR], ids=["alone", "mesh"])
def test_padding_rows_weigh_nothing_in_mean_and_gradient_case_128(block_size, mesh):
    X = np.array([[1.0], [2.0], [-1.0], [0.5], [3.0]], F)
    y = np.sqrt(2 * np.array([1, 1, 1, 1, 6]))  # squared losses 1, 1, 1, 1, 6 at w = 0
    solver = js.AdaGradFOBOS(1.0, loss=js.losses.Squared(), accumulate="batch")
    options = {"order": "cyclic", "batch_size": 5, "block_size": block_size, "mesh": mesh}
    fit = js.fit(solver, X, y, **options)
    rtol = tolerance("reference", F)
    np.testing.assert_allclose(fit.history["progressive_loss"], [2.0], rtol=rtol)
    gradient = -np.mean(y * X[:, 0])
    np.testing.assert_allclose(fit.state.solver_state.accumulator, [gradient**2], rtol=rtol)


def test_batches_of_unequal_size_are_weighed_by_their_rows_case_128():
    X = np.zeros((5, 1), F)  # every row is scored 0
    y = np.sqrt(2 * np.array([1, 1, 1, 1, 6]))
    solver = js.Pegasos(0.1, loss=js.losses.Squared())
    for batch_size in (3,):
        fit = js.fit(solver, X, y, order="cyclic", batch_size=batch_size)
        found = fit.history["progressive_loss"]
        np.testing.assert_allclose(found, [2.0], rtol=tolerance("reference", F))
