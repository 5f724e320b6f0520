"""Sparse rows score what they score as dense ones, in tiles of rows and of rankers."""

from __future__ import annotations

import tracemalloc
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from jax.experimental.sparse import BCOO

import jaxsolvers as js
from jaxsolvers.csr import check_csr
from jaxsolvers.models import scores as scoring

F = jnp.result_type(float)
RNG = np.random.default_rng(34)
N, D, K = 40, 60, 11
# Small integers: every product and sum is exact, whatever its order.
COEF = (RNG.integers(-4, 5, (K, D)) * (RNG.random((K, D)) < 0.4)).astype(F)
INTERCEPT = RNG.integers(-3, 4, K).astype(F)
X = (RNG.integers(-5, 6, (N, D)) * (RNG.random((N, D)) < 0.07)).astype(F)
X[[0, 7, 8, N - 1]] = 0
NAMES = np.array([f"class {k}" for k in RNG.permutation(K)])
SCORES = X @ COEF.T + INTERCEPT
RANKED = np.array([sorted(range(K), key=lambda k, row=row: (-row[k], k)) for row in SCORES])


@pytest.fixture(params=[False, True], ids=["whole", "tiles"])
def tiled(request: Any, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Once as users run it, once with a few numbers to an array: many tiles of everything."""
    if request.param:
        monkeypatch.setattr(scoring, "_NUMBERS", 64)
        monkeypatch.setattr(scoring, "_MANY", 4)
        monkeypatch.setattr(scoring, "_FEW_ROWS", 2)
        monkeypatch.setattr(scoring, "_NARROW", 2)
    return request.param


def kinds(dense: np.ndarray) -> list[Any]:
    """The rows as every kind of matrix that is taken."""
    csr = scipy.sparse.csr_matrix(dense)
    return [
        csr, csr.tocsc(), csr.tocoo(), csr.tolil(), csr.todok(), csr.tobsr(),
        scipy.sparse.csr_array(dense), scipy.sparse.coo_array(dense),
        BCOO.fromdense(jnp.asarray(dense)), check_csr(csr),
    ]  # fmt: skip


def models() -> list[js.LinearModel]:
    """Rankers on the device, on the host, and sparse."""
    device = js.LinearModel(jnp.asarray(COEF), jnp.asarray(INTERCEPT), NAMES)
    return [device, js.LinearModel(COEF, INTERCEPT, NAMES), device.sparsify()]


def test_every_kind_of_matrix_scores_as_the_dense_one() -> None:
    for model in models():
        for rows in kinds(X):
            np.testing.assert_array_equal(model.decision_function(rows), SCORES)
        np.testing.assert_array_equal(model.decision_function(X), SCORES)


def test_labels_and_best_classes_of_sparse_and_dense_rows(tiled: bool) -> None:
    for model in models():
        for rows in (jnp.asarray(X), scipy.sparse.csr_matrix(X)):
            found = model.decision_function(rows)
            assert isinstance(found, jax.Array) and found.dtype == F
            np.testing.assert_array_equal(found, SCORES)
            np.testing.assert_array_equal(model.predict(rows), NAMES[RANKED[:, 0]])
            for k in (1, 6, K):
                indices, scores = model.top_k(rows, k)
                assert indices.dtype == np.int32 and indices.shape == (N, k)
                np.testing.assert_array_equal(indices, RANKED[:, :k])
                best = np.take_along_axis(SCORES, RANKED, 1)[:, :k]
                np.testing.assert_array_equal(scores, best)


def test_ties_over_tiles_go_to_the_lowest_index(tiled: bool) -> None:
    coef = np.tile(COEF[:2], (5, 1))  # ranker k equals k - 2, k - 4, ...
    intercept = np.tile(INTERCEPT[:2], 5)
    intercept[[4, 7]] = -np.inf
    rows = scipy.sparse.csr_matrix(X)
    scores = X @ coef.T + intercept
    order = np.array([sorted(range(10), key=lambda k, row=row: (-row[k], k)) for row in scores])
    for coefs in (coef, jnp.asarray(coef), scipy.sparse.csr_matrix(coef)):
        model = js.LinearModel(coefs, intercept, None)
        for given in (X, rows):
            np.testing.assert_array_equal(model.predict(given), order[:, 0])
            for k in (1, 9):
                np.testing.assert_array_equal(model.top_k(given, k)[0], order[:, :k])


def test_a_single_ranker(tiled: bool) -> None:
    rows = scipy.sparse.csr_matrix(X)
    for coef in (COEF[0], jnp.asarray(COEF[0]), scipy.sparse.csr_matrix(COEF[:1])):
        model = js.LinearModel(coef, 0.5, np.array(["no", "yes"]))
        scores = X @ COEF[0] + 0.5
        for given in (X, rows):
            found = model.decision_function(given)
            assert found.shape == (N,)
            np.testing.assert_array_equal(found, scores)
            for level in (0.0, 2.5):
                expected = np.where(scores > level, "yes", "no")
                np.testing.assert_array_equal(model.predict(given, level), expected)
        regression = js.LinearModel(coef, 0.5, None)
        np.testing.assert_array_equal(regression.predict(rows), scores)


def test_chosen_classes_only(tiled: bool) -> None:
    chosen = NAMES[[4, 0, 9, 4, 2, 8]]
    for model in models():
        for rows in (X, scipy.sparse.csr_matrix(X)):
            found = model.decision_function(rows, classes=chosen)
            np.testing.assert_array_equal(found, SCORES[:, [4, 0, 9, 4, 2, 8]])


def test_random_rows_to_rounding_and_the_same_labels() -> None:
    rng = np.random.default_rng(6)
    coef = rng.normal(size=(50, 700)).astype(F)
    rows = scipy.sparse.random(300, 700, 0.03, random_state=7, format="csr", dtype=F)
    for model in (js.LinearModel(coef, np.zeros(50, F), None), js.LinearModel(coef[0], 0.0, None)):
        dense = model.decision_function(rows.toarray())
        np.testing.assert_allclose(model.decision_function(rows), dense, rtol=1e-6, atol=2e-6)
    model = js.LinearModel(coef, np.zeros(50, F), None)
    np.testing.assert_array_equal(model.predict(rows), model.predict(rows.toarray()))


def test_no_rows_and_rows_without_entries() -> None:
    for model in models():
        empty = scipy.sparse.csr_matrix((0, D), dtype=F)
        assert model.decision_function(empty).shape == (0, K)
        assert model.predict(empty).shape == (0,) and model.predict(empty).dtype == NAMES.dtype
        assert [part.shape for part in model.top_k(empty, 2)] == [(0, 2)] * 2
        blank = scipy.sparse.csr_matrix((3, D), dtype=F)
        np.testing.assert_array_equal(model.decision_function(blank), np.tile(INTERCEPT, (3, 1)))
        assert model.predict(blank).tolist() == [NAMES[np.argmax(INTERCEPT)]] * 3


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, bool, np.float64, np.float32])
def test_entries_of_any_real_dtype(dtype: Any) -> None:
    dense = np.abs(X).astype(dtype)
    for model in models():
        found = model.decision_function(scipy.sparse.csr_matrix(dense))
        assert found.dtype == F
        np.testing.assert_array_equal(found, dense.astype(F) @ COEF.T + INTERCEPT)


def test_unsorted_and_repeated_entries_are_summed_and_left_as_they_are() -> None:
    data, columns = np.array([1, 2, 4, 8], F), np.array([5, 1, 5, 0], np.int64)
    rows = scipy.sparse.csr_matrix((data, columns, np.array([0, 3, 4])), shape=(2, D))
    dense = np.zeros((2, D), F)
    dense[0, [5, 1]], dense[1, 0] = [5, 2], 8
    for model in models():
        np.testing.assert_array_equal(model.decision_function(rows), dense @ COEF.T + INTERCEPT)
    assert rows.nnz == 4 and rows.indices.tolist() == [5, 1, 5, 0]


WRONG = {
    "narrow": (scipy.sparse.csr_matrix(X[:, :9]), r"of shape \(n, 60\).*got shape \(40, 9\)"),
    "NaN": (scipy.sparse.csr_matrix(np.full((2, D), np.nan)), r"finite, got nan at \(0, 0\)"),
    "complex": (scipy.sparse.csr_matrix(X.astype(complex)), "real numbers, got dtype complex"),
    "1-d": (scipy.sparse.coo_array(X[1]), r"2-d .*got shape \(60,\)"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_sparse_rows_that_do_not_fit(kind: str) -> None:
    rows, words = WRONG[kind]
    model = models()[0]
    for ask in (model.predict, model.decision_function, lambda X: model.top_k(X, 1)):
        with pytest.raises(ValueError, match=rf"^X must .*{words}"):
            ask(rows)


def test_entries_beyond_the_range_of_the_model() -> None:
    rows = scipy.sparse.csr_matrix(([1.0, 1e300], ([0, 1], [3, 3])), shape=(2, D))
    model = js.LinearModel(COEF.astype(np.float32), INTERCEPT.astype(np.float32), NAMES)
    for given in (rows, rows.toarray()):
        with pytest.raises(ValueError, match=r"^X must be within the range of float32"):
            model.predict(given)


def test_positions_beyond_int32_land_where_they_belong_case_034() -> None:
    n, d = 70000, 40000  # n * d > 2^31
    rows = scipy.sparse.coo_matrix(([1.5], ([n - 1], [d - 1])), shape=(n, d))
    coef = np.zeros(d, F)
    coef[d - 1] = 2
    right = np.zeros(n)
    right[-1] = 3
    np.testing.assert_array_equal(js.LinearModel(coef, 0.0, None).decision_function(rows), right)
    two = np.stack([0 * coef, coef])
    for model in (
        js.LinearModel(two, np.zeros(2, F), None),
        js.LinearModel(two, [0, 0], None).sparsify(),
    ):
        np.testing.assert_array_equal(
            model.decision_function(rows), np.stack([0 * right, right], 1)
        )
        np.testing.assert_array_equal(model.predict(rows), right > 0)


def test_memory_is_bounded_whatever_the_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 rankers on 50,000 features, sparse: dense they would take 4 GB."""
    n, d, k = 600, 50000, 20000
    rng = np.random.default_rng(1)

    def random(height: int, entries: int) -> Any:
        place = (rng.integers(0, height, entries), rng.integers(0, d, entries))
        values = rng.normal(size=entries).astype(np.float32)
        return scipy.sparse.coo_matrix((values, place), shape=(height, d)).tocsr()

    coef, rows = random(k, 20000), random(n, 30000)
    model = js.LinearModel(coef, np.zeros(k, np.float32), None)
    sizes: set[tuple[int, ...]] = set()
    program = scoring._scores

    def watched(coef: Any, intercept: Any, X: Any, *rest: Any, **static: Any) -> Any:
        found = program(coef, intercept, X, *rest, **static)
        sizes.update(array.shape for array in (coef, X, found))
        return found

    monkeypatch.setattr(scoring, "_scores", watched)
    model.predict(rows[:2])
    tracemalloc.start()
    labels = model.predict(rows)
    indices, _ = model.top_k(rows[:9], 500)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert max(np.prod(shape) for shape in sizes) <= 2 * scoring._NUMBERS
    assert peak < 60e6
    assert len(sizes) < 40  # few programs, whatever the rows hold
    exact = rows.astype(np.float64) @ coef.T.astype(np.float64)
    own = np.asarray(exact[np.arange(n), labels]).ravel()
    np.testing.assert_allclose(own, exact.max(axis=1).toarray().ravel(), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(indices[:, 0], labels[:9])


def test_few_programs_for_many_sizes() -> None:
    model = js.LinearModel(jnp.asarray(COEF), jnp.asarray(INTERCEPT), NAMES)
    scoring._scores.clear_cache()
    for n in range(1, N):
        model.decision_function(scipy.sparse.csr_matrix(X[:n]))
    assert scoring._scores._cache_size() <= 14
