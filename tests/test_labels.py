"""Many labels per row: every form of y, the same rankers, never an (n, K) array."""

from __future__ import annotations

import tracemalloc
from typing import Any

import jax
import numpy as np
import pytest
import scipy.sparse
from contracts.streams import FLOAT
from jax.sharding import Mesh
from sparse_rows import fuzzed
from tolerances import assert_bitwise, assert_close

import jaxsolvers as js
from jaxsolvers.labels import read_labels

N, D, K = 60, 20, 7
SOLVER = js.AdaGradRDA(0.3, 0.01, regularizer=js.regularizers.L1(1e-3))


def indicator(seed: int = 0) -> np.ndarray:
    """Some rows without labels, some with all; every label has a row."""
    rng = np.random.default_rng(seed)
    Y = rng.random((N, K)) < 0.3
    Y[0], Y[1] = False, True
    return Y


def forms(Y: np.ndarray) -> dict[str, Any]:
    signs = np.where(Y, 1, -1)
    return {
        "bool": Y,
        "0/1": Y.astype(int),
        "0.0/1.0": Y.astype(float),
        "-1/+1": signs,
        "csr": scipy.sparse.csr_matrix(Y),
        "csr array of ints": scipy.sparse.csr_array(Y.astype(np.int8)),
        "csc": scipy.sparse.csc_matrix(Y),
        "tuples": [tuple(np.flatnonzero(row)) for row in Y],
        "sets": [set(np.flatnonzero(row).tolist()) for row in Y],
        "lists": [np.flatnonzero(row).tolist() for row in Y],
        "arrays": [np.flatnonzero(row)[::-1] for row in Y],
        "repeated": [(*np.flatnonzero(row), *np.flatnonzero(row)) for row in Y],
    }


@pytest.mark.parametrize("name", forms(indicator()))
def test_every_form_of_label_sets_is_read_alike(name: str) -> None:
    Y = indicator()
    labels = read_labels(forms(Y)[name], N, None, None)
    np.testing.assert_array_equal(labels.codes.dense(bool), Y)
    np.testing.assert_array_equal(labels.classes, np.arange(K))
    kinds = {"csr": "csr", "csc": "csr", "csr array of ints": "csr"}
    array = name in ("bool", "0/1", "0.0/1.0", "-1/+1")
    assert labels.output == ("indicator" if array else kinds.get(name, "sets"))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("k", [1, 8])
def test_rankers_of_label_sets_are_binary_fits(k: int, sparse: bool) -> None:
    Y, X = indicator(), fuzzed(N, D, 0, FLOAT)
    rows: Any = X if sparse else X.toarray()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, N)
    settings: dict[str, Any] = {"batch_size": k, "epochs": 2, "intercept": "column"}
    positive = np.linspace(1, 3, K)
    for y in (Y, scipy.sparse.csr_matrix(Y)):
        fit = js.fit_one_vs_rest(
            SOLVER, rows, y, sample_weight=weight, positive_weight=positive, **settings
        )
        for c in range(K):
            own = weight * np.where(Y[:, c], positive[c], 1)
            alone = js.fit(SOLVER, rows, Y[:, c], sample_weight=own, **settings)
            assert_close(fit.model.coef[c], alone.model.coef, "run", scale=1.0)
            assert_close(fit.model.intercept[c], alone.model.intercept, "run", scale=1.0)
        np.testing.assert_array_equal(fit.history["positives"], [Y.sum(axis=0)] * 2)


def test_label_sets_with_one_label_each_are_labels() -> None:
    X = fuzzed(N, D, 1, FLOAT)
    labels = np.random.default_rng(0).permutation(np.arange(N) % K)
    sets = scipy.sparse.csr_matrix((np.ones(N), (np.arange(N), labels)), shape=(N, K))
    for solver in (SOLVER, js.Pegasos(0.1)):
        fits = [js.fit_one_vs_rest(solver, X, y, epochs=2) for y in (labels, sets)]
        assert_bitwise(*(np.asarray(fit.model.coef) for fit in fits))


def test_chunks_and_devices_change_no_bit_of_label_sets() -> None:
    rng = np.random.default_rng(0)
    X, many = fuzzed(N, D, 2, FLOAT), 1100
    Y = scipy.sparse.random(N, many, 0.01, "csr", rng=rng)
    Y.data[:] = 1
    Y = scipy.sparse.csr_matrix(Y + scipy.sparse.csr_matrix(np.eye(N, many)) > 0)
    Y = scipy.sparse.csr_matrix(
        np.maximum(Y.toarray(), np.arange(many) % N == np.arange(N)[:, None])
    )
    mesh = Mesh(np.array(jax.devices()), ("rankers",))
    for solver in (SOLVER, js.Pegasos(0.1)):
        for rows in (X, X.toarray()):
            whole = js.fit_one_vs_rest(solver, rows, Y, negatives=3.0)
            for other in ({"chunk_size": 512}, {"mesh": mesh}):
                fit = js.fit_one_vs_rest(solver, rows, Y, negatives=3.0, **other)
                assert_bitwise(np.asarray(fit.model.coef), np.asarray(whole.model.coef))


def test_labels_of_any_kind_name_the_sets() -> None:
    X = fuzzed(4, D, 3, FLOAT)
    y = [("cat", "dog"), ("ant",), (), ("dog",)]
    fit = js.fit_one_vs_rest(SOLVER, X, y, epochs=20)
    assert fit.model.classes.tolist() == ["ant", "cat", "dog"]
    assert fit.model.output == "sets"
    more = js.fit_one_vs_rest(SOLVER, X, [("ant", "dog"), (), (), ("cat",)], state=fit.state)
    assert more.model.classes.tolist() == ["ant", "cat", "dog"]
    with pytest.raises(ValueError, match="y holds the label 'bee'"):
        js.fit_one_vs_rest(SOLVER, X, [("bee",), (), (), ("cat",)], state=fit.state)
    with pytest.raises(ValueError, match="state was made with output = 'sets', got 'csr': see y"):
        js.fit_one_vs_rest(SOLVER, X, scipy.sparse.csr_matrix((4, 3)), state=fit.state)


def test_labels_without_a_positive_row_are_told_once_and_trained() -> None:
    X, Y = fuzzed(N, D, 4, FLOAT), indicator()
    Y[:, [2, 5]] = False
    for y in (Y, scipy.sparse.csr_matrix(Y)):
        with pytest.warns(
            UserWarning, match="2 of 7 labels have no positive row .*first is 2"
        ) as w:
            fit = js.fit_one_vs_rest(js.Pegasos(0.1), X, y, intercept="column", epochs=3)
        assert len(w) == 1
        assert np.flatnonzero(fit.history["positives"][0] == 0).tolist() == [2, 5]
        scores = np.asarray(fit.model.decision_function(X))
        assert np.isfinite(scores).all() and (scores[:, [2, 5]] < 0).all()


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.full((N, K), 2), "y of shape .* must be an indicator of 0 and 1, or .* got 2"),
        (np.full((N, K), np.nan), "y of shape .* must be an indicator .* got nan"),
        (np.where(indicator(), 1, -1) * (np.arange(K) > 0), "must be an indicator"),
        (np.full((N, K), "a"), "y of shape .* must be an indicator of 0 and 1, got <U1"),
        (
            indicator()[:-1],
            r"y must be \(n,\) or \(n, K\) with n = 60 as in X, got shape \(59, 7\)",
        ),
        (indicator()[:, :1], r"y must be 1-d, or name at least two labels, got shape \(60, 1\)"),
        (
            scipy.sparse.csr_matrix(2 * indicator()),
            "y must be a sparse indicator of 0 and 1, got 2",
        ),
        (scipy.sparse.csr_matrix(indicator()[1:]), r"y must be \(n,\) or .* got shape \(59, 7\)"),
        ([[1], [0]] * (N // 2), r"y must be 1-d, one entry per row of X, got shape \(60, 1\)"),
        ([[3, 4]] * N, r"y is a list of rows of one length, 2: np\.asarray"),
        ([(0, 1, 0)] * N, r"y is a list of rows of one length, 3: np\.asarray"),
        (list(indicator()), r"y is a list of rows of one length, 7: np\.asarray"),
        ([(2, 1)] * (N - 1), "y must have one entry per row of X"),
        (indicator().astype(int).tolist(), "np.asarray"),
        ([(0, "a")] * N, "y must hold labels of one sortable kind, got strings and others"),
        ([()] * N, "y must .* name at least two labels"),
    ],
)
def test_other_targets_are_refused_by_name(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        js.fit_one_vs_rest(SOLVER, fuzzed(N, D, 5, FLOAT), y)


def test_classes_name_the_columns_of_an_indicator() -> None:
    X, Y = fuzzed(N, D, 6, FLOAT), indicator()
    names = list("abcdefg")
    fit = js.fit_one_vs_rest(SOLVER, X, Y, classes=names)
    assert fit.model.classes.tolist() == names
    with pytest.raises(ValueError, match="classes must name the 7 columns of y, got 6 labels"):
        js.fit_one_vs_rest(SOLVER, X, Y, classes=names[:-1])


def test_no_array_of_rows_times_labels_is_made() -> None:
    """5,000 rows of 3 of 4,000 labels would be 20 MB as bools."""
    n, many = 5000, 4000
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(n), 3)
    Y = scipy.sparse.csr_matrix(
        (np.ones(3 * n, bool), (rows, (np.arange(3 * n) * 7) % many)), shape=(n, many)
    )
    X = scipy.sparse.random(n, 30, 0.1, "csr", FLOAT, rng=rng)
    js.fit_one_vs_rest(js.Pegasos(0.1), X, Y, batch_size=500, chunk_size=512)
    tracemalloc.start()
    js.fit_one_vs_rest(js.Pegasos(0.1), X, Y, batch_size=500, chunk_size=512)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < n * many / 2


# ---- drawn negatives -----------------------------------------------------------------------------
def test_negatives_are_drawn_at_the_rate_asked_for() -> None:
    n, many = 4000, 20
    rng = np.random.default_rng(0)
    labels = rng.integers(0, many, n)
    X = np.ones((n, 1), FLOAT)
    epochs = 3
    fit = js.fit_one_vs_rest(
        js.AdaGradRDA(0.1, accumulate="example"), X, labels, negatives=2.0, batch_size=100,
        epochs=epochs,
    )  # fmt: skip
    t = np.concatenate([np.asarray(tile.t) for tile in fit.state.solver_state])[:many]
    positives = np.bincount(labels)
    drawn = t / epochs - positives  # negative rows per epoch: 2 per positive one
    spread = np.sqrt(2 * positives / epochs)
    assert (np.abs(drawn - 2 * positives) < 5 * spread).all()
    assert len(set(t.tolist())) > 5  # rankers draw by themselves


def test_an_epoch_draws_anew_and_a_run_again_draws_the_same() -> None:
    X, labels = fuzzed(N, D, 7, FLOAT), np.arange(N) % K
    fits = [js.fit_one_vs_rest(SOLVER, X, labels, negatives=1.0, epochs=2) for _ in range(2)]
    assert_bitwise(*(np.asarray(fit.model.coef) for fit in fits))
    once = js.fit_one_vs_rest(SOLVER, X, labels, negatives=1.0)
    again = js.fit_one_vs_rest(SOLVER, X, labels, state=once.state)
    assert_bitwise(np.asarray(again.model.coef), np.asarray(fits[0].model.coef))
    same = js.fit_one_vs_rest(SOLVER, X, labels, negatives=1.0, order="cyclic", epochs=1)
    other = js.fit_one_vs_rest(SOLVER, X, labels, negatives=1.0, order="cyclic", key=1)
    assert np.abs(np.asarray(same.model.coef) - np.asarray(other.model.coef)).max() > 0


def test_a_label_without_rows_never_wins_for_want_of_negatives() -> None:
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(60, 4)).astype(FLOAT), rng.integers(0, 30, 60)
    fit = js.fit_one_vs_rest(SOLVER, X, labels, classes=range(60), negatives=0.2, epochs=3)
    assert (np.asarray(fit.model.coef)[30:] != 0).any(axis=1).all()  # each learnt to say no
    assert np.isfinite(fit.history["progressive_loss"][:, 30:]).all()


class Series:
    """A column of a frame, as far as NumPy sees it."""

    def __init__(self, values: list[Any]) -> None:
        self.values = np.empty(len(values), object)
        self.values[:] = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.values

    def __len__(self) -> int:
        return len(self.values)


def test_a_column_of_label_sets_is_a_list_of_them() -> None:
    Y = indicator()
    sets = [frozenset(np.flatnonzero(row).tolist()) for row in Y]
    labels = read_labels(Series(sets), N, None, None)
    assert labels.output == "sets"
    np.testing.assert_array_equal(labels.codes.dense(bool), Y)
    with pytest.raises(ValueError, match="y must be one label per row, got collections"):
        js.fit(js.Pegasos(0.1), np.ones((N, 2), FLOAT), Series(sets))


def test_enough_negatives_are_all_of_them() -> None:
    X, labels = fuzzed(N, D, 8, FLOAT), np.arange(N) % K
    fits = [js.fit_one_vs_rest(SOLVER, X, labels, negatives=rate) for rate in (None, 1e6)]
    assert_bitwise(*(np.asarray(fit.model.coef) for fit in fits))


@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf, "many", [1.0, 2.0], True])
def test_other_rates_of_negatives_are_refused(bad: Any) -> None:
    with pytest.raises(ValueError, match="negatives must"):
        js.fit_one_vs_rest(SOLVER, np.eye(4, dtype=FLOAT), np.arange(4), negatives=bad)


def test_negatives_with_owed_proxes_are_refused_by_name() -> None:
    solver = js.AdaGradFOBOS(0.1, regularizer=js.regularizers.L1(0.1))
    X, labels = fuzzed(N, D, 8, FLOAT), np.arange(N) % K
    with pytest.raises(ValueError, match="negatives must be None for AdaGradFOBOS"):
        js.fit_one_vs_rest(solver, X, labels, negatives=1.0)
    js.fit_one_vs_rest(solver, X.toarray(), labels, negatives=1.0)  # nothing is owed there
