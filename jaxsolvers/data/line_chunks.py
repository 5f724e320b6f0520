"""Text files, compressed or not, in chunks of whole lines."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

# What a file starts with decides, not its name: a renamed file is still read.
_FORMATS: dict[bytes, Any] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
_PIECE = 1 << 18  # bytes per read: a damaged file is known to be good up to the last piece
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Chunk(NamedTuple):
    """Whole lines of a file, each ended by a line feed."""

    name: str  # of the file, for messages
    line: int  # number of the first line, from 1
    text: bytes


def file_name(source: Any) -> str:
    """How messages call a path or an open file."""
    if isinstance(source, (str, os.PathLike)):
        return str(os.fspath(source))
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else f"<{type(source).__name__}>"


def check_source(source: Any, argument: str) -> None:
    """Raise a ValueError that names the argument unless it is a path or an open file."""
    if not isinstance(source, (str, os.PathLike)) and not callable(getattr(source, "read", None)):
        raise ValueError(
            f"{argument} must be a path or a file opened in binary mode, got {source!r}"
        )


def line_chunks(source: Any, chunk_bytes: int) -> Iterator[Chunk]:
    """The text of a file, about ``chunk_bytes`` at a time, cut at line ends.

    A path is opened and, if its first bytes say gzip, bzip2 or xz, decompressed. An open file is
    read from where it stands and left open. A last line without a line feed gets one.

    Raises:
      ValueError: compressed data is damaged or cut off (the message names the file and the last
        whole line), or an open file gives no bytes.
    """
    name = file_name(source)
    with _opened(source) as file:
        read = getattr(file, "read1", None) or file.read
        held: list[bytes] = []
        size, line, first = 0, 1, True
        while True:
            try:
                piece = read(min(_PIECE, chunk_bytes))
            except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
                if isinstance(error, OSError) and error.errno is not None:
                    raise  # the disk's fault, not the text's
                last = line - 1 + sum(part.count(b"\n") for part in held)
                raise ValueError(
                    f"{name} is damaged or cut off: {error}; the last whole line is line {last}"
                ) from None
            if not isinstance(piece, bytes):
                raise ValueError(
                    f"{name} must be opened in binary mode, line {line} came as "
                    f"{type(piece).__name__}"
                )
            if not piece:
                break
            held.append(piece)
            size += len(piece)
            # A chunk has at least one whole line and room for a byte order mark.
            if size >= max(chunk_bytes, len(_BYTE_ORDER_MARK)) and b"\n" in piece:
                text = b"".join(held)
                end = text.rfind(b"\n") + 1
                held, size = [text[end:]], len(text) - end
                yield Chunk(name, line, _unmarked(text[:end], first))
                line, first = line + text.count(b"\n", 0, end), False
        text = b"".join(held)
        if text:
            yield Chunk(name, line, _unmarked(text.removesuffix(b"\n") + b"\n", first))


@contextmanager
def _opened(source: Any) -> Iterator[Any]:
    if not isinstance(source, (str, os.PathLike)):
        yield source
        return
    with open(source, "rb") as file:
        start = file.peek(6)[:6]
        for magic, opener in _FORMATS.items():
            if start.startswith(magic):
                with opener(file, "rb") as plain:
                    yield plain
                return
        yield file


def _unmarked(text: bytes, first: bool) -> bytes:
    return text.removeprefix(_BYTE_ORDER_MARK) if first else text
