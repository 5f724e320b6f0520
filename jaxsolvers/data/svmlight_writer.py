"""Writing svmlight (LIBSVM) files that read back to the same bits."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from jaxsolvers.checks import check_finite, check_matrix, check_vector, host_array, is_real
from jaxsolvers.csr import is_sparse
from jaxsolvers.data.arguments import check_flag
from jaxsolvers.data.chunks import as_csr
from jaxsolvers.data.extras import scipy_sparse
from jaxsolvers.data.svmlight_exact import EXACT_INTEGER

__all__ = ["write_svmlight"]

_BLOCK = 1 << 18  # entries per piece of text


def write_svmlight(
    path_or_file: Any,
    X: Any,
    y: Any,
    *,
    zero_based: bool = False,
    multilabel: bool = False,
    query_id: Any = None,
    comment: str | None = None,
    header: bool = False,
) -> None:
    """Write a file of lines ``label index:value index:value ...``.

    Every value is written with the fewest digits that read back to the same bits in X's dtype.
    Zeros are left out, stored ones too, and -0.0 with them. What a file cannot say without
    ``header=True`` is how many columns follow the last one used: read it with ``n_features``.

    Args:
      path_or_file: a path, compressed if it ends in ``.gz``, ``.bz2`` or ``.xz``, or a file opened
        for writing in binary mode, which is left open.
      X: (n, d) array or scipy sparse matrix of finite real numbers, integers up to 2^53.
      y: (n,) labels, integers of at most 2^53 or finite floats; with ``multilabel`` (n, K)
        indicators of 0 and 1, dense or sparse.
      zero_based: whether the first column has index 0 rather than 1.
      multilabel: whether lines start with the columns where y is 1, counted from 0. A row with
        neither labels nor values is written as one zero, or it would be a blank line.
      query_id: (n,) integers, written as ``qid:`` after the label; or None.
      comment: text put first, one ``#`` line for each of its lines; or None.
      header: whether a line ``rows features labels`` comes before the rows; ``labels`` is K, or
        the number of different labels.

    Raises:
      ValueError: an argument is not of the form above; nothing is written then.
      ImportError: scipy is missing: install ``jaxsolvers[data]``.

    Example:
      >>> import io, numpy as np
      >>> file = io.BytesIO()
      >>> write_svmlight(file, np.array([[0.1, 0.0, 2.0]], np.float32), [1])
      >>> file.getvalue()
      b'1 1:0.1 3:2\\n'
    """
    _check_target(path_or_file)
    for name, flag in (("zero_based", zero_based), ("multilabel", multilabel), ("header", header)):
        check_flag(flag, name)
    rows = _checked_rows(X)
    n, d = rows.shape
    labels, n_labels = _label_sets(y, n) if multilabel else _plain_labels(y, n)
    if query_id is not None:
        query_id = check_vector(query_id, n, "query_id")
        if query_id.dtype.kind not in "iu" or (n and int(query_id.max()) >= 2**63):
            raise ValueError(f"query_id must hold 64-bit integers, got dtype {query_id.dtype}")
    if n == 0:
        raise ValueError(f"X must have at least one row, got shape {rows.shape}")
    first = _comment_lines(comment) + (f"{n} {d} {n_labels}\n".encode() if header else b"")
    with _opened(path_or_file) as file:
        file.write(first)
        for text in _texts(rows, labels, query_id, 0 if zero_based else 1):
            file.write(text.encode("ascii"))


def _check_target(path_or_file: Any) -> None:
    if isinstance(path_or_file, (str, os.PathLike)):
        return
    if not callable(getattr(path_or_file, "write", None)):
        raise ValueError(f"path_or_file must be a path or a file to write to, got {path_or_file!r}")
    if hasattr(path_or_file, "encoding"):
        raise ValueError(
            f"path_or_file must be opened in binary mode, got {type(path_or_file).__name__}"
        )


def _comment_lines(comment: str | None) -> bytes:
    if comment is None:
        return b""
    if not isinstance(comment, str):
        raise ValueError(f"comment must be text or None, got {comment!r}")
    # Not splitlines: it also cuts at characters that are no line ends in a file.
    lines = comment.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "".join(f"# {line}\n" for line in lines).encode()


def _checked_rows(X: Any) -> Any:
    """X as canonical CSR or a NumPy matrix, in a dtype whose numbers are written exactly."""
    if is_sparse(X):
        rows = as_csr(X, "X")
        values = rows.data
    else:
        rows = values = np.asarray(check_matrix(X))
        check_finite(rows, "X")
    if values.dtype.kind in "biu":
        largest = max(abs(int(values.max(initial=0))), abs(int(values.min(initial=0))))
        if largest > EXACT_INTEGER:
            raise ValueError(f"X must hold integers of at most 2^53, got {largest}")
        return rows.astype(np.int64)
    if values.dtype.itemsize > 8:
        raise ValueError(f"X must be float64 or narrower, got dtype {values.dtype}")
    return rows.astype(np.float64 if values.dtype.itemsize == 8 else np.float32, copy=False)


def _plain_labels(y: Any, n: int) -> tuple[list[str], int]:
    if is_sparse(y):
        raise ValueError(f"y must be of shape ({n},) without multilabel=True, got {y.shape}")
    labels = check_vector(y, n)
    if not is_real(labels.dtype):
        raise ValueError(f"y must hold numbers, got dtype {labels.dtype}")
    check_finite(labels, "y")
    if labels.dtype.kind in "biu":
        largest = max((abs(int(label)) for label in labels), default=0)
        if largest > EXACT_INTEGER:
            raise ValueError(f"y must hold integers of at most 2^53, got {largest}")
        labels = labels.astype(np.int64)
    elif labels.dtype.itemsize > 8:
        raise ValueError(f"y must be float64 or narrower, got dtype {labels.dtype}")
    else:
        labels = labels.astype(np.float64)
    return [repr(label) for label in labels.tolist()], len(np.unique(labels))


def _label_sets(y: Any, n: int) -> tuple[list[str], int]:
    stored = y if is_sparse(y) else host_array(y, "y")
    shape = stored.shape
    if len(shape) != 2 or shape[0] != n:
        raise ValueError(
            f"y must be a 2-D indicator of shape ({n}, K) with multilabel=True, got shape {shape}"
        )
    if not is_sparse(stored):
        if not is_real(stored.dtype):
            raise ValueError(f"y must hold 0 and 1, got dtype {stored.dtype}")
        stored = scipy_sparse("writing label sets").csr_array(stored.astype(np.float64))
    sets = as_csr(stored, "y", np.float64).copy()
    if not np.isin(sets.data, (0, 1)).all():
        bad = sets.data[~np.isin(sets.data, (0, 1))][0]
        raise ValueError(f"y must hold 0 and 1 with multilabel=True, got {bad:g}")
    sets.eliminate_zeros()
    texts = list(map(str, sets.indices.tolist()))
    ends = sets.indptr.tolist()
    return [",".join(texts[a:b]) for a, b in pairwise(ends)], shape[1]


def _texts(rows: Any, labels: list[str], query_id: Any, base: int) -> Iterator[str]:
    """The lines, some rows at a time."""
    n = rows.shape[0]
    queries = None if query_id is None else query_id.tolist()
    start = 0
    while start < n:
        stop = _block_end(rows, start)
        indptr, indices, values = _entries(rows[start:stop])
        entries = [
            f"{index}:{value}"
            for index, value in zip((indices + base).tolist(), _numbers(values), strict=True)
        ]
        lines = []
        for row, (a, b) in enumerate(pairwise(indptr), start):
            parts = [labels[row]]
            if queries is not None:
                parts.append(f"qid:{queries[row]}")
            parts += entries[a:b]
            # A blank line would be no row: one zero stands for a row without anything.
            lines.append(" ".join(parts) if any(parts) else f" {base}:0")
        yield "\n".join(lines) + "\n"
        start = stop


def _block_end(rows: Any, start: int) -> int:
    n, d = rows.shape
    if not is_sparse(rows):
        return min(n, start + max(1, _BLOCK // d))
    end = int(np.searchsorted(rows.indptr, int(rows.indptr[start]) + _BLOCK, side="right")) - 1
    return min(n, max(start + 1, end), start + _BLOCK)


def _entries(block: Any) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Row pointers, columns and values of what is not zero."""
    if is_sparse(block):
        present = block.data != 0
        row = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))[present]
        column, values = block.indices[present], block.data[present]
    else:
        row, column = np.nonzero(block)
        values = block[row, column]
    ends = np.searchsorted(row, np.arange(block.shape[0] + 1))
    return ends.tolist(), column.astype(np.int64), values


def _numbers(values: np.ndarray) -> list[str]:
    """The shortest text of each number that reads back to its bits.

    Reading rounds to float64 first. For float32 that could go wrong only where the text is within
    2^-54 of the middle between two float32: no shortest text of a float32 is (all decimals of up
    to eight digits were searched; with nine digits the nearest one is far from the middle).
    """
    if values.dtype == np.float32:
        return [text.removesuffix(".0") for text in values.astype("U").tolist()]
    return [repr(value).removesuffix(".0") for value in values.tolist()]


@contextmanager
def _opened(path_or_file: Any) -> Iterator[Any]:
    if not isinstance(path_or_file, (str, os.PathLike)):
        yield path_or_file
        return
    suffix = os.path.splitext(os.fspath(path_or_file))[1]
    if suffix == ".gz":
        # Neither name nor time in it: the same rows give the same bytes.
        with open(path_or_file, "wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as file:
            yield file
        return
    # Of xz's presets only the first two are fast on such text, the others gain little.
    opener: Any = {".bz2": bz2.open, ".xz": partial(lzma.open, preset=1)}.get(suffix, open)
    with opener(path_or_file, "wb") as file:
        yield file
