"""Every ``solve`` and ``prox`` against slow references, and the laws of proximal operators."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import members
import numpy as np
import pytest
from references import regularizers as reference
from regularizer_points import (
    FLOAT,
    D,
    by_row,
    draw,
    dual_prox,
    every_regularizer,
    inside,
    known_as,
    objective,
    prox,
    prox_rows,
    solve_rows,
    values,
)
from tolerances import assert_close

from jaxsolvers.protocol import Regularizer


# ---- against the references ----------------------------------------------------------------------
@pytest.mark.parametrize("cls", members.discover(Regularizer))
def test_every_regularizer_has_a_numpy_reference(cls: type) -> None:
    found = {type(member): member for member in members.regularizers()}
    members.reference_regularizer(found[cls], D)


@every_regularizer
def test_prox_and_solve_equal_the_reference(member: Regularizer) -> None:
    z, h, tau = draw(0)
    name, strengths = known_as(member)
    rows = zip(z, h, tau, strict=True)
    expected = np.array([reference.prox(name, *row, **strengths) for row in rows])
    assert_close(prox(member, z, h, tau).astype(FLOAT), expected, "reference", name="prox")
    solved = by_row(solve_rows, member, h * z, h, tau)
    assert_close(solved, expected, "reference", name="solve")


@every_regularizer
def test_prox_equals_a_search_on_the_objective_alone(member: Regularizer) -> None:
    z, h, tau = draw(1, size=4)
    name, strengths = known_as(member)
    rows = zip(z, h, tau, strict=True)
    expected = np.array([reference.prox_by_search(name, *row, **strengths) for row in rows])
    assert_close(prox(member, z, h, tau).astype(FLOAT), expected, "reference")


@every_regularizer
def test_value_equals_the_reference(member: Regularizer) -> None:
    x = draw(2, size=50)[0]
    x[25:] = inside(member, x[25:])
    ours = jax.jit(jax.vmap(member.cast(FLOAT).value))(jnp.asarray(x, FLOAT))
    assert ours.shape == (50,) and ours.dtype == FLOAT
    expected = values(member, np.asarray(x, FLOAT).astype(float))
    np.testing.assert_array_equal(np.isinf(ours), np.isinf(expected))
    finite = np.isfinite(expected)
    assert_close(np.asarray(ours)[finite], expected[finite], "reference")


# ---- laws ----------------------------------------------------------------------------------------
@every_regularizer
def test_no_random_perturbation_lowers_the_objective(member: Regularizer) -> None:
    z, h, tau = draw(3, size=50)
    x = inside(member, prox(member, z, h, tau))  # the reference's bounds are not rounded
    least = objective(member, x, z, h, tau)
    assert np.isfinite(least).all()
    rng = np.random.default_rng(4)
    slack = (1e-12 if FLOAT.itemsize == 8 else 1e-5) * (h * (1 + z**2)).sum(axis=1)
    for size in (1e-3, 1e-2, 0.1, 1.0, 10.0):
        for one_coordinate in (False, True):
            step = size * rng.normal(size=z.shape)
            if one_coordinate:
                step *= np.eye(D)[rng.integers(D, size=len(z))]
            moved = inside(member, x + step)
            assert (objective(member, moved, z, h, tau) >= least - slack).all()


@every_regularizer
def test_the_residual_is_a_subgradient_of_phi(member: Regularizer) -> None:
    """H (z - x) in tau d phi(x): tau phi(v) >= tau phi(x) + <H (z - x), v - x> for every v."""
    z, h, tau = draw(5, size=50)
    x = inside(member, prox(member, z, h, tau))
    residual = h * (z - x)
    rng = np.random.default_rng(6)
    slack = 1e-12 if FLOAT.itemsize == 8 else 3e-6
    for size in (0.01, 1.0, 100.0):
        v = inside(member, x + size * rng.normal(size=z.shape))
        linear = residual * (v - x)
        gap = tau * (values(member, v) - values(member, x)) - linear.sum(axis=1)
        assert (gap >= -slack * (h * (1 + np.abs(z)) * (size + np.abs(x))).sum(axis=1)).all()


@every_regularizer
def test_moreau_identity(member: Regularizer) -> None:
    """In short: z = prox of phi at z in metric H + H^-1 prox of phi* at H z in metric H^-1."""
    z, h, tau = draw(7)
    name, strengths = known_as(member)
    dual = dual_prox(name, h * z, h, tau[:, None], **strengths)
    x = prox(member, z, h, tau)
    assert_close((x + dual / h).astype(FLOAT), z, "reference")


@every_regularizer
def test_prox_is_firmly_nonexpansive_in_the_metric(member: Regularizer) -> None:
    z, h, tau = draw(8)
    other = z + np.random.default_rng(9).normal(size=z.shape)
    p, q = prox(member, z, h, tau), prox(member, other, h, tau)
    product = (h * (p - q) * (z - other)).sum(axis=1)
    square = (h * (p - q) ** 2).sum(axis=1)
    slack = 1e-12 if FLOAT.itemsize == 8 else 1e-5
    assert (product >= square - slack * (h * (1 + z**2)).sum(axis=1)).all()


@jax.jit
def weighted(cotangent: Any, member: Regularizer, z: Any, h: Any, tau: Any) -> Any:
    return jnp.sum(cotangent * prox_rows(member, z, h, tau))


slopes = jax.jit(jax.grad(weighted, argnums=(1, 2, 3, 4)))


@every_regularizer
def test_the_derivatives_equal_finite_differences(member: Regularizer) -> None:
    z, h, tau = (a[10:16] for a in draw(10))
    rng = np.random.default_rng(11)
    with jax.enable_x64(True):
        point = (member.cast(jnp.float64), *map(jnp.asarray, (z, h, tau)))
        cotangent = jnp.asarray(rng.normal(size=z.shape))
        gradient = slopes(cotangent, *point)
        for _ in range(3):
            # along a random direction; a number moves in proportion to itself, infinities stay
            direction = jax.tree.map(lambda a: _direction(a, rng), point)
            shift = 1e-6
            ends = (
                jax.tree.map(lambda a, v, e=end: jnp.where(v == 0, a, a + e * v), point, direction)
                for end in (shift, -shift)
            )
            up, down = (float(weighted(cotangent, *end)) for end in ends)
            slope = sum(
                float(jnp.sum(g * v))
                for g, v in zip(jax.tree.leaves(gradient), jax.tree.leaves(direction), strict=True)
            )
            np.testing.assert_allclose(slope, (up - down) / (2 * shift), rtol=1e-5, atol=1e-5)


def _direction(a: Any, rng: np.random.Generator) -> np.ndarray:
    a = np.asarray(a)
    return np.where(np.isfinite(a), np.abs(a), 0) * rng.uniform(-1, 1, a.shape)
