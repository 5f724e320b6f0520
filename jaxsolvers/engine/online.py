"""An iterator of batches, trained as they come.

None of them is held: each one continues the state that those before it left, as if
``fit(solver, *batch, state=fit.state)`` had been called for it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxsolvers.engine.batches import is_batch, shown
from jaxsolvers.engine.job import Options
from jaxsolvers.engine.progress import Progress
from jaxsolvers.engine.record import MEASURED
from jaxsolvers.engine.totals import ENDINGS
from jaxsolvers.metrics.primal_dual import with_duals
from jaxsolvers.protocol import Solver


def over_batches(
    train: Callable[[Any, Any, Options], Any], solver: Solver, X: Any, y: Any, options: Options
) -> Any:
    """One epoch over an iterator of batches (X, y) or (X, y, sample_weight).

    Args:
      train: (X, y, options) -> Fit, trains on one batch.
      solver: as the user gave it.
      X: the iterator.
      y, options: what else the user gave.

    Returns:
      The Fit after the last batch; its history has a row per batch.

    Raises:
      ValueError: arguments that need the rows more than once, a solver that keeps numbers of each
        row; a batch that cannot be trained on, by its number.
    """
    _check(solver, y, options)
    fit: Any = None
    histories: list[dict[str, np.ndarray]] = []
    with Progress(options.progress, None) as bar:
        for number, batch in enumerate(X):
            if not is_batch(batch):
                raise ValueError(
                    f"X must give batches (X, y) or (X, y, sample_weight), got {shown(batch)} as "
                    f"batch {number}"
                )
            own = dataclasses.replace(
                options,
                stream=True,
                progress=False,
                sample_weight=batch[2] if len(batch) == 3 else None,
                state=options.state if fit is None else fit.state,
            )
            try:
                fit = train(batch[0], batch[1], own)
            except ValueError as error:
                if number == 0:  # it may be about anything
                    raise
                raise ValueError(f"batch {number} of X: {error}") from error
            histories.append(fit.history)
            bar.advance(np.shape(batch[0])[0] * np.size(fit.state.alive))
    if fit is None:
        raise ValueError("X must give at least one batch, got an iterator that is used up")
    history = {
        name: np.concatenate([part[name] for part in histories])
        for name in fit.history
        if name not in ENDINGS
    }
    ends = {name: fit.history[name] for name in ("stopped", "epochs_run")}
    return fit._replace(history=history | ends)


def _check(solver: Solver, y: Any, options: Options) -> None:
    for name, value in (("y", y), ("sample_weight", options.sample_weight)):
        if value is not None:
            raise ValueError(f"{name} must be None for an iterator, whose batches have their own")
    if options.epochs != 1:
        raise ValueError(
            f"epochs must be 1 for an iterator, which can be read once; got {options.epochs!r} "
            "(a list of batches, or js.data.IteratorSource, can be read again)"
        )
    if options.tol is not None or options.eval_set is not None:
        raise ValueError("tol and eval_set must be None for an iterator, read in one epoch")
    if isinstance(options.record, tuple | list) and MEASURED.intersection(options.record):
        raise ValueError(f"record must hold 'theory' alone for an iterator, got {options.record!r}")
    looks_back = solver.finishes != "never" or bool(solver.surveys())
    if solver.gram_kernel is not None or with_duals(solver) is not None or looks_back:
        raise ValueError(
            "X must be an array, a sparse matrix or a source that can be read again for "
            f"{type(solver).__name__}, which keeps numbers of each row or looks at all of them "
            "again; got an iterator"
        )
    inner = getattr(solver, "solver", solver)
    if getattr(inner, "project", False) and not solver.loss.classification:
        raise ValueError(
            f"project must be False for an iterator with {type(solver.loss).__name__}: the radius "
            "is made of all targets"
        )
