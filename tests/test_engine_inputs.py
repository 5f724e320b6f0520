"""Rows in any storage and dtype give the same bits; targets and weights that do not fit do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tolerances import assert_bitwise

import jaxsolvers as js

F = jnp.result_type(float)
RNG = np.random.default_rng(14)
# Small integers, so that every dtype and a list of ints hold the same numbers.
X = RNG.integers(-3, 4, (8, 3)).astype(F)
Y = np.array([1, -1, 1, 1, -1, -1, 1, -1])
LABELS = np.arange(8) % 3
SOLVER = js.AdaGradFOBOS(0.1)
BOTH = pytest.mark.parametrize("front", [js.fit, js.fit_one_vs_rest])


class Frame:
    """What a data frame looks like to NumPy."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.values)


def mapped(tmp_path: Any) -> np.ndarray:
    X.tofile(tmp_path / "X")
    return np.memmap(tmp_path / "X", X.dtype, "r", shape=X.shape)


def read_only(_: Any) -> np.ndarray:
    rows = X.copy()
    rows.flags.writeable = False
    return rows


def unaligned(_: Any) -> np.ndarray:
    raw = np.zeros(X.nbytes + 1, np.uint8)
    raw[1:] = np.frombuffer(X.tobytes(), np.uint8)
    return np.frombuffer(raw.data, F, offset=1).reshape(X.shape)


STORAGE: dict[str, Callable[[Any], Any]] = {
    "fortran": lambda _: np.asfortranarray(X),
    "view of rows": lambda _: np.repeat(X, 2, axis=0)[1::2],
    "view of columns": lambda _: np.repeat(X, 3, axis=1)[:, 1::3],
    "backwards": lambda _: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "read only": read_only,
    "unaligned": unaligned,
    "memmap": mapped,
    "jax": lambda _: jnp.asarray(X),
    "jax on another device": lambda _: jax.device_put(X, jax.devices()[2]),
    "list": lambda _: X.astype(int).tolist(),
    "tuple of arrays": lambda _: tuple(X.astype(int)),
    "frame": lambda _: Frame(X),
    "matrix": lambda _: X.view(np.matrix),
    "int8": lambda _: X.astype(np.int8),
    "int64": lambda _: X.astype(np.int64),
    "jax int32": lambda _: jnp.asarray(X, np.int32),
    "big-endian": lambda _: X.astype(X.dtype.newbyteorder(">")),
}


@pytest.mark.parametrize("order", ["permutation", "cyclic"])
@pytest.mark.parametrize("storage", STORAGE)
def test_rows_in_any_storage_give_the_same_bits(storage, order, tmp_path):
    rows = STORAGE[storage](tmp_path)
    options = {"epochs": 2, "order": order, "intercept": "column"}
    expected = js.fit(SOLVER, X, Y, **options)
    found = js.fit(SOLVER, rows, Y, **options)
    assert found.model.coef.dtype == F
    assert_bitwise(np.asarray(found.model.coef), np.asarray(expected.model.coef))
    assert_bitwise(np.asarray(found.model.intercept), np.asarray(expected.model.intercept))
    for quantity in ("progressive_loss", "mistakes", "violations"):
        np.testing.assert_array_equal(found.history[quantity], expected.history[quantity])
    np.testing.assert_array_equal(np.array(rows), X)


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16])
@pytest.mark.parametrize("kind", [np.asarray, jnp.asarray])
def test_rows_of_16_bits_train_in_float32(dtype, kind):
    expected = js.fit(SOLVER, X.astype(np.float32), Y, epochs=2).model
    found = js.fit(SOLVER, kind(X.astype(dtype)), Y, epochs=2).model
    assert_bitwise(found.coef, expected.coef)
    assert found.coef.dtype == np.float32


@pytest.mark.parametrize("kind", [np.asarray, jnp.asarray, lambda rows: rows.tolist()])
def test_bools_train_as_zeros_and_ones(kind):
    rows = X > 0
    expected = js.fit(SOLVER, rows.astype(F), Y).model.coef
    assert_bitwise(js.fit(SOLVER, kind(rows), Y).model.coef, expected)


def test_integers_too_large_for_a_float_are_rounded_not_wrapped():
    rows = np.array([[2**40], [-(2**40)]])
    fit = js.fit(SOLVER, rows, [1, -1], order="cyclic")
    np.testing.assert_array_equal(
        fit.model.coef, js.fit(SOLVER, rows.astype(F), [1, -1], order="cyclic").model.coef
    )
    assert fit.model.coef[0] > 0


def test_floats_wider_than_double_train_in_the_widest_that_jax_has(x64):
    wide = X.astype(np.longdouble)
    if x64:
        assert js.fit(SOLVER, wide, Y).model.coef.dtype == np.float64
    else:
        with pytest.warns(UserWarning, match="X is .* training in float32"):
            assert js.fit(SOLVER, wide, Y).model.coef.dtype == np.float32


TARGETS: dict[str, Callable[[], Any]] = {
    "list": lambda: Y.tolist(),
    "jax": lambda: jnp.asarray(Y),
    "int8": lambda: Y.astype(np.int8),
    "float16": lambda: Y.astype(np.float16),
    "big-endian": lambda: Y.astype(">i2"),
    "view": lambda: np.repeat(Y, 2)[::2],
    "frame": lambda: Frame(Y),
    "bools": lambda: Y > 0,
    "words": lambda: np.where(Y > 0, "yes", "no"),
    "objects": lambda: np.where(Y > 0, "yes", "no").astype(object),
}


@pytest.mark.parametrize("kind", TARGETS)
def test_labels_in_any_storage_give_the_same_bits(kind):
    found = js.fit(SOLVER, X, TARGETS[kind](), sample_weight=Frame(np.arange(1, 9)))
    expected = js.fit(SOLVER, X, Y, sample_weight=np.arange(1, 9))
    assert_bitwise(found.model.coef, expected.model.coef)


def refuse(match: str, front: Callable[..., Any] = js.fit, y: Any = Y, **options: Any) -> None:
    with pytest.raises(ValueError, match=match):
        front(options.pop("solver", SOLVER), X, y, **options)


@BOTH
def test_labels_that_do_not_fit(front):
    for y in (Y[:7], np.append(Y, 1), Y[:0], []):
        refuse(rf"^y must have one entry per row of X \(8\), got {len(y)}", front, y)
    for y in (Y[:, None], Y[:, None].tolist(), 1, "ab"):
        refuse("^y must be 1-d.*got shape", front, y)
    refuse("^y must be given, got None", front, None)
    if front is js.fit:  # label sets are for many rankers
        for y in (Y[None], np.eye(8, 2), [[1, 2]] * 8):
            refuse("^y must be 1-d.*got shape", front, y)
    for bad in (np.nan, np.inf, -np.inf):
        for dtype in (np.float16, jnp.bfloat16, np.float64):
            refuse("^y must be labels without", front, np.append(Y[:7], bad).astype(dtype))
    for missing in (None, np.nan):
        refuse("^y must be .*missing", front, np.array([*"abababa", missing], object))
    if front is js.fit:
        refuse("^y must be a rectangular", front, [[1], [1, 2]] * 4)


@BOTH
def test_labels_that_cannot_be_told_apart(front):
    refuse(r"^y must .*", front, np.array([0, "a"] * 4, object))  # no common order


def test_more_than_two_values_for_a_binary_loss():
    for y in (LABELS, np.arange(8), np.array([*"abcdefgh"]), Y * 0.5 + LABELS):
        refuse(r"^y must be -1/\+1 or hold two values for Hinge, got \d.*fit_one_vs_rest", y=y)
    refuse(r"^y must .*for Logistic", y=LABELS, solver=js.Pegasos(0.1, loss=js.losses.Logistic()))


def test_targets_that_are_no_numbers_for_a_regression_loss():
    solver = js.Pegasos(0.1, loss=js.losses.Squared())
    for y in (np.array(["1"] * 8), Y > 0, Y.astype(object), ["a"] * 8):
        refuse(r"^y must hold real numbers for Squared, got dtype", y=y, solver=solver)
    for bad in (np.nan, np.inf):
        refuse(r"^y must be finite, got .* at \(7,\)", y=np.append(Y[:7], bad), solver=solver)
    refuse("^y must be 1-d", y=Y[:, None], solver=solver)
    assert js.fit(solver, X, np.full(8, 2)).model.classes is None  # one value is fine here


def test_complex_targets_for_a_regression_loss():
    solver = js.Pegasos(0.1, loss=js.losses.Squared())
    refuse(r"^y must hold real numbers for Squared, got dtype complex", y=Y * 1j, solver=solver)


@pytest.mark.parametrize(
    "weight",
    [["a"] * 8, [None] * 8, ["1"] * 8, np.ones(8) * 1j, np.ones(8, "m8[s]")],
    ids=["words", "nothing", "digits", "complex", "times"],
)
def test_sample_weights_that_are_no_numbers(weight):
    refuse(r"^sample_weight must ", sample_weight=weight)


@BOTH
def test_sample_weights_that_do_not_fit(front):
    for weight in (np.ones(7), np.ones(9), []):
        refuse(r"^sample_weight must have one entry per row", front, sample_weight=weight)
    for weight in (np.ones((8, 1)), 1.0, np.ones((1, 8))):
        refuse(r"^sample_weight must be 1-d", front, sample_weight=weight)
    refuse("^sample_weight must have a positive entry", front, sample_weight=np.zeros(8))
    for bad in (-1, np.nan, np.inf):
        refuse(r"^sample_weight must be non-negative and finite, got", front,
               sample_weight=np.append(np.ones(7), bad))  # fmt: skip


def test_positive_weights_that_do_not_fit():
    front = js.fit_one_vs_rest
    for shape in ((2,), (4,), (1,), (3, 1), (0,)):
        message = r"^positive_weight must be one number or one per class \(3\), got shape"
        refuse(message, front, LABELS, positive_weight=np.ones(shape))
    for value in (0, -1, np.nan, np.inf, "a", [1, 0, 1], [1, np.nan, 1], 1j, {}):
        refuse("^positive_weight must be .*> 0, got", front, LABELS, positive_weight=value)


@pytest.mark.parametrize("value", ["2", True, np.True_, ["1", "2", "3"], [True] * 3])
def test_positive_weights_that_are_no_numbers(value):
    refuse("^positive_weight must be", js.fit_one_vs_rest, LABELS, positive_weight=value)


def test_classes_that_do_not_fit():
    front = js.fit_one_vs_rest
    for classes in ([0, 1], [0, 1, 3], ["0", "1", "2"]):
        refuse(r"^y holds the label \d, the classes are", front, LABELS, classes=classes)
    for classes in ([0, 1, 1, 2], [0, 1, 2, 2.0], [2, 0, 1, False]):
        refuse("^classes must be distinct", front, LABELS, classes=classes)
    for classes in ([0], [], 3, [[0, 1, 2]], "abc", {0, 1, 2}):
        refuse(
            "^classes must be a list of at least two labels, got", front, LABELS, classes=classes
        )
    refuse("^y must hold at least two classes, got only 2", front, np.full(8, 2))
