"""Bounds, lemmas and hindsight as functions: values, zeros, derivatives.

Against NumPy float64 written from the formulas of Duchi, Hazan, Singer, JMLR 12 (2011).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references.adagrad_full import eigen
from tolerances import assert_close, tolerance

import jaxsolvers as js
from jaxsolvers import theory

FLOAT = np.dtype(jnp.result_type(float))
SLACK = 1e-12 if FLOAT.itemsize == 8 else 1e-5
RNG = np.random.default_rng(3)
T, D = 40, 4


def gradient_streams() -> np.ndarray:
    """Gradients (S, T, D): noise, few directions, scales, coordinates without history, nothing."""
    g = RNG.normal(size=(9, T, D))
    g[1] *= RNG.random((T, D)) < 0.1
    g[2] = g[2, :1] * np.where(np.arange(T) % 2, 1.0, -1.0)[:, None]  # one direction
    g[3] *= 10.0 ** np.linspace(-3, 3, T)[:, None]  # grows and grows
    g[4] *= 10.0 ** np.linspace(3, -3, T)[:, None]  # the worst comes first
    g[5, :, 1:3] = 0  # never seen
    g[6] = g[6, :, :2] @ RNG.normal(size=(2, D))  # rank 2
    g[7] *= 1e-25  # its squares leave float32
    g[8] = 0
    return g.astype(FLOAT).astype(float)


STREAMS = gradient_streams()


# ---- plain float64 -------------------------------------------------------------------------------
def pseudo_root(G: np.ndarray) -> np.ndarray:
    """The pseudo-inverse of G^{1/2}."""
    values, vectors = eigen(G)
    inverse = np.divide(1, np.sqrt(values), out=np.zeros_like(values), where=values > 0)
    return (vectors * inverse) @ vectors.T


def plain_lemma_4(g: np.ndarray) -> tuple[float, float]:
    length = np.sqrt(np.cumsum(g * g, axis=0))
    terms = np.divide(g * g, length, out=np.zeros_like(g), where=length > 0)
    return float(terms.sum()), float(2 * length[-1].sum())


def plain_lemma_10(g: np.ndarray) -> tuple[float, float]:
    G, left = np.zeros((D, D)), 0.0
    for row in g:
        G = G + np.outer(row, row)
        left += float(row @ pseudo_root(G) @ row)
    return left, float(2 * np.linalg.svd(g, compute_uv=False).sum())


LEMMAS = [(theory.lemma_4, plain_lemma_4), (theory.lemma_10, plain_lemma_10)]


@pytest.mark.parametrize(("lemma", "plain"), LEMMAS)
def test_both_sides_of_a_lemma_and_their_derivatives(lemma: Any, plain: Any) -> None:
    """Values against the formula, left <= right; derivatives against differences of it."""
    direction = RNG.normal(size=STREAMS.shape)
    # Along a coordinate without history or out of the span there is no derivative.
    direction[[2, 6]] = direction[[2, 6], :, :1]
    direction = direction * STREAMS

    def slopes(g: Any, v: Any) -> Any:
        sides, pull = jax.vjp(lemma, g)
        one, zero = jnp.ones((), FLOAT), jnp.zeros((), FLOAT)
        gradients = [pull(theory.Inequality(*seed))[0] for seed in ((one, zero), (zero, one))]
        return sides, gradients, [jnp.sum(gradient * v) for gradient in gradients]

    arrays = jnp.asarray(STREAMS, FLOAT), jnp.asarray(direction, FLOAT)
    sides, gradients, along = jax.jit(jax.vmap(slopes))(*arrays)
    assert np.isfinite(np.array(gradients)).all()
    assert (np.asarray(sides.ratio) <= 1 + SLACK).all(), f"left / right: {sides.ratio}"
    for i, g in enumerate(STREAMS):
        expected = plain(g)
        law = tolerance("reference", FLOAT)
        np.testing.assert_allclose([side[i] for side in sides], expected, rtol=law, err_msg=str(i))
        upper, lower = (plain(g + step * direction[i]) for step in (1e-6, -1e-6))
        differences = (np.array(upper) - lower) / 2e-6
        law = max(tolerance("slope", FLOAT), tolerance("run", FLOAT))
        found = [float(side[i]) for side in along]
        np.testing.assert_allclose(
            found, differences, rtol=law, atol=law * expected[1], err_msg=str(i)
        )


def test_the_ratio_of_an_inequality() -> None:
    sides = theory.Inequality(jnp.array([1.0, 0.0, 1.0, -1.0]), jnp.array([2.0, 0.0, 0.0, 4.0]))
    np.testing.assert_array_equal(sides.ratio, [0.5, 0, np.inf, -0.25])


def test_gamma_and_the_trace_of_the_root() -> None:
    """Over all streams at once; blocks and joint weights add up; derivative 1/(2 length)."""
    squares = jnp.asarray((STREAMS[:7] ** 2).sum(axis=1), FLOAT)
    full = jnp.asarray(np.einsum("sti,stj->sij", STREAMS[:7], STREAMS[:7]), FLOAT)
    lengths = np.sqrt(np.asarray(squares, float))
    values, slopes = jax.vmap(jax.value_and_grad(theory.gamma))(squares)
    assert_close(values, lengths.sum(axis=1), "reference")
    inverse = np.divide(0.5, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    for slope, expected in zip(slopes, inverse, strict=True):
        assert_close(slope, expected, "reference")
    assert_close(theory.gamma(squares), lengths.sum(), "reference")
    found, slopes = jax.vmap(jax.value_and_grad(theory.trace_root))(full)
    traces = [np.sqrt(eigen(np.asarray(G, float))[0]).sum() for G in full]
    assert_close(found, np.array(traces), "reference")
    assert np.isfinite(np.asarray(slopes)).all()
    for i in (0, 5):  # full rank, and two coordinates without history
        assert_close(slopes[i], pseudo_root(np.asarray(full[i], float)) / 2, "run")
    assert_close(theory.trace_root(full), np.sum(np.asarray(found, float)), "rewritten")
    eye = jnp.eye(D, dtype=FLOAT)
    for function, start in ((theory.gamma, jnp.ones(D, FLOAT)), (theory.trace_root, eye)):
        history = squares[0] if start.ndim == 1 else full[0]
        assert_close(function(history + 0.1 * start, 0.1), function(history), "run")
        none, slope = jax.value_and_grad(function)(0 * start)
        assert none == 0 and not np.any(slope)
    assert theory.gamma(np.array([9, 16])) == 7 and theory.gamma([9.0, 16.0]) == 7
    assert theory.gamma(jnp.array([9.0, 16.0], jnp.bfloat16)).dtype == jnp.float32


# ---- hindsight -----------------------------------------------------------------------------------
def searched(G: np.ndarray, diagonal: bool) -> float:
    """Min of <G, S^-1> over S = d LL'/||L||^2, which are all S > 0 of trace d, by descent."""
    d = len(G)
    mask = np.eye(d) if diagonal else np.ones((d, d))
    cost: Callable[[np.ndarray], float] = lambda L: float(  # noqa: E731
        (L * L).sum() / d * np.trace(G @ np.linalg.inv(L @ L.T))
    )
    L, step = np.eye(d), 1.0
    for _ in range(4000):
        P, n = np.linalg.inv(L @ L.T), (L * L).sum()
        slope = mask * (2 * L * np.trace(G @ P) - 2 * n * P @ G @ P @ L) / d
        step *= 2
        while cost(L - step * slope) > cost(L) - 0.3 * step * (slope * slope).sum():
            step /= 2
            if step < 1e-14:
                return cost(L)
        L = L - step * slope
        L *= np.sqrt(d) / np.linalg.norm(L)
    return cost(L)


@pytest.mark.parametrize("diagonal", [True, False])
@pytest.mark.parametrize("stream", [0, 1])
def test_hindsight_is_the_minimum_and_no_feasible_metric_beats_it(
    diagonal: bool, stream: int
) -> None:
    g = STREAMS[stream]
    G = g.T @ g
    if diagonal:
        best = theory.best_diagonal_metric(jnp.asarray(np.diag(G), FLOAT))
        G, S = np.diag(np.diag(G)), np.diag(np.asarray(best.metric, float))
    else:
        best = theory.best_full_metric(jnp.asarray(G, FLOAT))
        S = np.asarray(best.metric, float)
    value, law = float(best.value), tolerance("run", FLOAT)
    np.testing.assert_allclose(np.trace(S), D, rtol=law)
    # Costs by the definition, sum_t <g_t, S^-1 g_t>.
    cost = np.einsum("ti,ij,tj", g, np.linalg.inv(S), g)
    np.testing.assert_allclose([value, cost], searched(G, diagonal), rtol=max(law, 1e-6))
    L = RNG.normal(size=(1000, D, D)) * 10.0 ** RNG.uniform(-1, 1, (1000, 1, D))
    near = np.linalg.cholesky(S)[None] + RNG.normal(size=(1000, D, D)) * 0.01
    for factors in (L, near):
        if diagonal:
            factors = factors * np.eye(D)
        metrics = factors @ np.swapaxes(factors, 1, 2)
        metrics *= D / np.trace(metrics, axis1=1, axis2=2)[:, None, None]
        costs = np.trace(G @ np.linalg.inv(metrics), axis1=1, axis2=2)
        assert (costs >= value * (1 - law)).all(), f"{costs.min()} beats {value}"


def test_hindsight_without_history() -> None:
    """Null directions get nothing, no history at all the identity; derivatives are finite."""
    squares = jnp.asarray((STREAMS[5] ** 2).sum(axis=0), FLOAT)
    diagonal = theory.best_diagonal_metric(squares)
    full = theory.best_full_metric(jnp.asarray(STREAMS[5].T @ STREAMS[5], FLOAT))
    length = np.sqrt(np.asarray(squares, float))
    assert_close(diagonal.metric, D * length / length.sum(), "reference")
    assert_close(diagonal.value, length.sum() ** 2 / D, "reference")
    assert not np.any(np.asarray(full.metric)[1:3])
    for function, nothing, identity in (
        (theory.best_diagonal_metric, jnp.zeros(D, FLOAT), np.ones(D)),
        (theory.best_full_metric, jnp.zeros((D, D), FLOAT), np.eye(D)),
    ):
        best = function(nothing)
        assert best.value == 0
        np.testing.assert_array_equal(best.metric, identity)
        for accumulator in (nothing, squares if nothing.ndim == 1 else jnp.diag(squares)):
            for slope in jax.jacrev(function)(accumulator):
                assert np.isfinite(np.asarray(slope)).all()
    blocks = jnp.stack([jnp.eye(2, dtype=FLOAT), 9 * jnp.eye(2, dtype=FLOAT)])
    best = theory.best_full_metric(blocks)
    assert_close(best.value, np.array(64.0 / 4), "reference")  # traces 2 + 6, d = 4
    assert_close(best.metric, np.stack([np.eye(2) / 2, 1.5 * np.eye(2)]), "reference")


# ---- bounds --------------------------------------------------------------------------------------
def test_bounds_are_their_formulas() -> None:
    u, start, path = (RNG.normal(size=shape) for shape in ((3,), (3,), (5, 3)))
    path[0] = start
    eta, delta, spread, phi = 0.3, 2.0, 4.0, 0.7
    for name in ("gamma", "trace"):
        distance = (lambda v: np.abs(v).max()) if name == "gamma" else np.linalg.norm
        common = {"learning_rate": eta, "delta": delta, name: spread, "penalty_at_start": phi}
        rest = phi + delta * ((u - start) ** 2).sum() / (2 * eta) + eta * spread
        rda = theory.regret_bound_rda(u, start=start, **common)
        reach = distance(u - start) ** 2
        assert_close(rda, np.array(rest + reach * spread / (2 * eta)), "reference")
        fobos = theory.regret_bound_fobos(u, path, **common)
        reach = max(distance(u - w) ** 2 for w in path)
        assert_close(fobos, np.array(rest + reach * spread / (2 * eta)), "reference")
    for ball, c in ((None, 4 * 9.0), (2.0, (0.1 * 2 + 3) ** 2)):
        found = theory.pegasos_bound(jnp.arange(5), lam=0.1, largest_norm=3.0, ball=ball)
        rounds = np.arange(1, 5)
        assert found[0] == np.inf
        assert_close(found[1:], c * (1 + np.log(rounds)) / (0.2 * rounds), "reference")


def test_the_bound_of_the_dual_averaging_form_asks_for_delta() -> None:
    u = jnp.ones(2, FLOAT)

    def bound(delta: Any, largest: Any) -> Any:
        return theory.regret_bound_rda(
            u, learning_rate=1.0, delta=delta, gamma=1.0, largest_gradient=largest
        )

    assert bound(0.5, 0.5) == 2.0
    with pytest.raises(ValueError, match=r"^delta must be >= the largest gradient 0\.75.*got 0\.5"):
        bound(0.5, 0.75)
    np.testing.assert_array_equal(jax.jit(bound)(jnp.array([0.5, 0.5]), jnp.array([0.5, 0.75])),
                                  [2.0, np.inf])  # fmt: skip


@pytest.mark.parametrize("given", [{}, {"gamma": 1.0, "trace": 1.0}])
def test_a_bound_is_diagonal_or_full(given: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"gamma .* or trace"):
        theory.regret_bound_rda(np.ones(2), learning_rate=1.0, delta=1.0, **given)
    with pytest.raises(ValueError, match=r"gamma .* or trace"):
        theory.regret_bound_fobos(np.ones(2), np.ones((3, 2)), learning_rate=1.0, **given)


def test_what_a_state_tells() -> None:
    X, y = np.array([[3.0, 0, 0], [0, 2, 0]], FLOAT), [1, -1]
    rda = js.AdaGradRDA(0.5, 3.0, initial_accumulator=0.25, regularizer=js.regularizers.L1(0.1))
    state = js.fit(rda, X, y).state.solver_state
    told = theory.of_state(rda, state)
    assert_close(told["gamma"], np.array(5.0), "run")
    w = np.asarray(rda.weights(state), float)
    spread = np.sqrt([9.25, 4.25, 0.25]).sum()
    expected = (3 * (w @ w) + np.abs(w).max() ** 2 * spread) / (2 * 0.5) + 0.5 * spread
    assert_close(told["regret_bound"], np.array(expected), "run")
    mean = js.Averaged(js.AdaGradFOBOS(0.5))
    told = theory.of_state(mean, js.fit(mean, X, y).state.solver_state)
    assert told.keys() == {"gamma"} and float(told["gamma"]) == 5
    for project, c in ((False, 4 * 9.0), (True, (0.5 * np.sqrt(2) + 3) ** 2)):
        solver = js.Pegasos(0.5, project=project)
        state = js.fit(solver, X, y).state.solver_state
        told = theory.of_state(solver, state, largest_norm=3.0)
        assert_close(told["bound"], np.array(c * (1 + np.log(2)) / (2 * 0.5 * 2)), "run")
        assert theory.of_state(solver, state) == {}
    with pytest.raises(ValueError, match=r"^solver must be"):
        theory.of_state("pegasos", state)
