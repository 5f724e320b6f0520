"""Chunks of svmlight text as arrays: scikit-learn's parser where it is right, ours elsewhere.

scikit-learn's parser is quick but takes ``nan``, ``1_0``, an infinite float32 or any token that
starts with ``qid``. So a chunk goes there only if one regular expression, the format of
``svmlight_exact.py``, matches all of it; what that cannot say (order of the indices, sizes of the
numbers) is checked on the arrays. Every other chunk is read line by line.
"""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from jaxsolvers.data.extras import extra
from jaxsolvers.data.line_chunks import Chunk, line_chunks
from jaxsolvers.data.svmlight_exact import (
    EXACT_INTEGER,
    MAX_LABEL,
    NUMBER,
    Row,
    exact_rows,
    refuse,
    shown,
)
from jaxsolvers.data.svmlight_options import Options

_COMMENT = re.compile(rb"#[^\n]*")
_QID = re.compile(rb"qid:([+-]?[0-9]+)")
_DIGITS = re.compile(rb"[0-9]{1,10}")


class Rows(NamedTuple):
    """n rows of a file with N entries and, with several labels, M labels."""

    counts: np.ndarray  # (n,) int32, entries of each row
    indices: np.ndarray  # (N,) int32, as written in the file
    values: np.ndarray  # (N,) of the dtype asked for
    labels: np.ndarray  # (n,) float64; (M,) int32 with several labels
    label_counts: np.ndarray | None  # (n,) int32 with several labels
    qid: np.ndarray | None  # (n,) int64


class Header(NamedTuple):
    """A first line ``rows features [labels]``."""

    line: int
    n_rows: int
    n_features: int
    n_labels: int | None


def chunks_after_header(source: Any, options: Options) -> tuple[Header | None, Iterator[Chunk]]:
    """The header, if one is asked for, and the chunks of lines that follow it.

    Raises:
      ValueError: the first line that is neither blank nor a comment is no header.
    """
    chunks = line_chunks(source, options.chunk_bytes)
    if not options.header:
        return None, chunks
    for chunk in chunks:
        start = 0
        for number, text in enumerate(chunk.text.split(b"\n")[:-1], chunk.line):
            start += len(text) + 1
            tokens = text.partition(b"#")[0].split()
            if tokens:
                rest = Chunk(chunk.name, number + 1, chunk.text[start:])
                return _header(chunk.name, number, tokens), chain([rest], chunks)
    return None, iter(())


def parse(chunk: Chunk, options: Options) -> Rows:
    """The rows of a chunk.

    Raises:
      ValueError: a line is faulty; the message has its number, the column and the token.
      ImportError: scikit-learn is not installed.
    """
    load = extra("sklearn.datasets", "reading svmlight files").load_svmlight_file
    return _quick(load, chunk.text, options) or from_rows(exact_rows(chunk, options), options)


def from_rows(rows: Iterable[Row], options: Options) -> Rows:
    """The arrays of rows read one by one."""
    rows = list(rows)
    indices = np.array([i for row in rows for i in row.indices], np.int32)
    values = np.array([v for row in rows for v in row.values], np.float64)
    return Rows(
        np.array([len(row.indices) for row in rows], np.int32),
        indices,
        values.astype(options.dtype),
        *_label_arrays([sorted(row.labels) for row in rows], options),
        np.array([row.qid for row in rows], np.int64) if options.query_id else None,
    )


def concatenated(pieces: list[Rows], options: Options) -> Rows:
    """The rows of all pieces; the list is emptied on the way to keep memory low."""
    if not pieces:
        return from_rows([], options)
    columns: list[Any] = [list(column) for column in zip(*pieces, strict=True)]
    pieces.clear()
    joined: list[Any] = []
    for at, column in enumerate(columns):
        joined.append(None if column[0] is None else np.concatenate(column))
        columns[at] = column = None  # the pieces go before the next ones are joined
    return Rows(*joined)


def _header(name: str, line: int, tokens: list[bytes]) -> Header:
    whole = all(_DIGITS.fullmatch(token) for token in tokens)
    if not whole or len(tokens) not in (2, 3) or int(tokens[1]) < 1:
        refuse(
            name,
            line,
            1,
            f"header=True needs a line 'rows features labels', got {shown(b' '.join(tokens))}",
        )
    n_rows, n_features, *n_labels = map(int, tokens)
    return Header(line, n_rows, n_features, n_labels[0] if n_labels else None)


def _quick(load: Any, text: bytes, options: Options) -> Rows | None:
    """The rows by scikit-learn's parser; None where only the exact one can tell."""
    if not _trusted_form(options.multilabel).fullmatch(text):
        return None
    try:
        X, y = load(
            io.BytesIO(text), dtype=options.dtype, multilabel=options.multilabel, zero_based=True
        )
    except (ValueError, OverflowError):
        return None  # indices out of order, repeated or beyond int32
    if not len(y) or not np.isfinite(X.data).all():
        return None
    if options.multilabel:
        flat = np.fromiter(chain.from_iterable(y), np.float64)
        if ((flat < 0) | (flat > MAX_LABEL) | (flat != np.trunc(flat))).any():
            return None
    elif not (np.abs(y) < EXACT_INTEGER).all():
        return None
    qid = None
    if options.query_id:
        qid = np.array(list(map(int, _QID.findall(_COMMENT.sub(b"", text)))), np.int64)
        if len(qid) != len(y):
            return None  # a row without one
    counts = np.diff(X.indptr).astype(np.int32)
    return Rows(counts, X.indices.astype(np.int32), X.data, *_label_arrays(y, options), qid)


@functools.cache
def _trusted_form(multilabel: bool) -> re.Pattern[bytes]:
    """Matches text only if every line of it is well formed. Nothing in it backtracks far."""
    entry = rb"[0-9]{1,10}+:" + NUMBER
    qid = rb"qid:[+-]?+[0-9]{1,18}+"
    entries = rb"(?:[ \t]++" + entry + rb")*+"
    qid_and_entries = rb"(?:[ \t]++" + qid + rb")?+" + entries
    row = NUMBER + qid_and_entries
    if multilabel:
        labels = NUMBER + rb"(?:," + NUMBER + rb")*+(?!:)"
        # Without labels the first token is the query id or an entry.
        row = rb"(?:" + labels + qid_and_entries + rb"|(?:" + qid + rb"|" + entry + rb")" + entries
        row += rb")"
    return re.compile(rb"(?:[ \t]*+(?:" + row + rb"[ \t]*+)?+(?:#[^\r\n]*+)?+\r?+\n)*+")


def _label_arrays(labels: Any, options: Options) -> tuple[np.ndarray, np.ndarray | None]:
    if not options.multilabel:
        if isinstance(labels, list):
            labels = [label for row in labels for label in row]
        return np.asarray(labels, np.float64), None
    counts = np.fromiter(map(len, labels), np.int32, len(labels))
    flat = np.fromiter(chain.from_iterable(labels), np.float64, int(counts.sum()))
    return flat.astype(np.int32), counts
