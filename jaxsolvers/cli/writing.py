"""Output files: written whole or not at all, never over something that is not ours."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from jaxsolvers.cli.model_files import is_model
from jaxsolvers.replacing import replacing


def check_model_place(path: str, force: bool) -> None:
    """See before the work whether a model can be saved there.

    Raises:
      ValueError: no regular file or no folder for it, or another file that is not to be replaced.
    """
    _check_place(path)
    if not os.path.exists(path):
        return
    if not os.path.isfile(path):
        raise ValueError(f"--output must be a regular file, {path} is none")
    if not force and not is_model(path):
        raise ValueError(f"{path} exists and is no model of jaxsolvers: --force replaces it")


@contextmanager
def lines_to(path: str | None, force: bool) -> Iterator[IO[str]]:
    """A text file that appears under its name when all was written; standard output for None.

    Raises:
      ValueError: the file exists and is not to be replaced, or has no folder.
    """
    if path is None or path == "-":
        yield sys.stdout
        return
    _check_place(path)
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe or a device
        with open(path, "w", encoding="utf-8") as file:
            yield file
        return
    if os.path.exists(path) and not force:
        raise ValueError(f"{path} exists: --force replaces it")
    with replacing(os.path.realpath(path), "x", "utf-8") as file:
        yield file


def _check_place(path: str) -> None:
    folder = os.path.dirname(os.path.realpath(path))
    if not path or os.path.isdir(path):
        raise ValueError(f"--output must be a file, got {path!r}")
    if not os.path.isdir(folder):
        raise ValueError(f"--output: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"--output: the folder {folder} cannot be written to")
