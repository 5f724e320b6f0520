"""Laws of training on sparse rows: the same as on dense ones, whatever the rows are."""

from __future__ import annotations

from typing import Any

import jax
import members
import numpy as np
import pytest
import scipy.sparse
from conftest import QUICK
from contracts.linear_solvers import ShrinkingSGD
from contracts.streams import FLOAT
from jax.sharding import Mesh
from sparse_rows import dense, fuzzed
from tolerances import assert_bitwise, assert_close

import jaxsolvers as js
from jaxsolvers.engine import restricted, row_slabs, tile
from jaxsolvers.protocol import Problem, Solver

N, D, K = 70, 24, 20
every_solver = members.every_solver(
    *(
        # The other form has no debts: each feature follows from its own sums.
        js.AdaGradFOBOS(0.3, regularizer=regularizer)
        for regularizer in members.regularizers()
        if regularizer.separable
    ),
    # Those that go by dense slabs.
    js.Averaged(js.Pegasos(0.1)),
    js.FullAdaGradFOBOS(0.3, block_size=3, regularizer=js.regularizers.SquaredL2(0.1)),
    where=members.lazy,
)


def problem(seed: int = 0) -> tuple[Any, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = fuzzed(N, D, seed, FLOAT)
    labels = rng.permutation(np.arange(N) % K)
    return X, labels, rng.uniform(0.2, 2.0, N) * (rng.random(N) < 0.8)


def assert_same(sparse: js.Fit, whole: js.Fit, law: str = "run") -> None:
    """Two fits agree: in coefficients, intercepts and what they report."""
    assert_close(sparse.model.coef, whole.model.coef, law, scale=1.0, name="coef")
    assert_close(sparse.model.intercept, whole.model.intercept, law, scale=1.0, name="intercept")
    # A residual of exactly 0 is one of 1e-17 in another order of the sums: no count to compare.
    counts = ("mistakes", "violations") if sparse.model.classes is not None else ()
    for name in ("progressive_loss", *counts):
        ours, theirs = sparse.history[name].astype(FLOAT), whole.history[name].astype(FLOAT)
        assert_close(ours, theirs, law, name=name)


def run(solver: Solver, X: Any, labels: Any, k: int, **settings: Any) -> js.Fit:
    """Two epochs, a stop, and one more from the state."""
    regression = not solver.loss.classification
    if regression:
        y = np.where(labels < K // 2, -0.4, 0.7)
        once = js.fit(solver, X, y, epochs=2, batch_size=k, **settings)
        return js.fit(solver, X, y, state=once.state, sample_weight=settings.get("sample_weight"))
    once = js.fit_one_vs_rest(solver, X, labels, epochs=2, batch_size=k, **settings)
    weight = settings.get("sample_weight")
    return js.fit_one_vs_rest(solver, X, labels, state=once.state, sample_weight=weight)


@every_solver
def test_sparse_rows_train_like_dense_ones(solver: Solver) -> None:
    """Empty rows, unseen columns, repeated and unsorted ones, weights of 0, a warm start."""
    check_dense(solver, members.rows_per_round(solver, 16), members.intercept(solver))


@members.every_solver(where=members.lazy, few=members.one_of_each)
def test_sparse_rows_train_like_dense_ones_row_by_row(solver: Solver) -> None:
    check_dense(solver, members.rows_per_round(solver, 1), "none")


def check_dense(solver: Solver, k: int, column: str) -> None:
    X, labels, weight = problem()
    settings = {"sample_weight": weight, "intercept": column}
    assert_same(run(solver, X, labels, k, **settings), run(solver, dense(X), labels, k, **settings))


@members.every_solver(where=members.lazy)
def test_one_ranker_on_sparse_rows_is_one_on_dense_ones(solver: Solver) -> None:
    X, labels, _ = problem(1)
    y = np.where(labels < K // 2, -0.6, 1.0)  # labels or numbers, as the loss takes them
    settings: dict[str, Any] = {"epochs": 2, "order": "uniform"}
    settings |= {"intercept": members.intercept(solver)}
    settings |= {"batch_size": members.rows_per_round(solver, 1)}
    sparse, whole = js.fit(solver, X, y, **settings), js.fit(solver, dense(X), y, **settings)
    assert_same(sparse, whole)


SWEPT = [
    js.Pegasos(0.1),
    js.Pegasos(0.02, project=True),
    js.Pegasos(1e-4, project=True, loss=js.losses.SquaredHinge()),
]


@pytest.mark.parametrize("k", [1, 4])
@members.each(SWEPT, "solver")
def test_blocks_of_active_columns_equal_rows_one_by_one(solver: Solver, k: int) -> None:
    X, labels, weight = problem(2)
    by_rows = run(solver, X, labels, k, sample_weight=weight)
    by_blocks = run(solver, X, labels, k, sample_weight=weight, block_size=32)
    whole = run(solver, dense(X), labels, k, sample_weight=weight)
    assert by_rows.state.settings.block_size == k
    assert by_blocks.state.settings.block_size == 32
    assert_same(by_blocks, by_rows)
    assert_same(by_blocks, whole)


@pytest.mark.parametrize("seed", range(6))
def test_fuzzed_rows_in_many_small_slabs_of_several_levels(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    intercept = ("none", "column")[seed // 2 % 2]
    monkeypatch.setattr(row_slabs, "SLAB_ENTRIES", 64)
    monkeypatch.setattr(row_slabs, "LOOP_COST", 0.0)
    X, labels, weight = problem(3 + seed)
    for solver in (js.Pegasos(0.1, project=True), MIRROR, *UNEQUAL[seed % 2 :: 2]):
        assert solver.lazy
        for block in (None, 8):
            settings = {"sample_weight": weight, "intercept": intercept, "block_size": block}
            whole = {**settings, "block_size": None}
            assert_same(
                run(solver, X, labels, 1, **settings), run(solver, dense(X), labels, 1, **whole)
            )


# Rounds of unequal step sizes.
UNEQUAL = [
    js.FOBOS(0.3, regularizer=js.regularizers.L1(0.01)),
    js.AdaGradFOBOS(lambda t: 0.5 / (1 + t / 10), regularizer=js.regularizers.L1(0.01)),
]
MIRROR = js.AdaGradFOBOS(0.3, 0.01, regularizer=js.regularizers.ElasticNet(0.01, 0.2))


def test_a_long_row_gets_a_level_of_its_own() -> None:
    lengths = np.array([5] * 200 + [200])
    X = row_slabs.Csr(
        np.ones(lengths.sum()),
        np.concatenate([np.arange(length) for length in lengths]).astype(np.int32),
        np.concatenate([[0], np.cumsum(lengths)]),
        (201, 400),
    )
    shape = row_slabs.row_shape(X, 1, None, 512)
    assert [level.columns for level in shape.levels] == [8, 256]


def test_batches_of_unequal_live_rows_owe_unequal_steps() -> None:
    """In "example" mode a batch counts its live rows: debts of other batches are settled first."""
    X, labels, weight = problem(4)
    weight[::3] = 0
    for regularizer in (js.regularizers.SquaredL2(0.5), js.regularizers.L1(0.01)):
        solver = js.AdaGradFOBOS(0.3, regularizer=regularizer)
        for k in (4, 16):
            settings = {"sample_weight": weight, "order": "cyclic"}
            sparse = run(solver, X, labels, k, **settings)
            assert_same(sparse, run(solver, dense(X), labels, k, **settings))


@pytest.mark.parametrize("k", [1, 8])
def test_a_row_drawn_again_and_again_fits_into_its_block(k: int) -> None:
    """In "uniform" order one long row may fill a block by itself, and so may its labels."""
    rng = np.random.default_rng(0)
    n, d = 12, 200
    X = np.zeros((n, d), FLOAT)
    X[0] = rng.normal(size=d)
    X[np.arange(1, n), rng.integers(d, size=n - 1)] = 1
    Y = rng.random((n, K)) < 0.2
    Y[0] = True
    settings: dict[str, Any] = {"order": "uniform", "epochs": 6, "batch_size": k}
    for solver in (js.Pegasos(0.1), js.AdaGradRDA(0.3)):
        for block in (None, 8):
            own = {**settings, "block_size": block}
            sparse = js.fit_one_vs_rest(solver, scipy.sparse.csr_matrix(X), Y, **own)
            whole = js.fit_one_vs_rest(solver, X, Y, **settings)
            assert_same(sparse, whole)
    for c in range(3):
        alone = js.fit(js.AdaGradRDA(0.3), X, Y[:, c], **settings)
        assert_close(whole.model.coef[c], alone.model.coef, "run", scale=1.0)


def test_weights_below_the_floats_do_not_shift_the_clock() -> None:
    X, labels, weight = problem(7)
    weight[::2] = float(np.finfo(FLOAT).smallest_subnormal) * 3
    positive = np.geomspace(float(np.finfo(FLOAT).smallest_normal), 1, K)
    for regularizer in (js.regularizers.SquaredL2(0.5), js.regularizers.L1(0.01)):
        solver = js.AdaGradFOBOS(0.3, 0.1, regularizer=regularizer)
        for k in (1, 4):
            settings = {"sample_weight": weight, "positive_weight": positive, "batch_size": k}
            sparse = js.fit_one_vs_rest(solver, X, labels, **settings)
            assert_same(sparse, js.fit_one_vs_rest(solver, dense(X), labels, **settings))


def shrinking(lam: Any, **choices: Any) -> Solver:
    return ShrinkingSGD(0.1, lam, **choices)


@pytest.mark.parametrize("project", [False, True])
@pytest.mark.parametrize("lam", [9.9, 10.0, 11.0, 25.0])
def test_factors_that_vanish_change_sign_or_grow(lam: float, project: bool) -> None:
    X, labels, weight = problem(8)
    for block in (None, 8):
        settings = {"sample_weight": weight, "epochs": 3}
        sparse = js.fit_one_vs_rest(
            shrinking(lam, project=project), X, labels, block_size=block, **settings
        )
        whole = js.fit_one_vs_rest(shrinking(lam, project=project), dense(X), labels, **settings)
        size = max(1.0, float(np.abs(np.asarray(whole.model.coef)).max()))
        assert_close(sparse.model.coef, whole.model.coef, "run", scale=size)


def test_a_ranker_whose_factor_vanishes_leaves_its_neighbours_their_bits() -> None:
    X, labels, _ = problem(9)
    own = np.arange(K) == 3
    for make in (shrinking, lambda lam: js.Pegasos(lam, project=True)):
        calm, other = (js.fit_one_vs_rest(make(np.where(own, lam, 0.5)), X, labels)
                       for lam in (0.5, 9.9 if make is shrinking else 1e-12))  # fmt: skip
        assert_bitwise(np.asarray(other.model.coef)[~own], np.asarray(calm.model.coef)[~own])


def test_large_weights_divided_by_small_factors_stay_in_the_floats() -> None:
    X = np.eye(40, 41, 1, dtype=np.float32) * np.float32(1e-4)
    y = np.arange(40) % 2
    solver = ShrinkingSGD(3e37, 1.34e-38)
    settings: dict[str, Any] = {"order": "cyclic"}
    whole = js.fit(solver, X, y, **settings)
    sparse = js.fit(solver, scipy.sparse.csr_matrix(X), y, **settings)
    np.testing.assert_allclose(sparse.model.coef, whole.model.coef, rtol=1e-5)


@pytest.mark.parametrize("intercept", ["none", "column"])
def test_bounds_of_each_feature_follow_its_column(intercept: str) -> None:
    """One bound per feature for all rankers, or one per feature and ranker."""
    X, labels, weight = problem(10)
    for shape in ((D,), (K, D)):
        bound = np.random.default_rng(0).uniform(0.01, 0.2, shape)
        solver = js.AdaGradFOBOS(0.3, regularizer=js.regularizers.Box(-bound, 2 * bound))
        settings: dict[str, Any] = {"sample_weight": weight, "intercept": intercept, "epochs": 2}
        sparse = js.fit_one_vs_rest(solver, X, labels, **settings)
        assert_same(sparse, js.fit_one_vs_rest(solver, dense(X), labels, **settings))
        coef = np.asarray(sparse.model.coef)
        binding = np.isclose(coef, -bound) | np.isclose(coef, 2 * bound)
        assert binding.any(axis=0).mean() > 0.5  # or the test would see no bound


def test_a_coordinate_without_history_owes_nothing() -> None:
    for regularizer in members.regularizers():
        if regularizer.lazy and regularizer.debt != "none":
            solver = js.AdaGradFOBOS(0.3, regularizer=regularizer).cast(FLOAT)
            state = solver.init(Problem((3,)), FLOAT)
            state = state._replace(current=np.full(3, 0.04, FLOAT))
            aged = solver.age(state, np.array([0, 1, 50], np.int32), np.int32(1))
            assert_bitwise(np.asarray(aged.current), state.current)


def test_the_norm_of_a_projected_vector_is_taken_anew_at_the_end() -> None:
    """The recursion of the rounds drifts: what it left is replaced."""
    solver = js.Pegasos(np.full(2, 0.1), project=True).cast(FLOAT)
    lanes = tile.begin(
        solver, np.ones(2, FLOAT), np.ones(2, FLOAT), np.zeros((2, 2), np.uint32),
        plan=tile.Plan(Mesh(np.array(jax.devices()[:1]), ("rankers",)), 1),
        shape=(D,), n_examples=N, dtype=FLOAT,
    )  # fmt: skip
    vector = np.random.default_rng(0).normal(size=(2, D)).astype(FLOAT)
    drifted = lanes.state._replace(vector=vector, square_norm=np.zeros(2, FLOAT))
    form = restricted.form_of(drifted)
    entered = restricted.enter(solver, drifted, lanes.alive, form, D)
    state, _ = restricted.leave(solver, entered, form, np.int32(1))
    assert_close(np.asarray(state.square_norm), (vector**2).sum(axis=1), "rewritten")


# ---- one program ---------------------------------------------------------------------------------
LAZY = [
    js.Pegasos(0.1),
    js.Pegasos(0.02, project=True),
    js.AdaGradRDA(0.3, regularizer=js.regularizers.L1(0.01)),
    MIRROR,
]
DEVICES = Mesh(np.array(jax.devices()), ("rankers",))
MANY = 1100


@members.each(LAZY, "solver")
def test_chunks_and_devices_change_no_bit(solver: Solver) -> None:
    X = fuzzed(60, D, 9, FLOAT)
    labels = np.arange(60) * 17
    settings: dict[str, Any] = {"classes": np.arange(MANY), "batch_size": 3, "epochs": 2}
    whole = js.fit_one_vs_rest(solver, X, labels, **settings)
    for other in ({"chunk_size": 512}, {"mesh": DEVICES}):
        fit = js.fit_one_vs_rest(solver, X, labels, **settings, **other)
        coefs = (np.asarray(fit.model.coef), np.asarray(whole.model.coef))
        if QUICK:  # the quick compiler rounds logarithms by their place in a vector
            assert_close(*coefs, "compiled", scale=1.0)
        else:
            assert_bitwise(*coefs, str(other))
        losses = (fit.history["progressive_loss"], whole.history["progressive_loss"])
        assert_close(*losses, "compiled")


@members.each(LAZY, "solver")
def test_a_run_in_parts_is_the_whole_run_to_the_bit(solver: Solver) -> None:
    X, labels, weight = problem(5)
    for block in (None, 16):
        settings: dict[str, Any] = {"sample_weight": weight, "block_size": block}
        whole = js.fit_one_vs_rest(solver, X, labels, epochs=3, **settings)
        once = js.fit_one_vs_rest(solver, X, labels, **settings)
        twice = js.fit_one_vs_rest(
            solver, X, labels, epochs=2, state=once.state, sample_weight=weight
        )
        assert_bitwise(np.asarray(twice.model.coef), np.asarray(whole.model.coef))
        assert_bitwise(twice.state.solver_state, whole.state.solver_state)


def test_a_run_goes_from_dense_rows_to_sparse_ones() -> None:
    X, labels, _ = problem(6)
    for solver in LAZY:
        first = js.fit_one_vs_rest(solver, dense(X), labels, block_size=16)
        mixed = js.fit_one_vs_rest(solver, X, labels, state=first.state)
        whole = js.fit_one_vs_rest(solver, dense(X), labels, epochs=2, block_size=16)
        assert_close(mixed.model.coef, whole.model.coef, "run", scale=1.0)


# ---- refusals ------------------------------------------------------------------------------------
@members.each([r for r in members.regularizers() if not r.separable], "regularizer")
def test_a_regularizer_that_couples_coordinates_names_the_dense_way(regularizer: Any) -> None:
    X, labels, _ = problem()
    name = type(regularizer).__name__
    with pytest.raises(ValueError, match=rf"regularizer {name} .* X\.toarray\(\)"):
        js.fit_one_vs_rest(js.AdaGradRDA(0.1, 1.0, regularizer=regularizer), X, labels)


# ---- owed proxes ---------------------------------------------------------------------------------
@members.each([r for r in members.regularizers() if r.lazy and r.debt != "none"], "regularizer")
def test_owed_proxes_equal_proxes_one_by_one(regularizer: Any) -> None:
    rng = np.random.default_rng(0)
    weights = rng.normal(size=40).astype(FLOAT)
    metric = np.exp(rng.uniform(-8, 8, 40)).astype(FLOAT)
    count = rng.integers(0, 30, 40)
    for tau in (1e-3, 0.1, 5.0):
        own = regularizer.cast(FLOAT)
        expected = weights.copy()
        for j in range(int(count.max())):
            moved = np.asarray(own.prox(expected, metric, FLOAT.type(tau)))
            expected = np.where(j < count, moved, expected)
        owed = own.owed(weights, metric, FLOAT.type(tau), count.astype(FLOAT))
        assert_close(owed, expected, "rewritten", scale=1.0)


@members.each([r for r in members.regularizers() if r.lazy and r.debt == "none"], "regularizer")
def test_a_regularizer_without_debts_leaves_its_own_points_alone(regularizer: Any) -> None:
    own = regularizer.cast(FLOAT)
    z = np.random.default_rng(0).normal(size=40).astype(FLOAT)
    point = own.prox(z, np.ones(40, FLOAT), FLOAT.type(0.3))
    again = own.prox(point, np.full(40, 3.0, FLOAT), FLOAT.type(0.3))
    assert_close(again, point, "compiled", scale=1.0)


@members.each([r for r in members.regularizers() if r.debt == "sum"], "regularizer")
def test_debts_of_unequal_steps_add_up(regularizer: Any) -> None:
    own = regularizer.cast(FLOAT)
    z = np.random.default_rng(0).normal(size=40).astype(FLOAT)
    metric = np.full(40, 2.0, FLOAT)
    apart = own.prox(own.prox(z, metric, FLOAT.type(0.3)), metric, FLOAT.type(4.0))
    together = own.owed(z, metric, FLOAT.type(0.1), np.full(40, 43.0, FLOAT))
    assert_close(together, apart, "rewritten", scale=1.0)
