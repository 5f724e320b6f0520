"""Sources: the same rows in every epoch, however they are cut, or a clear error."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import sparse

from jaxsolvers.data import ArraySource, IteratorSource, QueryChunk, Source, rechunk

N, D = 23, 5
RNG = np.random.default_rng(0)
DENSE = np.where(RNG.random((N, D)) < 0.5, RNG.standard_normal((N, D)), 0).astype(np.float32)
LABELS = RNG.integers(0, 3, N)
WEIGHTS = RNG.random(N)
INDICATOR = RNG.random((N, 4)) < 0.3


def dense(part):
    return part.toarray() if sparse.issparse(part) else np.asarray(part)


def together(chunks):
    """The parts of all chunks, joined and dense."""
    return [np.concatenate([dense(p) for p in part]) for part in zip(*chunks, strict=True)]


def cuts(sizes, *parts):
    """Chunks of the given sizes."""
    ends = np.cumsum([0, *sizes])
    return [tuple(p[a:b] for p in parts) for a, b in pairwise(ends)]


FORMS = {
    "dense": (DENSE, LABELS),
    "weighted": (DENSE, LABELS, WEIGHTS),
    "text labels": (DENSE, LABELS.astype(str)),
    "csr": (sparse.csr_array(DENSE), LABELS),
    "csr matrix": (sparse.csr_matrix(DENSE), INDICATOR, WEIGHTS),
    "both sparse": (sparse.csr_array(DENSE), sparse.csr_array(INDICATOR)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rows", [1, 4, N, N + 9])
def test_every_source_gives_all_rows_in_order_in_every_epoch(form, rows):
    parts = FORMS[form]
    array = ArraySource(*parts, rows=rows)
    listed = IteratorSource(cuts([7, 0, 1, 15], *parts), D)
    made = IteratorSource(lambda: (chunk for chunk in cuts([3] * 7 + [2], *parts)), D)
    sources = [array, rechunk(array, 3), rechunk(listed, rows), rechunk(made, rows), listed, made]
    for source in sources:
        assert isinstance(source, Source)
        assert source.n_features == D and source.dtype == np.float32
        for _epoch in range(2):
            chunks = list(source)
            for found, expected in zip(together(chunks), parts, strict=True):
                np.testing.assert_array_equal(found, dense(expected))
            assert {c[0].dtype for c in chunks} == {np.dtype(np.float32)}
    for source in (array, sources[2], sources[3]):
        sizes = [chunk[0].shape[0] for chunk in source]
        assert sizes == [rows] * (N // rows) + [N % rows] * (N % rows > 0)
        assert all(sparse.issparse(c[0]) == sparse.issparse(parts[0]) for c in source)


def test_a_generator_serves_one_epoch_and_says_so():
    def chunks():
        yield DENSE, LABELS

    with pytest.raises(ValueError, match="make_iterator must be a function"):
        IteratorSource(chunks(), D)
    shared = chunks()
    source = IteratorSource(lambda: shared, D)
    assert len(list(source)) == 1
    with pytest.raises(ValueError, match=r"new iterator for every epoch.*in epoch 1"):
        list(source)
    wrapped = chunks()
    source = IteratorSource(lambda: map(tuple, wrapped), D)
    assert len(list(source)) == 1
    with pytest.raises(ValueError, match="got none in epoch 1"):
        list(source)
    with pytest.raises(ValueError, match="got none in epoch 0"):
        list(rechunk(IteratorSource([], D), 2))


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ((DENSE,), ["chunk 1", "(X, y)", "1 parts"]),
        (DENSE, ["chunk 1", "(X, y)"]),
        ((DENSE[:, :3], LABELS), ["X of chunk 1", f"(n, {D})", "(23, 3)"]),
        ((sparse.csr_array(DENSE[:, :3]), LABELS), ["X of chunk 1", f"(n, {D})"]),
        ((DENSE, LABELS[:4]), ["y of chunk 1", "23", "4"]),
        ((DENSE, LABELS[:, None, None]), ["y of chunk 1", "(23, 1, 1)"]),
        ((DENSE, INDICATOR), ["chunk 1", "y dense (n, 4)"]),
        ((DENSE, LABELS.astype(str)), ["chunk 1", "'U'"]),
        ((sparse.csr_array(DENSE), LABELS), ["chunk 1", "X CSR"]),
        ((DENSE, LABELS, WEIGHTS), ["chunk 1", "sample_weight"]),
        ((DENSE, LABELS, -WEIGHTS), ["sample_weight of chunk 1", "non-negative"]),
        ((DENSE, LABELS, WEIGHTS[:3]), ["sample_weight of chunk 1", "23", "3"]),
        ((np.full((N, D), np.nan), LABELS), ["X of chunk 1", "finite", "nan"]),
        ((np.full((N, D), 1e39), LABELS), ["X of chunk 1", "finite", "inf"]),
        ((sparse.csr_array(np.full((N, D), 1e39)), LABELS), ["X of chunk 1", "finite"]),
        ((DENSE.astype(str), LABELS), ["X of chunk 1", "real numbers"]),
    ],
)
def test_a_chunk_of_another_form_is_refused_by_number(second, words):
    source = IteratorSource([(DENSE, LABELS), second], D)
    with pytest.raises(ValueError) as error:
        list(source)
    assert all(word in str(error.value) for word in words), str(error.value)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: ArraySource(DENSE, LABELS[:3]), "y"),
        (lambda: ArraySource(DENSE[0], LABELS), "X"),
        (lambda: ArraySource(DENSE[:0], LABELS[:0]), "X"),
        (lambda: ArraySource(np.full((2, 2), np.inf), [0, 1]), "X"),
        (lambda: ArraySource(DENSE, LABELS, [1.0]), "sample_weight"),
        (lambda: ArraySource(DENSE, LABELS, rows=0), "rows"),
        (lambda: ArraySource(DENSE, LABELS, dtype="int8"), "dtype"),
        (lambda: IteratorSource(3, D), "make_iterator"),
        (lambda: IteratorSource([], 0), "n_features"),
        (lambda: IteratorSource([], D, "float16"), "dtype"),
        (lambda: list(IteratorSource(lambda: 3, D)), "make_iterator"),
        (lambda: rechunk(DENSE, 3), "source"),
        (lambda: rechunk(ArraySource(DENSE, LABELS), 1.5), "rows"),
    ],
)
def test_arguments_are_refused_by_name(make, word):
    with pytest.raises(ValueError, match=f"^{word}"):
        make()


def test_the_dtype_of_an_array_is_kept_or_made_the_default(x64):
    default = np.dtype(np.float64 if x64 else np.float32)
    for dtype, expected in (
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.float16, np.float32),
        (jnp.bfloat16, np.float32),
        (np.int64, default),
        (bool, default),
    ):
        source = ArraySource(np.ones((2, 3)).astype(dtype), [0, 1])
        assert source.dtype == expected == next(iter(source))[0].dtype
    assert ArraySource([[1, 2]], [0], dtype="float64").dtype == np.float64
    ((X, _),) = ArraySource(jnp.asarray(DENSE), jnp.asarray(LABELS))
    assert isinstance(X, np.ndarray)
    np.testing.assert_array_equal(X, DENSE)


def test_arrays_are_not_copied_and_sparse_rows_are_made_canonical():
    ((X, _),) = ArraySource(DENSE, LABELS)
    assert np.shares_memory(X, DENSE)
    rows = sparse.csr_array(DENSE)
    ((X, _),) = ArraySource(rows, LABELS)
    assert np.shares_memory(X.data, rows.data)
    assert X.indices.dtype == X.indptr.dtype == np.int32
    twice = sparse.csr_array((np.float32([1, 2, 4]), [3, 0, 3], [0, 3]), shape=(1, D))
    ((X, _),) = ArraySource(twice, [0])
    assert X.indices.tolist() == [0, 3] and X.data.tolist() == [2, 5]
    assert twice.indices.tolist() == [3, 0, 3]


def test_query_chunks_stay_apart_from_weights():
    chunks = [QueryChunk(DENSE[:3], LABELS[:3], np.arange(3)), QueryChunk(DENSE, LABELS, LABELS)]
    found = list(rechunk(IteratorSource(chunks, D), 5))
    assert all(isinstance(chunk, QueryChunk) for chunk in found)
    np.testing.assert_array_equal(np.concatenate([c.qid for c in found]), [0, 1, 2, *LABELS])
    with pytest.raises(ValueError, match=r"chunk 1 must.*qid.*got.*sample_weight"):
        list(IteratorSource([chunks[1], (DENSE, LABELS, WEIGHTS)], D))


def test_importing_the_package_loads_neither_scipy_nor_scikit_learn():
    code = (
        "import sys, jax; before = set(sys.modules); import jaxsolvers.data; "
        "print({name.split('.')[0] for name in set(sys.modules) - before} & {'scipy', 'sklearn'})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "set()"


def test_a_missing_extra_is_named(monkeypatch):
    from jaxsolvers.data import read_svmlight

    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ImportError, match=r"scikit-learn.*jaxsolvers\[data\]"):
        read_svmlight(__file__)
