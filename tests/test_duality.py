"""Duality gaps: the metric, what a fit records of it, and SDCA driven to it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import members
import numpy as np
import pytest
import scipy.sparse
from jax.sharding import Mesh
from references.sdca import duality_gap, primal
from tolerances import assert_close

import jaxsolvers as js
from jaxsolvers.losses.dual import DualLoss

FLOAT = np.dtype(jnp.result_type(float))
N, D, K = 60, 7, 20
DUAL = [loss for loss in members.losses() if isinstance(loss, DualLoss)]
RNG = np.random.default_rng(3)
X = (RNG.normal(size=(N, D)) * (RNG.random((N, D)) < 0.5)).astype(FLOAT)
LABELS = RNG.permutation(np.arange(N) % K)
WEIGHT = RNG.uniform(0.2, 2.0, N) * (RNG.random(N) < 0.9)
SPARSE = scipy.sparse.csr_matrix(X)


def innermost(state: Any) -> Any:
    return getattr(state, "inner", state)


@members.each(DUAL, "loss")
def test_the_gap_of_one_ranker_is_that_of_the_reference(loss: Any) -> None:
    solver = js.SDCA(0.05, loss)
    name, parameter = members.reference_loss(loss)
    y = np.where(LABELS < 8, -1.0, 1.0) if loss.classification else RNG.normal(size=N)
    y = y.astype(FLOAT)
    fit = js.fit(solver, X, y, epochs=2, sample_weight=WEIGHT, record=("objective", "gap"))
    options = {"loss": name, "parameter": parameter, "weights": WEIGHT, "lam": 0.05}
    dual = np.asarray(fit.state.solver_state.dual, float)
    expected = duality_gap(X.astype(float), y.astype(float), dual, **options)
    gap = js.metrics.duality_gap(solver, fit.state, X, y, sample_weight=WEIGHT)
    objective = js.metrics.objective(solver, fit.model, X, y, sample_weight=WEIGHT)
    assert gap.shape == () and gap.dtype == FLOAT
    scale = float(objective)  # of two numbers whose difference this is
    assert_close(gap, expected, "run", scale=scale)
    assert_close(fit.history["gap"][-1].astype(FLOAT), expected, "run", scale=scale)
    assert_close(fit.history["objective"][-1].astype(FLOAT), objective, "run")
    dual = fit.history["objective"] - fit.history["gap"]
    assert dual[1] > dual[0]  # no round lowers it; the gap itself may grow


@pytest.mark.parametrize("rows", [X, SPARSE], ids=["dense", "sparse"])
@pytest.mark.parametrize("mean", [False, True], ids=["last", "mean"])
def test_gaps_of_many_rankers_are_those_of_each(rows: Any, mean: bool) -> None:
    """Numbers and weights of their own, an intercept; of a mean, its objective counts."""
    lam, factors = np.linspace(0.02, 0.2, K), np.linspace(0.5, 3.0, K)
    solver: Any = js.Averaged(js.SDCA(lam)) if mean else js.SDCA(lam)
    fit = js.fit_one_vs_rest(
        solver, rows, LABELS, epochs=2, sample_weight=WEIGHT, positive_weight=factors,
        intercept="column", record=("gap",),
    )  # fmt: skip
    gap = js.metrics.duality_gap(solver, fit.state, rows, LABELS, sample_weight=WEIGHT)
    signs = np.where(LABELS[:, None] == np.arange(K), 1, -1)
    other = js.metrics.duality_gap(solver, fit.state, rows, signs, sample_weight=WEIGHT)
    whole = np.column_stack([X.astype(float), np.ones(N)])
    coef = np.column_stack([fit.model.coef, fit.model.intercept]).astype(float)
    duals = np.asarray(innermost(fit.state.tiles()[0]).dual, float)
    for k in range(K):
        y, s = signs[:, k].astype(float), np.where(signs[:, k] > 0, factors[k], 1) * WEIGHT
        expected = duality_gap(whole, y, duals[k], lam=lam[k], weights=s)
        # What the weights of the state have more than those of its duals.
        for w, sign in ((coef[k], 1), (primal(whole, duals[k], s / s.sum(), lam[k]), -1)):
            loss = np.maximum(1 - y * (whole @ w), 0) @ s / s.sum()
            expected += sign * (lam[k] / 2 * w @ w + loss)
        assert_close(gap[k], expected, "run", scale=1.0, name=str(k))
    assert_close(other, np.asarray(gap), "compiled", scale=1.0)
    assert_close(fit.history["gap"][-1].astype(FLOAT), np.asarray(gap), "run", scale=1.0)


def test_chunks_and_devices_record_the_same_gaps() -> None:
    mesh = Mesh(np.array(jax.devices()), ("rankers",))
    codes = [tuple(range(10 * i, 10 * i + 10)) for i in range(N)]
    runs = [
        js.fit_one_vs_rest(
            js.SDCA(0.05), X, codes, record=("gap", "objective"), **options
        ).history
        for options in ({}, {"chunk_size": 512}, {"mesh": mesh})
    ]  # fmt: skip
    for name in ("gap", "objective"):
        assert runs[0][name].shape == (1, 600)
        for other in runs[1:]:
            assert_close(other[name].astype(FLOAT), runs[0][name], "rewritten")


def test_what_has_no_gap_is_refused_by_name() -> None:
    fit = js.fit(js.SDCA(0.1), X, LABELS < 5)
    other = js.fit(js.Pegasos(0.1), X, LABELS < 5)
    gap = js.metrics.duality_gap
    with pytest.raises(ValueError, match="solver must be one with duals"):
        gap(js.Pegasos(0.1), other.state, X, LABELS < 5)
    with pytest.raises(ValueError, match="state was made by Pegasos"):
        gap(js.SDCA(0.1), other.state, X, LABELS < 5)
    with pytest.raises(ValueError, match="state must be the state of a fit"):
        gap(js.SDCA(0.1), fit.model, X, LABELS < 5)
    with pytest.raises(ValueError, match="X must be the 60 rows"):
        gap(js.SDCA(0.1), fit.state, X[:5], LABELS[:5] < 5)
    with pytest.raises(ValueError, match="y must have shape"):
        gap(js.SDCA(0.1), fit.state, X, LABELS[:5] < 5)
    with pytest.raises(ValueError, match="record must not hold 'gap' for Pegasos"):
        js.fit(js.Pegasos(0.1), X, LABELS < 5, record=("gap",))
    source = js.data.ArraySource(X, LABELS < 5)
    with pytest.raises(ValueError, match="record must hold 'theory' alone for a source"):
        js.fit(js.SDCA(0.1), source, record=("gap",))
