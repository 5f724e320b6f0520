"""The options of the svmlight readers, checked before a file is opened."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from jaxsolvers.checks import check_integer, check_option
from jaxsolvers.data.arguments import check_flag, check_float_dtype


@dataclasses.dataclass(frozen=True)
class Options:
    """How the lines of a file are to be read."""

    n_features: int | None = None
    n_labels: int | None = None
    zero_based: bool | str = "auto"
    multilabel: bool = False
    query_id: bool = False
    dtype: np.dtype = np.dtype(np.float32)  # noqa: RUF009 (a dtype is immutable)
    header: bool = False
    label_dtype: str = "auto"
    chunk_bytes: int = 8 << 20

    @property
    def largest_value(self) -> float:
        """Numbers of this size or more round to infinity in the dtype, (2 - 2^-24) 2^127."""
        return (2 - 2.0**-24) * 2.0**127 if self.dtype == np.float32 else float("inf")

    def settled(self) -> bool:
        """Whether chunks can be made before the whole file was seen."""
        labels = self.n_labels if self.multilabel else self.label_dtype != "auto"
        return self.n_features is not None and self.zero_based != "auto" and bool(labels)


def check_options(**given: Any) -> Options:
    """The options, each checked.

    Raises:
      ValueError: an option has another value than accepted; the message names it.
    """
    options = Options(**given)
    for name in ("n_features", "n_labels"):
        if getattr(options, name) is not None:
            check_integer(getattr(options, name), name)
    for name in ("multilabel", "query_id", "header"):
        check_flag(getattr(options, name), name)
    zero_based = options.zero_based
    if not isinstance(zero_based, (bool, np.bool_)) and not (
        isinstance(zero_based, str) and zero_based == "auto"
    ):
        raise ValueError(f"zero_based must be True, False or 'auto', got {zero_based!r}")
    if options.n_labels is not None and not options.multilabel:
        raise ValueError(f"n_labels needs multilabel=True, got n_labels={options.n_labels}")
    check_option(options.label_dtype, "label_dtype", ("auto", "int64", "float64"))
    if options.label_dtype != "auto" and options.multilabel:
        raise ValueError("label_dtype has no use with multilabel=True, whose labels are columns")
    check_integer(options.chunk_bytes, "chunk_bytes")
    return dataclasses.replace(options, dtype=check_float_dtype(options.dtype))
