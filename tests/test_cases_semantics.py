"""What JAX's loops, branches, gradients and shapes do to a solver."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tolerances import assert_close

import jaxsolvers as js

F = jnp.result_type(float)
X = np.array([[2, 0.1], [1, -0.2], [-1, 0.3], [-2, 0], [1.5, 1], [-1.5, -1]], F)
MARGIN_LOSSES = [js.losses.Hinge(), js.losses.SquaredHinge(), js.losses.Logistic()]


@pytest.mark.parametrize("solver", [js.Pegasos(0.1, project=True), js.AdaGradFOBOS(0.1)])
def test_a_settled_and_an_unsettled_ranker_train_side_by_side_case_109(solver):
    # Class 0 is separable by its sign, classes 1 and 2 conflict, class 3 has no row at all.
    y = np.array([0, 0, 1, 2, 0, 1])
    rows = np.vstack([X, X[3:]])
    labels = np.append(y, [1, 0, 2])
    together = js.fit_one_vs_rest(solver, rows, labels, classes=range(4), epochs=20)
    assert together.history["mistakes"].shape == (20, 4)
    for k in range(3):
        alone = js.fit(solver, rows, labels == k, epochs=20)
        assert_close(together.model.coef[k], alone.model.coef, "run", scale=10.0)
        np.testing.assert_array_equal(together.history["mistakes"][:, k], alone.history["mistakes"])
    assert together.history["mistakes"][-1, 1:3].min() > 0  # never settled


@pytest.mark.parametrize("front", [js.fit, js.fit_one_vs_rest])
def test_a_column_of_labels_is_refused_by_name_case_112(front):
    column = np.array([[1], [-1], [1], [-1], [1], [-1]])
    for y in (column, column.T, jnp.asarray(column), column.tolist()):
        with pytest.raises(ValueError, match=r"y must be .*shape \((6, 1|1, 6)\)"):
            front(js.Pegasos(0.1), X, y)


@pytest.mark.parametrize(
    "loss", [*MARGIN_LOSSES, js.losses.Perceptron(), js.losses.Squared()],
    ids=lambda loss: type(loss).__name__,
)  # fmt: skip
def test_a_loss_never_broadcasts_scores_and_targets_case_112(loss):
    score, target = jnp.zeros(4), jnp.ones((4, 1))
    for one, other in ((score, target), (target, score), (score, jnp.ones(())), (score[:1], score)):
        with pytest.raises(ValueError, match=r"score and y .*same shape, got \(.*\) and \(.*\)"):
            loss.value_and_slope(one, other)
        with pytest.raises(ValueError, match=r"score and y .*same shape"):
            jax.eval_shape(loss.value_and_slope, one, other)
    value, slope = loss.value_and_slope(score, jnp.ones(4))
    assert value.shape == slope.shape == (4,)


@pytest.mark.parametrize("front", [js.fit, js.fit_one_vs_rest])
def test_no_rows_to_train_on_is_an_error_case_113(front):
    for empty in (np.zeros((0, 3), F), jnp.zeros((0, 3))):
        with pytest.raises(ValueError, match=r"X must have at least one row, got 0 samples"):
            front(js.Pegasos(0.1), empty, np.zeros(0, int))


@pytest.mark.parametrize("labels", [[1, 2, 3] * 2, ["a", "bb"] * 3, [False, True] * 3])
def test_no_rows_to_predict_give_no_labels_case_113(labels):
    y = np.array(labels)
    model = js.fit_one_vs_rest(js.Pegasos(0.1), X, y).model
    n_classes = len(model.classes)
    for empty in (np.zeros((0, 2), F), jnp.zeros((0, 2)), np.zeros((0, 2), np.int8)):
        found = model.predict(empty)
        assert found.shape == (0,) and found.dtype == y.dtype
        assert model.decision_function(empty).shape == (0, n_classes)
        assert [part.shape for part in model.top_k(empty, 2)] == [(0, 2), (0, 2)]


def test_no_rows_to_predict_give_no_answers_of_a_single_ranker_case_113():
    for solver, y, dtype in (
        (js.Pegasos(0.1), X[:, 0] > 0, bool),
        (js.Pegasos(0.1, loss=js.losses.Squared()), np.arange(6.0), F),
    ):
        model, empty = js.fit(solver, X, y).model, np.zeros((0, 2), F)
        assert model.predict(empty).shape == model.decision_function(empty).shape == (0,)
        assert model.predict(empty).dtype == dtype
