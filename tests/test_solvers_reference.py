"""Solvers against plain NumPy float64 loops.

Every solver x loss x regularizer x choice round by round, and ``fit`` as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import members
import numpy as np
import pytest
from references import averages
from references import losses as reference_losses
from references.adagrad import adagrad
from references.pegasos import pegasos
from references.proximal import proximal
from references.sdca import sdca
from references.sgd import norma_rate, sgd
from tolerances import assert_close

import jaxsolvers as js
from jaxsolvers.features import Dense
from jaxsolvers.protocol import Batch, Problem, Solver

ROUNDS, N, D = 20, 45, 5
FLOAT = np.dtype(jnp.result_type(float))
SAFE = 1e-4  # least distance of a score from a kink that a float32 run must keep


class Data(NamedTuple):
    """A stream of ROUNDS batches; padded rows point at row N."""

    X: np.ndarray  # (N + 1, D), rounded to the working dtype, the last row 0
    y: np.ndarray  # (N + 1,)
    weight: np.ndarray  # (N + 1,), the last 0
    index: np.ndarray  # (ROUNDS, k)

    @property
    def batches(self) -> list[list[int]]:
        return [[i for i in batch if i < N] for batch in self.index.tolist()]


def stream(loss: Any, k: int, seed: int) -> Data:
    """Passes over N rows in batches of k, the last of a pass short; some rows weigh 0."""
    rng = np.random.default_rng(seed)
    X = 0.5 * rng.normal(size=(N + 1, D))
    X[:, 1] *= rng.random(N + 1) < 0.3  # seldom seen
    X[:, 2] = 0  # never seen
    X[[8, N]] = 0
    y = members.targets(loss, rng, N + 1)
    weight = rng.uniform(0.2, 2.0, N + 1) * (rng.random(N + 1) < 0.85)
    weight[N] = 0
    weight[k : 2 * k] = 0  # the second round has no live row at all
    one_pass = np.append(np.arange(N), np.full(-N % k, N)).reshape(-1, k)
    index = np.concatenate([one_pass] * math.ceil(ROUNDS / len(one_pass)))[:ROUNDS]
    return Data(X.astype(FLOAT).astype(float), y.astype(FLOAT).astype(float), weight, index)


# ---- one adapter per solver: (solver, data) -> run with .w, .t and the fields of its state -----
Fields = dict[str, list[Any]]


def first(solver: Any) -> np.ndarray:
    """w_1: 0, or where a domain without 0 starts."""
    regularizer = getattr(solver, "regularizer", None)
    start = None if regularizer is None else regularizer.start((D,), FLOAT)
    return np.zeros(D) if start is None else np.asarray(start, float)


def reference_pegasos(solver: js.Pegasos, data: Data) -> tuple[Any, Fields]:
    name, parameter = members.reference_loss(solver.loss)
    run = pegasos(
        data.X, data.y, data.batches, lam=float(solver.lam), loss=name, parameter=parameter,
        weights=data.weight, project=solver.project,
    )  # fmt: skip
    vector = [float(solver.lam) * max(t, 1) * w for t, w in zip(run.t, run.w, strict=True)]
    fields: Fields = {"scalars.t": run.t, "vector": vector}
    if solver.project:
        fields["square_norm"] = [v @ v for v in vector]
    return run, fields


def reference_adagrad(form: str, solver: Any, data: Data) -> tuple[Any, Fields]:
    name, parameter = members.reference_loss(solver.loss)
    regularizer, strengths = members.reference_regularizer(solver.regularizer, D)
    eta = float(solver.learning_rate)
    run = adagrad(
        data.X, data.y, data.batches, form=form, learning_rate=eta, delta=float(solver.delta),
        initial_accumulator=float(solver.initial_accumulator), loss=name, parameter=parameter,
        regularizer=regularizer, strengths=strengths, accumulate=solver.accumulate,
        weights=data.weight, centre=first(solver),
    )  # fmt: skip
    fields: Fields = {"t": run.t, "accumulator": run.accumulator}
    if form == "rda":
        fields["gradient_sum"] = [eta * g for g in run.gradient_sum]
    else:
        fields["current"] = run.w
    return run, fields


def reference_proximal(form: str, solver: Any, data: Data) -> tuple[Any, Fields]:
    name, parameter = members.reference_loss(solver.loss)
    regularizer, strengths = members.reference_regularizer(solver.regularizer, D)
    run = proximal(
        data.X, data.y, data.batches, form=form, learning_rate=float(solver.learning_rate),
        loss=name, parameter=parameter, regularizer=regularizer, strengths=strengths,
        weights=data.weight, centre=first(solver),
    )  # fmt: skip
    own = {"gradient_sum": run.rated_sum} if form == "rda" else {"current": run.w}
    return run, {"t": run.t, **own}


def reference_shrinking(
    rate: Callable[[Any], Callable[[int], float]], solver: Any, data: Data
) -> tuple[Any, Fields]:
    name, parameter = members.reference_loss(solver.loss)
    run = sgd(
        data.X, data.y, data.batches, lam=float(solver.lam), rate=rate(solver), loss=name,
        parameter=parameter, weights=data.weight,
    )  # fmt: skip
    return run, {"scalars.t": run.t, "vector": run.w}


def reference_sdca(solver: js.SDCA, data: Data) -> tuple[Any, Fields]:
    name, parameter = members.reference_loss(solver.loss)
    order = [i for batch in data.batches for i in batch]
    run = sdca(
        data.X, data.y, order, lam=float(solver.lam), loss=name, parameter=parameter,
        weights=data.weight,
    )  # fmt: skip
    return run, {"scalars.t": run.t, "dual": [dual[:N] for dual in run.dual]}


REFERENCES: dict[str, Callable[..., tuple[Any, Fields]]] = {
    "Pegasos": reference_pegasos,
    "AdaGradRDA": partial(reference_adagrad, "rda"),
    "AdaGradFOBOS": partial(reference_adagrad, "mirror"),
    "RDA": partial(reference_proximal, "rda"),
    "FOBOS": partial(reference_proximal, "fobos"),
    "SGD": partial(reference_shrinking, lambda solver: lambda t: float(solver.learning_rate)),
    "NORMA": partial(reference_shrinking, lambda s: norma_rate(float(s.lam), float(s.c))),
    "SDCA": reference_sdca,
}


def reference_averaged(solver: js.Averaged, run: Any) -> tuple[list[np.ndarray], Fields]:
    start = int(solver.start)
    args = (first(solver.solver), run.w, run.t)
    if solver.kind == "uniform":
        mean = averages.uniform_average(*args, start=start)
    else:
        power = float(solver.power)
        mean = averages.polynomial_average(*args, power=power, start=start)
    return mean, {"counts.t": run.t, "counts.averaged": [max(t - start, 0) for t in run.t]}


WRAPPERS = {"Averaged": reference_averaged}


@pytest.mark.parametrize("cls", members.discover(Solver))
def test_every_solver_has_a_numpy_reference(cls: type) -> None:
    where = "tests/references/ and its adapter to REFERENCES in tests/test_solvers_reference.py"
    assert cls.__name__ in REFERENCES | WRAPPERS, members.missing(cls, where)


# ---- round by round ----------------------------------------------------------------------------
def clear(run: Any, solver: Solver, data: Data) -> bool:
    """Whether no score of the run comes so near to a kink that float32 might decide otherwise."""
    name, parameter = members.reference_loss(solver.loss)
    kinks = [0.0, 1.0] if "hinge" in name else [0.0] if solver.loss.classification else []
    # Of residuals. Huber's slope is continuous: it does not jump where the parabola ends.
    jumps = {"absolute": [0.0], "epsilon_insensitive": [-(parameter or 0.0), parameter or 0.0]}
    before = [first(solver), *run.w[:-1]]
    for w, batch in zip(before, data.batches, strict=True):
        for i in batch:
            score = w @ data.X[i]
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


def check_rounds(solver: Solver, wrapper: Any, k: int) -> None:
    """The solver, and a wrapper with it in its place, against the reference after every round."""
    data, run, fields = clear_stream(solver, k)
    name, parameter = members.reference_loss(solver.loss)
    at_zero = reference_losses.value_at_zero(name, data.y, parameter, data.weight)
    live = data.weight.sum()
    problem = Problem((D,), N, jnp.asarray(live, FLOAT), jnp.asarray(at_zero, FLOAT))
    x, y, weight = (jnp.asarray(a, FLOAT)[data.index] for a in data[:3])
    rounds = Batch(Dense(x), y, weight, jnp.asarray(data.index, jnp.int32))
    states, weights, inner, info = trajectory((wrapper or solver).cast(FLOAT), problem, rounds)

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


@pytest.mark.parametrize(
    ("solver", "k"),
    [
        pytest.param(solver, k, id=f"{members.label(solver)}-{k}")
        for solver in members.plain_solvers()
        for k in batch_sizes(solver)
    ],
)
def test_every_round_equals_the_numpy_loop(solver: Solver, k: int) -> None:
    """Within a wrapper, whose kinds alternate: each meets every combination at one k."""
    at = members.plain_solvers().index(solver) + (k == 1)
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
