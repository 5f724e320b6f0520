"""``evaluate``: its numbers are those of scikit-learn."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command_line import N, Runner, labels, rows, save
from scipy import sparse
from sklearn import metrics

import jaxsolvers as js
from jaxsolvers.cli import evaluate
from jaxsolvers.data import write_svmlight


@pytest.fixture
def run(capsys):
    return Runner(capsys)


@pytest.fixture
def trained(run, tmp_path):
    """(model file, model) of a task."""

    def make(task):
        path = tmp_path / "model.npz"
        run.fine("train", save(tmp_path, task, "svm"), "-o", path, "--epochs", 2)
        return path, js.load(path)

    return make


def measured(run, *words):
    return json.loads(run.fine("evaluate", *words, "--json"))


def test_two_classes(run, trained, tmp_path):
    path, model = trained("binary")
    found = measured(run, path, save(tmp_path, "binary", "svm", seed=1))
    X, y = rows(1), labels("binary", rows(1))
    scores = np.asarray(model.decision_function(X))
    accuracy = metrics.accuracy_score(y, model.predict(X))
    assert found["accuracy"] == pytest.approx(accuracy) == 1 - found["error_rate"]
    average = metrics.average_precision_score(y, scores)
    assert found["average_precision"] == pytest.approx(average, rel=1e-5)
    assert found["roc_auc"] == pytest.approx(metrics.roc_auc_score(y, scores), rel=1e-5)


@pytest.mark.parametrize("tile", [1 << 22, 2 * N])
@pytest.mark.parametrize("task", ["multiclass", "multilabel"])
def test_many_rankers(run, trained, tmp_path, monkeypatch, task, tile):
    monkeypatch.setattr(evaluate, "_SCORES", tile)  # two rankers at a time
    monkeypatch.setattr(evaluate, "BLOCK_ROWS", 32)
    path, model = trained(task)
    found = measured(run, path, save(tmp_path, task, "svm", seed=1))
    X, y = rows(1), labels(task, rows(1))
    scores = np.asarray(model.decision_function(X))
    truth = y.toarray() if task == "multilabel" else y[:, None] == model.classes[None]
    kept = truth.any(axis=0)
    average = metrics.average_precision_score(truth[:, kept], scores[:, kept], average="macro")
    assert found["mean_average_precision"] == pytest.approx(average, rel=1e-5)
    assert found["classes_averaged"] == kept.sum()
    best = np.argsort(-scores, axis=1, kind="stable")
    for k in (1, 3):
        hits = np.take_along_axis(truth, best[:, :k], axis=1)
        assert found[f"precision_at_{k}"] == pytest.approx(hits.mean())
    assert "precision_at_5" not in found
    if task == "multiclass":
        accuracy = metrics.accuracy_score(y, model.predict(X))
        assert found["accuracy"] == pytest.approx(accuracy)


def test_regression(run, trained, tmp_path):
    path, model = trained("regression")
    found = measured(run, path, save(tmp_path, "regression", "svm", seed=1))
    y = labels("regression", rows(1))
    predicted = np.asarray(model.predict(rows(1)))
    for name, function in (
        ("mean_squared_error", metrics.mean_squared_error),
        ("mean_absolute_error", metrics.mean_absolute_error),
        ("r2", metrics.r2_score),
    ):
        assert found[name] == pytest.approx(function(y, predicted), rel=1e-4), name


def test_classes_without_rows_are_left_out_and_counted(run, trained, tmp_path):
    path, _ = trained("multiclass")
    X, y = rows(1), labels("multiclass", rows(1))
    kept = np.flatnonzero(y != 3)
    write_svmlight(tmp_path / "part.svm", X[kept], y[kept])
    found = measured(run, path, tmp_path / "part.svm")
    assert found["classes_averaged"] == 2 and found["classes_without_rows"] == 1
    assert found["mean_average_precision"] > 0


def test_unknown_labels_are_errors_and_counted(run, trained, tmp_path):
    path, model = trained("multiclass")
    X, y = rows(1), labels("multiclass", rows(1)).copy()
    y[:5] = 8
    write_svmlight(tmp_path / "new.svm", X, y)
    found = measured(run, path, tmp_path / "new.svm")
    assert found["rows_with_unknown_label"] == 5
    assert found["accuracy"] == pytest.approx(np.mean(model.predict(X) == y))
    write_svmlight(tmp_path / "none.svm", X, y * 0 + 8)
    assert "no label that the model knows" in run.refused("evaluate", path, tmp_path / "none.svm")
    np.savez(tmp_path / "text.npz", X=X.toarray(), y=y.astype(str))
    assert "of the model's kind" in run.refused("evaluate", path, tmp_path / "text.npz")


def test_label_sets_may_hold_more_or_fewer_labels(run, trained, tmp_path):
    path, _ = trained("multilabel")
    X, y = rows(1), labels("multilabel", rows(1))
    more = sparse.hstack([y, sparse.csr_array(np.ones((N, 2), bool))], format="csr")
    write_svmlight(tmp_path / "plain.svm", X, y, multilabel=True)
    write_svmlight(tmp_path / "more.svm", X, more, multilabel=True)
    plain = measured(run, path, tmp_path / "plain.svm")
    found = measured(run, path, tmp_path / "more.svm")
    assert found.pop("labels_unknown") == 2 * N and plain.pop("labels_unknown") == 0
    assert found == plain
    write_svmlight(tmp_path / "fewer.svm", X, y[:, :2], multilabel=True)
    assert measured(run, path, tmp_path / "fewer.svm")["classes_without_rows"] == 2


def test_measures_that_do_not_exist_are_null(run, trained, tmp_path):
    path, _ = trained("binary")
    write_svmlight(tmp_path / "no.svm", rows(1), np.full(N, -1))
    found = measured(run, path, tmp_path / "no.svm")
    assert found["average_precision"] is None and found["roc_auc"] is None
    assert "roc_auc                 -\n" in run.fine("evaluate", path, tmp_path / "no.svm")
    path, _ = trained("regression")
    write_svmlight(tmp_path / "flat.svm", rows(1), np.full(N, 0.5))
    assert measured(run, path, tmp_path / "flat.svm")["r2"] is None


def test_labels_of_another_form_are_refused(run, trained, tmp_path):
    path, _ = trained("multilabel")
    dense = save(tmp_path, "binary", "dense.npz")
    assert "indicators" in run.refused("evaluate", path, dense)
    path, _ = trained("binary")
    tags = save(tmp_path, "multilabel", "dense.npz")
    assert "one label per row" in run.refused("evaluate", path, tags)
    sparse.save_npz(tmp_path / "bare.npz", rows())
    assert "--labels" in run.refused("evaluate", path, tmp_path / "bare.npz")
