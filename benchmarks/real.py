"""Real data sets: accuracy, mean average precision and time beside LinearSVC and SGDClassifier.

    python -m benchmarks.real                      the sets below, results/real.json
    python -m benchmarks.real --sets bibtex        some of them
    python -m benchmarks.real --wordnet            all 17,157 classes of wordnet_hypernyms, one pass

Each set is learnt with AdaGrad-RDA and an l1 norm, three passes over the rows one by one. Its
numbers are chosen from GRID on a quarter of the training rows held out, by the same measure as the
table's; the time is that of the final fit on all training rows, after a first call. The peers keep
their defaults: LinearSVC (C = 1, one job per label) and SGDClassifier (hinge, alpha = 1/rows, five
passes).
"""

from __future__ import annotations

import argparse
import dataclasses
import resource
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxsolvers as js
from benchmarks import real_sets, recording
from benchmarks.real_sets import RealSet

TABLE = ("rcv1_topics_27k", "reuters_moneyfx", "adult_a9a", "news20_bydate", "bibtex", "delicious")
EPOCHS = 3
# (learning rate, delta, l1, weight of positive rows)
GRID = (
    (0.1, 0.0, 1e-6, 1.0),
    (0.3, 0.001, 1e-5, 1.0),
    (1.0, 1.0, 5e-6, 1.0),
    (1.0, 2.0, 5e-6, 3.0),
    (2.0, 2.0, 5e-6, 1.0),
)


@dataclasses.dataclass(frozen=True)
class Quality:
    """What a model is measured by on the test rows."""

    mean_average_precision: float | None  # over the labels that have a positive test row
    accuracy: float | None  # of labels, one per row
    precision_at_1: float | None  # of the best label of each row


def quality(data: RealSet, scores: Callable[[Any], np.ndarray]) -> Quality:
    """Measure (rows, labels) scores, or (rows,) of a binary set."""
    found = scores(data.test_X)
    if data.y.ndim == 1:
        classes = np.unique(data.y)
        if len(classes) == 2:
            guess = classes[(found > 0).astype(int)]
            targets = data.test_y == classes[1]
        else:
            guess = classes[found.argmax(axis=1)]
            targets = data.test_y[:, None] == classes[None]
        accuracy = float(np.mean(guess == data.test_y))
        return Quality(_mean_precision(targets, found), accuracy, None)
    best = found.argmax(axis=1)
    hits = np.asarray(data.test_y[np.arange(len(best)), best]).ravel()
    return Quality(_mean_precision(data.test_y.toarray(), found), None, float(np.mean(hits)))


def _mean_precision(targets: np.ndarray, scores: np.ndarray) -> float:
    targets, scores = targets.reshape(len(targets), -1), scores.reshape(len(scores), -1)
    some = targets.any(axis=0)
    values = js.metrics.average_precision(targets[:, some], scores[:, some])
    return float(np.mean(np.asarray(values)))


def fitted(data: RealSet, numbers: tuple[float, ...]) -> js.Fit:
    """Three passes of AdaGrad-RDA with an l1 norm."""
    rate, delta, strength, positive_weight = numbers
    solver = js.AdaGradRDA(rate, delta, regularizer=js.regularizers.L1(strength))
    common: dict[str, Any] = {"epochs": EPOCHS, "intercept": "column"}
    if data.y.ndim == 1 and len(np.unique(data.y)) == 2:
        fit = js.fit(solver, data.X, data.y, **common)
    else:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*have no positive row")
            fit = js.fit_one_vs_rest(
                solver, data.X, data.y, positive_weight=positive_weight, **common
            )
    jax.block_until_ready(fit.model.coef)
    return fit


def chosen(data: RealSet) -> tuple[float, ...]:
    """The numbers of GRID that do best on a quarter of the training rows."""
    rows = np.random.default_rng(0).permutation(data.X.shape[0])
    held, kept = np.split(rows, [len(rows) // 4])
    part = data._replace(X=data.X[kept], y=data.y[kept], test_X=data.X[held], test_y=data.y[held])

    def value(numbers: tuple[float, ...]) -> float:
        model = fitted(part, numbers).model
        found = quality(part, lambda X: np.asarray(model.decision_function(X)))
        return found.accuracy if found.accuracy is not None else found.mean_average_precision or 0

    return max(GRID, key=value)


def peers(data: RealSet) -> dict[str, tuple[float, Quality]]:
    """Seconds and quality of the peers, one binary problem per label."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import SGDClassifier
    from sklearn.svm import LinearSVC

    makers = {
        "LinearSVC": lambda: LinearSVC(random_state=0),
        "SGDClassifier": lambda: SGDClassifier(
            alpha=1 / data.X.shape[0], max_iter=5, tol=None, random_state=0, n_jobs=2
        ),
    }
    found = {}
    for name, make in makers.items():
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            if data.y.ndim == 1:
                model = make().fit(data.X, data.y)
                scores = model.decision_function
            else:
                columns = data.y.tocsc()
                models = [
                    make().fit(data.X, columns[:, k].toarray().ravel().astype(int))
                    for k in range(data.y.shape[1])
                ]
                scores = _stacked(models)
        found[name] = (time.perf_counter() - began, quality(data, scores))
    return found


def _stacked(models: list[Any]) -> Callable[[Any], np.ndarray]:
    return lambda X: np.stack([model.decision_function(X) for model in models], axis=1)


def measure(name: str) -> dict[str, Any]:
    """One set: ours and the peers."""
    data = real_sets.load(name)
    if data.y.ndim == 2:
        data = real_sets.with_positives(data)
    numbers = chosen(data)
    seconds, fit = recording.timed(lambda: fitted(data, numbers), 3)
    row: dict[str, Any] = {
        "set": name,
        "rows": data.X.shape[0],
        "features": data.X.shape[1],
        "labels": data.n_labels,
        "non_zeros": int(data.X.nnz),
        "epochs": EPOCHS,
        "numbers": numbers,
        "seconds": seconds,
        "density": fit.model.density,
    }
    row["jaxsolvers"] = dataclasses.asdict(
        quality(data, lambda X: np.asarray(fit.model.decision_function(X)))
    )
    for peer, (elapsed, found) in peers(data).items():
        row[peer] = {"seconds": elapsed, **dataclasses.asdict(found)}
    return row


def wordnet(limit: int | None = None) -> dict[str, Any]:
    """All classes of wordnet_hypernyms in one pass: time, memory, precision of the best labels."""
    data = real_sets.load("wordnet_hypernyms")
    if limit is not None:
        data = real_sets.with_positives(data, limit)
    solver = js.AdaGradRDA(0.3, 0.01, regularizer=js.regularizers.L1(1e-6))
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*have no positive row")
        fit = js.fit_one_vs_rest(solver, data.X, data.y, positive_weight=30.0, intercept="column")
    jax.block_until_ready(fit.model.coef)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    rows = np.arange(0, data.test_X.shape[0], max(1, data.test_X.shape[0] // 4000))
    best, _ = fit.model.top_k(data.test_X[rows], 5)
    truth = data.test_y[rows]
    hits = np.stack(
        [np.asarray(truth[np.arange(len(rows)), np.asarray(best[:, j])]).ravel() for j in range(5)]
    )
    work = data.X.nnz * data.y.shape[1]
    return {
        "labels": data.y.shape[1],
        "rows": data.X.shape[0],
        "features": data.X.shape[1],
        "non_zeros": int(data.X.nnz),
        "seconds": seconds,
        "non_zeros_times_rankers_per_second": work / seconds,
        "peak_bytes": peak,
        "precision_at": {k: float(hits[:k].mean()) for k in (1, 3, 5)},
        "density": fit.model.density,
    }


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sets", nargs="*", default=list(TABLE), choices=TABLE)
    parser.add_argument("--wordnet", action="store_true", help="only wordnet_hypernyms")
    parser.add_argument("--labels", type=int, default=None, help="wordnet: the most frequent only")
    parser.add_argument("--out", type=Path, default=None, help="folder of the results")
    options = parser.parse_args(arguments)
    if real_sets.folder() is None:
        raise SystemExit("the real data sets are absent: set JAXSOLVERS_DATA to their folder")
    record: dict[str, Any] = {"environment": recording.environment()}
    if options.wordnet:
        record["wordnet"] = found = wordnet(options.labels)
        print(
            f"wordnet_hypernyms: {found['labels']:,} classes, {found['rows']:,} rows, one pass in "
            f"{found['seconds']:.1f} s = {found['non_zeros_times_rankers_per_second']:.3g} "
            f"non-zeros x rankers per second, peak {found['peak_bytes'] / 2**30:.2f} GiB, "
            f"precision@1,3,5 {', '.join(f'{v:.3f}' for v in found['precision_at'].values())}"
        )
        recording.save("wordnet", record, options.out)
        return record
    record["sets"] = []
    for name in options.sets:
        row = measure(name)
        record["sets"].append(row)
        print(f"{name}: {row['rows']:,} x {row['features']:,}, {row['labels']} labels")
        print(f"  jaxsolvers {row['seconds']['median']:.2f} s, {_words(row['jaxsolvers'])}")
        for peer in ("LinearSVC", "SGDClassifier"):
            print(f"  {peer} {row[peer]['seconds']:.2f} s, {_words(row[peer])}")
    print(f"wrote {recording.save('real', record, options.out)}")
    return record


def _words(found: dict[str, Any]) -> str:
    names = {
        "mean_average_precision": "mean average precision",
        "accuracy": "accuracy",
        "precision_at_1": "precision@1",
    }
    return ", ".join(
        f"{names[key]} {found[key]:.4f}" for key in names if found.get(key) is not None
    )


if __name__ == "__main__":
    main()
