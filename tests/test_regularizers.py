"""Every ``solve`` and ``prox`` against slow references, and the laws of proximal operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import members
import numpy as np
import pytest
from references import regularizers as reference
from tolerances import assert_close, tolerance

import jaxsolvers as js
from jaxsolvers.protocol import Regularizer
from jaxsolvers.regularizers.free_intercept import FreeIntercept

FLOAT = np.dtype(jnp.result_type(float))
D = 6
LOWER = np.array([-0.5, -np.inf, -0.1, 0.0, -2.0, -1.0])
UPPER = np.array([0.2, 0.3, np.inf, 1.0, 0.0, 1.0])


def variants() -> list[Regularizer]:
    """Every member, once more with other numbers; strengths 0, arrays, a nested domain."""
    found = members.regularizers()
    return [
        *found,
        *(members.other_numbers(member) for member in found if list(member.numbers())),
        js.regularizers.L1(0.0),
        js.regularizers.ElasticNet(0.5, 0.7),
        js.regularizers.ElasticNet(0.0, 0.5),
        js.regularizers.Box(LOWER, UPPER),
        js.regularizers.Box(0.3, 0.7),
        FreeIntercept(js.regularizers.Box(-np.inf, 0.5)),
    ]


VARIANTS = variants()
every_regularizer = pytest.mark.parametrize(
    "member", VARIANTS, ids=[f"{i}-{members.label(m)}" for i, m in enumerate(VARIANTS)]
)


def known_as(member: Regularizer) -> tuple[str, dict[str, np.ndarray]]:
    """Name and strengths for the references, the strengths as the library holds them."""
    name, strengths = members.reference_regularizer(member, D)
    return name, {k: np.asarray(v, FLOAT).astype(float) for k, v in strengths.items()}


def draw(seed: int, size: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points z (size, D), metrics h > 0 (size, D) and taus (size,), rounded to the dtype."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(size, D)) * rng.choice([0.1, 1.0, 10.0], (size, 1))
    z[::7, 2] = 0
    h = 10.0 ** rng.uniform(-2, 2, (size, D))
    tau = 10.0 ** rng.uniform(-2, 1, size)
    return tuple(np.asarray(a, FLOAT).astype(float) for a in (z, h, tau))


def prox(member: Regularizer, z: np.ndarray, h: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """``member.prox`` row by row; the result must keep shape and dtype."""
    operands = (jnp.asarray(a, FLOAT) for a in (z, h, tau))
    x = jax.jit(jax.vmap(member.cast(FLOAT).prox))(*operands)
    assert x.shape == z.shape and x.dtype == FLOAT
    return np.asarray(x, float)


def values(member: Regularizer, x: np.ndarray) -> np.ndarray:
    """The phi of each row, by the reference, so that ``value`` itself is not trusted."""
    name, strengths = known_as(member)
    return np.array([reference.value(name, row, **strengths) for row in x])


def objective(
    member: Regularizer, x: np.ndarray, z: np.ndarray, h: np.ndarray, tau: np.ndarray
) -> np.ndarray:
    return (h * (x - z) ** 2).sum(axis=1) / 2 + tau * values(member, x)


def inside(member: Regularizer, x: np.ndarray) -> np.ndarray:
    """The rows moved into the domain."""
    name, strengths = known_as(member)
    if name == "nonnegative":
        return np.maximum(x, 0)
    return np.clip(x, strengths["lower"], strengths["upper"]) if name == "box" else x


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
    operands = (jnp.asarray(a, FLOAT) for a in (h * z, h, tau))
    solved = jax.jit(jax.vmap(member.cast(FLOAT).solve))(*operands)
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


def dual_prox(name: str, u: np.ndarray, h: np.ndarray, tau: Any, **of: Any) -> np.ndarray:
    """argmin_v 1/2 (v - u)^2/h + (tau phi)*(v), by coordinate, from the conjugates by hand."""
    match name:
        case "none":  # (0)* is finite at 0 only
            return 0 * u
        case "l1":  # the conjugate of a norm is the indicator of a box
            return np.clip(u, -tau * of["strength"], tau * of["strength"])
        case "squared_l2":  # v^2 / (2 tau lam)
            return u * tau * of["strength"] / (tau * of["strength"] + h)
        case "elastic_net":  # [|v| - tau l1]_+^2 / (2 tau l2)
            a, b = tau * of["l1"], tau * of["l2"]
            beyond = np.sign(u) * (a * h + b * np.abs(u)) / (h + b)
            return np.where(np.abs(u) <= a, u, beyond)
        case "box":  # lower v for v < 0, upper v for v > 0
            below, above = u - h * of["lower"], u - h * of["upper"]
            return np.minimum(below, 0) + np.maximum(above, 0)
        case "nonnegative":  # 0 for v <= 0
            return np.minimum(u, 0)
    raise AssertionError(f"write the dual prox of {name!r}")


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


@every_regularizer
def test_the_derivatives_equal_finite_differences(member: Regularizer) -> None:
    z, h, tau = (a[10:16] for a in draw(10))
    rng = np.random.default_rng(11)
    with jax.enable_x64(True):
        point = (member.cast(jnp.float64), *map(jnp.asarray, (z, h, tau)))
        cotangent = jnp.asarray(rng.normal(size=z.shape))

        def value(member: Regularizer, z: Any, h: Any, tau: Any) -> Any:
            return jnp.sum(cotangent * jax.vmap(member.prox)(z, h, tau))

        value = jax.jit(value)
        gradient = jax.jit(jax.grad(value, argnums=(0, 1, 2, 3)))(*point)
        for _ in range(3):
            # along a random direction; a number moves in proportion to itself, infinities stay
            direction = jax.tree.map(lambda a: _direction(a, rng), point)
            shift = 1e-6
            ends = (
                jax.tree.map(lambda a, v, e=end: jnp.where(v == 0, a, a + e * v), point, direction)
                for end in (shift, -shift)
            )
            up, down = (float(value(*end)) for end in ends)
            slope = sum(
                float(jnp.sum(g * v))
                for g, v in zip(jax.tree.leaves(gradient), jax.tree.leaves(direction), strict=True)
            )
            np.testing.assert_allclose(slope, (up - down) / (2 * shift), rtol=1e-5, atol=1e-5)


def _direction(a: Any, rng: np.random.Generator) -> np.ndarray:
    a = np.asarray(a)
    return np.where(np.isfinite(a), np.abs(a), 0) * rng.uniform(-1, 1, a.shape)


# ---- edges ---------------------------------------------------------------------------------------
@every_regularizer
def test_a_coordinate_without_history_gets_zero_and_finite_derivatives(member: Regularizer) -> None:
    linear = jnp.array([0.0, 1.5, 0.0, -0.4, 0.0, 0.0], jnp.float32)
    metric = jnp.array([0.0, 2.0, 0.0, 0.5, 0.0, 0.0], jnp.float32)
    dead = np.array([0, 2, 4, 5])
    cast = member.cast(jnp.float32)
    tau = jnp.float32(0.3)
    x = cast.solve(linear, metric, tau)
    np.testing.assert_array_equal(np.asarray(x)[dead], 0)
    assert np.asarray(x)[1] != 0

    def summed(*args: Any) -> Any:
        member, linear, metric, tau = args
        return jnp.sum(member.solve(linear, metric, tau))

    reverse, forward = jax.grad(summed, argnums=(0, 1, 2, 3)), jax.jacfwd(summed, argnums=(1, 2))
    both = jax.jit(lambda *args: (reverse(*args), forward(*args)))
    for leaf in jax.tree.leaves(both(cast, linear, metric, tau)):
        assert np.isfinite(leaf).all()


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
    far = inside(FreeIntercept(inner), z)
    far[:, -1] = -1e6
    phi = jax.vmap(FreeIntercept(inner).cast(FLOAT).value)(jnp.asarray(far, FLOAT))
    near = jax.vmap(inner.cast(FLOAT).value)(jnp.asarray(far[:, :-1], FLOAT))
    np.testing.assert_array_equal(phi, near)


@every_regularizer
def test_vmap_over_numbers_and_rankers_equals_the_loop(member: Regularizer) -> None:
    z, h, tau = (jnp.asarray(a[:4], FLOAT) for a in draw(15))
    factors = jnp.asarray([0.5, 1.0, 2.0, 3.0], FLOAT)
    own = member.cast(FLOAT)

    def one(factor: Any, z: Any, h: Any, tau: Any) -> Any:
        return own.map_numbers(lambda leaf: leaf.value * factor).solve(h * z, h, tau)

    mapped = jax.jit(jax.vmap(one))(factors, z, h, tau)
    alone = jax.jit(one)
    looped = jnp.stack([alone(*row) for row in zip(factors, z, h, tau, strict=True)])
    assert_close(mapped, looped, "compiled")
