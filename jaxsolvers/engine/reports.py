"""What a run says of its rankers: which learn nothing, which left the floats."""

from __future__ import annotations

import warnings

import numpy as np

from jaxsolvers.engine.targets import Targets
from jaxsolvers.protocol import Solver

_RATES = ("lam", "learning_rate", "C", "c", "r")  # numbers that set a solver's step


def report_empty(positives: np.ndarray, targets: Targets) -> None:
    """Say once which labels of label sets have no positive row."""
    empty = np.flatnonzero(positives == 0)
    if targets.output != "label" and empty.size and targets.classes is not None:
        first = targets.name(int(empty[0]))
        warnings.warn(
            f"{empty.size} of {positives.size} labels have no positive row (the first is "
            f"{first!r}; all in history['positives']): their rankers only learn to say no",
            UserWarning,
            stacklevel=5,
        )


def report_lost(solver: Solver, alive: np.ndarray, targets: Targets | None = None) -> None:
    """Say once which rankers left the floats, and what to change."""
    own = [leaf.name for leaf in solver.numbers() if leaf.name.rsplit(".")[-1] in _RATES]
    advice = f"change {' or '.join(own) or 'the step size'}, or scale X"
    if not alive.any():
        raise FloatingPointError(
            "the learning rate is too large for X: every ranker left the floating-point range; "
            + advice
        )
    if not alive.all():
        lost = np.flatnonzero(~alive)
        first = int(lost[0]) if targets is None else targets.name(int(lost[0]))
        warnings.warn(
            f"{lost.size} of {alive.size} rankers left the floating-point range (the first is "
            f"{first!r}; all in state.alive) and score -inf; {advice}",
            RuntimeWarning,
            stacklevel=5,
        )
