"""The curves of ``pegasos_studies``' records, for ``benchmarks.plotting`` to draw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.plotting import Curve, panels


def draw_lambda(record: dict[str, Any], path: Path) -> None:
    curves = {}
    for own in record["sets"]:
        for passes in dict.fromkeys(row["passes"] for row in own["results"]):
            best = own["optimum"]
            long = f"{best['passes']} passes of SDCA: both bounds"
            shown = [
                Curve(label, best["lam"], best[bound], reference=True)
                for label, bound in ((long, "lower"), ("", "objective"))
            ]
            shown += [
                Curve(
                    row["contender"],
                    row["lam"],
                    row["objective"]["mean"],
                    row["objective"]["standard_error"],
                )
                for row in own["results"]
                if row["passes"] == passes
            ]
            curves[f"{own['set']}, {passes} passes"] = shown
    panels(curves, path, "lambda", "objective")


def visits_by_k(own: dict[str, Any], excess: float) -> dict[int, np.ndarray]:
    """K T of every seed, infinite where it was not reached."""
    return {
        row["k"]: row["k"] * np.array([np.inf if t is None else t for t in row["rounds"]], float)
        for row in own["results"]
        if row["excess"] == excess
    }


def draw_batches(record: dict[str, Any], path: Path) -> None:
    curves: dict[str, list[Curve]] = {}
    for own in record["sets"]:
        shown = []
        for excess in dict.fromkeys(row["excess"] for row in own["results"]):
            visits = {
                k: np.log(values)
                for k, values in visits_by_k(own, excess).items()
                if np.isfinite(values).all()
            }
            means = [float(np.exp(values.mean())) for values in visits.values()]
            errors = [
                mean * float(values.std(ddof=1) / np.sqrt(len(values)))
                for mean, values in zip(means, visits.values(), strict=True)
            ]
            shown.append(Curve(f"within {excess:.0%}", list(visits), means, errors))
        curves[f"{own['set']}, lambda {own['lam']:g}"] = shown
    panels(curves, path, "rows per round k", "rows visited, k T (geometric mean)")


def draw_orders(record: dict[str, Any], path: Path) -> None:
    curves: dict[str, list[Curve]] = {}
    for own in record["sets"]:
        lams = list(dict.fromkeys(row["lam"] for row in own["results"]))
        for lam in lams[-2:]:
            shown = []
            for row in own["results"]:
                if row["lam"] == lam:
                    found = row["excess"]
                    at = list(range(1, len(found["mean"]) + 1))
                    shown.append(Curve(row["order"], at, found["mean"], found["standard_error"]))
            curves[f"{own['set']}, lambda {lam:g}"] = shown
    panels(curves, path, "epochs", "relative excess of the objective", log_x=False)


def draw_projection(record: dict[str, Any], path: Path) -> None:
    curves: dict[str, list[Curve]] = {}
    for own in record["sets"]:
        for row in own["results"][-2:]:
            at = list(range(1, len(row["projected"]["mean"]) + 1))
            curves[f"{own['set']}, lambda {row['lam']:g}"] = [
                Curve(name, at, row[name]["mean"], row[name]["standard_error"])
                for name in ("unprojected", "projected")
            ]
    panels(curves, path, "epochs", "relative excess of the objective", log_x=False)
