"""Models with a note on how they were trained, so that data is read alike ever after.

The note is one more entry of the file that ``model.save`` writes: JSON text named ``training``.
``js.load`` reads such a file like any other.
"""

from __future__ import annotations

import dataclasses
import json
import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import numpy as np

from jaxsolvers.cli.files import kind_of
from jaxsolvers.csr import Csr
from jaxsolvers.models import LinearModel, linear_file, load
from jaxsolvers.models.archive import FORMAT, write_archive

ENTRY = "training"


def save_model(model: LinearModel, notes: dict[str, Any], path: str) -> None:
    """Write the model and the note to exactly this path, whole or not at all."""
    arrays = linear_file.pack(model.coef, model.intercept, model.classes, model.output)
    write_archive(path, linear_file.KIND, arrays | {ENTRY: np.array(json.dumps(notes))})


def load_model(path: str) -> tuple[LinearModel, dict[str, Any]]:
    """A model, and what is noted about its training (nothing, if the library saved it).

    Raises:
      ValueError: the file is no model, or one with a kernel.
      OSError: the file cannot be opened.
    """
    if kind_of(path) != "npz":
        raise ValueError(f"{path} is no model of jaxsolvers")
    model = load(path)
    if not isinstance(model, LinearModel):
        raise ValueError(
            f"{path} holds a {type(model).__name__}; the command line reads linear models, "
            "js.load reads it"
        )
    with np.load(path, allow_pickle=False) as entries:
        text = str(entries[ENTRY]) if ENTRY in entries.files else "{}"
    try:
        notes = json.loads(text)
        if not isinstance(notes, dict):
            raise ValueError(f"its note is {text[:40]!r}")
    except ValueError as error:
        raise ValueError(f"{path} has a damaged note on its training: {error}") from None
    return model, notes


def version_of(path: str) -> int:
    """The version of a model file's format."""
    with np.load(path, allow_pickle=False) as entries:
        return int(entries["version"])


def is_model(path: str) -> bool:
    """Whether a file is a model of this package, as far as its first entries tell."""
    try:
        with np.load(path, allow_pickle=False) as entries:
            return str(entries["format"]) == FORMAT
    except Exception:  # whatever is wrong with it: it is none
        return False


def precision(double: bool) -> AbstractContextManager[Any]:
    """64-bit mode while it is needed; otherwise JAX stays as it is set."""
    return jax.enable_x64(True) if double else nullcontext()


def task_of(model: LinearModel) -> str:
    """The task that a model was trained for."""
    if model.n_rankers is None:
        return "regression" if model.classes is None else "binary"
    return "multiclass" if model.output == "label" else "multilabel"


def ready(model: LinearModel) -> LinearModel:
    """The model with its coefficients on the device, for many predictions."""
    if isinstance(model.coef, Csr):
        return model
    return dataclasses.replace(model, coef=jax.device_put(model.coef))


def size_of(path: str) -> int:
    """Bytes of a file."""
    return os.stat(path).st_size
