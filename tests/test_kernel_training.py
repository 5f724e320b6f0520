"""Training through a kernel: the rounds by the letter, and what must not matter to them."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import members
import numpy as np
import pytest
import scipy.sparse
from contracts.linear_solvers import ShrinkingSGD
from jax.sharding import Mesh
from references import kernels as reference
from references.kernel_pegasos import kernel_pegasos
from tolerances import assert_bitwise, assert_close

import jaxsolvers as js
from jaxsolvers import kernels
from jaxsolvers.engine import dense_slabs, gram_slabs, tile
from jaxsolvers.features import Gram
from jaxsolvers.protocol import Batch, Problem

FLOAT = np.dtype(jnp.result_type(float))
N, D, K = 60, 4, 20
RNG = np.random.default_rng(7)
X = np.asarray(RNG.normal(size=(N, D)) * (RNG.random((N, D)) < 0.8), FLOAT)
Y = np.where(X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=N) > 0, 1, -1)
LABELS = RNG.integers(K, size=N)
WEIGHT = RNG.uniform(0.3, 2.0, N) * (RNG.random(N) < 0.85)
RBF = js.kernels.RBF(0.4)
LOGISTIC = js.losses.Logistic()
VALUES = reference.matrix("rbf", X, X, gamma=0.4)
SPARSE = scipy.sparse.csr_matrix(X)


def scores(fit: Any, rows: Any = X) -> np.ndarray:
    return np.asarray(fit.model.decision_function(rows))


def coefficients(fit: Any) -> np.ndarray:
    """Of all training rows, (n,) or (K, n)."""
    model = fit.model
    whole = np.zeros((*model.dual_coef.shape[:-1], model.n_train), model.dual_coef.dtype)
    whole[..., model.support] = model.dual_coef
    return whole


# ---- the rounds ----------------------------------------------------------------------------------
@jax.jit
def rounds(solver: Any, state: Any, batches: Batch) -> Any:
    def one_round(state: Any, batch: Batch) -> Any:
        state, info = solver.update(state, batch)
        return state, (state.vector, solver.weights(state), state.scalars.t, info.loss)

    return jax.lax.scan(one_round, state, batches)[1]


@members.each(members.losses(), "loss")
def test_every_round_is_that_of_the_paper(loss: Any) -> None:
    name, parameter = members.reference_loss(loss)
    k, rng = 3, np.random.default_rng(1)
    y = np.asarray(members.targets(loss, rng, N), FLOAT).astype(float)
    weight = WEIGHT.astype(FLOAT).astype(float)
    index = np.array([rng.choice(N, k, replace=False) for _ in range(20)], np.int32)
    weight[index[1]] = 0  # a round without a live row
    run = kernel_pegasos(
        VALUES, y, index.tolist(), lam=0.6, loss=name, parameter=parameter, weights=weight
    )
    own = js.KernelPegasos(0.6, RBF, loss).cast(FLOAT)
    values = jnp.asarray(VALUES, FLOAT)
    layout = Gram(values[index], jnp.ones(index.shape, FLOAT), jnp.asarray(index))
    given = (jnp.asarray(a[index], FLOAT) for a in (y, weight))
    state = own.init(Problem((N,), N), FLOAT)
    found = rounds(own, state, Batch(layout, *given, jnp.asarray(index)))
    expected = [np.array(part) for part in (run.beta, run.alpha, run.t, run.loss)]
    expected[2] = expected[2].astype(np.int32)
    assert_close(found, tuple(expected), "reference")


@pytest.mark.parametrize("k", [1, 7])
@pytest.mark.parametrize("loss", [js.losses.Hinge(), LOGISTIC], ids=members.label)
def test_fit_is_the_loop_of_the_paper(loss: Any, k: int) -> None:
    batches = [range(i, min(i + k, N)) for i in range(0, N, k)] * 3
    weight = WEIGHT / WEIGHT[WEIGHT > 0].mean()
    name = members.reference_loss(loss)[0]
    run = kernel_pegasos(VALUES, Y, batches, lam=0.05, loss=name, weights=weight)
    options = {"epochs": 3, "order": "cyclic", "sample_weight": WEIGHT, "batch_size": k}
    fit = js.fit(js.KernelPegasos(0.05, RBF, loss), X, Y, **options)
    assert_close(coefficients(fit), run.alpha[-1], "run")
    assert_close(scores(fit), VALUES @ run.alpha[-1], "run")
    np.testing.assert_array_equal(fit.model.support, np.flatnonzero(run.alpha[-1]))


PRIMAL = [
    (js.Pegasos(0.05, LOGISTIC), (js.fit, Y)),
    (js.Averaged(js.Pegasos(0.05, project=True), kind="polynomial"), (js.fit, Y)),
    (js.Averaged(js.Pegasos(0.05, LOGISTIC)), (js.fit_one_vs_rest, LABELS)),
    (js.SDCA(0.05), (js.fit_one_vs_rest, LABELS)),
    (ShrinkingSGD(0.3, 0.4, project=True), (js.fit_one_vs_rest, LABELS)),
]


@pytest.mark.parametrize(("solver", "given"), PRIMAL)
def test_a_linear_kernel_scores_like_the_features(solver: Any, given: Any) -> None:
    """The column of ones of the features makes every kernel value 1 larger."""
    fit, y = given
    options = {"epochs": 2, "sample_weight": WEIGHT, "intercept": "column"}
    primal = fit(solver, X, y, **options)
    dual = fit(js.Kernelized(solver, js.kernels.Linear()), X, y, **options)
    assert_close(scores(dual), scores(primal), "run")
    intercept = np.asarray(primal.model.intercept)
    scale = np.abs(scores(primal)).max()
    assert_close(np.asarray(dual.model.intercept), intercept, "run", scale=scale)
    for name in ("progressive_loss", "mistakes"):
        np.testing.assert_allclose(dual.history[name], primal.history[name], rtol=1e-4)


def test_a_bias_feature_adds_one_to_a_kernel_case_056() -> None:
    with_bias = np.array([[1.0, 1.0], [2.0, 1.0]], FLOAT)
    assert float(js.kernels.Linear().matrix(with_bias)[0, 1]) == 3.0
    solver = js.KernelPegasos(0.1, js.kernels.Linear(), LOGISTIC)
    column = js.fit(solver, X, Y, epochs=3, intercept="column")
    feature = js.fit(solver, np.hstack([X, np.ones((N, 1), FLOAT)]), Y, epochs=3)
    primal = js.fit(js.Pegasos(0.1, LOGISTIC), X, Y, epochs=3, intercept="column")
    ones = np.hstack([X, np.ones((N, 1), FLOAT)])
    for ours in (scores(column), scores(feature, ones)):
        np.testing.assert_allclose(ours, scores(primal), atol=1e-5)
    np.testing.assert_allclose(column.model.intercept, primal.model.intercept, atol=1e-5)


# ---- what must not matter ------------------------------------------------------------------------
OVR = {"epochs": 2, "sample_weight": WEIGHT, "intercept": "column", "classes": np.arange(K)}
SOLVER = js.KernelPegasos(0.02, RBF, LOGISTIC)


@pytest.fixture(scope="module")
def whole() -> Any:
    return js.fit_one_vs_rest(SOLVER, X, LABELS, **OVR)


def test_one_vs_rest_is_each_class_alone(whole: Any) -> None:
    assert whole.model.dual_coef.shape == (K, np.count_nonzero(WEIGHT))
    options = {name: value for name, value in OVR.items() if name != "classes"}
    for k in (0, 7):
        alone = js.fit(SOLVER, X, k == LABELS, **options)
        assert_close(coefficients(alone), coefficients(whole)[k], "run")
        assert_close(scores(alone), scores(whole)[:, k], "run")


@pytest.mark.parametrize("change", ["rows", "tiles", "budget", "sparse", "device", "blocks"])
def test_tiles_budget_and_storage_do_not_matter(
    whole: Any, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: Any = X
    options: dict[str, Any] = {}
    if change == "blocks":
        options = {"block_size": 16}
    if change in ("rows", "tiles"):
        monkeypatch.setattr(kernels, "TILE_ROWS", 16)
    if change in ("tiles", "budget", "sparse"):
        monkeypatch.setattr(gram_slabs, "GRAM_BYTES", 0)
        monkeypatch.setattr(dense_slabs, "SLAB_BYTES", 1)
    if change in ("tiles", "sparse"):
        options = {"block_size": 16}
        rows = SPARSE
    if change == "device":
        rows = jnp.asarray(X)
    changed = js.fit_one_vs_rest(SOLVER, rows, LABELS, **OVR, **options)
    assert_close(coefficients(changed), coefficients(whole), "run")
    assert_close(scores(changed, rows), scores(whole), "run")


def test_precomputed_values_train_and_predict_like_computed_ones(whole: Any) -> None:
    solver = dataclasses.replace(SOLVER, kernel=js.kernels.Precomputed())
    values, test = RBF.matrix(X), RBF.matrix(X[:9] + 1, X)
    for matrix in (np.asarray(values), values, scipy.sparse.csr_matrix(np.asarray(values))):
        fit = js.fit_one_vs_rest(solver, matrix, LABELS, **OVR)
        assert_close(coefficients(fit), coefficients(whole), "run")
        assert_close(scores(fit, test), scores(whole, X[:9] + 1), "run")
        assert fit.model.support_vectors is None


def test_a_function_trains_like_the_kernel_it_computes(whole: Any) -> None:
    def rbf(A: Any, B: Any) -> Any:
        A, B = np.asarray(A, float), np.asarray(B, float)
        assert np.any(A != 0, axis=1).all()  # no row that is not the user's
        return np.exp(-0.4 * ((A[:, None] - B[None]) ** 2).sum(axis=-1))

    assert np.any(X != 0, axis=1).all()
    for budget in (1 << 30, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gram_slabs, "GRAM_BYTES", budget)
            fit = js.fit_one_vs_rest(dataclasses.replace(SOLVER, kernel=rbf), X, LABELS, **OVR)
        assert_close(coefficients(fit), coefficients(whole), "run")
        assert_close(scores(fit, X[:5]), scores(whole)[:5], "run")


def test_chunks_devices_and_split_runs_give_the_same_bits() -> None:
    classes = np.arange(1100)
    mesh = Mesh(np.array(jax.devices()), ("rankers",))

    def run(**options: Any) -> Any:
        solver = js.KernelPegasos(0.02, RBF)
        return js.fit_one_vs_rest(solver, X, LABELS, classes=classes, **options)

    first = run()
    for options in ({"chunk_size": 512}, {"mesh": mesh}):
        other = run(**options)
        assert_bitwise(coefficients(other), coefficients(first), name=str(options))
    two = run(epochs=2)
    more = run(state=first.state)
    assert_bitwise(coefficients(more), coefficients(two))


def test_rows_of_weight_zero_are_left_out_even_where_their_values_overflow() -> None:
    rows, weight = X.copy(), np.ones(N)
    rows[5], weight[5] = 1e30 if np.float32 == FLOAT else 1e200, 0
    solver = js.KernelPegasos(0.1, js.kernels.Polynomial(3))
    with_it = js.fit(solver, rows, Y, order="cyclic", sample_weight=weight)
    live = weight > 0
    without = js.fit(solver, rows[live], Y[live], order="cyclic")
    assert_close(coefficients(with_it)[live], coefficients(without), "run")
    assert 5 not in with_it.model.support


def test_a_new_number_compiles_nothing() -> None:
    js.fit(js.KernelPegasos(0.1, js.kernels.RBF(0.1)), X, Y)
    before = tile.advance._cache_size(), kernels._values._cache_size()
    js.fit(js.KernelPegasos(0.2, js.kernels.RBF(0.3)), X, Y)
    assert (tile.advance._cache_size(), kernels._values._cache_size()) == before


def test_regression_and_averages_around_the_front() -> None:
    rows = np.asarray(np.linspace(-3, 3, 120)[:, None], FLOAT)
    target = np.sin(2 * rows[:, 0])
    absolute, rbf = js.losses.Absolute(), js.kernels.RBF(1.0)
    solver = js.Averaged(js.KernelPegasos(1e-3, rbf, absolute), start=600)
    fit = js.fit(solver, rows, target, epochs=20)
    assert fit.model.classes is None
    assert np.abs(fit.model.predict(rows) - target).mean() < 0.1
    same = js.Kernelized(js.Averaged(js.Pegasos(1e-3, absolute), start=600), rbf)
    assert_bitwise(coefficients(js.fit(same, rows, target, epochs=20)), coefficients(fit))


# ---- bad input -----------------------------------------------------------------------------------
def front(kernel: Any = RBF, X: Any = X, **options: Any) -> Any:
    return js.fit(js.KernelPegasos(0.1, kernel), X, np.arange(len(X)) % 2, **options)


def test_what_a_gram_matrix_must_hold_is_said_in_words_case_173() -> None:
    with pytest.raises(
        ValueError, match=r"^X must be the square matrix \(n, n\).*got shape \(2, 3\)"
    ):
        front(js.kernels.Precomputed(), np.ones((2, 3), FLOAT))
    model = front(js.kernels.Precomputed(), np.eye(4, dtype=FLOAT)).model
    words = r"of the rows to predict \(its rows\) with the 4 training rows \(its columns\)"
    with pytest.raises(ValueError, match=words + r", \(3, 4\); got shape \(3, 3\)"):
        model.predict(np.eye(3, dtype=FLOAT))
    rows = [[0, 1], [1, 0], [1, 1], [2, 1]]
    fit = js.fit(js.KernelPegasos(0.1, lambda A, B: A @ B.T), rows, [0, 1, 1, 0], epochs=2)
    assert fit.model.predict(rows).shape == (4,)


def test_a_gram_matrix_of_the_wrong_height_is_refused_case_172() -> None:
    model = front(js.kernels.Precomputed(), np.eye(6, dtype=FLOAT)).model
    with pytest.raises(
        ValueError, match=r"^X must be the matrix of kernel values .*\(3, 6\); got shape \(3, 1\)"
    ):
        model.decision_function(np.ones((3, 1), FLOAT))


@pytest.mark.parametrize(
    ("match", "bad"),
    [
        (r"^kernel must be a Kernel object", lambda: front("rbf")),
        (r"^kernel\.gamma must be a finite number > 0", lambda: front(js.kernels.RBF(0.0))),
        (r"^kernel\.gamma must be a single number", lambda: front(js.kernels.RBF(np.ones(2)))),
        (
            r"^kernel\.gamma must be a single number: all rankers share",
            lambda: js.fit_one_vs_rest(
                js.KernelPegasos(0.1, js.kernels.RBF(np.ones(K))), X, LABELS, classes=range(K)
            ),
        ),
        (
            r"^solver must be a linear-step solver without a kernel",
            lambda: js.fit(js.Kernelized(js.AdaGradRDA(0.1), RBF), X, Y),
        ),
        (
            r"^solver must be a linear-step solver without a kernel",
            lambda: js.fit(js.Kernelized(js.KernelPegasos(0.1, RBF), RBF), X, Y),
        ),
        (
            r"^X must be an array or a sparse matrix for a kernel.*got a source",
            lambda: js.fit(js.KernelPegasos(0.1, RBF), js.data.ArraySource(X, Y)),
        ),
        (
            r"^state was made with n_features = 60, got 50",
            lambda: front(X=X[:50], state=front().state),
        ),
        (
            r"^state was made with solver\.kernel\.gamma",
            lambda: front(js.kernels.RBF(0.5), state=front().state),
        ),
        (
            r"^kernel must be a function .* it returned shape",
            lambda: front(lambda A, B: np.ones((1, 1))),
        ),
        (
            r"^the kernel's values must be finite, got nan",
            lambda: front(lambda A, B: np.full((len(A), len(B)), np.nan)),
        ),
    ],
)
def test_bad_input_is_named(match: str, bad: Any) -> None:
    with pytest.raises(ValueError, match=match):
        bad()
