"""Schedules, compensated sums and a centre that is not 0, against the NumPy references."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from references.adagrad import adagrad
from references.proximal import proximal
from tolerances import assert_bitwise, assert_close

import jaxsolvers as js
from jaxsolvers.features import Dense
from jaxsolvers.protocol import Batch, Problem

FLOAT = np.dtype(jnp.result_type(float))
N, D = 40, 5
CENTRE = np.array([0.3, -0.2, 0.5, 0.0, 0.1]).astype(FLOAT).astype(float)
PENALTY = {"regularizer": "l1", "strengths": {"strength": 0.02}}


def decaying(t: Any) -> Any:
    """0.5/(1 + t/10): t a Python number or an int32 array."""
    t = t.astype(FLOAT) if isinstance(t, jax.Array) else t
    return 0.5 / (1 + t / 10)


REFERENCES = {
    js.AdaGradRDA: partial(adagrad, form="rda"),
    js.AdaGradFOBOS: partial(adagrad, form="mirror"),
    js.RDA: partial(proximal, form="rda"),
    js.FOBOS: partial(proximal, form="fobos"),
}
every_form = pytest.mark.parametrize("form", REFERENCES, ids=lambda form: form.__name__)


def data(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = (0.5 * rng.normal(size=(N, D))).astype(FLOAT)
    X[:, 2] = 0  # never seen
    X[:, 1] *= rng.random(N) < 0.3
    weight = rng.uniform(0.5, 1.5, N) * (rng.random(N) < 0.9)
    return X, np.where(rng.random(N) < 0.5, 1.0, -1.0), weight / weight[weight > 0].mean()


@jax.jit
def trajectory(solver: Any, problem: Problem, rounds: Batch) -> Any:
    def one_round(state: Any, batch: Batch) -> Any:
        state, _ = solver.update(state, batch)
        return state, solver.weights(state)

    return jax.lax.scan(one_round, solver.init(problem, FLOAT), rounds)[1]


def batches(k: int) -> np.ndarray:
    return np.arange(N).reshape(-1, k)


@every_form
@pytest.mark.parametrize("k", [1, 5])
def test_schedules_and_centres_equal_the_numpy_loop(form: Any, k: int) -> None:
    X, y, weight = data()
    index = batches(k)
    rounds = Batch(
        Dense(jnp.asarray(X)[index]), *(jnp.asarray(a, FLOAT)[index] for a in (y, weight)),
        jnp.asarray(index, jnp.int32),
    )  # fmt: skip
    options: list[dict[str, Any]] = [{}]
    if hasattr(form, "compensated"):
        options = [{"accumulate": how, "delta": 0.1} for how in ("example", "batch")] + [{}]
    for rate in (0.3, decaying):
        for centre in (None, CENTRE):
            for option in options:
                solver = form(rate, regularizer=js.regularizers.L1(0.02), **option).cast(FLOAT)
                problem = Problem((D,), N, centre=None if centre is None else jnp.asarray(centre))
                problem = jax.tree.map(lambda a: jnp.asarray(a, FLOAT), problem)
                run = REFERENCES[form](
                    X.astype(float), y, index.tolist(), learning_rate=rate, weights=weight,
                    centre=centre, **option, **PENALTY,
                )  # fmt: skip
                ours = trajectory(solver, problem, rounds)
                assert_close(ours, np.array(run.w), "run", name=f"{rate} {centre} {option}")


@every_form
def test_a_constant_schedule_is_the_number(form: Any) -> None:
    X, y, weight = data(1)
    for rows in (X, scipy.sparse.csr_array(X)):
        fits = [
            js.fit(form(rate), rows, y, epochs=2, batch_size=4, sample_weight=weight)
            for rate in (0.25, lambda t: 0.25)
        ]
        assert_close(fits[1].model.coef, fits[0].model.coef, "run")


@every_form
def test_a_schedule_trains_sparse_rows_like_dense_ones_and_resumes(form: Any) -> None:
    X, y, weight = data(2)
    solver = form(decaying, regularizer=js.regularizers.L1(0.01))
    settings: dict[str, Any] = {"batch_size": 4, "sample_weight": weight, "intercept": "column"}
    whole = js.fit(solver, X, y, epochs=2, **settings)
    sparse = js.fit(solver, scipy.sparse.csr_array(X), y, epochs=2, **settings)
    assert_close(sparse.model.coef, whole.model.coef, "run", scale=1.0)
    first = js.fit(solver, X, y, epochs=1, **settings)
    second = js.fit(solver, X, y, state=first.state, sample_weight=weight)
    assert_bitwise(second.model.coef, whole.model.coef)
    with pytest.raises(ValueError, match=r"solver.learning_rate = decaying, got 0\.25"):
        js.fit(form(0.25, regularizer=js.regularizers.L1(0.01)), X, y, state=first.state)


def test_a_schedule_serves_many_rankers() -> None:
    X, _, _ = data(3)
    labels = np.arange(N) % 5
    solver = js.AdaGradRDA(decaying, regularizer=js.regularizers.L1(0.01))
    fit = js.fit_one_vs_rest(solver, X, labels, order="cyclic")
    alone = js.fit(solver, X, labels == 3, order="cyclic")
    assert_close(fit.model.coef[3], alone.model.coef, "run")


def test_what_unseen_columns_owe_is_a_sum_that_loses_nothing() -> None:
    """A plain float32 sum of these 131,072 step sizes is 0.1 % short."""
    n, eta, strength = 1 << 17, 0.1, 2e-6
    columns = np.minimum(np.arange(n), 1)  # column 0 in the first row alone
    rows = scipy.sparse.csr_array((np.ones(n, FLOAT), columns, np.arange(n + 1)), shape=(n, 2))
    labels = np.where(np.arange(n) % 2, -1, 1)
    solver = js.AdaGradFOBOS(lambda t: eta, regularizer=js.regularizers.L1(strength))
    left = float(js.fit(solver, rows, labels, order="cyclic").model.coef[0])
    owed = (eta - left) / strength
    # The weight itself is rounded to 4e-9 or so, 2e-7 of what it owes n times eta.
    assert abs(owed - n * eta) < 1e-5 * n * eta


def test_a_traced_delta_is_left_alone_by_the_checks() -> None:
    def of(delta: Any) -> Any:
        js.AdaGradRDA(0.1, delta, regularizer=js.regularizers.Simplex(1.0)).validate()
        return delta

    assert jax.vmap(of)(jnp.ones(3)).shape == (3,)


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (lambda t: -0.1, r"learning_rate\(1\) must be a finite number >= 0"),
        (lambda t: float("nan"), r"learning_rate\(1\) must be a finite number >= 0"),
        (lambda t: np.ones(3), r"learning_rate\(1\) must be a single number"),
        ("fast", "learning_rate must be a finite number > 0 or a schedule t -> number, got 'fast'"),
        (0.0, "learning_rate must be a finite number > 0 or a schedule"),
        (lambda t: 0.1 / math.sqrt(t), "learning_rate must be .* traced int32 .*Concretization"),
        (lambda t: 0.1 if t < 5 else 0.01, "learning_rate must be .* raises TracerBool"),
        (lambda: 0.1, "learning_rate must be .* raises TypeError: .*takes 0 positional"),
    ],
)
def test_bad_rates_are_refused(rate: Any, words: str) -> None:
    X, y, _ = data()
    with pytest.raises(ValueError, match=words):
        js.fit(js.AdaGradFOBOS(rate), X, y)


# ---- compensated ---------------------------------------------------------------------------------
@pytest.mark.parametrize("form", [js.AdaGradRDA, js.AdaGradFOBOS])
def test_compensated_sums_keep_terms_far_below_their_last_bit(form: Any) -> None:
    """4,000 squares of 0.01 beside 1e6 are 40, and 0 in a plain float32 sum."""
    sums = {}
    for compensated in (False, True):
        solver = form(0.1, initial_accumulator=1e6, compensated=compensated).cast(jnp.float32)
        state = solver.init(Problem((1,)), jnp.float32)

        def one_round(state: Any, _: Any, solver: Any = solver) -> Any:
            return solver.absorb(state, jnp.full((1,), 0.1, jnp.float32), rounds=jnp.int32(1)), None

        state, _ = jax.jit(lambda s, f=one_round: jax.lax.scan(f, s, length=4000))(state)
        sums[compensated] = float(state.accumulator[0]) - 1e6
        if form is js.AdaGradRDA and compensated:
            np.testing.assert_allclose(state.gradient_sum, 0.1 * 0.1 * 4000, rtol=2e-7)
    assert sums[False] == 0
    np.testing.assert_allclose(sums[True], 40.0, atol=0.07)


def test_compensated_is_exact_to_the_last_bit_where_nothing_rounds() -> None:
    X, y, _ = data(4)
    for form in (js.AdaGradRDA, js.AdaGradFOBOS):
        plain, kept = (js.fit(form(0.3, compensated=c), X, y, epochs=2) for c in (False, True))
        assert_close(kept.model.coef, plain.model.coef, "run")
        assert plain.state.solver_state.lost.accumulator is None
        assert kept.state.solver_state.lost.accumulator.shape == (D,)


def test_an_overflowing_compensated_sum_stays_infinite() -> None:
    solver = js.AdaGradFOBOS(0.1, compensated=True).cast(jnp.float32)
    state = solver.init(Problem((1,)), jnp.float32)
    for _ in range(3):
        state = solver.absorb(state, jnp.full((1,), 1e25, jnp.float32))
    assert np.isinf(state.accumulator).all()
