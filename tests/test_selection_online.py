"""Progressive validation of candidates, and paths of regularization strengths."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from contracts.streams import FLOAT
from tolerances import assert_bitwise, assert_close

import jaxsolvers as js
from jaxsolvers.engine import tile, tile_questions

N, D, K, BATCH = 90, 6, 4, 30
RNG = np.random.default_rng(8)
DENSE = (RNG.normal(size=(N, D)) * (RNG.random((N, D)) < 0.7)).astype(FLOAT)
LABELS = RNG.integers(K, size=N)
SETS = scipy.sparse.csr_matrix((RNG.random((N, K)) < 0.4).astype(int))
WEIGHT = RNG.uniform(0.5, 1.5, N) * (RNG.random(N) < 0.9)
REALS = DENSE @ RNG.normal(size=D) + 0.1 * RNG.normal(size=N)
LAM = np.geomspace(0.01, 3, 5)


def stream(X: Any, y: Any, weighted: bool = True) -> Any:
    for start in range(0, N, BATCH):
        at = slice(start, start + BATCH)
        yield (X[at], y[at], WEIGHT[at]) if weighted else (X[at], y[at])


# ---- online --------------------------------------------------------------------------------------
CASES: dict[str, tuple[Any, Any, Any, str]] = {
    "labels": (js.AdaGradFOBOS, DENSE, LABELS, "error_rate"),
    "label sets, sparse": (js.Pegasos, scipy.sparse.csr_matrix(DENSE), SETS, "loss"),
    "reals": (lambda lam: js.Pegasos(lam, loss=js.losses.Huber(1.0)), DENSE, REALS, "loss"),
    "joint": (
        lambda rate: js.AdaGradFOBOS(rate, loss=js.losses.MulticlassHinge()), DENSE, LABELS, "loss",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_online_selection_is_a_loop_of_fits_each_scored_before_it_trains(name: str) -> None:
    make, X, y, scoring = CASES[name]
    found = js.online_selection(make(LAM), stream(X, y), scoring=scoring, intercept="column")
    several = name.startswith("label")
    fit = js.fit_one_vs_rest if several else js.fit
    expected, models = np.empty((len(LAM), N // BATCH)), []
    for p, number in enumerate(LAM):
        solver, model, state = make(float(number)), None, None
        for b, (rows, targets, weight) in enumerate(stream(X, y)):
            expected[p, b] = score(solver, model, rows, targets, weight, scoring)
            run = fit(
                solver, rows, targets, sample_weight=weight, order="cyclic", state=state,
                intercept="column",
            )  # fmt: skip
            model, state = run.model, run.state
        models.append(model)
    np.testing.assert_allclose(found.table["fold_scores"], expected, rtol=1e-5, atol=1e-6)
    totals = np.array([w.sum() / w[w > 0].mean() for _, _, w in stream(X, y)])
    mean = expected @ totals / totals.sum()
    np.testing.assert_allclose(found.table["score"], mean, rtol=1e-5)
    best = int(np.argmin(mean))
    assert next(found.best.numbers()).value == LAM[best]
    assert_close(np.asarray(found.model.coef), np.asarray(models[best].coef), "run", scale=1.0)
    assert (found.best_per_class is not None) == several


def score(solver: Any, model: Any, X: Any, y: Any, weight: Any, scoring: str) -> float:
    """The mean of errors or losses under a model, or under weights of 0."""
    width = 1 if y.dtype.kind == "f" else K
    if model is None:
        scores = np.zeros((BATCH, width), FLOAT)
    else:
        scores = np.asarray(model.decision_function(X)).reshape(BATCH, width)
    if scoring == "error_rate":
        values = np.argmax(scores, axis=1) != y
    elif solver.loss.joint:
        values = solver.loss.value_and_slope(jnp.asarray(scores), jnp.asarray(y))[0]
    else:
        sets = scipy.sparse.issparse(y)
        target = np.where(y.toarray() > 0, 1, -1) if sets else y[:, None]
        loss = solver.cast(FLOAT).loss
        values = loss.value_and_slope(jnp.asarray(scores), jnp.asarray(target.astype(FLOAT)))[0]
        values = np.asarray(values).mean(axis=1)
    return float((weight * np.asarray(values)).sum() / weight.sum())


def test_batches_of_one_size_share_their_programs_and_classes_may_keep_their_own_best() -> None:
    X, y = js.data.blobs(300, 8, n_classes=K)
    solver = js.AdaGradFOBOS(np.array([0.01, 0.3, 3.0]))
    parts = [(X[i : i + 100], y[i : i + 100]) for i in range(0, 300, 100)]
    jax.clear_caches()
    found = js.online_selection(solver, parts, per_class=True)
    assert [f._cache_size() for f in (tile.advance, tile.begin, tile_questions.tile_weights)] == [
        1,
        1,
        1,
    ]
    for k, rate in enumerate(found.best_per_class.learning_rate):
        state: Any = None
        for rows, labels in parts:
            run = js.fit_one_vs_rest(
                js.AdaGradFOBOS(float(rate)), rows, labels, order="cyclic", state=state
            )
            state = run.state
        assert_close(np.asarray(found.model.coef[k]), np.asarray(run.model.coef[k]), "run")


def test_a_source_is_a_stream_of_batches_and_later_labels_must_be_declared() -> None:
    first = np.where(np.arange(N) < BATCH, LABELS % 2, LABELS)
    solver = js.AdaGradFOBOS(LAM)
    with pytest.raises(ValueError, match="y holds the label"):
        js.online_selection(solver, stream(DENSE, first))
    found = js.online_selection(solver, stream(DENSE, first), classes=np.arange(K))
    source = js.data.ArraySource(DENSE, first, sample_weight=WEIGHT, rows=BATCH)
    again = js.online_selection(solver, source, classes=np.arange(K))
    assert_bitwise(again.table, found.table)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"solver": js.SDCA(LAM)}, "solver must keep no numbers of single rows .* got SDCA"),
        ({"solver": js.KernelPegasos(LAM, js.kernels.Linear())}, "solver must have no kernel"),
        ({"batches": []}, "batches must hold at least one batch"),
        ({"batches": 3}, "batches must be an iterable"),
        ({"batches": [DENSE]}, r"batches must hold \(X, y\)"),
        ({"scoring": "roc_auc"}, "scoring must be one of 'error_rate', 'loss'"),
        ({"solver": js.Pegasos(LAM, bias="batch")}, "solver must not look at all rows again"),
        ({"solver": js.SVRG(LAM)}, "solver must .* to go from batch to batch, got SVRG"),
    ],
)
def test_online_refusals_name_the_argument(changed: dict[str, Any], words: str) -> None:
    given = {"solver": js.Pegasos(LAM), "batches": stream(DENSE, LABELS)} | changed
    with pytest.raises(ValueError, match=words):
        js.online_selection(**given)


# ---- paths ---------------------------------------------------------------------------------------
def test_a_path_reaches_the_optima_of_separate_fits_in_fewer_epochs() -> None:
    options: Any = {"sample_weight": WEIGHT, "positive_weight": 2.0}
    strengths = LAM[::2]
    solver = js.SDCA(strengths, loss=js.losses.SmoothedHinge(0.5))
    before = tile.advance._cache_size()
    path = js.lambda_path(solver, DENSE, LABELS, tol=1e-3, epochs=100, **options)
    assert tile.advance._cache_size() <= before + 1
    np.testing.assert_array_equal(path.table["lam"], strengths[::-1])
    cold = []
    for p, lam in enumerate(path.table["lam"]):
        own = js.SDCA(float(lam), loss=js.losses.SmoothedHinge(0.5))
        run = js.fit_one_vs_rest(
            own, DENSE, LABELS, epochs=100, record=("objective", "gap"), **options
        )
        done = (run.history["gap"] <= 1e-3 * run.history["objective"]).all(axis=1)
        cold.append(int(np.argmax(done)) + 1)
        best = run.history["objective"][-1]
        assert (path.table["gap"][p] <= 1e-3 * path.table["objective"][p]).all()
        np.testing.assert_allclose(path.table["objective"][p], best, rtol=2e-3)
        # The objective is lam-strongly convex: lam/2 ||w - w*||^2 <= gap, for each of the two.
        gaps = np.maximum([path.table["gap"][p], run.history["gap"][-1]], 1e-6)
        apart = np.asarray(path.models[p].coef) - np.asarray(run.model.coef)
        reach = np.sqrt(2 * gaps / lam).sum(axis=0)
        assert (np.linalg.norm(apart, axis=1) <= reach).all()
    assert path.table["epochs"].sum() < sum(cold), (path.table["epochs"], cold)
    more = js.fit_one_vs_rest(
        js.SDCA(float(LAM[0]), loss=js.losses.SmoothedHinge(0.5)), DENSE, LABELS,
        state=path.state, record=("gap",), **options,
    )  # fmt: skip
    assert (more.history["gap"][-1] <= 2 * path.table["gap"][-1]).all()


def test_a_carried_state_keeps_its_duals_and_makes_the_weights_theirs() -> None:
    strengths = np.array([0.5, 0.05])
    path = js.lambda_path(js.SDCA(strengths), DENSE, LABELS % 2, epochs=1, order="cyclic")
    first = js.fit(js.SDCA(0.5), DENSE, LABELS % 2, order="cyclic")
    dual = np.array(first.state.solver_state.dual, np.float64)
    signs = np.where(LABELS % 2, 1, -1)
    w = DENSE.T.astype(float) @ dual / (0.05 * N)
    for i in range(N):  # the second number's epoch in plain float64, the hinge's dual step
        x = DENSE[i].astype(float)
        share = x @ x / (0.05 * N)
        step = (1 - signs[i] * (w @ x)) / share if share > 0 else np.inf
        new = signs[i] * np.clip(signs[i] * dual[i] + step, 0, 1)
        w, dual[i] = w + (new - dual[i]) * x / (0.05 * N), new
    assert_close(np.asarray(path.models[1].coef), w.astype(FLOAT), "run")
    assert path.table["gap"].shape == (2,) and np.ndim(path.state.alive) == 0


def test_first_order_solvers_go_on_from_number_to_number() -> None:
    solver = js.AdaGradRDA(0.3, regularizer=js.regularizers.L1(np.array([0.01, 0.1])))
    path = js.lambda_path(solver, DENSE, LABELS, epochs=2, order="cyclic")
    np.testing.assert_array_equal(path.table["regularizer.strength"], [0.1, 0.01])
    strong = js.AdaGradRDA(0.3, regularizer=js.regularizers.L1(0.1))
    first = js.fit_one_vs_rest(strong, DENSE, LABELS, epochs=2, order="cyclic")
    np.testing.assert_array_equal(path.models[0].coef, first.model.coef)
    assert (np.asarray(path.models[0].coef) == 0).sum() > (
        np.asarray(path.models[1].coef) == 0
    ).sum()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"solver": js.Pegasos(LAM)}, "state can go on under another number .* got Pegasos"),
        ({"solver": js.Averaged(js.SDCA(LAM))}, "got Averaged"),
        ({"solver": js.NORMA(LAM, np.array([0.5] * 5))}, "solver must have one array of numbers"),
        ({"solver": js.SGD(LAM, 0.1), "tol": 0.1}, "tol must be None for SGD"),
        ({"tol": 0.0}, "tol must be a finite number > 0"),
        ({"epochs": 0}, "epochs must be an integer >= 1"),
    ],
)
def test_path_refusals_name_the_argument(changed: dict[str, Any], words: str) -> None:
    given = {"solver": js.SDCA(LAM), "X": DENSE, "y": LABELS} | changed
    with pytest.raises(ValueError, match=words):
        js.lambda_path(**given)
