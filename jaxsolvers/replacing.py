"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from typing import IO, Any


@contextlib.contextmanager
def replacing(final: str, mode: str, encoding: str | None = None) -> Iterator[IO[Any]]:
    """A file that takes its place when all of it is written; else nothing changes.

    Args:
      final: resolved path of the file; what stands there is replaced.
      mode: "x" for text, "xb" for bytes.
      encoding: of the text.

    Raises:
      OSError: the folder cannot be written to.
    """
    folder, own = os.path.split(final)
    # Beside it, so that the last step is a rename within one file system.
    draft = os.path.join(folder, f".{own}.{secrets.token_hex(8)}.part")
    try:
        with open(draft, mode, encoding=encoding) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, final)
    except BaseException:
        if os.path.exists(draft):
            os.remove(draft)
        raise
