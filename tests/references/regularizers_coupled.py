"""Regularizers phi that tie coordinates together, and their proximal operators in a metric.

| name       | phi(x), x of any shape                   | numbers       |
| ---------- | ---------------------------------------- | ------------- |
| l2_norm    | strength ||x||_2                         | strength      |
| l_inf_norm | strength max |x|                         | strength      |
| l1_ball    | 0 where ||x||_1 <= radius, else inf      | radius        |
| l2_ball    | 0 where ||x||_2 <= radius, else inf      | radius        |
| simplex    | 0 where x >= 0, sum x = radius, else inf | radius        |
| group_l2   | strength sum over slices of ||.||_2      | strength, axis |
| group_l_inf | strength sum over slices of max |.|     | strength, axis |

`prox` is exact where sorting finds the set of coordinates above a threshold, and a bisection of
the subgradient condition elsewhere, in extended precision. `prox_by_search` knows neither: it
compares objectives.
"""

from collections.abc import Callable
from decimal import Decimal, localcontext
from itertools import product

import numpy as np

NAMES = ("l2_norm", "l_inf_norm", "l1_ball", "l2_ball", "simplex", "group_l2", "group_l_inf")
Long = np.longdouble


def value(
    name: str, x: np.ndarray, axis: int = -1, slack: float = 1e-12, **numbers: float
) -> float:
    """phi(x); infinite outside the domain, whose sums may be off by a relative `slack`."""
    x = np.asarray(x, float)
    if name.startswith("group"):
        inner = {"group_l2": "l2_norm", "group_l_inf": "l_inf_norm"}[name]
        rows = np.moveaxis(x, axis, -1)
        groups = (rows[at] for at in np.ndindex(rows.shape[:-1]))
        return sum((value(inner, group, **numbers) for group in groups), 0.0)
    match name:
        case "l2_norm":
            return float(numbers["strength"]) * float(np.sqrt((x * x).sum()))
        case "l_inf_norm":
            return float(numbers["strength"]) * float(np.abs(x).max(initial=0))
    radius = float(numbers["radius"])
    match name:
        case "l1_ball":
            inside = np.abs(x).sum() <= radius * (1 + slack)
        case "l2_ball":
            inside = np.sqrt((x * x).sum()) <= radius * (1 + slack)
        case "simplex":
            inside = (x >= 0).all() and abs(x.sum() - radius) <= radius * slack
        case _:
            raise ValueError(f"unknown regularizer {name!r}; known: {NAMES}")
    return 0.0 if inside else np.inf


def prox(
    name: str, z: np.ndarray, h: np.ndarray, tau: float, axis: int = -1, **numbers: float
) -> np.ndarray:
    """argmin_x 1/2 sum h (x - z)^2 + tau phi(x) for a metric h > 0."""
    z, h = np.asarray(z, Long), np.asarray(h, Long)
    if not (h > 0).all():
        raise ValueError("the metric must be positive; leave coordinates without history out")
    if name.startswith("group"):
        inner = {"group_l2": "l2_norm", "group_l_inf": "l_inf_norm"}[name]
        x, rows, metrics = (np.moveaxis(a, axis, -1) for a in (np.zeros(z.shape), z, h))
        for at in np.ndindex(rows.shape[:-1]):
            x[at] = prox(inner, rows[at], metrics[at], tau, **numbers)
        return np.moveaxis(x, -1, axis)
    given = numbers["strength"] * tau if name in ("l2_norm", "l_inf_norm") else numbers["radius"]
    solution = {
        "l2_norm": l2_norm,
        "l_inf_norm": l_inf_norm,
        "l1_ball": l1_ball,
        "l2_ball": l2_ball,
        "simplex": simplex,
    }[name](z.ravel(), h.ravel(), Long(given))
    return np.asarray(solution, float).reshape(z.shape)


def l2_norm(z: np.ndarray, h: np.ndarray, s: Long) -> np.ndarray:
    """0 if ||h z|| <= s, else h z / (h + s/r) where the norm of that is r."""
    if len(z) == 0 or length(h * z) <= s:
        return 0 * z

    def too_small(r: Long) -> bool:
        return length(h * z / (h + s / r)) > r

    gap = length(h * z) - s
    return h * z / (h + s / bisect(too_small, gap / h.max(), gap / h.min()))


def l2_ball(z: np.ndarray, h: np.ndarray, c: Long) -> np.ndarray:
    """The point inside, else h z / (h + t) of norm c."""
    if length(z) <= c:
        return z
    if c == 0:
        return 0 * z

    def too_small(t: Long) -> bool:
        return length(h * z / (h + t)) > c

    beyond = length(z / c) - 1
    return h * z / (h + bisect(too_small, h.min() * beyond, h.max() * beyond))


def length(x: np.ndarray) -> Long:
    """||x||_2 without overflow."""
    size = np.abs(x).max(initial=0)
    return size if size == 0 else size * np.sqrt(((x / size) ** 2).sum())


def bisect(too_small: Callable[[Long], bool], low: Long, high: Long) -> Long:
    """A root between low and high, by halving the logarithm."""
    low, high = low * Long(1 - 1e-9), high * Long(1 + 1e-9)
    for _ in range(80):
        middle = np.sqrt(low) * np.sqrt(high)
        low, high = (middle, high) if too_small(middle) else (low, middle)
    return low


def simplex(z: np.ndarray, h: np.ndarray, c: Long) -> np.ndarray:
    """[z - t/h]_+ summing to c: the coordinates with the largest h z, as many as stay above t."""
    if len(z) == 0 or c == 0:
        return 0 * z
    order = np.argsort(-(h * z))
    above, area = Long(0), Long(0)  # sums of z and of 1/h over the coordinates taken so far
    for i in order:
        if area > 0 and h[i] * z[i] <= (above - c) / area:
            break
        above, area = above + z[i], area + 1 / h[i]
    return np.maximum(z - (above - c) / area / h, 0)


def l1_ball(z: np.ndarray, h: np.ndarray, c: Long) -> np.ndarray:
    """The point inside, else a simplex of the absolute values."""
    return z if np.abs(z).sum() <= c else np.sign(z) * simplex(np.abs(z), h, c)


def l_inf_norm(z: np.ndarray, h: np.ndarray, s: Long) -> np.ndarray:
    """0 if sum h|z| <= s, else sign(z) min(|z|, t) with sum h [|z| - t]_+ = s."""
    size = np.abs(z)
    if (h * size).sum() <= s:
        return 0 * z
    above, area = Long(0), Long(0)
    for i in np.argsort(-size):
        if area > 0 and size[i] <= (above - s) / area:
            break
        above, area = above + h[i] * size[i], area + h[i]
    return np.sign(z) * np.minimum(size, (above - s) / area)


def prox_by_search(
    name: str, z: np.ndarray, h: np.ndarray, tau: float, axis: int = -1, **numbers: float
) -> np.ndarray:
    """The same minimiser as `prox`, for z (d,), by comparing objectives of candidates.

    Where phi is polyhedral the candidates are the stationary points of all faces; for a 2-norm
    they are the curve h z / (h + t), searched for the least objective in 60 decimal digits.
    """
    norms = {"group_l2": "l2_norm", "group_l_inf": "l_inf_norm"}
    name = norms.get(name, name)
    if name in ("l2_norm", "l2_ball"):
        return curve_search(name, z, h, tau, **numbers)
    faces = {"l1_ball": l1_faces, "simplex": simplex_faces, "l_inf_norm": l_inf_faces}[name]
    given = numbers["radius"] if "radius" in numbers else tau * numbers["strength"]
    best, least = np.zeros(len(z)), np.inf
    for x in faces(z, h, float(given)):
        objective = (h * (x - z) ** 2).sum() / 2 + tau * value(name, x, **numbers)
        if objective < least:
            best, least = x, objective
    return best


def sets(d: int) -> list[np.ndarray]:
    """Every set of coordinates that is not empty."""
    return [np.array(bits, bool) for bits in product((0, 1), repeat=d) if any(bits)]


def simplex_faces(z: np.ndarray, h: np.ndarray, c: float) -> list[np.ndarray]:
    """The minimiser on sum_A x = c, x = 0 outside A, where it is positive; for every A."""
    found = []
    for inside in sets(len(z)):
        t = (z[inside].sum() - c) / (1 / h[inside]).sum()
        x = np.where(inside, z - t / h, 0)
        found += [x] if (x >= 0).all() else []
    return found


def l1_faces(z: np.ndarray, h: np.ndarray, c: float) -> list[np.ndarray]:
    """z, and the faces of the ball that lie towards z."""
    return [z, *(np.sign(z) * x for x in simplex_faces(np.abs(z), h, c))]


def l_inf_faces(z: np.ndarray, h: np.ndarray, s: float) -> list[np.ndarray]:
    """0, and the minimiser with |x| = t on A, x = z outside, for every A."""
    size, found = np.abs(z), [np.zeros(len(z))]
    for inside in sets(len(z)):
        t = max(((h * size)[inside].sum() - s) / h[inside].sum(), 0)
        found.append(np.sign(z) * np.where(inside, t, size))
    return found


def curve_search(
    name: str, z: np.ndarray, h: np.ndarray, tau: float, **numbers: float
) -> np.ndarray:
    """Ternary search along x(t) = h z / (h + t) for log t; 0 and z are candidates as well."""
    with localcontext() as context:
        context.prec = 60
        centre, metric = [Decimal(float(a)) for a in z], [Decimal(float(a)) for a in h]
        exact = {key: Decimal(float(given)) for key, given in numbers.items()}

        def objective(x: list[Decimal]) -> Decimal:
            size = sum(a * a for a in x).sqrt()
            if name == "l2_ball":
                # beyond the ball: worse the farther out
                penalty = (size - exact["radius"]) * 10**30 if size > exact["radius"] else 0
            else:
                penalty = Decimal(float(tau)) * exact["strength"] * size
            rows = zip(x, centre, metric, strict=True)
            return sum(b * (a - c) ** 2 for a, c, b in rows) / 2 + penalty

        def along(log: Decimal) -> list[Decimal]:
            t = log.exp()
            return [a * b / (b + t) for a, b in zip(centre, metric, strict=True)]

        left, right = Decimal(-40), Decimal(60)
        while right - left > Decimal("1e-18"):
            third = (right - left) / 3
            if objective(along(left + third)) <= objective(along(right - third)):
                right -= third
            else:
                left += third
        zero = [Decimal(0)] * len(centre)
        best = min(along((left + right) / 2), centre, zero, key=objective)
        return np.array([float(a) for a in best])
