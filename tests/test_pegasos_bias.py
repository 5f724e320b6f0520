"""Pegasos' own biases: steps, the end of a run, the search, and where the bias goes."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from jax.sharding import Mesh
from references import hinge_bias as reference
from references.averages import uniform_average
from references.pegasos import pegasos
from tolerances import assert_bitwise, assert_close

import jaxsolvers as js
from jaxsolvers.engine import finish
from jaxsolvers.solvers.bias_search import SLACK
from jaxsolvers.solvers.hinge_bias import best_bias, weighted_steps

FLOAT = np.dtype(jnp.result_type(float))
N, D, K, LAM = 40, 4, 3, 0.1
KINDS = ("unregularized", "batch", "search")
DEVICES = Mesh(np.array(jax.devices()), ("rankers",))


def data(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows that need a bias, labels 0 ... K - 1 of unequal frequency, weights, some of them 0."""
    rng = np.random.default_rng(seed)
    X = (0.7 * rng.normal(size=(N, D))).astype(FLOAT)
    labels = np.searchsorted([0.6, 0.9], rng.random(N))
    X[:, 0] += 0.8 * (labels == 0)
    weight = rng.uniform(0.3, 2.0, N) * (rng.random(N) < 0.9)
    return X, labels, weight / weight[weight > 0].mean()


def batch_size(kind: str) -> int:
    return 6 if kind == "batch" else 1


def fit_one(kind: str, X: Any, labels: np.ndarray, **options: Any) -> Any:
    options = {"epochs": 3, "batch_size": batch_size(kind), "key": 2} | options
    return js.fit(js.Pegasos(LAM, bias=kind), X, labels == 0, **options)


# ---- the best bias of a batch --------------------------------------------------------------------
def batches(count: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random batches: ties, one class, equal weights, weights 0 and whole ones of weight 0."""
    rng = np.random.default_rng(1)
    z, y = rng.normal(size=(count, k)), np.where(rng.random((count, k)) < 0.4, 1.0, -1.0)
    s = rng.uniform(0.2, 2.0, (count, k))
    kind = np.arange(count) % 6
    z[kind == 1] = np.round(z[kind == 1])
    y[kind == 2] = np.where(rng.random((count, 1)) < 0.5, 1, -1)[kind == 2]
    s[kind >= 3] = 1
    z[kind == 4] = np.round(2 * z[kind == 4]) / 2
    s[kind == 5] *= rng.random((count, k))[kind == 5] < 0.5
    s[:2] = 0
    return tuple(a.astype(FLOAT).astype(float) for a in (z, y, s))


def test_the_bias_and_the_steps_of_a_batch_are_those_of_brute_force() -> None:
    z, y, s = batches(600, 9)
    given = tuple(jnp.asarray(a, FLOAT) for a in (z, y, s))
    biases, steps = jax.jit(jax.vmap(lambda *a: (best_bias(*a), weighted_steps(*a))))(*given)
    expected = [reference.best_bias(*rows) for rows in zip(z, y, s, strict=True)]
    # What float32 makes of a flat piece is anywhere on it: there the loss decides.
    near = np.isclose(biases, expected, atol=1e-5)
    assert near.mean() > (0.99 if FLOAT.itemsize == 8 else 0.95)
    for i in range(len(z)):
        least = reference.hinge_loss(z[i], y[i], s[i], expected[i])
        assert reference.hinge_loss(z[i], y[i], s[i], float(biases[i])) <= least + 1e-5
    same = [reference.weighted_steps(*rows) for rows in zip(z, y, s, strict=True)]
    assert_close(steps, np.array(same), "reference")
    both = ((y * s) > 0).any(axis=1) & ((y * s) < 0).any(axis=1)
    np.testing.assert_allclose(np.asarray(steps).sum(axis=1), 0, atol=1e-5)
    assert (np.asarray(steps)[~both] == 0).all() and both.sum() > 300


def test_the_steps_are_a_sub_gradient_of_the_loss_at_its_best_bias() -> None:
    """min_b L(z' + b) >= min_b L(z + b) - sum_i s_i v_i (z'_i - z_i) for every z'."""
    z, y, s = batches(120, 7)
    rng = np.random.default_rng(3)
    for rows in zip(z, y, s, strict=True):
        steps = np.array(reference.weighted_steps(*rows))
        here = reference.hinge_loss(*rows, reference.best_bias(*rows))
        for scale in (0.1, 3.0):
            there = rows[0] + scale * rng.normal(size=7)
            value = reference.hinge_loss(there, *rows[1:], reference.best_bias(there, *rows[1:]))
            assert value >= here - steps @ (there - rows[0]) - 1e-9


# ---- runs ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("kind", "k"), [("unregularized", 1), ("unregularized", 7), ("batch", 7)])
def test_fit_is_the_numpy_loop(kind: str, k: int) -> None:
    """One ranker row by row, twenty of them by Gram sweeps, each with its mean."""
    X, labels, weight = data(4)
    order = np.append(np.arange(N), np.full(-N % k, N)).reshape(-1, k).tolist()
    rounds = [[i for i in batch if i < N] for batch in order] * 2
    given: dict[str, Any] = {"epochs": 2, "batch_size": k, "order": "cyclic"}
    given["sample_weight"] = weight
    for solver in (js.Pegasos(LAM, bias=kind), js.Averaged(js.Pegasos(LAM, bias=kind), start=5)):
        many = js.fit_one_vs_rest(solver, X, labels, classes=np.arange(20), **given)
        one = js.fit(solver, X, labels == 1, **given)
        for code, fit in ((0, many), (1, many), (1, one)):
            y = np.where(labels == code, 1.0, -1.0)
            run = pegasos(X.astype(float), y, rounds, lam=LAM, weights=weight, bias=kind)
            w, b = run.w[-1], float(run.bias[-1])
            if isinstance(solver, js.Averaged):
                w = uniform_average(np.zeros(D), run.w, run.t, start=5)[-1]
                b = float(uniform_average(np.zeros(()), run.bias, run.t, start=5)[-1])
            if kind == "batch":
                b = reference.best_bias(X.astype(float) @ w, y, weight)
            coef, intercept = (np.atleast_1d(a) for a in (fit.model.coef, fit.model.intercept))
            at = code if fit is many else slice(None)
            assert_close(coef[at], w, "run", name="w")
            assert_close(np.squeeze(intercept[at]), np.array(b), "run", name="b", scale=10.0)
            losses = np.reshape(run.loss, (2, -1)).sum(axis=1) / weight.sum()
            own = fit.history["progressive_loss"].astype(FLOAT)
            assert_close(own[:, code] if fit is many else own, losses, "run", name="loss")


def test_the_search_is_the_numpy_loop() -> None:
    X, labels, weight = data(5)
    X, labels, weight = X[weight > 0], labels[weight > 0], weight[weight > 0]
    y = np.where(labels == 0, 1.0, -1.0)
    slack = SLACK * float(np.finfo(FLOAT).eps)
    run = reference.search(X.astype(float), y, lam=LAM, epochs=8, weights=weight, slack=slack)
    state: Any = None
    for epoch in range(8):
        fit = js.fit(
            js.Pegasos(LAM, bias="search"), X, y, state=state,
            **({} if state else {"order": "cyclic"}), sample_weight=weight,
        )  # fmt: skip
        state = fit.state
        inner = state.solver_state
        assert_close(inner.dual, run.dual[epoch], "run", name=f"dual {epoch}")
        assert_close(fit.model.coef, run.w[epoch], "run", name=f"w {epoch}")
        own = np.array([inner.scalars.trial, inner.scalars.low, inner.scalars.high])
        expected = np.array([run.trial[epoch], *run.bracket[epoch]])
        assert_close(own, expected, "run", name=f"search {epoch}", scale=100.0)
        np.testing.assert_allclose(fit.model.intercept, run.bias[epoch], rtol=1e-4, atol=1e-4)
    assert len(set(run.trial)) > 3 and run.bracket[-1] != run.bracket[0]


def optimum(X: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
    """The least objective over w and b, by a general solver of quadratic programs."""
    n, d = X.shape
    p = weight / weight.sum()
    margins = np.hstack([y[:, None] * X, y[:, None], np.eye(n)])
    found = scipy.optimize.minimize(
        lambda v: LAM / 2 * v[:d] @ v[:d] + p @ v[d + 1 :],
        np.append(np.zeros(d + 1), np.ones(n)),
        jac=lambda v: np.concatenate([LAM * v[:d], [0.0], p]),
        constraints={"type": "ineq", "fun": lambda v: margins @ v - 1, "jac": lambda v: margins},
        bounds=[(None, None)] * (d + 1) + [(0, None)] * n,
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert found.success, found.message
    return float(found.fun)


def test_all_rankers_search_together_and_reach_the_optimum() -> None:
    X, labels, weight = data(6)
    solver = js.Pegasos(LAM, bias="search")
    given: dict[str, Any] = {"epochs": 60, "sample_weight": weight}
    fit = js.fit_one_vs_rest(solver, X, labels, record=("objective", "gap"), **given)
    measured = js.metrics.objective(solver, fit.model, X, labels, sample_weight=weight)
    assert_close(measured, fit.history["objective"][-1].astype(FLOAT), "run")
    gap = js.metrics.duality_gap(solver, fit.state, X, labels, sample_weight=weight)
    np.testing.assert_allclose(gap, fit.history["gap"][-1], atol=1e-5)
    assert (fit.history["gap"] > -1e-5).all()
    live = weight > 0
    scalars = fit.state.solver_state[0].scalars
    for k in range(K):
        y = np.where(labels == k, 1.0, -1.0)
        least = optimum(X[live].astype(float), y[live], weight[live])
        assert least - 1e-5 <= measured[k] <= least + 1e-3
        # The bias is where the search says it may be, and the lowest objective was not missed.
        assert least - 1e-5 <= scalars.least[k] <= measured[k] + 1e-5
        assert scalars.low[k] - 1e-3 <= fit.model.intercept[k] <= scalars.high[k] + 1e-3
    column = js.fit_one_vs_rest(js.SDCA(LAM), X, labels, intercept="column", **given)
    regularized = js.metrics.objective(js.SDCA(LAM), column.model, X, labels, sample_weight=weight)
    assert (measured <= regularized + 1e-5).all()


# ---- the same whatever runs it -------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_rows_chunks_devices_and_split_runs_do_not_matter(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, labels, weight = data(7)
    solver = js.Pegasos(LAM, bias=kind)
    given: dict[str, Any] = {"batch_size": batch_size(kind), "sample_weight": weight, "key": 5}
    given |= {"positive_weight": 2.0}
    whole = js.fit_one_vs_rest(solver, X, labels, epochs=3, **given)
    assert len(np.unique(whole.model.intercept)) == K
    rows = js.fit_one_vs_rest(solver, scipy.sparse.csr_array(X), labels, epochs=3, **given)
    assert_close(rows.model.coef, whole.model.coef, "run", scale=1.0)
    assert_close(rows.model.intercept, whole.model.intercept, "run", scale=10.0)
    monkeypatch.setattr(finish, "SCORES", 2 * N)  # two rankers at a time
    for options in ({"mesh": DEVICES}, {"chunk_size": 1}):
        other = js.fit_one_vs_rest(solver, X, labels, epochs=3, **options, **given)
        assert_bitwise(np.asarray(other.model.coef), np.asarray(whole.model.coef))
        assert_bitwise(np.asarray(other.model.intercept), np.asarray(whole.model.intercept))
    first = js.fit_one_vs_rest(solver, X, labels, epochs=1, **given)
    second = js.fit_one_vs_rest(
        solver, X, labels, epochs=2, state=first.state, sample_weight=weight
    )
    assert_bitwise(second.model.intercept, whole.model.intercept)
    assert_bitwise(second.model.coef, whole.model.coef)


@pytest.mark.parametrize("kind", KINDS)
def test_a_source_and_a_linear_kernel_learn_the_same_bias_case_056(kind: str) -> None:
    """A bias of its own adds nothing to the kernel's values."""
    X, labels, weight = data(8)
    y = np.where(labels == 0, 1, -1)
    whole = fit_one(kind, X, labels, order="cyclic", sample_weight=weight)
    source = js.data.ArraySource(X, y, weight)
    read = js.fit(
        js.Pegasos(LAM, bias=kind), source, epochs=3, batch_size=batch_size(kind), order="cyclic"
    )
    assert_close(read.model.coef, whole.model.coef, "run", scale=1.0)
    assert_close(read.model.intercept, whole.model.intercept, "run", scale=10.0)
    kernel = js.Kernelized(js.Pegasos(LAM, bias=kind), js.kernels.Linear())
    other = js.fit(
        kernel, X, labels == 0, epochs=3, batch_size=batch_size(kind), order="cyclic",
        sample_weight=weight,
    )  # fmt: skip
    assert_close(other.model.intercept, whole.model.intercept, "run", scale=10.0)
    scores = whole.model.decision_function(X)
    assert_close(other.model.decision_function(X), scores, "run", scale=10.0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_bias_is_in_the_model_its_file_and_its_objective_case_055(
    kind: str, tmp_path: Any
) -> None:
    """The bias has no scale and no place in coef."""
    X, labels, _ = data(9)
    fit = fit_one(kind, X, labels, record=("objective",))
    assert fit.model.coef.shape == (D,) and fit.model.intercept.shape == ()
    np.testing.assert_allclose(
        fit.model.decision_function(X), X @ fit.model.coef + fit.model.intercept, rtol=1e-4,
        atol=1e-5,
    )  # fmt: skip
    path = tmp_path / "model.npz"
    fit.model.save(path)
    assert float(js.load(path).intercept) == float(fit.model.intercept) != 0
    w, y = np.asarray(fit.model.coef, float), np.where(labels == 0, 1.0, -1.0)
    losses = reference.hinge_loss(X @ w, y, np.ones(N), float(fit.model.intercept)) / N
    own = js.metrics.objective(js.Pegasos(LAM, bias=kind), fit.model, X, labels == 0)
    np.testing.assert_allclose(own, LAM / 2 * w @ w + losses, rtol=1e-5)
    np.testing.assert_allclose(fit.history["objective"][-1], own, rtol=1e-5)


def test_drawn_negatives_weigh_their_share_at_the_end() -> None:
    X, labels, _ = data(10)
    solver = js.Pegasos(LAM, bias="batch")
    fit = js.fit_one_vs_rest(solver, X, labels, negatives=0.7, batch_size=5, epochs=2)
    for k in range(K):
        y = np.where(labels == k, 1.0, -1.0)
        share = min(1.0, 0.7 * (y > 0).sum() / (y < 0).sum())
        best = reference.best_bias(
            X.astype(float) @ np.asarray(fit.model.coef[k], float), y, np.where(y > 0, 1.0, share)
        )
        np.testing.assert_allclose(fit.model.intercept[k], best, rtol=1e-4, atol=1e-4)


def test_a_label_without_rows_and_a_lost_ranker_leave_the_others_alone() -> None:
    X, labels, _ = data(11)
    lam = np.array([LAM, 1e-38, LAM])
    for kind in ("unregularized", "batch"):
        solver = js.Pegasos(lam, bias=kind)
        with pytest.warns(RuntimeWarning, match="1 of 3 rankers left"):
            fit = js.fit_one_vs_rest(
                solver, 1e4 * X.astype("float32"), labels, batch_size=6, epochs=2
            )
        assert np.isfinite(fit.model.intercept).tolist() == [True, False, True]
    one_class = js.fit_one_vs_rest(
        js.Pegasos(LAM, bias="batch"), X, labels, classes=np.arange(K + 1), batch_size=6
    )
    assert float(one_class.model.intercept[K]) <= -1 and (one_class.model.coef[K] == 0).all()


@pytest.mark.parametrize("lam", [1e-9, 1e-3, 1e9])
@pytest.mark.parametrize("kind", KINDS)
def test_unscaled_rows_give_finite_scores_with_every_bias_case_058(kind: str, lam: float) -> None:
    heights = np.array([170, 180, 190, 120, 130, 140], FLOAT)[:, None]
    tall = np.array([1, 1, 1, -1, -1, -1])
    k = 3 if kind == "batch" else 1
    fit = js.fit(js.Pegasos(lam, bias=kind), heights, tall, epochs=100, batch_size=k)
    assert np.isfinite(fit.model.decision_function(heights)).all()
    assert np.isfinite(fit.history["progressive_loss"]).all()
    if lam == 1e-3:
        rows = (heights - 130) / heights.std()  # scaled, and still off the middle
        fit = js.fit(js.Pegasos(lam, bias=kind), rows, tall, epochs=300, batch_size=k)
        np.testing.assert_array_equal(fit.model.predict(rows), tall)


# ---- refusals ------------------------------------------------------------------------------------
REFUSED: list[tuple[str, Any, dict[str, Any]]] = [
    (r"batch_size must be at least 2 for Pegasos with bias='batch', got 1",
     js.Pegasos(0.1, bias="batch"), {}),
    (r"batch_size must be at least 2 .*bias='batch'", js.Averaged(js.Pegasos(0.1, bias="batch")),
     {}),
    (r"batch_size must be 1 for Pegasos, got 4", js.Pegasos(0.1, bias="search"),
     {"batch_size": 4}),
    (r"intercept must be 'none' for Pegasos with bias='unregularized', got 'column'",
     js.Pegasos(0.1, bias="unregularized"), {"intercept": "column"}),
    (r"bias='batch' must come with loss Hinge, got Logistic",
     js.Pegasos(0.1, js.losses.Logistic(), bias="batch"), {"batch_size": 4}),
    (r"bias='search' must come with loss Hinge, got Squared",
     js.Pegasos(0.1, js.losses.Squared(), bias="search"), {}),
    (r"project must be False for bias='search'", js.Pegasos(0.1, project=True, bias="search"), {}),
    (r"solver.bias must be one of 'none', 'unregularized'",
     js.Averaged(js.Pegasos(0.1, bias="column")), {}),
    (r"solver must not search for its bias", js.Averaged(js.Pegasos(0.1, bias="search")), {}),
]  # fmt: skip


@pytest.mark.parametrize(("match", "solver", "options"), REFUSED)
def test_what_does_not_fit_is_refused_by_name(match: str, solver: Any, options: Any) -> None:
    X, labels, _ = data()
    with pytest.raises(ValueError, match=match):
        js.fit(solver, X, labels == 0, **options)
    if "search" in match and "Averaged" not in repr(solver):
        with pytest.raises(ValueError, match="negatives must be None for Pegasos"):
            js.fit_one_vs_rest(js.Pegasos(0.1, bias="search"), X, labels, negatives=1.0)
