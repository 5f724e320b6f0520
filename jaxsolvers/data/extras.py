"""The optional packages of this folder, imported when first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def extra(module: str, purpose: str) -> Any:
    """A module of scipy or scikit-learn.

    Raises:
      ImportError: it is not installed; the message names what to install.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = {"sklearn": "scikit-learn"}.get(module.split(".")[0], module.split(".")[0])
        raise ImportError(
            f"{purpose} needs {package}: install the extra, jaxsolvers[data] ({error})"
        ) from None


def scipy_sparse(purpose: str) -> Any:
    """The module scipy.sparse."""
    return extra("scipy.sparse", purpose)
