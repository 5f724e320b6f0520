"""Svmlight files: what is written is read back, whole or in chunks, fast or line by line."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from jaxsolvers.data import (
    QueryChunk,
    Source,
    iter_svmlight,
    read_svmlight,
    read_svmlight_files,
    rechunk,
    svmlight_parse,
    write_svmlight,
)
from jaxsolvers.data.line_chunks import Chunk
from jaxsolvers.data.svmlight_exact import exact_rows
from jaxsolvers.data.svmlight_options import check_options

SUFFIXES = ("", ".gz", ".bz2", ".xz")


def random_rows(seed: int, dtype, n: int = 40, d: int = 30):
    """CSR rows with numbers of all sizes; some rows and the last column are empty."""
    rng = np.random.default_rng(seed)
    bits = np.dtype(dtype).itemsize
    dense = rng.integers(0, 1 << 63, (n, d), np.uint64).astype(f"u{bits}").view(dtype)
    dense = np.where(np.isfinite(dense), dense, 1)
    dense = np.where(rng.random((n, d)) < 0.2, rng.integers(-3, 4, (n, d)).astype(dtype), dense)
    dense[rng.random((n, d)) < 0.7] = 0
    dense[::7] = 0
    dense[:, -1] = 0
    return sparse.csr_array(dense)


def assert_same_bits(X, Y):
    assert X.shape == Y.shape and X.dtype == Y.dtype
    np.testing.assert_array_equal(X.indptr, Y.indptr)
    np.testing.assert_array_equal(X.indices, Y.indices)
    kind = f"u{X.dtype.itemsize}"
    np.testing.assert_array_equal(X.data.view(kind), Y.data.view(kind))


# Round trips -------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("zero_based", [True, False])
def test_what_is_written_is_read_back_to_the_bit(tmp_path, suffix, dtype, zero_based):
    X = random_rows(0, dtype)
    y = np.random.default_rng(1).standard_normal(X.shape[0])
    qid = np.arange(X.shape[0]) // 4 - 3
    path = tmp_path / f"rows.svm{suffix}"
    write_svmlight(path, X, y, zero_based=zero_based, query_id=qid, comment="two\nlines: 1 2:3")
    options = {"n_features": X.shape[1], "zero_based": zero_based, "query_id": True}
    data = read_svmlight(str(path), dtype=dtype, **options)
    assert_same_bits(data.X, X)
    np.testing.assert_array_equal(data.y, y)
    np.testing.assert_array_equal(data.qid, qid)
    assert data.X.indices.dtype == data.X.indptr.dtype == np.int32


def test_float32_of_every_size_are_read_back_to_the_bit():
    exponents = np.arange(256, dtype=np.uint32)[:, None] << 23
    mantissas = np.random.default_rng(0).integers(0, 1 << 23, (256, 60), np.uint32)
    mantissas[:, :3] = 0, 1, (1 << 23) - 1
    X = (exponents | mantissas).view(np.float32)[:255]  # the last exponent is infinity's
    X = np.concatenate([X, -X])
    file = io.BytesIO()
    write_svmlight(file, X, np.arange(len(X)))
    found = read_svmlight(io.BytesIO(file.getvalue()), n_features=60).X.toarray()
    np.testing.assert_array_equal(found, X)  # -0 is left out and read as 0


@pytest.mark.parametrize("layout", ["dense", "csr", "csc", "repeated"])
def test_label_sets_are_read_back_with_rows_that_hold_nothing(layout):
    X = random_rows(2, np.float32)
    rng = np.random.default_rng(3)
    Y = rng.random((X.shape[0], 9)) < 0.2
    Y[:8] = False  # rows without labels; row 0 and row 7 have no values either
    rows, labels = {
        "dense": (X.toarray(), Y),
        "csr": (X, sparse.csr_array(Y)),
        "csc": (sparse.csc_array(X), sparse.csc_array(Y.astype(float))),
        "repeated": (sparse.coo_array(X), sparse.csr_matrix(Y)),
    }[layout]
    file = io.BytesIO()
    write_svmlight(file, rows, labels, multilabel=True, header=True)
    data = read_svmlight(io.BytesIO(file.getvalue()), multilabel=True, header=True)
    assert data.X.shape == X.shape and data.y.shape == Y.shape and data.y.dtype == bool
    np.testing.assert_array_equal(data.X.toarray(), X.toarray())
    np.testing.assert_array_equal(data.y.toarray(), Y)


def test_repeated_entries_are_summed_and_zeros_left_out():
    X = sparse.csr_array((np.float32([1, 2, 0, -0.0]), [2, 2, 0, 1], [0, 3, 4]), shape=(2, 3))
    file = io.BytesIO()
    write_svmlight(file, X, [1.5, 2])
    assert file.getvalue() == b"1.5 3:3\n2.0\n"
    assert X.nnz == 4  # as it was


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, bool, np.float16])
def test_rows_of_other_dtypes_are_written_exactly(dtype):
    X = np.array([[0, 1], [100, 0]]).astype(dtype)
    file = io.BytesIO()
    write_svmlight(file, X, np.array([True, False]))
    data = read_svmlight(io.BytesIO(file.getvalue()))
    np.testing.assert_array_equal(data.X.toarray(), X.astype(np.float32))
    assert data.y.tolist() == [1, 0]


def test_a_file_is_the_same_bytes_whenever_it_is_written(tmp_path):
    X = random_rows(4, np.float32)
    for suffix in SUFFIXES:
        for name in ("a", "b"):
            write_svmlight(tmp_path / f"{name}{suffix}", X, np.zeros(X.shape[0], int))
        assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


@pytest.mark.parametrize(
    ("X", "y", "options", "words"),
    [
        (np.eye(2), [0], {}, ["y", "(2)", "1"]),
        (np.eye(2), [[0], [1]], {}, ["y", "1-d"]),
        (np.eye(2), sparse.eye_array(2), {}, ["y", "(2,)", "(2, 2)"]),
        (np.eye(2), ["a", "b"], {}, ["y", "numbers"]),
        (np.eye(2), [0.5, np.nan], {}, ["y", "finite"]),
        (np.eye(2), [0, 2**53 + 1], {}, ["y", "2^53"]),
        (np.array([[1.0, np.inf]]), [0], {}, ["X", "finite", "inf"]),
        (sparse.csr_array([[1.0, np.nan]]), [0], {}, ["X", "finite", "nan"]),
        (np.array([[2**53 + 2]]), [0], {}, ["X", "2^53"]),
        (np.ones((1, 2), np.longdouble), [0], {}, ["X", "float64"]),
        (np.ones((0, 2)), [], {}, ["X", "row"]),
        (np.ones(2), [0, 1], {}, ["X", "2-d"]),
        (np.eye(2), [[0, 2], [1, 0]], {"multilabel": True}, ["y", "0 and 1", "2"]),
        (np.eye(2), [[0, 1]], {"multilabel": True}, ["y", "(2, K)", "(1, 2)"]),
        (np.eye(2), [0, 1], {"query_id": [1.0, 2.0]}, ["query_id", "float64"]),
        (np.eye(2), [0, 1], {"query_id": [1]}, ["query_id"]),
        (np.eye(2), [0, 1], {"zero_based": 1}, ["zero_based", "1"]),
        (np.eye(2), [0, 1], {"comment": 3}, ["comment", "3"]),
    ],
)
def test_the_writer_refuses_and_writes_nothing(tmp_path, X, y, options, words):
    path = tmp_path / "rows.svm"
    with pytest.raises(ValueError) as error:
        write_svmlight(path, X, y, **options)
    assert all(word in str(error.value) for word in words), str(error.value)
    assert not path.exists()


def test_a_file_to_write_to_is_binary(tmp_path):
    for target in (io.StringIO(), 3):
        with pytest.raises(ValueError, match="path_or_file"):
            write_svmlight(target, np.eye(2), [0, 1])


# Ways to read ------------------------------------------------------------------------------------

TEXTS = {
    "plain": (b"1 1:0.5 3:2\n-1 2:1e-3\n+1\n2 1:.5 2:5. 30:-1E+2\n", {}),
    "zero": (b"1 0:0.5 3:2\n0 2:1\n", {}),
    "floats": (b"1.5 1:1\n-2e3 2:1\n", {}),
    "queries": (b"1 qid:3 1:1\n0\tqid:-4\t2:1 \n0 qid:4 # qid:9\n", {"query_id": True}),
    "ignored": (b"1 qid:3 1:1 # 1:1 2\n\n0 2:1#\n#only\n", {}),
    "sets": (b"3,1,1 1:1\n 2:1\n1:3\n0 4:1\n7\n qid:2 1:1\n2.0 1:1", {"multilabel": True}),
    "windows": (b"1 1:1\r\n\r\n0 2:1 # x\r\n", {}),
    "marked": (b"\xef\xbb\xbf1 1:1\n", {}),
}
UNTRUSTED = {
    "descending": (b"1 3:1 1:2\n0 2:1\n", {}),
    "long index": (b"1 00000000001:1 2:1\n", {}),
    "long qid": (b"1 qid:9223372036854775807 1:1\n", {"query_id": True}),
    "large label": (b"9007199254740994 1:1\n1e300 1:1\n", {}),
}
HEADED = {
    "header": (b"# note\n\n3 6 3 # rows features labels\n1 1:1\n0 4:2\n0 2:2\n", {"header": True}),
    "label header": (b"2 6 3\n0,2 1:1\n 4:2\n", {"header": True, "multilabel": True}),
}
ALL = {**TEXTS, **UNTRUSTED, **HEADED}


@pytest.mark.parametrize("name", TEXTS)
def test_well_formed_text_takes_the_fast_path_and_equals_the_lines(name):
    text, given = TEXTS[name]
    options = check_options(**given)
    text = text.removeprefix(b"\xef\xbb\xbf").removesuffix(b"\n") + b"\n"
    fast = svmlight_parse._quick(load_svmlight_file, text, options)
    assert fast is not None
    exact = svmlight_parse.from_rows(exact_rows(Chunk(name, 1, text), options), options)
    for a, b in zip(fast, exact, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_array_equal(a, b)
            assert a.dtype == b.dtype


@pytest.mark.parametrize("name", UNTRUSTED)
def test_right_but_unusual_text_is_read_line_by_line(name):
    text, given = UNTRUSTED[name]
    options = check_options(**given)
    assert svmlight_parse._quick(load_svmlight_file, text, options) is None
    assert read_svmlight(io.BytesIO(text), **given).X.shape[0] == text.count(b"\n")


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("form", ["path", "gz", "bz2", "xz", "object", "raw", "gzip object"])
def test_every_way_to_read_gives_the_same(tmp_path, name, form):
    text, options = ALL[name]
    packed = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
    path = tmp_path / "no_suffix"
    path.write_bytes(packed.get(form, lambda x: x)(text))
    expected = read_svmlight(io.BytesIO(text), **options)
    if form == "object":
        with open(path, "rb") as file:
            found = read_svmlight(file, **options)
            assert not file.closed
    elif form == "raw":
        with open(path, "rb", buffering=0) as file:
            found = read_svmlight(file, **options)
    elif form == "gzip object":
        with gzip.open(io.BytesIO(gzip.compress(text))) as file:
            found = read_svmlight(file, **options)
    else:
        found = read_svmlight(path, **options)
    assert_same(found, expected)


def assert_same(a, b):
    assert_same_bits(a.X, b.X)
    if sparse.issparse(a.y):
        assert a.y.shape == b.y.shape and (a.y != b.y).nnz == 0
    else:
        assert a.y.dtype == b.y.dtype
        np.testing.assert_array_equal(a.y, b.y)
    assert (a.qid is None) == (b.qid is None)
    if a.qid is not None:
        np.testing.assert_array_equal(a.qid, b.qid)
    assert a.zero_based == b.zero_based


@pytest.mark.parametrize("name", ALL)
def test_the_size_of_the_chunks_changes_nothing(name):
    text, options = ALL[name]
    expected = read_svmlight(io.BytesIO(text), **options)
    for chunk_bytes in (1, 2, 3, 5, 8, 13, 21, 34, 1000):
        found = read_svmlight(io.BytesIO(text), chunk_bytes=chunk_bytes, **options)
        assert_same(found, expected)


def test_labels_are_integers_when_all_of_them_are():
    for text, kind in (("1\n2.0\n", np.int64), ("1\n2.5\n", np.float64), ("1e300\n", np.float64)):
        data = read_svmlight(io.BytesIO(text.encode()), n_features=1)
        assert data.y.dtype == kind
    text = b"1 1:1\n2 1:1\n"
    assert read_svmlight(io.BytesIO(text), label_dtype="float64").y.dtype == np.float64
    with pytest.raises(ValueError, match=r"line 2, column 1.*label_dtype='int64'.*2.5"):
        read_svmlight(io.BytesIO(b"1 1:1\n2.5 1:1\n"), label_dtype="int64")


def test_files_read_together_share_width_labels_and_dtypes():
    files = [b"1 qid:1 1:1 # a\n", b"2.5 qid:2 4:1\n"]
    first, second = read_svmlight_files([io.BytesIO(f) for f in files], query_id=True)
    assert first.y.dtype == second.y.dtype == np.float64
    assert first.X.shape == second.X.shape == (1, 4)
    assert (first.qid[0], second.qid[0]) == (1, 2)
    sets = read_svmlight_files([io.BytesIO(b"0 1:1"), io.BytesIO(b"5 1:1")], multilabel=True)
    assert [data.y.shape for data in sets] == [(1, 6), (1, 6)]


# Streams -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("suffix", ["", ".xz"])
def test_a_stream_equals_the_whole_file(tmp_path, name, suffix):
    text, options = ALL[name]
    path = tmp_path / f"rows{suffix}"
    path.write_bytes(lzma.compress(text) if suffix else text)
    whole = read_svmlight(path, **options)
    n = whole.X.shape[0]
    for rows, chunk_bytes in ((1, 1), (2, 7), (3, 1000), (n, 5), (n + 1, 20)):
        stream = iter_svmlight(path, rows, chunk_bytes=chunk_bytes, **options)
        assert isinstance(stream, Source)
        assert (stream.n_rows, stream.n_features, stream.zero_based) == (
            n,
            whole.X.shape[1],
            whole.zero_based,
        )
        for _epoch in range(2):
            chunks = list(stream)
            assert [c[0].shape[0] for c in chunks] == [rows] * (n // rows) + [n % rows] * (
                n % rows > 0
            )
            assert all(isinstance(c, QueryChunk) == bool(options.get("query_id")) for c in chunks)
            X = sparse.vstack([c[0] for c in chunks], format="csr")
            assert_same_bits(X, whole.X)
            for part, expected in zip(list(zip(*chunks, strict=True))[1:], whole[1:], strict=False):
                if sparse.issparse(expected):
                    assert (sparse.vstack(part) != expected).nnz == 0
                else:
                    assert all(p.dtype == expected.dtype for p in part)
                    np.testing.assert_array_equal(np.concatenate(part), expected)
        again = list(rechunk(stream, 2))
        assert sum(c[0].shape[0] for c in again) == n


def test_a_stream_with_everything_given_reads_the_file_once(tmp_path, monkeypatch):
    path = tmp_path / "rows"
    path.write_bytes(b"1 1:1\n2 3:1\n")
    parsed = []
    from jaxsolvers.data import svmlight

    real = svmlight.parse
    monkeypatch.setattr(svmlight, "parse", lambda *a: parsed.append(1) or real(*a))
    given = {"n_features": 4, "zero_based": False}
    (chunk,) = iter_svmlight(path, **given, label_dtype="float64")
    assert len(parsed) == 1 and chunk[0].shape == (2, 4) and chunk[1].dtype == np.float64
    stream = iter_svmlight(path, **given)
    for epochs in (2, 3):  # one look at the labels, then once per epoch
        ((_, y),) = stream
        assert y.dtype == np.int64 and len(parsed) == 1 + epochs


def test_a_stream_notices_another_file(tmp_path):
    path = tmp_path / "rows"
    path.write_bytes(b"1 1:1\n")
    stream = iter_svmlight(path)
    assert len(list(stream)) == 1
    path.write_bytes(b"1 1:1\n1 7:1\n")
    with pytest.raises(ValueError, match="path must not change"):
        list(stream)


def test_a_stream_that_is_left_early_starts_anew(tmp_path):
    path = tmp_path / "rows"
    path.write_bytes(b"".join(b"%d 1:1\n" % i for i in range(9)))
    stream = iter_svmlight(path, rows=2, chunk_bytes=1)
    for _ in range(3):
        assert next(iter(stream))[1].tolist() == [0, 1]
    assert os.path.exists(path)


@pytest.mark.parametrize("path", [io.BytesIO(b"1 1:1"), None, 3])
def test_a_stream_needs_a_path(path):
    with pytest.raises(ValueError, match="path must be"):
        iter_svmlight(path)
