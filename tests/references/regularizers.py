"""Regularizers phi and their proximal operators in a diagonal metric: Duchi, Hazan, Singer, JMLR
12 (2011), section 5, and Duchi, Singer, *FOBOS*, JMLR 10 (2009). Separable ones are written here,
coordinate by coordinate; the others in `regularizers_coupled`.

| name           | phi(x) per coordinate          | strengths    |
| -------------- | ------------------------------ | ------------ |
| none           | 0                              |              |
| l1             | strength |x|                   | strength     |
| squared_l2     | strength x^2 / 2               | strength     |
| elastic_net    | l1 |x| + l2 x^2 / 2            | l1, l2       |
| box            | 0 in [lower, upper], else inf  | lower, upper |
| nonnegative    | 0 for x >= 0, else inf         |              |
| l_inf_ball     | 0 for |x| <= radius, else inf  | radius       |

Each strength is a number or one number per coordinate (d,).
"""

from decimal import Decimal, localcontext
from typing import TypeVar

import numpy as np

from . import regularizers_coupled as coupled

SEPARABLE = ("none", "l1", "squared_l2", "elastic_net", "box", "nonnegative", "l_inf_ball")
NAMES = SEPARABLE + coupled.NAMES

Number = TypeVar("Number", float, Decimal)
Strength = float | np.ndarray


def value(name: str, w: np.ndarray, **strengths: Strength) -> float:
    """phi(w) for w (d,); infinite outside the domain."""
    if name in coupled.NAMES:
        return coupled.value(name, w, **strengths)
    total = 0.0
    for j in range(len(w)):
        total += penalty(name, float(w[j]), **coordinate(strengths, j, len(w)))
    return total


def prox(name: str, z: np.ndarray, h: np.ndarray, tau: float, **strengths: Strength) -> np.ndarray:
    """argmin_x 1/2 sum h (x - z)^2 + tau phi(x) for z (d,) and a metric h > 0, (d,)."""
    if name in coupled.NAMES:
        return coupled.prox(name, z, h, tau, **strengths)
    x = np.zeros(len(z))
    for j in range(len(z)):
        own = coordinate(strengths, j, len(z))
        x[j] = prox_coordinate(name, float(z[j]), float(h[j]), tau, **own)
    return x


def prox_by_search(
    name: str, z: np.ndarray, h: np.ndarray, tau: float, **strengths: Strength
) -> np.ndarray:
    """The same minimiser as `prox`, found by ternary search on the objective alone."""
    if name in coupled.NAMES:
        return coupled.prox_by_search(name, z, h, tau, **strengths)
    x = np.zeros(len(z))
    for j in range(len(z)):
        own = coordinate(strengths, j, len(z))
        x[j] = search_coordinate(name, float(z[j]), float(h[j]), tau, **own)
    return x


def coordinate(strengths: dict[str, Strength], j: int, d: int) -> dict[str, float]:
    """The strengths that coordinate j of d sees."""
    return {key: float(np.broadcast_to(given, (d,))[j]) for key, given in strengths.items()}


def penalty(name: str, x: Number, **strengths: Number) -> Number:
    """Phi of one coordinate, in floats or in decimals."""
    zero = x * 0
    match name:
        case "none":
            return zero
        case "l1":
            return strengths["strength"] * abs(x)
        case "squared_l2":
            return strengths["strength"] * x * x / 2
        case "elastic_net":
            return strengths["l1"] * abs(x) + strengths["l2"] * x * x / 2
        case "box":
            inside = strengths["lower"] <= x <= strengths["upper"]
            return zero if inside else type(x)("inf")
        case "nonnegative":
            return zero if x >= 0 else type(x)("inf")
        case "l_inf_ball":
            return zero if abs(x) <= strengths["radius"] else type(x)("inf")
    raise ValueError(f"unknown regularizer {name!r}; known: {SEPARABLE}")


def prox_coordinate(name: str, z: float, h: float, tau: float, **strengths: float) -> float:
    """argmin_x 1/2 h (x - z)^2 + tau phi(x) over one coordinate, h > 0, in closed form."""
    if not h > 0.0:
        raise ValueError("the metric must be positive; leave coordinates without history out")
    match name:
        case "none":
            return z
        case "l1":
            return soft(z, tau * strengths["strength"] / h)
        case "squared_l2":
            return h * z / (h + tau * strengths["strength"])
        case "elastic_net":
            return soft(z, tau * strengths["l1"] / h) * h / (h + tau * strengths["l2"])
        case "box":
            return max(strengths["lower"], min(strengths["upper"], z))
        case "nonnegative":
            return max(0.0, z)
        case "l_inf_ball":
            return max(-strengths["radius"], min(strengths["radius"], z))
    raise ValueError(f"unknown regularizer {name!r}; known: {SEPARABLE}")


def soft(z: float, threshold: float) -> float:
    """sign(z) [|z| - threshold]_+."""
    if z > threshold:
        return z - threshold
    if z < -threshold:
        return z + threshold
    return 0.0


def search_coordinate(name: str, z: float, h: float, tau: float, **strengths: float) -> float:
    """Ternary search for argmin_x 1/2 h (x - z)^2 + tau phi(x) over one coordinate, h > 0.

    In 60 decimal digits, since values near a minimum resolve x to half the digits only. The
    minimiser lies in the domain, between the extremes of z, 0 and the finite bounds.
    """
    lower, upper = -np.inf, np.inf
    if name == "nonnegative":
        lower = 0.0
    if name == "box":
        lower, upper = strengths["lower"], strengths["upper"]
    if name == "l_inf_ball":
        lower, upper = -strengths["radius"], strengths["radius"]
    marks = [z, 0.0] + [bound for bound in (lower, upper) if np.isfinite(bound)]
    left, right = Decimal(max(min(marks), lower)), Decimal(min(max(marks), upper))
    exact = {key: Decimal(given) for key, given in strengths.items()}

    with localcontext() as context:
        context.prec = 60

        def objective(x: Decimal) -> Decimal:
            gap = x - Decimal(z)
            return Decimal(h) * gap * gap / 2 + Decimal(tau) * penalty(name, x, **exact)

        while right - left > Decimal("1e-20"):
            third = (right - left) / 3
            if objective(left + third) <= objective(right - third):
                right -= third
            else:
                left += third
        return float((left + right) / 2)
