"""Cross-validation of grids: each ranker is the one that its other rows alone would give."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from contracts.streams import FLOAT
from jax.sharding import Mesh
from tolerances import assert_bitwise, assert_close

import jaxsolvers as js
from jaxsolvers.engine import tile, tile_questions
from jaxsolvers.selection import search

N, D, K = 60, 6, 4
RNG = np.random.default_rng(5)
DENSE = (RNG.normal(size=(N, D)) * (RNG.random((N, D)) < 0.7)).astype(FLOAT)
SPARSE = scipy.sparse.csr_matrix(DENSE)
LABELS = RNG.integers(K, size=N)
SETS = RNG.random((N, K)) < 0.4
REALS = DENSE @ RNG.normal(size=D) + 0.1 * RNG.normal(size=N)
WEIGHT = RNG.uniform(0.5, 1.5, N) * (RNG.random(N) < 0.9)
FOLDS = np.array(["a", "b", "c"])[RNG.permutation(N) % 3]  # of one size: they share programs
LAM, RATE = np.array([0.03, 0.3]), np.array([0.1, 0.5, 1.0])
l1, losses = js.regularizers.L1, js.losses
GROUPS = js.regularizers.GroupL2(np.array([0.02, 0.1]), axis=-2)


class Case(NamedTuple):
    """A grid, its rows and how each of its points is trained alone."""

    solver: Any
    X: Any
    y: Any
    points: list[dict[str, float]]
    options: dict[str, Any] = {}

    def at(self, point: dict[str, float]) -> Any:
        return self.solver.map_numbers(lambda leaf: point.get(leaf.name, leaf.value))

    def alone(self, point: dict[str, float], rows: np.ndarray) -> Any:
        several = np.ndim(self.y) == 2 or len(np.unique(self.y)) == K
        joint = self.solver.loss.joint
        fit = js.fit_one_vs_rest if several and not joint else js.fit
        options: Any = {"sample_weight": WEIGHT[rows], "order": "cyclic", "epochs": 2}
        return fit(self.at(point), self.X[rows], self.y[rows], **options, **self.options)


def product(**values: np.ndarray) -> list[dict[str, float]]:
    return [dict(zip(values, at, strict=True)) for at in itertools.product(*values.values())]


def lam(values: np.ndarray = LAM) -> list[dict[str, float]]:
    return [{"lam": value} for value in values]


CASES = {
    "dense labels": Case(
        js.Averaged(js.Pegasos(LAM, project=True)), DENSE, LABELS,
        [{"solver.lam": value} for value in LAM],
        {"positive_weight": np.array([1.0, 2.0, 3.0, 0.5]), "intercept": "column"},
    ),
    "passes before an epoch": Case(js.SVRG(LAM, 0.1), DENSE, LABELS, lam()),
    "duals": Case(js.SDCA(LAM), DENSE, LABELS, lam()),
    "product, mirror, sparse": Case(
        js.AdaGradFOBOS(RATE, regularizer=l1(LAM / 3)), SPARSE, LABELS,
        product(learning_rate=RATE, **{"regularizer.strength": LAM / 3}),
    ),
    "sparse sets": Case(
        js.AdaGradRDA(RATE, 0.1, regularizer=l1(0.01)), SPARSE, SETS, product(learning_rate=RATE)
    ),
    "sparse sets, scaled sweeps": Case(js.SGD(LAM, 0.2), SPARSE, SETS, lam(), {"block_size": 8}),
    "two labels": Case(
        js.Pegasos(LAM, loss=losses.Logistic()), DENSE, np.array(["no", "yes"])[LABELS % 2], lam()
    ),
    "reals": Case(
        js.Pegasos(0.1, loss=losses.Huber(RATE), project=True), DENSE, REALS,
        product(**{"loss.delta": RATE}),
    ),
    "joint": Case(
        js.AdaGradFOBOS(RATE, loss=losses.MulticlassHinge()), DENSE, LABELS,
        product(learning_rate=RATE), {"intercept": "column"},
    ),
    "coupled": Case(
        js.AdaGradFOBOS(0.5, regularizer=GROUPS), DENSE, LABELS,
        product(**{"regularizer.strength": np.asarray(GROUPS.strength)}),
    ),
}  # fmt: skip


def searched(case: Case, **changed: Any) -> Any:
    options = {"folds": FOLDS, "sample_weight": WEIGHT, "order": "cyclic", "epochs": 2}
    return js.grid_search(case.solver, case.X, case.y, **(options | case.options | changed))


@pytest.mark.parametrize("name", CASES)
def test_every_ranker_is_that_of_its_training_rows_alone(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, runs, train = CASES[name], [], search.train
    monkeypatch.setattr(search, "train", lambda *a: runs.append(train(*a)) or runs[-1])
    found = searched(case)
    trained, refit = runs
    lead = (len(case.points), 3, -1)
    coef = np.asarray(trained[0]).reshape(*lead, D)
    intercept = np.asarray(trained[1]).reshape(lead)
    for p, point in enumerate(case.points):
        assert {number: found.table[number][p] for number in point} == point
        for f, held_out in enumerate("abc"):
            rows = held_out != FOLDS
            alone = case.alone(point, rows).model
            assert_close(coef[p, f], np.atleast_2d(alone.coef), "run", scale=1.0)
            assert_close(intercept[p, f], np.atleast_1d(alone.intercept), "run", scale=1.0)
            score = expected_score(case.at(point), alone, case, ~rows)
            np.testing.assert_allclose(found.table["fold_scores"][p, f], score, atol=1e-5)
    np.testing.assert_allclose(
        found.table["score"], found.table["fold_scores"].mean(axis=1), atol=1e-7
    )
    best = case.points[int(np.argmin(found.table["score"]))]
    assert {leaf.name: leaf.value for leaf in found.best.numbers()}.items() >= best.items()
    whole = case.alone(best, np.ones(N, bool)).model
    assert_close(np.asarray(found.model.coef), np.asarray(whole.coef), "run", scale=1.0)
    assert len(runs) == 2 and refit[0].shape[-1] == D


def expected_score(solver: Any, model: Any, case: Case, rows: np.ndarray) -> float:
    """Error rate or, of real targets, loss."""
    weight, y = WEIGHT[rows], case.y[rows]
    predicted = model.predict(case.X[rows])
    if case.y is REALS:
        own = solver.cast(FLOAT).loss
        values = own.value_and_slope(jnp.asarray(predicted), jnp.asarray(y, FLOAT))[0]
    else:
        values = (predicted != y).reshape(len(y), -1).mean(axis=1)
    return float((weight * np.asarray(values)).sum() / weight.sum())


# ---- programs ------------------------------------------------------------------------------------
def test_one_trace_for_all_points_folds_and_classes_and_none_for_new_numbers() -> None:
    case = CASES["dense labels"]
    programs = tile.advance, tile.begin, tile_questions.tile_weights
    jax.clear_caches()
    assert searched(case, refit=False).model is None
    assert [program._cache_size() for program in programs] == [1, 1, 1]  # for 2 x 3 x 4 rankers
    searched(case)
    assert [program._cache_size() for program in programs] == [2, 2, 2]  # for the model's 4
    other = Case(js.Averaged(js.Pegasos(LAM / 7, project=True)), *case[1:])
    searched(other, folds=FOLDS[::-1], key=3, per_class=True)
    assert [program._cache_size() for program in programs] == [2, 2, 2]


def test_chunks_and_devices_give_the_same_bits() -> None:
    """More rankers than a tile holds: label sets go around within it, and over its end."""
    name = "sparse sets, scaled sweeps"
    strengths = np.geomspace(0.01, 1, 60)
    solver = CASES[name].solver.map_numbers(
        lambda leaf: strengths if np.ndim(leaf.value) else leaf.value
    )
    case = CASES[name]._replace(solver=solver)
    whole = searched(case, epochs=1)
    assert whole.table["class_scores"].shape == (60, 3, K)
    mesh = Mesh(np.array(jax.devices()), ("rankers",))
    for change in ({"chunk_size": 512}, {"mesh": mesh}):
        part = searched(case, epochs=1, **change)
        assert_bitwise(part.table, whole.table)
        assert_bitwise(np.asarray(part.model.coef), np.asarray(whole.model.coef))


def test_label_sets_of_more_labels_than_a_tile_holds() -> None:
    sets = scipy.sparse.random(40, 700, 0.01, "csr", rng=np.random.default_rng(0))
    sets.data[:] = 1
    solver, X = js.SGD(LAM, 0.2), DENSE[:40]
    options: Any = {"order": "cyclic", "epochs": 1}
    with pytest.warns(UserWarning, match="no positive row"):
        found = js.grid_search(solver, X, sets, folds=np.arange(40) % 2, **options)
    for f in (0, 1):
        rows = np.arange(40) % 2 != f
        with pytest.warns(UserWarning, match="no positive row"):
            alone = js.fit_one_vs_rest(js.SGD(LAM[1], 0.2), X[rows], sets[rows], **options)
        wrong = (np.asarray(alone.model.decision_function(X[~rows])) > 0) != (
            sets[~rows].toarray() > 0
        )
        np.testing.assert_allclose(found.table["class_scores"][1, f], wrong.mean(axis=0), atol=1e-6)


def test_kernel_machines_leave_out_their_fold() -> None:
    solver = js.KernelPegasos(LAM, js.kernels.RBF(0.5))
    found = js.grid_search(solver, DENSE, LABELS, folds=FOLDS, order="cyclic", epochs=2)
    for p, strength in enumerate(LAM):
        own = js.KernelPegasos(strength, js.kernels.RBF(0.5))
        for f, held_out in enumerate("abc"):
            rows = held_out != FOLDS
            alone = js.fit_one_vs_rest(own, DENSE[rows], LABELS[rows], order="cyclic", epochs=2)
            wrong = np.mean(alone.model.predict(DENSE[~rows]) != LABELS[~rows])
            np.testing.assert_allclose(found.table["fold_scores"][p, f], wrong, atol=1e-6)


# ---- grids and scores ----------------------------------------------------------------------------
def test_machines_within_a_budget_are_scored_like_any_other() -> None:
    solver = js.BudgetedPegasos(np.array([0.01, 0.1]), js.kernels.RBF(0.2), 5)
    found = js.grid_search(solver, DENSE, LABELS, folds=3, order="cyclic", epochs=2)
    assert np.isfinite(found.table["fold_scores"]).all()
    fit = js.fit_one_vs_rest(found.best, DENSE, LABELS, order="cyclic", epochs=2)
    np.testing.assert_array_equal(found.model.predict(DENSE), fit.model.predict(DENSE))


def test_points_are_products_last_number_fastest_or_pairs() -> None:
    solver = js.AdaGradFOBOS(RATE[:2], regularizer=l1(LAM))
    table = searched(Case(solver, DENSE, LABELS, [])).table
    assert table["learning_rate"].tolist() == [0.1, 0.1, 0.5, 0.5]
    assert table["regularizer.strength"].tolist() == [0.03, 0.3, 0.03, 0.3]
    pairs = searched(Case(solver, DENSE, LABELS, []), zip=True).table
    assert pairs["learning_rate"].tolist() == [0.1, 0.5]
    assert_bitwise(pairs["fold_scores"], table["fold_scores"][[0, 3]])


def test_boxes_of_arrays_over_the_features_are_points() -> None:
    """One array over the features is a single value, a table of them one value per row."""
    upper = np.linspace(0.1, 1, 2 * D).reshape(2, D)
    box = js.regularizers.Box(-upper[0], upper)
    found = searched(Case(js.AdaGradFOBOS(0.5, regularizer=box), DENSE, LABELS, []))
    assert found.table["regularizer.upper"].shape == (2, D)
    at = int(np.argmin(found.table["score"]))
    np.testing.assert_array_equal(found.best.regularizer.upper, upper[at])
    assert (np.asarray(found.model.coef) <= upper[at] + 1e-6).all()


@pytest.mark.parametrize("scoring", ["loss", "average_precision", "roc_auc"])
def test_scores_are_the_metrics_of_held_out_rows_and_each_class_has_its_best(scoring: str) -> None:
    solver = js.Pegasos(np.array([1e-3, 0.1, 10.0]))
    options: Any = {"sample_weight": WEIGHT, "order": "cyclic", "epochs": 1}
    found = js.grid_search(
        solver, DENSE, LABELS, folds=FOLDS, scoring=scoring, per_class=True, **options
    )
    expected = np.empty((3, 3, K))
    for p, f in np.ndindex(3, 3):
        rows = "abc"[f] != FOLDS
        own, weight = options | {"sample_weight": WEIGHT[rows]}, WEIGHT[~rows]
        one = js.fit_one_vs_rest(js.Pegasos(solver.lam[p]), DENSE[rows], LABELS[rows], **own)
        scores = np.asarray(one.model.decision_function(DENSE[~rows]))
        truth = LABELS[~rows][:, None] == np.arange(K)
        if scoring == "loss":
            values = np.maximum(0, 1 - np.where(truth, 1, -1) * scores)
            expected[p, f] = (weight[:, None] * values).sum(axis=0) / weight.sum()
        else:
            expected[p, f] = getattr(js.metrics, scoring)(truth, scores, sample_weight=weight)
    np.testing.assert_allclose(found.table["class_scores"], expected, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(found.table["score"], expected.mean(axis=(1, 2)), rtol=2e-5)
    deviation = expected.mean(axis=2).std(axis=1)
    np.testing.assert_allclose(found.table["score_std"], deviation, rtol=1e-3, atol=1e-6)
    sign = -1 if scoring == "loss" else 1
    best = np.argmax(sign * expected.mean(axis=1), axis=0)
    np.testing.assert_array_equal(found.best_per_class.lam, solver.lam[best])
    assert found.best.lam == solver.lam[np.argmax(sign * expected.mean(axis=(1, 2)))]
    whole = js.fit_one_vs_rest(found.best_per_class, DENSE, LABELS, **options)
    assert_bitwise(np.asarray(found.model.coef), np.asarray(whole.model.coef))


def test_a_class_that_a_fold_does_not_hold_is_left_out_of_the_mean() -> None:
    folds = np.where(LABELS == 0, 0, np.arange(N) % 2)
    with pytest.warns(UserWarning, match=r"no value for 1 of 8 pairs"):
        found = js.grid_search(
            js.Pegasos(LAM), DENSE, LABELS, folds=folds, scoring="average_precision"
        )
    scores = found.table["class_scores"]
    assert np.isnan(scores[:, 1, 0]).all() and np.isfinite(np.delete(scores, 0, 2)).all()
    np.testing.assert_allclose(found.table["fold_scores"][:, 1], scores[:, 1, 1:].mean(axis=1))


def test_points_that_leave_the_floats_are_told_and_never_chosen() -> None:
    rates = np.array([float(np.finfo(FLOAT).max / 2), 0.1])
    solver = js.AdaGradFOBOS(rates, loss=losses.Squared())
    with pytest.warns(RuntimeWarning, match=r"1 of 2 grid points lost rankers .*learning_rate"):
        found = js.grid_search(solver, DENSE, REALS, folds=3)
    assert np.isnan(found.table["score"][0]) and found.best.learning_rate == 0.1
    with pytest.raises(FloatingPointError, match="learning_rate"):
        js.grid_search(js.AdaGradFOBOS(rates[:1], loss=losses.Squared()), DENSE, REALS, folds=3)


# ---- folds ---------------------------------------------------------------------------------------
def test_folds_deal_out_every_label_evenly_and_follow_the_key() -> None:
    def folds(key: int, y: Any, weight: Any = None) -> np.ndarray:
        solver = js.Pegasos(LAM) if y is not REALS else js.Pegasos(LAM, loss=losses.Squared())
        seen: list[np.ndarray] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(search, "folds_of", lambda *a: seen.append(real(*a)) or seen[-1])
            js.grid_search(solver, DENSE, y, folds=4, key=key, sample_weight=weight)
        return seen[0].codes  # type: ignore[attr-defined]

    real = search.folds_of
    dealt = folds(0, LABELS, WEIGHT)
    for label in range(K):
        counts = np.bincount(dealt[(label == LABELS) & (WEIGHT > 0)], minlength=4)
        assert np.ptp(counts) <= 1
    assert np.ptp(np.bincount(dealt[WEIGHT > 0], minlength=4)) <= 1
    np.testing.assert_array_equal(dealt, folds(0, LABELS, WEIGHT))
    assert (dealt != folds(1, LABELS, WEIGHT)).any()
    counts = np.bincount(folds(0, REALS), minlength=4)
    assert counts.tolist() == [15, 15, 15, 15]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"folds": 1}, r"folds must be an integer in 2 \.\.\. 60, got 1"),
        ({"folds": 61}, r"folds must be an integer in 2 \.\.\. 60, got 61"),
        ({"folds": np.zeros(N, int)}, r"folds must hold two ids or more, got only \[0\]"),
        ({"folds": FOLDS[1:]}, r"folds must have one entry per row of X \(60\), got 59"),
        ({"folds": np.full(N, np.nan)}, "folds must be integers or strings"),
        (
            {"folds": np.where(LABELS == 2, "own", "others"), "sample_weight": 1.0 * (LABELS > 1)},
            "without fold 'others' only 2 is left",
        ),
        (
            {"folds": (np.arange(N) < 30).astype(int), "sample_weight": 1.0 * (np.arange(N) < 30)},
            "folds must leave rows of weight > 0 to score, fold 0 has none",
        ),
        ({"solver": js.Pegasos(0.1)}, "solver must have at least one number given as an array"),
        ({"solver": js.Pegasos(np.array([0.1, -1.0]))}, r"lam must be .* got -1.0 at index \(1,\)"),
        ({"solver": js.Pegasos(np.zeros(0))}, "lam must have at least one value"),
        (
            {"solver": js.AdaGradFOBOS(RATE, regularizer=l1(LAM)), "zip": True},
            r"zip=True pairs arrays of one length, got .*'learning_rate': 3",
        ),
        ({"X": js.data.ArraySource(DENSE, LABELS)}, "X must be an array .* got a source"),
        ({"zip": 1}, "zip must be True or False"),
        ({"refit": None}, "refit must be True or False"),
        ({"per_class": 1}, "per_class must be True or False"),
        ({"y": LABELS % 2, "per_class": True}, "per_class must be False without rankers per class"),
        ({"y": LABELS % 2, "positive_weight": 2.0}, "positive_weight must be None"),
        ({"scoring": "accuracy"}, "scoring must be one of 'error_rate', 'loss'"),
        (
            {"solver": js.Pegasos(LAM, loss=losses.Squared()), "y": REALS, "scoring": "roc_auc"},
            "scoring must be 'loss' for Squared",
        ),
        (
            {
                "solver": js.AdaGradRDA(RATE, loss=losses.MulticlassHinge()),
                "scoring": "average_precision",
            },
            "scoring must be among 'error_rate', 'loss' for MulticlassHinge",
        ),
        ({"y": LABELS * 0}, "y must hold two classes"),
    ],
)
def test_refusals_name_the_argument(changed: dict[str, Any], words: str) -> None:
    given = {"solver": js.Pegasos(LAM), "X": DENSE, "y": LABELS} | changed
    with pytest.raises(ValueError, match=words):
        js.grid_search(**given)
