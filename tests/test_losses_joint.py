"""Losses of the scores of all classes: the NumPy references, ties, costs, refusals."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import members
import numpy as np
import pytest
from references import joint as reference
from tolerances import assert_close

import jaxsolvers as js
from jaxsolvers.protocol import Loss

FLOAT = np.dtype(jnp.result_type(float))
C = 4
COST = np.array([[0, 1, 2, 0.5], [1, 0, 0.25, 3], [0, 1, 0, 1], [2, 0.5, 1, 0]])
LOSSES = [*members.joint_losses(), js.losses.MulticlassHinge(COST)]
every_loss = pytest.mark.parametrize(
    "loss", LOSSES, ids=["hinge", "logistic", "costs"][: len(LOSSES)]
)


def known_as(loss: Any) -> Any:
    """The reference's function of (z, y)."""
    if isinstance(loss, js.losses.MulticlassLogistic):
        return reference.logistic
    assert isinstance(loss, js.losses.MulticlassHinge), "write its reference"
    return partial(reference.hinge, cost=loss.cost)


def rows(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores on a coarse grid, so that many tie and lie on the margin."""
    rng = np.random.default_rng(seed)
    return rng.integers(-4, 5, (n, C)) / 4, rng.integers(C, size=n).astype(np.int32)


def value_and_slope(loss: Loss, z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    value, slope = jax.jit(loss.cast(FLOAT).value_and_slope)(jnp.asarray(z, FLOAT), jnp.asarray(y))
    assert value.shape == y.shape and slope.shape == z.shape
    assert value.dtype == slope.dtype == FLOAT
    return np.asarray(value, float), np.asarray(slope, float)


@every_loss
def test_values_and_slopes_equal_the_reference(loss: Loss) -> None:
    z, y = rows()
    found = [known_as(loss)(row, int(own)) for row, own in zip(z, y, strict=True)]
    value, slope = value_and_slope(loss, z, y)
    assert_close(value.astype(FLOAT), np.array([v for v, _ in found]), "reference")
    assert_close(slope.astype(FLOAT), np.array([s for _, s in found]), "reference")


@every_loss
def test_the_slope_is_a_subgradient_and_sums_to_zero(loss: Loss) -> None:
    z, y = rows(seed=1)
    value, slope = value_and_slope(loss, z, y)
    np.testing.assert_allclose(slope.sum(axis=1), 0, atol=1e-6)
    other = z + np.random.default_rng(2).normal(size=z.shape)
    above, _ = value_and_slope(loss, other, y)
    assert (above >= value + (slope * (other - z)).sum(axis=1) - 1e-6).all()


def test_ties_go_to_the_lowest_class_and_the_margin_contributes_nothing() -> None:
    loss = js.losses.MulticlassHinge()
    z = np.array([[0.0, 0.5, 0.5, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    _, slope = value_and_slope(loss, z, np.array([0, 0, 2], np.int32))
    np.testing.assert_array_equal(slope, [[-1, 1, 0, 0], [0, 0, 0, 0], [1, 0, -1, 0]])


def test_two_classes_are_the_pointwise_losses_of_the_difference() -> None:
    z, y = rows(seed=3)
    z, y = z[:, :2], y % 2
    sign, margin = 2.0 * y - 1, z[:, 1] - z[:, 0]
    for joint, pointwise in (
        (js.losses.MulticlassHinge(), js.losses.Hinge()),
        (js.losses.MulticlassLogistic(), js.losses.Logistic()),
    ):
        value, slope = value_and_slope(joint, z, y)
        v, s = pointwise.value_and_slope(jnp.asarray(margin, FLOAT), jnp.asarray(sign, FLOAT))
        np.testing.assert_allclose(value, v, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(slope[:, 1], s, rtol=1e-6, atol=1e-6)


def test_huge_scores_stay_finite() -> None:
    z = np.array([[1e30, -1e30, 0.0, 1e30], [-1e30, 1e30, 0.0, 0.0]])
    for loss in LOSSES:
        for part in value_and_slope(loss, z, np.array([0, 0], np.int32)):
            assert np.isfinite(part).all()


@every_loss
def test_mistakes_are_rows_whose_class_is_not_strictly_best(loss: Loss) -> None:
    z = jnp.asarray([[1.0, 0, 0, 0], [1.0, 1, 0, 0], [0, 0, 0, 0], [0, 2, 1, 0]], FLOAT)
    y = jnp.asarray([0, 0, 3, 2], jnp.int32)
    np.testing.assert_array_equal(loss.mistakes(z, y), [0, 1, 1, 1])


def test_shapes_and_targets_that_do_not_fit_are_refused() -> None:
    loss = js.losses.MulticlassHinge()
    z = jnp.zeros((2, 3))
    with pytest.raises(ValueError, match=r"score must have .* one more axis .*\(2, 3\) and \(3,\)"):
        loss.value_and_slope(z, jnp.zeros(3, jnp.int32))
    with pytest.raises(ValueError, match="y must be positions of classes"):
        loss.value_and_slope(z, jnp.zeros(2))
    with pytest.raises(ValueError, match=r"y must be in 0 ... 2"):
        loss.value_and_slope(z, jnp.array([0, 3]))


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (np.ones((2, 3)), "loss.cost must be a square table"),
        (np.ones((3, 3)), "loss.cost must be 0 on its diagonal"),
        (-np.eye(3)[::-1], "loss.cost must be a finite number >= 0"),
        (1 - np.eye(4), r"loss.cost must be a table of the 3 classes, \(3, 3\)"),
    ],
)
def test_bad_costs_are_refused(cost: Any, words: str) -> None:
    solver = js.AdaGradFOBOS(0.1, loss=js.losses.MulticlassHinge(cost))
    with pytest.raises(ValueError, match=words):
        js.fit(solver, np.eye(3, dtype=FLOAT), np.arange(3))
