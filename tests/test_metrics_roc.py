"""The area under the ROC curve against scikit-learn and by its laws."""

import numpy as np
import pytest
from ranking_metrics import RTOL, WEIGHTINGS, row_weights, tied_columns
from sklearn.metrics import roc_auc_score

from jaxsolvers import metrics


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("levels", [1, 4, 1000])
def test_roc_auc_equals_scikit_learn(levels, weighting):
    targets, scores = tied_columns(400, 5, levels)
    weights = row_weights(weighting)
    expected = [
        roc_auc_score(t, s, sample_weight=weights) for t, s in zip(targets.T, scores.T, strict=True)
    ]
    found = metrics.roc_auc(targets, scores, sample_weight=weights)
    np.testing.assert_allclose(found, expected, rtol=RTOL)


def test_a_small_area_keeps_its_digits():
    n = 4000
    targets = np.arange(n) % 2 == 0
    scores = np.where(targets, -1, 1)
    scores[10] = 1  # this positive ties with all negatives, all others are below
    expected = (n / 4) / (n / 2) ** 2
    np.testing.assert_allclose(metrics.roc_auc(targets, scores), expected, rtol=RTOL)


def test_swapping_the_classes_or_the_order_gives_the_rest_of_one():
    targets, scores = tied_columns(50, 3, 6)
    area = np.asarray(metrics.roc_auc(targets, scores))
    np.testing.assert_allclose(metrics.roc_auc(~targets, scores), 1 - area, rtol=10 * RTOL)
    np.testing.assert_allclose(metrics.roc_auc(targets, -scores), 1 - area, rtol=10 * RTOL)


def test_one_class_is_nan_with_one_warning():
    targets = np.array([[1, 0, 1], [1, 0, 0]])
    with pytest.warns(UserWarning, match="roc_auc: skipped 2 of 3 .* rows of one class") as caught:
        values = metrics.roc_auc(targets, targets)
    assert len(caught) == 1 and caught[0].filename == __file__
    np.testing.assert_array_equal(values, [np.nan, np.nan, 1.0])
    with pytest.warns(UserWarning, match="skipped 1 of 1"):
        assert np.isnan(metrics.roc_auc([1, 1, 0], [1, 2, 3], sample_weight=[1, 1, 0]))


def test_infinite_scores_are_ranked():
    assert metrics.roc_auc([1, 0, 0], np.array([np.inf, 1.0, -np.inf])) == 1.0
    assert metrics.roc_auc([1, 0, 0], np.array([np.inf, np.inf, -np.inf])) == 0.75
