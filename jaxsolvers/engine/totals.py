"""The history of a run: sums over the rounds of every epoch, per ranker."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from jaxsolvers.engine.stopping import Seen
from jaxsolvers.protocol import Info

COUNTS = ("mistakes", "violations")
ENDINGS = ("stopped", "epochs_run", "certificate")  # entries that do not belong to one epoch


class Totals:
    """Sums of an epoch over its slabs, in float64 on the host (a float32 sum stops at 2^24)."""

    def __init__(self, n_rankers: int, places: list[tuple[np.ndarray, np.ndarray]]) -> None:
        """``places``: of each group the lanes in training, and which of the rankers they are."""
        self.sums = {name: np.zeros(n_rankers) for name in Info._fields if name != "finite"}
        self.alive = np.ones(n_rankers, bool)
        self.ended = time.perf_counter()
        self._places = places

    def add(self, infos: list[Info]) -> None:
        """Wait for a slab, one Info per group, and add it."""
        for info, (lanes, rankers) in zip(infos, self._places, strict=True):
            for name, sums in self.sums.items():
                sums[rankers] += np.asarray(getattr(info, name))[lanes]
            self.alive[rankers] = np.asarray(info.finite)[lanes]
        self.ended = time.perf_counter()

    def history(self, seconds: float) -> dict[str, np.ndarray]:
        """The entries of the epoch, NaN for rankers that were not in training."""
        weight, loss = self.sums["weight"], self.sums["loss"]
        mean = np.where(weight > 0, loss / np.where(weight > 0, weight, 1), np.nan)
        found = {"progressive_loss": mean, **{name: self.sums[name] for name in COUNTS}}
        for values in found.values():
            values[~self.trained] = np.nan
        return found | {"seconds": np.array(seconds)}

    @property
    def trained(self) -> np.ndarray:
        """Which rankers were in training, bool."""
        found = np.zeros(len(self.alive), bool)
        found[np.concatenate([rankers for _, rankers in self._places])] = True
        return found

    def of_groups(self, values: list[np.ndarray]) -> np.ndarray:
        """Values of the groups' lanes as those of the rankers, NaN where not in training."""
        found = np.full(len(self.alive), np.nan)
        for own, (lanes, rankers) in zip(values, self._places, strict=True):
            found[rankers] = own[lanes]
        return found


def joined(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The histories of several chunks, some of which were done before the others, side by side."""
    epochs = max(len(part["seconds"]) for part in parts)

    def padded(values: np.ndarray, fill: float) -> np.ndarray:
        missing = [(0, epochs - len(values))] + [(0, 0)] * (values.ndim - 1)
        return np.pad(values, missing, constant_values=fill)

    names = dict.fromkeys(name for part in parts for name in part)
    found: dict[str, Any] = {}
    for name in names:
        if name == "seconds":
            found[name] = np.sum([padded(part[name], 0) for part in parts], axis=0)
            continue
        found[name] = np.concatenate([padded(part[name], np.nan) for part in parts], axis=1)
    return found


def nothing(n_rankers: int, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """The history of no epoch; ``names`` are those of what is recorded, but "theory"."""
    more = [name for name in names if name != "theory"]
    found = {name: np.zeros((0, n_rankers)) for name in ("progressive_loss", *COUNTS, *more)}
    return found | {"seconds": np.zeros(0)}


def endings(
    history: dict[str, np.ndarray], seen: Seen | None, alive: np.ndarray
) -> dict[str, np.ndarray]:
    """How many epochs each ranker trained, and what ended that."""
    stopped = np.full(len(alive), "epochs", "<U9")
    if seen is not None:
        stopped[seen.stopped] = seen.rule.name
    stopped[~alive] = "lost"
    return {"stopped": stopped, "epochs_run": np.isfinite(history["violations"]).sum(axis=0)}
