"""The papers' guarantees as property tests: they hold for every stream, so also for random ones.

Pegasos: Shalev-Shwartz, Singer, Srebro, Cotter, Math. Programming 127 (2011), Lemma 1 and
Theorem 1. AdaGrad: Duchi, Hazan, Singer, JMLR 12 (2011), Theorem 5.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references import regularizers as reference
from tolerances import assert_close

import jaxsolvers as js
from jaxsolvers.features import Dense
from jaxsolvers.protocol import Batch, Problem, Solver

FLOAT = np.dtype(jnp.result_type(float))
SEEDS, T, D = 6, 120, 5
SLACK = 1e-12 if FLOAT.itemsize == 8 else 1e-5  # relative, for sums of T float32 terms


def streams(k: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows (SEEDS, T, k, D) and targets (SEEDS, T, k): easy, noisy and adversarial streams."""
    rng = np.random.default_rng(17)
    X = rng.normal(size=(SEEDS, T, k, D)) * rng.choice([0.2, 1.0, 3.0], (SEEDS, 1, 1, D))
    X *= rng.random((SEEDS, T, k, D)) < 0.6
    y = np.where(X @ rng.normal(size=D) + rng.normal(size=(SEEDS, T, k)) > 0, 1.0, -1.0)
    X[2] = X[2, :1]  # the same rows again and again
    y[3] = np.where(rng.random((T, k)) < 0.5, 1.0, -1.0)  # nothing to learn
    X[4], y[4, :, :] = X[4, :1], np.where(np.arange(T) % 2, 1.0, -1.0)[:, None]  # contradictions
    return X.astype(FLOAT).astype(float), y


@jax.jit
def run(solver: Solver, X: Any, y: Any) -> Any:
    """(w_1 ... w_T, w_{T+1}) for each seed, (SEEDS, T + 1, D)."""

    def one(X: Any, y: Any) -> Any:
        def one_round(state: Any, rows: Any) -> Any:
            x, target = rows
            index = jnp.zeros(target.shape, jnp.int32)
            batch = Batch(Dense(x), target, jnp.ones_like(target), index)
            return solver.update(state, batch)[0], solver.weights(state)

        start = solver.init(Problem((D,), T, 1.0, jnp.ones((), FLOAT)), FLOAT)
        last, weights = jax.lax.scan(one_round, start, (X, y))
        return jnp.concatenate([weights, solver.weights(last)[None]])

    return jax.vmap(one)(X, y)


def weights_of(solver: Solver, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    path = run(solver.cast(FLOAT), jnp.asarray(X, FLOAT), jnp.asarray(y, FLOAT))
    return np.asarray(path, float)


def hinge(w: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Mean hinge loss of each round (T,), at its own weights w (T, D) or one comparator (D,)."""
    z = np.einsum("tkd,td->tk", X, np.broadcast_to(w, (len(X), D)))
    return np.maximum(0, 1 - y * z).mean(axis=1)


def hinge_at_best_bias(w: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The same with the bias that is best for the round: one of its kinks y_i - z_i."""
    z = np.einsum("tkd,td->tk", X, np.broadcast_to(w, (len(X), D)))
    shifted = z[:, None] + (y - z)[:, :, None]
    return np.maximum(0, 1 - y[:, None] * shifted).mean(axis=2).min(axis=1)


def comparators(path: np.ndarray, seed: int) -> list[np.ndarray]:
    """0, random vectors of many sizes, and the best that the run itself has to offer."""
    rng = np.random.default_rng(seed)
    sizes = 10.0 ** rng.uniform(-2, 1, 30)
    random = [size * rng.normal(size=D) for size in sizes]
    return [np.zeros(D), path[-1], path[:-1].mean(axis=0), path[-T // 2 :].mean(axis=0), *random]


# ---- Pegasos -------------------------------------------------------------------------------------
@pytest.mark.parametrize(("k", "bias"), [(1, "none"), (5, "none"), (5, "batch")])
@pytest.mark.parametrize("project", [False, True])
@pytest.mark.parametrize("lam", [0.01, 0.3])
def test_pegasos_is_never_worse_than_any_vector_by_more_than_its_bound(
    lam: float, project: bool, k: int, bias: str
) -> None:
    """(1/T) sum f(w_t; A_t) <= (1/T) sum f(u; A_t) + c (1 + ln T)/(2 lam T), at every T.

    With a bias of each batch f is the objective at the best one.
    """
    X, y = streams(k)
    paths = weights_of(js.Pegasos(lam, project=project, bias=bias), X, y)
    losses = hinge if bias == "none" else hinge_at_best_bias
    rounds = np.arange(1, T + 1)
    for seed in range(SEEDS):
        radius = np.sqrt((X[seed] ** 2).sum(axis=-1)).max()
        ball = 1 / np.sqrt(lam)
        c = (lam * ball + radius) ** 2 if project else 4 * radius**2
        bound = c * (1 + np.log(rounds)) / (2 * lam * rounds)

        def objectives(w: np.ndarray, seed: int = seed) -> np.ndarray:
            square = (w * w).sum(axis=-1)
            return np.cumsum(lam / 2 * square + losses(w, X[seed], y[seed])) / rounds

        ours = objectives(paths[seed, :-1])
        norms = np.sqrt((paths[seed] ** 2).sum(axis=-1))
        assert not project or (norms <= ball * (1 + SLACK)).all()
        for u in comparators(paths[seed], seed):
            if project:
                u = u * min(1, ball / max(np.linalg.norm(u), 1e-30))
            assert (ours <= objectives(u) + bound + SLACK * (1 + ours)).all()


@pytest.mark.parametrize("lam", [0.01, 0.3])
def test_pegasos_is_its_closed_form(lam: float) -> None:
    """Without projection w_{T+1} is the sum of what the violators added, over lam T."""
    X, y = streams(5)
    path = weights_of(js.Pegasos(lam), X, y)
    z = np.einsum("stkd,std->stk", X, path[:, :-1])
    added = np.einsum("stk,stkd->std", (y * z < 1) * y / 5, X)
    expected = np.cumsum(added, axis=1) / (lam * np.arange(1, T + 1)[:, None])
    assert_close(path[:, 1:].astype(FLOAT), expected, "run")


# ---- AdaGrad -------------------------------------------------------------------------------------
REGULARIZERS: list[tuple[Any, str, dict[str, float]]] = [
    (js.regularizers.NoRegularizer(), "none", {}),
    (js.regularizers.L1(0.05), "l1", {"strength": 0.05}),
    (js.regularizers.SquaredL2(0.3), "squared_l2", {"strength": 0.3}),
    (js.regularizers.ElasticNet(0.05, 0.1), "elastic_net", {"l1": 0.05, "l2": 0.1}),
    (js.regularizers.Box(-0.4, 0.7), "box", {"lower": -0.4, "upper": 0.7}),
    (js.regularizers.NonNegative(), "nonnegative", {}),
]


def domain(name: str, w: np.ndarray, strengths: dict[str, float]) -> np.ndarray:
    """The nearest vector of the domain."""
    if name == "nonnegative":
        return np.maximum(w, 0)
    return np.clip(w, strengths["lower"], strengths["upper"]) if name == "box" else w


def penalties(name: str, w: np.ndarray, strengths: dict[str, float]) -> np.ndarray:
    """The phi of each row; the domain's bounds as float64 sees them do not count."""
    if name in ("none", "box", "nonnegative"):
        return np.zeros(len(w))
    return np.array([reference.value(name, row, **strengths) for row in w])


def gradients(w: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Sub-gradients of each round's mean hinge loss (T, D)."""
    violated = y * np.einsum("tkd,td->tk", X, w) < 1
    return -np.einsum("tk,tkd->td", violated * y, X) / X.shape[1]


@pytest.mark.parametrize("k", [1, 5])
@pytest.mark.parametrize(("regularizer", "name", "strengths"), REGULARIZERS)
@pytest.mark.parametrize("form", [js.AdaGradRDA, js.AdaGradFOBOS])
def test_adagrad_regret_is_within_its_bound(
    form: Any, regularizer: Any, name: str, strengths: dict[str, float], k: int
) -> None:
    """R <= phi(x_1) + delta |D|_2^2/(2 eta) + d_inf^2 gamma/(2 eta) + eta gamma, at every T.

    D = x* - x_1; d_inf is |D|_inf for RDA, which needs delta >= max |g|_inf, and
    max_t |x* - x_t|_inf for the mirror form. Here x_1 = 0 and phi(0) = 0.
    """
    X, y = streams(k)
    rda = form is js.AdaGradRDA
    largest = float(np.abs(X).max())  # |g| <= |x| for the hinge
    for eta, delta in ((0.3, largest if rda else 0.01), (2.0, largest if rda else 1.0)):
        make = partial(form, eta, delta, regularizer=regularizer)
        paths = weights_of(make(accumulate="example" if k == 1 else "batch"), X, y)
        for seed in range(SEEDS):
            w = paths[seed, :-1]
            g = gradients(w, X[seed], y[seed])
            gamma = np.sqrt(np.cumsum(g * g, axis=0)).sum(axis=1)
            ours = hinge(w, X[seed], y[seed]) + penalties(name, w, strengths)
            for u in comparators(paths[seed], seed):
                u = domain(name, u, strengths)
                theirs = hinge(u, X[seed], y[seed]) + penalties(name, u[None], strengths)
                regret = np.cumsum(ours - theirs)
                if rda:
                    distance = np.abs(u).max()
                else:
                    distance = np.maximum.accumulate(np.abs(u - w).max(axis=1))
                bound = (delta * (u @ u) + distance**2 * gamma) / (2 * eta) + eta * gamma
                assert (regret <= bound + SLACK * np.cumsum(ours + theirs)).all()


def test_the_sums_of_lemma_4_are_within_twice_gamma() -> None:
    """sum_t sum_i g_ti^2 / |g_1:t,i| <= 2 gamma: with the round's own gradient in the metric."""
    X, y = streams(1)
    path = weights_of(js.AdaGradFOBOS(1.0), X, y)
    for seed in range(SEEDS):
        g = gradients(path[seed, :-1], X[seed], y[seed])
        length = np.sqrt(np.cumsum(g * g, axis=0))
        moved = np.abs(np.diff(path[seed], axis=0))  # eta |g_ti| / |g_1:t,i|
        assert (np.abs(g) * moved).sum() <= 2 * length[-1].sum() * (1 + SLACK)
        expected = np.divide(np.abs(g), length, out=np.zeros_like(g), where=length > 0)
        assert_close(moved.astype(FLOAT), expected, "run")
