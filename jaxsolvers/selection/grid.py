"""The points of a grid: what a solver whose numbers are arrays stands for."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from jaxsolvers.engine.job import check_solver
from jaxsolvers.members import Leaf
from jaxsolvers.protocol import Solver


class Grid(NamedTuple):
    """P points, each a value of every number that was given as an array."""

    solver: Solver  # as it was given
    values: dict[str, np.ndarray]  # by the number's name, (P, ...)

    @property
    def points(self) -> int:
        """P."""
        return len(next(iter(self.values.values())))

    def candidates(self, copies: int = 1) -> Solver:
        """All points as one solver of one number per ranker, each ``copies`` times in a row."""
        return self._with(lambda values: np.repeat(values, copies, axis=0))

    def at(self, point: Any) -> Solver:
        """The solver of one point; of an array of points, the one with an array of values."""

        def chosen(values: np.ndarray) -> Any:
            value = values[point]
            return value.item() if np.ndim(value) == 0 else value

        return self._with(chosen)

    def _with(self, choose: Any) -> Solver:
        return self.solver.map_numbers(
            lambda leaf: choose(self.values[leaf.name]) if leaf.name in self.values else leaf.value
        )

    def described(self, point: int) -> str:
        """A point in words."""
        return ", ".join(f"{name} = {values[point]}" for name, values in self.values.items())


def grid_of(solver: Any, paired: bool) -> Grid:
    """The grid of a solver's array numbers: their product, the last one fastest, or their pairs.

    Raises:
      ValueError: a solver without an array, numbers out of range, arrays of other lengths to be
        paired; the message names them.
    """
    if not isinstance(solver, Solver):
        check_solver(solver)
    if not isinstance(paired, bool):
        raise ValueError(f"zip must be True or False, got {paired!r}")
    axes = {leaf.name: np.asarray(leaf.value) for leaf in solver.numbers() if _is_axis(leaf)}
    if not axes:
        raise ValueError(
            "solver must have at least one number given as an array of values, got "
            f"{', '.join(leaf.name for leaf in solver.numbers()) or 'no number'} without one"
        )
    for name, values in axes.items():
        if len(values) == 0:
            raise ValueError(f"{name} must have at least one value, got an empty array")
    lengths = {name: len(values) for name, values in axes.items()}
    if paired and len(set(lengths.values())) > 1:
        raise ValueError(f"zip=True pairs arrays of one length, got {lengths}")
    if paired:
        grid = Grid(solver, axes)
    else:
        index = np.array(list(itertools.product(*map(range, lengths.values()))))
        grid = Grid(solver, {name: axes[name][at] for name, at in zip(axes, index.T, strict=True)})
    check_solver(grid.candidates())
    return grid


def _is_axis(leaf: Leaf) -> bool:
    """Whether a number is an array of values; one array over the features is a single value."""
    return np.ndim(leaf.value) == leaf.spec.rank + 1
