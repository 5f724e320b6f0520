"""What the ranking metrics refuse, and what they say where they are undefined."""

import itertools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ranking_metrics import (
    RANKERS,
    RTOL,
    WEIGHTED,
    binary,
    every_cutoff,
    every_ranker,
)
from sklearn.metrics import average_precision_score

from jaxsolvers import metrics


@every_ranker
@pytest.mark.parametrize(
    ("targets", "scores", "kw", "words"),
    [
        ([0, 1], [1.0, 2.0, 3.0], {}, ["targets", "scores", "(2,)", "(3,)"]),
        ([[0, 1]], [[1.0], [2.0]], {}, ["targets", "scores", "(1, 2)", "(2, 1)"]),
        ([], [], {}, ["targets", "scores", "(0,)"]),
        (1, 1.0, {}, ["targets", "scores", "()"]),
        ([[0], [1, 0]], [1.0, 2.0], {}, ["targets"]),
        ([0, 1], ["a", "b"], {}, ["scores"]),
        ([0, 1], [1.0, None], {}, ["scores"]),
        ([0, 1], [1j, 2.0], {}, ["scores", "complex"]),
        ([0.0, np.nan], [1.0, 2.0], {}, ["targets", "nan"]),
        ([0, 1], [1.0, 2.0], {"positive": "1"}, ["targets", "positive"]),
        (["a", "b"], [1.0, 2.0], {"positive": 1}, ["targets", "positive"]),
        ([-1, 1], [1.0, 2.0], {"positive": True}, ["targets", "positive", "-1"]),
        (["a", "b"], [1.0, 2.0], {"positive": ["a"]}, ["positive", "['a']"]),
        ([0, 1], [1.0, 2.0], {"sample_weight": [1.0]}, ["sample_weight", "(2,)", "(1,)"]),
        ([0, 1], [1.0, 2.0], {"sample_weight": ["a", "b"]}, ["sample_weight"]),
        ([0, 1], [1.0, 2.0], {"sample_weight": [1, -1]}, ["sample_weight", "non-negative", "-1"]),
        ([0, 1], [1.0, 2.0], {"sample_weight": [1, np.nan]}, ["sample_weight", "nan"]),
        ([0, 1], [1.0, 2.0], {"sample_weight": [1, np.inf]}, ["sample_weight", "inf"]),
        ([0, 1], [1.0, 2.0], {"sample_weight": [0, 0]}, ["sample_weight", "zero"]),
    ],
)
def test_errors_name_the_argument_and_what_was_given(metric, targets, scores, kw, words):
    with pytest.raises(ValueError) as error:
        metric(targets, scores, **kw)
    assert all(word in str(error.value) for word in words), str(error.value)


@pytest.mark.parametrize("name", binary)
@pytest.mark.parametrize(
    ("targets", "words"),
    [
        ([0, 2], ["targets", "positive", "2"]),
        ([-1, 0, 1], ["targets", "positive", "-1"]),
        ([0.0, np.nan], ["targets", "positive", "nan"]),
        ([0.0, 0.5], ["targets", "positive", "0.5"]),
    ],
)
def test_targets_of_more_than_two_classes_are_refused(name, targets, words):
    with pytest.raises(ValueError) as error:
        RANKERS[name](targets, np.arange(len(targets)))
    assert all(word in str(error.value) for word in words), str(error.value)


@pytest.mark.parametrize("name", [name for name in RANKERS if name not in WEIGHTED])
def test_unequal_weights_are_refused_where_no_weighted_form_exists(name):
    with pytest.raises(ValueError, match=r"sample_weight.*equal.*1\.0, 2\.0"):
        RANKERS[name]([0, 1, 1], [1, 2, 3], sample_weight=[0, 1, 2])


def test_unknown_ties_and_shapes_are_refused_inside_jit_too():
    with pytest.raises(ValueError, match=r"ties.*'interpolate'"):
        metrics.average_precision([0, 1], [1, 2], ties="interpolate")
    with pytest.raises(ValueError, match=r"targets \(4, 1\).*scores \(4,\)"):
        jax.jit(metrics.average_precision)(jnp.ones((4, 1)), jnp.ones(4))
    with pytest.raises(ValueError, match="k must be"):
        jax.jit(metrics.precision_at_k)(jnp.ones(4), jnp.ones(4), 2)


@pytest.mark.parametrize("name", [name for name in RANKERS if name != "precision"])
def test_one_warning_counts_the_rankers_without_positives(name):
    metric = RANKERS[name]
    targets = np.array([[1, 0, 0], [0, 0, 0], [0, 1, 0]])
    scores = np.arange(9.0).reshape(3, 3)
    with pytest.warns(UserWarning, match="skipped 2 of 3 rankers") as caught:
        value = metric(targets, scores, sample_weight=[1, 1, 0])
    assert len(caught) == 1 and Path(caught[0].filename).parent == Path(__file__).parent
    rows = np.isnan(np.asarray(value)).reshape(-1, 3)
    np.testing.assert_array_equal(rows, np.broadcast_to([False, True, True], rows.shape))


def test_precision_at_k_without_positives_is_zero():
    value = metrics.precision_at_k(np.array([[1, 0], [0, 0]]), np.eye(2), [1, 5])
    np.testing.assert_allclose(value, [[1.0, 0.0], [0.2, 0.0]], rtol=1e-6)


@every_ranker
def test_case_112_a_column_against_a_vector_is_refused(metric):
    with pytest.raises(ValueError, match=r"targets \(4, 1\).*scores \(4,\)"):
        metric(np.ones((4, 1)), np.ones(4))


def test_no_positives_is_nan_with_one_warning_case_151():
    with pytest.warns(UserWarning, match="average_precision: skipped 1 of 1") as caught:
        assert np.isnan(metrics.average_precision([0, 0, 0], [0.1, 0.2, 0.3]))
    assert len(caught) == 1
    targets = np.array([[0, 1], [0, 0]])
    with pytest.warns(UserWarning, match="skipped 1 of 2") as caught:
        values = metrics.average_precision(targets, [[0.2, 0.9], [0.1, 0.3]])
    assert len(caught) == 1 and np.nanmean(values) == 1.0 and np.isnan(values[0])


def test_k_beyond_the_rows_finds_every_positive_case_154():
    np.testing.assert_array_equal(metrics.recall_at_k([1, 0, 1], [0.3, 0.2, 0.1], 5), 1.0)
    dropped = metrics.recall_at_k([1, 1, 0, 1], [4, 3, 2, 1], 5, sample_weight=[1, 0, 1, 1])
    np.testing.assert_array_equal(dropped, 1.0)


def test_k_beyond_the_rows_divides_by_k_case_154():
    value = metrics.precision_at_k([1, 0, 1], [0.3, 0.2, 0.1], 5)
    np.testing.assert_allclose(value, 0.4, rtol=RTOL)
    dropped = metrics.precision_at_k([1, 1, 0, 1], [4, 3, 2, 1], 5, sample_weight=[1, 0, 1, 1])
    np.testing.assert_allclose(dropped, 0.4, rtol=RTOL)


@every_cutoff
@pytest.mark.parametrize(
    "k", [-1, 0, 4.5, True, False, 3.0, "3", [None], [], [3, 0], [2, True], np.array([1.0]), [[1]]]
)
def test_a_cutoff_that_is_not_a_positive_integer_is_refused_case_155(metric, k):
    with pytest.raises(ValueError, match="k must be an integer >= 1"):
        metric([0, 1], [1, 2], k)


def test_no_cutoff_means_all_rows_for_ndcg_alone():
    for metric in (metrics.precision_at_k, metrics.recall_at_k):
        with pytest.raises(ValueError, match=r"k must be an integer >= 1.*None"):
            metric([0, 1], [1, 2], None)
    assert metrics.ndcg_at_k([0, 1], [1, 2]) == metrics.ndcg_at_k([0, 1], [1, 2], 2)


@pytest.mark.parametrize("k", [np.int64(3), np.uint8(3), np.array(3), jnp.array(3), 3])
def test_integers_of_any_type_are_cutoffs_case_155(k):
    targets, scores = [1, 0, 0, 1], [4, 3, 2, 1]
    value = metrics.precision_at_k(targets, scores, k)
    assert value.shape == ()
    np.testing.assert_allclose(value, 1 / 3, rtol=RTOL)
    assert metrics.recall_at_k(targets, scores, k) == 0.5
    best = 1 + 1 / np.log2(3)
    np.testing.assert_allclose(metrics.ndcg_at_k(targets, scores, k), 1 / best, rtol=RTOL)
    assert metrics.precision_at_k([1, 0], [2, 1], 2**40) == 2.0**-40


def test_a_constant_scorer_has_the_share_of_positives_case_157():
    for rows in itertools.permutations([1, 0, 0, 0]):
        assert metrics.average_precision(rows, np.zeros(4)) == 0.25
        expected = metrics.average_precision(rows, np.zeros(4), ties="expected")
        np.testing.assert_allclose(expected, (1 + 1 / 2 + 1 / 3 + 1 / 4) / 4, rtol=RTOL)


def test_a_constant_scorer_at_k_ignores_the_row_order_case_158():
    for targets in ([0, 0, 1, 1], [1, 1, 0, 0]):
        assert metrics.precision_at_k(targets, np.ones(4), 2) == 0.5


def test_a_zero_weight_row_on_top_is_dropped_case_161():
    targets, scores, weights = [1, 0, 1, 0], [0.9, 0.7, 0.6, 0.95], [1, 1, 1, 0]
    for ties in ("step", "expected"):
        value = metrics.average_precision(targets, scores, ties=ties, sample_weight=weights)
        np.testing.assert_allclose(value, 5 / 6, rtol=RTOL)
    np.testing.assert_allclose(
        metrics.precision_at_k(targets, scores, 1, sample_weight=weights), 1.0, rtol=RTOL
    )


@every_ranker
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, jnp.bfloat16])
def test_nan_scores_are_refused_case_163(metric, dtype):
    for scores in ([np.nan] * 4, [0.1, 0.2, np.nan, 0.3], [np.inf, np.nan, -np.inf, 0.0]):
        with pytest.raises(ValueError, match="scores must not be NaN"):
            metric([0, 0, 1, 1], np.array(scores, dtype))
        with pytest.raises(ValueError, match="scores must not be NaN"):
            metric(jnp.array([0, 0, 1, 1]), jnp.asarray(np.array(scores, dtype), jnp.float32))


def test_infinite_scores_are_ranked_case_163():
    scores = np.array([np.inf, 1.0, -np.inf, 2.0], np.float32)
    for given in (scores, jnp.asarray(scores), scores.astype(np.float64)):
        assert metrics.average_precision([1, 0, 0, 0], given) == 1.0
        assert metrics.average_precision([0, 0, 1, 0], given) == 0.25
        assert metrics.precision_at_k([1, 0, 0, 1], given, 2) == 1.0
    assert metrics.average_precision([1, 0], [np.inf, np.inf]) == 0.5


def test_cutoffs_answer_in_the_order_asked_case_164():
    value = metrics.precision_at_k([0, 1, 0], [3, 2, 1], [3, 1, 2])
    np.testing.assert_allclose(value, [1 / 3, 0.0, 0.5], rtol=RTOL)
    columns = metrics.precision_at_k([[0, 1], [1, 0], [0, 0]], [[3, 3], [2, 2], [1, 1]], (3, 1, 2))
    np.testing.assert_allclose(columns, [[1 / 3, 1 / 3], [0, 1], [0.5, 0.5]], rtol=RTOL)
    assert metrics.precision_at_k([0, 1, 0], [3, 2, 1], [1]).shape == (1,)


@pytest.mark.parametrize("labels", [np.array, list, lambda x: np.array(x, object)])
def test_string_labels_need_the_positive_one_case_169(labels):
    targets, scores = labels(["n", "p", "p", "n"]), [0.1, 0.9, 0.4, 0.6]
    with pytest.raises(ValueError, match="positive="):
        metrics.average_precision(targets, scores)
    found = metrics.average_precision(targets, scores, positive="p")
    np.testing.assert_allclose(found, 5 / 6, rtol=RTOL)
    assert metrics.precision_at_k(targets, scores, 1, positive=np.str_("p")) == 1.0


def test_positive_names_one_of_many_labels_also_inside_jit():
    targets, scores = np.array([7, 5, 5, 3]), np.array([4, 3, 2, 1], np.int32)
    expected = average_precision_score(targets == 5, scores)

    def value(targets, scores):
        return metrics.average_precision(targets, scores, positive=np.int64(5))

    for found in (value(targets, scores), value(jnp.array(targets), scores)):
        np.testing.assert_allclose(found, expected, rtol=RTOL)
    for dtype in (jnp.int32, jnp.float32):
        found = jax.jit(value)(jnp.asarray(targets, dtype), scores)
        np.testing.assert_allclose(found, expected, rtol=RTOL)
