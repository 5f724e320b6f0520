"""Rows from a source train like the same rows in memory."""

from __future__ import annotations

from typing import Any

import members
import numpy as np
import pytest
import scipy.sparse
from contracts.streams import FLOAT
from sparse_rows import dense, fuzzed
from tolerances import assert_bitwise, assert_close

import jaxsolvers as js
from jaxsolvers.engine import stream

N, D, K = 61, 20, 20
SOLVERS = [
    js.Pegasos(0.1),
    js.Averaged(js.AdaGradRDA(0.3)),
    js.AdaGradFOBOS(0.3, 0.01, regularizer=js.regularizers.ElasticNet(0.01, 0.1)),
]


def rows(sparse: bool) -> Any:
    X = fuzzed(N, D, 0, FLOAT)
    return X if sparse else dense(X)


def weights() -> np.ndarray:
    rng = np.random.default_rng(1)
    return rng.uniform(0.5, 2.0, N) * (rng.random(N) < 0.8)


@pytest.fixture
def _small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "WINDOW_BYTES", 16 * D * FLOAT.itemsize)


@pytest.mark.usefixtures("_small_windows")
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("k", [1, 4])
@members.each(SOLVERS, "solver")
def test_a_source_in_file_order_is_the_array_in_file_order(
    solver: Any, k: int, sparse: bool
) -> None:
    """Over window ends, with short last batches, weights and an intercept."""
    X, labels = rows(sparse), np.random.default_rng(0).permutation(np.arange(N) % K)
    settings: dict[str, Any] = {"batch_size": k, "epochs": 2, "order": "cyclic"}
    settings |= {"intercept": "column", "block_size": 8}
    whole = js.fit_one_vs_rest(solver, X, labels, sample_weight=weights(), **settings)
    for chunk in (7, N):
        source = js.data.ArraySource(X, labels, weights(), rows=chunk)
        fit = js.fit_one_vs_rest(solver, source, **settings)
        assert_close(fit.model.coef, whole.model.coef, "run", scale=1.0)
        assert_close(fit.model.intercept, whole.model.intercept, "run", scale=1.0)
        np.testing.assert_array_equal(fit.history["mistakes"], whole.history["mistakes"])


@pytest.mark.usefixtures("_small_windows")
def test_a_permuted_source_visits_every_row_once() -> None:
    y = np.arange(N) % 2
    fit = js.fit(js.AdaGradRDA(0.1, loss=js.losses.Squared()), js.data.ArraySource(
        np.eye(N, dtype=FLOAT), y.astype(float)))  # fmt: skip
    np.testing.assert_array_equal(
        np.flatnonzero(fit.state.solver_state.accumulator), np.flatnonzero(y)
    )
    assert fit.state.solver_state.t == N


@pytest.mark.usefixtures("_small_windows")
def test_windows_and_epochs_are_permuted_anew_and_a_run_in_parts_is_the_whole_run() -> None:
    X, labels = rows(True), np.arange(N) % 2
    source = js.data.ArraySource(X, labels, rows=5)
    once = js.fit(js.Pegasos(0.1), source)
    parts = js.fit(js.Pegasos(0.1), source, state=once.state)
    whole = js.fit(js.Pegasos(0.1), source, epochs=2)
    assert_bitwise(np.asarray(parts.model.coef), np.asarray(whole.model.coef))
    cyclic = js.fit(js.Pegasos(0.1), source, order="cyclic")
    assert np.abs(np.asarray(once.model.coef) - np.asarray(cyclic.model.coef)).max() > 0


def test_label_sets_stream_as_well() -> None:
    X, Y = rows(True), np.random.default_rng(0).random((N, 7)) < 0.3
    whole = js.fit_one_vs_rest(SOLVERS[1], X, Y, order="cyclic")
    for y in (Y, scipy.sparse.csr_matrix(Y)):
        fit = js.fit_one_vs_rest(SOLVERS[1], js.data.ArraySource(X, y, rows=9), order="cyclic")
        assert_close(fit.model.coef, whole.model.coef, "run", scale=1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": np.arange(N)}, "y must be None for a source"),
        ({"sample_weight": np.ones(N)}, "sample_weight must be None for a source"),
        ({"order": "uniform"}, 'order must be "permutation" or "cyclic" for a source'),
    ],
)
def test_what_a_source_has_or_cannot_do_is_refused(arguments: Any, message: str) -> None:
    source = js.data.ArraySource(rows(True), np.arange(N) % 2)
    with pytest.raises(ValueError, match=message):
        js.fit(js.Pegasos(0.1), source, **arguments)


def test_query_ids_are_not_taken_for_weights(tmp_path: Any) -> None:
    path = tmp_path / "rows.svm"
    path.write_text("1 qid:1 1:0.5\n-1 qid:2 2:1\n")
    source = js.data.iter_svmlight(path, rows=10, query_id=True)
    with pytest.raises(ValueError, match="X must be a source without query ids"):
        js.fit(js.Pegasos(0.1), source)
    fit = js.fit(js.Pegasos(0.1), js.data.iter_svmlight(path, rows=10))
    assert fit.model.coef.shape == (2,)


def test_an_array_without_y_is_refused() -> None:
    with pytest.raises(ValueError, match="y must be given, got None"):
        js.fit(js.Pegasos(0.1), rows(True))


def test_a_source_that_changes_between_epochs_is_refused() -> None:
    sizes = iter([5, 5, 3, 5, 7])

    def chunks() -> Any:
        n = next(sizes)
        yield np.ones((n, 2), FLOAT), np.arange(n) % 2

    source = js.data.IteratorSource(chunks, 2, FLOAT)
    with pytest.raises(ValueError, match=r"same rows in every epoch: it gave 5 .* now 3"):
        js.fit(js.Pegasos(0.1), source)


def test_an_epoch_that_cannot_be_read_again_is_refused() -> None:
    made = iter([(np.ones((4, 2), FLOAT), np.arange(4) % 2)])
    source = js.data.IteratorSource(lambda: made, 2, FLOAT)
    with pytest.raises(ValueError, match="new iterator for every epoch"):
        js.fit(js.Pegasos(0.1), source)
