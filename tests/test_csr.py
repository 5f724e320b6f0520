"""Sparse matrices of any kind become one form, and the caller's own is never changed."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from contracts.streams import FLOAT
from jax.experimental import sparse as jax_sparse
from sparse_rows import dense, fuzzed

import jaxsolvers as js
from jaxsolvers.csr import check_csr, is_sparse
from jaxsolvers.protocol import Problem

FORMATS = ("csr", "csc", "coo", "lil", "dok", "dia", "bsr")


def raw(data: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> Any:
    """A SciPy CSR matrix holding these very arrays, sound or not."""
    matrix = scipy.sparse.csr_matrix(shape)
    matrix.data, matrix.indices, matrix.indptr = map(np.asarray, (data, indices, indptr))
    return matrix


@pytest.mark.parametrize("seed", range(20))
def test_fuzzed_matrices_become_canonical_and_stay_as_they_were(seed: int) -> None:
    X = fuzzed(30, 12, seed)
    before = [array.copy() for array in (X.data, X.indices, X.indptr)]
    ours = check_csr(X)
    np.testing.assert_allclose(ours.dense(float), dense(X), rtol=1e-14, atol=1e-14)
    for row in range(30):
        columns = ours.indices[ours.indptr[row] : ours.indptr[row + 1]]
        assert (np.diff(columns) > 0).all()
    for array, copy in zip((X.data, X.indices, X.indptr), before, strict=True):
        np.testing.assert_array_equal(array, copy)
    assert ours.indices.dtype == np.int32 and ours.indptr.dtype == np.int64


@pytest.mark.parametrize("make", ["matrix", "array"])
@pytest.mark.parametrize("form", FORMATS)
def test_every_scipy_format_is_taken(form: str, make: str) -> None:
    whole = dense(fuzzed(30, 12, 1))
    X = getattr(scipy.sparse, f"{form}_{make}")(whole)
    assert is_sparse(X)
    np.testing.assert_array_equal(check_csr(X).dense(float), whole)


def test_a_canonical_matrix_is_not_copied() -> None:
    X = scipy.sparse.csr_matrix(dense(fuzzed(30, 12, 2)))
    ours = check_csr(X)
    assert np.shares_memory(ours.data, X.data) and np.shares_memory(ours.indices, X.indices)


def test_rows_are_taken_in_any_order_and_repeated() -> None:
    ours = check_csr(fuzzed(30, 12, 3))
    whole = ours.dense(float)
    rows = np.array([7, 0, 29, 7, 3])
    np.testing.assert_array_equal(ours.take(rows).dense(float), whole[rows])
    np.testing.assert_array_equal(ours.take(slice(4, 9)).dense(float), whole[4:9])
    np.testing.assert_array_equal(ours.take(slice(9, 4)).dense(float), whole[9:4])
    np.testing.assert_array_equal(ours.take(np.zeros(0, int)).dense(float), whole[:0])


def test_active_columns_are_those_with_an_entry() -> None:
    ours = check_csr(fuzzed(30, 12, 4)).take(slice(0, 5))
    columns, place = ours.active()
    np.testing.assert_array_equal(columns[place], ours.indices)
    assert (np.diff(columns) > 0).all()


def test_small_integers_and_bools_are_summed_without_wrapping() -> None:
    X = raw(np.full(3, 100, np.int8), [1, 1, 1], [0, 3], (1, 2))
    np.testing.assert_array_equal(check_csr(X).dense(float), [[0, 300]])
    X = raw([True, True], [0, 0], [0, 2], (1, 2))
    np.testing.assert_array_equal(check_csr(X).dense(float), [[2, 0]])


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (raw([1.0], [5], [0, 1], (1, 3)), r"X must have columns in 0 \.\.\. 2, got .* 5"),
        (raw([1.0], [-1], [0, 1], (1, 3)), r"X must have columns in 0 \.\.\. 2, got .* -1"),
        (raw([1.0], [2**40], [0, 1], (1, 3)), r"X must have columns .* 1099511627776"),
        (raw([1.0], [0], [0, 2], (1, 3)), "X must be a sound CSR matrix"),
        (raw([1.0, 2.0], [0, 1], [0, 2, 1], (2, 3)), "X must be a sound CSR matrix"),
        (raw([np.nan], [2], [0, 0, 1], (2, 3)), r"X must be finite, got nan at \(1, 2\)"),
        (raw([1.0, np.inf], [0, 1], [0, 1, 2], (2, 3)), r"X must be finite, got inf at \(1, 1\)"),
        (raw([1j], [0], [0, 1], (1, 3)), "X must hold real numbers, got dtype complex128"),
        (scipy.sparse.csr_matrix((3, 0)), "X must have at least one feature"),
    ],
)
def test_unsound_matrices_are_refused(matrix: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        js.fit(js.Pegasos(0.1), matrix, np.arange(matrix.shape[0]) % 2)


def test_a_matrix_without_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="X must have at least one row, got 0 samples"):
        js.fit(js.Pegasos(0.1), scipy.sparse.csr_matrix((0, 3)), [])


def test_a_matrix_of_zeros_trains() -> None:
    fit = js.fit(js.AdaGradRDA(0.1), scipy.sparse.csr_matrix((4, 3), dtype=FLOAT), [0, 1, 0, 1])
    np.testing.assert_array_equal(fit.model.coef, np.zeros(3))


# ---- BCOO ----------------------------------------------------------------------------------------
def bcoo(data: Any, positions: Any, shape: tuple[int, int]) -> Any:
    return jax_sparse.BCOO((jnp.asarray(data, FLOAT), jnp.asarray(positions)), shape=shape)


def test_a_bcoo_matrix_trains_like_its_dense_form() -> None:
    whole = dense(fuzzed(40, 12, 5)).astype(FLOAT)
    X = jax_sparse.BCOO.fromdense(jnp.asarray(whole), nse=whole.size)  # with padding entries
    y = np.arange(40) % 2
    sparse, expected = (js.fit(js.Pegasos(0.1), rows, y).model.coef for rows in (X, whole))
    np.testing.assert_allclose(sparse, expected, rtol=1e-5, atol=1e-6)


def test_a_bcoo_with_batches_is_refused() -> None:
    X = jax_sparse.BCOO.fromdense(jnp.ones((3, 2)), n_batch=1)
    with pytest.raises(ValueError, match=r"X must be 2-d .* 1 batch"):
        js.fit(js.Pegasos(0.1), X, [0, 1, 0])


# ---- cases ---------------------------------------------------------------------------------------
SOLVERS = [
    js.Pegasos(0.1),
    js.AdaGradRDA(0.3, regularizer=js.regularizers.L1(0.01)),
    js.AdaGradFOBOS(0.3, regularizer=js.regularizers.L1(0.01)),
]


def test_64_bit_indices_give_the_same_bits_case_028() -> None:
    narrow = scipy.sparse.csr_matrix(dense(fuzzed(40, 12, 6)).astype(FLOAT))
    wide = raw(narrow.data, narrow.indices.astype(np.int64), narrow.indptr.astype(np.int64),
               narrow.shape)  # fmt: skip
    y = np.arange(40) % 2
    for solver in SOLVERS:
        models = [js.fit(solver, X, y).model for X in (narrow, wide)]
        np.testing.assert_array_equal(models[0].coef, models[1].coef)
        np.testing.assert_array_equal(models[0].predict(narrow), models[1].predict(wide))


def test_columns_beyond_int32_are_refused_by_name_case_028() -> None:
    with pytest.raises(ValueError, match="X must have columns"):
        js.fit(js.Pegasos(0.1), raw([1.0], [2**31], [0, 1, 1], (2, 3)), [0, 1])
    X = scipy.sparse.coo_matrix((2, 2**31))
    with pytest.raises(ValueError, match=r"X must have at most 2\^31 - 1 rows and columns"):
        js.fit(js.Pegasos(0.1), X, [0, 1])


def test_repeated_coordinates_are_summed_before_they_are_squared_case_029() -> None:
    X = bcoo([1.0, 5.0, 3.0], [[0, 2], [0, 0], [0, 2]], (1, 3))
    ours = check_csr(X)
    np.testing.assert_array_equal(ours.dense(float), [[5, 0, 4]])
    assert ours.data @ ours.data == 41
    solver = js.AdaGradRDA(1.0)
    both = bcoo([1.0, 5.0, 3.0, 1.0], [[0, 2], [0, 0], [0, 2], [1, 1]], (2, 3))
    fit = js.fit(solver, both, [1, 0], order="cyclic")
    np.testing.assert_array_equal(fit.state.solver_state.accumulator, [25, 1, 16])


def test_unsorted_and_repeated_columns_equal_the_dense_rows_case_031() -> None:
    X = raw([1.0, 2, 3, 1], [2, 0, 2, 1], [0, 3, 4], (2, 3))
    whole = np.array([[2, 0, 4], [0, 1, 0]], float)
    for solver in SOLVERS:
        models = [js.fit(solver, rows.astype(FLOAT), [0, 1], epochs=3).model for rows in (X, whole)]
        np.testing.assert_allclose(models[0].coef, models[1].coef, rtol=1e-5)
    assert X.indices.tolist() == [2, 0, 2, 1]


def test_empty_last_columns_count_case_032() -> None:
    X = raw([1.0, 2.0], [0, 2], [0, 1, 2], (2, 5)).astype(FLOAT)
    model = js.fit(js.Pegasos(0.1), X, [0, 1]).model
    assert model.n_features == 5 and model.coef.shape == (5,)
    assert model.predict(np.zeros((1, 5), FLOAT)).shape == (1,)
    assert model.predict(X).tolist() == [0, 1]


def test_positions_beyond_int32_land_where_they_belong_case_034() -> None:
    n, d = 70_000, 40_000
    X = raw([1.5], [d - 1], np.append(np.zeros(n, int), 1), (n, d)).astype(FLOAT)
    coef = jnp.zeros(d, FLOAT).at[-1].set(2)
    scores = js.LinearModel(coef, jnp.zeros((), FLOAT), None).decision_function(X)
    assert np.flatnonzero(scores).tolist() == [n - 1] and scores[-1] == 3
    y = np.zeros(n)
    y[-1] = 1
    fit = js.fit(js.AdaGradFOBOS(0.5), X, y, order="cyclic")
    assert np.flatnonzero(fit.model.coef).tolist() == [d - 1]


def test_sparse_and_dense_rows_train_the_same_model_case_035() -> None:
    whole = np.random.default_rng(0).normal(size=(6, 2)).astype(FLOAT)
    y = [0, 1, 0, 1, 1, 0]
    for solver in SOLVERS:
        for intercept in ("none", "column"):
            settings: dict[str, Any] = {"epochs": 5, "intercept": intercept}
            sparse = js.fit(solver, scipy.sparse.csr_matrix(whole), y, **settings).model
            expected = js.fit(solver, whole, y, **settings).model
            np.testing.assert_allclose(sparse.coef, expected.coef, atol=1e-6)
            np.testing.assert_allclose(sparse.intercept, expected.intercept, atol=1e-6)


def test_owed_l1_steps_stop_at_zero_case_037() -> None:
    """From w = 0.5, H = 1, eta = 0.1, l1 = 1: k rounds without the feature, by proxes and owed."""
    solver = js.AdaGradFOBOS(0.1, 1.0, regularizer=js.regularizers.L1(1.0)).cast(FLOAT)
    for k, expected in ((3, 0.2), (5, 0.0), (7, 0.0)):
        state = solver.init(Problem((1,)), FLOAT)
        state = state._replace(current=jnp.full(1, 0.5, FLOAT))
        owed = solver.age(state, jnp.full(1, k, jnp.int32), jnp.int32(1)).current
        for _ in range(k):
            state = solver.absorb(state, jnp.zeros(1, FLOAT), rounds=jnp.int32(1))
        np.testing.assert_allclose(owed, [expected], atol=1e-7)
        np.testing.assert_allclose(state.current, [expected], atol=1e-7)
