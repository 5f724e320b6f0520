"""Sparse targets and tiles of columns: the values of the dense ones, in little memory."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import sparse as jax_sparse
from ranking_metrics import RANKERS, every_name, every_ranker, tied_columns
from scipy import sparse

from jaxsolvers import metrics
from jaxsolvers.metrics import evaluate


@every_ranker
@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array, sparse.csc_array])
def test_sparse_targets_equal_dense_ones(metric, kind):
    targets, scores = tied_columns(20, 5, 4)
    for dtype in (bool, np.int64, np.float32):
        given = kind(targets.astype(dtype))
        np.testing.assert_array_equal(metric(given, scores), metric(targets, scores))
    given = kind(targets)
    np.testing.assert_array_equal(metric(given, jnp.asarray(scores)), metric(targets, scores))


@every_name
def test_tiles_of_columns_change_nothing_and_warn_once(name, monkeypatch):
    targets, scores = tied_columns(20, 5, 4)
    targets[:, 3] = False

    def value(targets):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = RANKERS[name](targets, scores)
        undefined = name != "precision"
        assert len(caught) == undefined
        assert not undefined or "skipped 1 of 5 rankers" in str(caught[0].message)
        return found

    whole = value(targets)
    monkeypatch.setattr(evaluate, "_TILE_ENTRIES", 50)  # two columns
    for given in (targets, jnp.asarray(targets), sparse.coo_array(targets)):
        np.testing.assert_array_equal(value(given), whole)


def test_sparse_targets_are_never_dense_as_a_whole(monkeypatch):
    targets, scores = tied_columns(20, 40, 4)
    whole = metrics.recall_at_k(targets, scores, 3)
    shapes = []
    dense = sparse.csc_array.toarray

    def noted(self, *args, **kw):
        shapes.append(self.shape)
        return dense(self, *args, **kw)

    monkeypatch.setattr(sparse.csc_array, "toarray", noted)
    monkeypatch.setattr(evaluate, "_TILE_ENTRIES", 160)
    found = metrics.recall_at_k(sparse.csr_array(targets), scores, 3)
    np.testing.assert_array_equal(found, whole)
    assert shapes == [(20, 8)] * 5


def test_graded_relevance_may_be_sparse_and_groups_apply():
    relevance, scores = np.array([[3, 0], [0, 1], [1, 0], [0, 2]]), np.arange(8).reshape(4, 2)
    given, ids = sparse.csr_array(relevance), [0, 1, 0, 1]
    with pytest.warns(UserWarning, match="skipped 2 of 4 queries"):
        found = metrics.ndcg_at_k(given, scores, groups=ids)
    with pytest.warns(UserWarning, match="skipped 2 of 4 queries"):
        expected = metrics.ndcg_at_k(relevance, scores, groups=ids)
    np.testing.assert_array_equal(found, expected)


def test_sparse_targets_inside_jit():
    targets, scores = tied_columns(20, 5, 4)
    given = sparse.csr_array(targets)
    found = jax.jit(lambda scores: metrics.roc_auc(given, scores))(scores)
    np.testing.assert_allclose(found, metrics.roc_auc(targets, scores), rtol=1e-6)


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        (sparse.csr_array([[1, 0], [2, 1]]), ["targets", "0/1", "2"]),
        (sparse.csr_array([[1, 0], [-1, 0]]), ["scores", "targets", "(2, 2)", "(2, 1)"]),
        (sparse.coo_array([1, 0]), ["targets", "dense", "coo_array", "targets.toarray()"]),
        (jax_sparse.BCOO.fromdense(jnp.eye(2)), ["targets", "BCOO", "targets.todense()"]),
    ],
)
def test_bad_sparse_targets_are_refused(targets, words):
    scores = np.zeros((2, 1)) if "scores" in words else np.zeros((2, 2))
    with pytest.raises(ValueError) as error:
        metrics.average_precision(targets, scores)
    assert all(word in str(error.value) for word in words), str(error.value)


def test_repeated_coordinates_are_summed_and_refused_by_value():
    repeated = sparse.csr_array((np.ones(3), [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    with pytest.raises(ValueError, match=r"targets must be .*0/1.*2\.0"):
        metrics.average_precision(repeated, np.zeros((2, 2)))


def test_sparse_scores_and_labels_are_refused_by_name():
    with pytest.raises(ValueError, match=r"scores must be a dense array.*scores\.toarray\(\)"):
        metrics.average_precision(np.eye(2), sparse.csr_array(np.eye(2)))
    with pytest.raises(ValueError, match=r"targets must be a dense array.*targets\.toarray\(\)"):
        metrics.error_rate(sparse.csr_array(np.eye(2)), np.eye(2))
