"""Generated text: sizes, Zipf's law, the same rows for a seed, and something to learn."""

from __future__ import annotations

import numpy as np
import pytest

from jaxsolvers.data import multilabel_text, sparse_text
from jaxsolvers.data.zipf import Zipf


@pytest.fixture(scope="module")
def text():
    return sparse_text(2500, 3000, 10, nnz=40)


@pytest.fixture(scope="module")
def tagged():
    return multilabel_text(2500, 3000, 60, labels_per_row=2.5, nnz=40)


def assert_rows(X, shape, dtype, nnz):
    assert X.shape == shape and X.dtype == dtype
    assert X.indices.dtype == X.indptr.dtype == np.int32 and X.has_canonical_format
    assert (X.data > 0).all()
    assert abs(X.nnz / shape[0] / nnz - 1) < 0.1
    norms = np.sqrt(np.add.reduceat(X.data.astype(float) ** 2, X.indptr[:-1]))
    np.testing.assert_allclose(norms, 1, rtol=1e-6)
    lengths = np.diff(X.indptr)
    assert lengths.min() > 0 and lengths.std() > 0.25 * lengths.mean()  # as documents vary


def test_text_has_the_shape_and_length_asked_for(text, tagged):
    X, y = text
    assert_rows(X, (2500, 3000), np.float32, 40)
    assert y.shape == (2500,) and y.dtype == np.int64 and set(y.tolist()) == set(range(10))
    X, Y = tagged
    assert_rows(X, (2500, 3000), np.float32, 40)
    assert Y.shape == (2500, 60) and Y.dtype == bool and Y.data.all()
    assert Y.indices.dtype == Y.indptr.dtype == np.int32 and Y.has_canonical_format
    assert abs(Y.nnz / 2500 / 2.5 - 1) < 0.1
    assert 0 < (np.diff(Y.indptr) == 0).mean() < 0.2  # e^-rate, the rate being above 2.5


def test_frequencies_follow_zipfs_law(text, tagged):
    # A word in few documents is in about as many as it was drawn times: slope -1 in the tail.
    for X, columns in ((text[0], 3000), (tagged[1], 60)):
        documents = np.bincount(X.indices, minlength=columns)
        first, last = (20, 800) if columns > 60 else (1, 60)
        log_rank = np.log(np.arange(1, columns + 1)[first:last])
        slope = np.polyfit(log_rank, np.log(documents[first:last] + 0.5), 1)[0]
        assert -1.25 < slope < -0.75
        assert documents[:10].min() > documents[-10:].max()


def test_zipf_draws_have_their_probabilities():
    zipf = Zipf(50, 1.3)
    np.testing.assert_allclose(zipf.probability[4] / zipf.probability[0], 5**-1.3)
    draws = np.bincount(zipf.draw(np.random.default_rng(0), 200_000), minlength=50)
    spread = np.sqrt(zipf.probability * 200_000)
    assert (np.abs(draws - zipf.probability * 200_000) < 5 * spread).all()
    np.testing.assert_allclose(Zipf(7, 0.0).probability, 1 / 7)


def test_a_seed_gives_the_same_rows_and_another_seed_others():
    sizes = {"n": 60, "d": 400, "nnz": 10}
    for make, labels in ((sparse_text, {"n_classes": 4}), (multilabel_text, {"n_labels": 9})):
        (X, y), (X2, y2), (X3, _) = (make(**sizes, **labels, seed=seed) for seed in (3, 3, 4))
        assert (X != X2).nnz == 0 and (X != X3).nnz > 0
        assert (y != y2).sum() == 0
        wide, _ = make(**sizes, **labels, seed=3, dtype="float64")
        assert wide.dtype == np.float64
        np.testing.assert_array_equal(wide.data.astype(np.float32), X.data)


def perceptron(X, targets, rows):
    """Weights (d, K) after one pass of perceptrons, one per column of targets (n, K) of -1, 1."""
    weights = np.zeros((X.shape[1], targets.shape[1]))
    for i in rows:
        part = slice(X.indptr[i], X.indptr[i + 1])
        columns, values = X.indices[part], X.data[part].astype(float)
        wrong = targets[i] * (values @ weights[columns]) <= 0
        weights[columns] += values[:, None] * (wrong * targets[i])
    return weights


def test_a_perceptron_learns_the_classes(text):
    X, y = text
    weights = perceptron(X, np.where(y[:, None] == np.arange(10), 1, -1), range(1500))
    guesses = (X[1500:] @ weights).argmax(axis=1)
    assert (guesses == y[1500:]).mean() > 0.5  # 0.1 by chance


def test_a_perceptron_learns_the_frequent_labels(tagged):
    X, Y = tagged
    targets = np.where(Y[:, :8].toarray(), 1, -1)
    scores = X[1500:] @ perceptron(X, targets, range(1500))
    for label in range(8):
        positive = targets[1500:, label] > 0
        above = scores[positive, label][:, None] > scores[~positive, label]
        assert above.mean() > 0.7  # the area under the curve, 0.5 by chance


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"n": 0}, "n must"),
        ({"n": 3}, "n_classes"),
        ({"d": 1.5}, "d must"),
        ({"n_classes": 0}, "n_classes"),
        ({"nnz": 0}, "nnz"),
        ({"nnz": 51}, "nnz"),
        ({"nnz": 40, "exponent": 6.0}, "nnz.*exponent"),
        ({"exponent": -1}, "exponent"),
        ({"exponent": float("nan")}, "exponent"),
        ({"exponent": "1"}, "exponent"),
        ({"seed": -1}, "seed"),
        ({"seed": None}, "seed"),
        ({"dtype": "int32"}, "dtype"),
    ],
)
def test_sizes_are_refused_by_name(change, word):
    given = {"n": 20, "d": 100, "n_classes": 4, "nnz": 10, **change}
    with pytest.raises(ValueError, match=word):
        sparse_text(**given)
    if "n_classes" not in change and change != {"n": 3}:
        given["n_labels"] = given.pop("n_classes")
        given["labels_per_row"] = 1.0
        with pytest.raises(ValueError, match=word):
            multilabel_text(**given)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"labels_per_row": 0}, "labels_per_row"),
        ({"labels_per_row": 2.5}, "labels_per_row.*n_labels=4"),
        ({"labels_per_row": 2.0, "label_exponent": 9.0}, "labels_per_row.*exponent"),
        ({"label_exponent": -1}, "label_exponent"),
        ({"n_labels": 0}, "n_labels"),
    ],
)
def test_numbers_of_labels_are_refused_by_name(change, word):
    given = {"n": 20, "d": 100, "n_labels": 4, "labels_per_row": 1.0, "nnz": 10, **change}
    with pytest.raises(ValueError, match=word):
        multilabel_text(**given)


def test_small_sizes_work():
    X, y = sparse_text(3, 1, 1, nnz=1)
    assert X.toarray().tolist() == [[1], [1], [1]] and y.tolist() == [0, 0, 0]
    X, Y = multilabel_text(3, 2, 2, labels_per_row=0.01, nnz=1)
    assert X.shape == (3, 2) and Y.shape == (3, 2)
