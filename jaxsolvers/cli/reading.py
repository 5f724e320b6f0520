"""Data files as rows and labels: whole, in blocks, or as a source that is read again."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from jaxsolvers.checks import MAX_COUNT, check_integer
from jaxsolvers.cli.archives import read_npz
from jaxsolvers.cli.files import Sniffed, kind_of, sniff
from jaxsolvers.csr import is_sparse
from jaxsolvers.data.extras import scipy_sparse
from jaxsolvers.data.svmlight import read_svmlight
from jaxsolvers.data.svmlight_stream import SvmlightStream, iter_svmlight
from jaxsolvers.data.transforms import normalize_rows

BLOCK_ROWS = 4096


@dataclasses.dataclass(frozen=True)
class Reading:
    """How a data file is to be read."""

    width: int | None  # columns of X, None: as found
    zero_based: bool | str  # or "auto"
    header: bool
    norm: str  # "none" or one of normalize_rows
    labels: str | None  # a file with the labels of an .npz file
    dtype: np.dtype
    drop: bool = False  # what lies beyond the width is left out

    def finish(self, X: Any) -> Any:
        """X of the width, its rows divided by their norm. X itself may change.

        Raises:
          ValueError: X is wider, or dense and of another width.
        """
        width = self.width
        if width is not None and X.shape[1] != width:
            if X.shape[1] > width and self.drop:
                X = X[:, :width]
            elif is_sparse(X) and X.shape[1] < width:
                parts = (X.data, X.indices, X.indptr)
                X = scipy_sparse("sparse rows").csr_array(parts, shape=(X.shape[0], width))
            else:
                raise ValueError(f"X must have {width} features, got {X.shape[1]}")
        if self.norm == "none":
            return X
        return normalize_rows(X, self.norm, copy=not is_sparse(X))  # type: ignore[arg-type]


class Table(NamedTuple):
    """A file that was read."""

    X: Any  # (n, d) matrix or csr_array
    y: Any  # (n,) labels, (n, K) indicators, or None
    zero_based: bool | None  # None for .npz files


class Source:
    """An svmlight file as rows to train on, in chunks; what passes by is counted once.

    Args:
      stream: the file.
      reading: how its rows are finished.

    Example:
      >>> import os, tempfile
      >>> path = os.path.join(tempfile.mkdtemp(), "rows.svm")
      >>> with open(path, "w") as file:
      ...     _ = file.write("1 1:2\\n0 3:1\\n")
      >>> reading = Reading(None, "auto", False, "l2", None, np.dtype("float32"))
      >>> source = open_source(path, reading, several=False)
      >>> [X.toarray().tolist() for X, y in source], source.labels.tolist()
      ([[[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]], [0, 1])
    """

    def __init__(self, stream: SvmlightStream, reading: Reading):
        self.stream, self.reading = stream, reading
        self.rows = self.entries = 0
        self.labels: Any = None  # different ones, ascending; None before the first pass
        self.weighed: tuple[Any, float] | None = None  # a label and the weight of its rows

    @property
    def n_features(self) -> int:
        """Columns of every X."""
        return self.reading.width or self.stream.n_features

    @property
    def dtype(self) -> np.dtype:
        """Dtype of every X."""
        return self.stream.dtype

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        rows = entries = 0
        labels: Any = None
        for X, y in self.stream:
            rows, entries = rows + X.shape[0], entries + X.nnz
            if self.labels is None and not is_sparse(y):
                labels = np.unique(y) if labels is None else np.union1d(labels, y)
            X = self.reading.finish(X)
            if self.weighed is None:
                yield X, y
            else:
                label, weight = self.weighed
                yield X, y, np.where(y == label, weight, 1.0)
        self.rows, self.entries = rows, entries
        self.labels = labels if self.labels is None else self.labels

    def survey(self) -> None:
        """Read the file once, for its labels."""
        for _ in self:
            pass


def for_training(options: argparse.Namespace) -> Reading:
    """How ``train`` reads its data.

    Raises:
      ValueError: a width that is no positive integer.
    """
    if options.features is not None:
        check_integer(options.features, "n_features")
    return Reading(
        options.features,
        zero_based_of(options.zero_based),
        options.header,
        options.normalize,
        options.labels,
        np.dtype(np.float64 if options.float64 else np.float32),
    )


def for_model(options: argparse.Namespace, model: Any, notes: dict[str, Any]) -> Reading:
    """How data is read for a model: as in its training, unless the options say otherwise."""
    trained = notes.get("zero_based")
    base = zero_based_of(options.zero_based or "auto")
    if options.zero_based is None and isinstance(trained, bool):
        base = trained
    double = np.dtype(model.coef.dtype).itemsize > 4
    return Reading(
        model.n_features,
        base,
        options.header,
        options.normalize or str(notes.get("normalize", "none")),
        getattr(options, "labels", None),
        np.dtype(np.float64 if double else np.float32),
        options.drop_new_features,
    )


def zero_based_of(word: str) -> bool | str:
    """The index base that an option asks for."""
    return {"yes": True, "no": False}.get(word, "auto")


def look_at(path: str, labels: str | None) -> Sniffed | None:
    """What the first lines of an svmlight file look like; None for an .npz file.

    Raises:
      ValueError: a file of labels for a file that has labels.
    """
    if kind_of(path) == "npz":
        return None
    if labels is not None:
        raise ValueError(f"--labels is for .npz files, {path} has labels of its own")
    return sniff(path)


def read_table(path: str, reading: Reading, several: bool) -> Table:
    """A whole file.

    Args:
      path: of the file.
      reading: how it is read.
      several: whether lines of an svmlight file have any number of labels.

    Raises:
      ValueError: the file is faulty; the message has the line where it has lines.
    """
    if kind_of(path) == "npz":
        X, y = read_npz(path, reading.labels, reading.dtype)
        return Table(reading.finish(X), y, None)
    data = read_svmlight(path, multilabel=several, **_svmlight_options(reading))
    return Table(reading.finish(data.X), data.y, data.zero_based)


def open_source(path: str, reading: Reading, several: bool) -> Source:
    """An svmlight file that is read in chunks, again for every epoch.

    Raises:
      ValueError: an .npz file.
    """
    if kind_of(path) == "npz":
        raise ValueError(f"--stream is for svmlight files, {path} is an .npz file")
    options = _svmlight_options(reading)
    return Source(iter_svmlight(path, BLOCK_ROWS, multilabel=several, **options), reading)


def row_blocks(path: str, reading: Reading) -> Iterator[Any]:
    """The rows of a file without their labels, some thousand at a time."""
    if kind_of(path) == "npz":
        X, _ = read_npz(path, None, reading.dtype)
        for start in range(0, X.shape[0], BLOCK_ROWS):
            yield reading.finish(X[start : start + BLOCK_ROWS])
        return
    seen = sniff(path)
    options = _svmlight_options(reading)
    # Given beforehand, whatever the labels are: otherwise the file would be read twice.
    if seen.several or seen.unlabelled:
        options |= {"multilabel": True, "n_labels": None if reading.header else MAX_COUNT}
    else:
        options |= {"label_dtype": "float64"}
    for X, _ in iter_svmlight(path, BLOCK_ROWS, **options):
        yield reading.finish(X)


def _svmlight_options(reading: Reading) -> dict[str, Any]:
    width = MAX_COUNT if reading.drop else reading.width
    return {
        # Wide enough for anything, or what a header says; `finish` sees to the width.
        "n_features": None if reading.header else width,
        "zero_based": reading.zero_based,
        "header": reading.header,
        "dtype": reading.dtype,
    }
