"""Slabs, blocks, chunks, meshes and the progress bar: none of them changes a bit."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tolerances import assert_bitwise, assert_close, tolerance

import jaxsolvers as js
from jaxsolvers.engine import dense_slabs, tile
from jaxsolvers.engine.dense_slabs import dense_shape
from jaxsolvers.engine.slabs import SlabShape

F = jnp.result_type(float)
RNG = np.random.default_rng(15)
N = 29  # seven blocks of four rows and one row
X = RNG.normal(size=(N, 3)).astype(F)
LABELS = np.arange(N) % 10
PEGASOS = js.Averaged(js.Pegasos(0.1, project=True))
MIRROR = js.AdaGradFOBOS(0.1, regularizer=js.regularizers.L1(0.01))


def compare(found: js.Fit, expected: js.Fit) -> None:
    """Weights, alive and counts to the bit; losses are summed in another grouping."""
    for ours, theirs in zip(outcome(found), outcome(expected), strict=True):
        assert_bitwise(np.asarray(ours), np.asarray(theirs))
    losses = [fit.history["progressive_loss"] for fit in (found, expected)]
    np.testing.assert_allclose(*losses, rtol=tolerance("rewritten", F))


def outcome(fit: js.Fit) -> tuple[Any, ...]:
    counts = fit.history["mistakes"], fit.history["violations"]
    return (fit.model.coef, fit.model.intercept, fit.state.alive, *counts)


@pytest.mark.parametrize("order", ["permutation", "cyclic"])
@pytest.mark.parametrize("kind", [np.asarray, jnp.asarray], ids=["host", "device"])
def test_several_slabs_are_one_slab(monkeypatch, order, kind):
    options = {"order": order, "epochs": 2, "block_size": 4, "batch_size": 2}
    options |= {"intercept": "column", "sample_weight": np.arange(N) % 3}
    rows = kind(X)
    one = js.fit_one_vs_rest(MIRROR, rows, LABELS, **options)
    monkeypatch.setattr(dense_slabs, "SLAB_BYTES", 2 * 4 * 4 * X.itemsize)
    assert dense_shape(N, 4, X.itemsize, 4) == SlabShape(2, 4)
    several = js.fit_one_vs_rest(MIRROR, rows, LABELS, **options)
    compare(several, one)
    states = [jax.tree.leaves(fit.state.solver_state) for fit in (several, one)]
    assert_bitwise(*states)


def test_several_slabs_are_one_slab_in_gram_sweeps(monkeypatch):
    options = {"classes": range(20), "block_size": 4, "epochs": 2}
    one = js.fit_one_vs_rest(PEGASOS, X, LABELS, **options)
    monkeypatch.setattr(dense_slabs, "SLAB_BYTES", 4 * 3 * X.itemsize)
    compare(js.fit_one_vs_rest(PEGASOS, X, LABELS, **options), one)


def test_slabs_hold_what_fits_and_no_more_than_is_needed():
    million = 10**6
    assert dense_shape(million, 1000, 4, 128) == SlabShape(32, 128)  # 32 x 128 x 1000 x 4 < 2^24
    assert dense_shape(million, 10**7, 4, 128) == SlabShape(1, 128)
    assert dense_shape(300, 10, 4, 128) == SlabShape(4, 128)
    assert dense_shape(1, 1, 4, 1) == SlabShape(1, 1)


def test_blocks_of_another_size_give_the_same_run_up_to_rounding():
    solver = PEGASOS
    one = js.fit_one_vs_rest(solver, X, LABELS, batch_size=2, block_size=64)
    other = js.fit_one_vs_rest(solver, X, LABELS, batch_size=2, block_size=5)
    assert_close(other.model.coef, one.model.coef, "run")


def test_chunks_of_rankers_change_no_bit(monkeypatch):
    solver = PEGASOS
    monkeypatch.setattr(tile, "LARGEST_TILE", 4)
    options = {"intercept": "column", "positive_weight": np.arange(10) + 1.0, "epochs": 2}
    whole = js.fit_one_vs_rest(solver, X, LABELS, **options)
    for chunk_size in (1, 4, 5, 8, 10, 1000):  # rounded up to 4, 4, 8, 8, 12, 1000
        part = js.fit_one_vs_rest(solver, X, LABELS, chunk_size=chunk_size, **options)
        compare(part, whole)
        on_host = isinstance(part.model.coef, np.ndarray)
        assert on_host == (chunk_size <= 8)
        np.testing.assert_array_equal(part.model.predict(X), whole.model.predict(X))
    options.pop("epochs"), options.pop("intercept")
    first = js.fit_one_vs_rest(solver, X, LABELS, chunk_size=4, intercept="column", **options)
    second = js.fit_one_vs_rest(solver, X, LABELS, chunk_size=8, state=first.state, **options)
    assert_bitwise(np.asarray(second.model.coef), np.asarray(whole.model.coef))


def test_numbers_per_ranker_follow_their_rankers(monkeypatch):
    rates = np.linspace(0.05, 0.5, 10)
    solver = js.AdaGradRDA(rates, delta=0.5, regularizer=js.regularizers.L1(rates / 100))
    whole = js.fit_one_vs_rest(solver, X, LABELS)
    for k in (0, 7):
        one = js.AdaGradRDA(rates[k], delta=0.5, regularizer=js.regularizers.L1(rates[k] / 100))
        alone = js.fit(one, X, np.equal(LABELS, k))
        assert_close(whole.model.coef[k], alone.model.coef, "rewritten")
    monkeypatch.setattr(tile, "LARGEST_TILE", 4)
    chunked = js.fit_one_vs_rest(solver, X, LABELS, chunk_size=4)
    assert_close(np.asarray(chunked.model.coef), np.asarray(whole.model.coef), "rewritten")


def test_a_domain_over_the_features_is_shared_by_all_rankers():
    lower, upper = np.array([-0.1, 0.0, -1.0]), np.array([0.1, 0.2, 0.0])
    solver = js.AdaGradFOBOS(0.5, regularizer=js.regularizers.Box(lower, upper))
    for labels in (LABELS, np.arange(N) % 3):  # ten rankers, and as many as features
        coef = np.asarray(js.fit_one_vs_rest(solver, X, labels).model.coef)
        assert (coef >= lower.astype(F)).all() and (coef <= upper.astype(F)).all()
        assert (coef == upper.astype(F)).any()


def test_the_progress_bar_counts_rows_and_rankers(capsys):
    quiet = js.fit_one_vs_rest(MIRROR, X, LABELS, epochs=2)
    assert capsys.readouterr() == ("", "")
    shown = js.fit_one_vs_rest(MIRROR, X, LABELS, epochs=2, progress=True)
    out, err = capsys.readouterr()
    assert out == "" and "row x ranker" in err and "100%" in err and "580/580" in err
    compare(shown, quiet)


def test_the_progress_bar_is_closed_when_a_run_fails(capsys):
    rows = np.array([[1.0], [2.0]], F)
    solver = js.AdaGradFOBOS(float(np.finfo(F).max) / 8, loss=js.losses.Squared())
    with pytest.raises(FloatingPointError):
        js.fit(solver, rows, [0, 1], epochs=100, progress=True)
    assert capsys.readouterr().err.endswith("\n")
