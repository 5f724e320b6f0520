"""Models come back from files."""

from __future__ import annotations

import os
from typing import Any

from jaxsolvers.models import kernel_file, linear_file, one_vs_one_file, structured_file
from jaxsolvers.models.archive import read_archive
from jaxsolvers.models.kernel import KernelModel
from jaxsolvers.models.linear import LinearModel
from jaxsolvers.models.one_vs_one import OneVsOneModel
from jaxsolvers.models.structured import StructuredModel

__all__ = ["load"]


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that ``model.save`` wrote; it predicts the same, to the bit.

    Nothing of the training is needed, and nothing in the file is executed (no pickle).

    Args:
      path: the file, exactly as it is called: no extension is added.

    Returns:
      The LinearModel, KernelModel, OneVsOneModel or StructuredModel, its arrays in the host's
      memory in the dtypes they were saved in. A large dense one is best put on a device once,
      before predicting often: ``dataclasses.replace(model, coef=jax.device_put(model.coef))``.

    Raises:
      ValueError: not a file of ``model.save``, written by a newer release, cut off, damaged, or
        with entries missing or contradicting each other; the message names the file.
      OSError: the file does not exist or cannot be read.

    Example:
      >>> import os, tempfile, numpy as np, jaxsolvers as js
      >>> model = js.LinearModel(np.eye(2), np.zeros(2), np.array(["a", "b"]))
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     model.save(os.path.join(folder, "model.npz"))
      ...     again = js.load(os.path.join(folder, "model.npz"))
      >>> again.coef.tolist(), again.classes.tolist()
      ([[1.0, 0.0], [0.0, 1.0]], ['a', 'b'])
    """
    kind, arrays = read_archive(path)
    try:
        if kind == kernel_file.KIND:
            return KernelModel(**kernel_file.unpack(arrays))
        if kind == structured_file.KIND:
            return StructuredModel(**structured_file.unpack(arrays))
        if kind == one_vs_one_file.KIND:
            return OneVsOneModel(*one_vs_one_file.unpack(arrays))
        if kind != linear_file.KIND:
            kinds = (
                linear_file.KIND,
                kernel_file.KIND,
                one_vs_one_file.KIND,
                structured_file.KIND,
            )
            known = ", ".join(map(repr, kinds))
            raise ValueError(f"it holds a {kind!r}, known are {known}")
        fields: Any = linear_file.unpack(arrays)
        return LinearModel(*fields)
    except ValueError as error:
        where = os.fsdecode(path)
        raise ValueError(f"path: {where!r} is no model of jaxsolvers: {error}") from error
