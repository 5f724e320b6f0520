"""Label ranking average precision against scikit-learn, and what it refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ranking_metrics import RTOL
from scipy import sparse
from sklearn.metrics import label_ranking_average_precision_score

from jaxsolvers import metrics
from jaxsolvers.metrics import evaluate

lrap = metrics.label_ranking_average_precision


def labelled_rows(levels: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Truth with rows of no and of all labels, tied scores, weights with zeros."""
    rng = np.random.default_rng(levels)
    truth = rng.random((60, 7)) < 0.4
    truth[:5], truth[5:10] = False, True
    scores = rng.integers(-levels, levels, (60, 7)).astype(np.int32)
    return truth, scores, rng.exponential(size=60) * (rng.random(60) < 0.8)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("levels", [1, 3, 1000])
def test_lrap_equals_scikit_learn(levels, weighted):
    truth, scores, weights = labelled_rows(levels)
    weights = weights if weighted else None
    expected = label_ranking_average_precision_score(truth, scores, sample_weight=weights)
    for coded in (truth, truth.astype(int), np.where(truth, 1.0, -1.0), sparse.csr_array(truth)):
        found = lrap(coded, scores, sample_weight=weights)
        assert found.shape == () and found.dtype == jnp.result_type(float)
        np.testing.assert_allclose(found, expected, rtol=RTOL)


def test_weights_reach_rows_without_a_label_case_160():
    truth, scores = [[1, 0, 0], [0, 1, 1], [0, 0, 0]], [[0.2, 0.5, 0.1], [0.9, 0.8, 0.1]]
    scores = [*scores, [0.3, 0.2, 0.1]]
    found = lrap(truth, scores, sample_weight=[1, 1, 0])
    np.testing.assert_allclose(found, 0.541667, atol=1e-6)
    found = lrap(truth, scores, sample_weight=[1, 1, 2])
    np.testing.assert_allclose(found, (0.5 + 7 / 12 + 2) / 4, rtol=RTOL)


def test_infinite_scores_are_ranked_and_a_perfect_ranking_is_exactly_one():
    truth, scores, weights = labelled_rows(3)
    assert lrap([[0, 1, 1]], np.array([[-np.inf, np.inf, 0.0]])) == 1.0
    assert lrap(truth, np.where(truth, np.inf, scores), sample_weight=weights) == 1.0


def test_tiles_of_rows_change_nothing(monkeypatch):
    truth, scores, weights = labelled_rows(3)
    whole = lrap(truth, scores, sample_weight=weights)
    monkeypatch.setattr(evaluate, "_TILE_ENTRIES", 150)
    for given in (truth, sparse.csr_matrix(truth)):
        np.testing.assert_array_equal(lrap(given, scores, sample_weight=weights), whole)


def test_permuting_labels_changes_no_bit():
    truth, scores, weights = labelled_rows(3)
    order = np.random.default_rng(0).permutation(7)
    found = lrap(truth[:, order], scores[:, order], sample_weight=weights)
    np.testing.assert_array_equal(found, lrap(truth, scores, sample_weight=weights))


def test_jit_equals_eager_and_has_nan_for_what_is_refused():
    truth, scores, weights = labelled_rows(3)
    compiled = jax.jit(lambda t, s, w: lrap(t, s, sample_weight=w))
    found = compiled(truth, scores, np.float32(weights))
    np.testing.assert_allclose(found, lrap(truth, scores, sample_weight=weights), rtol=1e-6)
    assert np.isnan(compiled(truth, scores, np.float32(-weights)))
    assert np.isnan(compiled(truth + 1, scores, np.float32(weights)))


@pytest.mark.parametrize(
    ("truth", "scores", "weights", "words"),
    [
        ([0, 1], [1.0, 2.0], None, ["targets", "(n, K)", "(2,)"]),
        ([[0, 1]], [[1.0], [2.0]], None, ["targets", "scores", "(1, 2)", "(2, 1)"]),
        (np.zeros((0, 2)), np.zeros((0, 2)), None, ["targets (0, 2)"]),
        ([[0, 2]], [[1.0, 2.0]], None, ["targets", "0/1", "2"]),
        ([[0, 1]], [[1.0, np.nan]], None, ["scores", "NaN"]),
        ([[0, 1]], [[1.0, 2.0]], [1.0, 2.0], ["sample_weight", "(1,)", "(2,)"]),
        ([[0, 1], [1, 0]], [[1.0, 2.0], [1.0, 2.0]], [-1, 1], ["sample_weight", "-1"]),
        ([[0, 1], [1, 0]], [[1.0, 2.0], [1.0, 2.0]], [0, 0], ["sample_weight", "zero"]),
    ],
)
def test_errors_name_the_argument_and_what_was_given(truth, scores, weights, words):
    with pytest.raises(ValueError) as error:
        lrap(truth, scores, sample_weight=weights)
    assert all(word in str(error.value) for word in words), str(error.value)
