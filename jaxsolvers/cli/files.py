"""What a data file is, told by its first bytes and lines."""

from __future__ import annotations

import os
from contextlib import closing
from typing import Any, NamedTuple

from jaxsolvers.data.line_chunks import line_chunks

_SNIFFED = 1 << 20  # bytes of text that are looked at


class Sniffed(NamedTuple):
    """What the first lines of an svmlight file look like."""

    several: bool  # a line has several labels
    unlabelled: bool  # a line has none
    queries: bool  # lines have query ids


def kind_of(path: Any) -> str:
    """Whether a file is "npz" or "svmlight".

    Raises:
      ValueError: a single NumPy array, which has no labels.
      OSError: there is no such file.
    """
    if os.path.isdir(path):
        raise ValueError(f"{path} is a folder, a file is needed")
    with open(path, "rb") as file:
        start = file.read(8)
    if start.startswith(b"\x93NUMPY"):
        raise ValueError(
            f"{path} is a single array: an .npz file with X and y is needed, or one with X and "
            "--labels"
        )
    return "npz" if start.startswith((b"PK\x03\x04", b"PK\x05\x06")) else "svmlight"


def sniff(path: Any) -> Sniffed:
    """A look at the first lines of an svmlight file.

    Args:
      path: of the file, compressed or not. A header, if it has one, is harmless here.

    Raises:
      ValueError: compressed data is damaged or cut off.

    Example:
      >>> import os, tempfile
      >>> path = os.path.join(tempfile.mkdtemp(), "tags.svm")
      >>> with open(path, "w") as file:
      ...     _ = file.write("1,3 qid:5 1:2.5\\n")
      >>> sniff(path)
      Sniffed(several=True, unlabelled=False, queries=True)
    """
    several = unlabelled = queries = False
    reader: Any = line_chunks(path, _SNIFFED)
    with closing(reader) as chunks:
        text = next(chunks, None)
    for line in text.text.split(b"\n") if text is not None else ():
        tokens = line.partition(b"#")[0].split(maxsplit=2)
        if not tokens:
            continue
        several |= b"," in tokens[0]
        unlabelled |= b":" in tokens[0]
        queries |= any(token.startswith(b"qid:") for token in tokens[:2])
    return Sniffed(several, unlabelled, queries)
