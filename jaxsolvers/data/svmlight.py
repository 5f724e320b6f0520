"""Reading svmlight (LIBSVM) files into memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from jaxsolvers.data.extras import scipy_sparse
from jaxsolvers.data.line_chunks import check_source, file_name
from jaxsolvers.data.svmlight_options import Options, check_options
from jaxsolvers.data.svmlight_parse import Rows, chunks_after_header, concatenated, parse
from jaxsolvers.data.svmlight_survey import Findings, Survey

__all__ = ["SvmlightData", "read_svmlight", "read_svmlight_files"]

CHUNK_BYTES = 8 << 20


class SvmlightData(NamedTuple):
    """What :func:`read_svmlight` found in a file of n rows.

    Args:
      X: (n, d) scipy ``csr_array``, columns ascending, int32 indices. A zero that the file spells
        out is a stored entry.
      y: (n,) labels; with ``multilabel=True`` a bool ``csr_array`` (n, K).
      qid: (n,) int64 query ids, or None.
      zero_based: the index base that was used.

    Example:
      >>> import io
      >>> X, y, qid, zero_based = read_svmlight(io.BytesIO(b"1 1:0.5 3:2"))
      >>> X.shape, y.tolist(), qid, zero_based
      ((1, 3), [1], None, False)
    """

    X: Any
    y: Any
    qid: np.ndarray | None
    zero_based: bool


def read_svmlight(
    path_or_file: Any,
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    multilabel: bool = False,
    n_labels: int | None = None,
    query_id: bool = False,
    dtype: DTypeLike = "float32",
    header: bool = False,
    label_dtype: str = "auto",
    chunk_bytes: int = CHUNK_BYTES,
) -> SvmlightData:
    """Read a file of lines ``label index:value index:value ... # comment``.

    Row i of X has ``X[i, index - 1] = value``, or ``X[i, index]`` in a zero-based file. Comments
    and blank lines are skipped, indices may come in any order, CR LF line ends are fine. Numbers
    are read as float64 and then rounded to ``dtype``.

    Args:
      path_or_file: a path (plain, gzip, bzip2 or xz, told by its first bytes), or a file opened
        in binary mode, read from where it stands and left open.
      n_features: columns of X; None takes the largest index found. Give it, or read the files
        together with :func:`read_svmlight_files`, where a test file may lack the last columns.
      zero_based: whether index 0 is the first column. ``"auto"``: an index 0 anywhere makes the
        file zero-based, else it is one-based; the result says which.
      multilabel: lines start with ``label,label,...``, columns of y counted from 0 in either
        index base, or with none. A label listed twice counts once.
      n_labels: columns of y with ``multilabel``; None takes the largest label found.
      query_id: lines have ``qid:integer`` after the label and it is wanted. Query ids are
        otherwise passed over, but must still be integers.
      dtype: of X, float32 or float64.
      header: the first line is ``rows features`` or ``rows features labels``; it sets
        ``n_features`` (and ``n_labels``), and the number of rows is checked.
      label_dtype: ``"int64"``, ``"float64"``, or ``"auto"``: int64 when every label is an
        integer of at most 2^53.
      chunk_bytes: text parsed at a time, a trade of memory against speed.

    Returns:
      ``SvmlightData(X, y, qid, zero_based)``.

    Raises:
      ValueError: an option is not accepted; a line is malformed, repeats an index or holds a
        number that is not finite (the message has file, line, column and token); an index or a
        label is beyond the width; there is no row; compressed data is cut off.
      ImportError: scikit-learn or scipy is missing: install ``jaxsolvers[data]``.

    Example:
      >>> import io
      >>> data = read_svmlight(io.BytesIO(b"+1 1:0.5 3:2 # good\\n-1 2:1\\n"))
      >>> data.X.toarray().tolist(), data.y.tolist(), data.zero_based
      ([[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]], [1, -1], False)
    """
    check_source(path_or_file, "path_or_file")
    options = check_options(
        n_features=n_features,
        zero_based=zero_based,
        multilabel=multilabel,
        n_labels=n_labels,
        query_id=query_id,
        dtype=dtype,
        header=header,
        label_dtype=label_dtype,
        chunk_bytes=chunk_bytes,
    )
    return _read([path_or_file], options)[0]


def read_svmlight_files(
    paths_or_files: Sequence[Any],
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    multilabel: bool = False,
    n_labels: int | None = None,
    query_id: bool = False,
    dtype: DTypeLike = "float32",
    header: bool = False,
    label_dtype: str = "auto",
    chunk_bytes: int = CHUNK_BYTES,
) -> list[SvmlightData]:
    """Read files that belong together, such as a training and a test file.

    All of them get one index base, one width, one number of labels and one label dtype, found
    over all the files by the rules of :func:`read_svmlight`.

    Args:
      paths_or_files: at least one path or open file.
      n_features: columns of every X.
      zero_based: the base of all files.
      multilabel: as in :func:`read_svmlight`, like the others below.
      n_labels: columns of every y.
      query_id: whether query ids are wanted.
      dtype: of every X.
      header: whether every file has one; they must agree on the widths.
      label_dtype: of every y.
      chunk_bytes: text parsed at a time.

    Returns:
      One ``SvmlightData`` per file, in order.

    Raises:
      ValueError: as :func:`read_svmlight`, or there are no files.
      ImportError: scikit-learn or scipy is missing.

    Example:
      >>> import io
      >>> train, test = read_svmlight_files([io.BytesIO(b"1 1:1 5:1"), io.BytesIO(b"0 4:1")])
      >>> train.X.shape, test.X.shape
      ((1, 5), (1, 5))
    """
    if isinstance(paths_or_files, (str, bytes, os.PathLike)) or not len(paths_or_files):
        raise ValueError(
            f"paths_or_files must be a list of paths or open files, got {paths_or_files!r}"
        )
    for at, source in enumerate(paths_or_files):
        check_source(source, f"paths_or_files[{at}]")
    options = check_options(
        n_features=n_features,
        zero_based=zero_based,
        multilabel=multilabel,
        n_labels=n_labels,
        query_id=query_id,
        dtype=dtype,
        header=header,
        label_dtype=label_dtype,
        chunk_bytes=chunk_bytes,
    )
    return _read(paths_or_files, options)


def surveyed_rows(source: Any, options: Options, survey: Survey) -> Iterator[Rows]:
    """The rows of a file chunk by chunk, each checked by the survey."""
    name = file_name(source)
    head, chunks = chunks_after_header(source, options)
    survey.begin(head, name)
    for chunk in chunks:
        rows = parse(chunk, options)
        survey.see(chunk, rows)
        if len(rows.counts):
            yield rows
    survey.end(head, name)


def as_data(rows: Rows, found: Findings, options: Options) -> SvmlightData:
    """Rows as matrices. ``rows.indices`` is changed in place."""
    sparse = scipy_sparse("reading svmlight files")
    if not found.zero_based:
        np.subtract(rows.indices, 1, out=rows.indices)
    shape = (len(rows.counts), found.n_features)
    X = sparse.csr_array((rows.values, rows.indices, _pointers(rows.counts)), shape=shape)
    if not options.multilabel:
        assert rows.label_counts is None
        y = rows.labels.astype(found.label_dtype, copy=False)
        return SvmlightData(X, y, rows.qid, found.zero_based)
    assert rows.label_counts is not None
    ones = np.ones(len(rows.labels), bool)
    pointers = _pointers(rows.label_counts)
    Y = sparse.csr_array((ones, rows.labels, pointers), shape=(shape[0], found.n_labels))
    Y.sum_duplicates()  # bool: true or true is true
    return SvmlightData(X, Y, rows.qid, found.zero_based)


def _read(sources: Sequence[Any], options: Options) -> list[SvmlightData]:
    survey = Survey(options)
    files = [
        concatenated(list(surveyed_rows(source, options, survey)), options) for source in sources
    ]
    found = survey.findings()
    return [as_data(rows, found, options) for rows in files]


def _pointers(counts: np.ndarray) -> np.ndarray:
    """Row pointers, int32 unless there are 2^31 entries or more."""
    ends = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    return ends.astype(np.int32) if ends[-1] < 2**31 else ends
