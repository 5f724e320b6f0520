"""One ranker per pair of classes: each is what js.fit makes of its own rows."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from jax.sharding import Mesh
from tolerances import assert_bitwise, assert_close

import jaxsolvers as js
from jaxsolvers.engine import blocks, gram_lanes, job, lane_slabs
from jaxsolvers.engine.tile import advance

F = jnp.result_type(float)
RNG = np.random.default_rng(77)
SIZES = (1, 9, 14, 30)  # rows of each class
CODES = RNG.permutation(np.repeat(np.arange(4), SIZES))
NAMES = np.array(["bee", "ant", "dog", "cat"])
CLASSES = np.sort(NAMES)
Y = CLASSES[CODES]
X = RNG.normal(size=(len(Y), 5)).astype(F)
SPARSE = scipy.sparse.csr_array(X * (RNG.random(X.shape) < 0.5))
WEIGHT = RNG.uniform(0.5, 2, len(Y))
WEIGHT[np.flatnonzero(CODES == 3)[:5]] = 0
PAIRS = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
RATES = np.linspace(0.1, 0.6, 6)
PEGASOS = js.Pegasos(0.1)
RBF = js.kernels.RBF(0.3)


def euclidean(A: Any, B: Any) -> Any:
    return np.exp(-np.sum((np.asarray(A)[:, None] - np.asarray(B)[None]) ** 2, axis=2))


def rows_of(pair: tuple[int, int], y: np.ndarray = CODES) -> np.ndarray:
    return np.flatnonzero(np.isin(y, pair))


def alone(solver: Any, given: Any, pair: tuple[int, int], **options: Any) -> js.Fit:
    """js.fit on the rows of the pair, its first class +1."""
    rows = rows_of(pair)
    weight = options.pop("sample_weight", None)
    own = given[rows][:, rows] if given.shape[1] == len(Y) else given[rows]
    return js.fit(
        solver,
        own,
        np.where(CODES[rows] == pair[0], 1, -1),
        sample_weight=None if weight is None else weight[rows],
        **options,
    )


L1 = js.regularizers.L1(0.01)
EVERY: dict[str, tuple[Any, Any, dict[str, Any]]] = {  # solver, rows, options
    "pegasos": (
        PEGASOS, X, {"epochs": 3, "key": 5, "intercept": "column", "sample_weight": WEIGHT},
    ),
    "first order": (
        js.AdaGradRDA(0.3, regularizer=L1), X,
        {"epochs": 2, "batch_size": 4, "order": "uniform", "record": ("theory",)},
    ),
    "batches beyond a class": (
        js.Averaged(js.Pegasos(0.1, project=True)), X,
        {"batch_size": 12, "order": "cyclic", "sample_weight": WEIGHT},
    ),
    "sparse": (
        js.AdaGradFOBOS(0.3, regularizer=L1), SPARSE,
        {"epochs": 2, "batch_size": 4, "intercept": "column", "sample_weight": WEIGHT},
    ),
    "sparse made dense": (js.Averaged(PEGASOS), SPARSE, {"epochs": 2}),
}  # fmt: skip
SOME: dict[str, tuple[Any, Any, dict[str, Any]]] = {  # programs of js.fit know n: two pairs do
    "duals": (js.SDCA(0.1), X, {"epochs": 2, "sample_weight": WEIGHT}),
    "kernel": (js.KernelPegasos(0.1, RBF), X, {"epochs": 2, "sample_weight": WEIGHT}),
    "sparse kernel": (
        js.Kernelized(js.Averaged(js.SGD(0.1, 0.1)), RBF), SPARSE, {"intercept": "column"},
    ),
    "function": (js.KernelPegasos(0.1, euclidean), X, {}),
    "precomputed": (
        js.KernelPegasos(0.1, js.kernels.Precomputed()), (X @ X.T).astype(F), {"epochs": 2},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", [*EVERY, *SOME])
def test_each_pair_is_a_fit_on_its_own_rows(name):
    solver, given, options = (EVERY | SOME)[name]
    # One pair of a tile is in batches too large for another: js.fit alone would refuse those.
    fit = js.fit_one_vs_one(solver, given, Y, **options)
    assert fit.model.pairs.tolist() == [list(pair) for pair in PAIRS]
    assert fit.model.classes.tolist() == CLASSES.tolist()
    scores = np.asarray(fit.model.decision_function(given))
    assert scores.shape == (len(Y), 6) and fit.state.alive.shape == (6,)
    for p, pair in enumerate(PAIRS):
        small = len(rows_of(pair)) < options.get("batch_size", 1)
        if small or (name in SOME and pair not in ((0, 2), (2, 3))):
            continue
        expected = alone(solver, given, pair, **options)
        columns = given[:, rows_of(pair)] if given.shape[1] == len(Y) else given
        assert_close(scores[:, p], np.asarray(expected.model.decision_function(columns)), "run")
        if solver.kernel is None:
            assert_close(np.asarray(fit.model.rankers.coef[p]), expected.model.coef, "run")
        for kind in {"progressive_loss", "mistakes", "gamma"} & set(expected.history):
            ours, theirs = fit.history[kind][:, p], expected.history[kind]
            assert_close(ours.astype(F), theirs.astype(F), "run")  # sums of numbers of F
    live = np.ones(len(Y)) if "sample_weight" not in options else WEIGHT > 0
    positives = [int(live[first == CODES].sum()) for first, _ in PAIRS]
    assert fit.history["positives"][-1].tolist() == positives


def test_a_batch_larger_than_a_pair_takes_all_its_rows():
    options = {"batch_size": 12, "order": "cyclic", "epochs": 2}
    fit = js.fit_one_vs_one(PEGASOS, X, Y, **options)
    rows = rows_of((0, 1))  # 10 of them
    expected = alone(PEGASOS, X, (0, 1), **(options | {"batch_size": len(rows)}))
    assert_close(np.asarray(fit.model.rankers.coef[0]), expected.model.coef, "run")


def test_a_number_may_be_one_per_pair():
    fit = js.fit_one_vs_one(js.Pegasos(RATES), X, Y)
    for p in (1, 4):
        expected = alone(js.Pegasos(RATES[p]), X, PAIRS[p])
        assert_close(np.asarray(fit.model.rankers.coef[p]), expected.model.coef, "run")


def test_tiles_are_one_program_and_chunks_and_devices_change_no_bit(monkeypatch):
    monkeypatch.setattr(blocks, "MOST_LANES", 2)
    before = advance._cache_size()
    whole = js.fit_one_vs_one(PEGASOS, X, Y, epochs=2)
    # One for fresh lanes and one for those of a slab before: the same compiled program.
    assert advance._cache_size() == before + 2
    assert whole.state.settings.tile == 2 and len(whole.state.solver_state) == 3
    mesh = Mesh(np.array(jax.devices()[:2]), ("rankers",))
    for options in ({"chunk_size": 1}, {"chunk_size": 4}, {"mesh": mesh}):
        fit = js.fit_one_vs_one(PEGASOS, X, Y, epochs=2, **options)
        assert_bitwise(np.asarray(fit.model.rankers.coef), np.asarray(whole.model.rankers.coef))
        for ours, theirs in zip(
            jax.tree.leaves(fit.state), jax.tree.leaves(whole.state), strict=True
        ):
            assert_bitwise(np.asarray(ours), np.asarray(theirs))
        if "chunk_size" in options:
            assert isinstance(fit.model.rankers.coef, np.ndarray)
    on_device = js.fit_one_vs_one(PEGASOS, jnp.asarray(X), Y, epochs=2)
    assert_bitwise(np.asarray(on_device.model.rankers.coef), np.asarray(whole.model.rankers.coef))


@pytest.mark.parametrize("given", [X, SPARSE])
def test_a_split_run_is_the_whole_run(given):
    whole = js.fit_one_vs_one(PEGASOS, given, Y, epochs=3, key=2)
    part = js.fit_one_vs_one(PEGASOS, given, Y, epochs=1, key=2)
    part = js.fit_one_vs_one(PEGASOS, given, Y, epochs=2, state=part.state)
    assert_bitwise(np.asarray(part.model.rankers.coef), np.asarray(whole.model.rankers.coef))


def test_a_run_goes_on_with_other_rows_of_other_sizes():
    # The larger half of the classes has become the smaller one: pairs stay who they are.
    other = 3 - CODES
    first = js.fit_one_vs_one(PEGASOS, X, Y)
    for given in (X, SPARSE):
        second = js.fit_one_vs_one(PEGASOS, given, CLASSES[other], state=first.state)
        for p in (1, 5):
            rows = rows_of(PAIRS[p], other)
            signs = np.where(other[rows] == PAIRS[p][0], 1, -1)
            state = alone(PEGASOS, X, PAIRS[p]).state
            expected = js.fit(PEGASOS, given[rows], signs, state=state)
            assert_close(np.asarray(second.model.rankers.coef[p]), expected.model.coef, "run")


def test_other_forms_of_the_same_rounds(monkeypatch):
    expected = js.fit_one_vs_one(PEGASOS, X, Y, sample_weight=WEIGHT).model.rankers.coef
    choose = job.choose_lanes
    monkeypatch.setattr(
        job, "choose_lanes", lambda *args: (blocks.Blocks(8, False, True), choose(*args)[1])
    )
    swept = js.fit_one_vs_one(PEGASOS, X, Y, sample_weight=WEIGHT).model.rankers.coef
    assert_close(np.asarray(swept), np.asarray(expected), "run")
    monkeypatch.undo()
    for kernel, given in ((RBF, X), (euclidean, X), (js.kernels.Precomputed(), X @ X.T)):
        solver = js.KernelPegasos(0.1, kernel)
        kept = js.fit_one_vs_one(solver, given, Y, sample_weight=WEIGHT).model.rankers
        with monkeypatch.context() as patch:  # no room for a matrix
            patch.setattr(gram_lanes, "GRAM_BYTES", 0)
            found = js.fit_one_vs_one(solver, given, Y, sample_weight=WEIGHT).model.rankers
        assert_close(np.asarray(found.dual_coef), np.asarray(kept.dual_coef), "run")


def test_a_pair_that_diverges_is_alone_in_it():
    loss, rates = js.losses.Squared(), np.full(6, 0.1)
    fine = js.fit_one_vs_one(js.SGD(1e-35, rates, loss), X, Y)
    rates[4] = 1e30
    with pytest.warns(RuntimeWarning, match=r"1 of 6 rankers .*\('bee', 'dog'\); all in"):
        fit = js.fit_one_vs_one(js.SGD(1e-35, rates, loss), X, Y)
    assert fit.state.alive.tolist() == [True] * 4 + [False, True]
    rest = [0, 1, 2, 3, 5]
    ours, theirs = (np.asarray(f.model.rankers.coef)[rest] for f in (fit, fine))
    assert_bitwise(ours, theirs)
    assert np.isneginf(np.asarray(fit.model.decision_function(X))[:, 4]).all()
    assert set(fit.model.predict(X)) <= set(CLASSES)


def test_an_epoch_costs_the_rows_of_the_pairs_alone():
    lengths = np.sort(np.concatenate([np.full(9, 10_100), np.full(36, 200)]))[::-1]
    lanes = lane_slabs.lanes_of_tile(lengths, 1, 64, 4, 512, "cpu")
    visited = sum(lengths[i] * lanes for i in range(0, 45, lanes))
    assert visited < 1.2 * lengths.sum()
    # All rows of one tile where pairs are alike.
    assert lane_slabs.lanes_of_tile(np.full(45, 1000), 1, 64, 4, 512, "cpu") == 45
    assert lane_slabs.lanes_of_tile(np.full(45, 1000), 1, 1 << 18, 4, 512, "cpu") == 1
