"""The one file that draws: labelled, colour-blind safe."""

from __future__ import annotations

import io
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

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


class Curve(NamedTuple):
    """One curve of a panel; ``error`` is the length of its bars, above and below."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    error: Sequence[float] | None = None
    reference: bool = False  # what the others are held against: a thin black line


def panels(
    curves: dict[str, list[Curve]],
    path: Path,
    x_label: str,
    y_label: str,
    *,
    log_x: bool = True,
) -> None:
    """Panels side by side, one per key, y (and mostly x) logarithmic, with error bars."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from PIL import Image

    size = (4.4 * len(curves) + 0.6, 4.2)
    figure, row = plt.subplots(1, len(curves), figsize=size, layout="constrained", squeeze=False)
    for axes, (name, own) in zip(row[0], curves.items(), strict=True):
        styles = iter(
            zip(itertools.cycle(COLOURS.values()), itertools.cycle("os^Dv"), strict=False)
        )
        for curve in own:
            if curve.reference:
                axes.plot(curve.x, curve.y, color="black", linewidth=1, label=curve.label)
                continue
            colour, marker = next(styles)
            axes.errorbar(
                curve.x, curve.y, yerr=curve.error, color=colour, marker=marker, markersize=4,
                linewidth=1.2, capsize=2, label=curve.label,
            )  # fmt: skip
        axes.set_yscale("log")
        axes.set_xscale("log" if log_x else "linear")
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.set_title(name, fontsize=10)
        axes.grid(True, which="major", alpha=0.3)
        axes.legend(frameon=False, fontsize=8)
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=90)
    plt.close(figure)
    # Few colours: a palette makes the file a third as large.
    Image.open(drawn).convert("RGB").quantize(48).save(path, optimize=True)
