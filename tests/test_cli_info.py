"""``info``: what a file holds."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command_line import D, N, Runner, labels, labels_option, rows, save
from scipy import sparse

import jaxsolvers as js
from jaxsolvers.cli import info
from jaxsolvers.data import write_svmlight


@pytest.fixture
def run(capsys):
    return Runner(capsys)


def described(run, *words):
    return json.loads(run.fine("info", *words, "--json"))


@pytest.mark.parametrize("form", ["svm", "npz", "dense.npz"])
def test_data_is_counted(run, tmp_path, monkeypatch, form):
    monkeypatch.setattr(info, "BLOCK_ROWS", 7)
    data = save(tmp_path, "multiclass", form)
    found = described(run, data, *labels_option(data))
    X, y = rows().toarray(), labels("multiclass", rows())
    lengths = (X != 0).sum(axis=1)
    assert found["rows"] == N and found["features"] == D and found["nonzeros"] == lengths.sum()
    assert found["nonzeros_per_row"] == {
        "min": lengths.min(),
        "mean": pytest.approx(lengths.mean()),
        "max": lengths.max(),
    }
    assert found["labels"] == {str(k): int((y == k).sum()) for k in (1, 3, 5)}
    assert found["bytes"] == data.stat().st_size
    assert found.get("first_index") == (1 if form == "svm" else None)


def test_label_sets_are_counted(run, tmp_path):
    y = labels("multilabel", rows()).toarray()
    y[:3] = False
    for form in ("svm", "npz"):
        data = tmp_path / f"tags.{form}"
        if form == "svm":
            write_svmlight(data, rows(), sparse.csr_array(y), multilabel=True)
        else:
            np.savez(data, X=rows().toarray(), y=y)
        found = described(run, data)
        assert found["labels"] == {str(k): int(y[:, k].sum()) for k in range(4)}
        assert found["rows_without_label"] == (y.sum(axis=1) == 0).sum() >= 3
        assert found["labels_per_row"] == pytest.approx(y.sum() / N)


def test_rows_without_entries_are_counted_and_stored_zeros_are_none(run, tmp_path):
    data = tmp_path / "rows.svm"
    data.write_text("1 1:2 2:0\n0 3:0\n1\n0 4:1\n")
    found = described(run, data)
    assert found["rows_without_nonzero"] == 2 and found["nonzeros"] == 2
    assert found["nonzeros_per_row"] == {"min": 0, "mean": 0.5, "max": 1}


def test_real_targets_have_a_range(run, tmp_path):
    found = described(run, save(tmp_path, "regression", "svm"))
    y = labels("regression", rows())
    assert found["targets"]["min"] == y.min() and found["targets"]["max"] == y.max()
    assert found["targets"]["mean"] == pytest.approx(y.mean()) and "labels" not in found


def test_index_base_and_query_ids_are_told(run, tmp_path):
    data = tmp_path / "queries.svm"
    write_svmlight(
        data,
        rows(),
        labels("binary", rows()),
        zero_based=True,
        query_id=np.arange(N) // 5,
    )
    found = described(run, data)
    assert found["first_index"] == 0 and found["queries"] == -(-N // 5)
    printed = run.fine("info", data)
    assert "first index          0" in printed and "queries              10" in printed
    assert described(run, save(tmp_path, "binary", "svm"))["queries"] is None


def test_models_are_described(run, tmp_path):
    model = js.LinearModel(
        np.array([[1, 0, 2], [0, 0, 3]], np.float64), np.zeros(2), np.array(["a", "b"]), "sets"
    )
    path = tmp_path / "model"
    model.sparsify().save(path)
    found = described(run, path)
    assert found["kind"] == "model" and found["task"] == "multilabel"
    assert found["shape"] == [2, 3] and found["classes"] == ["a", "b"]
    assert found["density"] == 0.5 and found["dtype"] == "float64" and found["stored"] == "sparse"
    assert found["intercept"] is False and found["training"] is None
    assert found["format_version"] == 1 and found["bytes"] == path.stat().st_size
    printed = run.fine("info", path)
    assert "2 x 3" in printed and "50 %" in printed and "2: a, b" in printed


def test_many_labels_are_cut_short_on_the_screen_only(run, tmp_path):
    data = tmp_path / "many.npz"
    np.savez(data, X=rows().toarray(), y=np.arange(N))
    assert "48 (rows): 0 (1), " in run.fine("info", data) and ", ..." in run.fine("info", data)
    assert len(described(run, data)["labels"]) == N
