"""Kernel Pegasos within a budget: each round by the letter, and what must not matter to it."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import members
import numpy as np
import pytest
import scipy.sparse
from jax.sharding import Mesh
from references import budgeted_pegasos as reference
from references.kernels import kernel
from tolerances import assert_bitwise, assert_close

import jaxsolvers as js
from jaxsolvers.features import Dense
from jaxsolvers.protocol import Batch, Problem
from jaxsolvers.solvers.budgeted_pegasos import merged_coefficient, ridge_of

FLOAT = np.dtype(jnp.result_type(float))
N, D, K, ROUNDS, BUDGET = 40, 3, 12, 60, 6
CLEAR = 1e-4  # of the reference's choices, so that float32 makes the same ones
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, D)).astype(FLOAT)
Y = np.where(X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=N) > 0, 1, -1)
LABELS = RNG.integers(K, size=N)
WEIGHT = RNG.uniform(0.3, 2.0, N) * (RNG.random(N) < 0.85)
RBF = js.kernels.RBF(0.4)
SPARSE = scipy.sparse.csr_matrix(X * (RNG.random((N, D)) < 0.6))
KINDS = ("merge", "project", "remove")
PAIRS = {
    "rbf": (RBF, {"gamma": 0.4}),
    "laplacian": (js.kernels.Laplacian(0.4), {"gamma": 0.4}),
    "polynomial": (
        js.kernels.Polynomial(2, 0.5, 1.0),
        {"degree": 2, "gamma": 0.5, "coef0": 1.0},
    ),
}
HINGE, LOGISTIC = js.losses.Hinge(), js.losses.Logistic()


def run_of(name: str, maintenance: str, loss: Any, rows: Any, data: Any, **options: Any) -> Any:
    """The reference's run over (X, y, weight)."""
    known, parameter = members.reference_loss(loss)
    x, y, weight = (np.asarray(a, FLOAT).astype(float) for a in data)
    ridge = float(ridge_of(FLOAT))
    pair = partial(kernel, name, **PAIRS[name][1])
    return reference.budgeted_pegasos(
        x, y, rows, kernel=pair, maintenance=maintenance, loss=known, parameter=parameter,
        weights=weight, ridge=ridge, **options,
    )  # fmt: skip


# ---- the rounds ----------------------------------------------------------------------------------
@jax.jit
def rounds(solver: Any, rows: Batch) -> Any:
    def one_round(state: Any, batch: Batch) -> Any:
        state, info = solver.update(state, batch)
        weights = solver.weights(state)
        return state, (state.t, weights[:, 1:], state.beta, info)

    return jax.lax.scan(one_round, solver.init(Problem((D,), N), FLOAT), rows)[1]


@pytest.mark.parametrize(
    ("maintenance", "name", "loss"),
    [
        ("merge", "rbf", HINGE),
        ("merge", "rbf", LOGISTIC),
        ("merge", "rbf", js.losses.Huber(0.7)),
        ("project", "rbf", HINGE),
        ("project", "laplacian", LOGISTIC),
        ("project", "polynomial", js.losses.SmoothedHinge(0.5)),
        ("remove", "rbf", js.losses.EpsilonInsensitive(0.1)),
        ("remove", "polynomial", HINGE),
    ],
    ids=lambda value: value if isinstance(value, str) else members.label(value),
)
def test_every_round_is_that_of_the_paper(maintenance: str, name: str, loss: Any) -> None:
    """Rows come again, some weigh 0; in most rounds a vector goes."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        y = members.targets(loss, rng, N)
        weight = rng.uniform(0.3, 2.0, N) * (rng.random(N) < 0.85)
        rows = np.concatenate([rng.permutation(N), rng.permutation(N)])[:ROUNDS]
        data = X, y, weight
        run = run_of(name, maintenance, loss, rows.tolist(), data, lam=0.6, budget=BUDGET)
        if run.doubt > CLEAR and run.full > 15:
            break
    else:
        raise AssertionError("no clear stream")
    solver = js.BudgetedPegasos(0.6, PAIRS[name][0], BUDGET, maintenance, loss).cast(FLOAT)
    x, y, weight = (jnp.asarray(a[rows], FLOAT)[:, None] for a in data)
    index = jnp.asarray(rows, jnp.int32)[:, None]
    t, vectors, beta, info = rounds(solver, Batch(Dense(x), y, weight, index))
    np.testing.assert_array_equal(t, run.t)
    found = (np.asarray(vectors), np.asarray(beta), np.asarray(info.loss))
    expected = (np.array(run.vectors), np.array(run.beta), np.array(run.loss))
    assert_close(found, expected, "reference")
    np.testing.assert_array_equal(info.violations, run.violations)
    assert np.asarray(info.finite).all()


def test_the_merged_coefficient_is_the_largest_on_the_line() -> None:
    """1,000 pairs against a line search from both ends, two maxima and ties among them."""
    rng = np.random.default_rng(0)
    first, second = np.exp(rng.uniform(-4, 4, (2, 1000)))
    second[::10] = first[::10]
    kappa = np.exp(-rng.uniform(0, 9, 1000))
    kappa[:20] = 1 - 1e-6
    given = [jnp.asarray(a, FLOAT)[:, None] for a in (first, second, kappa)]
    share, value = jax.jit(jax.vmap(merged_coefficient))(given[0][:, 0], *given[1:])
    exact = [np.asarray(a, float)[:, 0] for a in given]
    best = [reference.best_share(*pair) for pair in zip(*exact, strict=True)]
    largest = [reference.along(h, *pair) for h, *pair in zip(best, *exact, strict=True)]
    assert_close(np.asarray(value)[:, 0], np.array(largest), "reference")
    # Where two points are equally good to the last digit, which one is no matter.
    reached = [
        reference.along(float(h), *pair) for h, *pair in zip(share[:, 0], *exact, strict=True)
    ]
    np.testing.assert_allclose(reached, largest, rtol=10 * np.finfo(FLOAT).eps)
    flat = np.isclose(exact[0], exact[1]) & (exact[2] > np.exp(-2.2))
    shares = np.asarray(share)[:, 0]
    np.testing.assert_allclose(shares[~flat], np.array(best)[~flat], atol=2e-3)


@pytest.mark.parametrize("gamma", [0.02, 0.5])
def test_the_root_of_the_inverse_stays_one(gamma: float) -> None:
    """After thousands of changes, among vectors that nearly depend on each other."""
    rng = np.random.default_rng(1)
    rows = np.asarray(rng.normal(size=(4000, 2)), FLOAT)
    y = np.where(rng.random(4000) < 0.5, 1, -1)
    solver = js.BudgetedPegasos(0.01, js.kernels.RBF(gamma), 16, "project")
    state = js.fit(solver, rows, y).state.solver_state
    vectors, root = np.asarray(state.vectors, float), np.asarray(state.root, float)
    values = np.exp(-gamma * ((vectors[:, None] - vectors[None]) ** 2).sum(axis=-1))
    values += float(ridge_of(FLOAT)) * np.eye(16)
    error = np.abs(root @ values @ root.T - np.eye(16)).max()
    # What up to 16 rounds rounded, each enlarged by what K is conditioned like.
    assert error < 4 * 16 * np.linalg.cond(values) * float(np.finfo(FLOAT).eps)


# ---- whole runs ----------------------------------------------------------------------------------
def scores(fit: Any, rows: Any = X) -> np.ndarray:
    return np.asarray(fit.model.decision_function(rows))


@pytest.mark.parametrize("maintenance", KINDS)
def test_with_room_for_every_violator_it_is_kernel_pegasos(maintenance: str) -> None:
    options: dict[str, Any] = {"epochs": 3, "sample_weight": WEIGHT, "classes": np.arange(K)}
    lam = np.geomspace(0.01, 0.5, K)
    whole = js.fit_one_vs_rest(js.KernelPegasos(lam, RBF), X, LABELS, **options)
    solver = js.BudgetedPegasos(lam, RBF, N, maintenance)
    ours = js.fit_one_vs_rest(solver, X, LABELS, **options)
    assert_close(scores(ours), scores(whole), "run")
    np.testing.assert_array_equal(ours.history["violations"], whole.history["violations"])
    assert ours.model.dual_coef.shape == whole.model.dual_coef.shape
    norms = np.asarray(whole.model.square_norms())
    assert_close(np.asarray(ours.model.square_norms()), norms, "run")


@pytest.mark.parametrize("maintenance", KINDS)
def test_fit_is_the_loop_of_the_paper_for_every_ranker(maintenance: str) -> None:
    """Each ranker with its own vectors, strength and weight of positives."""
    factor, lam = np.linspace(0.5, 3.0, K), np.geomspace(0.05, 0.5, K)
    options: dict[str, Any] = {"epochs": 2, "order": "cyclic", "sample_weight": WEIGHT}
    solver = js.BudgetedPegasos(lam, RBF, BUDGET, maintenance)
    fit = js.fit_one_vs_rest(
        solver, X, LABELS, classes=np.arange(K), positive_weight=factor, **options
    )
    rows, compared = [*range(N)] * 2, 0
    for c in range(K):
        y = np.where(c == LABELS, 1.0, -1.0)
        weight = WEIGHT * np.where(y > 0, factor[c], 1)
        weight /= weight[weight > 0].mean()
        run = run_of("rbf", maintenance, HINGE, rows, (X, y, weight), lam=lam[c], budget=BUDGET)
        if run.doubt < CLEAR:
            continue  # float32 may choose otherwise
        compared += run.full > 5
        values = np.array(
            [[kernel("rbf", x, v, gamma=0.4) for v in run.vectors[-1]] for x in X.astype(float)]
        )
        expected = values @ run.beta[-1] / (lam[c] * run.t[-1])
        assert_close(scores(fit)[:, c], expected, "run", name=f"ranker {c}")
        assert np.count_nonzero(fit.model.dual_coef[c]) <= BUDGET
    assert compared >= 3


@pytest.mark.parametrize("maintenance", ["merge", "project"])
def test_chunks_devices_and_split_runs_give_the_same_bits(maintenance: str) -> None:
    solver = js.BudgetedPegasos(0.02, RBF, 3, maintenance)
    run = partial(js.fit_one_vs_rest, solver, X, LABELS, classes=np.arange(600))
    first = run()
    mesh = Mesh(np.array(jax.devices()[:2]), ("rankers",))
    options = {"chunk_size": 512} if maintenance == "merge" else {"mesh": mesh}
    assert_bitwise(run(**options).model.dual_coef, first.model.dual_coef)
    more = run(state=first.state)
    assert_bitwise(run(epochs=2).model.dual_coef, more.model.dual_coef)


def test_sparse_rows_and_sources_train_like_dense_rows(tmp_path: Path) -> None:
    dense = SPARSE.toarray()
    solver = js.BudgetedPegasos(0.05, RBF, BUDGET)
    fit = partial(js.fit, solver, epochs=2, order="cyclic")
    whole = fit(dense, Y)
    assert_bitwise(scores(fit(SPARSE, Y), dense), scores(whole, dense))
    source = js.data.ArraySource(dense, Y)
    assert_bitwise(scores(fit(source), dense), scores(whole, dense))
    model = whole.model
    assert model.support is None and model.support_vectors.shape[0] <= BUDGET
    model.save(tmp_path / "model.npz")
    loaded = js.load(tmp_path / "model.npz")
    assert_bitwise(loaded.decision_function(dense), model.decision_function(dense))
    measured = js.metrics.objective(solver, model, dense, Y)
    slack = np.maximum(0, 1 - Y * scores(whole, dense)).mean()
    expected = 0.025 * float(model.square_norms()) + slack
    np.testing.assert_allclose(measured, expected, rtol=1e-5)


def test_a_row_without_a_violation_leaves_a_model_that_says_no() -> None:
    fit = js.fit(js.BudgetedPegasos(0.1, RBF, 2, loss=js.losses.Absolute()), X, 0 * X[:, 0])
    assert fit.model.dual_coef.tolist() == [0.0] and not np.any(scores(fit))


@pytest.mark.parametrize("maintenance", ["project", "remove"])
def test_vectors_that_depend_on_each_other_and_rows_of_zeros(maintenance: str) -> None:
    """Of a linear kernel more than D vectors always do; w is that of Pegasos nevertheless."""
    rows = X.copy()
    rows[::7] = 0
    solver = js.BudgetedPegasos(0.1, js.kernels.Linear(), 2 * D, maintenance)
    fit = js.fit(solver, rows, Y, epochs=20)
    assert fit.state.alive and np.all(scores(fit, 0 * X[:2]) == 0)
    if maintenance == "project":
        whole = js.fit(js.Pegasos(0.1), rows, Y, epochs=20)
        coef = np.asarray(fit.model.dual_coef) @ np.asarray(fit.model.support_vectors)
        np.testing.assert_allclose(coef, whole.model.coef, atol=0.02)


def test_numbers_never_make_a_new_program() -> None:
    from jaxsolvers.engine import tile

    fit = lambda lam, gamma: js.fit(  # noqa: E731
        js.BudgetedPegasos(lam, js.kernels.RBF(gamma), 2), X, Y
    )
    fit(0.1, 0.2)
    before = tile.advance._cache_size()
    fit(0.2, 0.7)
    assert tile.advance._cache_size() == before


def test_the_square_of_the_class_is_learnt_within_the_budget() -> None:
    """A ring around a disc; the budget is a tenth of the vectors that Pegasos keeps."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(600, 2)).astype(FLOAT)
    y = np.where((rows**2).sum(axis=1) > 1.4, 1, -1)
    errors = {}
    for maintenance in KINDS:
        solver = js.BudgetedPegasos(1e-3, js.kernels.RBF(1.0), 20, maintenance)
        fit = js.fit(solver, rows[:400], y[:400], epochs=5)
        errors[maintenance] = np.mean(fit.model.predict(rows[400:]) != y[400:])
    assert errors["merge"] < 0.1 and errors["project"] < 0.1, errors


# ---- bad input -----------------------------------------------------------------------------------
GOOD = js.BudgetedPegasos(0.1, RBF, 3)


@pytest.mark.parametrize(
    ("match", "changed", "options"),
    [
        (r"^budget must be an integer >= 1, got 0", {"budget": 0}, {}),
        (r"^budget must be an integer >= 1, got 2\.5", {"budget": 2.5}, {}),
        (r"^lam must be a finite number > 0", {"lam": 0.0}, {}),
        (r"^maintenance must be one of 'merge', 'project', 'remove'", {"maintenance": "drop"}, {}),
        (
            r"^maintenance must be 'project' or 'remove' for the kernel Laplacian",
            {"kernel": js.kernels.Laplacian(1.0)},
            {},
        ),
        (
            r"^kernel must be computed from rows.*got Precomputed",
            {"kernel": js.kernels.Precomputed(), "maintenance": "remove"},
            {},
        ),
        (r"^kernel must be a Kernel object", {"kernel": lambda A, B: A @ B.T}, {}),
        (r"^kernel\.gamma must be a single number", {"kernel": js.kernels.RBF(np.ones(2))}, {}),
        (r"^batch_size must be 1 for BudgetedPegasos, got 2", {}, {"batch_size": 2}),
        (r'^intercept must be "none" for BudgetedPegasos', {}, {"intercept": "column"}),
        (r"^record must hold 'theory' alone", {}, {"record": ("objective",)}),
        (r"^tol must be None for BudgetedPegasos", {}, {"tol": 0.1}),
        (r"^eval_set must be None for BudgetedPegasos", {}, {"eval_set": (X, Y)}),
    ],
)
def test_bad_input_is_named(match: str, changed: dict[str, Any], options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=match):
        js.fit(dataclasses.replace(GOOD, **changed), X, Y, **options)


@pytest.mark.parametrize("wrap", [js.Averaged, lambda solver: js.Kernelized(solver, RBF)])
def test_no_wrapper_takes_vectors_that_change(wrap: Any) -> None:
    with pytest.raises(ValueError, match=r"^solver must (be|have).*got BudgetedPegasos"):
        js.fit(wrap(GOOD), X, Y)
