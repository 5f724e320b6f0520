"""Proximal operators and projections of regularizers that tie coordinates together."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsolvers as js

F = jnp.result_type(float)
R = js.regularizers
RTOL = 1e-10 if np.float64 == F else 1e-6


@jax.jit
def unit(member, z):
    """In the unit metric, with tau = 1."""
    return member.prox(z, jnp.ones_like(z), jnp.ones((), z.dtype))


def prox(regularizer, z):
    return np.asarray(unit(regularizer.cast(F), jnp.asarray(z, F)))


@pytest.mark.parametrize("ball", [R.L1Ball(1.0), R.L2Ball(1.0), R.LInfBall(1.0)])
def test_a_point_inside_a_ball_does_not_move_case_043(ball):
    z = np.array([0.2, -0.3], F)
    np.testing.assert_array_equal(prox(ball, z), z)
    on_the_edge = np.array([0.0, -1.0], F)
    np.testing.assert_array_equal(prox(ball, on_the_edge), on_the_edge)


def test_a_group_that_became_zero_stays_finite_case_044():
    z = jnp.asarray([[0.0, 0.0], [3.0, 4.0]], F)
    group = R.GroupL2(1.0).cast(F)
    np.testing.assert_allclose(prox(group, z), [[0, 0], [2.4, 3.2]], rtol=RTOL)
    with jax.debug_nans(True):
        again = prox(group, prox(group, [[0.1, 0.2], [3.0, 4.0]]))
        np.testing.assert_array_equal(again[0], 0)
        slope = jax.jit(jax.grad(lambda z: jnp.sum(unit(group, z))))(z)
        np.testing.assert_array_equal(slope[0], 0)
        np.testing.assert_array_equal(jax.grad(group.value)(z)[0], 0)


def test_the_projection_onto_the_simplex_sums_to_one_case_046():
    x = prox(R.Simplex(1.0), [1.2, 0.3, -0.5])
    np.testing.assert_allclose(x, [0.95, 0.05, 0.0], rtol=10 * RTOL)
    assert x[2] == 0 and abs(x.sum() - 1) <= 1e-6
    rng = np.random.default_rng(0)
    points = jnp.asarray(rng.normal(size=(200, 9)) * 10.0 ** rng.uniform(-3, 3, (200, 1)), F)
    metric = jnp.asarray(10.0 ** rng.uniform(-3, 3, (200, 9)), F)
    onto = jax.jit(jax.vmap(lambda z, h: R.Simplex(1.0).prox(z, h, 1.0)))(points, metric)
    assert (np.asarray(onto) >= 0).all()
    np.testing.assert_allclose(np.sum(onto, axis=1), 1, atol=1e-6)


def test_norms_have_the_sub_gradient_zero_at_zero_case_047():
    for norm in (R.L2Norm(0.5), R.LInfNorm(0.5), R.GroupL2(0.5), R.GroupLInf(0.5)):
        with jax.debug_nans(True):
            np.testing.assert_array_equal(jax.grad(norm.value)(jnp.zeros(2)), [0, 0])
        slope = jax.grad(norm.value)(jnp.array([0.0, -2.0]))
        np.testing.assert_allclose(slope, [0, -0.5], rtol=RTOL)


@pytest.mark.parametrize("ball", [R.L1Ball(1.0), R.L2Ball(1.0), R.LInfBall(1.0)])
def test_every_ball_keeps_the_zero_vector_and_its_derivative_case_050(ball):
    own, slopes = ball.cast(F), jax.jit(jax.jacobian(unit, argnums=1))
    with jax.debug_nans(True):
        np.testing.assert_array_equal(unit(own, jnp.zeros(2, F)), [0, 0])
        np.testing.assert_array_equal(slopes(own, jnp.zeros(2, F)), np.eye(2))
        empty = own.map_numbers(lambda leaf: 0 * leaf.value)
        for z in ([0.0, 0.0], [3.0, 4.0]):
            np.testing.assert_array_equal(unit(empty, jnp.asarray(z, F)), [0, 0])
            assert np.isfinite(slopes(empty, jnp.asarray(z, F))).all()
