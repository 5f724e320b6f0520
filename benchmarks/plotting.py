"""The one file that draws: labelled, colour-blind safe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

COLOURS = {"blue": "#0072B2", "orange": "#E69F00", "green": "#009E73", "red": "#D55E00"}


def time_against_rankers(curves: dict[str, list[dict[str, Any]]], path: Path, title: str) -> None:
    """Seconds of one pass against the number of rankers, log-log, one curve per solver."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    styles = zip(COLOURS.values(), "os^D", strict=True)
    for (name, points), (colour, marker) in zip(curves.items(), styles, strict=False):
        axes.loglog(
            [point["rankers"] for point in points],
            [point["seconds"] for point in points],
            color=colour,
            marker=marker,
            label=name,
        )
    axes.set_xlabel("rankers trained together (one-vs-rest classes)")
    axes.set_ylabel("seconds for one pass")
    axes.set_title(title, fontsize=10)
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)
