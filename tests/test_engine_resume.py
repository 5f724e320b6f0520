"""Runs in parts: a state continues a run to the bit, is never consumed, and must not be bent."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh
from tolerances import assert_bitwise

import jaxsolvers as js
from jaxsolvers.engine.tile import advance

F = jnp.result_type(float)
RNG = np.random.default_rng(13)
X = RNG.normal(size=(8, 3)).astype(F)
Y = np.array([1, -1, 1, 1, -1, -1, 1, -1])
LABELS = np.arange(8) % 3
WEIGHT = RNG.uniform(0.5, 2, 8)
PEGASOS = js.Pegasos(0.1)
HISTORY = ("progressive_loss", "mistakes", "violations")


def same(found: js.Fit, expected: js.Fit) -> None:
    """Weights, intercepts and states agree to the bit."""
    assert_bitwise(
        jax.tree.map(np.asarray, jax.tree.leaves((found.state, found.model.coef))),
        jax.tree.map(np.asarray, jax.tree.leaves((expected.state, expected.model.coef))),
    )
    assert_bitwise(np.asarray(found.model.intercept), np.asarray(expected.model.intercept))


CASES: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    # solver, options kept by the state, options to give again
    "pegasos": (PEGASOS, {"key": 5}, {}),
    "uniform": (js.AdaGradRDA(0.1), {"order": "uniform", "key": 2}, {}),
    "short batch": (
        js.AdaGradFOBOS(0.1), {"batch_size": 3, "intercept": "column"}, {"sample_weight": WEIGHT},
    ),
    "projected": (js.Pegasos(0.1, project=True), {"batch_size": 2}, {"sample_weight": WEIGHT}),
    "mean": (js.Averaged(PEGASOS, start=10), {"block_size": 4}, {}),
    "polynomial": (
        js.Averaged(js.AdaGradFOBOS(0.1), kind="polynomial"), {"order": "cyclic"}, {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_split_run_is_the_whole_run(name):
    solver, kept, again = CASES[name]
    whole = js.fit(solver, X, Y, epochs=5, **kept, **again)
    part = js.fit(solver, X, Y, epochs=2, **kept, **again)
    histories = [part.history]
    for epochs in (1, 2):
        part = js.fit(solver, X, Y, epochs=epochs, state=part.state, **again)
        histories.append(part.history)
    same(part, whole)
    assert int(part.state.epoch) == 5
    for quantity in HISTORY:
        joined = np.concatenate([history[quantity] for history in histories])
        np.testing.assert_array_equal(joined, whole.history[quantity])


@pytest.mark.parametrize("name", ["short batch", "mean"])
def test_a_split_run_of_many_rankers_is_the_whole_run(name):
    solver, kept, again = CASES[name]
    again = {**again, "positive_weight": np.array([1.0, 2, 0.5])}
    whole = js.fit_one_vs_rest(solver, X, LABELS, epochs=3, **kept, **again)
    part = js.fit_one_vs_rest(solver, X, LABELS, epochs=2, **kept, **again)
    part = js.fit_one_vs_rest(solver, X, LABELS, state=part.state, **again)
    same(part, whole)
    assert part.model.classes.tolist() == [0, 1, 2]


@pytest.mark.parametrize("front", [js.fit, js.fit_one_vs_rest])
def test_a_state_is_untouched_and_serves_twice(front):
    first = front(js.AdaGradFOBOS(0.1), X, Y)
    kept = jax.tree.map(np.array, first.state)
    ones = [front(js.AdaGradFOBOS(0.1), X, Y, state=first.state) for _ in range(2)]
    same(*ones)
    front(js.AdaGradFOBOS(0.1), X, Y, state=ones[0].state)
    for leaf in jax.tree.leaves(first.state):
        assert not isinstance(leaf, jax.Array) or not leaf.is_deleted()
    assert_bitwise(jax.tree.map(np.array, first.state), kept)


def test_a_state_continues_wherever_it_was_made():
    labels = np.arange(8) % 5
    four = Mesh(np.array(jax.devices()), ("rankers",))
    places = ({}, {"mesh": four})
    whole = js.fit_one_vs_rest(js.AdaGradRDA(0.1), X, labels, epochs=2)
    for first in places:
        state = js.fit_one_vs_rest(js.AdaGradRDA(0.1), X, labels, **first).state
        for second in places:
            fit = js.fit_one_vs_rest(js.AdaGradRDA(0.1), X, labels, state=state, **second)
            assert_bitwise(np.asarray(fit.model.coef), np.asarray(whole.model.coef))


def test_a_state_takes_other_rows_of_the_same_width():
    first = js.fit(PEGASOS, X, Y, order="cyclic")
    more = RNG.normal(size=(13, 3)).astype(F)
    y = np.where(more[:, 0] > 0, 1, -1)
    second = js.fit(PEGASOS, more, y, state=first.state)
    assert int(second.state.solver_state.scalars.t) == 21
    joined = js.fit(PEGASOS, np.vstack([X, more]), np.append(Y, y), order="cyclic")
    assert_bitwise(second.model.coef, joined.model.coef)


def test_arguments_that_agree_with_the_state_may_be_given_again():
    kept = {"batch_size": 2, "order": "uniform", "key": 3, "intercept": "column", "block_size": 4}
    first = js.fit(js.Pegasos(np.float32(0.25)), X, Y, **kept)
    second = js.fit(js.Pegasos(0.25), X, Y, state=first.state, **kept)
    same(second, js.fit(js.Pegasos(0.25), X, Y, epochs=2, **kept))


CONTRADICTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "batch_size": ("batch_size", {"batch_size": 2}),
    "order": ("order", {"order": "cyclic"}),
    "key": ("key", {"key": 1}),
    "jax key": ("key", {"key": jax.random.key(1)}),
    "intercept": ("intercept", {"intercept": "column"}),
    "block_size": ("block_size", {"block_size": 2}),
    "number": ("lam", {"solver": js.Pegasos(0.2)}),
    "choice": ("project", {"solver": js.Pegasos(0.1, project=True)}),
    "loss": ("loss", {"solver": js.Pegasos(0.1, loss=js.losses.Logistic())}),
    "solver": ("solver", {"solver": js.AdaGradRDA(0.1)}),
    "wrapper": ("solver", {"solver": js.Averaged(PEGASOS)}),
    "width": ("X", {"X": X[:, :2]}),
    "labels": ("label 7", {"y": np.where(Y > 0, 7, -1)}),
    "epochs": ("epochs", {"epochs": 2**28}),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_what_contradicts_the_state_is_an_error(name):
    words, changed = CONTRADICTIONS[name]
    first = js.fit(PEGASOS, X, Y)
    given: dict[str, Any] = {"solver": PEGASOS, "X": X, "y": Y, "state": first.state, **changed}
    before = advance._cache_size()
    with pytest.raises(ValueError, match=words):
        js.fit(**given)
    assert advance._cache_size() == before


def test_rows_of_another_dtype_contradict_the_state(x64):
    first = js.fit(PEGASOS, X.astype(np.float32), Y)
    if x64:
        with pytest.raises(ValueError, match=r"X.*float32.*float64|float32.*float64.*X"):
            js.fit(PEGASOS, X.astype(np.float64), Y, state=first.state)
    half = js.fit(PEGASOS, X.astype(np.float16), Y, state=first.state)  # float32 as well
    assert half.model.coef.dtype == np.float32


def test_states_of_other_numbers_of_rankers_are_errors():
    many = js.fit_one_vs_rest(PEGASOS, X, LABELS).state
    two = js.fit_one_vs_rest(PEGASOS, X, Y).state
    one = js.fit(PEGASOS, X, Y).state
    for front, y, state in (
        (js.fit, Y, many),
        (js.fit, Y, two),
        (js.fit_one_vs_rest, Y, one),
        (js.fit_one_vs_rest, LABELS, two),
    ):
        with pytest.raises(ValueError, match=r"\by\b"):
            front(PEGASOS, X, y, state=state)
    for classes in ([0, 1, 2, 3], [2, 1, 0]):
        with pytest.raises(ValueError, match=r"state.*\b(y|classes)\b"):
            js.fit_one_vs_rest(PEGASOS, X, LABELS, classes=classes, state=many)


@pytest.mark.parametrize("front", [js.fit, js.fit_one_vs_rest])
def test_what_is_no_state(front):
    fit = front(PEGASOS, X, Y)
    for state in ("saved", fit, fit.model, fit.state.solver_state, {}, 0):
        with pytest.raises(ValueError, match=r"^state must be .*got"):
            front(PEGASOS, X, Y, state=state)


def test_the_weight_of_positives_is_continued_and_must_not_change():
    rows = np.random.default_rng(5).normal(size=(30, 3)).astype(np.float32)
    labels = np.arange(30) % 3
    for weight in (4.0, [1.0, 2.0, 3.0]):
        given = {"positive_weight": weight}
        whole = js.fit_one_vs_rest(js.Pegasos(0.1), rows, labels, epochs=2, **given)
        first = js.fit_one_vs_rest(js.Pegasos(0.1), rows, labels, **given)
        second = js.fit_one_vs_rest(js.Pegasos(0.1), rows, labels, state=first.state)
        np.testing.assert_array_equal(whole.model.coef, second.model.coef)
        with pytest.raises(ValueError, match="positive_weight"):
            js.fit_one_vs_rest(
                js.Pegasos(0.1), rows, labels, state=first.state, positive_weight=2.0
            )


def test_a_mesh_with_a_second_real_axis_is_refused():
    rows, labels = np.eye(4, dtype=np.float32), np.arange(4)
    devices = np.array(jax.devices()).reshape(2, 2)
    mesh = jax.sharding.Mesh(devices, ("rankers", "data"))
    with pytest.raises(ValueError, match=r"mesh must have no axis but 'rankers'"):
        js.fit_one_vs_rest(js.Pegasos(0.1), rows, labels, mesh=mesh)
