"""The solvers' NumPy references in one shape: (solver, data) -> run with .w, .t and its fields."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import members
import numpy as np
from references import averages
from references.adagrad import adagrad
from references.adagrad_full import adagrad_full
from references.arow import arow
from references.passive_aggressive import passive_aggressive
from references.pegasos import pegasos
from references.proximal import proximal
from references.sdca import sdca
from references.sgd import norma_rate, sgd
from references.svrg import svrg
from references.threefry import chance

import jaxsolvers as js
from jaxsolvers.regularizers.full_metric import rank_tolerance

ROUNDS, N, D = 20, 45, 5
FLOAT = np.dtype(jnp.result_type(float))
SAFE = 1e-4  # least distance of a score from a kink that a float32 run must keep


class Data(NamedTuple):
    """A stream of ROUNDS batches; padded rows point at row N."""

    X: np.ndarray  # (N + 1, D), rounded to the working dtype, the last row 0
    y: np.ndarray  # (N + 1,)
    weight: np.ndarray  # (N + 1,), the last 0
    index: np.ndarray  # (ROUNDS, k)

    @property
    def batches(self) -> list[list[int]]:
        return [[i for i in batch if i < N] for batch in self.index.tolist()]


def stream(loss: Any, k: int, seed: int) -> Data:
    """Passes over N rows in batches of k, the last of a pass short; some rows weigh 0."""
    rng = np.random.default_rng(seed)
    X = 0.5 * rng.normal(size=(N + 1, D))
    X[:, 1] *= rng.random(N + 1) < 0.3  # seldom seen
    X[:, 2] = 0  # never seen
    X[[8, N]] = 0
    y = members.targets(loss, rng, N + 1)
    weight = rng.uniform(0.2, 2.0, N + 1) * (rng.random(N + 1) < 0.85)
    weight[N] = 0
    weight[k : 2 * k] = 0  # the second round has no live row at all
    one_pass = np.append(np.arange(N), np.full(-N % k, N)).reshape(-1, k)
    index = np.concatenate([one_pass] * math.ceil(ROUNDS / len(one_pass)))[:ROUNDS]
    return Data(X.astype(FLOAT).astype(float), y.astype(FLOAT).astype(float), weight, index)


# ---- one adapter per solver: (solver, data) -> run with .w, .t and the fields of its state -----
Fields = dict[str, list[Any]]


def first(solver: Any) -> np.ndarray:
    """w_1: 0, or where a domain without 0 starts."""
    regularizer = getattr(solver, "regularizer", None)
    start = None if regularizer is None else regularizer.start((D,), FLOAT)
    return np.zeros(D) if start is None else np.asarray(start, float)


def reference_pegasos(solver: js.Pegasos, data: Data) -> tuple[Any, Fields]:
    if solver.bias == "search":  # between the ends of epochs it is SDCA at a fixed bias
        run, fields = reference_sdca(solver, data)
        return run, fields | {"scalars.trial": [0.0] * len(run.t)}
    name, parameter = members.reference_loss(solver.loss)
    run = pegasos(
        data.X, data.y, data.batches, lam=float(solver.lam), loss=name, parameter=parameter,
        weights=data.weight, project=solver.project, bias=solver.bias,
    )  # fmt: skip
    run.doubt /= SAFE
    vector = [float(solver.lam) * max(t, 1) * w for t, w in zip(run.t, run.w, strict=True)]
    fields: Fields = {"scalars.t": run.t, "vector": vector}
    if solver.bias != "none":
        fields["scalars.bias"] = run.bias
    if solver.project:
        fields["square_norm"] = [v @ v for v in vector]
    return run, fields


def reference_adagrad(form: str, solver: Any, data: Data) -> tuple[Any, Fields]:
    name, parameter = members.reference_loss(solver.loss)
    regularizer, strengths = members.reference_regularizer(solver.regularizer, D)
    eta = float(solver.learning_rate)
    run = adagrad(
        data.X, data.y, data.batches, form=form, learning_rate=eta, delta=float(solver.delta),
        initial_accumulator=float(solver.initial_accumulator), loss=name, parameter=parameter,
        regularizer=regularizer, strengths=strengths, accumulate=solver.accumulate,
        weights=data.weight, centre=first(solver),
    )  # fmt: skip
    fields: Fields = {"t": run.t, "accumulator": run.accumulator}
    if form == "rda":
        fields["gradient_sum"] = [eta * g for g in run.gradient_sum]
    else:
        fields["current"] = run.w
    return run, fields


def reference_adagrad_full(form: str, solver: Any, data: Data) -> tuple[Any, Fields]:
    name, parameter = members.reference_loss(solver.loss)
    regularizer, strengths = members.reference_regularizer(solver.regularizer, D)
    run = adagrad_full(
        data.X, data.y, data.batches, form=form, learning_rate=float(solver.learning_rate),
        delta=float(solver.delta), initial_accumulator=float(solver.initial_accumulator),
        loss=name, parameter=parameter, regularizer=regularizer, strengths=strengths,
        accumulate=solver.accumulate, weights=data.weight, block_size=solver.block_size,
        refresh=solver.refresh, tolerance=rank_tolerance(FLOAT, solver.block_size),
        centre=first(solver),
    )  # fmt: skip
    own = {"gradient_sum": run.rated_sum} if form == "rda" else {"current": run.w}
    return run, {"t": run.t, **own}


def reference_proximal(form: str, solver: Any, data: Data) -> tuple[Any, Fields]:
    name, parameter = members.reference_loss(solver.loss)
    regularizer, strengths = members.reference_regularizer(solver.regularizer, D)
    run = proximal(
        data.X, data.y, data.batches, form=form, learning_rate=float(solver.learning_rate),
        loss=name, parameter=parameter, regularizer=regularizer, strengths=strengths,
        weights=data.weight, centre=first(solver),
    )  # fmt: skip
    own = {"gradient_sum": run.rated_sum} if form == "rda" else {"current": run.w}
    return run, {"t": run.t, **own}


def reference_shrinking(
    rate: Callable[[Any], Callable[[int], float]], solver: Any, data: Data
) -> tuple[Any, Fields]:
    name, parameter = members.reference_loss(solver.loss)
    run = sgd(
        data.X, data.y, data.batches, lam=float(solver.lam), rate=rate(solver), loss=name,
        parameter=parameter, weights=data.weight,
    )  # fmt: skip
    return run, {"scalars.t": run.t, "vector": run.w}


def reference_sdca(solver: js.SDCA | js.Pegasos, data: Data) -> tuple[Any, Fields]:
    name, parameter = members.reference_loss(solver.loss)
    order = [i for batch in data.batches for i in batch]
    run = sdca(
        data.X, data.y, order, lam=float(solver.lam), loss=name, parameter=parameter,
        weights=data.weight,
    )  # fmt: skip
    return run, {"scalars.t": run.t, "dual": [dual[:N] for dual in run.dual]}


def reference_passive_aggressive(solver: js.PassiveAggressive, data: Data) -> tuple[Any, Fields]:
    name, parameter = members.reference_loss(solver.loss)
    run = passive_aggressive(
        data.X, data.y, data.batches, C=float(solver.C), variant=solver.variant, loss=name,
        parameter=parameter, weights=data.weight,
    )  # fmt: skip
    return run, {"scalars.t": run.t, "vector": run.w}


def reference_arow(solver: js.AROW, data: Data) -> tuple[Any, Fields]:
    name, _ = members.reference_loss(solver.loss)
    run = arow(
        data.X, data.y, data.batches, r=float(solver.r), covariance=solver.covariance, loss=name,
        weights=data.weight,
    )  # fmt: skip
    return run, {"t": run.t, "mean": run.w, "covariance": run.covariance}


def reference_svrg(solver: js.SVRG, data: Data) -> tuple[Any, Fields]:
    """Rounds without a snapshot; those with one are in test_svrg.py."""
    name, parameter = members.reference_loss(solver.loss)
    rate = None if solver.learning_rate is None else float(solver.learning_rate)
    run = svrg(
        data.X, data.y, data.batches, lam=float(solver.lam), rate=rate, loss=name,
        parameter=parameter, weights=data.weight,
    )  # fmt: skip
    return run, {"t": run.t, "vector": run.w}


REFERENCES: dict[str, Callable[..., tuple[Any, Fields]]] = {
    "Pegasos": reference_pegasos,
    "AdaGradRDA": partial(reference_adagrad, "rda"),
    "AdaGradFOBOS": partial(reference_adagrad, "mirror"),
    "FullAdaGradRDA": partial(reference_adagrad_full, "rda"),
    "FullAdaGradFOBOS": partial(reference_adagrad_full, "mirror"),
    "RDA": partial(reference_proximal, "rda"),
    "FOBOS": partial(reference_proximal, "fobos"),
    "SGD": partial(reference_shrinking, lambda solver: lambda t: float(solver.learning_rate)),
    "NORMA": partial(reference_shrinking, lambda s: norma_rate(float(s.lam), float(s.c))),
    "SDCA": reference_sdca,
    "PassiveAggressive": reference_passive_aggressive,
    "AROW": reference_arow,
    "SVRG": reference_svrg,
}


def mean_of(solver: js.Averaged, before: np.ndarray, after: list[Any], t: list[int]) -> list[Any]:
    """The average of a series of iterates, ``before`` the first, that the wrapper asks for."""
    start = int(solver.start)
    if solver.kind == "uniform":
        return averages.uniform_average(before, after, t, start=start)
    if solver.kind == "random":
        draw = partial(chance, np.zeros(2, np.uint32))  # of a problem without a seed
        return averages.random_iterate(before, after, t, chance=draw, start=start)
    power = float(solver.power)
    return averages.polynomial_average(before, after, t, power=power, start=start)


def reference_averaged(solver: js.Averaged, run: Any) -> tuple[list[np.ndarray], Fields]:
    averaged = [max(t - int(solver.start), 0) for t in run.t]
    counters: Fields = {"counts.t": run.t, "counts.averaged": averaged}
    if solver.own_bias and solver.finishes == "never":
        # Without an iterate in it the mean is 0, and the last bias stands in its place.
        own = mean_of(solver, np.zeros(()), run.bias, run.t)
        counters["offset"] = np.where(np.array(averaged) > 0, own, 0).tolist()
    return mean_of(solver, first(solver.solver), run.w, run.t), counters


WRAPPERS = {"Averaged": reference_averaged}
