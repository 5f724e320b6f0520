"""What many rankers answer: labels, indicators, sparse indicators, sets of labels."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import jaxsolvers as js
from jaxsolvers.models import answers
from jaxsolvers.models import scores as scoring

F = jnp.result_type(float)
RNG = np.random.default_rng(12)
N, D, K = 25, 4, 6
COEF = RNG.integers(-3, 4, (K, D)).astype(F)
INTERCEPT = np.array([1, -40, 0, -np.inf, 2, -1], F)  # two of them never say yes
X = RNG.integers(-4, 5, (N, D)).astype(F)
X[[3, 4]] = 0
SCORES = X @ COEF.T + INTERCEPT
NAMES = np.array(["f", "a", "e", "b", "d", "c"])
LEVELS = [0.0, 2, np.linspace(-3, 3, K), np.full(K, -np.inf), jnp.zeros(K), np.inf]


def model(output: str, classes: Any = NAMES) -> js.LinearModel:
    return js.LinearModel(jnp.asarray(COEF), jnp.asarray(INTERCEPT), classes, output)


@pytest.fixture(params=[False, True], ids=["whole", "tiles"])
def tiled(request: Any, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Once as users run it, once in tiles of few rows and rankers."""
    if request.param:
        monkeypatch.setattr(scoring, "_NUMBERS", 16)
        monkeypatch.setattr(scoring, "_MANY", 4)
        monkeypatch.setattr(scoring, "_FEW_ROWS", 2)
    return request.param


def test_indicators_hold_what_scores_above_the_threshold(tiled: bool) -> None:
    for level in LEVELS:
        right = np.asarray(SCORES, float) > np.asarray(level, float)
        for rows in (X, scipy.sparse.csr_matrix(X)):
            found = model("indicator").predict(rows, level)
            assert type(found) is np.ndarray and found.dtype == bool
            np.testing.assert_array_equal(found, right)
            sparse = model("csr").predict(rows, level)
            assert isinstance(sparse, scipy.sparse.csr_matrix) and sparse.dtype == bool
            assert sparse.nnz == right.sum() and sparse.has_canonical_format
            np.testing.assert_array_equal(sparse.toarray(), right)
            sets = model("sets").predict(rows, level)
            assert sets == [tuple(NAMES[row].tolist()) for row in right]


def test_thresholds_are_per_class_and_must_be_exceeded() -> None:
    exact = js.LinearModel(np.eye(3, dtype=F), np.zeros(3, F), None, "indicator")
    found = exact.predict(np.full((1, 3), 0.5, F), [0.5, 0.25, 0.75])
    assert found.tolist() == [[False, True, False]]


@pytest.mark.parametrize("output", ["indicator", "csr", "sets"])
def test_one_number_is_the_threshold_of_all(output: str) -> None:
    one, each = (model(output).predict(X, level) for level in (1.5, np.full(K, 1.5)))
    if output == "csr":
        one, each = one.toarray(), each.toarray()
    assert np.array_equal(one, each) if output != "sets" else one == each


@pytest.mark.parametrize(
    "labels",
    [np.arange(K)[::-1], np.arange(K) / 4, NAMES.astype(object), np.array(list("abcdef"), "S1")],
    ids=lambda labels: labels.dtype.kind,
)
def test_sets_hold_labels_of_their_kind(labels: np.ndarray) -> None:
    sets = model("sets", labels).predict(X)
    assert type(sets) is list and all(type(one) is tuple for one in sets)
    assert sets == [tuple(labels[row].tolist()) for row in SCORES > 0]
    positions = model("sets", None).predict(X)
    assert positions == [tuple(np.flatnonzero(row).tolist()) for row in SCORES > 0]


@pytest.mark.parametrize("output", ["indicator", "csr", "sets"])
def test_no_rows_give_no_answers(output: str) -> None:
    for rows in (X[:0], scipy.sparse.csr_matrix((0, D), dtype=F)):
        found = model(output).predict(rows)
        assert found == [] if output == "sets" else found.shape == (0, K)


def test_a_sparse_answer_never_holds_a_dense_one(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    exceeds = answers._exceeds

    def watched(scores: Any, levels: Any) -> Any:
        seen.append(scores.shape)
        return exceeds(scores, levels)

    monkeypatch.setattr(answers, "_exceeds", watched)
    k, n = 20000, 1000
    wide = js.LinearModel(np.zeros((k, 1), F), np.zeros(k, F), None, "csr")
    found = wide.predict(np.ones((n, 1), F))
    assert found.shape == (n, k) and found.nnz == 0
    assert max(rows * rankers for rows, rankers in seen) <= scoring._NUMBERS < n * k


def test_the_output_changes_neither_scores_nor_best_classes() -> None:
    labels = model("label")
    for output in ("indicator", "csr", "sets"):
        other = model(output)
        np.testing.assert_array_equal(other.decision_function(X), labels.decision_function(X))
        np.testing.assert_array_equal(other.top_k(X, 3)[0], labels.top_k(X, 3)[0])
        chosen = other.decision_function(X, classes=["b", "f"])
        np.testing.assert_array_equal(chosen, SCORES[:, [3, 0]])


def test_a_threshold_between_two_floats_decides_exactly() -> None:
    """Thresholds are float64, scores may be float32: no rounding of one to the other."""
    one = np.float32(0.7)
    unit = js.LinearModel(np.ones((2, 1), np.float32), np.zeros(2, np.float32), None, "indicator")
    single = js.LinearModel(np.ones(1, np.float32), np.float32(0), np.array([0, 1]))
    rows = np.array([[np.nextafter(one, np.float32(0))], [one]])
    for level, right in (
        (float(one), [False, False]),
        (np.nextafter(float(one), 0), [False, True]),
        (np.nextafter(float(one), 1), [False, False]),
        (-1e300, [True, True]),
        (1e300, [False, False]),
    ):
        np.testing.assert_array_equal(unit.predict(rows, level), np.array([right, right]).T)
        np.testing.assert_array_equal(single.predict(rows, level), right)


@pytest.mark.parametrize(
    ("level", "words"),
    [
        (np.zeros(K - 1), r"one number or one per class \(6\), got shape \(5,\)"),
        (np.zeros((K, 1)), r"one number or one per class \(6\), got shape \(6, 1\)"),
        ([0.0], r"one number or one per class \(6\), got shape \(1,\)"),
        (np.nan, r"one number or one per class \(6\) without NaN, got nan"),
        (np.where(np.arange(K) == 2, np.nan, 0), "one number or .* without NaN"),
        ("0.5", "one number or one per class .*got dtype"),
        (True, "one number or one per class .*got dtype bool"),
        (None, "one number or one per class .*got dtype object"),
    ],
)
def test_thresholds_that_are_refused(level: Any, words: str) -> None:
    for output in ("indicator", "csr", "sets"):
        with pytest.raises(ValueError, match=f"^threshold must be {words}"):
            model(output).predict(X, level)


def test_thresholds_where_they_have_no_use() -> None:
    with pytest.raises(ValueError, match=r"^threshold must be 0 for output 'label'"):
        model("label").predict(X, 0.5)
    with pytest.raises(ValueError, match=r"^threshold must be 0 for a regression model"):
        js.LinearModel(COEF[0], 0.0, None).predict(X, 0.5)
    with pytest.raises(ValueError, match=r"^threshold must be one number, got shape \(1,\)"):
        js.LinearModel(COEF[0], 0.0, np.array([0, 1])).predict(X, [0.5])


def test_answers_on_any_device() -> None:
    there = jax.devices()[2]
    moved = js.LinearModel(jax.device_put(COEF, there), INTERCEPT, NAMES, "sets")
    assert moved.predict(X) == model("sets").predict(X)


def test_a_mask_or_nothing_is_no_list_of_classes():
    model = js.LinearModel(np.eye(3), np.zeros(3), np.arange(3))
    with pytest.raises(ValueError, match="classes must be labels, got a mask"):
        model.decision_function(np.eye(3), classes=[True, False, True])
    with pytest.raises(ValueError, match="classes must be a list of classes"):
        model.decision_function(np.eye(3), classes=[])
