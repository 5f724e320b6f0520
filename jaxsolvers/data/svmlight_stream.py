"""Svmlight files as a source: read in chunks of bounded memory, again for every epoch."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from jaxsolvers.checks import check_integer
from jaxsolvers.data.chunks import QueryChunk, regrouped
from jaxsolvers.data.svmlight import as_data, surveyed_rows
from jaxsolvers.data.svmlight_options import Options, check_options
from jaxsolvers.data.svmlight_survey import Findings, Survey

__all__ = ["SvmlightStream", "iter_svmlight"]

STREAM_BYTES = 1 << 20


class SvmlightStream:
    """The rows of an svmlight file in chunks, made by :func:`iter_svmlight`.

    A :class:`Source` unless it was asked for query ids. What the whole file decides and was not
    given (width, index base, number of labels, label dtype) is found by reading the file once
    before the first chunk, and remembered.

    Args:
      path: of the file.
      rows: rows per chunk.
      options: how the lines are read, already checked.

    Example:
      >>> import tempfile, os
      >>> path = os.path.join(tempfile.mkdtemp(), "rows.svm")
      >>> with open(path, "w") as file:
      ...     _ = file.write("1 1:2\\n0 3:1\\n")
      >>> stream = iter_svmlight(path, rows=1)
      >>> stream.n_rows, stream.n_features, stream.zero_based
      (2, 3, False)
    """

    def __init__(self, path: Any, rows: int, options: Options):
        self.path, self.rows = path, rows
        self._options = options
        self._found: Findings | None = None
        self._n_rows: int | None = None
        self._signature: tuple[int, int] | None = None

    @property
    def n_features(self) -> int:
        """Columns of every X."""
        return self._options.n_features or self._findings().n_features

    @property
    def dtype(self) -> np.dtype:
        """Dtype of every X."""
        return self._options.dtype

    @property
    def zero_based(self) -> bool:
        """The index base of the file."""
        if self._options.zero_based != "auto":
            return bool(self._options.zero_based)
        return self._findings().zero_based

    @property
    def n_labels(self) -> int:
        """Columns of every y with several labels a row, else 0."""
        if not self._options.multilabel:
            return 0
        return self._options.n_labels or self._findings().n_labels

    @property
    def n_rows(self) -> int:
        """Rows of the file."""
        if self._n_rows is None:
            self._scan()
        assert self._n_rows is not None
        return self._n_rows

    def __iter__(self) -> Iterator[Any]:
        return regrouped(self._chunks(), self.rows)

    def _chunks(self) -> Iterator[Any]:
        found = self._findings()
        self._check_unchanged()
        options = dataclasses.replace(
            self._options,
            n_features=found.n_features,
            zero_based=found.zero_based,
            n_labels=found.n_labels or None,
            label_dtype=found.label_dtype,
        )
        survey = Survey(options)
        for rows in surveyed_rows(self.path, options, survey):
            X, y, qid, _ = as_data(rows, found, options)
            yield (X, y) if qid is None else QueryChunk(X, y, qid)
        self._n_rows = survey.n_rows

    def _findings(self) -> Findings:
        if self._found is None:
            if self._options.settled():
                self._check_unchanged()
                self._found = Survey(self._options).findings()
            else:
                self._scan()
        assert self._found is not None
        return self._found

    def _scan(self) -> None:
        self._check_unchanged()
        survey = Survey(self._options)
        for _ in surveyed_rows(self.path, self._options, survey):
            pass  # the survey keeps what matters
        self._found = survey.findings()
        self._n_rows = survey.n_rows

    def _check_unchanged(self) -> None:
        status = os.stat(self.path)
        signature = (status.st_size, status.st_mtime_ns)
        if self._signature not in (None, signature):
            raise ValueError(
                f"path must not change between epochs, got a new file at {self.path}: make a new "
                "stream of it"
            )
        self._signature = signature


def iter_svmlight(
    path: Any,
    rows: int = 4096,
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    multilabel: bool = False,
    n_labels: int | None = None,
    query_id: bool = False,
    dtype: DTypeLike = "float32",
    header: bool = False,
    label_dtype: str = "auto",
    chunk_bytes: int = STREAM_BYTES,
) -> SvmlightStream:
    """An svmlight file as a source that is read anew for every epoch.

    Iterating yields ``(X, y)``, or ``(X, y, qid)`` with query ids, of ``rows`` rows each: parts
    of what :func:`read_svmlight` returns for the whole file. About ``chunk_bytes`` of text and
    ``rows`` rows are in memory at a time.

    Unless ``n_features``, ``zero_based`` and ``label_dtype`` (``n_labels`` with several labels)
    are all given, the first use reads the whole file once to find them.

    Args:
      path: of a plain, gzip, bzip2 or xz file.
      rows: rows per chunk, the last one shorter; 4096 by default.
      n_features: as in :func:`read_svmlight`, like all the others.
      zero_based: True, False or ``"auto"``.
      multilabel: whether lines start with label sets; y is then a bool ``csr_array``.
      n_labels: columns of y with ``multilabel``.
      query_id: whether chunks have query ids; such a stream cannot be trained on directly.
      dtype: of X, float32 or float64.
      header: whether the first line is ``rows features [labels]``.
      label_dtype: ``"int64"``, ``"float64"`` or ``"auto"``.
      chunk_bytes: text parsed at a time.

    Returns:
      A :class:`SvmlightStream` with ``n_features``, ``dtype``, ``n_rows``, ``n_labels`` and
      ``zero_based``.

    Raises:
      ValueError: an option is not accepted, or ``path`` is an open file. Later, while reading: as
        :func:`read_svmlight`, and if the file changed since it was first read.

    Example:
      >>> import tempfile, os
      >>> path = os.path.join(tempfile.mkdtemp(), "rows.svm")
      >>> with open(path, "w") as file:
      ...     _ = file.write("1 1:2\\n0 3:1\\n1 2:5\\n")
      >>> [(X.shape, y.tolist()) for X, y in iter_svmlight(path, rows=2)]
      [((2, 3), [1, 0]), ((1, 3), [1])]
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"path must be the path of a file that can be read again, got {path!r}")
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
    return SvmlightStream(path, check_integer(rows, "rows"), options)
