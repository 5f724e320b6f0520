"""Files of named arrays: NumPy's .npz without pickle, written whole or not at all."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxsolvers.replacing import replacing

FORMAT = "jaxsolvers"
VERSION = 1
_OWN = ("format", "version", "kind")
_AS_BITS = {"bfloat16": (np.dtype(jnp.bfloat16), np.dtype(np.uint16))}  # unknown to NumPy's files


def write_archive(path: Any, kind: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Write the arrays to exactly this path, with the format's name, its version and a kind.

    bfloat16, which NumPy's files do not know, is stored as its bits (uint16), with the name of
    the dtype in one more entry, "<name>_dtype".

    Raises:
      ValueError: an array that only pickle could store; no path.
      OSError: the file cannot be written; what was there before is then untouched.
    """
    entries: dict[str, Any] = {
        "format": np.array(FORMAT),
        "version": np.array(VERSION),
        "kind": np.array(kind),
    }
    for name, array in arrays.items():
        if array.dtype.name in _AS_BITS:
            entries[f"{name}_dtype"] = np.array(array.dtype.name)
            array = array.view(_AS_BITS[array.dtype.name][1])
        if array.dtype.kind in "OVT":
            raise ValueError(f"{name} must be numbers, bools or strings, got dtype {array.dtype}")
        entries[name] = array
    with replacing(os.path.realpath(_place(path)), "xb") as file:
        np.savez(file, allow_pickle=False, **entries)


def read_archive(path: Any) -> tuple[str, dict[str, np.ndarray]]:
    """(kind, arrays) of a file of :func:`write_archive`; nothing in it is ever executed.

    Raises:
      ValueError: not such a file, written by a newer version, or damaged; the message names it.
      OSError: the file cannot be opened.
    """
    where = _place(path)
    with open(where, "rb") as file:
        try:
            kind, arrays = _entries(file)
        except _NewerError as error:
            raise ValueError(
                f"path: {where!r} is in version {error} of the format, this release reads up to "
                f"version {VERSION}: load it with a newer jaxsolvers"
            ) from None
        except _DAMAGE as error:
            raise ValueError(f"path: {where!r} is no model of jaxsolvers: {error}") from error
    return kind, arrays


class _NewerError(Exception):
    """The file's version is beyond what this release knows."""


# What NumPy and the standard library raise on files that are cut off, changed or something else.
_DAMAGE = (
    EOFError,
    KeyError,
    MemoryError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)


def _entries(file: Any) -> tuple[str, dict[str, np.ndarray]]:
    loaded = np.load(file, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        raise ValueError("it is a single array")
    with loaded:
        if "format" not in loaded.files or str(loaded["format"]) != FORMAT:
            raise ValueError(f"it has no entry 'format' that says {FORMAT!r}")
        missing = [name for name in _OWN if name not in loaded.files]
        if missing:
            raise ValueError(f"it has no entry {missing[0]!r}")
        version = int(loaded["version"])
        if version > VERSION:
            raise _NewerError(version)
        kind = str(loaded["kind"])
        arrays = {name: loaded[name] for name in loaded.files if name not in _OWN}
    for name in [name for name in arrays if f"{name}_dtype" in arrays]:
        stored = str(arrays.pop(f"{name}_dtype"))
        dtype, bits = _AS_BITS.get(stored, (None, None))
        if dtype is None or arrays[name].dtype != bits:
            raise ValueError(f"its entry {name!r} has the unknown dtype {stored!r}")
        arrays[name] = arrays[name].view(dtype)
    return kind, arrays


def _place(path: Any) -> str:
    try:
        return os.fsdecode(path)
    except TypeError:
        raise ValueError(f"path must be the name of a file, got {path!r}") from None
