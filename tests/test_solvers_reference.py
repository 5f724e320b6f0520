"""Solvers against plain NumPy float64 loops.

Every solver x loss x regularizer x choice round by round, and ``fit`` as a whole.
"""

from __future__ import annotations

import dataclasses
import math
from operator import attrgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import members
import numpy as np
import pytest
import scipy.sparse
from references import losses as reference_losses
from solver_references import (
    FLOAT,
    REFERENCES,
    SAFE,
    WRAPPERS,
    D,
    Data,
    Fields,
    N,
    first,
    stream,
)
from tolerances import assert_close

import jaxsolvers as js
from jaxsolvers.features import Dense
from jaxsolvers.protocol import Batch, Problem, Solver


@pytest.mark.parametrize("cls", members.discover(Solver))
def test_every_solver_has_a_numpy_reference(cls: type) -> None:
    where = "tests/references/ and its adapter to REFERENCES in tests/solver_references.py"
    assert cls.__name__ in REFERENCES | WRAPPERS, members.missing(cls, where)


# ---- round by round ----------------------------------------------------------------------------
def clear(run: Any, solver: Solver, data: Data) -> bool:
    """Whether no score of the run comes so near to a kink that float32 might decide otherwise."""
    name, parameter = members.reference_loss(solver.loss)
    kinks = [0.0, 1.0] if "hinge" in name else [0.0] if solver.loss.classification else []
    # Of residuals. Huber's slope is continuous: it does not jump where the parabola ends.
    jumps = {"absolute": [0.0], "epsilon_insensitive": [-(parameter or 0.0), parameter or 0.0]}
    before = [first(solver), *run.w[:-1]]
    biases = [0.0, *getattr(run, "bias", [0.0] * len(run.w))[:-1]]
    if getattr(run, "doubt", 9) < 1:
        return False  # an eigenvalue near where it would count as rounding
    for w, bias, batch in zip(before, biases, data.batches, strict=True):
        for i in batch:
            score = w @ data.X[i] + bias
            margin, residual = data.y[i] * score, data.y[i] - score
            # w = 0 and x = 0 score exactly 0 in every precision
            if margin != 0 and any(abs(margin - kink) < SAFE for kink in kinks):
                return False
            if any(abs(residual - jump) < SAFE for jump in jumps.get(name, [])):
                return False
    return True


def clear_stream(solver: Solver, k: int) -> tuple[Data, Any, Fields]:
    """A stream for the solver on which no decision is near its margin, and the reference's run."""
    reference = REFERENCES[type(solver).__name__]
    for seed in range(100):
        data = stream(solver.loss, k, seed)
        run, fields = reference(solver, data)
        if clear(run, solver, data):
            return data, run, fields
    raise AssertionError("no clear stream in 100 seeds")


@jax.jit
def trajectory(solver: Solver, problem: Problem, rounds: Batch) -> Any:
    """State, weights, weights of the solver in a wrapper, and Info after each round, in a scan."""

    def one_round(state: Any, batch: Batch) -> Any:
        state, info = solver.update(state, batch)
        inner = solver.solver.weights(state.inner) if hasattr(solver, "solver") else None
        return state, (state, solver.weights(state), inner, info)

    return jax.lax.scan(one_round, solver.init(problem, FLOAT), rounds)[1]


def check_fields(state: Any, fields: Fields) -> None:
    for name, expected in fields.items():
        assert_close(attrgetter(name)(state), np.array(expected), "reference", name=name)


def settled(solver: Any) -> Any:
    """The solver with so many trips that what iterates in a round comes to its end."""
    if hasattr(solver, "solver"):
        return dataclasses.replace(solver, solver=settled(solver.solver))
    return dataclasses.replace(solver, trips=1500) if hasattr(solver, "trips") else solver


def check_rounds(solver: Solver, wrapper: Any, k: int) -> None:
    """The solver, and a wrapper with it in its place, against the reference after every round."""
    data, run, fields = clear_stream(solver, k)
    name, parameter = members.reference_loss(solver.loss)
    at_zero = reference_losses.value_at_zero(name, data.y, parameter, data.weight)
    live = data.weight.sum()
    problem = Problem((D,), N, jnp.asarray(live, FLOAT), jnp.asarray(at_zero, FLOAT))
    x, y, weight = (jnp.asarray(a, FLOAT)[data.index] for a in data[:3])
    rounds = Batch(Dense(x), y, weight, jnp.asarray(data.index, jnp.int32))
    states, weights, inner, info = trajectory(
        settled(wrapper or solver).cast(FLOAT), problem, rounds
    )

    if wrapper is not None:
        expected, counters = WRAPPERS[type(wrapper).__name__](wrapper, run)
        check_fields(states, counters)
        assert_close(weights, np.array(expected), "reference", name="averaged weights")
        states, weights = states.inner, inner
    check_fields(states, fields)
    assert_close(weights, np.array(run.w), "reference", name="weights")
    assert_close(info.weight, np.array(run.weight), "reference", name="Info.weight")
    assert_close(info.loss, np.array(run.loss), "reference", name="Info.loss")
    mistakes = np.array(run.mistakes) * float(solver.loss.classification)
    np.testing.assert_array_equal(info.mistakes, mistakes)
    np.testing.assert_array_equal(info.violations, run.violations)
    assert np.asarray(info.finite).all()


def batch_sizes(solver: Solver) -> tuple[int, ...]:
    return (1,) if solver.single_row else (1, 7)


@members.each(members.plain_solvers(), "solver")
def test_every_round_equals_the_numpy_loop(solver: Solver) -> None:
    """Within a wrapper; kinds of these and rows per round alternate."""
    at = members.plain_solvers().index(solver)
    k = batch_sizes(solver)[at // 2 % len(batch_sizes(solver))]
    for plain in (solver, members.other_numbers(solver)):
        kinds = members.wrapped(plain)
        check_rounds(plain, kinds[at % len(kinds)] if kinds else None, k)
    trajectory.clear_cache()  # no other test runs this program


@members.every_solver()
def test_every_round_of_a_covering_set_equals_the_numpy_loop(solver: Solver) -> None:
    """Solvers by themselves; wrappers where the others did not have them."""
    for k in batch_sizes(solver):
        inner = getattr(solver, "solver", None)
        check_rounds(*((solver, None) if inner is None else (inner, solver)), k)


@members.each(members.regularizers(), "regularizer")
def test_the_mirror_form_keeps_a_coordinate_without_history(regularizer: Any) -> None:
    """It is out of the problem: no step and no regularizer touches it."""
    solver = js.AdaGradFOBOS(0.3, regularizer=regularizer).cast(FLOAT)
    state = solver.init(Problem((D,), N), FLOAT)
    state = state._replace(current=jnp.full(D, 0.04, FLOAT))
    gradient = jnp.asarray([0.0, 0.2, 0.0, -0.1, 0.0], FLOAT)
    after = solver.weights(solver.absorb(state, gradient, rounds=jnp.int32(1)))
    assert np.flatnonzero(after == state.current).tolist() == [0, 2, 4]


# ---- through the engine ------------------------------------------------------------------------
ROWS, EPOCHS, CLASSES = 50, 2, 20
HINGES = [js.losses.Hinge(), js.losses.SquaredHinge(), js.losses.Logistic()]
PENALTIES = [
    js.regularizers.NoRegularizer(),
    js.regularizers.L1(0.01),
    js.regularizers.SquaredL2(0.1),
    js.regularizers.ElasticNet(0.01, 0.1),
]


def rows(n_classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, labels 0 ... n_classes - 1 and weights, some of them 0."""
    rng = np.random.default_rng(5)
    X = (0.5 * rng.normal(size=(ROWS, D))).astype(FLOAT)
    X[:, 3] *= rng.random(ROWS) < 0.2
    labels = rng.permutation(np.arange(ROWS) % n_classes)
    return X, labels, rng.uniform(0.2, 2.0, ROWS) * (rng.random(ROWS) < 0.9)


def cyclic(
    solver: Solver, X: np.ndarray, y: np.ndarray, weight: np.ndarray, k: int
) -> tuple[Any, dict[str, np.ndarray]]:
    """The reference's run over EPOCHS passes in file order, and what ``fit`` calls its history."""
    weight = weight / weight[weight > 0].mean()
    index = np.append(np.arange(ROWS), np.full(-ROWS % k, N + ROWS)).reshape(-1, k)
    batches = [[i for i in batch if i < ROWS] for batch in np.tile(index, (EPOCHS, 1)).tolist()]
    run, _ = REFERENCES[type(solver).__name__](solver, Whole(X.astype(float), y, weight, batches))
    per_epoch = {
        name: np.reshape(getattr(run, name), (EPOCHS, -1)).sum(axis=1)
        for name in ("loss", "mistakes", "violations", "weight")
    }
    per_epoch["progressive_loss"] = per_epoch["loss"] / per_epoch["weight"]
    return run.w[-1], {n: per_epoch[n] for n in ("progressive_loss", "mistakes", "violations")}


class Whole(NamedTuple):
    """Data with its batches written out."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    batches: list[list[int]]


def check_fit(solver: Solver, k: int) -> None:
    """One ranker: the engine goes row by row."""
    X, labels, weight = rows(2)
    fit = js.fit(
        solver, X, labels, epochs=EPOCHS, batch_size=k, order="cyclic", sample_weight=weight
    )
    w, history = cyclic(solver, X, 2.0 * labels - 1, weight, k)
    assert_close(fit.model.coef, w, "run", name="coef")
    for name, expected in history.items():
        assert_close(fit.history[name].astype(FLOAT), expected, "run", name=name)


@pytest.mark.parametrize("k", [1, 7])
@pytest.mark.parametrize("project", [False, True])
@members.each(HINGES, "loss")
def test_fit_of_pegasos_equals_the_numpy_loop(loss: Any, project: bool, k: int) -> None:
    check_fit(js.Pegasos(0.2, loss=loss, project=project), k)


REAL = [loss for loss in members.losses() if not loss.classification]


@members.each(REAL, "loss")
def test_fit_of_linear_steps_on_real_targets_equals_the_numpy_loop(loss: Any) -> None:
    """Batches of sparse rows, and dense rows one by one."""
    X, _, weight = rows(2)
    y = (X @ np.linspace(-1, 1, D) + 0.1 * np.arange(ROWS) / ROWS).astype(FLOAT)
    for solver, k in (
        (js.Pegasos(0.4, loss, project=True), 7),
        (js.SGD(0.3, 0.2, loss), 1),
        (js.NORMA(0.4, 0.3, loss), 7),
        (js.SDCA(0.2, loss), 1),
    ):
        w, history = cyclic(solver, X, y.astype(float), weight, k)
        given = X if k == 1 else scipy.sparse.csr_array(X)
        fit = js.fit(
            solver, given, y, epochs=EPOCHS, batch_size=k, order="cyclic", sample_weight=weight
        )
        assert_close(fit.model.coef, w, "run", name=members.label(solver))
        loss_of = fit.history["progressive_loss"].astype(FLOAT)
        assert_close(loss_of, history["progressive_loss"], "run", name=members.label(solver))


@pytest.mark.parametrize(("accumulate", "k"), [("example", 1), ("example", 7), ("batch", 7)])
@members.each(PENALTIES, "regularizer")
@pytest.mark.parametrize("form", [js.AdaGradRDA, js.AdaGradFOBOS])
def test_fit_of_adagrad_equals_the_numpy_loop(
    form: Any, regularizer: Any, accumulate: str, k: int
) -> None:
    for delta in (0.0, 0.5):
        check_fit(form(0.2, delta, regularizer=regularizer, accumulate=accumulate), k)


@pytest.mark.parametrize("k", [1, 7])
@pytest.mark.parametrize("project", [False, True])
@members.each(HINGES, "loss")
def test_gram_sweeps_of_many_rankers_equal_the_numpy_loop(loss: Any, project: bool, k: int) -> None:
    solver = js.Pegasos(0.2, loss=loss, project=project)
    X, labels, weight = rows(CLASSES)
    positive_weight = np.linspace(0.5, 3.0, CLASSES)
    fit = js.fit_one_vs_rest(
        solver, X, labels, epochs=EPOCHS, batch_size=k, order="cyclic", sample_weight=weight,
        positive_weight=positive_weight,
    )  # fmt: skip
    for c in range(CLASSES):
        y = np.where(labels == c, 1.0, -1.0)
        own = weight * np.where(y > 0, positive_weight[c], 1.0)
        w, history = cyclic(solver, X, y, own, k)
        assert_close(fit.model.coef[c], w, "run", name=f"coef of {c}")
        for name, expected in history.items():
            ours = fit.history[name][:, c].astype(FLOAT)
            assert_close(ours, expected, "run", name=f"{name} of {c}")


@pytest.mark.parametrize("first", [-1.0, 1.0])
@pytest.mark.parametrize("project", [False, True])
@pytest.mark.parametrize("n_rankers", [2, 32])
def test_the_first_example_alone_decides_the_sign_of_w(
    n_rankers: int, project: bool, first: float
) -> None:
    """Shrinking after adding would erase it: in round 1 the factor 1 - 1/t is 0."""
    lam = 0.5
    X = np.array([[1.0], [0.0]], FLOAT)
    fit = js.fit_one_vs_rest(
        js.Pegasos(lam, project=project), X, [0, 1] if first > 0 else [1, 0],
        classes=np.arange(n_rankers), order="cyclic",
    )  # fmt: skip
    w_2 = first * min(1 / lam, 1 / math.sqrt(lam) if project else math.inf)
    np.testing.assert_allclose(fit.model.coef[0, 0], w_2 / 2, rtol=1e-6)
