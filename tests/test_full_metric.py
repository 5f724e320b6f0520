"""Regularizers in a full metric: optimal within the span, in whatever basis; residuals."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import members
import numpy as np
import pytest
from tolerances import assert_close

import jaxsolvers as js
from jaxsolvers.regularizers.full_metric import FullMetric, solve_full

FLOAT = np.dtype(jnp.result_type(float))
D = 6
LEAST = 1e-6 if FLOAT.itemsize == 8 else 1e-5  # of 320 trips, or what rounding leaves of h = 100
L1, BOX = js.regularizers.L1(0.1), js.regularizers.Box(-1.0, 0.8)
NET = js.regularizers.ElasticNet(0.05, 0.1)


def metrics(n: int, rank: int, seed: int) -> Any:
    """(h, Q, push, centre) of n metrics of condition up to 1e2 and some rank, float64."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(n, D, D)))[0]
    h = np.exp(rng.uniform(-4.6, 0, (n, D))) * (np.arange(D) < rank)
    return h, Q, rng.normal(size=(n, D)), np.clip(0.1 * rng.normal(size=(n, D)), -0.2, 0.1)


@partial(jax.jit, static_argnames="trips")
def solved(regularizer: Any, h: Any, Q: Any, push: Any, centre: Any, trips: int) -> Any:
    def one(h: Any, Q: Any, push: Any, centre: Any) -> Any:
        metric = FullMetric(h[None], Q[None])
        return solve_full(regularizer, centre, push, metric, jnp.ones((), FLOAT), centre, trips)

    return jax.vmap(one)(*(jnp.asarray(a, FLOAT) for a in (h, Q, push, centre)))


@pytest.mark.parametrize("rank", [D, 3])
@members.each([L1, BOX, NET], "regularizer")
def test_no_step_within_the_span_lowers_the_objective(regularizer: Any, rank: int) -> None:
    """Where H is singular the complement is left alone; phi is that of the whole x."""
    h, Q, push, centre = metrics(60, rank, rank)
    x, residual = map(np.asarray, solved(regularizer.cast(FLOAT), h, Q, push, centre, trips=3000))
    # The multiplier of the span is worth up to h_max/h_min, 100, times a rounding error.
    limit = 1e-8 if FLOAT.itemsize == 8 else 3e-4
    away = np.einsum("nji,nj->ni", Q, x - centre)
    assert np.abs(away[:, rank:]).max(initial=0) < limit
    assert residual.max() < limit

    _, numbers = members.reference_regularizer(regularizer, D)
    lower, upper = numbers.get("lower", -np.inf), numbers.get("upper", np.inf)
    l1, l2 = numbers.get("strength", numbers.get("l1", 0.0)), numbers.get("l2", 0.0)

    def objective(x: np.ndarray) -> np.ndarray:
        a, p = (np.einsum("nji,nj->ni", Q, v) for v in (x - centre, push))
        value = (h * a * a / 2 + p * (h > 0) * a).sum(axis=1) + l1 * np.abs(x).sum(axis=1)
        inside = ((x >= lower - 1e-7) & (x <= upper + 1e-7)).all(axis=1)
        return np.where(inside, value + l2 / 2 * (x * x).sum(axis=1), np.inf)

    best, rng = objective(x.astype(float)), np.random.default_rng(0)
    slack = limit * (1 + np.abs(best))
    for size in (1e-3, 1e-2, 1e-1, 1.0):
        for _ in range(20):
            step = np.einsum("nij,nj->ni", Q, rng.normal(size=h.shape) * (h > 0) * size)
            assert (objective(x + step) >= best - slack).all()
            assert (objective(x + rng.random() * (centre - x)) >= best - slack).all()


def test_bases_of_equal_eigenvalues_and_their_signs_do_not_matter() -> None:
    h, Q, push, centre = metrics(20, 4, 9)
    h[:, 1] = h[:, 2] = 0.5
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(20, 2, 2)))[0]
    other = Q * np.where(np.arange(D) % 2, 1.0, -1.0)
    other[:, :, 1:3], other[:, :, 4:] = Q[:, :, 1:3] @ turn, Q[:, :, 4:] @ turn
    for regularizer in (js.regularizers.NoRegularizer(), L1):
        own = regularizer.cast(FLOAT)
        x = solved(own, h, Q, push, centre, trips=400)[0]
        y = solved(own, h, other, push, centre, trips=400)[0]
        assert_close(x, np.asarray(y), "run", scale=100.0)  # 1/h is up to 100


def test_more_trips_come_nearer_and_zeros_are_exact() -> None:
    h, Q, push, centre = metrics(200, D, 4)
    l1 = js.regularizers.L1(0.3).cast(FLOAT)
    found = [solved(l1, h, Q, push, 0 * centre, trips=trips) for trips in (5, 20, 80, 320)]
    medians = [float(np.median(residual)) for _, residual in found]
    assert all(b < a / 2 for a, b in itertools.pairwise(medians[:3])) and medians[3] < LEAST
    zeros = np.asarray(found[-1][0]) == 0
    assert 0.05 < zeros.mean() < 0.95


def test_numbers_of_the_regularizer_have_derivatives() -> None:
    """Through the iteration, against a difference."""
    h, Q, push, centre = metrics(5, D, 2)

    def total(strength: Any) -> Any:
        own = js.regularizers.L1(strength)
        return jnp.sum(solved(own, h, Q, push, centre, trips=300)[0])

    at, step = jnp.asarray(0.1, FLOAT), 1e-3
    slope = (total(at + step) - total(at - step)) / (2 * step)
    np.testing.assert_allclose(jax.grad(total)(at), slope, rtol=2e-2, atol=2e-2)
