"""Sparse coefficients: the same predictions, pruning with its price, the objective."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import members
import numpy as np
import pytest
import scipy.sparse
from references import losses as reference
from tolerances import assert_close

import jaxsolvers as js
from jaxsolvers.csr import Csr
from jaxsolvers.models import sparsity
from jaxsolvers.protocol import Loss

F = jnp.result_type(float)
RNG = np.random.default_rng(8)
N, D, K = 30, 12, 5
COEF = (RNG.normal(size=(K, D)) * (RNG.random((K, D)) < 0.5)).astype(F)
COEF[2] = 0
INTERCEPT = RNG.normal(size=K).astype(F)
INTERCEPT[2] = -np.inf
X = (RNG.normal(size=(N, D)) * (RNG.random((N, D)) < 0.4)).astype(F)
NAMES = np.array(["e", "b", "d", "a", "c"])


def model(coef: Any = COEF, classes: Any = NAMES, output: str = "label") -> js.LinearModel:
    return js.LinearModel(jnp.asarray(coef), jnp.asarray(INTERCEPT), classes, output)


def test_exact_zeros_are_dropped_and_nothing_else_changes() -> None:
    dense, sparse = model(), model().sparsify()
    assert isinstance(sparse.coef, Csr) and sparse.coef.shape == (K, D)
    assert len(sparse.coef.data) == np.count_nonzero(COEF) and sparse.coef.dtype == F
    assert sparse.density == dense.density == np.count_nonzero(COEF) / COEF.size
    assert (sparse.n_features, sparse.n_rankers) == (D, K)
    np.testing.assert_array_equal(sparse.densify().coef, COEF)
    np.testing.assert_array_equal(sparse.predict(X), dense.predict(X))
    np.testing.assert_allclose(
        sparse.decision_function(X), dense.decision_function(X), rtol=1e-6, atol=1e-6
    )
    again = sparse.sparsify()
    np.testing.assert_array_equal(again.densify().coef, COEF)
    assert dense.densify() is dense
    matrix = scipy.sparse.csr_matrix((sparse.coef.data, sparse.coef.indices, sparse.coef.indptr))
    np.testing.assert_array_equal(matrix.toarray()[:, :D], COEF[:, : matrix.shape[1]])


def test_zeros_that_are_stored_are_dropped_too() -> None:
    coef = scipy.sparse.csr_matrix(COEF)
    coef.data[::2] = 0
    given = js.LinearModel(coef, INTERCEPT, NAMES)
    left = np.count_nonzero(coef.data)
    assert given.density == left / COEF.size
    assert len(given.sparsify().coef.data) == left
    np.testing.assert_array_equal(given.sparsify().densify().coef, coef.toarray())


def test_a_single_ranker_stays_single() -> None:
    for classes in (np.array(["no", "yes"]), None):
        dense = js.LinearModel(jnp.asarray(COEF[0]), 0.5, classes)
        sparse = dense.sparsify()
        assert sparse.coef.shape == (1, D) and sparse.n_rankers is None
        assert sparse.decision_function(X).shape == (N,)
        np.testing.assert_array_equal(sparse.predict(X), dense.predict(X))
        np.testing.assert_array_equal(sparse.densify().coef, COEF[0])
    with pytest.raises(ValueError, match=r"^intercept must be of shape \(2,\) with coef \(2, 12\)"):
        js.LinearModel(scipy.sparse.csr_matrix(COEF[:2]), 0.5, None)


def test_coefficients_that_are_not_finite_are_refused() -> None:
    broken = COEF.copy()
    broken[3, 1] = np.inf
    with pytest.raises(ValueError, match=r"^coef must be finite, got inf at \(3, 1\)"):
        model(broken).sparsify()


def test_rows_are_cut_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparsity, "_NUMBERS", 2 * D)
    np.testing.assert_array_equal(model().sparsify().densify().coef, COEF)


@pytest.mark.parametrize("output", ["label", "indicator", "csr", "sets"])
def test_the_output_and_the_classes_stay(output: str) -> None:
    sparse = model(output=output).sparsify()
    assert sparse.output == sparse.densify().output == output
    assert sparse.classes is not None and sparse.classes.tolist() == NAMES.tolist()


# ---- pruning -------------------------------------------------------------------------------------
@pytest.mark.parametrize("threshold", [0, 0.3, 1.0, 99.0])
def test_small_entries_are_cut(threshold: float) -> None:
    right = np.where(np.abs(COEF) > threshold, COEF, 0)
    for start in (model(), model().sparsify(), js.LinearModel(COEF, INTERCEPT, NAMES)):
        pruned = start.prune(threshold=threshold)
        np.testing.assert_array_equal(pruned.model.densify().coef, right)
        assert pruned.density == pruned.model.density == np.count_nonzero(right) / COEF.size
        assert pruned.accuracy_before is pruned.accuracy_after is None
    exactly = model().prune(threshold=float(np.abs(COEF).max())).density
    assert exactly == 0  # an entry of the threshold's size is cut


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16, np.float32, np.int8])
def test_any_dtype_is_cut_and_kept(dtype: Any) -> None:
    coef = (4 * COEF).astype(dtype)
    pruned = js.LinearModel(coef, INTERCEPT, NAMES).prune(threshold=2)
    assert pruned.model.coef.dtype == dtype
    wide = coef.astype(np.float64)
    np.testing.assert_array_equal(
        pruned.model.densify().coef.astype(np.float64), np.where(np.abs(wide) > 2, wide, 0)
    )


@pytest.mark.parametrize("density", [0.0, 0.1, 0.29, 0.5, 1.0])
def test_the_largest_entries_are_kept(density: float) -> None:
    sizes = np.sort(np.abs(COEF).ravel())[::-1]
    keep = min(int(density * COEF.size + 1e-9), np.count_nonzero(COEF))
    for start in (model(), model().sparsify()):
        pruned = start.prune(density=density)
        left = np.abs(pruned.model.densify().coef)
        assert np.count_nonzero(left) == keep and pruned.density == keep / COEF.size
        np.testing.assert_array_equal(np.sort(left.ravel())[::-1][:keep], sizes[:keep])


def test_of_equal_entries_at_the_cut_none_is_kept() -> None:
    coef = np.array([[3, -2, 2, 2], [0, 0, 1, 1]], F)
    pruned = js.LinearModel(coef, np.zeros(2, F), None).prune(density=0.25)
    assert pruned.model.densify().coef.tolist() == [[3, 0, 0, 0], [0] * 4]


def test_the_price_of_pruning_is_measured() -> None:
    labels = model().predict(X)
    labels[:6] = np.roll(NAMES, 1)[[NAMES.tolist().index(label) for label in labels[:6]]]
    for rows in (X, scipy.sparse.csr_matrix(X)):
        pruned = model().prune(rows, labels, threshold=0.8)
        assert pruned.accuracy_before == 24 / 30
        expected = np.mean(pruned.model.predict(X) == labels)
        assert pruned.accuracy_after == pytest.approx(expected) and expected < 24 / 30


REFUSED = {
    "neither": ({}, "^threshold or density must be given"),
    "both": ({"threshold": 0.1, "density": 0.1}, "^threshold or density must be given, one"),
    "negative": ({"threshold": -0.1}, "^threshold must be a finite number >= 0, got -0.1"),
    "infinite": ({"threshold": np.inf}, "^threshold must be a finite number >= 0, got inf"),
    "NaN": ({"threshold": np.nan}, "^threshold must be a finite number >= 0, got nan"),
    "several": ({"threshold": [0.1, 0.2]}, "^threshold must be a finite number >= 0, got an array"),
    "a word": ({"threshold": "small"}, "^threshold must be a finite number >= 0, got dtype"),
    "too dense": ({"density": 1.1}, r"^density must be a number in 0 \.\.\. 1, got 1.1"),
    "below 0": ({"density": -0.1}, r"^density must be a number in 0 \.\.\. 1, got -0.1"),
    "X alone": ({"X": X, "threshold": 0.1}, "^X and y must be given together"),
    "y too short": ({"X": X, "y": NAMES, "threshold": 0.1}, r"^y must have one entry per row"),
    "other labels": ({"X": X, "y": np.arange(N), "threshold": 0.1}, "^y must hold classes of this"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_cuts_that_are_refused(kind: str) -> None:
    arguments, words = REFUSED[kind]
    with pytest.raises(ValueError, match=words):
        model().prune(**arguments)


def test_accuracy_is_of_labels_only() -> None:
    for other in (model(output="sets"), model(classes=None)):
        with pytest.raises(ValueError, match=r"^X: accuracy is measured of models that predict"):
            other.prune(X, np.zeros(N), threshold=0.1)


# ---- the objective -------------------------------------------------------------------------------
def plain_objective(loss: Loss, lam: float, w: Any, b: float, y: Any, s: Any) -> float:
    name, parameter = members.reference_loss(loss)
    scores = X.astype(float) @ w.astype(float) + b
    values = [
        reference.value(name, z, t, parameter)
        for z, t in zip(scores.tolist(), y.tolist(), strict=True)
    ]
    # Pegasos regularizes the intercept column as well
    return lam / 2 * (w.astype(float) @ w + b * b) + float(np.dot(s, values)) / float(s.sum())


HINGE = js.losses.Hinge()
WEIGHT = RNG.uniform(0, 2, N)


@pytest.mark.parametrize("kind", ["array", "csr", "jax", "sparse coef"])
def test_the_objective_of_sparse_rows_and_models(kind: str) -> None:
    b = np.where(np.isfinite(INTERCEPT), INTERCEPT, 0.5)
    many = js.LinearModel(COEF, b, NAMES)
    many = many.sparsify() if kind == "sparse coef" else many
    rows = {"csr": scipy.sparse.csr_matrix(X), "jax": jnp.asarray(X)}.get(kind, X)
    labels = NAMES[RNG.integers(0, K, N)]
    indicator = labels[:, None] == NAMES[None]
    right = [
        plain_objective(HINGE, 0.3, COEF[k], float(b[k]), 2.0 * indicator[:, k] - 1, WEIGHT)
        for k in range(K)
    ]
    forms = [labels, indicator, indicator.astype(int), 2 * indicator - 1]
    for y in (*forms, scipy.sparse.csr_matrix(indicator)):
        found = js.metrics.objective(js.Pegasos(0.3), many, rows, y, sample_weight=WEIGHT)
        assert found.shape == (K,) and found.dtype == F
        assert_close(found, np.array(right), "reference")


@pytest.mark.parametrize("loss", [js.losses.Huber(0.5), js.losses.Absolute(), js.losses.Squared()])
def test_the_objective_of_regression_on_sparse_rows(loss: Loss) -> None:
    y = RNG.normal(size=N)
    solver = js.Pegasos(0.3, loss=loss)
    right = plain_objective(loss, 0.3, COEF[0], 0.25, y, np.ones(N))
    for one in (
        js.LinearModel(COEF[0], 0.25, None),
        js.LinearModel(COEF[0], 0.25, None).sparsify(),
    ):
        for rows in (X, scipy.sparse.csr_matrix(X)):
            found = js.metrics.objective(solver, one, rows, y)
            assert found.shape == ()
            assert_close(np.asarray(found), np.asarray(right), "reference")


def test_objectives_that_are_refused() -> None:
    solver, many = js.Pegasos(0.3), js.LinearModel(COEF, np.zeros(K, F), NAMES)
    rows = scipy.sparse.csr_matrix(X)
    for y in (NAMES, np.zeros((N, K - 1)), np.zeros((N, K, 1))):
        with pytest.raises(ValueError, match=r"^X and y must be \(n, d\) and \(n,\) or \(n, 5\)"):
            js.metrics.objective(solver, many, rows, y)
    with pytest.raises(ValueError, match=r"^X must be of shape \(n, 12\)"):
        js.metrics.objective(solver, many, rows[:, :3], np.repeat(NAMES, 6))
    with pytest.raises(ValueError, match=r"^y holds the label 'z'"):
        js.metrics.objective(solver, many, rows, np.repeat("z", N))
    for bad in (np.full((N, K), 2), np.eye(N)[:, :K] - 0.5, np.full((N, K), "a")):
        with pytest.raises(ValueError, match=r"^y of shape \(30, 5\) must hold 0 and 1"):
            js.metrics.objective(solver, many, rows, bad)
    with pytest.raises(ValueError, match=r"^X and y must be \(n, d\) and \(n,\); got"):
        js.metrics.objective(solver, js.LinearModel(COEF[0], 0.0, None), rows, np.zeros((N, K)))
