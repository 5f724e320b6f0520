"""LinearModel against plain NumPy."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsolvers as js
from jaxsolvers.models import scores as scoring

F = jnp.result_type(float)
RNG = np.random.default_rng(5)
# Small integers: every product and sum is exact, whatever its order.
COEF = RNG.integers(-4, 5, (4, 3)).astype(F)
INTERCEPT = RNG.integers(-3, 4, 4).astype(F)
X = RNG.integers(-5, 6, (20, 3)).astype(F)
NAMES = np.array(["d", "a", "c", "b"])
SIGNS = np.array([-1, 1])


def many(classes: Any = NAMES, coef: np.ndarray = COEF, intercept: Any = INTERCEPT):
    return js.LinearModel(jnp.asarray(coef), jnp.asarray(intercept), classes)


def binary(classes: Any = SIGNS, intercept: float = 0.5):
    return js.LinearModel(jnp.asarray(COEF[0]), jnp.asarray(intercept, F), classes)


def plain(X: np.ndarray, coef: np.ndarray = COEF, intercept: Any = INTERCEPT) -> np.ndarray:
    rankers = list(zip(coef, intercept, strict=True))
    return np.array([[float(np.dot(w, x)) + b for w, b in rankers] for x in X])


def ranked(scores: np.ndarray) -> np.ndarray:
    """Positions by descending score, ties to the lowest."""
    return np.array([sorted(range(len(row)), key=lambda k: (-row[k], k)) for row in scores])


def test_scores_of_many_rankers_and_of_one():
    found = many().decision_function(X)
    assert isinstance(found, jax.Array) and found.dtype == F
    np.testing.assert_array_equal(found, plain(X))
    alone = binary().decision_function(X)
    assert alone.shape == (20,) and alone.dtype == F
    np.testing.assert_array_equal(alone, plain(X, COEF[:1], [0.5])[:, 0])
    assert many().n_features == binary().n_features == 3


def test_labels_and_best_classes_follow_the_scores():
    order = ranked(plain(X))
    np.testing.assert_array_equal(many().predict(X), NAMES[order[:, 0]])
    np.testing.assert_array_equal(many(None).predict(X), order[:, 0])
    for k in (1, 2, 4, np.int64(3)):
        indices, scores = many().top_k(X, k)
        assert indices.dtype == np.int32
        np.testing.assert_array_equal(indices, order[:, :k])
        np.testing.assert_array_equal(scores, np.take_along_axis(plain(X), order, 1)[:, :k])


def test_ties_go_to_the_lowest_index():
    same = many(coef=np.zeros((4, 3), F), intercept=np.array([-1, 2, 2, -1], F))
    assert same.predict(X[:2]).tolist() == ["a", "a"]
    indices, scores = same.top_k(X[:2], 4)
    assert indices.tolist() == [[1, 2, 0, 3]] * 2 and scores.tolist() == [[2, 2, -1, -1]] * 2


def test_zeros_of_either_sign_are_tied():
    zeros = many(coef=np.zeros((4, 3), F), intercept=np.array([-0.0, 0.0, -0.0, 0.0], F))
    negative = np.full((1, 3), -1, F)  # the products are -0.0 as well
    assert zeros.predict(negative).tolist() == ["d"]
    assert zeros.top_k(negative, 4)[0].tolist() == [[0, 1, 2, 3]]


@pytest.mark.parametrize(
    "labels",
    [
        np.array([7, -3, 2, 5]),
        np.array([7, 3, 2, 5], np.uint8),
        np.array([0.5, -1.5, 2.0, 3.0], np.float32),
        np.array(["d", "aaa", "c", "bb"]),
        np.array([b"d", b"a", b"c", b"b"]),
        np.array(["d", "aaa", "c", "bb"], object),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_keep_their_kind(labels):
    found = many(labels).predict(X)
    assert type(found) is np.ndarray and found.dtype == labels.dtype and found.shape == (20,)
    np.testing.assert_array_equal(found, labels[ranked(plain(X))[:, 0]])
    pair = labels[:2]
    answers = binary(pair).predict(X)
    assert answers.dtype == labels.dtype
    np.testing.assert_array_equal(
        answers, np.where(plain(X)[:, 0] - INTERCEPT[0] > -0.5, *pair[::-1])
    )


def test_bools_keep_their_kind():
    found = binary(np.array([False, True])).predict(X)
    assert found.dtype == bool and found.tolist() == (plain(X, COEF[:1], [0.5])[:, 0] > 0).tolist()


def test_the_threshold_must_be_exceeded():
    model = binary(intercept=0.0)
    scores = plain(X, COEF[:1], [0])[:, 0]
    levels = [0.0, *np.unique(scores)[[0, 3, -1]], -np.inf, np.inf]
    for threshold in levels:
        found = model.predict(X, threshold=threshold)
        np.testing.assert_array_equal(found, np.where(scores > threshold, 1, -1))
    np.testing.assert_array_equal(model.predict(X), model.predict(X, 0.0))


def test_regression_predicts_the_scores():
    model = js.LinearModel(jnp.asarray(COEF[1]), jnp.asarray(INTERCEPT[1]), None)
    found = model.predict(X)
    assert type(found) is np.ndarray and found.dtype == F
    np.testing.assert_array_equal(found, plain(X)[:, 1])


def test_rows_in_many_blocks(monkeypatch):
    rows = RNG.integers(-5, 6, (2 * scoring._ROWS + 5, 3)).astype(F)
    scores = rows @ COEF.T + INTERCEPT
    best = np.argmax(scores, axis=1)
    np.testing.assert_array_equal(many().decision_function(rows), scores)
    np.testing.assert_array_equal(many().predict(jnp.asarray(rows)), NAMES[best])
    np.testing.assert_array_equal(many().top_k(rows, 1)[0][:, 0], best)
    np.testing.assert_array_equal(
        js.LinearModel(COEF[0], INTERCEPT[0], None).predict(rows), scores[:, 0]
    )
    monkeypatch.setattr(scoring, "_NUMBERS", 8)  # two rows at a time
    np.testing.assert_array_equal(many().decision_function(X), plain(X))
    np.testing.assert_array_equal(many().top_k(X, 2)[0], ranked(plain(X))[:, :2])


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8, 17])
def test_any_number_of_rows(rows):
    np.testing.assert_array_equal(many().decision_function(X[:rows]), plain(X[:rows]))


def test_chosen_classes_in_the_order_asked():
    scores = plain(X)
    for chosen in (["a"], ["b", "d"], np.array(["c", "c", "a"]), tuple(NAMES[::-1])):
        found = many().decision_function(X, classes=chosen)
        at = [NAMES.tolist().index(name) for name in chosen]
        np.testing.assert_array_equal(found, scores[:, at])
    found = many(np.array([7, 3, 2, 5])).decision_function(X, classes=[5, 7])
    np.testing.assert_array_equal(found, scores[:, [3, 0]])


@pytest.mark.parametrize(
    "classes", [["z"], ["a", "z"], "z", "ab", 1, [1], [None], [["a"]], [np.nan]]
)
def test_classes_that_are_not_there(classes):
    with pytest.raises(ValueError, match="classes"):
        many().decision_function(X, classes=classes)


def test_a_single_ranker_has_nothing_to_choose():
    for model in (binary(), many(None)):
        with pytest.raises(ValueError, match="classes"):
            model.decision_function(X, classes=[1])
    with pytest.raises(ValueError, match=r"top_k.*single"):
        binary().top_k(X, 1)


@pytest.mark.parametrize("k", [0, -1, 5, 1.0, True, np.True_, "2", None, [1]])
def test_a_k_out_of_range(k):
    with pytest.raises(ValueError, match=r"^k must be an integer in 1 \.\.\. 4, got"):
        many().top_k(X, k)


WRONG = {
    "narrow": (X[:, :2], r"\(n, 3\).*got shape \(20, 2\)"),
    "wide": (np.hstack([X, X]), r"\(n, 3\).*got shape \(20, 6\)"),
    "one row": (X[0], r"\(n, 3\).*got shape \(3,\)"),
    "3-d": (X[None], r"\(n, 3\).*got shape \(1, 20, 3\)"),
    "number": (1.0, r"\(n, 3\).*got"),
    "empty": (np.zeros((0, 2), F), r"\(n, 3\).*got shape \(0, 2\)"),
    "NaN": (np.where(X[7, 1] == X, np.nan, X), r"finite, got nan at \(\d+, \d\)"),
    "infinite": (jnp.asarray(X).at[3, 2].set(-jnp.inf), r"finite, got -inf at \(3, 2\)"),
    "beyond the range": (np.full((2, 3), np.longdouble("1e4000")), "range of float"),
    "complex": (X.astype(complex), "real numbers, got dtype complex"),
    "strings": (X.astype(str), "real numbers, got dtype <U"),
    "ragged": ([[1, 2, 3], [4]], "rectangular.*got"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_rows_that_do_not_fit_the_model(kind):
    rows, words = WRONG[kind]
    for predict in (many().predict, many().decision_function, lambda X: many().top_k(X, 1)):
        with pytest.raises(ValueError, match=rf"^X must .*{words}"):
            predict(rows)


@pytest.mark.parametrize(
    "dtype", [np.float16, jnp.bfloat16, np.int8, np.uint8, np.int64, bool, ">f4"]
)
def test_rows_of_any_real_dtype(dtype):
    rows = np.abs(X).astype(dtype)
    right = plain(rows.astype(np.float64))
    for kind in (np.asarray, np.asfortranarray, jnp.asarray):
        if kind is jnp.asarray and dtype in (">f4", np.int64):
            continue  # JAX has neither here
        found = many().decision_function(kind(rows))
        assert found.dtype == F
        np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16, np.int32])
def test_coefficients_of_other_dtypes_score_in_at_least_single_precision(dtype):
    rows = np.full((2, 3), 1.001, np.float32)  # lost in 16 bits
    expected = rows.astype(float) @ COEF.T.astype(float) + INTERCEPT
    for kind in (np.asarray, jnp.asarray):
        model = js.LinearModel(kind(COEF.astype(dtype)), INTERCEPT.astype(dtype), NAMES)
        found = model.decision_function(rows)
        assert found.dtype == (F if dtype == np.int32 else np.float32)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_double_precision_without_64_bit_mode_warns(x64):
    model = js.LinearModel(COEF.astype(np.float64), INTERCEPT, NAMES)
    if x64:
        assert model.decision_function(X).dtype == np.float64
        return
    for ask in (model.decision_function, model.predict, lambda X: model.top_k(X, 1)):
        with pytest.warns(UserWarning, match="coef is float64 but 64-bit mode is off") as caught:
            ask(X)
        assert [warning.filename for warning in caught] == [__file__]


def test_a_model_spread_over_devices():
    mesh = jax.make_mesh((4,), ("rankers",), axis_types=(jax.sharding.AxisType.Auto,))
    where = jax.NamedSharding(mesh, jax.P("rankers"))
    model = js.LinearModel(jax.device_put(COEF, where), jax.device_put(INTERCEPT, where), NAMES)
    for rows in (X, jnp.asarray(X), jax.device_put(X, jax.devices()[2])):
        np.testing.assert_array_equal(model.decision_function(rows), plain(X))
        np.testing.assert_array_equal(model.predict(rows), many().predict(X))
        np.testing.assert_array_equal(model.top_k(rows, 2)[0], ranked(plain(X))[:, :2])
        found = model.decision_function(rows, classes=["c", "d"])
        np.testing.assert_array_equal(found, plain(X)[:, [2, 0]])


@pytest.mark.parametrize("device", [0, 1, 3])
def test_model_and_rows_on_any_devices(device):
    there = jax.devices()[device]
    model = js.LinearModel(jax.device_put(COEF, there), jax.device_put(INTERCEPT, there), NAMES)
    for rows in (X, jnp.asarray(X), jax.device_put(X, jax.devices()[2])):
        scores = model.decision_function(rows)
        np.testing.assert_array_equal(scores, plain(X))
        assert scores.devices() == {there}
        np.testing.assert_array_equal(model.predict(rows), many().predict(X))


def test_a_lost_ranker_is_never_predicted():
    coef, intercept = COEF.copy(), INTERCEPT.copy()
    coef[1], intercept[1] = 0, -np.inf
    lost = many(coef=coef, intercept=intercept)
    scores = plain(X)
    scores[:, 1] = -np.inf
    np.testing.assert_array_equal(lost.decision_function(X), scores)
    assert "a" not in lost.predict(X)
    np.testing.assert_array_equal(lost.top_k(X, 4)[0][:, 3], np.full(20, 1))
    zero = lost.predict(np.zeros((1, 3), F))
    assert zero.tolist() == [NAMES[np.argmax(intercept)]]


def test_a_model_on_the_host_predicts_as_one_on_a_device():
    host = js.LinearModel(COEF, INTERCEPT, NAMES)
    np.testing.assert_array_equal(host.decision_function(X), many().decision_function(X))
    np.testing.assert_array_equal(host.predict(X), many().predict(X))


# ---- what a model must be ------------------------------------------------------------------------
UNFIT = {
    "3-d": ((COEF[None], INTERCEPT, NAMES), "^coef must hold real numbers, .*shape"),
    "strings": ((COEF.astype(str), INTERCEPT, NAMES), "^coef must hold real numbers"),
    "empty": ((COEF[:, :0], INTERCEPT, NAMES), "^coef must hold real numbers"),
    "one intercept": ((COEF, 0.0, NAMES), r"^intercept must be of shape \(4,\)"),
    "a column": ((COEF, INTERCEPT[:, None], NAMES), r"^intercept must be of shape \(4,\)"),
    "a list of one": ((COEF[0], [0.0], SIGNS), r"^intercept must be of shape \(\)"),
    "too few classes": ((COEF, INTERCEPT, NAMES[:3]), r"^classes must be of shape \(4,\)"),
    "three of a pair": ((COEF[0], 0.0, NAMES[:3]), r"^classes must be of shape \(2,\)"),
    "output": ((COEF, INTERCEPT, NAMES, "labels"), "^output must be one of 'label', 'indicator'"),
    "sets of one": ((COEF[0], 0.0, SIGNS, "sets"), "^output must be 'label' for a single ranker"),
}


@pytest.mark.parametrize("kind", UNFIT)
def test_parts_that_do_not_fit_each_other(kind):
    parts, words = UNFIT[kind]
    with pytest.raises(ValueError, match=words):
        js.LinearModel(*parts)


def test_lists_are_taken_as_arrays():
    model = js.LinearModel(COEF.tolist(), INTERCEPT.tolist(), NAMES.tolist())
    np.testing.assert_array_equal(model.predict(X), many().predict(X))
    assert model.n_rankers == 4 and binary().n_rankers is None


# ---- without this package ------------------------------------------------------------------------
def test_plain_numpy_scores_and_labels():
    for model in (many(), many().sparsify(), many([*COEF.argmax(axis=0).tolist(), 9])):
        m = model.to_numpy()
        assert all(type(part) is np.ndarray for part in m.values())
        scores = X @ m["coef"].T + m["intercept"]
        np.testing.assert_array_equal(m["classes"][scores.argmax(axis=1)], model.predict(X))
    for model in (binary(), binary().sparsify()):
        m = model.to_numpy()
        scores = X @ m["coef"].T + m["intercept"]
        np.testing.assert_array_equal(m["classes"][(scores > 0).astype(int)], model.predict(X))


def test_plain_arrays_are_copies_of_plain_dtypes():
    coef = COEF.copy()
    m = js.LinearModel(coef, INTERCEPT, None).to_numpy()
    m["coef"][:] = 0
    np.testing.assert_array_equal(coef, COEF)
    assert m["classes"] is None
    m = js.LinearModel(jnp.asarray(COEF, jnp.bfloat16), INTERCEPT, NAMES).to_numpy()
    assert m["coef"].dtype == np.float32 and m["intercept"].dtype == F
    np.testing.assert_array_equal(m["coef"], COEF)
