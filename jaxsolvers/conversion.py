"""Strengths of regularization in the units of other packages."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jaxsolvers import losses
from jaxsolvers.checks import check_option, check_reals
from jaxsolvers.protocol import Loss

__all__ = ["convert"]


class _Unit(NamedTuple):
    """How ``lam`` (of a mean of losses) or ``lam n`` (of their sum) follows from a value."""

    of_a_sum: bool  # the losses of the rows are added up, not averaged
    inverse: bool  # it weighs the losses, not the norm
    factor: float  # times the value or its inverse
    squared: frozenset[str]  # losses that its package writes without our half


_NONE: frozenset[str] = frozenset()
_HALVES = frozenset({"squared_hinge", "squared"})
_UNITS = {
    "lam": _Unit(of_a_sum=False, inverse=False, factor=1.0, squared=_NONE),
    "alpha": _Unit(of_a_sum=False, inverse=False, factor=1.0, squared=frozenset({"squared_hinge"})),
    "C": _Unit(of_a_sum=True, inverse=True, factor=1.0, squared=_HALVES),
    "C_light": _Unit(of_a_sum=True, inverse=True, factor=1.0, squared=_HALVES),
    "C_perf": _Unit(of_a_sum=False, inverse=True, factor=0.01, squared=_HALVES),
    "ridge_alpha": _Unit(of_a_sum=True, inverse=False, factor=1.0, squared=_NONE),
}
_LOSSES = {
    "hinge": losses.Hinge,
    "squared_hinge": losses.SquaredHinge,
    "smoothed_hinge": losses.SmoothedHinge,
    "logistic": losses.Logistic,
    "perceptron": losses.Perceptron,
    "squared": losses.Squared,
    "absolute": losses.Absolute,
    "huber": losses.Huber,
    "epsilon_insensitive": losses.EpsilonInsensitive,
}


def convert(
    value: Any, source: str, target: str, n: float | None = None, loss: str | Loss = "hinge"
) -> Any:
    """The strength that gives the same minimiser in another package's units.

    With l the losses as jaxsolvers writes them, and h = 2 where a package writes one without the
    half that ours has (else 1), each unit stands for the objective

    =============  ==================================  ====================================
    unit           objective                           used by
    =============  ==================================  ====================================
    lam            lam/2 ||w||^2 + (1/n) sum l         jaxsolvers, the Pegasos paper
    alpha          alpha/2 ||w||^2 + (1/n) sum h l     scikit-learn's SGDClassifier and
                                                       SGDRegressor; h = 2: squared hinge
    C              1/2 ||w||^2 + C sum h l             LIBLINEAR, libsvm, scikit-learn's
                                                       LinearSVC, SVC, LinearSVR,
                                                       LogisticRegression; h = 2: squared hinge
                                                       and squared (L2-loss SVR, epsilon 0)
    C_light        1/2 ||w||^2 + C_light sum h l       SVM^light
    C_perf         1/2 ||w||^2 + C_perf 100/n sum h l  SVM^perf, whose losses are in percent
    ridge_alpha    ridge_alpha ||w||^2 + sum 2 l       scikit-learn's Ridge; squared loss only
    =============  ==================================  ====================================

    Dividing each by what makes its loss ours gives C = 1/(h lam n), C_light = C,
    C_light = 100 C_perf/n, hence C_perf = 1/(100 h lam) whatever n is, alpha = h lam and
    ridge_alpha = lam n. SVM^light and SVM^perf have the hinge and the epsilon-insensitive loss;
    for other losses C_light and C_perf keep the meaning that the table gives them. An intercept
    that one package regularizes and the other does not is beyond any conversion.

    Args:
      value: the strength, a finite number > 0 or an array of them.
      source: the unit of ``value``: "lam", "alpha", "C", "C_light", "C_perf" or "ridge_alpha".
      target: the unit wanted, one of the same.
      n: number of training rows (with sample weights: their sum), > 0; needed between a unit of a
        mean (lam, alpha, C_perf) and one of a sum (C, C_light, ridge_alpha), else ignored.
      loss: "hinge" (default), "squared_hinge", "smoothed_hinge", "logistic", "perceptron",
        "squared", "absolute", "huber" or "epsilon_insensitive"; or a loss of ``js.losses``.

    Returns:
      A float; for an array a float64 NumPy array of its shape.

    Raises:
      ValueError: a value that is not finite and > 0, an unknown unit or loss, n missing where it
        matters or not > 0, ridge_alpha with another loss, a result beyond the floats.

    Example:
      >>> import jaxsolvers as js
      >>> js.convert(0.5, "C", "lam", n=100)
      0.02
      >>> js.convert(0.5, "C", "lam", n=100, loss="squared_hinge")
      0.01
      >>> js.convert([1.0, 10.0], "C_perf", "C_light", n=1000).tolist()
      [0.1, 1.0]
    """
    strength = _positive(value, "value")
    given = _UNITS[check_option(source, "source", tuple(_UNITS))]
    wanted = _UNITS[check_option(target, "target", tuple(_UNITS))]
    name = _loss_name(loss)
    if "ridge_alpha" in (source, target) and name != "squared":
        raise ValueError(f"loss must be 'squared' for ridge_alpha, got {loss!r}")
    rows = None if n is None else _positive(n, "n")
    if rows is not None and rows.ndim > 0:
        raise ValueError(f"n must be one number, got an array of shape {rows.shape}")
    if given.of_a_sum != wanted.of_a_sum and rows is None:
        raise ValueError(
            f"n must be given (the number of training rows) to convert {source!r} to {target!r}: "
            "one is a strength for the mean of the losses, the other for their sum"
        )
    if given != wanted:
        with np.errstate(all="ignore"):  # what leaves the floats is an error below
            strength = _to_ours(strength, given, name)
            if rows is not None and given.of_a_sum != wanted.of_a_sum:
                strength = strength / rows if given.of_a_sum else strength * rows
            strength = _from_ours(strength, wanted, name)
    if not (np.isfinite(strength) & (strength > 0)).all():
        raise ValueError(
            f"value must be such that the result is a finite number > 0, got {value!r}"
        )
    return strength if strength.ndim else float(strength)


def _to_ours(value: np.ndarray, unit: _Unit, loss: str) -> np.ndarray:
    half = 2.0 if loss in unit.squared else 1.0
    return unit.factor / (value * half) if unit.inverse else unit.factor * value / half


def _from_ours(value: np.ndarray, unit: _Unit, loss: str) -> np.ndarray:
    half = 2.0 if loss in unit.squared else 1.0
    return unit.factor / (value * half) if unit.inverse else value * half / unit.factor


def _positive(value: Any, name: str) -> np.ndarray:
    numbers = check_reals(value, name, "be a finite number > 0")
    bad = ~(np.isfinite(numbers) & (numbers > 0))
    if bad.any():
        raise ValueError(f"{name} must be a finite number > 0, got {numbers[bad].flat[0]}")
    return numbers


def _loss_name(loss: Any) -> str:
    for name, cls in _LOSSES.items():
        if type(loss) is cls:
            return name
    return check_option(loss, "loss", tuple(_LOSSES))
