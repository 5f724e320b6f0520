"""Rankers that stop by themselves: when, with which bits, and that they cost nothing afterwards."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from jax.sharding import Mesh
from references.stopping import epochs_until
from tolerances import assert_bitwise, assert_close

import jaxsolvers as js
from jaxsolvers.engine import run, tile

F = jnp.result_type(float)
N, D, K, TILE = 50, 6, 19, 4
RNG = np.random.default_rng(7)
X = (RNG.normal(size=(N, D)) * (RNG.random((N, D)) < 0.6)).astype(F)
LABELS = RNG.permutation(np.arange(N) % K)
SETS = (RNG.random((N, K)) < 0.2).astype(int)
LAM = np.geomspace(0.3, 0.003, K)  # some rankers are done soon, others are not
MIRROR = js.AdaGradFOBOS(0.3, 0.1, regularizer=js.regularizers.ElasticNet(0.01, 0.05))
EPOCHS = 14
LARGE = float(np.finfo(F).max) / 10


@pytest.fixture
def _small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile, "LARGEST_TILE", TILE)


def lanes(fit: js.Fit) -> list[np.ndarray]:
    """Weights and every number of the state, the rankers leading, dummies left out."""
    states = jax.tree.map(lambda *leaves: np.concatenate(leaves), *fit.state.tiles())
    leaves = (fit.model.coef, fit.model.intercept, *jax.tree.leaves(states))
    return [np.asarray(leaf)[:K] for leaf in leaves]


RUNS: dict[str, tuple[Any, Any, Any, dict[str, Any], float]] = {
    "gap": (js.SDCA(LAM), X, LABELS, {}, 0.02),
    "weights": (
        js.SDCA(LAM), X, LABELS,
        {"sample_weight": RNG.uniform(0.5, 2, N), "intercept": "column", "positive_weight": 2.0},
        0.02,
    ),
    "debts": (MIRROR, scipy.sparse.csr_matrix(X), SETS, {"batch_size": 3}, 2e-3),
    "mean": (js.Averaged(js.Pegasos(LAM)), X, SETS, {}, 1e-2),
}  # fmt: skip


@pytest.mark.usefixtures("_small_tiles")
@pytest.mark.parametrize("name", RUNS)
def test_every_ranker_stops_by_itself_and_keeps_its_bits(name: str) -> None:
    """Against the same run made an epoch at a time without a rule."""
    solver, rows, y, options, tol = RUNS[name]
    rule = "gap" if isinstance(solver, js.SDCA) else "objective"
    part: Any = None
    states, values, watched = [], [], []
    for _ in range(EPOCHS):
        given = {"state": None if part is None else part.state, "record": ("objective", rule)}
        part = js.fit_one_vs_rest(solver, rows, y, **options, **given)
        states.append(lanes(part))
        values.append(part.history[rule][0])
        watched.append(part.history["objective"][0])
    if rule == "gap":  # the least objective so far minus the dual objective
        dual = np.array(watched) - values
        watched = np.minimum.accumulate(watched) - dual
    expected = [epochs_until(list(own), tol, 2) for own in np.transpose(watched)]
    ends = [EPOCHS if epochs is None else epochs for epochs in expected]
    assert len(set(ends)) > 3 and min(ends) < EPOCHS // 2  # the rule is put to the test
    two = jax.devices()[:2]
    explicit = jax.make_mesh((2,), ("rankers",), devices=two)
    auto = Mesh(np.array(two), ("rankers",))
    places = ({}, {"chunk_size": 8}, {"mesh": auto}, {"mesh": explicit})
    for place in places if name == "gap" else places[:1]:
        fit = js.fit_one_vs_rest(
            solver, rows, y, epochs=EPOCHS, tol=tol, patience=2, **options, **place
        )
        assert fit.history["epochs_run"].tolist() == ends
        assert fit.history["stopped"].tolist() == [
            "epochs" if e is None else rule for e in expected
        ]
        assert int(fit.state.epoch) == max(ends) == len(fit.history["seconds"])
        for k, end in enumerate(ends):
            assert_bitwise([leaf[k] for leaf in lanes(fit)], [leaf[k] for leaf in states[end - 1]])
            told = fit.history[rule][:, k]
            np.testing.assert_array_equal(told[:end], [own[k] for own in values[:end]])
            for quantity in (rule, "progressive_loss", "violations"):
                assert np.isnan(fit.history[quantity][end:, k]).all()


@pytest.mark.usefixtures("_small_tiles")
def test_done_rankers_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    real = run.advance

    def counted(*args: Any, **named: Any) -> Any:
        calls.append(1)
        return real(*args, **named)

    monkeypatch.setattr(run, "advance", counted)
    fit = js.fit_one_vs_rest(js.SDCA(LAM), X, LABELS, epochs=EPOCHS, tol=0.02, patience=2)
    live = [(fit.history["epochs_run"] > epoch).sum() for epoch in range(EPOCHS)]
    assert len(calls) == sum(-(-count // TILE) for count in live) < EPOCHS * -(-K // TILE)


@pytest.mark.usefixtures("_small_tiles")
def test_a_split_run_stops_like_the_whole_run() -> None:
    options: dict[str, Any] = {"tol": 0.02, "patience": 2, "chunk_size": 8}
    whole = js.fit_one_vs_rest(js.SDCA(LAM), X, LABELS, epochs=EPOCHS, **options)
    parts: list[js.Fit] = []
    for epochs in (3, 1, EPOCHS - 4):
        state = parts[-1].state if parts else None
        parts.append(
            js.fit_one_vs_rest(js.SDCA(LAM), X, LABELS, epochs=epochs, state=state, **options)
        )
    assert_bitwise(lanes(parts[-1]), lanes(whole))
    made = np.sum([part.history["epochs_run"] for part in parts], axis=0)
    np.testing.assert_array_equal(made, whole.history["epochs_run"])
    assert parts[-1].history["stopped"].tolist() == whole.history["stopped"].tolist()
    again = dataclasses.replace(whole.state, seen=dataclasses.replace(
        whole.state.seen, stopped=np.ones(K, bool)))  # fmt: skip
    done = js.fit_one_vs_rest(js.SDCA(LAM), X, LABELS, epochs=5, state=again, **options)
    assert_bitwise(lanes(done), lanes(whole))
    assert done.history["gap"].shape == (0, K) and int(done.state.epoch) == int(whole.state.epoch)
    # Another rule, or none, starts anew.
    for other in ({"tol": 0.01, "patience": 2}, {}):
        more = js.fit_one_vs_rest(js.SDCA(LAM), X, LABELS, state=whole.state, **other)
        assert (more.history["epochs_run"] == 1).all()


def test_a_tolerance_is_obeyed_case_067() -> None:
    y = np.where(X[:, 0] > 0, 1, -1)
    for front in (js.fit, js.fit_one_vs_rest):
        stopped = front(js.Pegasos(0.1), X, y, epochs=200, tol=1e9)
        assert np.all(stopped.history["stopped"] == "objective")
        assert np.all(stopped.history["epochs_run"] == 6)  # the first and 5 that gained too little
        off = front(js.Pegasos(0.1), X, y, epochs=200)
        assert np.all(off.history["epochs_run"] == 200) and len(off.history["seconds"]) == 200


def test_convergence_counts_the_regularizer_case_068() -> None:
    rows, y = np.array([[1.0], [-1.0]], F), np.array([1, -1])
    solver = js.AdaGradFOBOS(1.0, 1.0, regularizer=js.regularizers.SquaredL2(0.1))
    state = js.fit(solver, rows, y).state
    own = state.solver_state._replace(
        current=jnp.full(1, 100, F), accumulator=jnp.zeros(1, F), t=jnp.zeros((), jnp.int32)
    )
    far = dataclasses.replace(state, solver_state=own)
    fit = js.fit(solver, rows, y, epochs=200, state=far, tol=1e-3, record=("objective",))
    assert fit.history["violations"][:10].sum() == 0  # the loss alone is 0 from the start
    assert fit.history["stopped"] == "objective" and fit.history["epochs_run"] > 20
    assert abs(float(fit.model.coef[0])) < 2
    expected = epochs_until(fit.history["objective"].tolist(), 1e-3, 5)
    assert fit.history["epochs_run"] == expected


def test_a_done_ranker_waits_for_one_that_never_settles_case_109() -> None:
    rows = np.vstack([X[:30], X[:30]])  # the labels of ranker 0 follow a sign, the others conflict
    labels = np.where(rows[:, 0] > 0, 0, 1 + np.arange(60) // 30)
    options: dict[str, Any] = {"epochs": 20, "tol": 1e-3, "patience": 3}
    together = js.fit_one_vs_rest(js.SDCA(np.array([0.5, 1e-4, 1e-4])), rows, labels, **options)
    ran = together.history["epochs_run"]
    assert ran[0] < ran.max() == len(together.history["seconds"]) <= 20
    alone = js.fit(js.SDCA(0.5), rows, labels == 0, epochs=int(ran[0]))
    np.testing.assert_allclose(together.model.coef[0], alone.model.coef, rtol=1e-5, atol=1e-6)


def test_what_ended_a_run_is_told_case_070() -> None:
    y = np.where(X[:, 0] > 0, 1, -1)
    off = js.fit(js.SDCA(0.1), X, y, epochs=50)
    assert len(off.history["violations"]) == 50
    assert off.history["stopped"] == "epochs" and off.history["epochs_run"] == 50
    patient = js.fit(js.SDCA(0.1), X, y, epochs=50, tol=1e-3, patience=5)
    assert patient.history["stopped"] == "gap" and 5 < patient.history["epochs_run"] < 50
    limit = js.fit(js.SDCA(0.1), X, y, epochs=3, tol=1e-3)
    assert limit.history["stopped"] == "epochs" and limit.history["epochs_run"] == 3
    with pytest.warns(RuntimeWarning, match="left the floating-point range"):
        lost = js.fit_one_vs_rest(js.FOBOS(np.array([LARGE, 0.01])), 100 * X, y, epochs=3, tol=1e-3)
    assert lost.history["stopped"].tolist() == ["lost", "epochs"]


@pytest.mark.parametrize("sparse", [False, True])
def test_the_loss_on_other_rows_is_watched(sparse: bool) -> None:
    rng = np.random.default_rng(1)
    other, labels, weight = (
        rng.normal(size=(23, D)).astype(F),
        rng.integers(K, size=23),
        rng.random(23),
    )
    given = (scipy.sparse.csr_matrix(other) if sparse else other, labels, weight)
    rows = scipy.sparse.csr_matrix(X) if sparse else X
    factors = np.linspace(0.5, 2, K)
    fit = js.fit_one_vs_rest(
        MIRROR, rows, LABELS, epochs=12, tol=1e-3, patience=2, eval_set=given,
        positive_weight=factors, intercept="column",
    )  # fmt: skip
    assert fit.history["eval_loss"].shape == (len(fit.history["seconds"]), K)
    margin = np.where(labels[:, None] == np.arange(K), 1, -1) * np.asarray(
        fit.model.decision_function(given[0]), float
    )
    own = weight[:, None] * np.where(labels[:, None] == np.arange(K), factors, 1)
    loss = (own * np.maximum(0, 1 - margin)).sum(axis=0) / own.sum(axis=0)
    last = [column[np.isfinite(column)] for column in fit.history["eval_loss"].T]
    assert_close(np.array([values[-1] for values in last], F), loss, "run")
    for values, ran, rule in zip(
        last, fit.history["epochs_run"], fit.history["stopped"], strict=True
    ):
        assert len(values) == ran == (epochs_until(values.tolist(), 1e-3, 2) or 12)
        assert rule == ("epochs" if epochs_until(values.tolist(), 1e-3, 2) is None else "eval_set")


def test_joint_and_coupled_and_kernel_problems_stop_as_well() -> None:
    labels = LABELS % 3
    groups = js.regularizers.GroupL2(0.01, axis=-2)
    joint = js.AdaGradRDA(0.3, 0.1, loss=js.losses.MulticlassLogistic(), regularizer=groups)
    coupled = js.AdaGradRDA(0.3, 0.1, regularizer=groups)
    kernel = js.KernelPegasos(0.1, js.kernels.RBF(0.5))
    for front, solver in (
        (js.fit, joint), (js.fit_one_vs_rest, coupled), (js.fit_one_vs_rest, kernel),
    ):  # fmt: skip
        options: dict[str, Any] = {"epochs": 40, "tol": 1e-2, "patience": 2}
        fit = front(solver, X, labels, intercept="column", eval_set=(X, labels), **options)
        own = front(solver, X, labels, intercept="column", **options)
        history = own.history["objective"]
        last = np.array([v[np.isfinite(v)][-1] for v in np.atleast_2d(history.T)], F)
        objective = js.metrics.objective(solver, own.model, X, labels)
        assert_close(last, np.atleast_1d(objective), "run")
        assert np.all(own.history["stopped"] == "objective")
        assert np.all(fit.history["stopped"] == "eval_set")


def test_a_source_needs_other_rows_to_stop_by() -> None:
    y = np.where(X[:, 0] > 0, 1, -1)
    source = js.data.ArraySource(X, y)
    with pytest.raises(ValueError, match="tol must be None for a source without eval_set"):
        js.fit(js.Pegasos(0.1), source, tol=0.1)
    fit = js.fit(js.Pegasos(0.1), source, epochs=9, tol=1e9, patience=1, eval_set=(X, y))
    assert fit.history["stopped"] == "eval_set" and fit.history["epochs_run"] == 2


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("tol must be", {"tol": -1.0}),
    ("tol must be", {"tol": float("nan")}),
    ("tol must be", {"tol": "small"}),
    ("tol must be", {"tol": [0.1, 0.2]}),
    ("patience must be", {"tol": 0.1, "patience": 0}),
    ("patience must be", {"patience": 1.5}),
    ("eval_set must be", {"eval_set": X}),
    ("eval_set must be", {"eval_set": (X,)}),
    ("eval_set: X must", {"eval_set": (X[:, :2], LABELS)}),
    ("eval_set: y", {"eval_set": (X, LABELS[:3])}),
    ("eval_set: y holds the label 99", {"eval_set": (X, np.full(N, 99))}),
    ("eval_set: sample_weight must", {"eval_set": (X, LABELS, -np.ones(N))}),
]


@pytest.mark.parametrize(("message", "given"), WRONG)
def test_what_cannot_be_watched_is_refused(message: str, given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        js.fit_one_vs_rest(js.Pegasos(0.1), X, LABELS, **given)


@pytest.mark.parametrize(
    "solver",
    [
        js.Kernelized(js.Pegasos(0.1, bias="unregularized"), js.kernels.RBF(0.3)),
        js.Pegasos(0.1, js.losses.MulticlassHinge(), bias="unregularized"),
    ],
    ids=["kernel", "classes together"],
)
def test_the_loss_on_other_rows_has_the_bias_in_it(solver: Any) -> None:
    binary = not solver.loss.joint
    y = np.where(LABELS < 5, 1, -1) if binary else LABELS
    fit = js.fit(solver, X, y, epochs=3, eval_set=(X[:20], y[:20]))
    scores = np.asarray(fit.model.decision_function(X[:20]), float)
    if binary:
        losses = np.maximum(1 - y[:20] * scores, 0)
    else:
        right = scores[np.arange(20), np.searchsorted(np.unique(y), y[:20])]
        margins = 1 + scores - right[:, None]
        margins[scores == right[:, None]] = 0
        losses = margins.max(axis=1)
    assert np.any(np.asarray(fit.model.intercept) != 0)
    assert_close(np.asarray(fit.history["eval_loss"][-1], F), losses.mean(), "run", scale=1.0)


def test_a_search_for_a_bias_stops_by_its_objective() -> None:
    y = np.where(LABELS < 5, 1, -1)
    fit = js.fit(js.Pegasos(0.1, bias="search"), X, y, epochs=40, tol=1e-4, patience=3)
    assert fit.history["stopped"] in ("objective", "epochs")
    assert "certificate" not in fit.history
