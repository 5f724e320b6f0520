"""What svmlight files hold, learned chunk by chunk: index base, width, labels, rows."""

from __future__ import annotations

import dataclasses

import numpy as np

from jaxsolvers.checks import MAX_COUNT
from jaxsolvers.data.line_chunks import Chunk
from jaxsolvers.data.svmlight_exact import EXACT_INTEGER, Place, find_index, find_label, refuse
from jaxsolvers.data.svmlight_options import Options
from jaxsolvers.data.svmlight_parse import Header, Rows


@dataclasses.dataclass(frozen=True)
class Findings:
    """What was found, or declared."""

    zero_based: bool
    n_features: int
    n_labels: int  # 0 without multilabel
    label_dtype: str


class Survey:
    """Checks every chunk of one or several files and remembers what they have in common.

    The index base of ``zero_based="auto"``: an index 0 anywhere makes all files zero-based, else
    they are one-based. An index equal to ``n_features`` fits only one-based files.
    """

    def __init__(self, options: Options):
        self.options = options
        self.n_rows = 0
        self._file_rows = 0
        self._highest = -1
        self._zero: Place | None = None  # the first index 0
        self._edge: Place | None = None  # the first index equal to the width
        self._top_label = -1
        self._whole = True  # all labels are integers

    def begin(self, header: Header | None, name: str) -> None:
        """A file starts.

        Raises:
          ValueError: the header contradicts an option or another file's header.
        """
        self._file_rows = 0
        if header is None:
            return
        for option in ("n_features", "n_labels") if self.options.multilabel else ("n_features",):
            told, known = getattr(header, option), getattr(self.options, option)
            if told is None or told == known:
                continue
            if known is not None:
                refuse(name, header.line, 1, f"the header says {option}={told}, not {known}")
            self.options = dataclasses.replace(self.options, **{option: told})

    def end(self, header: Header | None, name: str) -> None:
        """A file ends.

        Raises:
          ValueError: it has other rows than its header says, or none.
        """
        if header is not None and header.n_rows != self._file_rows:
            refuse(
                name, header.line, 1, f"the header says {header.n_rows} rows, got {self._file_rows}"
            )
        if not self._file_rows:
            raise ValueError(f"{name} has no line that holds a row")

    def see(self, chunk: Chunk, rows: Rows) -> None:
        """Look at the rows of a chunk.

        Raises:
          ValueError: an index or a label is outside what the options, or the chunks before, allow.
        """
        self.n_rows += len(rows.counts)
        self._file_rows += len(rows.counts)
        if rows.indices.size:
            self._see_indices(chunk, int(rows.indices.min()), int(rows.indices.max()))
        if rows.label_counts is None:
            self._see_labels(chunk, rows.labels)
        elif rows.labels.size:
            self._see_label_sets(chunk, int(rows.labels.max()))

    def findings(self) -> Findings:
        """What holds for all the chunks seen.

        Raises:
          ValueError: the width is not given and no row has an entry.
        """
        options = self.options
        zero_based = bool(options.zero_based)
        if options.zero_based == "auto":
            zero_based = self._zero is not None
        n_features = options.n_features
        if n_features is None:
            if self._highest < 0:
                raise ValueError(
                    "n_features must be given, or a header read, for files whose lines have no "
                    "index:value"
                )
            n_features = self._highest + zero_based
        n_labels = self._top_label + 1 if options.n_labels is None else options.n_labels
        label_dtype = options.label_dtype
        if label_dtype == "auto":
            label_dtype = "int64" if self._whole else "float64"
        return Findings(zero_based, n_features, n_labels, label_dtype)

    def _see_indices(self, chunk: Chunk, low: int, high: int) -> None:
        options = self.options
        width = MAX_COUNT if options.n_features is None else options.n_features
        literal = options.zero_based != "auto"
        bound = width - 1 if literal and options.zero_based else width
        if high > bound:
            place = find_index(chunk, options, lambda index: index > bound)
            base = f" and zero_based={options.zero_based}" if literal else ""
            refuse(
                *place,
                f"an index must be at most {bound} with n_features={width}{base}, "
                f"got index up to {high}",
            )
        self._highest = max(self._highest, high)
        if low == 0 and literal and not options.zero_based:
            place = find_index(chunk, options, lambda index: index == 0)
            refuse(
                *place,
                f"index 0 on line {place.line} is not valid in a one-based file: "
                "zero_based=True or 'auto' reads zero-based ones, got zero_based=False",
            )
        if literal:
            return
        if low == 0 and self._zero is None:
            self._zero = find_index(chunk, options, lambda index: index == 0)
        if high == width and self._edge is None:
            self._edge = find_index(chunk, options, lambda index: index == width)
        if self._zero is not None and self._edge is not None:
            zero = self._zero
            refuse(
                *self._edge,
                f"index {width} needs a one-based file with n_features={width}, but index 0 "
                f"in {zero.name}, line {zero.line}, column {zero.column} makes it zero-based",
            )

    def _see_labels(self, chunk: Chunk, labels: np.ndarray) -> None:
        whole = (labels == np.trunc(labels)) & (np.abs(labels) <= EXACT_INTEGER)
        if self.options.label_dtype == "int64" and not whole.all():
            place = find_label(chunk, self.options, lambda x: x != int(x) or abs(x) > EXACT_INTEGER)
            bad = labels[~whole][0]
            refuse(*place, f"label_dtype='int64' needs integers, got the label {bad:g}")
        self._whole &= bool(whole.all())

    def _see_label_sets(self, chunk: Chunk, top: int) -> None:
        n_labels = self.options.n_labels
        if n_labels is not None and top >= n_labels:
            place = find_label(chunk, self.options, lambda label: label >= n_labels)
            refuse(*place, f"a label must be below n_labels={n_labels}, got label up to {top}")
        self._top_label = max(self._top_label, top)
