"""SDCA against LIBLINEAR: the same optimum, and a gap that says so."""

from __future__ import annotations

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


def agree(X: Any, signs: np.ndarray, epochs: int, most: int) -> tuple[float, float]:
    """The largest gap and relative difference in objective, over all columns and strengths.

    Each column of ``signs`` (n, K) is trained with each C, all together, in float64. A ranker of
    C = 0.01 is there long before one of C = 1; all are trained until the last one is: its gap
    below GAP, and below half of RELATIVE of its objective where that is less.
    """
    n, n_classes = signs.shape
    every = np.repeat(signs, len(STRENGTHS), axis=1)
    solver = js.SDCA(np.tile([1 / (C * n) for C in STRENGTHS], n_classes))
    state, gap, ours, done = None, np.full(1, np.inf), np.ones(1), 0
    while (gap >= np.minimum(GAP, RELATIVE / 2 * ours)).any() and done < most:
        fit = js.fit_one_vs_rest(solver, X, every, epochs=epochs, state=state)
        state, done = fit.state, done + epochs
        gap = np.asarray(js.metrics.duality_gap(solver, state, X, every))
        ours = np.asarray(js.metrics.objective(solver, fit.model, X, every))
    worst = 0.0
    for k in range(every.shape[1]):
        C = STRENGTHS[k % len(STRENGTHS)]
        peer = LinearSVC(loss="hinge", fit_intercept=False, C=C, tol=1e-9, max_iter=10**6)
        w = peer.fit(X, every[:, k]).coef_[0]
        margin = every[:, k] * (X @ w)
        theirs = w @ w / (2 * C * n) + np.maximum(1 - margin, 0).mean()
        worst = max(worst, abs(ours[k] - theirs) / theirs)
    print(f"{done} epochs, gap {gap.max():.1e}, objective off by {worst:.1e}")
    return float(gap.max()), worst


def test_sdca_finds_the_optimum_of_liblinear() -> None:
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(120, 40, 0.3, "csr", rng=rng)
    y = np.sign(X @ rng.normal(size=40) + 0.3 * rng.normal(size=120) + 1e-9)
    with jax.enable_x64(True):
        gap, worst = agree(X, y[:, None], epochs=50, most=400)
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
        gap, worst = agree(X, signs, epochs=50, most=2000)
    assert gap < GAP and worst < RELATIVE
