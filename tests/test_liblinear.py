"""SDCA against LIBLINEAR: the same optimum, and a gap that says so.

LIBLINEAR owes its speed near the optimum to *shrinking*: rows whose dual number is at a bound are
left alone for a while. Here the same is a host loop over ``fit``: one pass over all rows, then many
over those whose dual is free, with their part of the state. Every round is one of SDCA, whatever
rows it is on, and the gap is measured on all rows.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest
import scipy.sparse
from conftest import data_folder
from sklearn.svm import LinearSVC

import jaxsolvers as js
from benchmarks import real_sets

STRENGTHS = (0.01, 0.1, 1.0)  # C
GAP, RELATIVE = 1e-7, 1e-6
DATA = data_folder()


def free_rows(state: Any) -> np.ndarray:
    """Rows whose dual is at no bound for some ranker, and so many others that few sizes occur."""
    (tile,) = state.solver_state
    size = np.abs(np.asarray(tile.dual))
    n = size.shape[1]
    free = ((size > 0) & (size < 1)).any(axis=0)
    wanted = min(n, max(256, 1 << (int(free.sum()) - 1).bit_length()))
    others = np.flatnonzero(~free)[: wanted - int(free.sum())]
    return np.sort(np.concatenate([np.flatnonzero(free), others]))


def passes_over(
    solver: js.SDCA, state: Any, X: Any, signs: np.ndarray, rows: np.ndarray, epochs: int
) -> Any:
    """The state after passes over some rows. The weights and sums it holds are those of all."""
    (tile,) = state.solver_state
    part = dataclasses.replace(state, solver_state=(tile._replace(dual=tile.dual[:, rows]),))
    after = js.fit_one_vs_rest(solver, X[rows], signs[rows], epochs=epochs, state=part).state
    (found,) = after.solver_state
    dual = tile.dual.at[:, rows].set(found.dual)
    return dataclasses.replace(after, solver_state=(found._replace(dual=dual),))


def gap_and_objective(solver: js.SDCA, X: Any, signs: np.ndarray, most: int) -> Any:
    """SDCA's gaps and objectives, one ranker per strength, trained until all are small.

    Below GAP, and below half of RELATIVE of its objective where that is less.
    """
    state = None
    for turn in range(most):
        fit = js.fit_one_vs_rest(solver, X, signs, state=state)
        state = fit.state
        gap = np.asarray(js.metrics.duality_gap(solver, state, X, signs))
        ours = np.asarray(js.metrics.objective(solver, fit.model, X, signs))
        if (gap < np.minimum(GAP, RELATIVE / 2 * ours)).all():
            break
        rows = free_rows(state)
        if len(rows) < len(signs):
            state = passes_over(solver, state, X, signs, rows, 20 if turn < 4 else 200)
    return gap, ours, turn + 1


def agree(X: Any, signs: np.ndarray, most: int) -> tuple[float, float]:
    """The largest gap and relative difference in objective, over all columns and strengths."""
    n = len(signs)
    solver = js.SDCA(np.array([1 / (C * n) for C in STRENGTHS]))
    largest = worst = 0.0
    for own in signs.T:
        several = np.repeat(own[:, None], len(STRENGTHS), axis=1)
        gap, ours, turns = gap_and_objective(solver, X, several, most)
        for C, objective in zip(STRENGTHS, ours, strict=True):
            peer = LinearSVC(loss="hinge", fit_intercept=False, C=C, tol=1e-9, max_iter=10**6)
            w = peer.fit(X, own).coef_[0]
            theirs = w @ w / (2 * C * n) + np.maximum(1 - own * (X @ w), 0).mean()
            worst = max(worst, abs(objective - theirs) / theirs)
        largest = max(largest, float(gap.max()))
        print(f"{turns} turns, gap {gap.max():.1e}, objective off by {worst:.1e} at most")
    return largest, worst


def test_sdca_finds_the_optimum_of_liblinear() -> None:
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(300, 40, 0.3, "csr", rng=rng)
    y = np.sign(X @ rng.normal(size=40) + 0.3 * rng.normal(size=300) + 1e-9)
    with jax.enable_x64(True):
        gap, worst = agree(X, y[:, None], most=40)
    assert gap < GAP and worst < RELATIVE


@pytest.mark.data
@pytest.mark.exhaustive
@pytest.mark.skipif(DATA is None, reason="the data folder is absent")
@pytest.mark.parametrize("name", ["adult_a9a", "reuters_moneyfx", "usps"])
def test_sdca_finds_the_optimum_of_liblinear_on_real_rows(name: str) -> None:
    assert DATA is not None
    if name == "usps":
        digits = np.load(DATA / "usps" / "usps.npz")
        # Unit rows, as the other sets have: of the pixels as they are C = 1 takes far more passes.
        X, y = js.data.normalize_rows(digits["x_train"] / 1000), digits["y_train"].astype(int)
    else:
        data = real_sets.load(name)
        X, y = data.X.astype(np.float64), data.y.astype(int)
    classes = np.unique(y)
    signs = np.where(y[:, None] == (classes if len(classes) > 2 else classes[1:]), 1.0, -1.0)
    with jax.enable_x64(True):
        gap, worst = agree(X, signs, most=60)
    assert gap < GAP and worst < RELATIVE
