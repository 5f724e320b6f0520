"""Kernels against the formula pair by pair, and against scikit-learn's."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from references import kernels as reference
from sklearn.metrics import pairwise
from tolerances import assert_close

import jaxsolvers as js
from jaxsolvers import kernels
from jaxsolvers.kernels import Columns, dense_tiles

FLOAT = np.dtype(jnp.result_type(float))
MEMBERS = [
    (js.kernels.Linear(), "linear", {}),
    (js.kernels.RBF(0.3), "rbf", {"gamma": 0.3}),
    (js.kernels.Laplacian(0.3), "laplacian", {"gamma": 0.3}),
    (js.kernels.Polynomial(3, 0.5, 2.0), "polynomial", {"degree": 3, "gamma": 0.5, "coef0": 2.0}),
    (js.kernels.Polynomial(1), "polynomial", {"degree": 1, "gamma": 1.0, "coef0": 1.0}),
]
each = pytest.mark.parametrize(("kernel", "name", "numbers"), MEMBERS)
RNG = np.random.default_rng(0)
X = np.asarray(RNG.normal(size=(13, 6)) * (RNG.random((13, 6)) < 0.6), FLOAT)
Z = np.asarray(RNG.normal(size=(7, 6)), FLOAT)
X[4] = X[9] = 0


@each
def test_values_are_the_formula_and_scikit_learns(
    kernel: Any, name: str, numbers: dict[str, float]
) -> None:
    expected = reference.matrix(name, X, Z, **numbers)
    assert_close(kernel.matrix(X, Z), expected, "reference")
    theirs = getattr(pairwise, f"{name}_kernel")(X.astype(float), Z.astype(float), **numbers)
    np.testing.assert_allclose(expected, theirs, rtol=1e-12)
    own = reference.matrix(name, X, X, **numbers)
    assert_close(kernel.matrix(X), own, "reference")
    assert_close(Columns(kernel.cast(FLOAT), X, FLOAT).diagonal(), np.diag(own), "reference")


@each
def test_tiles_and_sparse_rows_change_nothing(
    kernel: Any, name: str, numbers: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = kernel.matrix(X, Z)
    monkeypatch.setattr(kernels, "TILE_ROWS", 4)
    sparse = scipy.sparse.csr_matrix(X)
    for rows in (X, jnp.asarray(X), sparse, sparse.tocoo()):
        assert_close(kernel.matrix(rows, Z), whole, "rewritten")
    assert_close(kernel.matrix(Z, sparse), np.asarray(whole).T, "rewritten")
    few = Columns(kernel.cast(FLOAT), kernels.checked_rows(sparse, None, "X"), FLOAT, budget=0)
    assert_close(few.values(jnp.asarray(Z)), np.asarray(whole).T, "rewritten")
    assert_close(few.diagonal(), jnp.diagonal(kernel.matrix(X)), "rewritten")


def test_features_near_1000_are_accurate_in_float32() -> None:
    """Expanded around the origin, squared distances near 1 would be off by about 1."""
    rows = (1000 + RNG.normal(size=(40, 6))).astype(np.float32)
    K = js.kernels.RBF(0.5).matrix(rows)
    assert K.dtype == np.float32 and float(K.max()) <= 1
    np.testing.assert_allclose(K, reference.matrix("rbf", rows, rows, gamma=0.5), atol=2e-6)
    wide = np.repeat(rows, 30, axis=0)  # the last tile is mostly filled up
    monotone = js.kernels.RBF(0.5).matrix(rows, wide[:1025])
    np.testing.assert_allclose(monotone[:, 1024], K[:, 34], atol=2e-6)


def test_a_new_number_makes_no_new_trace_and_has_a_derivative() -> None:
    traces = []

    @jax.jit
    def entry(kernel: Any) -> Any:
        traces.append(1)
        return kernel.values(jnp.asarray(X), jnp.asarray(Z))[2, 3]

    for gamma in (0.1, 0.2):
        entry(js.kernels.RBF(gamma).cast(FLOAT))
    assert len(traces) == 1
    slope = jax.grad(lambda g: entry(js.kernels.RBF(g)))(jnp.asarray(0.2, FLOAT))
    square = float(((X[2] - Z[3]) ** 2).sum())
    np.testing.assert_allclose(slope, -square * np.exp(-0.2 * square), rtol=1e-4)


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16, np.int32, bool])
def test_other_dtypes_become_the_working_one(dtype: Any) -> None:
    rows = (X > 0.3).astype(dtype)
    K = js.kernels.Linear().matrix(rows)
    assert K.dtype == (FLOAT if np.dtype(dtype).kind in "ib" else np.float32)
    np.testing.assert_array_equal(K, rows.astype(float) @ rows.astype(float).T)


def test_a_function_is_a_kernel() -> None:
    seen = []

    def by_numpy(A: Any, B: Any) -> Any:
        seen.append(np.shape(A))
        return np.asarray(A) @ np.asarray(B).T + 1

    kernel = kernels.as_kernel(by_numpy)
    assert_close(kernel.matrix(X, Z), (X @ Z.T + 1).astype(FLOAT), "rewritten")
    diagonal = Columns(kernel, X, FLOAT).diagonal()
    assert_close(diagonal, ((X * X).sum(axis=1) + 1).astype(FLOAT), "rewritten")
    assert jax.tree.leaves(kernel) == []


@pytest.mark.parametrize(
    ("match", "bad"),
    [
        (r"^gamma must be a finite number > 0, got 0", lambda: js.kernels.RBF(0.0).validate()),
        (r"^gamma must be", lambda: js.kernels.Laplacian(np.nan).validate()),
        (r"^degree must be an integer >= 1, got 0", lambda: js.kernels.Polynomial(0).validate()),
        (r"^degree must be", lambda: js.kernels.Polynomial(2.5).validate()),
        (r"^coef0 must be", lambda: js.kernels.Polynomial(2, 1.0, -1.0).validate()),
        (r"^Z must be of shape \(n, 6\)", lambda: js.kernels.Linear().matrix(X, Z[:, :5])),
        (r"^X must be finite", lambda: js.kernels.Linear().matrix(X * np.nan)),
        (r"^X must be 2-d", lambda: js.kernels.Linear().matrix(X[0])),
        (
            r"^kernel must be a function .* here \(7, 13\), it returned shape \(13, 7\)",
            lambda: kernels.as_kernel(lambda A, B: np.ones((len(B), len(A)))).matrix(Z, X),
        ),
        (r"^kernel must be one of js.kernels", lambda: kernels.as_kernel("rbf")),
    ],
)
def test_bad_input_is_named(match: str, bad: Any) -> None:
    with pytest.raises(ValueError, match=match):
        bad()


def test_tiles_cover_every_row_once() -> None:
    for rows in (X, jnp.asarray(X), scipy.sparse.csr_matrix(X)):
        checked = kernels.checked_rows(rows, None, "X")
        tiles = list(dense_tiles(checked, FLOAT, 4))
        assert [(start, count) for start, count, _ in tiles] == [(0, 4), (4, 4), (8, 4), (12, 1)]
        assert all(tile.shape == (4, 6) for _, _, tile in tiles)
        np.testing.assert_array_equal(tiles[3][2], np.repeat(X[12:], 4, axis=0))
