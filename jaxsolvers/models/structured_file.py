"""The fields of a structured model as arrays for a file, and back."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from jaxsolvers.decoding.chain import LinearChain
from jaxsolvers.models.linear_file import native, storable

KIND = "StructuredModel"
_PROBLEMS = {"LinearChain": LinearChain}
_PREFIX = "problem_"


def pack(problem: Any, weights: Any, classes: np.ndarray | None) -> dict[str, Any]:
    """The arrays that ``StructuredModel.save`` documents.

    Raises:
      ValueError: a problem or classes that no file can hold.
    """
    name = type(problem).__name__
    if _PROBLEMS.get(name) is not type(problem):
        raise ValueError(
            f"problem must be one of {', '.join(_PROBLEMS)} to be saved: another would have to be "
            f"executed on loading; got {name}"
        )
    arrays = {"problem": np.array(name), "weights": native(weights)}
    for field in dataclasses.fields(problem):
        value = getattr(problem, field.name)
        if value is not None:
            arrays[_PREFIX + field.name] = native(value)
    if classes is not None:
        arrays["classes"] = storable(classes)
    return arrays


def unpack(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """The fields of a StructuredModel by name.

    Raises:
      ValueError: entries are missing, do not fit each other, or name an unknown problem.
    """
    for name in ("problem", "weights", "classes"):
        if name not in arrays:
            raise ValueError(f"it has no entry {name!r}")
    name = str(arrays["problem"])
    if name not in _PROBLEMS:
        raise ValueError(f"it has the unknown problem {name!r}")
    given: dict[str, Any] = {
        entry.removeprefix(_PREFIX): value if value.ndim else value.item()
        for entry, value in arrays.items()
        if entry.startswith(_PREFIX)
    }
    try:
        problem = _PROBLEMS[name](**given)
    except TypeError as error:
        raise ValueError(f"its problem has other fields: {error}") from None
    problem.validate("problem.")
    weights, classes = arrays["weights"], arrays["classes"]
    K = len(classes) if classes.ndim == 1 else 0
    features = weights.size - K * K - (2 * K if problem.ends else 0)
    d = problem.vocabulary or max(features // max(K, 1), 1)
    if weights.ndim != 1 or K < 2 or features != K * d:
        raise ValueError(
            f"its weights of shape {weights.shape} do not fit its classes {classes.shape}"
        )
    return {"problem": problem, "weights": weights, "classes": classes}
