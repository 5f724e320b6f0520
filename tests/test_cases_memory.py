"""Memory layout, donation, devices, and runs in two parts."""

from __future__ import annotations

import pickle
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references import adagrad as reference
from tolerances import assert_bitwise, assert_close

import jaxsolvers as js

F = jnp.result_type(float)
RNG = np.random.default_rng(100)
X = RNG.normal(size=(8, 3)).astype(F)
Y = np.array(["a", "b", "c", "a", "b", "c", "c", "a"])
SOLVER = js.AdaGradFOBOS(0.1)


def spread(array: np.ndarray) -> np.ndarray:
    """Every second row of an array that holds others between them."""
    wide = np.full((2 * len(array), *array.shape[1:]), array[0])
    wide[::2] = array
    return wide[::2]


LAYOUTS = {
    "fortran": (np.asfortranarray(X), Y),
    "every second row": (spread(X), spread(Y)),
    "backwards": (X[::-1].copy()[::-1], Y[::-1].copy()[::-1]),
    "columns backwards": (X[:, ::-1].copy()[:, ::-1], Y),
    "every second column": (np.repeat(X, 2, axis=1)[:, ::2], Y),
    "transposed": (X.T.copy().T, Y),
    "fortran on a device": (jnp.asarray(np.asfortranarray(X)), Y),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_layout_of_the_rows_changes_no_bit_case_100(layout):
    rows, y = LAYOUTS[layout]
    expected = js.fit_one_vs_rest(SOLVER, X, Y, epochs=2)
    fit = js.fit_one_vs_rest(SOLVER, rows, y, epochs=2)
    assert_bitwise(fit.model.coef, expected.model.coef)
    np.testing.assert_array_equal(fit.model.predict(rows), expected.model.predict(X))
    assert_bitwise(fit.model.decision_function(rows), expected.model.decision_function(X))


def test_strided_weights_and_classes_are_fine_case_100():
    weight, positive = np.arange(1.0, 9), np.array([1.0, 2, 3])
    expected = js.fit_one_vs_rest(SOLVER, X, Y, sample_weight=weight, positive_weight=positive)
    fit = js.fit_one_vs_rest(
        js.AdaGradFOBOS(np.full(6, 0.1)[::2]),
        X,
        spread(Y),
        classes=spread(np.array(["a", "b", "c"])),
        sample_weight=spread(weight),
        positive_weight=spread(positive),
    )
    assert_bitwise(fit.model.coef, expected.model.coef)


@pytest.fixture(params=["flag", "memmap", "broadcast"])
def frozen(request, tmp_path) -> tuple[np.ndarray, np.ndarray]:
    """X and y that refuse to be written to."""
    rows, y = X.copy(), np.arange(8) % 3
    if request.param == "memmap":
        rows.tofile(tmp_path / "X")
        y.tofile(tmp_path / "y")
        return (
            np.memmap(tmp_path / "X", rows.dtype, "r", shape=rows.shape),
            np.memmap(tmp_path / "y", y.dtype, "r", shape=y.shape),
        )
    if request.param == "broadcast":
        return np.broadcast_to(rows[0], rows.shape), np.broadcast_to(y.reshape(1, 8), (1, 8))[0]
    rows.flags.writeable = y.flags.writeable = False
    return rows, y


def test_read_only_arrays_train_and_stay_as_they_are_case_101(frozen):
    rows, y = frozen
    before = rows.tobytes(), y.tobytes()
    fit = js.fit_one_vs_rest(SOLVER, rows, y)
    fit = js.fit_one_vs_rest(SOLVER, rows, y, state=fit.state)
    found = fit.model.predict(rows)
    assert (rows.tobytes(), y.tobytes()) == before and not rows.flags.writeable
    whole = js.fit_one_vs_rest(SOLVER, np.array(rows), np.array(y), epochs=2)
    assert_bitwise(fit.model.coef, whole.model.coef)
    np.testing.assert_array_equal(found, whole.model.predict(np.array(rows)))


def test_arrays_on_a_device_are_not_donated_case_101():
    rows = jnp.asarray(X)
    coef = [js.fit_one_vs_rest(SOLVER, rows, jnp.arange(8) % 3).model.coef for _ in range(2)]
    np.testing.assert_array_equal(rows, X)
    assert_bitwise(coef[0], coef[1])


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("name", ["rda", "mirror", "mean"])
def test_two_parts_equal_one_run_case_103(name, saved):
    solver = {
        "rda": js.AdaGradRDA(0.1, regularizer=js.regularizers.L1(0.01)),
        "mirror": js.AdaGradFOBOS(0.1),
        "mean": js.Averaged(js.AdaGradFOBOS(0.1), start=2),
    }[name]
    parts, options = (slice(0, 5), slice(5, 8)), {"classes": ["a", "b", "c"], "order": "cyclic"}
    whole: Any = None
    for part in parts:
        state = None if whole is None else whole.state
        whole = js.fit_one_vs_rest(solver, X[part], Y[part], state=state, **options)
    first = js.fit_one_vs_rest(solver, X[parts[0]], Y[parts[0]], **options)
    state = pickle.loads(pickle.dumps(first.state)) if saved else first.state
    second = js.fit_one_vs_rest(solver, X[parts[1]], Y[parts[1]], state=state)
    assert_bitwise(second.model.coef, whole.model.coef)
    assert_bitwise(
        jax.tree.leaves(second.state.solver_state), jax.tree.leaves(whole.state.solver_state)
    )


def test_two_parts_equal_the_plain_loop_case_103():
    state = None
    for part in (slice(0, 5), slice(5, 8)):
        y = np.where(Y[part] == "a", 1, -1)
        fit = js.fit(SOLVER, X[part], y, order="cyclic", state=state)
        state = fit.state
    run = reference.adagrad(
        X, np.where(Y == "a", 1, -1), np.arange(8)[:, None], form="mirror", learning_rate=0.1
    )
    assert_close(np.asarray(fit.model.coef), run.w[-1], "run")
    assert_close(np.asarray(state.solver_state.accumulator), run.accumulator[-1], "run")
    assert int(state.solver_state.t) == 8 and int(state.epoch) == 2


def on(device: int, array: np.ndarray) -> jax.Array:
    return jax.device_put(array, jax.devices()[device])


def test_a_run_follows_its_rows_to_another_device_case_133():
    first = js.fit_one_vs_rest(SOLVER, on(0, X), Y)
    moved = js.fit_one_vs_rest(SOLVER, on(1, X), Y, state=first.state)
    stayed = js.fit_one_vs_rest(SOLVER, on(0, X), Y, state=first.state)
    for fit, device in ((first, 0), (moved, 1), (stayed, 0)):
        leaves = jax.tree.leaves((fit.model.coef, fit.state.solver_state))
        assert {d.id for leaf in leaves for d in leaf.devices()} == {device}
    assert_bitwise(np.asarray(moved.model.coef), np.asarray(stayed.model.coef))


def test_predictions_from_any_device_are_numpy_labels_case_134():
    model = js.fit_one_vs_rest(SOLVER, on(0, X), Y, epochs=3).model
    found = [model.predict(rows) for rows in (X, on(0, X), on(1, X), X.tolist())]
    for labels in found:
        assert type(labels) is np.ndarray and labels.dtype == Y.dtype
        np.testing.assert_array_equal(labels, found[0])
    scores = [model.decision_function(rows) for rows in (X, on(1, X))]
    assert_bitwise(*map(np.asarray, scores))
    assert scores[0].devices() == scores[1].devices()
    assert_bitwise(*(model.top_k(rows, 2) for rows in (X, on(1, X))))
