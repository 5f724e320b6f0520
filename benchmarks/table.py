"""The README's table from a results file: ``python -m benchmarks.table`` prints it."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.recording import RESULTS

NAMES = {
    "A": "Pegasos, exact rounds, 1,000 rankers",
    "B": "Pegasos, exact rounds, 10 rankers, 20,000 rows",
    "D": "AdaGrad-RDA, batches of 64, 1,000 rankers",
}


def table(record: dict[str, Any]) -> str:
    """Markdown rows: seconds, ratios and the share of the floor reached."""
    lines = [
        "| task | device | NumPy | SGDClassifier | ratio (NumPy) | floor | accuracy (theirs) |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in record["tasks"]:
        lines.append(
            f"| {row['task']}: {NAMES[row['task']]} | {row['seconds_device']['median']:.3f} s "
            f"| {row['seconds_numpy']['median']:.3f} s "
            f"| {row['seconds_sgdclassifier']['median']:.2f} s "
            f"| {row['ratio_device']:.0f}x ({row['ratio_numpy']:.0f}x) "
            f"| {row['floor_seconds']:.3f} s "
            f"| {row['accuracy']:.3f} ({row['accuracy_sgdclassifier']:.3f}) |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(json.loads((RESULTS / "rankers.json").read_text())))
