"""Dual steps and dual terms against the NumPy reference, and that a step maximises the dual."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import members
import numpy as np
import pytest
from references import sdca as reference
from tolerances import assert_close

from jaxsolvers.losses.dual import DualLoss, logistic_root
from jaxsolvers.protocol import Loss

FLOAT = np.dtype(jnp.result_type(float))
DUAL = [loss for loss in members.losses() if isinstance(loss, DualLoss)]
REACH = np.array([-1.0, -0.9, -0.4, 0.0, 0.3, 1.0])  # of a dual number, in its domain
CURVATURES = (0.0, 1e-30, 1e-3, 0.5, 3.0, 500.0, 1e6)


def points(loss: Any) -> tuple[np.ndarray, ...]:
    """(z, y, a, q), a in the domain; of a row without features the score is 0."""
    scores = np.array([-30.0, -1.3, -0.2, 0.0, 0.45, 1.0, 1.7, 40.0])
    targets = np.array([-1.0, 1.0] if loss.classification else [-1.0, -0.05, 0.35, 2.5])
    z, y, reach, q = np.meshgrid(scores, targets, REACH, CURVATURES, indexing="ij")
    a = y * (reach + 1) / 2 if loss.classification else width(loss) * reach
    z = np.where(q == 0, 0.0, z)
    return tuple(np.asarray(v.ravel(), FLOAT) for v in (z, y, a, q))


def width(loss: Any) -> float:
    """Half the width of the duals' domain, of a regression loss."""
    return float(getattr(loss, "delta", 1.0))


@members.each(DUAL, "loss")
def test_dual_steps_and_terms_equal_the_reference_and_maximise_the_dual(loss: Any) -> None:
    for own in (loss, members.other_numbers(loss)):
        held = own.cast(FLOAT)
        name, parameter = members.reference_loss(own)
        parameter = None if parameter is None else float(FLOAT.type(parameter))
        z, y, a, q = points(own)
        step = np.asarray(jax.jit(lambda *v, h=held: h.dual_step(*v))(z, y, a, q))
        rows = list(zip(*(v.astype(float).tolist() for v in (z, y, a, q)), strict=True))
        expected = [reference.dual_step(name, *row, parameter) for row in rows]
        assert step.dtype == FLOAT
        assert_close(step, np.array(expected), "reference", scale=1.0, name=name)
        term = np.asarray(held.dual_term(jnp.asarray(y), jnp.asarray(a)))
        expected = [reference.dual_term(name, *row[1:3], parameter) for row in rows]
        assert_close(term, np.array(expected), "reference", name=name)
        # d(b) - b z - q/2 (b - a)^2 at the step, and at other points of the domain
        z, y, a, q, after = (v.astype(float) for v in (z, y, a, q, step))
        slack = 20 * np.finfo(FLOAT).eps
        for reach in REACH:
            b = y * (reach + 1) / 2 if own.classification else width(own) * reach
            here, there = (
                np.array(
                    [reference.dual_term(name, *pair, parameter) for pair in zip(y, v, strict=True)]
                )
                - v * z
                - q / 2 * (v - a) ** 2
                for v in (after, np.broadcast_to(b, y.shape))
            )
            size = 1 + np.abs(here) + np.abs(z) + q
            assert (here >= there - slack * size).all(), (name, reach)


@pytest.mark.parametrize("loss", [loss for loss in members.losses() if loss not in DUAL])
def test_only_the_perceptron_has_no_dual_step(loss: Loss) -> None:
    assert type(loss).__name__ == "Perceptron"


def test_the_logistic_equation_is_solved_to_the_last_digits() -> None:
    """Against bisection, for curvatures up to 1e6 and margins far out."""
    margin, alpha, q = np.meshgrid(
        [-1e3, -20.0, -0.5, 0.0, 2.0, 300.0], [0.0, 0.2, 0.9, 1.0], [0.0, 1e-3, 1.0, 77.0, 1e6]
    )
    given = [np.asarray(v.ravel(), FLOAT) for v in (margin, alpha, q)]
    found = np.asarray(jax.jit(logistic_root)(*given), float)
    rows = zip(*(v.astype(float).tolist() for v in given), strict=True)
    expected = np.array([reference.logistic_margin(*row) for row in rows])
    # The numbers it is made of, M and q alpha, are known to their last digit only.
    size = np.abs(expected) + np.abs(given[0]) + given[1] * given[2] + 1e-6
    assert np.max(np.abs(found - expected) / size) < 8 * np.finfo(FLOAT).eps
