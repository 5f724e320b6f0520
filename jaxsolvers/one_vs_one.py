"""One ranker per pair of classes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from jaxsolvers.checks import MAX_COUNT
from jaxsolvers.engine import inputs
from jaxsolvers.engine.inputs import Examples
from jaxsolvers.engine.job import Options, check_solver
from jaxsolvers.engine.own_rows import OwnRows
from jaxsolvers.engine.room import memory_bytes, state_bytes
from jaxsolvers.engine.run import Fit, make_model, train
from jaxsolvers.engine.sharding import mesh_of
from jaxsolvers.engine.state import TrainState
from jaxsolvers.engine.stream import is_source, read_given
from jaxsolvers.engine.targets import Targets
from jaxsolvers.labels import read_single
from jaxsolvers.members import Leaf
from jaxsolvers.models import OneVsOneModel
from jaxsolvers.protocol import Regularizer, Solver

__all__ = ["fit_one_vs_one"]


def fit_one_vs_one(
    solver: Solver,
    X: Any,
    y: Any,
    *,
    chunk_size: int | None = None,
    epochs: int = 1,
    batch_size: int | None = None,
    order: str | None = None,
    key: Any = None,
    sample_weight: Any = None,
    intercept: str | None = None,
    state: TrainState | None = None,
    record: Sequence[str] = (),
    block_size: int | None = None,
    mesh: Mesh | None = None,
    progress: bool = False,
) -> Fit:
    """Train one ranker per pair of classes, each on the rows of its two classes alone.

    Ranker p sees target +1 on the rows of the first class of its pair and -1 on those of the
    second; the K (K - 1)/2 pairs are (0, 1), (0, 2), ..., (K - 2, K - 1) of the sorted classes.
    Each is what ``js.fit`` makes of these rows, in the same order (a random average,
    ``Averaged(kind="random")``, draws its own). An epoch costs what the
    (K - 1) n rows of all pairs do: they are gathered a slab at a time, for many pairs together.
    On sparse rows, with a solver that leaves out what they do not touch, the pairs are trained
    one after another. Weights and state are the same, to the bit, for every ``chunk_size``.

    Args:
      solver: e.g. ``js.Pegasos(1e-3)``. A number given as an array of length K (K - 1)/2 is one
        value per pair. ``lam`` is per pair: C of libsvm is 1/(lam rows of the pair).
      X: (n, d) dense or sparse, as in ``js.fit``; not a source.
      y: (n,) labels of any sortable kind, at least two of them.
      chunk_size: if given, and less than the number of pairs, the result lies on the host, each
        tile of pairs as soon as it is trained; one tile is in training at any time anyway.
      epochs: as in ``js.fit``.
      batch_size: rows per round, no more than the largest pair has; 1 by default. A pair of fewer
        rows takes all of them.
      order: as in ``js.fit``, of each pair's rows.
      key: as in ``js.fit``; the same for all pairs.
      sample_weight: as in ``js.fit``; every class needs a row of a weight above 0. Only ratios
        within a pair count.
      intercept: as in ``js.fit``.
      state: as in ``js.fit``. Its tiles hold pair ``state.settings.turns[i]`` at place i.
      record: () or ("theory",).
      block_size, progress: as in ``js.fit``.
      mesh: as in ``js.fit``; of one device for sparse rows.

    Returns:
      A Fit; ``model`` is a OneVsOneModel, ``history`` and ``state.alive`` are per pair.
      ``history["positives"]`` counts the rows of each pair's first class.

    Raises:
      ValueError: bad input, found before training; the message names the argument. So many
        classes that the weights of all pairs and their states do not fit in memory.
      FloatingPointError: every ranker diverged. If only some did there is one RuntimeWarning,
        ``state.alive`` says which, and they have no vote.

    Example:
      >>> import numpy as np, jaxsolvers as js
      >>> X, y = np.eye(3, dtype="float32"), np.array(["ant", "bee", "cat"])
      >>> fit = js.fit_one_vs_one(js.Pegasos(0.1), X, y, epochs=3)
      >>> fit.model.pairs.tolist(), fit.model.predict(X).tolist()
      ([[0, 1], [0, 2], [1, 2]], ['ant', 'bee', 'cat'])
    """
    check_solver(solver)
    _check_parts(solver)
    if is_source(X):
        raise ValueError(
            "X must be an array or a sparse matrix, whose rows are sorted by class; got a source "
            "(js.fit_one_vs_rest takes it)"
        )
    examples, y, sample_weight = read_given(X, y, sample_weight)
    options = Options(
        epochs=epochs,
        batch_size=batch_size,
        order=order,
        key=key,
        sample_weight=sample_weight,
        intercept=intercept,
        state=state,
        record=record,
        block_size=block_size,
        chunk_size=chunk_size,
        mesh=mesh,
        progress=progress,
    )
    if isinstance(record, list | tuple) and any(name != "theory" for name in record):
        raise ValueError(f"record must be () or ('theory',) for pairs of classes, got {record!r}")
    codes, classes = read_single(y, examples.n, options.known_classes())
    _check_every_class(codes, classes, inputs.check_sample_weight(sample_weight, examples.n))
    own = _own_rows(solver, examples, codes, len(classes), options)
    n_pairs = len(own.pairs)
    solver.check_shapes(n_pairs, examples.d, each="pair")
    turns = np.array(own.turns)
    if state is not None and np.size(state.alive) == n_pairs:
        options = dataclasses.replace(
            options, state=dataclasses.replace(state, alive=np.asarray(state.alive)[turns])
        )
    targets = Targets(codes, n_pairs, classes, np.ones(()), output="pairs", own=own)
    coef, intercepts, after, history = train(_in_turn(solver, turns), examples, targets, options)
    place = np.argsort(turns)
    if solver.kernel is not None:
        coef = _over_all_rows(coef, own, examples.n)
    after = dataclasses.replace(after, alive=after.alive[place])
    history = {
        name: v if name == "seconds" else v[..., place]  # (epochs, P) or (P,)
        for name, v in history.items()
    }
    rankers = make_model(solver, examples, coef[place], intercepts[place], None)
    return Fit(OneVsOneModel(rankers, classes), after, history)


def _check_parts(solver: Solver) -> None:
    """Raise a ValueError for a loss or a regularizer of several classes at once."""
    if solver.loss.joint:
        raise ValueError(
            f"loss must be a loss of one score here, got {type(solver.loss).__name__}, which has "
            "all classes at once: js.fit takes it with any number of labels"
        )
    name = type(solver).__name__
    if solver.own_vectors:
        raise ValueError(f"solver must not have support vectors of its own for pairs, got {name}")
    if solver.finishes != "never" or solver.surveys():
        raise ValueError(
            f"solver must not look at all rows between epochs for pairs, as {name} does here; "
            "js.fit_one_vs_rest takes it"
        )
    for prefix, part in solver.parts():
        if isinstance(part, Regularizer) and part.couples:
            raise ValueError(
                f"{prefix.rstrip('.')} {type(part).__name__} couples rankers, and pairs are "
                "trained apart: js.fit_one_vs_rest takes it"
            )


def _check_every_class(codes: np.ndarray, classes: np.ndarray, weight: np.ndarray) -> None:
    rows = np.bincount(codes[weight > 0], minlength=len(classes))
    if (rows == 0).any():
        first = classes[rows == 0].tolist()[0]
        name = "y" if (codes != np.flatnonzero(rows == 0)[0]).all() else "sample_weight"
        raise ValueError(f"{name} must leave every class a row, got none for {first!r}")


def _own_rows(
    solver: Solver, examples: Examples, codes: np.ndarray, n_classes: int, options: Options
) -> OwnRows:
    """The rows of all pairs, the largest pair first: pairs of one tile are then of like sizes.

    Raises:
      ValueError: no room for so many pairs; the message names y.
    """
    counts = np.bincount(codes)
    longest = int(np.sort(counts)[-2:].sum())
    _check_room(solver, examples, n_classes, longest, options)
    first, second = np.triu_indices(n_classes, 1)
    turns = np.argsort(-(counts[first] + counts[second]), kind="stable")
    before = options.state
    if before is not None and len(before.settings.turns or ()) == len(turns):
        turns = np.array(before.settings.turns)  # whatever the sizes are now
    pairs = np.stack([first, second], axis=1)[turns]
    return OwnRows(codes, pairs, n_classes, tuple(turns.tolist()))


def _check_room(
    solver: Solver, examples: Examples, n_classes: int, longest: int, options: Options
) -> None:
    n_pairs = n_classes * (n_classes - 1) // 2
    constant = int(options.resumed("intercept", "none") == "column")
    kernel = solver.kernel is not None
    width, trained = (examples.n, longest) if kernel else (examples.d, examples.d + constant)
    weights = n_pairs * width * examples.dtype.itemsize
    states = n_pairs * state_bytes(solver, trained, longest, examples.dtype)
    device = None
    if options.chunk_size is None:
        device = mesh_of(options.mesh, examples.values).devices.flat[0]
    room = memory_bytes(device)
    if weights + states > room or n_pairs > MAX_COUNT:
        raise ValueError(
            f"y holds K = {n_classes:,} classes, which are {n_pairs:,} pairs: their weights "
            f"({n_pairs:,} x {width:,} {examples.dtype}) take {weights:,} bytes and the states of "
            f"their training {states:,} more, of {room:,} bytes of memory; js.fit_one_vs_rest "
            f"trains {n_classes:,} rankers"
        )


def _in_turn(solver: Solver, turns: np.ndarray) -> Solver:
    """The solver with numbers of one value per pair in the order in which pairs are trained."""

    def turned(leaf: Leaf) -> Any:
        per_pair = leaf.spec.rank < 2 and jnp.ndim(leaf.value) == leaf.spec.rank + 1
        return np.asarray(leaf.value)[turns] if per_pair else leaf.value

    return solver.map_numbers(turned)


def _over_all_rows(coef: Any, own: OwnRows, n: int) -> np.ndarray:
    """Coefficients (P, L) of each pair's rows as coefficients (P, n) of all rows."""
    coef = np.asarray(coef)
    whole = np.zeros((len(coef), n), coef.dtype)
    for ranker, part in enumerate(coef):
        rows = own.of(ranker)
        whole[ranker, rows] = part[: len(rows)]
    return whole
