"""Every regularizer at its edges: no history, extreme metrics, exact zeros, many numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import members
import numpy as np
import pytest
from references import regularizers as reference
from regularizer_points import FLOAT, D, draw, every_regularizer, inside, known_as, prox
from tolerances import assert_close, tolerance

import jaxsolvers as js
from jaxsolvers.protocol import Regularizer
from jaxsolvers.regularizers.free_intercept import FreeIntercept


@every_regularizer
def test_a_coordinate_without_history_gets_zero_and_finite_derivatives(member: Regularizer) -> None:
    linear = jnp.array([0.0, 1.5, 0.0, -0.4, 0.0, 0.0], jnp.float32)
    metric = jnp.array([0.0, 2.0, 0.0, 0.5, 0.0, 0.0], jnp.float32)
    dead = np.array([0, 2, 4, 5])
    cast = member.cast(jnp.float32)
    tau = jnp.float32(0.3)
    x, *derivatives = solved_with_derivatives(cast, linear, metric, tau)
    np.testing.assert_array_equal(np.asarray(x)[dead], 0)
    assert np.asarray(x)[1] != 0
    # nor do the derivatives break where there is hardly any: the square of 1e-25 is no float32
    linear, metric = linear.at[2].set(1e-20), metric.at[2].set(1e-25)
    derivatives += solved_with_derivatives(cast, linear, metric, tau)
    for leaf in jax.tree.leaves(derivatives):
        assert np.isfinite(leaf).all()


@jax.jit
def solved_with_derivatives(*args: Any) -> Any:
    """The minimiser, and the derivatives of its sum in reverse and forward mode."""

    def summed(member: Regularizer, linear: Any, metric: Any, tau: Any) -> Any:
        x = member.solve(linear, metric, tau)
        return jnp.sum(x), x

    reverse, x = jax.grad(summed, argnums=(0, 1, 2, 3), has_aux=True)(*args)
    member, linear, metric, tau = args
    # where the metric is tiny both move in proportion: by 1 they would move by 25 orders
    tiny = (metric > 0) & (metric < 1e-20)
    moves = jnp.where(tiny, linear, 1), jnp.where(tiny, metric, 1)
    forward = jax.jvp(lambda b, h: summed(member, b, h, tau)[0], (linear, metric), moves)
    return x, reverse, forward


@every_regularizer
def test_extreme_metrics_lose_no_accuracy(member: Regularizer) -> None:
    rng = np.random.default_rng(12)
    z = np.asarray(rng.normal(size=(120, D)), FLOAT).astype(float)
    h = np.asarray(10.0 ** rng.uniform(-30, 30, (120, D)), FLOAT).astype(float)
    h[0], h[1] = 1e-30, 1e30
    h = h.astype(FLOAT).astype(float)
    tau = np.asarray(10.0 ** rng.uniform(-3, 3, 120), FLOAT).astype(float)
    name, strengths = known_as(member)
    rows = zip(z, h, tau, strict=True)
    expected = np.array([reference.prox(name, *row, **strengths) for row in rows])
    x = prox(member, z, h, tau)
    assert np.isfinite(x).all()
    # soft(z, a) can cancel: accurate relative to z, not to itself
    limit = tolerance("reference", FLOAT)
    np.testing.assert_allclose(x, expected, rtol=limit, atol=limit * np.abs(z).max())


@pytest.mark.parametrize("make", [js.regularizers.L1, lambda s: js.regularizers.ElasticNet(s, 0.1)])
def test_l1_gives_exact_zeros_and_only_inside_its_threshold(make: Callable[..., Any]) -> None:
    z, h, tau = draw(13)
    x = prox(make(0.5), z, h, tau)
    inside = np.abs(h * z) < 0.5 * tau[:, None] * (1 - 1e-5)
    outside = np.abs(h * z) > 0.5 * tau[:, None] * (1 + 1e-5)
    assert 0.1 < inside.mean() < 0.9
    np.testing.assert_array_equal(x[inside], 0)
    assert (x[outside] != 0).all()
    assert (np.sign(x[outside]) == np.sign(z[outside])).all()


@members.each([m for m in members.regularizers() if not isinstance(m, FreeIntercept)], "inner")
def test_free_intercept_leaves_the_last_coordinate_alone(inner: Regularizer) -> None:
    z, h, tau = draw(14)
    free = prox(FreeIntercept(inner), z, h, tau)
    np.testing.assert_allclose(free[:, -1], z[:, -1], rtol=1e-6)
    own = prox(inner, z[:, :-1], h[:, :-1], tau)
    np.testing.assert_allclose(free[:, :-1], own, rtol=1e-6, atol=1e-6)
    far = np.hstack([inside(inner, z[:, :-1]), np.full((len(z), 1), -1e6)])
    phi = jax.vmap(FreeIntercept(inner).cast(FLOAT).value)(jnp.asarray(far, FLOAT))
    near = jax.vmap(inner.cast(FLOAT).value)(jnp.asarray(far[:, :-1], FLOAT))
    np.testing.assert_array_equal(phi, near)


@every_regularizer
def test_vmap_over_numbers_and_rankers_equals_the_loop(member: Regularizer) -> None:
    z, h, tau = (jnp.asarray(a[:4], FLOAT) for a in draw(15))
    factors = jnp.asarray([0.5, 1.0, 2.0, 3.0], FLOAT)
    mapped = scaled_rows(member.cast(FLOAT), factors, z, h, tau)
    looped = jnp.stack(
        [scaled(member.cast(FLOAT), *row) for row in zip(factors, z, h, tau, strict=True)]
    )
    assert_close(mapped, looped, "compiled")


@jax.jit
def scaled(member: Regularizer, factor: Any, z: Any, h: Any, tau: Any) -> Any:
    return member.map_numbers(lambda leaf: leaf.value * factor).solve(h * z, h, tau)


scaled_rows = jax.jit(jax.vmap(scaled, in_axes=(None, 0, 0, 0, 0)))
