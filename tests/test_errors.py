"""Errors of rows, numbers, choices and options: raised before tracing, naming the argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh
from tolerances import assert_bitwise

import jaxsolvers as js
from jaxsolvers import checks
from jaxsolvers.engine.tile import advance, begin

F = jnp.result_type(float)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(8, 3)).astype(F)
Y = np.array([1, -1, 1, 1, -1, -1, 1, -1])
LABELS = np.arange(8) % 3
PEGASOS = js.Pegasos(0.1)
L1, L2 = js.regularizers.L1, js.regularizers.SquaredL2
BOTH = pytest.mark.parametrize("front", [js.fit, js.fit_one_vs_rest])
NOT_NUMBERS = [True, np.False_, "0.1", None, {}, np.array(["a"]), object(), np.array(None)]
NOT_INTEGERS = [0, -1, 1.0, np.float64(2), True, np.True_, "2", 1.5, np.nan, 1j, [1], 2**31]


def refuse(
    match: str,
    solver: Any = PEGASOS,
    X: Any = X,
    y: Any = Y,
    front: Callable[..., Any] = js.fit,
    **options: Any,
) -> None:
    """Assert a ValueError whose message matches, and that nothing was traced on the way."""
    before = advance._cache_size(), begin._cache_size()
    with pytest.raises(ValueError, match=match):
        front(solver, X, y, **options)
    assert (advance._cache_size(), begin._cache_size()) == before


# X ------------------------------------------------------------------------------------------------

KINDS = {
    "float32": lambda rows: rows.astype(np.float32),
    "float16": lambda rows: rows.astype(np.float16),
    "bfloat16": lambda rows: rows.astype(jnp.bfloat16),
    "fortran": lambda rows: np.asfortranarray(rows.astype(F)),
    "view": lambda rows: np.repeat(rows.astype(F), 2, axis=0)[::2],
    "jax": lambda rows: jnp.asarray(rows, F),
    "jax float16": lambda rows: jnp.asarray(rows, np.float16),
    "jax bfloat16": lambda rows: jnp.asarray(rows, jnp.bfloat16),
}


@BOTH
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_are_not_finite(front, kind, bad):
    for at in ((0, 0), (4, 1), (7, 2)):  # the last row as well
        rows = X.copy()
        rows[at] = bad
        where = rf"\({at[0]}, {at[1]}\)"
        refuse(rf"^X must be finite, got .* at {where}", X=KINDS[kind](rows), front=front)


def test_rows_that_are_not_finite_in_a_later_piece_of_the_check(monkeypatch):
    monkeypatch.setattr(checks, "_CHECK_ENTRIES", 6)
    rows = X.copy()
    rows[5, 2] = np.nan
    refuse(r"^X must be finite, got nan at \(5, 2\)", X=rows)
    huge = np.full_like(X, np.sqrt(np.finfo(F).max))  # their squares overflow, they do not
    checks.check_finite(huge, "X")
    checks.check_finite(jnp.asarray(huge), "X")


NOT_MATRICES = {
    "1-d": (X[:, 0], "2-d.*got shape"),
    "3-d": (X[None], "2-d.*got shape"),
    "number": (1.0, "2-d.*got shape"),
    "none": (None, "got"),
    "no columns": (X[:, :0], "at least one feature, got shape"),
    "complex": (X.astype(complex), "real numbers, got dtype complex"),
    "jax complex": (jnp.asarray(X.astype(np.complex64)), "real numbers, got dtype complex"),
    "objects": (X.astype(object), "real numbers, got dtype object"),
    "strings": (X.astype(str), "real numbers, got dtype <U"),
    "dates": (np.zeros((8, 3), "datetime64[s]"), "real numbers, got dtype datetime64"),
    "ragged": ([[1, 2], [3]], "rectangular.*got"),
}


@BOTH
@pytest.mark.parametrize("kind", NOT_MATRICES)
def test_what_is_not_a_real_matrix(front, kind):
    rows, words = NOT_MATRICES[kind]
    refuse(rf"^X must .*{words}", X=rows, front=front)


# Numbers and choices of the members ---------------------------------------------------------------

NUMBERS: dict[str, tuple[Callable[[Any], Any], str, list[Any]]] = {
    "lam": (js.Pegasos, "lam", [0, -1]),
    "RDA rate": (js.AdaGradRDA, "learning_rate", [0.0, -0.1]),
    "FOBOS rate": (js.AdaGradFOBOS, "learning_rate", [0, -np.float32(1)]),
    "RDA delta": (lambda v: js.AdaGradRDA(0.1, delta=v), "delta", [-1e-9]),
    "FOBOS delta": (lambda v: js.AdaGradFOBOS(0.1, v), "delta", [-1]),
    "start value": (
        lambda v: js.AdaGradRDA(0.1, initial_accumulator=v), "initial_accumulator", [-1e-9],
    ),
    "l1": (lambda v: js.AdaGradRDA(0.1, regularizer=L1(v)), "regularizer.strength", [-1]),
    "l2": (lambda v: js.AdaGradFOBOS(0.1, regularizer=L2(v)), "regularizer.strength", [-1]),
    "elastic l1": (
        lambda v: js.AdaGradRDA(0.1, regularizer=js.regularizers.ElasticNet(v, 1)),
        "regularizer.l1",
        [-1],
    ),
    "elastic l2": (
        lambda v: js.AdaGradRDA(0.1, regularizer=js.regularizers.ElasticNet(1, v)),
        "regularizer.l2",
        [-1],
    ),
    "gamma": (lambda v: js.Pegasos(0.1, loss=js.losses.SmoothedHinge(v)), "loss.gamma", [0, -1]),
    "start": (lambda v: js.Averaged(PEGASOS, start=v), "start", [-3, 1.5, 2**31]),
    "power": (lambda v: js.Averaged(PEGASOS, power=v), "power", [0, -1]),
    "inner": (lambda v: js.Averaged(js.Pegasos(v)), "solver.lam", [0]),
}  # fmt: skip


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_out_of_range(name):
    build, argument, bad = NUMBERS[name]
    others = [np.nan, np.inf, -np.inf, jnp.asarray(np.nan, F), np.float16(np.inf)]
    for value in bad + others + NOT_NUMBERS:
        accepted = "an integer" if argument == "start" else "a finite number"
        refuse(rf"^{argument} must be {accepted}.*got", build(value))


def test_complex_numbers():
    for build, argument, _ in NUMBERS.values():
        for value in (1j, 1 + 0j, np.complex64(2), jnp.asarray(1j, np.complex64)):
            refuse(rf"^{argument} must be .*got", build(value))


@BOTH
@pytest.mark.parametrize("bad", [np.nan, True, "a", None])
def test_bounds_of_a_box_that_are_no_numbers(front, bad):
    for sides, name in (((bad, 1.0), "lower"), ((-1.0, bad), "upper")):
        box = js.regularizers.Box(*sides)
        solver = js.AdaGradRDA(0.1, regularizer=box)
        refuse(rf"^regularizer.{name} must be a number.*got", solver, front=front)


@BOTH
@pytest.mark.parametrize("bounds", [(1.0, -1.0), (1.0, 2.0), (-2.0, -1.0), (0.1, np.inf)])
def test_a_box_without_the_start(front, bounds):
    for solver in (js.AdaGradRDA, js.AdaGradFOBOS):
        solver = solver(0.1, regularizer=js.regularizers.Box(*bounds))
        refuse("regularizer.lower.*must.*got", solver, front=front)
    refuse("regularizer.lower.*must.*got", js.Averaged(solver), front=front)
    one = js.AdaGradRDA(0.1, regularizer=js.regularizers.Box(np.array([-1.0, 0.1, -1.0]), 1.0))
    refuse("regularizer.lower.*must.*got", one, front=front)


@BOTH
def test_bounds_of_a_box_for_another_number_of_features(front):
    solver = js.AdaGradRDA(0.1, regularizer=js.regularizers.Box(np.full(5, -1.0), 1.0))
    for intercept in ("none", "column"):
        refuse("^regularizer.lower must .*got.*5", solver, front=front, intercept=intercept)


CHOICES = {
    "accumulate": lambda v: js.AdaGradRDA(0.1, accumulate=v),
    "project": lambda v: js.Pegasos(0.1, project=v),
    "bias": lambda v: js.Pegasos(0.1, bias=v),
    "kind": lambda v: js.Averaged(PEGASOS, kind=v),
    "solver.project": lambda v: js.Averaged(js.Pegasos(0.1, project=v)),
}


@pytest.mark.parametrize("name", CHOICES)
def test_choices_that_do_not_exist(name):
    for value in ("mean", "", 0, 1, None, np.True_, ["example"], np.array([True])):
        refuse(rf"^{name} must be one of .*got", CHOICES[name](value))


@BOTH
@pytest.mark.parametrize("argument", ["order", "intercept"])
def test_options_that_do_not_exist(front, argument):
    for value in ("random", "", True, 0, ["cyclic"], {}):
        refuse(rf"^{argument} must be one of .*got", front=front, **{argument: value})


@BOTH
@pytest.mark.parametrize("argument", ["order", "intercept"])
def test_arrays_as_options(front, argument):
    value = np.array(["cyclic", "none"])
    refuse(rf"^{argument} must be one of .*got", front=front, **{argument: value})


@BOTH
def test_what_is_no_solver(front):
    for solver in (js.Pegasos, None, "pegasos", js.losses.Hinge(), js.regularizers.L1(0.1)):
        refuse("^solver must be a jaxsolvers solver.*got", solver, front=front)


PARTS = {
    "loss": (lambda part: js.Pegasos(0.1, loss=part), L1(0.1)),
    "regularizer": (lambda part: js.AdaGradRDA(0.1, regularizer=part), js.losses.Hinge()),
    "solver": (js.Averaged, js.losses.Hinge()),
}


@BOTH
@pytest.mark.parametrize("argument", PARTS)
def test_parts_that_are_no_members(front, argument):
    build, _ = PARTS[argument]
    for part in ("hinge", None, 1.0, js.losses.Hinge, js.regularizers.L1, js.Pegasos):
        refuse(rf"^{argument} must be .*got", build(part), front=front)


@BOTH
@pytest.mark.parametrize("argument", PARTS)
def test_members_in_the_place_of_others(front, argument):
    build, other = PARTS[argument]
    refuse(rf"^{argument} must be .*got", build(other), front=front)
    refuse(rf"^solver.{argument} must be .*got", js.Averaged(build(other)), front=front)


@BOTH
def test_a_projection_without_a_ball(front):
    solver = js.Pegasos(0.1, loss=js.losses.Perceptron(), project=True)
    for one in (solver, js.Averaged(solver)):
        refuse("project must be False .*Perceptron", one, front=front)


def test_arrays_where_one_number_is_meant():
    for value in (np.array([0.1]), jnp.full(3, 0.1), np.full((1, 1), 0.1), [0.1, 0.2], []):
        shape = str(np.shape(value)).replace("(", r"\(").replace(")", r"\)")
        refuse(rf"^lam must be a single number in fit, got .*{shape}", js.Pegasos(value))
        refuse("^solver.lam must be a single number in fit", js.Averaged(js.Pegasos(value)))
        solver = js.AdaGradRDA(0.1, regularizer=L1(value))
        refuse("^regularizer.strength must be a single number in fit", solver)


def test_arrays_that_are_not_one_number_per_class():
    for shape in ((1,), (2,), (4,), (3, 1), (3, 2), (3, 3), (1, 3), (0,)):
        solver, words = js.Pegasos(np.full(shape, 0.1)), r"one number or one per class \(3\)"
        refuse(rf"^lam must be {words}, got .*shape", solver, y=LABELS, front=js.fit_one_vs_rest)


# Integers, keys, meshes ---------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("argument", ["epochs", "batch_size", "block_size"])
def test_counts_that_are_no_positive_integers(front, argument):
    for value in NOT_INTEGERS:
        refuse(rf"^{argument} must be an integer >= 1, got", front=front, **{argument: value})


def test_epochs_and_chunks():
    refuse("^epochs must be an integer >= 1, got None", epochs=None)
    refuse("^epochs must keep the counter", epochs=2**30)
    for value in NOT_INTEGERS:
        message = "^chunk_size must be an integer >= 1, got"
        refuse(message, y=LABELS, front=js.fit_one_vs_rest, chunk_size=value)


@BOTH
def test_batches_larger_than_the_data(front):
    refuse("^batch_size must be at most the number of rows 8, got 9", front=front, batch_size=9)
    front(PEGASOS, X, Y, batch_size=8)


@BOTH
@pytest.mark.parametrize(
    "key",
    [-1, True, np.True_, "0", 0.0, np.float64(1), 2**64, np.array([0, 1]), [0, 1],
     np.zeros(3, np.uint32), jax.random.split(jax.random.key(0)), np.random.default_rng(0), 1j],
    ids=str,
)  # fmt: skip
def test_what_is_no_key(front, key):
    refuse(r"^key must be an integer in 0 .* or one JAX key, got", front=front, key=key)


@BOTH
def test_what_is_no_mesh_of_rankers(front):
    data = Mesh(np.array(jax.devices()), ("data",))
    for mesh in ("rankers", 4, jax.devices(), data):
        message = r"^mesh must be a jax\.sharding\.Mesh with an axis 'rankers', got"
        refuse(message, front=front, mesh=mesh)


# Nothing is lost ----------------------------------------------------------------------------------


def test_an_error_leaves_the_arrays_of_the_caller_alone():
    rows, y, weight, rate = X.copy(), Y.copy(), np.ones(8), np.full(3, 0.1)
    on_device = jnp.asarray(X)
    weight[3] = -1
    copies = [array.copy() for array in (rows, y, weight, rate)]
    for given in (rows, on_device):
        refuse("sample_weight", X=given, y=y, sample_weight=weight)
        refuse("learning_rate", js.AdaGradRDA(rate), X=given, y=y)
        refuse("batch_size", X=given, y=y, batch_size=9)
    for array, copy in zip((rows, y, weight, rate), copies, strict=True):
        np.testing.assert_array_equal(array, copy)
    np.testing.assert_array_equal(on_device, X)


@BOTH
def test_an_error_leaves_a_state_usable(front):
    fit = front(PEGASOS, X, Y)
    expected = front(PEGASOS, X, Y, state=fit.state).model.coef
    kept = jax.tree.map(np.array, fit.state)
    bad = X.copy()
    bad[7, 2] = np.nan
    refuse("^X", X=bad, front=front, state=fit.state)
    refuse("^epochs", front=front, epochs=0, state=fit.state)
    refuse("lam", js.Pegasos(0.2), front=front, state=fit.state)
    assert_bitwise(jax.tree.map(np.array, fit.state), kept)
    assert_bitwise(front(PEGASOS, X, Y, state=fit.state).model.coef, expected)
