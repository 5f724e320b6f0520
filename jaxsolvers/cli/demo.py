"""``jaxsolvers demo``: digits one-vs-rest, then a thousand synthetic rankers."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import jax
import numpy as np

from jaxsolvers.data import blobs
from jaxsolvers.engine.run import Fit
from jaxsolvers.metrics import average_precision, error_rate
from jaxsolvers.multiclass import fit_one_vs_rest
from jaxsolvers.protocol import Solver
from jaxsolvers.solvers.adagrad import AdaGradRDA
from jaxsolvers.solvers.averaged import Averaged
from jaxsolvers.solvers.pegasos import Pegasos


def run(options: argparse.Namespace) -> None:
    """Train and print accuracy, mean average precision and speed.

    Raises:
      ImportError: scikit-learn, which has the digits, is missing.
      ValueError: a size that makes no data.
    """
    _demo(options.rankers, options.rows, options.epochs)


def _demo(n_rankers: int, n_rows: int, epochs: int) -> None:
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise ImportError(
            "the demo needs scikit-learn for its digits: install the extra, jaxsolvers[cli]"
        ) from None
    began = time.perf_counter()
    device = jax.devices()[0]
    print(f"jax {jax.__version__} on {device.platform} ({device.device_kind})\n")

    digits = load_digits()
    X = (digits.data / 16).astype(np.float32)
    shuffled = np.random.default_rng(0).permutation(len(X))
    train, held_out = shuffled[:1200], shuffled[1200:]
    print(f"Digits: {len(train)} rows, 10 rankers, {epochs} epochs, {len(held_out)} held out")
    solvers: dict[str, Solver] = {
        "Pegasos(1e-3), averaged": Averaged(Pegasos(1e-3)),
        "AdaGradRDA(0.1)": AdaGradRDA(0.1),
    }
    for name, solver in solvers.items():
        fit, seconds = _timed(
            partial(
                fit_one_vs_rest,
                solver,
                X[train],
                digits.target[train],
                epochs=epochs,
                intercept="column",
            )
        )
        _print_quality(name, fit, X[held_out], digits.target[held_out])
        print(f"    first fit, compiling included: {seconds:.2f} s")

    print(f"\nSynthetic: {n_rows} rows, 784 features, {n_rankers} rankers, one pass")
    X, y = blobs(2 * n_rows, 784, n_rankers)
    train, held_out = np.arange(n_rows), np.arange(n_rows, 2 * n_rows)
    classes = np.arange(n_rankers)
    sized: dict[str, tuple[Solver, int]] = {
        "Pegasos(1e-2), exact rounds": (Pegasos(1e-2), 1),
        "AdaGradRDA(0.1), batches of 64": (AdaGradRDA(0.1), min(64, n_rows)),
    }
    for name, (solver, batch_size) in sized.items():
        once = partial(
            fit_one_vs_rest,
            solver,
            X[train],
            y[train],
            classes=classes,
            batch_size=batch_size,
            positive_weight=max(1, n_rankers / 10),  # positives are rare
        )
        _, first = _timed(once)
        fit, seconds = _timed(once)
        _print_quality(name, fit, X[held_out], y[held_out])
        rate = n_rows * n_rankers / seconds
        print(f"    {rate:,.0f} rows x rankers per second ({seconds:.3f} s; first {first:.2f} s)")
    print(f"\nAll of it: {time.perf_counter() - began:.1f} s")


def _timed(train: Callable[[], Fit]) -> tuple[Fit, float]:
    began = time.perf_counter()
    fit = train()
    jax.block_until_ready(fit.model.coef)
    return fit, time.perf_counter() - began


def _print_quality(name: str, fit: Fit, X: np.ndarray, y: np.ndarray) -> None:
    classes = np.asarray(fit.model.classes)
    accuracy = 1 - float(error_rate(y, fit.model.predict(X)))
    present = np.isin(classes, y)  # a ranker without positives has no precision
    scores = np.asarray(fit.model.decision_function(X))[:, present]
    targets = y[:, None] == classes[present][None]
    precision = float(np.mean(np.asarray(average_precision(targets, scores))))
    print(f"  {name}: accuracy {accuracy:.3f}, mean average precision {precision:.3f}")
