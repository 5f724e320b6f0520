"""A run, prepared: arguments checked and completed, data wrapped, numbers cast."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from jaxsolvers import checks
from jaxsolvers.engine import inputs
from jaxsolvers.engine.blocks import (
    check_sparse,
    choose_blocks,
    choose_lanes,
    make_slabs,
    one_by_one,
    own_slabs,
)
from jaxsolvers.engine.evaluation import Evaluation
from jaxsolvers.engine.gram_slabs import kernel_of
from jaxsolvers.engine.inputs import Examples
from jaxsolvers.engine.order import ORDERS, epoch_order, key_words, ranker_seeds
from jaxsolvers.engine.record import Measures, check_measures, check_record
from jaxsolvers.engine.sharding import mesh_of, n_devices
from jaxsolvers.engine.slabs import Data, Slabs
from jaxsolvers.engine.state import (
    Settings,
    TrainState,
    check_continues,
    check_examples,
    describe,
)
from jaxsolvers.engine.stream import Stream, stream_slabs
from jaxsolvers.engine.targets import Targets
from jaxsolvers.engine.tile import Assignment, Plan, tile_size
from jaxsolvers.members import Array, Leaf
from jaxsolvers.protocol import Loss, Regularizer, Solver

INTERCEPTS = ("none", "column")


@dataclasses.dataclass(frozen=True, eq=False)
class Options:
    """Arguments of a fit; None means the default, or the state's in a continued run."""

    epochs: int = 1
    batch_size: int | None = None
    order: str | None = None
    key: Any = None
    sample_weight: Any = None
    intercept: str | None = None
    positive_weight: Any = None
    negatives: float | None = None
    state: TrainState | None = None
    tol: float | None = None
    patience: int = 5
    eval_set: Any = None
    evaluation: Evaluation | None = None  # the same, read
    stream: bool = False  # one of many batches: weights are used as they are given
    record: Sequence[str] = ()
    block_size: int | None = None
    chunk_size: int | None = None
    mesh: Mesh | None = None
    progress: bool = False

    def __post_init__(self) -> None:
        if self.state is not None and not isinstance(self.state, TrainState):
            raise ValueError(
                f"state must be the state of an earlier fit, got {type(self.state).__name__}"
            )

    def known_classes(self) -> np.ndarray | None:
        """The labels of a continued run, in their own dtype."""
        if self.state is None or self.state.settings.classes is None:
            return None
        settings = self.state.settings
        return np.array(settings.classes, np.dtype(settings.label_dtype))

    def resumed(self, name: str, default: Any) -> Any:
        """The argument as given, else the state's, else the default."""
        given = getattr(self, name)
        if given is not None:
            return given
        return default if self.state is None else getattr(self.state.settings, name)


class Job(NamedTuple):
    """A run, prepared: everything the host loop needs."""

    solver: Solver  # numbers cast, one value per ranker
    slabs: Slabs
    assignment: Assignment  # (K,) fields, on the host
    at_zero: np.ndarray  # (K,) l(0)
    live: np.ndarray  # (K,) total weight
    seeds: np.ndarray  # (K, 2) uint32, of the rankers' own draws
    plan: Plan
    settings: Settings
    words: np.ndarray
    epochs: range
    shape: tuple[int, ...]  # of a lane's weights: (d,), or (K, d) of classes trained together
    tile: int
    group: int  # rankers advanced together: a tile per device
    before: TrainState | None
    measures: Measures


class Schedule(NamedTuple):
    """When rows are visited."""

    batch_size: int
    order: str
    words: np.ndarray  # of the key
    epochs: range


def schedule_of(options: Options, n: int) -> Schedule:
    """The schedule that the arguments, or a continued run, ask for.

    Raises:
      ValueError: epochs, batch_size, order or key; the message names it.
    """
    before = options.state
    epochs = checks.check_integer(options.epochs, "epochs")
    batch_size = checks.check_integer(options.resumed("batch_size", 1), "batch_size")
    if batch_size > n and before is None and not options.stream:
        raise ValueError(f"batch_size must be at most the number of rows {n}, got {batch_size}")
    order = checks.check_option(options.resumed("order", "permutation"), "order", ORDERS)
    if before is None:
        words = key_words(0 if options.key is None else options.key)
        first = 0
    else:
        words, first = np.asarray(before.key_data), int(before.epoch)
        if options.key is not None and not np.array_equal(key_words(options.key), words):
            raise ValueError(f"state was made with another key, got key = {options.key!r}")
    if (first + epochs) * n > checks.MAX_COUNT:
        raise ValueError(
            f"epochs must keep the counter of rounds below 2^31, got {first + epochs} x {n} rows"
        )
    return Schedule(batch_size, order, words, range(first, first + epochs))


def prepare(
    solver: Solver, examples: Examples, targets: Targets, options: Options
) -> tuple[Job, int]:
    """Check and complete all arguments; returns the job and the number of rankers per chunk."""
    own, n_rankers = targets.own, targets.n_rankers
    n = examples.n if own is None else own.longest  # rows of a ranker
    before = options.state
    batch_size, order, words, epochs = schedule_of(options, n)
    intercept = checks.check_option(options.resumed("intercept", "none"), "intercept", INTERCEPTS)
    solver.check_rounds(batch_size, intercept, targets.negatives)
    weight = inputs.check_sample_weight(options.sample_weight, examples.n, as_given=options.stream)
    mesh = mesh_of(options.mesh, examples.values)
    if examples.sparse:
        check_sparse(solver, targets)
    streamed = isinstance(examples.values, Stream)
    if streamed and order == "uniform":
        raise ValueError('order must be "permutation" or "cyclic" for a source, got "uniform"')
    sample = Examples(examples.values.first_window(), examples.dtype) if streamed else examples
    if own is not None and examples.sparse:
        sample = examples.take(own.of(0))
    wanted = options.resumed("block_size", None)
    if wanted is not None:
        wanted = checks.check_integer(wanted, "block_size")
    platform = mesh.devices.flat[0].platform
    lanes = None if before is None else before.settings.tile
    if own is not None and not one_by_one(solver, examples, lanes):
        width = examples.d + (intercept == "column") if solver.kernel is None else n
        blocks, tile = choose_lanes(
            solver,
            own,
            batch_size,
            wanted,
            lanes,
            width,
            examples.dtype.itemsize,
            platform,
        )
    else:
        tile = tile_size(n_rankers) if own is None else 1
        first_order = epoch_order(order, sample.n, words, 0) if examples.sparse else None
        apart = targets.copies.fold is not None
        blocks = choose_blocks(
            solver, sample, batch_size, wanted, first_order, tile, platform, apart
        )
    with np.errstate(over="ignore", under="ignore"):
        numbers = solver.cast(examples.dtype)
    numbers.validate()  # again: 1e-60 is 0 in float32
    kernel = kernel_of(numbers, examples)
    settings = Settings(
        solver=describe(numbers),
        batch_size=batch_size,
        order=order,
        intercept=intercept,
        block_size=blocks.rows,
        tile=tile,
        positive_weight=_hashable(targets.positive_weight),
        negatives=targets.negatives,
        output=targets.output,
        n_features=examples.d if kernel is None else n,
        n_rankers=n_rankers,
        together=targets.together,
        dtype=examples.dtype.name,
        classes=None if targets.classes is None else tuple(targets.classes.tolist()),
        turns=None if own is None else own.turns,
        label_dtype="" if targets.classes is None else targets.classes.dtype.str,
    )
    if before is not None:
        check_continues(before.settings, settings, options.block_size is not None)
        check_examples(before, n)
    ready = numbers.without_kernel()
    ready = ready.free_intercept() if intercept == "column" else ready
    ready = ready.for_rankers(n_rankers)
    data = Data(
        examples, targets.values, weight, intercept == "column", mesh, words, order, n,
        own=own, kernel=kernel, fold=targets.copies.fold,
    )  # fmt: skip
    make = partial(make_slabs, blocks=blocks, solver=ready, batch_size=batch_size, tile=tile)
    if own is not None:
        slabs = own_slabs(data, blocks, tile, make)
    else:
        slabs = stream_slabs(data, blocks.rows, make) if streamed else make(data)
    assignment, live, at_zero = _assign(solver, targets, weight, examples.dtype, options.stream)
    shape = (data.width,) if targets.together is None else (targets.together, data.width)
    record = check_record(options.record, ready, data, targets, shape)
    job = Job(
        ready,
        slabs,
        assignment,
        at_zero,
        live,
        ranker_seeds(words, n_rankers),
        Plan(
            mesh,
            batch_size,
            blocks.gram and blocks.restricted,
            targets.together,
            own is not None and not blocks.restricted,
            targets.n_classes if targets.copies.count > 1 else None,
        ),
        settings,
        words,
        epochs,
        shape,
        tile,
        tile * n_devices(mesh),
        before,
        check_measures(
            numbers,
            data,
            targets,
            record,
            options.tol,
            options.patience,
            options.evaluation,
            tile,
        ),
    )
    chunk = n_rankers
    if options.chunk_size is not None:
        chunk = checks.check_integer(options.chunk_size, "chunk_size")
        chunk = -(-chunk // job.group) * job.group
    return job, chunk


def _hashable(weight: np.ndarray) -> float | tuple[float, ...]:
    return float(weight) if weight.ndim == 0 else tuple(weight.tolist())


def _assign(
    solver: Solver, targets: Targets, weight: np.ndarray, dtype: Any, stream: bool
) -> tuple[Assignment, np.ndarray, np.ndarray]:
    """Per ranker: its class and weight factors, the total weight, and l(0).

    Classes trained together are one ranker with factors (1, K), and the sum of their l(0).
    Every fold has weights of its own: those of its training rows, divided by their mean.
    """
    copies, together = targets.copies, targets.together is not None
    training = targets.training(weight)
    # (folds, K) each. A batch of a stream may have no live row.
    live = np.stack([targets.totals((own > 0).astype(float)) for own in training])
    live, total = np.maximum(live, 1), np.stack([targets.totals(own) for own in training])
    positive = np.broadcast_to(targets.positive_weight, (targets.n_classes,))
    positives = np.stack([targets.positives(own) for own in training])
    # Positives first, then divided by the mean over live rows (which is 1 before, of all rows).
    mean = (total + (positive - 1) * positives) / live
    if targets.joint:
        positive, mean = np.ones(1), (total / live)[:, :1]
    if stream:  # the mean over all rows is not known
        mean = np.ones_like(mean)
    if targets.joint:
        of_class = _joint_at_zero(solver.loss.cast(dtype), targets.n_classes)
        at_zero = copies.spread(positives @ of_class[:, None] / (mean * live[:, :1]))
    elif targets.per_ranker or solver.loss.classification:
        ends = _ends_at_zero(solver.loss.cast(dtype).for_rankers(targets.n_rankers))
        share = positive * positives / (mean * live)
        share = copies.spread(share[:, None] if together else share[:, :, None])
        of_positive, of_negative = (np.asarray(end).reshape(-1, 1) for end in ends)
        at_zero = (share * of_positive + (1 - share) * of_negative).sum(axis=1)
    else:
        at_zero = _regression_at_zero(solver.loss, targets, training, dtype)
    factors = positive / mean, 1 / mean  # (folds, K)
    if together and not targets.joint:
        factors = factors[0][:, None], factors[1][:, None]
    fold, code = np.indices((copies.n_folds, targets.n_alone), np.int32)
    assignment = Assignment(
        copies.spread(code),
        copies.spread(factors[0]).astype(dtype),
        copies.spread(factors[1]).astype(dtype),
        _share(targets, training, dtype),
        None if copies.fold is None else copies.spread(fold),
    )
    return assignment, copies.spread(live[:, : targets.n_alone]), at_zero.reshape(-1)


def _share(targets: Targets, training: list[np.ndarray], dtype: Any) -> np.ndarray | None:
    """Probability with which each ranker draws a negative row, (rankers,)."""
    if targets.negatives is None:
        return None
    shares = []
    for weight in training:
        live = (weight > 0).astype(float)
        positives = targets.positives(live)
        share = targets.negatives * positives / np.maximum(live.sum() - positives, 1)
        # Without a positive row all negatives: a ranker that never saw one would score 0 and win.
        shares.append(np.where(positives > 0, np.minimum(share, 1), 1))
    return targets.copies.spread(np.stack(shares)).astype(dtype)


def _regression_at_zero(
    loss: Loss, targets: Targets, training: list[np.ndarray], dtype: Any
) -> np.ndarray:
    """l(0) of each ranker, (points, folds)."""
    values = jnp.asarray(targets.values, dtype)
    found: list[list[float]] = []
    for point in range(targets.copies.points):
        lane = point * targets.copies.n_folds

        def own(leaf: Leaf, lane: int = lane) -> Any:
            return leaf.value[lane] if np.ndim(leaf.value) > leaf.spec.rank else leaf.value

        if not found or any(np.ndim(leaf.value) for leaf in loss.numbers()):
            losses = np.asarray(_at_zero(loss.map_numbers(own).cast(dtype), values), np.float64)
        sums = [(weight @ losses, weight.sum()) for weight in training]
        found.append([float(top / bottom) if bottom > 0 else 0.0 for top, bottom in sums])
    return np.array(found)


@jax.jit
def _at_zero(loss: Loss, values: Array) -> Array:
    return loss.value_and_slope(0 * values, values)[0]


def _joint_at_zero(loss: Loss, n_classes: int) -> np.ndarray:
    """l(0, y) of each class y, (K,), some classes at a time: their scores are (.., K)."""
    dtype = jnp.result_type(float, *jax.tree.leaves(loss)[:1])
    found = []
    for first in range(0, n_classes, 64):
        codes = jnp.arange(first, min(first + 64, n_classes), dtype=jnp.int32)
        scores = jnp.zeros((len(codes), n_classes), dtype)
        found.append(np.asarray(loss.value_and_slope(scores, codes)[0]))
    return np.concatenate(found)


@jax.jit
def _ends_at_zero(loss: Loss) -> tuple[Array, Array]:
    """l(0, +1) and l(0, -1) per ranker; () where the loss has no number of its own."""

    def one(loss: Loss) -> tuple[Array, Array]:
        dtype = jnp.result_type(float, *jax.tree.leaves(loss)[:1])
        values, _ = loss.value_and_slope(jnp.zeros(2, dtype), jnp.array([1, -1], dtype))
        return values[0], values[1]

    if not jax.tree.leaves(loss):
        return one(loss)
    return jax.vmap(one, in_axes=(loss.ranker_axes(),))(loss)


def check_solver(solver: Any) -> None:
    """Raise a ValueError that names what is wrong with the solver's numbers, choices or parts."""
    if not isinstance(solver, Solver):
        raise ValueError(f"solver must be a jaxsolvers solver such as js.Pegasos, got {solver!r}")
    solver.validate()
    if solver.loss.joint and not solver.joint:
        raise ValueError(
            f"loss must be a loss of one score for {type(solver).__name__}, got "
            f"{type(solver.loss).__name__} of all classes; js.Pegasos and the first-order solvers "
            "such as js.AdaGradFOBOS take it"
        )
    for prefix, part in solver.parts():
        if isinstance(part, Regularizer):
            part.check_start(prefix)
