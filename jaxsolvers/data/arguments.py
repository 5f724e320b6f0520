"""Checks of arguments that several files of this folder share."""

from __future__ import annotations

from typing import Any

import numpy as np


def check_flag(value: Any, name: str) -> bool:
    """True or False, nothing else.

    Raises:
      ValueError: anything else; the message names the argument.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_float_dtype(value: Any) -> np.dtype:
    """float32 or float64 as a NumPy dtype.

    Raises:
      ValueError: another dtype; the message names ``dtype``.
    """
    try:
        dtype = np.dtype(value)
    except TypeError:
        dtype = np.dtype(object)
    # None would be float64 to NumPy.
    if value is None or dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype must be float32 or float64, got {value!r}")
    return dtype
