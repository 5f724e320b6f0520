"""``predict``: what it writes is what the library says."""

from __future__ import annotations

import dataclasses
import os
import stat

import numpy as np
import pytest
from command_line import D, N, Runner, labels, rows, save
from scipy import sparse

import jaxsolvers as js
from jaxsolvers.cli import predict, reading
from jaxsolvers.data import write_svmlight


@pytest.fixture
def run(capsys):
    return Runner(capsys)


@pytest.fixture
def trained(run, tmp_path):
    """(model file, model, data file, rows) of a task."""

    def make(task, form="svm"):
        data, path = save(tmp_path, task, form), tmp_path / f"{task}.npz.model"
        run.fine("train", data, "-o", path, "--epochs", 2)
        return path, js.load(path), data, rows()

    return make


def test_scores_read_back_to_the_same_bits(run, trained, monkeypatch):
    monkeypatch.setattr(predict, "_SCORES", 3 * 16)  # blocks of 16 rows
    monkeypatch.setattr(reading, "BLOCK_ROWS", 32)
    for task in ("binary", "multiclass", "multilabel"):
        path, model, data, X = trained(task)
        lines = run.fine("predict", path, data, "--scores").splitlines()
        found = np.array([line.split() for line in lines], np.float32)
        expected = np.asarray(model.decision_function(X)).reshape(N, -1)
        np.testing.assert_array_equal(found, expected)


def test_the_best_labels_come_with_their_scores(run, trained):
    path, model, data, X = trained("multiclass")
    indices, scores = model.top_k(X, 2)
    expected = [
        " ".join(f"{model.classes[k]}:{score!s}" for k, score in zip(*row, strict=True))
        for row in zip(np.asarray(indices), np.asarray(scores), strict=True)
    ]
    assert run.fine("predict", path, data, "--top-k", 2).splitlines() == expected
    assert "1 ... 3, got 4" in run.refused("predict", path, data, "--top-k", 4)


def test_a_threshold_moves_the_decision(run, trained):
    for task in ("binary", "multilabel"):
        path, model, data, X = trained(task)
        never = run.fine("predict", path, data, "--threshold", "1e9").splitlines()
        always = run.fine("predict", path, data, "--threshold=-1e9").splitlines()
        if task == "binary":
            assert set(never) == {"-1"} and set(always) == {"1"}
        else:
            assert set(never) == {""} and set(always) == {"0,1,2,3"}
        some = run.fine("predict", path, data, "--threshold", "-0.25").splitlines()
        found = model.predict(X, -0.25)
        if task == "binary":
            assert some == list(map(str, found.tolist()))
        else:
            sets = dataclasses.replace(model, output="sets").predict(X, -0.25)
            assert some == [",".join(map(str, row)) for row in sets]


def test_options_without_use_are_refused(run, trained):
    binary, _, data, _ = trained("binary")
    assert "one ranker per class" in run.refused("predict", binary, data, "--top-k", 1)
    assert "no use" in run.refused("predict", binary, data, "--scores", "--threshold", 1)
    assert "nan" in run.refused("predict", binary, data, "--threshold", "nan")
    many, _, data, _ = trained("multiclass")
    assert "no use for a multiclass" in run.refused("predict", many, data, "--threshold", 1)


def test_output_goes_to_a_new_file_whole(run, trained, tmp_path, monkeypatch):
    path, _, data, _ = trained("binary")
    printed = run.fine("predict", path, data)
    place = tmp_path / "labels.txt"
    done = run("predict", path, data, "-o", place)
    assert done == (0, "", f"{N} rows written to {place}\n")
    assert place.read_text() == printed == run.fine("predict", path, data, "-o", "-")
    assert "--force" in run.refused("predict", path, data, "-o", place)
    assert "--force" in run.refused("predict", path, data, "-o", path)  # a model, no predictions

    def broken(*arguments):
        yield rows()
        raise ValueError("cut off")

    monkeypatch.setattr(predict, "row_blocks", broken)
    assert "cut off" in run.refused("predict", path, data, "-o", place, "--force")
    assert place.read_text() == printed
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".part")]


def test_places_that_cannot_be_written_are_refused(run, trained, tmp_path):
    path, _, data, _ = trained("binary")
    assert "no folder" in run.refused("predict", path, data, "-o", tmp_path / "none" / "out")
    assert "must be a file" in run.refused("predict", path, data, "-o", tmp_path)
    assert "regular file" in run.refused("train", data, "-o", os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    run.fine("predict", path, data, "-o", os.devnull, "-q")


def test_rows_need_no_labels(run, trained, tmp_path):
    for task in ("binary", "multiclass", "multilabel", "regression"):
        path, _, data, X = trained(task)
        bare = tmp_path / "bare.svm"
        write_svmlight(bare, X, sparse.csr_array((N, 2), dtype=bool), multilabel=True)
        assert bare.read_text()[0] == " " or ":" in bare.read_text().split()[0]
        sparse.save_npz(tmp_path / "bare.npz", X)
        expected = run.fine("predict", path, data)
        assert run.fine("predict", path, bare) == expected
        assert run.fine("predict", path, tmp_path / "bare.npz") == expected


def test_new_features_are_an_error_or_left_out(run, trained, tmp_path):
    path, _, data, X = trained("binary")
    expected = run.fine("predict", path, data, "--scores")
    wide = sparse.hstack([X, sparse.csr_array(np.ones((N, 2), np.float32))], format="csr")
    write_svmlight(tmp_path / "wide.svm", wide, labels("binary", X))
    sparse.save_npz(tmp_path / "wide.npz", wide)
    np.savez(tmp_path / "dense.npz", X=wide.toarray())
    for name in ("wide.svm", "wide.npz", "dense.npz"):
        message = run.refused("predict", path, tmp_path / name)
        assert "--drop-new-features" in message
        found = run.fine("predict", path, tmp_path / name, "--scores", "--drop-new-features")
        np.testing.assert_allclose(
            np.array(found.split(), float), np.array(expected.split(), float), rtol=1e-6, atol=1e-6
        )
    narrow = tmp_path / "narrow.svm"
    write_svmlight(narrow, X[:, : D - 2], labels("binary", X))  # the last ones do not occur
    assert len(run.fine("predict", path, narrow).splitlines()) == N


def test_labels_that_would_break_the_lines_are_refused(run, tmp_path):
    X, data, path = rows().toarray(), tmp_path / "data.npz", tmp_path / "model.npz"
    names = np.array(["one\ntwo", "a b", "c"])
    np.savez(data, X=X, y=names[labels("multiclass", rows()) // 2])
    run.fine("train", data, "-o", path, "--epochs", 1)
    assert r"'one\ntwo'" in run.refused("predict", path, data)
    np.savez(data, X=X, y=names[1:][labels("multiclass", rows()) // 2 % 2])
    run.fine("train", data, "-o", path, "--epochs", 1)
    assert set(run.fine("predict", path, data).splitlines()) <= {"a b", "c"}


def test_models_of_the_library_predict(run, tmp_path):
    X, path = rows(), tmp_path / "model.npz"
    fit = js.fit(js.Pegasos(0.01), X, labels("binary", X))
    fit.model.save(path)
    data = save(tmp_path, "binary", "svm")
    assert run.fine("predict", path, data).split() == list(map(str, fit.model.predict(X).tolist()))
