"""Svmlight files that are wrong: one kind of error that says where, never another."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from jaxsolvers.data import iter_svmlight, read_svmlight, read_svmlight_files, svmlight_parse

FAULTS = [
    (b"1 1:", 5, "1:"),
    (b"1 :1", 3, ":1"),
    (b"1 1:2:3", 5, "1:2:3"),
    (b"1 1:nan", 5, "1:nan"),
    (b"1 1:-inf", 5, "1:-inf"),
    (b"1 1:1e999", 5, "1:1e999"),
    (b"1 1:1e39", 5, "float32"),
    (b"1 1:1_0", 5, "1:1_0"),
    (b"1 1:0x10", 5, "1:0x10"),
    (b"1 1:2junk", 5, "1:2junk"),
    (b"1 1:1,5", 5, "1:1,5"),
    (b"1 1:.", 5, "1:."),
    (b"1 1:1e", 5, "1:1e"),
    (b"1 1 2:1", 3, "'1'"),
    (b"1 1:1 junk", 7, "junk"),
    (b"1 1: 2", 5, "1:"),
    (b"1 1 :2", 3, "'1'"),
    (b"1 +1:1", 3, "+1:1"),
    (b"1 -1:1", 3, "-1:1"),
    (b"1 1_0:1", 3, "1_0:1"),
    (b"1 1.0:1", 3, "1.0:1"),
    (b"1 2147483648:1", 3, "2147483648:1"),
    (b"1 99999999999999999999:1", 3, "2147483647"),
    (b"1 " + b"9" * 5000 + b":1", 3, "2147483647"),
    (b"1 1:1 1:1", 7, "index 1"),
    (b"nan 1:1", 1, "nan"),
    (b"inf 1:1", 1, "inf"),
    (b"1e999 1:1", 1, "1e999"),
    (b"1_0 1:1", 1, "1_0"),
    (b"1,2 1:1", 1, "multilabel"),
    (b"9007199254740993 1:1", 1, "9007199254740993"),
    (b"-" + b"0" * 5000 + b"9007199254740993 1:1", 1, "exactly"),
    (b"1:1 2:1", 1, "1:1"),
    (b"1 qid:x 1:1", 3, "qid:x"),
    (b"1 qid:1.5 1:1", 3, "qid:1.5"),
    (b"1 qid:99999999999999999999 1:1", 3, "qid:9"),
    (b"1 qid:9223372036854775808 1:1", 3, "qid:9"),
    (b"1 1:1 qid:7", 7, "qid:7"),
    (b"1 qid:7 qid:8", 9, "qid:8"),
    (b"1 qidx:7", 3, "qidx:7"),
    (b"1 qid 1:1", 3, "qid"),
    (b"1 1:1 \xff", 7, "0xff"),
    (b"1 1:\x00", 5, "0x00"),
    (b"1\x0b1:1", 2, "0x0b"),
    (b"1 1:1\xc2\xa02:1", 6, "0xc2"),
    (b"1 1:1\r2 1:1", 6, "carriage return"),
    (b"1 1:1 # a\rb", 10, "carriage return"),
]


@pytest.mark.parametrize(("line", "column", "word"), FAULTS)
def test_a_fault_is_named_with_its_place(line, column, word):
    for number, before in ((1, b""), (3, b"1 1:1\n\n")):
        for after in (b"", b"\n1 1:1\n"):
            where = f"<BytesIO>, line {number}, column {column}: "
            for chunk_bytes in (1, 1 << 20):
                with pytest.raises(ValueError, match=re.escape(where)) as error:
                    read_svmlight(io.BytesIO(before + line + after), chunk_bytes=chunk_bytes)
                assert word in str(error.value)


@pytest.mark.parametrize(
    ("line", "column", "word"),
    [
        (b"1,,2 1:1", 3, "''"),
        (b"1,2, 1:1", 5, "''"),
        (b"1,-2 1:1", 3, "'-2'"),
        (b"0.5 1:1", 1, "'0.5'"),
        (b"1,2147483647 1:1", 3, "2147483646"),
        (b"3,8 1:1", 3, "n_labels=8"),
        (b"1,2:3 1:1", 1, "digits"),
        (b"qid:7 5 1:1", 7, "'5'"),
    ],
)
def test_a_fault_of_a_label_set_is_named_with_its_place(line, column, word):
    with pytest.raises(ValueError, match=f"line 2, column {column}: ") as error:
        read_svmlight(io.BytesIO(b"1 1:1\n" + line), multilabel=True, n_labels=8)
    assert word in str(error.value)


def test_query_ids_that_are_wanted_must_be_on_every_line():
    for line in (b"1 1:1", b"1", b"0 2:1 # qid:7"):
        with pytest.raises(ValueError, match=r"line 2, column .*query_id=True needs qid"):
            read_svmlight(io.BytesIO(b"1 qid:1 1:1\n" + line), query_id=True)


def test_a_file_without_rows_or_entries_is_refused():
    for text in (b"", b"\n", b"# note\n\n", b"\xef\xbb\xbf"):
        with pytest.raises(ValueError, match="no line that holds a row"):
            read_svmlight(io.BytesIO(text))
    with pytest.raises(ValueError, match="no line that holds a row"):
        read_svmlight_files([io.BytesIO(b"1 1:1"), io.BytesIO(b"")])
    with pytest.raises(ValueError, match="n_features"):
        read_svmlight(io.BytesIO(b"1\n0\n"))
    data = read_svmlight(io.BytesIO(b"1\n0\n"), n_features=3)
    assert data.X.shape == (2, 3) and data.X.nnz == 0 and not data.zero_based


def test_the_largest_index_is_that_of_int32():
    text = b"1 2147483647:1"
    data = read_svmlight(io.BytesIO(text))
    assert data.X.shape == (1, 2**31 - 1) and data.X.indices.tolist() == [2**31 - 2]
    with pytest.raises(ValueError, match=r"line 1, column 3.*at most 2147483646"):
        read_svmlight(io.BytesIO(text), zero_based=True)
    with pytest.raises(ValueError, match=r"line 1, column 3.*but index 0 in"):
        read_svmlight(io.BytesIO(text + b"\n1 0:1"))


@pytest.mark.parametrize("text", [b"2 x\n1 1:1", b"1 1:1\n", b"1\n", b"2 0\n1 1:1", b"1 2 3 4\n"])
def test_a_header_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match="line 2, column 1: header=True"):
        read_svmlight(io.BytesIO(b"# note\n" + text), header=True)


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz"])
def test_a_compressed_file_that_is_cut_off_or_damaged_is_named(tmp_path, kind):
    rng = np.random.default_rng(0)
    lines = [b"%d 1:%r 2:%r\n" % (i % 2, *rng.random(2).tolist()) for i in range(20_000)]
    text = b"".join(lines)
    packed = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[kind](text)
    damaged = bytearray(packed)
    damaged[len(packed) * 3 // 4] ^= 255
    path = tmp_path / f"rows.svm.{kind}"
    for broken in (packed[: len(packed) // 2], packed[:-1], packed[:12], bytes(damaged)):
        path.write_bytes(broken)
        # What damage changed may come out as text first, and then be no row.
        place = r".*line \d+" if broken == damaged else r" .*the last whole line is line \d+$"
        with pytest.raises(ValueError, match=rf"rows\.svm\.{kind}{place}") as error:
            read_svmlight(path)
        if broken != damaged:
            assert 0 <= int(str(error.value).split()[-1]) <= 20_000
        with pytest.raises(ValueError, match=rf"rows\.svm\.{kind}{place}"):
            for _ in iter_svmlight(path, chunk_bytes=1000):
                pass


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"n_features": 0}, "n_features"),
        ({"n_features": 2.0}, "n_features"),
        ({"zero_based": 1}, "zero_based"),
        ({"zero_based": "yes"}, "zero_based"),
        ({"zero_based": np.array([1, 2])}, "zero_based"),
        ({"multilabel": "no"}, "multilabel"),
        ({"query_id": None}, "query_id"),
        ({"header": 2}, "header"),
        ({"dtype": "float16"}, "dtype"),
        ({"dtype": "whatever"}, "dtype"),
        ({"dtype": int}, "dtype"),
        ({"dtype": None}, "dtype"),
        ({"chunk_bytes": 0}, "chunk_bytes"),
        ({"n_labels": 3}, "n_labels"),
        ({"label_dtype": "int32"}, "label_dtype"),
        ({"label_dtype": "int64", "multilabel": True}, "label_dtype"),
    ],
)
def test_options_are_checked_before_the_file_is_opened(options, word):
    for reader in (read_svmlight, iter_svmlight):
        with pytest.raises(ValueError, match=word):
            reader("no such file", **options)


def test_what_is_no_binary_file_is_refused(tmp_path):
    for source in (None, 7, ["a"]):
        with pytest.raises(ValueError, match="path_or_file must be"):
            read_svmlight(source)
    with pytest.raises(ValueError, match="binary mode"):
        read_svmlight(io.StringIO("1 1:1"))
    for sources in ("path", [], [io.BytesIO(b"1 1:1"), 3]):
        with pytest.raises(ValueError, match="paths_or_files"):
            read_svmlight_files(sources)
    with pytest.raises(FileNotFoundError):
        read_svmlight(tmp_path / "absent")


# Mutations ---------------------------------------------------------------------------------------

SEEDS = [
    (b"1 1:0.5 3:2\n-1 2:1e-3 # doc\n+1 4:1\n\n2 1:.5 2:5. 7:-1E+2\n", {}),
    (b"1 0:1 12:0\r\n0 2:3\r\n1.5\r\n", {"n_features": 13}),
    (b"3 qid:1 1:1 2:2\n0 qid:-2 3:1 # qid:1\n", {"query_id": True}),
    (b"1,2 1:1 3:4\n 2:1\n0 qid:5 1:1\n7\n3:1 4:1\n", {"multilabel": True, "n_labels": 20}),
    (b"2 6 3\n1 1:1\n0 6:2.25\n", {"header": True, "zero_based": False}),
]
PIECES = [
    *(bytes([byte]) for byte in b"0123456789 :,.#\n\r\t+-eE_qx"),
    *(b"nan", b"inf", b"qid:", b"1:1", b" 1:2", b"\x00", b"\xff", b"\xc3\xa9", b"99999999999"),
    *(b"1e999", b"0x1", b"\n\n", b"\r\n", b"::", b",,", b" 2147483647:1", b"9007199254740993"),
]


def mutated(rng: np.random.Generator, text: bytes) -> bytes:
    for _ in range(rng.integers(1, 4)):
        at, to = sorted(rng.integers(0, len(text) + 1, 2).tolist())
        piece = PIECES[rng.integers(len(PIECES))]
        text = (
            text[:at] + piece + text[at:],
            text[:at] + piece + text[at + 1 :],
            text[:at] + rng.bytes(1) + text[at + 1 :],
            text[:at] + text[min(to, at + 3) :],
            text[:at],
            text[:to] + text[at:to] + text[to:],
        )[rng.integers(6)]
    return text


def outcome(text: bytes, options, chunk_bytes: int = 1 << 20):
    """Data or the message; any exception but a ValueError fails the test."""
    try:
        return read_svmlight(io.BytesIO(text), chunk_bytes=chunk_bytes, **options)
    except ValueError as error:
        assert type(error) is ValueError, repr(error)
        # Of what is wrong with a whole file only the width has no line of its own.
        assert "line" in str(error), str(error)
        return str(error)


def assert_equal(a, b, text: bytes):
    assert type(a) is type(b), (text, a, b)
    if isinstance(a, str):
        return
    for x, y in zip(a, b, strict=True):
        if sparse.issparse(x):
            assert x.shape == y.shape and x.dtype == y.dtype, text
            for name in ("indptr", "indices", "data"):
                np.testing.assert_array_equal(getattr(x, name), getattr(y, name), str(text))
        else:
            np.testing.assert_array_equal(x, y, str(text))
            assert getattr(x, "dtype", None) == getattr(y, "dtype", None)


@pytest.mark.parametrize("seed", range(len(SEEDS)))
def test_mutated_files_are_read_exactly_or_refused(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    original, options = SEEDS[seed]
    texts = [original, *(mutated(rng, original) for _ in range(2000))]
    usual = [outcome(text, options) for text in texts]
    in_pieces = [outcome(text, options, int(rng.integers(1, 30))) for text in texts]
    quick, trusted = svmlight_parse._quick, []
    monkeypatch.setattr(svmlight_parse, "_quick", lambda *a: trusted.append(quick(*a)))
    exact = [outcome(text, options) for text in texts]
    assert sum(rows is not None for rows in trusted) > 50  # both paths were compared
    assert not isinstance(exact[0], str)
    for text, a, b, c in zip(texts, usual, exact, in_pieces, strict=True):
        assert_equal(a, b, text)
        assert_equal(a, c, text)
        if isinstance(a, str):
            assert a == b, text
        elif not options.get("header"):
            compare_with_scikit_learn(text, a, options)
    refused = sum(isinstance(a, str) for a in usual)
    assert 100 < refused < 2000


def compare_with_scikit_learn(text: bytes, data, options):
    """Where it reads the file too, it found the same."""
    multilabel = bool(options.get("multilabel"))
    try:
        X, y = load_svmlight_file(
            io.BytesIO(text.removeprefix(b"\xef\xbb\xbf")),
            dtype=np.float32,
            multilabel=multilabel,
            zero_based=True,
        )
    except (ValueError, OverflowError):
        return  # descending indices, for one
    np.testing.assert_array_equal(data.X.indices, X.indices - (not data.zero_based), str(text))
    np.testing.assert_array_equal(data.X.indptr, X.indptr)
    np.testing.assert_array_equal(data.X.data, X.data)
    if multilabel:
        found = [
            data.y.indices[a:b] for a, b in zip(data.y.indptr, data.y.indptr[1:], strict=False)
        ]
        assert [tuple(sorted(set(row))) for row in y] == [tuple(row.tolist()) for row in found]
    else:
        np.testing.assert_array_equal(data.y, y)
