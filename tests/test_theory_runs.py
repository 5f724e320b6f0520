"""Recorded runs within their bounds, and what a fit keeps of them (``record=``)."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from jax.sharding import Mesh
from references import adagrad, pegasos
from references.adagrad_full import adagrad_full
from test_theorems import FLOAT, SLACK, comparators, hinge, streams
from test_theorems import D as WIDTH
from test_theorems import T as ROUNDS
from tolerances import assert_bitwise, assert_close

import jaxsolvers as js
from jaxsolvers import theory
from jaxsolvers.engine import tile

RNG = np.random.default_rng(5)
TIMES = np.array([0, 1, 7, 29, ROUNDS - 1])  # rounds after which a bound is looked at
L1 = js.regularizers.L1(0.05)
NONE = js.regularizers.NoRegularizer()


def all_streams(k: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows (S, T k, D) and targets: those of the theorems, growing scales, columns never seen."""
    X, y = streams(k)
    grown = X[1] * 10.0 ** np.linspace(-2, 2, ROUNDS)[:, None, None]
    unseen = X[3].copy()
    unseen[..., 1:3] = 0
    X, y = np.concatenate([X, grown[None], unseen[None]]), np.concatenate([y, y[1:2], y[3:4]])
    return X.reshape(len(X), -1, WIDTH).astype(FLOAT).astype(float), y.reshape(len(y), -1)


@partial(jax.jit, static_argnames="k")
def recorded(solver: Any, delta: Any, X: Any, y: Any, k: int) -> Any:
    """A recording of each stream, with its own delta unless that is None."""

    def one(X: Any, y: Any, delta: Any) -> Any:
        own = solver if delta is None else dataclasses.replace(solver, delta=delta)
        return theory.record_run(own, X, y, batch_size=k)

    return jax.vmap(one, in_axes=(0, 0, None if delta is None else 0))(X, y, delta)


@partial(jax.jit, static_argnames="k")
def regrets(solver: Any, runs: Any, U: Any, X: Any, y: Any, k: int) -> Any:
    """(S, U, T)."""

    def one(run: Any, U: Any, X: Any, y: Any) -> Any:
        return jax.vmap(lambda u: theory.regret(run, u, solver, X, y, batch_size=k))(U)

    return jax.vmap(one)(runs, U, X, y)


@partial(jax.jit, static_argnames="rda")
def bounds(rda: bool, eta: Any, initial: Any, delta: Any, runs: Any, U: Any) -> Any:
    """(S, U, TIMES), each of what was known after that round."""

    def at(g: Any, w: Any, delta: Any, u: Any, t: Any) -> Any:
        seen = (jnp.arange(ROUNDS) <= t)[:, None]
        spread = theory.gamma(initial + jnp.sum(jnp.where(seen, g * g, 0), axis=0))
        numbers = {"learning_rate": eta, "delta": delta, "gamma": spread}
        if rda:
            return theory.regret_bound_rda(u, **numbers, largest_gradient=jnp.max(jnp.abs(g)))
        # Later rounds count as round 1, which is there anyway.
        path = jnp.where(seen, w[:-1], w[:1])
        return theory.regret_bound_fobos(u, path, **numbers)

    over_times = jax.vmap(at, in_axes=(None, None, None, None, 0))
    over_points = jax.vmap(over_times, in_axes=(None, None, None, 0, None))
    over_streams = jax.vmap(over_points, in_axes=(0, 0, 0, 0, None))
    return over_streams(runs.gradients, runs.weights, delta, U, jnp.asarray(TIMES))


def hold(regret: Any, bound: Any, runs: Any) -> float:
    """The largest ratio regret / bound; an error tells it and where, if a bound is exceeded."""
    sides = theory.Inequality(jnp.asarray(regret)[..., TIMES], jnp.asarray(bound))
    ours = np.cumsum(np.asarray(runs.losses + runs.penalties, float), axis=-1)[:, None, TIMES]
    slack = SLACK * (ours + np.abs(ours - np.asarray(sides.left, float)))
    excess = np.asarray(sides.left, float) - np.asarray(sides.right, float) - slack
    at = np.unravel_index(np.argmax(excess), excess.shape)
    worst = float(sides.ratio.max())
    assert np.isfinite(np.asarray(sides.right)).all()
    assert excess.max() <= 0, f"stream, comparator, time {at}: {excess.max()} above, ratio {worst}"
    return worst


@pytest.mark.parametrize(("k", "initial"), [(1, 0.0), (1, 0.25), (5, 0.0)])
@pytest.mark.parametrize("regularizer", [NONE, L1])
@pytest.mark.parametrize("form", [js.AdaGradRDA, js.AdaGradFOBOS])
def test_the_regret_of_adagrad_is_within_its_bound(
    form: Any, regularizer: Any, k: int, initial: float
) -> None:
    X, y = (jnp.asarray(part, FLOAT) for part in all_streams(k))
    rda = form is js.AdaGradRDA
    largest = jnp.max(jnp.abs(X), axis=(1, 2))  # |g| <= |x| for the hinge
    delta = largest if rda else 0 * largest
    options = {"regularizer": regularizer, "initial_accumulator": initial}
    solver = form(0.5, 0.0, accumulate="batch", **options).cast(FLOAT)
    runs = recorded(solver, delta, X, y, k)
    U = np.stack([comparators(np.asarray(w, float), i) for i, w in enumerate(runs.weights)])
    U = jnp.asarray(U, FLOAT)
    numbers = solver.learning_rate, solver.initial_accumulator, delta
    worst = hold(regrets(solver, runs, U, X, y, k), bounds(rda, *numbers, runs, U), runs)
    assert worst > 0.3  # the bound is one of this run, not of any


@pytest.mark.parametrize("project", [False, True])
def test_the_mean_objective_of_pegasos_is_within_its_bound(project: bool) -> None:
    X, y = all_streams(1)
    solver = js.Pegasos(0.1, project=project).cast(FLOAT)
    arrays = jnp.asarray(X, FLOAT), jnp.asarray(y, FLOAT)
    runs = recorded(solver, None, *arrays, 1)
    U = np.stack([comparators(np.asarray(w, float), i) for i, w in enumerate(runs.weights)])
    ball = np.sqrt(1 / 0.1) if project else None
    if ball is not None:
        U *= np.minimum(1, ball / np.maximum(np.linalg.norm(U, axis=-1, keepdims=True), 1e-30))
    norms = np.sqrt((X**2).sum(axis=-1)).max(axis=-1)
    total = [
        (TIMES + 1)
        * np.asarray(theory.pegasos_bound(TIMES + 1, lam=0.1, largest_norm=norm, ball=ball))
        for norm in norms.astype(FLOAT)
    ]
    regret = regrets(solver, runs, jnp.asarray(U, FLOAT), *arrays, 1)
    assert hold(regret, np.broadcast_to(np.array(total)[:, None], (*U.shape[:2], 5)), runs) > 0.3


@pytest.mark.parametrize("strength", [0.0, 0.05])
@pytest.mark.parametrize("form", ["rda", "mirror"])
def test_the_regret_of_full_adagrad_is_within_its_bound(form: str, strength: float) -> None:
    """A plain float64 run of the full metric, with traces for gamma and 2-norms."""
    X, y = all_streams(1)
    worst = 0.0
    for i in (0, 2, 4, 6, 7):
        rows, n = X[i, :60], 60
        delta = np.sqrt((rows**2).sum(axis=1)).max() if form == "rda" else 0.1 * (strength > 0)
        options = {"learning_rate": 0.5, "delta": delta}
        run = adagrad_full(
            rows, y[i, :n], [[j] for j in range(n)], form=form, regularizer="l1",
            strengths={"strength": strength}, **options,
        )  # fmt: skip
        w, g = np.array([0 * run.w[0], *run.w]), np.array(run.gradient)
        U = np.array(comparators(np.tile(w[-1:], (ROUNDS, 1)), i))
        numbers = {**options, "trace": float(theory.trace_root(jnp.asarray(g.T @ g, FLOAT)))}
        ours = np.sum(run.loss) + strength * np.abs(w[:n]).sum()
        for u in U:
            theirs = (
                np.sum(hinge(u, rows[:, None], y[i, :n, None])) + n * strength * np.abs(u).sum()
            )
            if form == "rda":
                largest = np.sqrt((g**2).sum(axis=1)).max()
                bound = theory.regret_bound_rda(u, **numbers, largest_gradient=largest)
            else:
                bound = theory.regret_bound_fobos(u, w[:n], **numbers)
            sides = theory.Inequality(jnp.asarray(ours - theirs, FLOAT), bound)
            assert ours - theirs <= float(bound) + SLACK * (ours + theirs), f"{i}: {sides.ratio}"
            worst = max(worst, float(sides.ratio))
    assert worst > 0.3


# ---- recordings ----------------------------------------------------------------------------------
def test_a_recording_is_the_run_and_rankers_together_are_rankers_alone() -> None:
    """Against the plain loops, with a short last batch; K rankers with numbers of their own."""
    X, y = all_streams(1)
    X, Y = X[0, :50], y[:3, :50]
    rates = np.array([0.2, 0.5, 1.0])
    solver = js.AdaGradFOBOS(rates, 0.1, regularizer=L1, accumulate="batch")
    together = theory.record_run(solver, X, Y, batch_size=4)
    U = RNG.normal(size=(3, WIDTH))
    regret = theory.regret(together, U, solver, X, Y, batch_size=4)
    assert together.weights.shape == (3, 14, WIDTH) and regret.shape == (3, 13)
    rounds = [np.arange(50)[i : i + 4] for i in range(0, 50, 4)]
    for k, rate in enumerate(rates):
        own = js.AdaGradFOBOS(rate, 0.1, regularizer=L1, accumulate="batch")
        alone = theory.record_run(own, X, Y[k], batch_size=4)
        assert_close(jax.tree.map(lambda leaf, k=k: leaf[k], together), alone, "rewritten")
        assert_close(regret[k], theory.regret(alone, U[k], own, X, Y[k], batch_size=4), "rewritten")
        run = adagrad.adagrad(
            X, Y[k], rounds, form="mirror", learning_rate=rate, delta=0.1, regularizer="l1",
            strengths={"strength": 0.05}, accumulate="batch",
        )  # fmt: skip
        w = np.array([np.zeros(WIDTH), *run.w])
        assert_close(alone.weights, w, "run")
        assert_close(np.cumsum(alone.gradients, axis=0), np.array(run.gradient_sum), "run")
        loss = np.array(run.loss) / [len(rows) for rows in rounds]
        assert_close(alone.losses, loss, "run")
        assert_close(alone.penalties, 0.05 * np.abs(w[:-1]).sum(axis=1), "run")
        theirs = [hinge(U[k], X[None, rows], Y[k][None, rows])[0] for rows in rounds]
        theirs = np.array(theirs) + 0.05 * np.abs(U[k]).sum()
        expected = np.cumsum(loss + 0.05 * np.abs(w[:-1]).sum(axis=1) - theirs)
        assert_close(regret[k], expected, "run", scale=np.abs(np.cumsum(theirs)).max())


def test_a_recording_of_pegasos_is_the_run() -> None:
    X, y = all_streams(1)
    run = pegasos.pegasos(X[0], y[0], [[i] for i in range(ROUNDS)], lam=0.1, project=True)
    found = theory.record_run(js.Pegasos(0.1, project=True), X[0], y[0])
    assert_close(found.weights[1:], np.array(run.w), "run")
    norms = (np.asarray(found.weights[:-1], float) ** 2).sum(axis=1)
    assert_close(found.penalties, 0.05 * norms, "run")


BAD: list[tuple[str, dict[str, Any]]] = [
    ("solver must be a first-order or linear-step", {"solver": js.Averaged(js.Pegasos(0.1))}),
    ('accumulate must be "batch"', {"solver": js.AdaGradRDA(0.1), "batch_size": 2}),
    ("learning_rate must be", {"solver": js.AdaGradRDA(-0.1)}),
    ("learning_rate must be a single", {"solver": js.AdaGradRDA(np.ones(3))}),
    ("batch_size must be an integer in 1 ... 4", {"batch_size": 5}),
    ("y must be -1 or \\+1", {"y": [0, 1, 1, 0]}),
    ("y must be \\(4,\\)", {"y": [1, -1]}),
    ("X must be finite", {"X": np.full((4, 2), np.nan)}),
    ("X must be a dense array", {"X": scipy.sparse.csr_matrix(np.ones((4, 2)))}),
]


@pytest.mark.parametrize(("message", "change"), BAD)
def test_what_cannot_be_recorded_is_refused(message: str, change: dict[str, Any]) -> None:
    given = {"solver": js.Pegasos(0.1), "X": np.ones((4, 2)), "y": [1, -1, 1, -1]} | change
    with pytest.raises(ValueError, match=f"^{message}"):
        theory.record_run(given.pop("solver"), given.pop("X"), given.pop("y"), **given)


def test_a_regret_of_other_rounds_is_refused() -> None:
    solver, X, y = js.AdaGradFOBOS(0.1, accumulate="batch"), np.eye(4), [1, -1, 1, -1]
    run = theory.record_run(solver, X, y)
    with pytest.raises(ValueError, match=r"^comparator must have shape \(4,\), got \(3,\)"):
        theory.regret(run, np.ones(3), solver, X, y)
    with pytest.raises(ValueError, match=r"^recording must hold \(2,\) rounds"):
        theory.regret(run, np.ones(4), solver, X, y, batch_size=2)


# ---- record= -------------------------------------------------------------------------------------
ROWS = np.where(RNG.random((30, 6)) < 0.5, RNG.normal(size=(30, 6)), 0).astype(FLOAT)
ROWS[:, 4] = 0  # no history
LABELS = RNG.integers(10, size=30)
SOLVERS = {
    "rda": js.AdaGradRDA(0.4, 1.0, regularizer=js.regularizers.L1(0.01)),
    "mirror": js.AdaGradFOBOS(0.4, initial_accumulator=0.1, regularizer=L1),
}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", SOLVERS)
def test_a_fit_keeps_what_its_states_tell(name: str, sparse: bool) -> None:
    solver, rows = SOLVERS[name], scipy.sparse.csr_matrix(ROWS) if sparse else ROWS
    options: dict[str, Any] = {"record": ("theory",), "intercept": "column"}
    fit = js.fit(solver, rows, LABELS < 5, epochs=3, **options)
    assert fit.history["gamma"].shape == (3,)
    assert ("regret_bound" in fit.history) == (name == "rda")
    own = solver.free_intercept()
    told = theory.of_state(own, fit.state.solver_state)
    for key, value in told.items():
        assert_close(np.asarray(fit.history[key][-1], FLOAT), value, "compiled")
    first = js.fit(solver, rows, LABELS < 5, **options)
    more = js.fit(solver, rows, LABELS < 5, state=first.state, epochs=2, record=["theory"])
    for key in told:
        parts = np.concatenate([first.history[key], more.history[key]])
        assert_bitwise(parts, fit.history[key])


@pytest.mark.parametrize("sparse", [False, True])
def test_many_rankers_keep_what_their_states_tell(monkeypatch: Any, sparse: bool) -> None:
    """In chunks and over devices to the bit as in one piece."""
    monkeypatch.setattr(tile, "LARGEST_TILE", 4)
    rows = scipy.sparse.csr_matrix(ROWS) if sparse else ROWS
    rates = np.linspace(0.1, 1, 10)
    solver = dataclasses.replace(SOLVERS["rda"], learning_rate=rates)
    fit = partial(js.fit_one_vs_rest, solver, rows, LABELS, epochs=2, record=("theory",))
    whole = fit(classes=range(10))
    lanes = jax.tree.map(lambda *tiles: jnp.concatenate(tiles)[:10], *whole.state.solver_state)
    ready = solver.cast(FLOAT).for_rankers(10)

    def one(solver: Any, state: Any) -> Any:
        return theory.of_state(solver, state)

    told = jax.vmap(one, in_axes=(ready.ranker_axes(), 0))(ready, lanes)
    assert told.keys() == {"gamma", "regret_bound"}
    mesh = Mesh(np.array(jax.devices()[:2]), ("rankers",))
    others = [fit(classes=range(10), **change) for change in ({"chunk_size": 4}, {"mesh": mesh})]
    for key, value in told.items():
        assert whole.history[key].shape == (2, 10)
        assert_close(whole.history[key][-1].astype(FLOAT), value, "compiled")
        for other in others:
            assert_bitwise(other.history[key], whole.history[key], key)


@pytest.mark.parametrize("sparse", [False, True])
def test_classes_as_one_problem_keep_what_their_state_tells(sparse: bool) -> None:
    rows = scipy.sparse.csr_matrix(ROWS) if sparse else ROWS
    group = js.regularizers.GroupL2(0.01, axis=-2)
    hinge = js.losses.MulticlassHinge()
    for front, loss in ((js.fit, hinge), (js.fit_one_vs_rest, js.losses.Hinge())):
        solver = js.AdaGradRDA(0.3, 1.0, loss=loss, regularizer=group)
        fit = front(solver, rows, LABELS, epochs=2, record=("theory",))
        state = fit.state.solver_state
        if front is js.fit_one_vs_rest:
            state = jax.tree.map(lambda leaf: leaf[0], state[0])
        gamma = np.sqrt(np.asarray(state.accumulator, np.float64)).sum()
        w = np.asarray(fit.model.coef, np.float64)
        bound = ((w**2).sum() + (w**2).max() * gamma) / 0.6 + 0.3 * gamma
        assert fit.history["gamma"].shape == fit.history["regret_bound"].shape == (2,)
        assert_close(fit.history["gamma"][-1].astype(FLOAT), gamma, "compiled")
        assert_close(fit.history["regret_bound"][-1].astype(FLOAT), bound, "compiled")


def test_a_lost_ranker_tells_nothing() -> None:
    rates = np.array([0.1, np.finfo(FLOAT).max / 8, 0.1])
    solver = js.AdaGradFOBOS(rates, loss=js.losses.Squared(), accumulate="batch")
    labels = np.arange(30) % 3
    with pytest.warns(RuntimeWarning, match="1 of 3 rankers"):
        fit = js.fit_one_vs_rest(solver, ROWS, labels, epochs=4, record=("theory",))
    gamma = fit.history["gamma"][-1]
    assert np.isnan(gamma[1]) and np.isfinite(gamma[[0, 2]]).all()


@pytest.mark.parametrize("front", [js.fit, js.fit_one_vs_rest])
@pytest.mark.parametrize("record", ["theory", ("gaps",), ("theory", 3), None])
def test_an_unknown_record_is_refused(front: Any, record: Any) -> None:
    with pytest.raises(ValueError, match=r"^record must be a list or tuple .*'theory'.* got"):
        front(SOLVERS["rda"], ROWS, LABELS < 5, record=record)


def test_a_solver_that_tells_nothing_is_refused() -> None:
    alone = js.RDA(lambda t: 0.1)  # without a number of its own
    for solver in (js.Pegasos(0.1), js.Averaged(js.Pegasos(0.1)), alone):
        with pytest.raises(ValueError, match=f"^record must not .* {type(solver).__name__}"):
            js.fit(solver, ROWS, LABELS < 5, record=("theory",))
    told = js.fit(js.Averaged(SOLVERS["rda"]), ROWS, LABELS < 5, record=("theory",)).history
    assert np.isfinite(told["gamma"]).all() and np.isfinite(told["regret_bound"]).all()
