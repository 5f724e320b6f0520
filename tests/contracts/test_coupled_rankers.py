"""Rankers that a regularizer couples: one-vs-rest trained as one problem."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
import pytest
import scipy.sparse
from jax.sharding import Mesh
from references import joint as reference
from references import regularizers
from test_losses_joint import FLOAT, C
from tolerances import assert_bitwise, assert_close

import jaxsolvers as js

N, D = 60, 6
DEVICES = Mesh(np.array(jax.devices()), ("rankers",))
GROUPS = {"group_l2": js.regularizers.GroupL2, "group_l_inf": js.regularizers.GroupLInf}
every_group = pytest.mark.parametrize("name", GROUPS)


def data(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, classes and weights; features 3 ... 5 tell nothing, one column is never seen."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(N) % C)
    X = 0.3 * rng.normal(size=(N, D))
    X[:, :3] += np.eye(C)[labels][:, :3]
    X[:, 4] *= rng.random(N) < 0.3
    X[:, 5] = 0
    weight = rng.uniform(0.5, 1.5, N) * (rng.random(N) < 0.85)
    return X.astype(FLOAT), labels.astype(np.int32), weight / weight[weight > 0].mean()


def hinges(z: np.ndarray, y: int) -> tuple[float, np.ndarray]:
    """The hinge losses of all classes against the rest, added up."""
    sign = np.where(np.arange(len(z)) == y, 1.0, -1.0)
    short = 1 - sign * z
    return float(np.maximum(short, 0).sum()), np.where(short > 0, -sign, 0.0)


def group_prox(name: str, strength: float) -> reference.Prox:
    """The prox of a group per feature, features without history left out."""

    def prox(z: np.ndarray, h: np.ndarray, tau: float) -> np.ndarray:
        x = np.zeros_like(z)
        for j in range(z.shape[1]):
            seen = h[:, j] > 0
            own = regularizers.prox(name, z[seen, j], h[seen, j], tau, strength=strength, axis=-1)
            x[seen, j] = own
        return x

    return prox


@pytest.mark.parametrize("k", [1, 6])
@pytest.mark.parametrize("form", ["rda", "mirror"])
@every_group
def test_one_vs_rest_under_a_group_per_feature_is_the_numpy_loop(
    name: str, form: str, k: int
) -> None:
    X, labels, weight = data()
    make = js.AdaGradRDA if form == "rda" else js.AdaGradFOBOS
    solver = make(0.3, 0.05, regularizer=GROUPS[name](0.05, axis=-2))
    run = reference.adagrad(
        X.astype(float), labels, np.arange(N).reshape(-1, k).tolist(), hinges,
        group_prox(name, 0.05), n_classes=C, form=form, learning_rate=0.3, delta=0.05,
        accumulate="example", weights=weight,
    )  # fmt: skip
    fit = js.fit_one_vs_rest(solver, X, labels, batch_size=k, order="cyclic", sample_weight=weight)
    assert fit.model.coef.shape == (C, D)
    assert_close(fit.model.coef, run.w[-1], "run", scale=1.0)
    mean = sum(run.loss) / (C * weight.sum())
    assert_close(fit.history["progressive_loss"].astype(FLOAT), np.array([mean]), "run")
    zero = np.asarray(fit.model.coef) == 0
    np.testing.assert_array_equal(zero.all(axis=0), (run.w[-1] == 0).all(axis=0))


@every_group
def test_whole_features_drop_out_for_all_classes(name: str) -> None:
    X, labels, _ = data(1)
    solver = js.AdaGradRDA(0.3, 0.1, regularizer=GROUPS[name](0.2, axis=-2))
    coef = np.asarray(js.fit_one_vs_rest(solver, X, labels, epochs=20).model.coef)
    assert (coef[:, 3:] == 0).all()
    assert (coef[:, :3] != 0).any(axis=0).all()


@every_group
def test_sparse_rows_label_sets_devices_and_split_runs_give_the_same(name: str) -> None:
    X, labels, weight = data(2)
    indicator = scipy.sparse.csr_array(np.eye(C, dtype=np.int8)[labels])
    for form in (partial(js.AdaGradRDA, accumulate="batch"), js.AdaGradFOBOS):
        solver = form(0.3, 0.05, regularizer=GROUPS[name](0.02, axis=-2))
        settings: dict[str, Any] = {
            "sample_weight": weight, "batch_size": 4, "intercept": "column",
            "positive_weight": np.array([1.0, 2.0, 0.5, 1.0]),
        }  # fmt: skip
        whole = js.fit_one_vs_rest(solver, X, labels, epochs=2, **settings)
        for rows, y in ((scipy.sparse.csr_array(X), labels), (X, indicator)):
            other = js.fit_one_vs_rest(solver, rows, y, epochs=2, **settings)
            assert_close(other.model.coef, whole.model.coef, "run", scale=1.0)
            assert_close(other.model.intercept, whole.model.intercept, "run", scale=1.0)
        apart = js.fit_one_vs_rest(solver, X, labels, epochs=2, mesh=DEVICES, **settings)
        assert_bitwise(np.asarray(apart.model.coef), np.asarray(whole.model.coef))
        first = js.fit_one_vs_rest(solver, X, labels, **settings)
        again = {"sample_weight": weight, "state": first.state}
        second = js.fit_one_vs_rest(solver, X, labels, **again)
        assert_bitwise(np.asarray(second.model.coef), np.asarray(whole.model.coef))


def test_a_joint_loss_under_groups_and_its_objective() -> None:
    X, labels, _ = data(3)
    loss = js.losses.MulticlassLogistic()
    regularizer = js.regularizers.GroupL2(0.05, axis=-2)
    solver = js.AdaGradRDA(0.3, 0.1, loss=loss, regularizer=regularizer)
    dense = js.fit(solver, X, labels, epochs=5)
    sparse = js.fit(solver, scipy.sparse.csr_array(X), labels, epochs=5)
    assert_close(sparse.model.coef, dense.model.coef, "run", scale=1.0)
    for model, whole in ((dense.model, solver), (dense.model, js.AdaGradRDA(
        0.3, 0.1, regularizer=regularizer
    ))):  # fmt: skip
        z = X @ np.asarray(model.coef, float).T
        losses = reference.logistic if whole is solver else hinges
        mean = np.mean([losses(row, int(y))[0] for row, y in zip(z, labels, strict=True)])
        expected = mean + 0.05 * np.linalg.norm(np.asarray(model.coef, float), axis=0).sum()
        ours = js.metrics.objective(whole, model, X, labels)
        np.testing.assert_allclose(ours, expected, rtol=2e-6)


def test_what_does_not_fit_is_refused_by_name() -> None:
    X, labels, _ = data()
    solver = js.AdaGradFOBOS(0.1, regularizer=js.regularizers.GroupL2(0.1, axis=-2))
    with pytest.raises(ValueError, match=r"regularizer GroupL2 couples classes.*one ranker"):
        js.fit(solver, X, labels > 1)
    for argument in ("chunk_size", "negatives"):
        with pytest.raises(ValueError, match=f"{argument} must be None for AdaGradFOBOS"):
            js.fit_one_vs_rest(solver, X, labels, **{argument: 1})
    rates = js.AdaGradFOBOS(np.full(C, 0.1), regularizer=solver.regularizer)
    with pytest.raises(ValueError, match="learning_rate must be a single number"):
        js.fit_one_vs_rest(rates, X, labels)
    across = js.AdaGradFOBOS(0.1, regularizer=js.regularizers.GroupL2(0.1))
    with pytest.raises(ValueError, match="regularizer GroupL2 couples the coordinates"):
        js.fit(across, scipy.sparse.csr_array(X), labels > 1)


def test_a_simplex_needs_delta_and_starts_at_its_centre() -> None:
    X, labels, _ = data(4)
    simplex = js.regularizers.Simplex(2.0)
    with pytest.raises(ValueError, match=r"delta must be > 0 with Simplex.*got 0\.0"):
        js.fit(js.AdaGradRDA(0.3, regularizer=simplex), X, labels > 1)
    for form in (js.AdaGradRDA, js.AdaGradFOBOS, js.RDA, js.FOBOS):
        more = {"delta": 0.1} if hasattr(form, "delta") else {}
        fit = js.fit(form(0.3, regularizer=simplex, **more), X, labels > 1, intercept="column")
        np.testing.assert_allclose(np.asarray(fit.model.coef).sum(), 2.0, rtol=1e-6)
        assert (np.asarray(fit.model.coef) >= 0).all()
        assert float(fit.model.intercept) != 0
