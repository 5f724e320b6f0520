"""The fields of a one-vs-one model as arrays for a file, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxsolvers.models import kernel_file, linear_file
from jaxsolvers.models.kernel import KernelModel
from jaxsolvers.models.linear import LinearModel

KIND = "OneVsOneModel"


def pack(rankers: LinearModel | KernelModel, classes: np.ndarray) -> dict[str, Any]:
    """The arrays that ``OneVsOneModel.save`` documents.

    Raises:
      ValueError: classes or a kernel that no file can hold.
    """
    if isinstance(rankers, KernelModel):
        kind, arrays = kernel_file.KIND, kernel_file.pack(rankers)
    else:
        kind = linear_file.KIND
        arrays = linear_file.pack(rankers.coef, rankers.intercept, None, rankers.output)
    return arrays | {"rankers": np.array(kind), "labels": linear_file.storable(classes)}


def unpack(arrays: dict[str, np.ndarray]) -> tuple[LinearModel | KernelModel, np.ndarray]:
    """(rankers, classes).

    Raises:
      ValueError: entries are missing, or name rankers of an unknown kind.
    """
    for name in ("rankers", "labels"):
        if name not in arrays:
            raise ValueError(f"it has no entry {name!r}")
    kind = str(arrays["rankers"])
    if kind == kernel_file.KIND:
        return KernelModel(**kernel_file.unpack(arrays)), arrays["labels"]
    if kind != linear_file.KIND:
        raise ValueError(f"it holds rankers of the unknown kind {kind!r}")
    fields: Any = linear_file.unpack(arrays)
    return LinearModel(*fields), arrays["labels"]
