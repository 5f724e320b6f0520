"""Regularizers that tie coordinates together: accuracy at any metric, shapes, exactness, edges."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import members
import numpy as np
import pytest
from references import regularizers_coupled as reference
from regularizer_points import FLOAT, known_as, prox_rows, solve_rows
from tolerances import tolerance

import jaxsolvers as js
from jaxsolvers.protocol import Regularizer

R = js.regularizers
NORMS = [R.L2Norm(0.7), R.LInfNorm(0.7), R.GroupL2(0.7), R.GroupLInf(0.7)]
BALLS = [R.L1Ball(1.5), R.L2Ball(0.8), R.Simplex(1.2)]
every_coupled = members.each(NORMS + BALLS, "member")
LIMIT = tolerance("reference", FLOAT)


@jax.jit
def solve_one(member: Regularizer, linear: Any, metric: Any, tau: Any) -> Any:
    return member.solve(linear, metric, tau)


def rounded(*arrays: Any) -> Any:
    return tuple(np.asarray(a, FLOAT).astype(float) for a in arrays)


def solved(member: Regularizer, b: Any, h: Any, tau: Any = 1.0) -> np.ndarray:
    """One problem in the tests' dtype."""
    operands = (jnp.asarray(a, FLOAT) for a in (b, h, tau))
    return np.asarray(solve_one(member.cast(FLOAT), *operands), float)


def _bent(member: Regularizer, linear: Any, metric: Any, tau: Any) -> Any:
    x = member.solve(linear, metric, tau)
    return jnp.sum(jnp.sin(x)), x


with_slopes = jax.jit(jax.grad(_bent, argnums=(0, 1, 2, 3), has_aux=True))


# ---- accuracy ------------------------------------------------------------------------------------
@every_coupled
def test_a_thousand_metrics_of_condition_up_to_1e8(member: Regularizer) -> None:
    rng, size, d = np.random.default_rng(20), 1000, 8
    exponent = rng.uniform(0, 4, (size, 1))
    h = 10.0 ** (exponent * rng.uniform(-1, 1, (size, d)))
    z = rng.normal(size=(size, d)) * rng.choice([0.3, 1.0, 10.0], (size, 1))
    z[::5] = np.round(z[::5])  # zeros and ties
    h[::5] = np.round(h[::5]) + 1
    tau = 10.0 ** rng.uniform(-3, 3, size)
    h, tau, b = rounded(h, tau, np.asarray(h, FLOAT) * np.asarray(z, FLOAT))
    name, numbers = known_as(member)
    expected = np.array(
        [reference.prox(name, *row, **numbers) for row in zip(b / h, h, tau, strict=True)]
    )
    x = solve_rows(member.cast(FLOAT), *(jnp.asarray(a, FLOAT) for a in (b, h, tau)))
    zero = (expected == 0).all(axis=1)
    assert zero.mean() < 0.9 and (name.startswith(("l1", "l2_ball", "simplex")) or zero.any())
    # float32: no better than the data, whose rounding moves x by 6e-8 of the largest z
    scale = np.abs(b / h).max(axis=1, keepdims=True)
    assert (np.abs(x - expected) <= LIMIT * (np.abs(expected) + 0.1 * scale)).all()


@pytest.mark.parametrize("b", [0.9, 1.0, 1.001, 2.0])
def test_the_l2_operators_find_roots_far_from_either_end(b: float) -> None:
    """Metrics 60 orders apart and a norm that may just reach the strength."""
    linear, h = rounded([1.0, b, 1e-3], [1e30, 1e-30, 1.0])
    for member in (R.L2Norm(1.0), R.L2Ball(1e-3)):
        name, numbers = known_as(member)
        x = solved(member, linear, h)
        if b == 1 and name == "l2_norm":  # x hangs on the last bit of b: the conditions must hold
            residual = h * x + x / np.linalg.norm(x) - linear
            np.testing.assert_allclose(residual, 0, atol=10 * np.finfo(FLOAT).eps)
            continue
        expected = reference.prox(name, linear.astype(np.longdouble) / h, h, 1.0, **numbers)
        np.testing.assert_allclose(x, expected, rtol=10 * LIMIT)


@members.each([R.L1Ball(2.0**-16), R.Simplex(2.0**-16)], "member")
def test_a_radius_far_below_the_point_costs_no_digits(member: Regularizer) -> None:
    x = solved(member, [100.0, 100.0 - 2**-17, 3.0, 0.0], np.ones(4))
    np.testing.assert_array_equal(x, [0.75 * 2**-16, 0.25 * 2**-16, 0, 0])


@members.each([R.L1Ball(3.0), R.L2Ball(3.0), R.Simplex(3.0)], "member")
def test_projected_points_lie_in_the_domain(member: Regularizer) -> None:
    rng = np.random.default_rng(21)
    b, h = (jnp.asarray(a, FLOAT) for a in (rng.normal(size=(30, 700)), rng.random((30, 700))))
    own = member.cast(FLOAT)
    x = solve_rows(own, b, h, jnp.ones(30, FLOAT))
    np.testing.assert_array_equal(jax.vmap(lambda w: own.value(w))(x), 0)
    outside = jax.vmap(lambda w: own.value(w))(x * (1 + 1000 * np.finfo(FLOAT).eps))
    np.testing.assert_array_equal(outside, np.inf)


# ---- exactness -----------------------------------------------------------------------------------
def test_zeros_and_ties_are_exact() -> None:
    rng = np.random.default_rng(22)
    b, h = rng.normal(size=(200, 6)), rng.uniform(0.5, 2.0, (200, 6))
    b, h, tau = rounded(b, h, rng.uniform(0.1, 3.0, 200))
    for member in NORMS + BALLS:
        name, numbers = known_as(member)
        rows = zip(b / h, h, tau, strict=True)
        expected = np.array([reference.prox(name, *row, **numbers) for row in rows])
        x = np.asarray(
            solve_rows(member.cast(FLOAT), *(jnp.asarray(a, FLOAT) for a in (b, h, tau)))
        )
        np.testing.assert_array_equal(x == 0, np.abs(expected) < 1e-12, err_msg=name)
        if "inf" in name:
            tied = np.abs(expected) >= np.abs(expected).max(axis=1, keepdims=True) * (1 - 1e-7)
            assert (tied.sum(axis=1) > 1).mean() > 0.5
            largest = np.broadcast_to(np.abs(x).max(axis=1, keepdims=True), x.shape)
            np.testing.assert_array_equal(np.abs(x)[tied], largest[tied])


@members.each([R.L1Ball(1.0), R.L2Ball(1.0), R.LInfBall(1.0)], "ball")
def test_a_point_inside_keeps_its_bits_in_every_metric(ball: Regularizer) -> None:
    rng = np.random.default_rng(23)
    z = jnp.asarray(rng.uniform(-1, 1, (50, 7)) / 7, FLOAT)
    h = jnp.asarray(10.0 ** rng.uniform(-20, 20, (50, 7)), FLOAT)
    own = ball.cast(FLOAT)
    x = prox_rows(own, z, h, jnp.ones(50, FLOAT))
    np.testing.assert_array_equal(x, z)


@every_coupled
def test_strength_zero_and_radius_zero(member: Regularizer) -> None:
    zero = member.map_numbers(lambda leaf: 0.0).cast(FLOAT)
    for b in ([0.0, 0.0, 0.0], [2.0, -2.0, 0.0], [1.0, 1.0, 1.0]):
        linear, h = jnp.asarray(b, FLOAT), jnp.asarray([2.0, 0.5, 4.0], FLOAT)
        expected = linear / h if member in NORMS else 0 * linear
        slopes, x = with_slopes(zero, linear, h, jnp.ones((), FLOAT))
        np.testing.assert_array_equal(x, expected)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slopes))


# ---- who takes part ------------------------------------------------------------------------------
@every_coupled
def test_coordinates_without_history_are_out_of_the_problem(member: Regularizer) -> None:
    """The others are solved as if they were alone, and so are the derivatives."""
    rng = np.random.default_rng(24)
    b, h = (jnp.asarray(a, FLOAT) for a in (3 * rng.normal(size=5), rng.uniform(0.5, 2, 5)))
    at = np.array([1, 2, 4, 5, 8])
    own, one = member.cast(FLOAT), jnp.ones((), FLOAT)

    alone, x = with_slopes(own, b, h, one)
    dead = jnp.zeros(9, FLOAT)
    among, wide = with_slopes(own, dead.at[at].set(b), dead.at[at].set(h), one)
    np.testing.assert_allclose(wide[at], x, rtol=10 * np.finfo(FLOAT).eps)
    np.testing.assert_array_equal(np.delete(wide, at), 0)
    limit = {"rtol": 1e3 * np.finfo(FLOAT).eps, "atol": 1e3 * np.finfo(FLOAT).eps}
    for k in (1, 2):
        np.testing.assert_allclose(among[k][at], alone[k], **limit)
        assert np.isfinite(among[k]).all()
    np.testing.assert_allclose(jax.tree.leaves(among[0]), jax.tree.leaves(alone[0]), **limit)
    np.testing.assert_allclose(among[3], alone[3], **limit)
    # no history at all
    nothing, x = with_slopes(own, dead, dead, one)
    np.testing.assert_array_equal(x, 0)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(nothing))


@every_coupled
def test_what_is_not_finite_is_never_hidden(member: Regularizer) -> None:
    for bad in ([np.nan, 1.0], [1.0, np.nan]):
        assert np.isnan(solved(member, bad, [1.0, 1.0])).any()
        assert np.isnan(solved(member, bad, [np.inf, 1.0])).any()
    assert np.isnan(solved(member, [1.0, 1.0], [np.nan, 1.0])).any()
    huge = float(np.finfo(FLOAT).max) ** 0.9
    assert np.isfinite(solved(member, [huge, -huge, 1.0], [huge, huge, huge])).all()


# ---- shapes and dtypes ---------------------------------------------------------------------------
@every_coupled
@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 3, 2)])
def test_weights_of_any_shape(member: Regularizer, shape: tuple[int, ...]) -> None:
    """Norms, balls and the simplex take all entries together, groups slices along their axis."""
    rng = np.random.default_rng(25)
    z, h = rounded(2 * rng.normal(size=shape), 10.0 ** rng.uniform(-2, 2, shape))
    own, (b,) = member.cast(FLOAT), rounded(h * z)
    if shape == () and hasattr(member, "axis"):
        with pytest.raises(ValueError, match=r"axis must be .*shape \(\), got -1"):
            solved(member, b, h)
        with pytest.raises(ValueError, match="axis"):
            own.value(jnp.asarray(b, FLOAT))
        return
    name, numbers = known_as(member)
    x = solved(member, b, h)
    assert x.shape == shape
    np.testing.assert_allclose(x, reference.prox(name, b / h, h, 1.0, **numbers), rtol=100 * LIMIT)
    numbers["slack"] = np.asarray(8 * np.finfo(FLOAT).eps)
    if name != "simplex" or b.size:  # the simplex of no coordinate is empty
        expected = reference.value(name, x, **numbers)
        np.testing.assert_allclose(own.value(jnp.asarray(x, FLOAT)), expected, rtol=LIMIT)


@pytest.mark.parametrize("group", [R.GroupL2, R.GroupLInf])
@pytest.mark.parametrize("axis", [-2, -1, 0, 1])
def test_groups_are_norms_of_slices_with_their_own_metric(group: Any, axis: int) -> None:
    rng = np.random.default_rng(26)
    b, h = rounded(rng.normal(size=(3, 4, 5)), 10.0 ** rng.uniform(-3, 3, (3, 4, 5)))
    b[0], b[:, 0] = 0.1 * b[0], 0.1 * b[:, 0]
    h[1, 1, 1] = b[1, 1, 1] = 0  # without history, in the middle of three groups
    member = group(0.9, axis=axis)
    x = np.moveaxis(solved(member, b, h, 1.3), axis, -1)
    norm = (R.L2Norm if group is R.GroupL2 else R.LInfNorm)(0.9)
    rows, metrics = (np.moveaxis(a, axis, -1) for a in (b, h))
    flat = (jnp.asarray(a.reshape(-1, a.shape[-1]), FLOAT) for a in (rows, metrics))
    expected = solve_rows(norm.cast(FLOAT), *flat, jnp.full(60 // rows.shape[-1], 1.3, FLOAT))
    np.testing.assert_allclose(x.reshape(expected.shape), expected, rtol=1e-6)
    assert ((x == 0).all(axis=-1)).any() and (x != 0).any()
    value = member.cast(FLOAT).value(jnp.asarray(b, FLOAT))
    size = np.linalg.norm(rows, 2 if group is R.GroupL2 else np.inf, axis=-1)
    np.testing.assert_allclose(value, 0.9 * size.sum(), rtol=1e-6)
    assert member.couples == (axis != -1)


def test_an_axis_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="axis must be an integer >= -3, got -5"):
        R.GroupL2(1.0, axis=-5).validate()
    with pytest.raises(ValueError, match=r"axis must be an axis of the weights.*\(4,\), got -2"):
        R.GroupLInf(1.0, axis=-2).solve(jnp.ones(4), jnp.ones(4), 1.0)


@every_coupled
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_low_precision_is_computed_in_float32(member: Regularizer, dtype: Any) -> None:
    z = jnp.asarray([2.0, -1.5, 0.25, 0.0], dtype)
    h = jnp.asarray([1.0, 3.0, 0.5, 0.0], jnp.float32)
    own = member.cast(jnp.float32)
    exact = solve_one(own, z.astype(jnp.float32), h, jnp.float32(0.5))
    for metric in (h, h.astype(dtype)):
        x = solve_one(member.cast(dtype), z, metric, jnp.asarray(0.5, dtype))
        assert x.dtype == z.dtype
        np.testing.assert_allclose(
            x.astype(float), exact, atol=4 * float(jnp.finfo(dtype).eps), rtol=0
        )
    assert own.value(z).dtype == z.dtype
    if member in BALLS:
        assert own.value(x) == 0


@every_coupled
def test_plain_numbers_lists_and_integers_are_taken(member: Regularizer) -> None:
    """Alone, outside of any solver, under any promotion rule."""
    expected = solved(member, [2.0, -1.0, 1.0], [2.0, 2.0, 2.0], 0.5)
    np.testing.assert_allclose(member.prox([1.0, -0.5, 0.5], 2.0, 0.5), expected, rtol=1e-6)
    x = solve_one(member, np.array([2, -1, 1]), np.array([2, 2, 2]), 0.5)
    assert x.dtype == FLOAT
    np.testing.assert_allclose(x, expected, rtol=1e-6)
    assert member.value(np.array([True, False])).dtype == FLOAT


@every_coupled
def test_one_coordinate_all_equal_ones_and_huge_radii(member: Regularizer) -> None:
    name, numbers = known_as(member)
    for b in ([3.0], [-3.0], [1.0] * 5, [-2.0] * 4, [1e-30, 0.0], [1e5, 1e5, -1e5]):
        h = np.ones(len(b))
        (z,) = rounded(b)
        x = solved(member, b, h)
        np.testing.assert_allclose(
            x, reference.prox(name, z, h, 1.0, **numbers), rtol=10 * LIMIT, atol=1e-12
        )
        if len(set(b)) == 1:
            assert len(set(x.tolist())) == 1
    if member in BALLS[:2]:
        far = type(member)(1e30)
        np.testing.assert_array_equal(solved(far, [3.0, -4.0], [2.0, 0.5]), [1.5, -8.0])
        x = solved(member, [1e30, 1e30, -1e30], np.ones(3))
        shared = 0.5 if member is BALLS[0] else 0.8 / np.sqrt(3)
        np.testing.assert_allclose(x, [shared, shared, -shared], rtol=1e-6)


@every_coupled
def test_the_number_of_trips_does_not_depend_on_the_data(member: Regularizer) -> None:
    """The searches are loops of fixed length; nothing waits for the slowest of many rankers."""
    traced = jax.make_jaxpr(with_slopes)(
        member.cast(FLOAT), *(jnp.ones(3, FLOAT),) * 2, jnp.ones(())
    )
    assert "scan[" in str(traced) and "while[" not in str(traced)


# ---- facts ---------------------------------------------------------------------------------------
def test_what_the_members_say_of_themselves() -> None:
    for member in NORMS + BALLS:
        assert not member.separable and not member.lazy and not member.couples
    ball = R.LInfBall(2.0)
    assert ball.separable and ball.lazy and ball.debt == "none" and not ball.couples
    assert R.GroupL2(1.0, axis=-2).couples and R.GroupLInf(1.0, axis=0).couples
    for member in [*NORMS, *BALLS, ball]:
        member.validate()
        member.check_start()
        below = member.map_numbers(lambda leaf: -1.0)
        (leaf,) = member.numbers()
        with pytest.raises(ValueError, match=f"{leaf.name} must be a finite number >= 0, got -1"):
            below.validate()


@pytest.mark.parametrize("shape", [(4,), (2, 3)])
def test_the_simplex_starts_from_equal_weights_inside_it(shape: tuple[int, ...]) -> None:
    simplex = R.Simplex(2.0)
    start = simplex.start(shape, FLOAT)
    assert start.shape == shape and start.dtype == FLOAT and simplex.needs_metric
    np.testing.assert_allclose(start, 2.0 / np.prod(shape), rtol=1e-6)
    assert simplex.value(start) == 0 and simplex.value(0 * start) == np.inf
