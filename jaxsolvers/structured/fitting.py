"""Training of structured problems: the host loop, and the objective."""

from __future__ import annotations

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.decoding import Given, StructuredProblem
from jaxsolvers.decoding.problem import is_floating, on_device
from jaxsolvers.engine.inputs import check_sample_weight, working_dtype
from jaxsolvers.engine.job import Options, Schedule, schedule_of
from jaxsolvers.engine.order import epoch_order
from jaxsolvers.engine.progress import Progress
from jaxsolvers.engine.reports import report_lost
from jaxsolvers.engine.run import Fit
from jaxsolvers.engine.state import Settings, TrainState, check_continues, describe
from jaxsolvers.members import Array
from jaxsolvers.models.structured import StructuredModel
from jaxsolvers.protocol import Info, Problem, Solver
from jaxsolvers.structured.rounds import advance, losses_of, weights_of, with_oracle


def fit_structured(
    solver: Solver,
    problem: StructuredProblem,
    examples: Any,
    *,
    epochs: int = 1,
    batch_size: int | None = None,
    order: str | None = None,
    key: Any = None,
    sample_weight: Any = None,
    state: TrainState | None = None,
    progress: bool = False,
) -> Fit:
    """Train the weights of a structured problem.

    Minimises ``phi(w) + (1/n) sum_i max_s Delta(s, y_i) + <w, phi(x_i, s)> - <w, phi(x_i, y_i)>``
    (Tsochantaridis, Joachims, Hofmann, Altun, JMLR 2005), phi(w) the solver's regularization. Each
    round decodes its examples with their costs and steps along the mean of their sub-gradients
    (Pegasos for structures: Shalev-Shwartz et al., Math. Programming 2011, sec. 5).

    Args:
      solver: a solver of one weight vector whose loss is left at its default, as the problem
        brings its own: Pegasos, SGD, NORMA, any AdaGrad, RDA, FOBOS, or ``Averaged`` around one.
        Regularizers act on all D weights alike.
      problem: e.g. ``js.structured.LinearChain()``.
      examples: what the problem learns from; of a chain ``(X, y)`` or ``(X, y, lengths)``. All of
        them are held on the device, padded.
      epochs: passes over the examples, >= 1; 1 by default.
      batch_size: examples per round, 1 ... n; 1 by default. Sub-gradients are dense, a round holds
        (batch_size, D) of them: with a large vocabulary small batches are the faster ones.
      order: "permutation" (default), "uniform" or "cyclic", as in ``js.fit``.
      key: seed of the orders, an int or a JAX key; 0 by default.
      sample_weight: (n,) >= 0, of the examples; only ratios count. Weight 0 leaves one out.
      state: ``Fit.state`` of an earlier call: ``epochs`` more with its settings.
      progress: whether to show a progress bar (tqdm).

    Returns:
      A Fit; its model is a StructuredModel. The history has, per epoch, ``progressive_loss`` (mean
      loss of each example before its round, weighted), ``violations`` (examples with a
      sub-gradient other than 0) and ``seconds``.

    Raises:
      ValueError: bad input, found before training; the message names the argument.
      FloatingPointError: the weights diverged.

    Example:
      >>> import jaxsolvers as js
      >>> tagged = js.data.hidden_tags(40, 4, n_labels=3)
      >>> chain = js.structured.LinearChain()
      >>> given = (tagged.sequences, tagged.labels)
      >>> fit = js.structured.fit_structured(js.AdaGradRDA(0.5), chain, given, epochs=3)
      >>> sorted(fit.model.parts), len(fit.model.predict(tagged.sequences))
      (['emission', 'end', 'start', 'transition'], 40)
    """
    ready = with_oracle(solver)
    options = Options(
        epochs=epochs,
        batch_size=batch_size,
        order=order,
        key=key,
        sample_weight=sample_weight,
        state=state,
        progress=progress,
    )
    given = _read(problem, examples, options.known_classes())
    schedule = schedule_of(options, given.n)
    solver.check_rounds(schedule.batch_size, "none", None)
    weight = check_sample_weight(sample_weight, given.n)
    dtype = _dtype(given)
    numbers, problem = ready.cast(dtype), problem.cast(dtype)
    numbers.validate()  # again: 1e-60 is 0 in float32
    size = problem.n_weights(given.examples)
    numbers.check_shapes(None, size)
    settings = _settings(numbers, problem, schedule, given, size, dtype)
    if state is not None:
        check_continues(state.settings, settings, False)
    rows = on_device(given.examples, dtype)
    weights = jnp.asarray(weight, dtype)
    if state is None:
        live = jnp.asarray((weight > 0).sum(), dtype)
        at_zero = None
        if any(getattr(part, "project", False) for _, part in [("", ready), *ready.parts()]):
            losses = np.asarray(losses_of(problem, jnp.zeros(size, dtype), rows), np.float64)
            at_zero = jnp.asarray(losses @ weight / (weight > 0).sum(), dtype)
        inner = numbers.init(Problem((size,), given.n, live, at_zero), dtype)
        alive = jnp.ones((), bool)
    else:
        inner, alive = jax.tree.map(jnp.asarray, (state.solver_state, state.alive))
    history = []
    with Progress(progress, given.n * len(schedule.epochs)) as bar:
        for epoch in schedule.epochs:
            began = time.perf_counter()
            index = _batches(schedule, given.n, epoch)
            inner, alive, infos = advance(problem, numbers, inner, alive, rows, weights, index)
            if not bool(alive):
                report_lost(solver, np.asarray(alive)[None], None)
            history.append(_summary(infos, time.perf_counter() - began))
            bar.advance(given.n)
    model = StructuredModel(problem, weights_of(numbers, inner), given.classes)
    after = TrainState(
        inner, None, alive, np.int64(schedule.epochs.stop), np.int64(0), schedule.words, settings
    )
    return Fit(
        model, after, {name: np.array([row[name] for row in history]) for name in history[0]}
    )


def objective(
    solver: Solver, model: StructuredModel, examples: Any, *, sample_weight: Any = None
) -> float:
    """The objective that ``fit_structured`` minimises, at a model's weights.

    ``phi(w) + sum_i s_i l_i(w) / sum_i s_i``: the loss of each example is a maximum of its own,
    never below 0, and the mean comes after it.

    Args:
      solver: whose regularization phi counts.
      model: of ``fit_structured``.
      examples: as in ``fit_structured``.
      sample_weight: (n,) >= 0; None for equal weights.

    Returns:
      The objective, computed in the dtype of the examples.

    Raises:
      ValueError: bad input; the message names the argument.

    Example:
      >>> import jaxsolvers as js
      >>> tagged = js.data.hidden_tags(40, 4, n_labels=3)
      >>> given, solver = (tagged.sequences, tagged.labels), js.AdaGradRDA(0.5)
      >>> fit = js.structured.fit_structured(solver, js.structured.LinearChain(), given, epochs=3)
      >>> js.structured.objective(solver, fit.model, given) < 6  # wrong positions and margins
      True
    """
    ready = with_oracle(solver)
    given = _read(model.problem, examples, model.classes)
    weight = check_sample_weight(sample_weight, given.n)
    dtype = _dtype(given)
    problem, weights = model.problem.cast(dtype), jnp.asarray(model.weights, dtype)
    if problem.n_weights(given.examples) != len(weights):
        raise ValueError(
            f"examples must have the features of the model's training, {len(weights)} weights; got "
            f"{problem.n_weights(given.examples)}"
        )
    losses = np.asarray(losses_of(problem, weights, on_device(given.examples, dtype)), np.float64)
    return float(ready.cast(dtype).penalty(weights)) + float(losses @ weight / weight.sum())


def _read(problem: Any, examples: Any, classes: np.ndarray | None) -> Given:
    if not isinstance(problem, StructuredProblem):
        raise ValueError(
            f"problem must be one such as js.structured.LinearChain(), got {problem!r}"
        )
    problem.validate()
    given = problem.read(examples, classes)
    K = None if given.classes is None else len(given.classes)
    problem.check_shapes(None, 1, K)
    return given


def _dtype(given: Given) -> np.dtype:
    """The working dtype: that of the floats, JAX's default one without any."""
    floats = [leaf.dtype for leaf in jax.tree.leaves(given.examples) if is_floating(leaf)]
    return working_dtype(np.result_type(*floats) if floats else np.dtype(np.int32))


def _settings(
    solver: Solver,
    problem: Any,
    schedule: Schedule,
    given: Given,
    size: int,
    dtype: np.dtype,
) -> Settings:
    classes = given.classes
    own = tuple((f"problem.{name}", text) for name, text in describe(problem))
    return Settings(
        solver=describe(solver) + own,
        batch_size=schedule.batch_size,
        order=schedule.order,
        intercept="none",
        block_size=schedule.batch_size,
        tile=1,
        positive_weight=1.0,
        negatives=None,
        output="structure",
        n_features=size,
        n_rankers=1,
        together=None,
        dtype=dtype.name,
        classes=None if classes is None else tuple(classes.tolist()),
        turns=None,
        label_dtype="" if classes is None else classes.dtype.str,
    )


def _batches(schedule: Schedule, n: int, epoch: int) -> Array:
    """The examples of each round, (rounds, k) int32; n where the last round is short."""
    found = epoch_order(schedule.order, n, schedule.words, epoch)
    visited = np.arange(n) if found is None else found
    k = schedule.batch_size
    padded = np.full(-(-n // k) * k, n, np.int32)
    padded[:n] = visited
    return jnp.asarray(padded.reshape(-1, k))


def _summary(infos: Info, seconds: float) -> dict[str, float]:
    """An epoch's sums over its rounds, in float64 on the host (a float32 sum stops at 2^24)."""
    weight, loss, violations = (
        np.asarray(field, np.float64).sum()
        for field in (infos.weight, infos.loss, infos.violations)
    )
    return {
        "progressive_loss": loss / weight if weight > 0 else np.nan,
        "violations": violations,
        "seconds": seconds,
    }
