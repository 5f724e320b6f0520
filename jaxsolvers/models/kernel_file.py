"""The fields of a kernel model as arrays for a file, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxsolvers import kernels
from jaxsolvers.csr import Csr
from jaxsolvers.kernels import Kernel
from jaxsolvers.models.linear_file import CSR_PARTS, native, pack_csr, storable, unpack_csr

KIND = "KernelModel"
_ROWS = "support_vectors"


def pack(model: Any) -> dict[str, Any]:
    """The arrays that ``KernelModel.save`` documents.

    Raises:
      ValueError: a kernel or classes that no file can hold.
    """
    kernel = model.kernel
    if not isinstance(kernel, Kernel) or type(kernel).__name__ not in kernels.__all__:
        raise ValueError(
            "kernel must be one of js.kernels to be saved: a function would have to be executed "
            f"on loading; got {kernel!r}"
        )
    arrays = {
        "kernel": np.array(type(kernel).__name__),
        "dual_coef": native(model.dual_coef),
        "intercept": native(model.intercept),
        "output": np.array(model.output),
        "n_train": np.array(model.n_train),
    }
    arrays |= {f"kernel_{name}": native(value) for name, _, value in kernel.specs()}
    if model.support is not None:
        arrays["support"] = native(model.support)
    if isinstance(model.support_vectors, Csr):
        arrays |= pack_csr(_ROWS, model.support_vectors)
    elif model.support_vectors is not None:
        arrays[_ROWS] = native(model.support_vectors)
    if model.classes is not None:
        arrays["classes"] = storable(model.classes)
    return arrays


def unpack(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """The fields of a KernelModel by name.

    Raises:
      ValueError: entries are missing, do not fit each other, or name an unknown kernel.
    """
    for name in ("kernel", "dual_coef", "intercept", "output", "n_train"):
        if name not in arrays:
            raise ValueError(f"it has no entry {name!r}")
    name = str(arrays["kernel"])
    if name not in kernels.__all__:
        raise ValueError(f"it has the unknown kernel {name!r}")
    prefix = "kernel_"
    numbers = {
        entry.removeprefix(prefix): value.item() if value.dtype.kind == "i" else value
        for entry, value in arrays.items()
        if entry.startswith(prefix)
    }
    try:
        kernel = getattr(kernels, name)(**numbers)
    except TypeError as error:
        raise ValueError(f"its kernel has other numbers: {error}") from None
    kernel.validate("kernel.")
    sparse = f"{_ROWS}_{CSR_PARTS[0]}" in arrays
    rows = unpack_csr(_ROWS, arrays) if sparse else arrays.get(_ROWS)
    return {
        "support_vectors": rows,
        "kernel": kernel,
        "output": str(arrays["output"]),
        "n_train": int(arrays["n_train"]),
        "classes": arrays.get("classes"),
        "support": arrays.get("support"),
        "dual_coef": arrays["dual_coef"],
        "intercept": arrays["intercept"],
    }
