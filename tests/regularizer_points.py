"""Members and points for the tests of regularizers: variants, draws, and duals by hand."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import members
import numpy as np
import pytest
from references import regularizers as reference

import jaxsolvers as js
from jaxsolvers.protocol import Regularizer
from jaxsolvers.regularizers.free_intercept import FreeIntercept

FLOAT = np.dtype(jnp.result_type(float))
COUPLED = reference.coupled.NAMES
D = 6
ROWS = 200
LOWER = np.array([-0.5, -np.inf, -0.1, 0.0, -2.0, -1.0])
UPPER = np.array([0.2, 0.3, np.inf, 1.0, 0.0, 1.0])


def variants() -> list[Regularizer]:
    """Every member, once more with other numbers; strengths 0, arrays, a nested domain."""
    found = members.regularizers()
    separable = (member for member in found if member.separable and list(member.numbers()))
    return [
        *found,
        *(members.other_numbers(member) for member in separable),
        js.regularizers.L1(0.0),
        js.regularizers.ElasticNet(0.5, 0.7),
        js.regularizers.ElasticNet(0.0, 0.5),
        js.regularizers.Box(LOWER, UPPER),
        js.regularizers.Box(0.3, 0.7),
        js.regularizers.L1Ball(8.0),
        js.regularizers.L2Ball(6.0),
        js.regularizers.Simplex(3.0),
        js.regularizers.L2Norm(0.5),
        js.regularizers.LInfNorm(0.5),
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


def draw(seed: int, size: int = ROWS) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points z (size, D), metrics h > 0 (size, D) and taus (size,), rounded to the dtype."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(size, D)) * rng.choice([0.1, 1.0, 10.0], (size, 1))
    z[::7, 2] = 0
    h = 10.0 ** rng.uniform(-2, 2, (size, D))
    tau = 10.0 ** rng.uniform(-2, 1, size)
    return tuple(np.asarray(a, FLOAT).astype(float) for a in (z, h, tau))


@jax.jit
def prox_rows(member: Regularizer, z: Any, h: Any, tau: Any) -> Any:
    return jax.vmap(lambda z, h, tau: member.prox(z, h, tau))(z, h, tau)


@jax.jit
def solve_rows(member: Regularizer, linear: Any, h: Any, tau: Any) -> Any:
    return jax.vmap(lambda b, h, tau: member.solve(b, h, tau))(linear, h, tau)


def by_row(rows: Any, member: Regularizer, *operands: np.ndarray) -> np.ndarray:
    """``prox_rows`` or ``solve_rows`` on any number of rows up to ROWS, by one program."""
    size = len(operands[0])
    repeated = (jnp.asarray(np.take(a, np.arange(ROWS) % size, axis=0), FLOAT) for a in operands)
    x = rows(member.cast(FLOAT), *repeated)
    assert x.shape == (ROWS, *operands[0].shape[1:]) and x.dtype == FLOAT
    return np.asarray(x)[:size]


def prox(member: Regularizer, z: np.ndarray, h: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """``member.prox`` row by row; the result must keep shape and dtype."""
    return by_row(prox_rows, member, z, h, tau).astype(float)


def values(member: Regularizer, x: np.ndarray) -> np.ndarray:
    """The phi of each row, by the reference, so that ``value`` itself is not trusted."""
    name, strengths = known_as(member)
    if name in COUPLED:
        strengths |= {"slack": np.asarray(8 * np.finfo(FLOAT).eps)}
    return np.array([reference.value(name, row, **strengths) for row in x])


def objective(
    member: Regularizer, x: np.ndarray, z: np.ndarray, h: np.ndarray, tau: np.ndarray
) -> np.ndarray:
    return (h * (x - z) ** 2).sum(axis=1) / 2 + tau * values(member, x)


def inside(member: Regularizer, x: np.ndarray) -> np.ndarray:
    """The rows moved into the domain."""
    name, strengths = known_as(member)
    match name:
        case "nonnegative":
            return np.maximum(x, 0)
        case "box":
            return np.clip(x, strengths["lower"], strengths["upper"])
        case "l_inf_ball":
            return np.clip(x, -strengths["radius"], strengths["radius"])
        case "l1_ball" | "l2_ball":
            size = np.linalg.norm(x, 1 if name == "l1_ball" else 2, axis=1, keepdims=True)
            return x * np.minimum(1, strengths["radius"] / np.where(size > 0, size, 1))
        case "simplex":
            x = np.maximum(x, 0) + 1e-300
            return x * strengths["radius"] / x.sum(axis=1, keepdims=True)
    return x


def dual_prox(name: str, u: np.ndarray, h: np.ndarray, tau: Any, **of: Any) -> np.ndarray:
    """argmin_v 1/2 (v - u)^2/h + (tau phi)*(v), by row, from the conjugates by hand."""
    if name in COUPLED:
        rows = zip(u, 1 / h, np.broadcast_to(tau, (len(u), 1))[:, 0], strict=True)
        return np.array([dual_prox_of_row(name, *row, **of) for row in rows])
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
        case "l_inf_ball":  # radius |v|
            return u - np.clip(u, -h * of["radius"], h * of["radius"])
    raise AssertionError(f"write the dual prox of {name!r}")


def dual_prox_of_row(name: str, u: np.ndarray, g: np.ndarray, tau: float, **of: Any) -> np.ndarray:
    """The same for one row in the metric g = 1/h, where phi ties coordinates together."""
    match name:
        # the conjugate of a norm is the indicator of the ball of the dual norm, and the reverse
        case "l2_norm" | "group_l2":
            return reference.prox("l2_ball", u, g, 1.0, radius=tau * of["strength"])
        case "l_inf_norm" | "group_l_inf":
            return reference.prox("l1_ball", u, g, 1.0, radius=tau * of["strength"])
        case "l1_ball":
            return reference.prox("l_inf_norm", u, g, 1.0, strength=of["radius"])
        case "l2_ball":
            return reference.prox("l2_norm", u, g, 1.0, strength=of["radius"])
        case "simplex":  # radius max v: the largest are cut down to one level, whatever its sign
            order = np.argsort(-u)
            taken, area = np.cumsum((g * u)[order]), np.cumsum(g[order])
            return np.minimum(u, np.max((taken - of["radius"]) / area))
    raise AssertionError(f"write the dual prox of {name!r}")
