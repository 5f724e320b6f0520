"""Rankers whose numbers leave the floats: the others never notice, and someone is told once."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh
from tolerances import assert_bitwise

import jaxsolvers as js
from jaxsolvers.engine import tile

F = jnp.result_type(float)
HUGE, TINY = float(np.finfo(F).max) / 4, float(np.finfo(F).tiny) * 4
RNG = np.random.default_rng(16)
X = (100 * RNG.normal(size=(12, 3))).astype(F)
LABELS = np.arange(12) % 4


def rates(k: int, bad: bool, n: int = 4) -> np.ndarray:
    """A learning rate per ranker, ranker k's being hopeless."""
    values = np.linspace(0.1, 0.4, n)
    values[k] = HUGE if bad else values[k]
    return values


def lams(k: int, bad: bool, n: int = 4) -> np.ndarray:
    values = np.linspace(0.1, 0.4, n)
    values[k] = TINY if bad else values[k]
    return values


SOLVERS: dict[str, Any] = {
    "rda": lambda k, bad: js.AdaGradRDA(rates(k, bad)),
    "mirror": lambda k, bad: js.AdaGradFOBOS(rates(k, bad)),
    "pegasos": lambda k, bad: js.Pegasos(lams(k, bad)),
    "mean": lambda k, bad: js.Averaged(js.AdaGradFOBOS(rates(k, bad))),
}


def caught(solver: Any, labels: np.ndarray = LABELS, **options: Any) -> tuple[js.Fit, list[Any]]:
    """The fit and all its warnings."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        fit = js.fit_one_vs_rest(solver, X, labels, epochs=3, **options)
    return fit, found


@pytest.mark.parametrize(("name", "batch_size"), [*((name, 1) for name in SOLVERS), ("mirror", 4)])
def test_the_others_are_as_if_nothing_had_happened(name, batch_size):
    k = 2
    lost, found = caught(SOLVERS[name](k, True), batch_size=batch_size, intercept="column")
    sound, none = caught(SOLVERS[name](k, False), batch_size=batch_size, intercept="column")
    assert len(found) == 1 and not none
    assert found[0].category is RuntimeWarning and found[0].filename == __file__
    message = str(found[0].message)
    assert "1 of 4 rankers" in message and "first is 2" in message and "state.alive" in message
    assert ("lam" if name == "pegasos" else "learning_rate") in message
    others = np.arange(4) != k
    np.testing.assert_array_equal(lost.state.alive, others)
    assert np.asarray(sound.state.alive).all()
    for ours, theirs in (
        (lost.model.coef, sound.model.coef),
        (lost.model.intercept, sound.model.intercept),
        (lost.history["progressive_loss"].T, sound.history["progressive_loss"].T),
        (lost.history["mistakes"].T, sound.history["mistakes"].T),
    ):
        assert_bitwise(np.asarray(ours)[others], np.asarray(theirs)[others])


@pytest.mark.parametrize("name", ["mirror", "pegasos"])
def test_a_lost_ranker_has_zero_weights_and_is_never_predicted(name):
    fit, _ = caught(SOLVERS[name](1, True), intercept="column")
    np.testing.assert_array_equal(fit.model.coef[1], np.zeros(3))
    assert fit.model.intercept[1] == -np.inf and np.isfinite(fit.model.coef).all()
    scores = np.asarray(fit.model.decision_function(X))
    assert (scores[:, 1] == -np.inf).all() and np.isfinite(np.delete(scores, 1, 1)).all()
    assert 1 not in fit.model.predict(X) and (fit.model.top_k(X, 4)[0][:, 3] == 1).all()


def test_gram_sweeps_isolate_a_lost_ranker():
    # 18 rankers sweep together on blocks.
    labels, others = np.arange(12) % 6, np.arange(18) != 3
    fits = []
    for bad in (True, False):
        solver = js.Averaged(js.Pegasos(lams(3, bad, 18)))
        fits.append(caught(solver, labels, classes=np.arange(18)))
    (lost, found), (sound, none) = fits
    assert len(found) == 1 and not none
    np.testing.assert_array_equal(lost.state.alive, others)
    assert_bitwise(np.asarray(lost.model.coef)[others], np.asarray(sound.model.coef)[others])


def test_a_lost_ranker_stays_lost():
    first, _ = caught(SOLVERS["mirror"](0, True))
    second, found = caught(SOLVERS["mirror"](0, True), state=first.state)
    assert len(found) == 1
    np.testing.assert_array_equal(second.state.alive, [False, True, True, True])
    whole, _ = caught(SOLVERS["mirror"](0, False))
    whole = js.fit_one_vs_rest(SOLVERS["mirror"](0, False), X, LABELS, epochs=3, state=whole.state)
    assert_bitwise(np.asarray(second.model.coef)[1:], np.asarray(whole.model.coef)[1:])


@pytest.mark.parametrize("place", ["chunks", "mesh"])
def test_chunks_and_devices_report_a_lost_ranker_once(monkeypatch, place):
    monkeypatch.setattr(tile, "LARGEST_TILE", 2)
    mesh = Mesh(np.array(jax.devices()), ("rankers",))
    options: dict[str, Any] = {"chunks": {"chunk_size": 2}, "mesh": {"mesh": mesh}}[place]
    labels = np.arange(12) % 3  # the last tile holds ranker 2 alone
    for k in (1, 2):
        lost, found = caught(js.AdaGradFOBOS(rates(k, True, 3)), labels, **options)
        sound, _ = caught(js.AdaGradFOBOS(rates(k, False, 3)), labels, **options)
        assert len(found) == 1 and found[0].filename == __file__
        others = np.arange(3) != k
        np.testing.assert_array_equal(lost.state.alive, others)
        assert_bitwise(np.asarray(lost.model.coef)[others], np.asarray(sound.model.coef)[others])
        assert lost.history["progressive_loss"].shape == (3, 3)


@pytest.mark.parametrize("front", [js.fit, js.fit_one_vs_rest])
def test_when_all_are_lost_there_is_one_error(front):
    for solver, word in ((js.AdaGradFOBOS(HUGE), "learning_rate"), (js.Pegasos(TINY), "lam")):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            with pytest.raises(FloatingPointError, match=rf"every ranker.*{word}.*scale X"):
                front(solver, X, LABELS % 2, epochs=3)
        assert not found


def test_an_overflow_in_the_last_round_is_found():
    # The scores were fine to the end; the weights are not.
    rows = np.full((2, 1), np.sqrt(HUGE), F)
    solver = js.Pegasos(TINY, loss=js.losses.Squared())
    with pytest.raises(FloatingPointError, match="lam"):
        js.fit(solver, rows, [HUGE, HUGE], batch_size=2)


def test_huge_but_finite_numbers_are_nobody_s_fault():
    fit, found = caught(js.AdaGradFOBOS(1e6))
    assert not found and np.asarray(fit.state.alive).all()
    fit = js.fit(js.Pegasos(0.1), X * 1e12, np.sign(X[:, 0]), epochs=3)
    assert np.isfinite(fit.model.coef).all() and bool(fit.state.alive)
