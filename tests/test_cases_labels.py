"""Labels and classes: kinds, codings, classes that are missing, unknown or alone."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references import adagrad as reference
from tolerances import assert_bitwise, assert_close

import jaxsolvers as js

F = jnp.result_type(float)
RNG = np.random.default_rng(82)
X = RNG.normal(size=(6, 3)).astype(F)
MARGIN_LOSSES = [
    js.losses.Hinge(),
    js.losses.SquaredHinge(),
    js.losses.SmoothedHinge(),
    js.losses.Logistic(),
    js.losses.Perceptron(),
]


def test_strings_that_look_like_numbers_stay_strings_case_077():
    labels = np.array(["01", "1", "01", "1", "1", "01"])
    eye = np.eye(6, dtype=F)
    for fit in (
        js.fit(js.AdaGradFOBOS(0.5), eye, labels, epochs=5),
        js.fit_one_vs_rest(js.AdaGradFOBOS(0.5), eye, labels, epochs=5),
    ):
        assert fit.model.classes.tolist() == ["01", "1"]
        np.testing.assert_array_equal(fit.model.predict(eye), labels)


@pytest.mark.parametrize("label", [1, "a", True, 2.5])
def test_a_single_class_is_refused_unless_declared_case_082(label):
    y = [label] * 6
    for front in (js.fit, js.fit_one_vs_rest):
        with pytest.raises(ValueError, match=rf"y must hold .*two classes.* only .*{label}"):
            front(js.Pegasos(0.1), X, y)


@pytest.mark.parametrize("classes", [[0, 1], ["no", "yes"], [False, True]])
def test_a_single_class_among_declared_ones_is_predicted_case_082(classes):
    y = np.array(classes)[[1] * 6]
    fit = js.fit_one_vs_rest(js.AdaGradFOBOS(0.1), np.ones((6, 3), F), y, classes=classes)
    assert fit.model.coef.shape == (2, 3)
    np.testing.assert_array_equal(fit.model.predict(np.ones((2, 3), F)), y[:2])


@pytest.mark.parametrize("front", [js.fit, js.fit_one_vs_rest])
def test_a_label_unknown_to_the_state_is_refused_case_083(front):
    fit = front(js.AdaGradRDA(0.1), X, [5, 6, 5, 6, 5, 6])
    before = jax.tree.map(np.array, fit.state)
    with pytest.raises(ValueError, match=r"label 8.*classes.*5, 6"):
        front(js.AdaGradRDA(0.1), X, [5, 8, 5, 6, 5, 6], state=fit.state)
    assert_bitwise(jax.tree.map(np.array, fit.state), before)
    again = front(js.AdaGradRDA(0.1), X, [6] * 6, state=fit.state)  # fewer are fine
    assert again.model.classes.tolist() == [5, 6]


@pytest.mark.parametrize("front", [js.fit, js.fit_one_vs_rest])
@pytest.mark.parametrize(
    ("labels", "later"),
    [
        (np.array(["no", "yes"]), np.array(["no"])),  # a shorter string dtype
        (np.array([1, 300]), np.array([1], np.int8)),  # a narrower integer
        (np.array([1.0, 1.5]), np.array([1])),  # integers among floats
        (np.array([1, 2]), np.array([2.0])),
        (np.array([False, True]), np.array([True])),
    ],
    ids=["string", "int8", "int", "float", "bool"],
)
def test_a_later_batch_may_hold_fewer_labels_in_another_dtype_case_083(front, labels, later):
    first = front(js.AdaGradRDA(0.1), X, np.tile(labels, 3))
    second = front(js.AdaGradRDA(0.1), X, np.tile(later, 6), state=first.state)
    assert second.model.classes.tolist() == labels.tolist()
    assert set(second.model.predict(X).tolist()) <= set(labels.tolist())


@pytest.mark.parametrize("loss", MARGIN_LOSSES, ids=lambda loss: type(loss).__name__)
def test_zero_one_and_minus_plus_one_train_alike_case_085(loss):
    y = np.array([0, 1, 1, 0, 1, 0])
    coded = [js.fit(js.AdaGradFOBOS(0.1, loss=loss), X, v) for v in (y, 2 * y - 1, y > 0, y + 0.5)]
    for other in coded[1:]:
        np.testing.assert_array_equal(other.model.coef, coded[0].model.coef)
    assert np.any(coded[0].model.coef)


@pytest.mark.parametrize("loss", MARGIN_LOSSES, ids=lambda loss: type(loss).__name__)
def test_a_margin_loss_refuses_other_targets_case_085(loss):
    for targets in ([0.0, 1.0], [2.0, -1.0], [np.nan, 1.0], [0.5, 0.5]):
        for kind in (np.array, jnp.array):
            with pytest.raises(ValueError, match=r"y must be -1 or \+1"):
                loss.value_and_slope(jnp.zeros(2), kind(targets, F))
    value, slope = loss.value_and_slope(jnp.zeros(2), np.array([1, -1]))
    np.testing.assert_array_equal(slope[0], -slope[1])
    np.testing.assert_array_equal(value[0], value[1])


@pytest.mark.parametrize(
    "labels",
    [
        np.array([10, 20, 20, 30, 10, 30]),
        np.array([1, 2, 3, 1, 2, 3], np.int8),
        np.array([-1, 1, -1, 1, -1, 1]),
        np.array([-1.5, 0.25, 7.0, 0.25, 7.0, -1.5], np.float32),
        np.array([2**62, -(2**62), 0, 1, 2, 3]),
        np.array(["b", "a", "c", "b", "a", "c"]),
        np.array([b"x", b"y", b"x", b"y", b"x", b"y"]),
        np.array([True, False, False, True, True, False]),
        np.array(["one", "two", "one", "three", "two", "three"], object),
        np.array([5, 3, 4, 5, 3, 4], np.uint64),
    ],
    ids=lambda labels: f"{labels.dtype.kind}{labels.dtype.itemsize}",
)
def test_any_labels_come_back_as_they_were_case_086(labels):
    eye = np.eye(6, dtype=F)
    model = js.fit_one_vs_rest(js.AdaGradFOBOS(0.5), eye, labels, epochs=5).model
    np.testing.assert_array_equal(model.classes, np.unique(labels))
    found = model.predict(eye)
    assert found.dtype == labels.dtype
    np.testing.assert_array_equal(found, labels)


def test_batches_that_lack_classes_train_each_column_alone_case_088():
    solver, classes = js.AdaGradRDA(0.1, regularizer=js.regularizers.L1(0.01)), [2, 0, 1]
    batches = [(X[:3], [0, 1, 0]), (X[3:], [2, 2, 1])]
    state, model = None, None
    for rows, y in batches:
        fit = js.fit_one_vs_rest(solver, rows, y, classes=classes, order="cyclic", state=state)
        state, model = fit.state, fit.model
        assert model.coef.shape == (3, 3) and model.classes.tolist() == classes
    y = np.array([0, 1, 0, 2, 2, 1])
    for position, k in enumerate(classes):
        run = reference.adagrad(
            X, np.where(y == k, 1, -1), np.arange(6)[:, None], form="rda", learning_rate=0.1,
            regularizer="l1", strengths={"strength": 0.01},
        )  # fmt: skip
        assert_close(np.asarray(model.coef[position]), run.w[-1], "run", scale=1.0)


def test_when_every_ranker_says_no_the_largest_score_wins_case_089():
    scores = np.array([[-0.2, -1.0, -3.0]], F)
    model = js.LinearModel(jnp.asarray(scores.T), jnp.zeros(3), np.array(["a", "b", "c"]))
    one = np.ones((1, 1), F)
    assert model.predict(one).tolist() == ["a"]
    indices, values = model.top_k(one, 3)
    assert indices.tolist() == [[0, 1, 2]]
    np.testing.assert_array_equal(values, scores)


@pytest.mark.parametrize("kind", ["uniform", "polynomial"])
def test_averages_of_three_classes_continue_case_092(kind):
    solver = js.Averaged(js.Pegasos(0.1), kind=kind)
    rows, options = np.array([[1, 0, 0], [0, 1, 0]], F), {"classes": ["a", "b", "c"]}
    fit = js.fit_one_vs_rest(solver, rows, ["a", "b"], intercept="column", **options)
    for _ in range(2):
        assert fit.model.coef.shape == (3, 3) and fit.model.intercept.shape == (3,)
        assert np.isfinite(fit.model.coef).all() and np.isfinite(fit.model.intercept).all()
        fit = js.fit_one_vs_rest(solver, rows, ["a", "b"], state=fit.state, **options)
    np.testing.assert_array_equal(fit.model.predict(rows), ["a", "b"])
