"""What ``pegasos_studies`` measured, drawn and in words: every sentence is made from the record.

``python -m benchmarks.papers.pegasos_report`` writes the plots and the Markdown again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers.pegasos_plots import (
    draw_batches,
    draw_lambda,
    draw_orders,
    draw_projection,
    visits_by_k,
)
from benchmarks.recording import RESULTS

GROWN = 1.5  # k T has grown when its median is this many times that of k = 1
# What the paper reports, as remembered, not looked up.
PAPER = {
    "covtype": [
        "",
        "The paper's test error on all of cov1 (522,911 rows to train) is, from memory, 23.2 % at "
        "lam = 1e-6; its split and scaling of features are not known and not these.",
    ]
}
CLEAR = 2.0  # standard errors of a difference that make it one


def written(record: dict[str, Any], folder: Path) -> str:
    """Write the plot and the Markdown of a study and return the Markdown."""
    name = record["study"]
    title, words, draw = STUDIES[name]
    picture = f"pegasos_{name}.png"
    draw(record, folder / picture)
    made = record["environment"]
    sets = "; ".join(
        f"{own['set']}: {own['rows']:,} rows of {own['features']} features"
        for own in record["sets"]
    )
    lines = [
        f"# {title}",
        "",
        f"`python -m benchmarks.papers.pegasos_studies {name}`: hinge loss, float32, unit rows "
        f"({sets}); jax {made['versions']['jax']} on {made['cores']} cores of {made['cpu']}, "
        f"commit {made['commit']}. Numbers are means over seeds ± one standard error.",
        "",
        *words(record),
        "",
        f"![{title}]({picture})",
    ]
    text = "\n".join(lines) + "\n"
    (folder / f"pegasos_{name}.md").write_text(text)
    return text


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def told(mean: float, error: float, unit: float = 1.0) -> str:
    """A mean with its standard error to one digit, the mean as exactly as that makes sense."""
    mean, error = mean / unit, error / unit
    if not error > 0:
        return f"{mean:.4g}"
    digits = max(0, -int(np.floor(np.log10(error))))
    if abs(mean) >= 1e4 or digits > 6:
        return f"{mean:.7g} ± {error:.1g}"
    return f"{mean:.{digits}f} ± {error:.{digits}f}"


def clearly_lower(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether a (mean, standard error) lies below another by more than noise."""
    return other[0] - one[0] > CLEAR * float(np.hypot(one[1], other[1]))


def lowest(cells: dict[str, tuple[float, float]]) -> list[str]:
    """The name with the lowest mean, and after it those not clearly above it."""
    ranked = sorted(cells, key=lambda name: cells[name])
    return [name for name in ranked if not clearly_lower(cells[ranked[0]], cells[name])]


def runs(values: list[tuple[float, str]]) -> str:
    """(lam, name) in order as "name for lam 1e-07 ... 1e-05, ..."."""
    parts = []
    for name, group in groupby(values, key=lambda value: value[1]):
        lams = [lam for lam, _ in group]
        span = f"{lams[0]:.1e}" if len(lams) == 1 else f"{lams[0]:.1e} ... {lams[-1]:.1e}"
        parts.append(f"{name} for lam = {span}")
    return "; ".join(parts)


# ---- lambda --------------------------------------------------------------------------------


def at_lams(row: dict[str, Any], what: str) -> dict[float, tuple[float, float]]:
    """(mean, standard error) by lambda."""
    found = row[what]
    return dict(
        zip(
            row["lam"],
            zip(found["mean"], found["standard_error"], strict=True),
            strict=True,
        )
    )


def lambda_words(record: dict[str, Any]) -> list[str]:
    lines = [
        "Objective after as many passes over the rows, 17 values of lambda as rankers of one fit. "
        "An epoch of SVRG counts as 3 passes: two for its snapshot, one of rounds. Its learning "
        "rate is the best of those tried for each lambda and number of passes, chosen in "
        "hindsight, which favours it; of the hinge it has no smoothness to rely on. The optimum "
        "lies between the dual and the primal objective of the long run of SDCA. Bold: the lowest, "
        "and what is within two standard errors of the difference.",
    ]
    for own in record["sets"]:
        best, rows = own["optimum"], own["results"]
        names = list(dict.fromkeys(row["contender"] for row in rows))
        bounds = {
            lam: (low, high)
            for lam, low, high in zip(best["lam"], best["lower"], best["objective"], strict=True)
        }
        for passes in dict.fromkeys(row["passes"] for row in rows):
            cells = {
                row["contender"]: at_lams(row, "objective")
                for row in rows
                if row["passes"] == passes
            }
            shared = [lam for lam in best["lam"] if lam in cells["SVRG"]]
            lines += ["", f"## {own['set']}, {passes} passes", ""]
            body, winners = [], []
            for lam in shared:
                leaders = lowest({name: cells[name][lam] for name in names})
                winners.append((lam, " / ".join(sorted(leaders, key=names.index))))
                words = [told(*cells[name][lam]) for name in names]
                marked = [
                    f"**{word}**" if name in leaders else word
                    for name, word in zip(names, words, strict=True)
                ]
                body.append(
                    [f"{lam:.1e}", *marked, f"{bounds[lam][0]:.5g} ... {bounds[lam][1]:.5g}"]
                )
            lines += table(["lam", *names, "optimum"], body)
            lines += ["", f"Lowest: {runs(winners)}."]
        lines += ["", error_words(own, names), *PAPER.get(own["set"], [])]
    return lines


def error_words(own: dict[str, Any], names: list[str]) -> str:
    parts = []
    for name in names:
        row = next(r for r in own["results"] if r["contender"] == name and "test_error" in r)
        errors = at_lams(row, "test_error")
        lam = min(errors, key=lambda lam: errors[lam])
        parts.append(f"{name} {told(*errors[lam], 0.01)} % at lam = {lam:.1e}")
    return (
        f"Lowest test error after {row['passes']} passes, lambda chosen in hindsight: "
        f"{'; '.join(parts)}."
    )


# ---- batches -------------------------------------------------------------------------------


def growth(visits: dict[int, np.ndarray]) -> int | None:
    """The smallest k from which on the median k T exceeds GROWN times that of the smallest k."""
    medians = {k: float(np.median(own)) for k, own in visits.items()}
    allowed = GROWN * medians[min(medians)]
    last = max((k for k, median in medians.items() if median <= allowed), default=0)
    return min((k for k in medians if k > last), default=None)


def batches_words(record: dict[str, Any]) -> list[str]:
    lines = [
        "Rounds T of Pegasos with batches of k rows drawn with replacement until the objective of "
        "the last weights is first within an excess of SDCA's dual bound; looked at after rounds "
        "that grow by a fourth root of 2, so T is known to 19 %. Median [smallest, largest] over "
        "the seeds."
    ]
    for own in record["sets"]:
        wanted = list(dict.fromkeys(row["excess"] for row in own["results"]))
        found = {excess: visits_by_k(own, excess) for excess in wanted}
        head = ["k"]
        for excess in wanted:
            head += [f"T to {excess:.0%}", f"k T to {excess:.0%}"]
        body = []
        for k in found[wanted[0]]:
            line = [str(k)]
            for excess in wanted:
                line += [quantiles(found[excess][k] / k), quantiles(found[excess][k])]
            body.append(line)
        seeds = len(own["results"][0]["rounds"])
        lines += [
            "",
            f"## {own['set']}, lam = {own['lam']:g}, {seeds} seeds",
            "",
            *table(head, body),
        ]
        for excess in wanted:
            visits = found[excess]
            grown, first = growth(visits), float(np.median(visits[min(visits)]))
            if not np.isfinite(first):
                words = f"not reached with k = {min(visits)}"
            elif grown is None:
                words = f"k T stays within {GROWN} times that of k = 1 for every k tried"
            else:
                words = (
                    f"k T exceeds {GROWN} times that of k = 1 ({first:,.0f} rows) from k = {grown} "
                    "on; up to there larger batches mean fewer rounds for about the same rows"
                )
            lines += ["", f"To {excess:.0%}: {words}."]
    return lines


def quantiles(values: np.ndarray) -> str:
    def one(value: float) -> str:
        return f"{value:,.0f}" if np.isfinite(value) else "not reached"

    return f"{one(float(np.median(values)))} [{one(values.min())}, {one(values.max())}]"


# ---- orders and projection -----------------------------------------------------------------


def bound_words(own: dict[str, Any]) -> str:
    """How far SDCA's dual bound may lie below the optimum."""
    best, parts = own["optimum"], []
    for lam in dict.fromkeys(row["lam"] for row in own["results"]):
        place = int(np.argmin(np.abs(np.log(np.array(best["lam"]) / lam))))
        width = best["objective"][place] / best["lower"][place] - 1
        parts.append(f"{100 * max(width, 0):.2g} % at lam = {lam:g}")
    return f"The optimum is above the bound by at most {', '.join(parts)}."


def at_epoch(found: dict[str, Any], epoch: int) -> tuple[float, float]:
    """Mean and standard error, of a single run 0."""
    errors = found["standard_error"]
    return found["mean"][epoch - 1], 0.0 if errors is None else errors[epoch - 1]


def orders_words(record: dict[str, Any]) -> list[str]:
    lines = [
        "Excess of Pegasos' last weights over SDCA's dual bound, in percent. *Uniform*: draws with "
        "replacement; *permutation*: a new one each epoch; *shuffled once*: one permutation "
        "for all epochs, that is the cyclic order of a file shuffled before; *cyclic*: the rows "
        "as they lie (of usps the file, of covtype as drawn), a single run without error bars. "
        "Bold: the lowest of the first three and what is within two standard errors of it.",
    ]
    for own in record["sets"]:
        epochs = own["epochs"]
        lines += ["", f"{own['set']}: {bound_words(own)[0].lower()}{bound_words(own)[1:]}"]
        for lam in dict.fromkeys(row["lam"] for row in own["results"]):
            rows = [row for row in own["results"] if row["lam"] == lam]
            drawn = [row for row in rows if row["seeds"] > 1]
            leaders = {
                epoch: lowest({row["order"]: at_epoch(row["excess"], epoch) for row in drawn})
                for epoch in epochs
            }
            winners = [f"{' / '.join(leaders[epoch])} after {epoch}" for epoch in epochs]
            body = []
            for row in rows:
                line = [f"{row['order']} ({row['seeds']})"]
                for epoch in epochs:
                    words = told(*at_epoch(row["excess"], epoch), 0.01)
                    line.append(f"**{words}**" if row["order"] in leaders[epoch] else words)
                body.append(line)
            lines += ["", f"## {own['set']}, lam = {lam:g}", ""]
            lines += table(["order (seeds)", *(f"epoch {epoch}" for epoch in epochs)], body)
            lines += ["", f"Lowest: {'; '.join(winners)}."]
    return lines


def projection_words(record: dict[str, Any]) -> list[str]:
    count = record["sets"][0]["seeds"]
    lines = [
        f"Excess of Pegasos' last weights over SDCA's dual bound, in percent, over {count} seeds "
        "(new permutations), all seeds and lambdas as lanes of one program; seed by seed the "
        "projected and the unprojected run see the same rows in the same order. The difference is "
        "paired: projected less unprojected, below 0 where the projection helps.",
    ]
    for own in record["sets"]:
        body, verdicts = [], []
        for row in own["results"]:
            for epoch in own["epochs"]:
                mean, error = at_epoch(row["projected_minus_unprojected"], epoch)
                lower = row["share_projected_lower"][epoch - 1]
                equal = row["share_equal"][epoch - 1]
                body.append(
                    [
                        f"{row['lam']:g}",
                        str(epoch),
                        told(*at_epoch(row["unprojected"], epoch), 0.01),
                        told(*at_epoch(row["projected"], epoch), 0.01),
                        told(mean, error, 0.01),
                        f"{lower:.0%} ({equal:.0%} equal)",
                    ]
                )
                if abs(mean) > CLEAR * error:
                    side = "projected" if mean < 0 else "unprojected"
                    verdicts.append(f"{side} lower at lam = {row['lam']:g} after {epoch}")
        lines += ["", f"## {own['set']} ({own['seconds_of_all_runs']:.0f} s for all runs)", ""]
        lines += [bound_words(own), ""]
        head = ["lam", "epochs", "unprojected", "projected", "difference", "seeds projected wins"]
        lines += table(head, body)
        lines += [
            "",
            f"Beyond two standard errors in {len(verdicts)} of {len(body)} comparisons (by chance "
            f"alone about 1 in 20){': ' if verdicts else ''}{'; '.join(verdicts)}.",
        ]
    return lines


Words = Callable[[dict[str, Any]], list[str]]
Draw = Callable[[dict[str, Any], Path], None]
STUDIES: dict[str, tuple[str, Words, Draw]] = {
    "lambda": ("Objective against lambda", lambda_words, draw_lambda),
    "batches": ("Rounds to an accuracy against the size of batches", batches_words, draw_batches),
    "orders": ("The order of the rows", orders_words, draw_orders),
    "projection": ("With and without the projection", projection_words, draw_projection),
}


if __name__ == "__main__":
    for name in STUDIES:
        source = RESULTS / f"pegasos_{name}.json"
        if source.exists():
            print(written(json.loads(source.read_text()), RESULTS))
