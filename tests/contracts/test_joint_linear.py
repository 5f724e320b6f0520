"""Linear steps with losses of all classes: rounds, sweeps, projection, biases and kernels."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from contracts.streams import pick, with_gram
from contracts.test_joint_laws import LOSSES, D, N, data, step
from members import label
from references import joint as reference
from test_losses_joint import FLOAT, C, known_as
from tolerances import assert_close

import jaxsolvers as js
from jaxsolvers.engine import blocks
from jaxsolvers.features import Dense
from jaxsolvers.protocol import Batch, Problem

LAM, AT_ZERO = 0.3, 0.05  # a small l(0), so that the ball is met


def solvers(loss: Any) -> list[tuple[Any, Any]]:
    """Solvers with the (shrink, rate) of their round t."""
    pegasos = lambda t: (1 / t, 1 / (LAM * t))  # noqa: E731
    return [
        (js.Pegasos(LAM, loss), pegasos),
        (js.Pegasos(LAM, loss, project=True), pegasos),
        (js.Pegasos(LAM, loss, bias="unregularized"), pegasos),
        (js.Pegasos(LAM, loss, project=True, bias="unregularized"), pegasos),
        (js.SGD(LAM, 0.4, loss), lambda t: (0.4 * LAM, 0.4)),
        (js.NORMA(LAM, 0.5, loss), lambda t: (0.5 / math.sqrt(t), 0.5 / LAM / math.sqrt(t))),
    ]


def start(own: Any) -> Any:
    return own.init(Problem((C, D), N, loss_at_zero=jnp.asarray(AT_ZERO, FLOAT)), FLOAT)


@jax.jit
def trajectory(own: Any, rounds: Batch) -> Any:
    def one_round(state: Any, batch: Batch) -> Any:
        state, info = own.update(state, batch)
        return state, (own.weights(state), own.offset(state), info)

    return jax.lax.scan(one_round, start(own), rounds)


@jax.jit
def sweeps(own: Any, blocks: list[Batch], mean: Any) -> Any:
    """The state after each block, of rounds of ``len(mean)`` rows."""

    def one_block(state: Any, block: Batch) -> Any:
        state, info = own.sweep(state, block, len(mean))
        return state, (own.weights(state), own.offset(state), info)

    return jax.lax.scan(one_block, start(own), blocks)


@pytest.mark.parametrize("k", [1, 5])
@pytest.mark.parametrize("loss", LOSSES[1:], ids=["logistic", "costs"])
def test_rounds_and_sweeps_equal_the_numpy_loop(loss: Any, k: int) -> None:
    X, labels, weight = data()
    weight[k : 2 * k] = 0  # a round without a live row
    index = np.arange(N).reshape(-1, k)
    x, y, s = (jnp.asarray(a[index]) for a in (X, labels, weight.astype(FLOAT)))
    rounds = Batch(Dense(x), y, s, jnp.asarray(index, jnp.int32))
    fast = jax.tree.map(lambda a: a.reshape(N // 20, 20, *a.shape[2:]), rounds)
    fast = fast._replace(gram=jax.vmap(lambda block: block.gram())(fast.x))
    for solver, rule in solvers(loss)[(LOSSES.index(loss) + (k > 1)) % 2 :: 2]:
        project, bias = (getattr(solver, name, False) for name in ("project", "own_bias"))
        run = reference.linear(
            X.astype(float), labels, index.tolist(), known_as(loss), rule, n_classes=C,
            weights=weight.astype(FLOAT).astype(float), bias=bias,
            radius=math.sqrt(AT_ZERO / LAM) if project else math.inf,
        )  # fmt: skip
        if project:
            norms = np.linalg.norm(np.reshape(run.w, (len(run.w), -1)), axis=1)
            assert np.isclose(norms, math.sqrt(AT_ZERO / LAM)).sum() > 5
        name, own = type(solver).__name__, solver.cast(FLOAT)
        state, (w, b, info) = trajectory(own, rounds)
        assert_close(w, np.array(run.w), "run", name=name)
        assert_close(info.loss, np.array(run.loss), "run", name=name)
        assert int(state.scalars.t) == run.t[-1]
        ends = np.arange(20 // k - 1, N // k, 20 // k)
        state, (w_ends, b_ends, info) = sweeps(own, fast, jnp.zeros(k))
        assert_close(w_ends, np.array(run.w)[ends], "run", name=name)
        losses = np.reshape(run.loss, (len(ends), -1)).sum(axis=1)
        assert_close(info.loss, losses, "run", name=name)
        assert int(state.scalars.t) == run.t[-1]
        if bias:
            assert_close(b, np.array(run.bias), "run", name=name)
            assert_close(b_ends, np.array(run.bias)[ends], "run", name=name)


@pytest.mark.parametrize("k", [1, 4])
def test_an_average_of_a_sweep_is_that_of_its_rounds(k: int, loss: Any = LOSSES[-1]) -> None:
    X, labels, weight = data(5)
    index = jnp.arange(16, dtype=jnp.int32)
    s = jnp.asarray(weight[:16], FLOAT)
    block = Batch(Dense(jnp.asarray(X[:16])), jnp.asarray(labels[:16]), s, index)
    inside = solvers(loss)[1::2] if k == 1 else solvers(loss)[::2]
    for solver, _ in inside:
        own = js.Averaged(solver, start=2).cast(FLOAT)
        slow, _ = sweeps(own, jax.tree.map(lambda a: a[None], block), jnp.zeros(k))
        fast, _ = sweeps(own, jax.tree.map(lambda a: a[None], with_gram(block)), jnp.zeros(k))
        assert_close(fast, slow, "rewritten", name=type(solver).__name__)


@pytest.mark.parametrize("solver", [s for s, _ in solvers(LOSSES[0])[3::2]], ids=label)
def test_fit_is_the_same_on_dense_sparse_and_kernel_rows_by_any_form(
    solver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, labels, weight = data(6)
    given: dict[str, Any] = {"epochs": 2, "sample_weight": weight, "key": 3}
    whole = js.fit(solver, X, labels, **given)
    linear = js.fit(js.Kernelized(solver, js.kernels.Linear()), X, labels, **given)
    scores = whole.model.decision_function(X)
    assert_close(linear.model.decision_function(X), scores, "run", scale=10.0)
    forms = []
    sparse = scipy.sparse.csr_array(X)
    for rankers, rows in ((blocks.GRAM_RANKERS, sparse), (0, X), (0, sparse)):
        monkeypatch.setattr(blocks, "GRAM_RANKERS", rankers)  # with 0 all by Gram sweeps
        forms.append(js.fit(solver, rows, labels, block_size=16, **given))
    for fit in forms:
        assert_close(fit.model.coef, whole.model.coef, "run", scale=1.0)
        assert_close(fit.model.intercept, whole.model.intercept, "run", scale=1.0)
        assert_close(fit.history["progressive_loss"].astype(FLOAT),
                     whole.history["progressive_loss"].astype(FLOAT), "run")  # fmt: skip
    assert whole.model.coef.shape == (C, D) and whole.model.intercept.shape == (C,)
    moved = bool((whole.model.intercept != 0).all())
    assert moved == solver.own_bias


def test_the_ball_has_the_radius_of_the_largest_cost_of_the_data() -> None:
    """Rho = sqrt(l(0)/lam), l(0) the weighted mean of the rows' largest costs."""
    X, labels, weight = data(7)
    loss = LOSSES[-1]
    at_zero = np.average(np.asarray(loss.cost).max(axis=0)[labels], weights=weight)
    solver = js.Pegasos(1e-3, loss, project=True)
    fit = js.fit(solver, 100 * X, labels, sample_weight=weight)
    np.testing.assert_allclose(fit.state.solver_state.scalars.loss_at_zero, at_zero, rtol=1e-5)
    norm = np.linalg.norm(np.asarray(fit.model.coef, float))
    assert 0.9 < norm / math.sqrt(at_zero / 1e-3) < 1 + 1e-5


def test_a_batch_steps_by_the_mean_of_its_rows_case_175() -> None:
    """Two rows, then each of them three times."""
    loss = js.losses.MulticlassHinge()
    own = js.Pegasos(1.0, loss).cast(FLOAT)
    x, y = np.array([[2.0, 0.0], [0.0, 4.0]], FLOAT), np.array([0, 1], np.int32)
    for repeats in (1, 3):
        rows, labels = np.repeat(x, repeats, axis=0), np.repeat(y, repeats)
        index = jnp.arange(len(labels), dtype=jnp.int32)
        state = own.init(Problem((2, 2), 6), FLOAT)
        block = Batch(Dense(jnp.asarray(rows)), jnp.asarray(labels), jnp.ones(len(y) * repeats,
                      FLOAT), index)  # fmt: skip
        state, _ = step(own, state, block)
        np.testing.assert_allclose(own.weights(state), [[1, -2], [-1, 2]])


def test_a_state_continues_and_is_told_apart() -> None:
    X, labels, _ = data(8)
    solver = js.Averaged(js.Pegasos(0.1, LOSSES[0], bias="unregularized"))
    whole = js.fit(solver, X, labels, epochs=3, batch_size=4)
    first = js.fit(solver, X, labels, epochs=2, batch_size=4)
    second = js.fit(solver, X, labels, state=first.state)
    jax.tree.map(np.testing.assert_array_equal, second.model.coef, whole.model.coef)
    np.testing.assert_array_equal(second.model.intercept, whole.model.intercept)
    assert pick(whole.model.intercept, 0) != 0
