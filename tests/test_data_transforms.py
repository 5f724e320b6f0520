"""Hashed features and unit rows: their laws, and what they refuse."""

from __future__ import annotations

import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction import FeatureHasher
from sklearn.preprocessing import normalize
from sklearn.utils import murmurhash3_32

from jaxsolvers.data import hash_features, normalize_rows

# Hashing -----------------------------------------------------------------------------------------

ROWS = [["a", "b", "a", "ä"], [("a", 2.5), "c"], {"b": -1, "colour": "red"}, [], ("x", "y")]


def by_hand(rows, n_features, signed, seed=0):
    """The definition, entry by entry."""
    X = np.zeros((len(rows), n_features))
    for i, row in enumerate(rows):
        for token in row.items() if isinstance(row, dict) else row:
            name, value = token if isinstance(token, tuple) else (token, 1)
            if isinstance(value, str):
                name, value = f"{name}={value}", 1
            h = murmurhash3_32(f"{seed}:{name}" if seed else name)
            X[i, abs(h) % n_features] += value * (-1 if signed and h < 0 else 1)
    return X


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize(("n_features", "seed"), [(2**18, 0), (8, 0), (7, 5)])
def test_hashing_is_its_definition(signed, n_features, seed):
    X = hash_features(ROWS, n_features, signed, seed)
    assert X.shape == (5, n_features) and X.dtype == np.float32
    assert X.indices.dtype == np.int32 and X.has_canonical_format
    np.testing.assert_array_equal(X.toarray(), by_hand(ROWS, n_features, signed, seed))


def test_hashing_equals_scikit_learn():
    words = [[f"w{i * j % 17}" for j in range(9)] for i in range(30)]
    expected = FeatureHasher(64, input_type="string").transform(words)
    found = hash_features(words, 64, dtype="float64")
    np.testing.assert_array_equal(found.toarray(), expected.toarray())
    with_ones = hash_features([[(word, 1.0) for word in row] for row in words], 64)
    assert (with_ones != hash_features(iter(words), 64)).nnz == 0


def test_hashes_do_not_depend_on_the_process():
    code = (
        "from jaxsolvers.data import hash_features; "
        "print(hash_features([['red', 'blue']], 1024).indices.tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={"PYTHONHASHSEED": "1", "JAX_PLATFORMS": "cpu"},
    )
    here = hash_features([["red", "blue"]], 1024).indices.tolist()
    assert done.stdout.strip() == str(here)


def test_a_seed_moves_the_names_and_signs_cancel_on_average():
    rows = [[f"word{j}" for j in range(500)]]
    X, Y = (hash_features(rows, 2**18, seed=seed) for seed in (0, 1))
    assert len(set(X.indices) & set(Y.indices)) < 10
    crowded = hash_features(rows, 4).toarray()[0]
    assert np.abs(crowded).max() < 60  # 125 without signs
    assert hash_features(rows, 4, signed=False).sum() == 500


def test_no_rows_give_an_empty_matrix():
    X = hash_features([], 16, dtype="float64")
    assert X.shape == (0, 16) and X.dtype == np.float64


@pytest.mark.parametrize(
    ("tokens", "options", "words"),
    [
        ("text", {}, ["tokens", "text"]),
        (3, {}, ["tokens", "3"]),
        ([["a"], "bc"], {}, ["'bc'", "row 1"]),
        ([["a"], 3], {}, ["3", "row 1"]),
        ([[3]], {}, ["3", "row 0"]),
        ([[b"a"]], {}, ["b'a'", "row 0"]),
        ([[("a", None)]], {}, ["None", "row 0"]),
        ([[("a", np.nan)]], {}, ["nan", "row 0"]),
        ([{"a": np.inf}], {}, ["inf", "row 0"]),
        ([{"a": 10**400}], {}, ["1000", "row 0"]),
        ([{"a": 1j}], {}, ["1j", "row 0"]),
        ([[("a", 1, 2)]], {}, ["row 0"]),
        ([["a"]], {"n_features": 0}, ["n_features"]),
        ([["a"]], {"signed": "yes"}, ["signed"]),
        ([["a"]], {"seed": -1}, ["seed"]),
        ([["a"]], {"dtype": "int8"}, ["dtype"]),
        ([[("a", 1e39)]], {}, ["finite"]),
    ],
)
def test_what_cannot_be_hashed_is_refused(tokens, options, words):
    with pytest.raises(ValueError) as error:
        hash_features(tokens, **options)
    assert all(word in str(error.value) for word in words), str(error.value)


# Norms -------------------------------------------------------------------------------------------

NORMS = ("l2", "l1", "max")


def rows_with_zeros(dtype=np.float64):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((40, 9)) < 0.4, rng.standard_normal((40, 9)), 0)
    X[[0, 13, 39]] = 0
    return X.astype(dtype)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csc_matrix, jnp.asarray])
def test_rows_are_divided_by_their_norm(norm, kind):
    X = rows_with_zeros(np.float32)
    given = kind(X)
    found = normalize_rows(given, norm)
    assert found.dtype == np.float32
    if sparse.issparse(given):
        np.testing.assert_array_equal(given.toarray(), X)
        found = found.toarray()
    else:
        np.testing.assert_array_equal(given, X)
    np.testing.assert_allclose(found, normalize(X, norm), rtol=1e-6)
    assert not found[[0, 13, 39]].any()
    np.testing.assert_allclose(normalize_rows(found, norm), found, rtol=1e-6)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    ("dtype", "layout"),
    [
        (np.float16, "dense"),
        (np.float32, "dense"),
        (np.float64, "dense"),
        (jnp.bfloat16, "dense"),
        (np.float32, "csr"),  # SciPy has no rows of 16 bits
        (np.float64, "csr"),
    ],
)
def test_huge_and_tiny_rows_neither_overflow_nor_vanish(norm, dtype, layout):
    limits = jnp.finfo(dtype)
    scale = np.array([limits.max, limits.tiny, limits.smallest_subnormal, 1])[:, None]
    X = (np.array([[1.0, -1.0, 0.0, 1.0]]) * scale.astype(np.float64)).astype(dtype)
    found = normalize_rows(sparse.csr_array(X) if layout == "csr" else X, norm)
    found = found.toarray() if layout == "csr" else found
    assert found.dtype == dtype
    unit = {"l2": 3**-0.5, "l1": 1 / 3, "max": 1.0}[norm]
    expected = np.array([[unit, -unit, 0.0, unit]] * 4)
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=float(limits.eps))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_rows_are_changed_in_place_only_when_asked(kind):
    X = kind(rows_with_zeros())
    values = X.data if sparse.issparse(X) else X
    expected = normalize_rows(X)
    assert not np.shares_memory(expected.data if sparse.issparse(X) else expected, values)
    found = normalize_rows(X, copy=False)
    assert found is X
    difference = found - expected
    assert np.abs(difference).max() == 0


def test_a_column_major_or_strided_matrix_is_normalised_in_place():
    whole = rows_with_zeros()
    expected = normalize_rows(whole)
    for X in (np.asfortranarray(whole), np.repeat(whole, 2, axis=1)[:, ::2]):
        np.testing.assert_array_equal(normalize_rows(X, copy=False), expected)


def test_repeated_entries_count_as_their_sum():
    X = sparse.csr_array((np.array([1.0, 2.0, 4.0]), [1, 1, 0], [0, 3, 3]), shape=(2, 2))
    np.testing.assert_allclose(normalize_rows(X).toarray(), [[0.8, 0.6], [0, 0]])
    assert X.nnz == 3


def test_integers_become_float32():
    for X in (np.array([[3, 4]]), sparse.csr_array(np.array([[3, 4]]))):
        found = normalize_rows(X)
        assert found.dtype == np.float32
        np.testing.assert_allclose(np.asarray(found.sum()), 1.4, rtol=1e-6)
        with pytest.raises(ValueError, match="X must be"):
            normalize_rows(X, copy=False)


def read_only(X):
    (X.data if sparse.issparse(X) else X).flags.writeable = False
    return X


@pytest.mark.parametrize(
    ("X", "options", "words"),
    [
        (np.array([[1.0, np.nan]]), {}, ["X", "finite", "nan"]),
        (sparse.csr_array([[1.0, np.inf]]), {}, ["X", "finite", "inf"]),
        (np.array([[1.0, np.inf]]), {"copy": False}, ["X", "finite"]),
        (sparse.csr_array([[1.0, np.nan]]), {"copy": False}, ["X", "finite"]),
        (np.ones(3), {}, ["X", "2-d"]),
        ([["a"]], {}, ["X", "real"]),
        (np.ones((2, 2)), {"norm": "l3"}, ["norm", "l3"]),
        (np.ones((2, 2)), {"copy": None}, ["copy"]),
        ([[1.0]], {"copy": False}, ["X", "list"]),
        (jnp.ones((2, 2)), {"copy": False}, ["X"]),
        (sparse.csc_array(np.eye(2)), {"copy": False}, ["X", "csc"]),
        (read_only(np.ones((2, 2))), {"copy": False}, ["X", "read-only"]),
        (read_only(sparse.csr_array(np.eye(2))), {"copy": False}, ["X", "read-only"]),
    ],
)
def test_what_cannot_be_normalised_is_refused(X, options, words):
    with pytest.raises(ValueError) as error:
        normalize_rows(X, **options)
    assert all(word in str(error.value) for word in words), str(error.value)
