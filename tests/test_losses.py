"""Losses against the NumPy references, and the laws of convex losses."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import members
import numpy as np
import pytest
from references import losses as reference
from tolerances import assert_close

from jaxsolvers.protocol import Loss

FLOAT = np.dtype(jnp.result_type(float))
every_loss = members.each(members.losses(), "loss")


def variants(loss: Loss) -> list[Loss]:
    return [loss, members.other_numbers(loss)] if list(loss.numbers()) else [loss]


def kinks(loss: Loss, y: float) -> list[float]:
    """Scores, for a target y, where some loss of this library bends."""
    widths = [float(FLOAT.type(leaf.value)) for leaf in loss.numbers()]
    if loss.classification:
        widths = [y * w for w in widths]
    return [0.0, y, *(y - w for w in widths), *(y + w for w in widths)]


def grid(loss: Loss, kinked: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Scores and targets, every pair of them, the kinks hit exactly or left out."""
    targets = np.array([-1.0, 1.0] if loss.classification else [-1.0, 1.0, 0.3, -2.7], FLOAT)
    scores, repeated = [], []
    for y in targets.astype(float).tolist():
        z, bends = np.linspace(-5.0, 5.0, 83), np.array(kinks(loss, y))
        far = np.abs(z[:, None] - bends).min(axis=1) > 0.01
        scores.append(np.concatenate([z, bends]) if kinked else z[far])
        repeated.append(np.full(len(scores[-1]), y))
    return np.concatenate(scores).astype(FLOAT).astype(float), np.concatenate(repeated)


def value_and_slope(loss: Loss, z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    value, slope = loss.cast(FLOAT).value_and_slope(jnp.asarray(z, FLOAT), jnp.asarray(y, FLOAT))
    assert value.shape == slope.shape == z.shape
    assert value.dtype == slope.dtype == FLOAT
    return np.asarray(value, float), np.asarray(slope, float)


@every_loss
def test_values_and_slopes_equal_the_reference_on_a_grid_with_its_kinks(loss: Loss) -> None:
    for variant in variants(loss):
        # the reference sees the numbers as the library holds them
        name, parameter = members.reference_loss(variant)
        parameter = None if parameter is None else float(FLOAT.type(parameter))
        z, y = grid(variant)
        value, slope = value_and_slope(variant, z, y)
        pairs = list(zip(z.tolist(), y.tolist(), strict=True))
        expected = np.array([reference.value(name, *pair, parameter) for pair in pairs])
        assert_close(value.astype(FLOAT), expected, "reference", name="value")
        expected = np.array([reference.slope(name, *pair, parameter) for pair in pairs])
        assert_close(slope.astype(FLOAT), expected, "reference", name="slope")


@every_loss
def test_a_row_exactly_on_the_margin_violates_only_for_the_perceptron(loss: Loss) -> None:
    if not loss.classification:
        y = np.array([-2.0, 0.0, 0.5])
        np.testing.assert_array_equal(value_and_slope(loss, y, y), np.zeros((2, 3)))
        return
    y = np.array([-1.0, 1.0])
    _, on_margin = value_and_slope(loss, y, y)
    _, at_zero = value_and_slope(loss, 0 * y, y)
    name, _ = members.reference_loss(loss)
    if "hinge" in name:
        np.testing.assert_array_equal(on_margin, 0 * y)
    if name == "perceptron":
        np.testing.assert_array_equal(on_margin, 0 * y)
        np.testing.assert_array_equal(at_zero, -y)
    assert (at_zero * y < 0).all()  # w = 0 must be able to move


@every_loss
def test_the_slope_is_the_derivative_away_from_kinks(loss: Loss) -> None:
    with jax.enable_x64(True):
        for variant in variants(loss):
            cast = variant.cast(jnp.float64)
            z, y = grid(variant, kinked=False)
            shift = 1e-5

            def value(z: Any, y: Any = y, cast: Any = cast) -> np.ndarray:
                return np.asarray(cast.value_and_slope(jnp.asarray(z), jnp.asarray(y))[0])

            central = (value(z + shift) - value(z - shift)) / (2 * shift)
            _, slope = cast.value_and_slope(jnp.asarray(z), jnp.asarray(y))
            assert_close(slope, central, "slope")

            automatic = jax.vmap(jax.grad(lambda z, y, c=cast: c.pointwise(z, y)[0]))
            assert_close(slope, automatic(jnp.asarray(z), jnp.asarray(y)), "slope")


@every_loss
def test_the_slope_is_a_subgradient_everywhere(loss: Loss) -> None:
    """Convexity with it: a function above all of its tangents is convex."""
    for variant in variants(loss):
        z, y = grid(variant)
        value, slope = value_and_slope(variant, z, y)
        for target in np.unique(y):
            own = y == target
            v, s, at = value[own], slope[own], z[own]
            tangents = v[:, None] + s[:, None] * (at[None, :] - at[:, None])
            slack = 1e-12 if FLOAT.itemsize == 8 else 3e-6
            assert (v[None, :] >= tangents - slack * (1 + np.abs(v).max())).all()


@every_loss
def test_the_loss_is_not_negative_and_zero_where_the_prediction_is_perfect(loss: Loss) -> None:
    z, y = grid(loss)
    value, _ = value_and_slope(loss, z, y)
    assert (value >= 0).all()
    best, _ = value_and_slope(loss, 50.0 * y if loss.classification else y, y)
    np.testing.assert_allclose(best, 0, atol=1e-20)


@every_loss
def test_huge_scores_do_not_overflow(loss: Loss) -> None:
    z, y = np.array([1e4, -1e4, 1e4, -1e4]), np.array([1.0, 1.0, -1.0, -1.0])
    with jax.debug_nans(True), jax.debug_infs(True):
        value, slope = value_and_slope(loss, z, y)
    assert np.isfinite(value).all() and np.isfinite(slope).all()
    name, parameter = members.reference_loss(loss)
    pairs = zip(z.tolist(), y.tolist(), strict=True)
    expected = np.array([reference.value(name, *pair, parameter) for pair in pairs])
    assert_close(value.astype(FLOAT), expected, "reference")


@every_loss
@pytest.mark.parametrize("jitted", [False, True])
def test_shapes_that_differ_are_refused_by_naming_both(loss: Loss, jitted: bool) -> None:
    def call(z: Any, y: Any) -> Any:
        return loss.value_and_slope(z, y)

    call = jax.jit(call) if jitted else call
    for shapes in (((3,), (3, 1)), ((2, 3), (3,)), ((), (1,)), ((3,), (1,))):
        with pytest.raises(ValueError, match="score and y must have the same shape") as error:
            call(*map(jnp.ones, shapes))
        assert all(str(shape) in str(error.value) for shape in shapes)


@every_loss
@pytest.mark.parametrize("bad", [[0.0, 1.0], [1.0, 2.0], [np.nan, 1.0], [-1.0, 0.5]])
def test_only_minus_one_and_one_are_targets_of_classification(loss: Loss, bad: list) -> None:
    z = jnp.zeros(2)
    for y in (np.array(bad, FLOAT), jnp.array(bad)):
        if loss.classification:
            with pytest.raises(ValueError, match=r"y must be -1 or \+1"):
                loss.value_and_slope(z, y)
        else:
            loss.value_and_slope(z, y)
    loss.value_and_slope(z, np.array([-1.0, 1.0], FLOAT))


@every_loss
def test_mistakes_are_wrong_signs_and_never_counted_in_regression(loss: Loss) -> None:
    z, y = jnp.array([0.5, -0.5, 0.0, 0.5]), jnp.array([1.0, 1.0, 1.0, -1.0])
    expected = [0, 1, 1, 1] if loss.classification else [0, 0, 0, 0]
    np.testing.assert_array_equal(loss.mistakes(z, y), expected)


@pytest.mark.parametrize("cls", [cls for cls in members.discover(Loss) if not cls.joint])
def test_every_loss_has_a_numpy_reference(cls: type) -> None:
    known = {type(loss): loss for loss in members.losses()}
    members.reference_loss(known[cls])
