"""What the commands print: aligned lines, or one JSON object."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def print_report(lines: Mapping[str, str]) -> None:
    """One line per entry, the names in a column.

    Example:
      >>> print_report({"rows": "1,000", "task": "binary"})
      rows     1,000
      task     binary
    """
    width = max([8, *map(len, lines)])
    for name, text in lines.items():
        print(f"{name:<{width}} {text}")


def print_json(values: Mapping[str, Any]) -> None:
    """One JSON object on one line; what is not finite becomes null, which JSON knows.

    Example:
      >>> print_json({"rows": 3, "loss": float("nan")})
      {"rows": 3, "loss": null}
    """
    print(json.dumps(_plain(values), allow_nan=False))


def count(number: int) -> str:
    """A whole number, its thousands apart."""
    return f"{number:,}"


def share(number: float) -> str:
    """A share in percent."""
    return f"{100 * number:.3g} %"


def shown(value: Any) -> str:
    """A value of a report: whole numbers with commas, others with six digits, None as a dash."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return count(value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
