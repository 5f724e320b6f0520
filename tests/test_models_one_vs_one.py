"""One-vs-one models: votes and margins, files, refusals."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from references.one_vs_one import winner

import jaxsolvers as js
from jaxsolvers.models import archive, one_vs_one_file

F = jnp.result_type(float)
RNG = np.random.default_rng(31)
NAMES = np.array(["d", "aä", "", "b", "c"])
N_PAIRS = 10


def scored_as(scores: np.ndarray, classes: np.ndarray = NAMES) -> tuple[js.OneVsOneModel, Any]:
    """A model, and rows that it scores so."""
    lost = ~np.isfinite(scores).all(axis=0)
    rows = np.where(lost, 0, scores).astype(F)
    rankers = js.LinearModel(np.eye(rows.shape[1], dtype=F), np.where(lost, -np.inf, 0), None)
    return js.OneVsOneModel(rankers, classes), rows


@pytest.mark.parametrize("method", ["vote", "margin"])
@pytest.mark.parametrize("lost", [False, True])
def test_answers_are_those_of_a_count_row_by_row(method, lost):
    # Whole numbers: sums are exact, and many rows have ties of votes, of margins, or scores of 0.
    scores = RNG.integers(-2, 3, (3000, N_PAIRS)).astype(F)
    scores[:9] = 0
    if lost:
        scores[:, 3] = -np.inf
    model, rows = scored_as(scores)
    expected = [winner(row, len(NAMES), method) for row in scores]
    assert model.predict(rows, method).tolist() == NAMES[expected].tolist()
    sparse = scipy.sparse.csr_array(rows)
    assert model.predict(sparse, method=method).tolist() == NAMES[expected].tolist()


def test_ties_go_to_the_margins_and_then_to_the_first_class():
    # Pairs (0, 1), (0, 2), (1, 2): a circle, 0 beats 1 beats 2 beats 0.
    model, rows = scored_as(np.array([[1.0, -1, 1], [1, -1, 3], [1, -3, 1], [2, -1, 0]]), NAMES[:3])
    assert model.pairs.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert model.predict(rows).tolist() == [NAMES[0], NAMES[1], NAMES[2], NAMES[2]]
    assert model.predict(rows, "margin").tolist() == [NAMES[0], NAMES[1], NAMES[2], NAMES[0]]
    np.testing.assert_array_equal(model.decision_function(rows), rows)


def test_two_classes_are_one_ranker():
    model = js.OneVsOneModel(js.LinearModel(np.ones((1, 1), F), np.zeros(1), None), [7, 9])
    assert model.predict(np.array([[0.5], [-0.5], [0.0]])).tolist() == [7, 9, 9]


def test_a_model_comes_back_from_its_file_to_the_bit(tmp_path):
    coef = RNG.normal(size=(N_PAIRS, 4)).astype(F)
    X = RNG.normal(size=(12, 4)).astype(F)
    intercept = np.append(RNG.normal(size=N_PAIRS - 1), -np.inf).astype(F)
    kernel = js.KernelModel(X, coef @ X.T, js.kernels.RBF(0.5), intercept, None, n_train=12)
    linear = js.LinearModel(jnp.asarray(coef), intercept, None)
    for i, rankers in enumerate((linear, linear.sparsify(), kernel)):
        model = js.OneVsOneModel(rankers, NAMES)
        model.save(tmp_path / f"{i}.npz")
        again = js.load(tmp_path / f"{i}.npz")
        assert type(again) is js.OneVsOneModel and type(again.rankers) is type(rankers)
        assert again.classes.tolist() == NAMES.tolist() and again.classes.dtype == NAMES.dtype
        ours, theirs = (np.asarray(m.decision_function(X)) for m in (again, model))
        assert ours.tobytes() == theirs.tobytes() and ours.dtype == theirs.dtype
        for method in ("vote", "margin"):
            assert again.predict(X, method).tolist() == model.predict(X, method).tolist()
        np.testing.assert_array_equal(again.intercept, intercept)
        assert again.n_features == 4


def test_a_damaged_file_is_told(tmp_path):
    rankers = js.LinearModel(np.ones((3, 2), F), np.zeros(3), None)
    arrays = one_vs_one_file.pack(rankers, NAMES[:3])
    changes = {
        "no entry 'labels'": {"labels": None},
        "no entry 'rankers'": {"rankers": None},
        "unknown kind 'Forest'": {"rankers": np.array("Forest")},
        "classes must be K labels": {"labels": NAMES},
    }
    for message, change in changes.items():
        kept = {name: v for name, v in (arrays | change).items() if v is not None}
        archive.write_archive(tmp_path / "model.npz", one_vs_one_file.KIND, kept)
        with pytest.raises(ValueError, match=f"path: .*{message}"):
            js.load(tmp_path / "model.npz")


def test_refusals_name_the_argument():
    rankers = js.LinearModel(np.ones((3, 2), F), np.zeros(3), None)
    model = js.OneVsOneModel(rankers, NAMES[:3])
    with pytest.raises(ValueError, match="method must be one of 'vote', 'margin', got 'votes'"):
        model.predict(np.ones((1, 2)), "votes")
    with pytest.raises(ValueError, match=r"X must be of shape \(n, 2\)"):
        model.predict(np.ones((1, 3)))
    with pytest.raises(ValueError, match="X must be finite"):
        model.decision_function(np.full((1, 2), np.nan))
    with pytest.raises(ValueError, match="rankers must be a LinearModel or a KernelModel, got str"):
        js.OneVsOneModel("rankers", NAMES)
    for classes in (NAMES, NAMES[:1], NAMES[:4].reshape(2, 2)):
        with pytest.raises(ValueError, match="classes must be K labels"):
            js.OneVsOneModel(rankers, classes)
    with pytest.raises(ValueError, match=r"model must be one of js\.fit or"):
        js.metrics.objective(js.Pegasos(0.1), model, np.ones((1, 2)), NAMES[:1])
