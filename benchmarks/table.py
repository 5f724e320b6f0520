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


def sparse_table(record: dict[str, Any]) -> str:
    """Markdown rows of the sparse tasks."""
    lines = ["| task | jaxsolvers | peer | ratio |", "|---|---|---|---|"]
    for row in record["tasks"]:
        seconds = row["seconds"]["median"]
        if row["task"] == "H":
            passes = f"{row['passes']} pass" + "es" * (row["passes"] > 1)
            what = f"H: {row['set']}, {row['labels']:,} labels, {passes}"
            reached = (
                "to equal precision@1,3,5" if row["reached"] else "precision@1,3,5 not reached"
            )
            peer = f"LIBLINEAR {row['seconds_liblinear']:.1f} s"
            lines.append(f"| {what}, {reached} | {seconds:.2f} s | {peer} | {row['ratio']:.1f}x |")
        else:
            what = {
                "F": "F: one binary problem, 75 of 50,000 features a row, 20,000 rows, 5 passes",
                "G": "G: 1,000 rankers, 200 of 10,000 features a row, 2,000 rows",
            }[row["task"]]
            peer = f"SGDClassifier {row['seconds_sgdclassifier']['median']:.3f} s"
            lines.append(f"| {what} | {seconds:.3f} s | {peer} | {row['ratio']:.2f}x |")
    return "\n".join(lines)


def real_table(record: dict[str, Any]) -> str:
    """Markdown rows of the real sets: seconds, and the measures that a set has."""
    lines = [
        "| set | rows x features, labels | jaxsolvers | LinearSVC | SGDClassifier |",
        "|---|---|---|---|---|",
    ]
    for row in record["sets"]:
        shape = f"{row['rows']:,} x {row['features']:,}, {row['labels']}"
        ours = _cell(row["jaxsolvers"], row["seconds"]["median"])
        theirs = [_cell(row[name], row[name]["seconds"]) for name in ("LinearSVC", "SGDClassifier")]
        lines.append(f"| {row['set']} | {shape} | {ours} | {' | '.join(theirs)} |")
    return "\n".join(lines)


def _cell(found: dict[str, Any], seconds: float) -> str:
    names = (("accuracy", "accuracy"), ("mean_average_precision", "AP"), ("precision_at_1", "P@1"))
    words = [f"{label} {found[key]:.3f}" for key, label in names if found.get(key) is not None]
    return f"{seconds:.2f} s: {', '.join(words)}"


if __name__ == "__main__":
    for name, make in (("rankers", table), ("sparse", sparse_table), ("real", real_table)):
        if (RESULTS / f"{name}.json").exists():
            print(make(json.loads((RESULTS / f"{name}.json").read_text())), end="\n\n")
