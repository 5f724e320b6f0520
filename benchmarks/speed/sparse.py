"""Sparse rows: jaxsolvers, scikit-learn and LIBLINEAR in one run.

    python -m benchmarks.speed.sparse              the full run, results/sparse.json
    python -m benchmarks.speed.sparse --tiny       seconds, for the tests

Tasks, from SciPy CSR to ``model.coef``, times after a first call:
  F  one binary problem, 20,000 rows, 50,000 features, 75 non-zeros; Pegasos, exact rounds, 5 passes
  G  1,000 rankers, 2,000 rows, 10,000 features, 200 non-zeros; Pegasos, exact rounds, one pass
  H  many labels to equal precision: `delicious` (983) and 5,000 labels of `wordnet_hypernyms`
     (real sets; left out where the folder is absent), beside LIBLINEAR one-vs-rest
The peer of F and G is SGDClassifier (hinge; as many passes, no stopping rule).
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxsolvers as js
from benchmarks import real_sets, recording

FULL = {
    "F": {"n": 20_000, "d": 50_000, "non_zeros": 75, "rankers": 1, "passes": 5},
    "G": {"n": 2_000, "d": 10_000, "non_zeros": 200, "rankers": 1000, "passes": 1},
}
TINY = {
    "F": {"n": 200, "d": 300, "non_zeros": 8, "rankers": 1, "passes": 2},
    "G": {"n": 100, "d": 200, "non_zeros": 8, "rankers": 20, "passes": 1},
}
WITHIN = 0.005  # of LIBLINEAR's precision counts as equal to it
LABELS = {"delicious": 983, "wordnet_hypernyms": 5000}  # of H: the most frequent
GOALS = {"F": 2, "G": 10, "H": 10}


def measure(task: str, shape: dict[str, int], repeats: int) -> dict[str, Any]:
    """F or G: ours and SGDClassifier."""
    n, rankers, passes = shape["n"], shape["rankers"], shape["passes"]
    X, y = js.data.sparse_text(n, shape["d"], max(2, rankers), nnz=shape["non_zeros"])
    solver = js.Pegasos(1e-4)

    def ours() -> js.Fit:
        if rankers == 1:
            fit = js.fit(solver, X, y, epochs=passes)
        else:
            fit = js.fit_one_vs_rest(solver, X, y, epochs=passes)
        jax.block_until_ready(fit.model.coef)
        return fit

    seconds, fit = recording.timed(ours, repeats)
    peer, model = recording.timed(lambda: sgd(X, y, passes), max(3, repeats // 3))
    work = X.nnz * rankers * passes
    return {
        "task": task,
        **shape,
        "measured_non_zeros": int(X.nnz),
        "solver": repr(solver),
        "seconds": seconds,
        "seconds_sgdclassifier": peer,
        "ratio": peer["median"] / seconds["median"],
        "goal_ratio": GOALS[task],
        "ns_per_non_zero_and_ranker": 1e9 * seconds["median"] / work,
        "rows_per_block": fit.state.settings.block_size,
        "accuracy": float(np.mean(fit.model.predict(X) == y)),
        "accuracy_sgdclassifier": float(np.mean(model.predict(X) == y)),
    }


def sgd(X: Any, y: np.ndarray, passes: int) -> Any:
    """scikit-learn's SGD with the hinge loss."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import SGDClassifier

    model = SGDClassifier(
        alpha=1e-4, max_iter=passes, tol=None, fit_intercept=False, n_jobs=2, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def many_labels(name: str, labels: int, repeats: int) -> dict[str, Any]:
    """H: passes of ours until precision@1, 3 and 5 on the test rows equal LIBLINEAR's."""
    from sklearn.svm import LinearSVC

    data = real_sets.with_positives(real_sets.load(name), labels)
    columns = data.y.tocsc()
    began = time.perf_counter()
    models = [
        LinearSVC(C=1.0, random_state=0).fit(data.X, columns[:, k].toarray().ravel().astype(int))
        for k in range(data.y.shape[1])
    ]
    peer = time.perf_counter() - began
    coef = np.stack([model.coef_[0] for model in models]).astype(np.float32)
    intercept = np.array([model.intercept_[0] for model in models], np.float32)
    theirs = precision(data, js.LinearModel(coef, intercept, None))
    loss = js.losses.SquaredHinge()  # LIBLINEAR's
    solver = js.AdaGradRDA(0.3, 1.0, loss=loss, regularizer=js.regularizers.L1(1e-6))
    settings: dict[str, Any] = {"intercept": "column"}
    passes, reached, fit = 0, False, None
    while not reached and passes < 10:
        passes += 1
        fit = js.fit_one_vs_rest(
            solver, data.X, data.y, state=None if fit is None else fit.state,
            **(settings if fit is None else {}),
        )  # fmt: skip
        ours = precision(data, fit.model)
        reached = all(ours[k] >= theirs[k] - WITHIN for k in ours)

    def again() -> None:
        whole = js.fit_one_vs_rest(solver, data.X, data.y, epochs=passes, **settings)
        jax.block_until_ready(whole.model.coef)

    seconds, _ = recording.timed(again, repeats)
    return {
        "task": "H",
        "set": name,
        "rows": data.X.shape[0],
        "labels": data.y.shape[1],
        "passes": passes,
        "reached": reached,
        "seconds": seconds,
        "seconds_liblinear": peer,
        "ratio": peer / seconds["median"],
        "goal_ratio": GOALS["H"],
        "precision": ours,
        "precision_liblinear": theirs,
    }


def precision(data: real_sets.RealSet, model: js.LinearModel) -> dict[int, float]:
    """Precision@1, 3 and 5 of each test row's best labels, the mean over rows."""
    best = np.asarray(model.top_k(data.test_X, 5)[0])
    rows = np.arange(len(best))
    hits = np.stack([np.asarray(data.test_y[rows, best[:, j]]).ravel() for j in range(5)])
    return {k: float(hits[:k].mean()) for k in (1, 3, 5)}


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tiny", action="store_true", help="small sizes, for tests")
    parser.add_argument("--tasks", default="FGH", help="which tasks (FGH)")
    parser.add_argument("--sets", nargs="*", default=list(LABELS), choices=LABELS, help="of H")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--out", type=Path, default=None, help="folder of the results")
    options = parser.parse_args(arguments)
    shapes = TINY if options.tiny else FULL
    repeats = 1 if options.tiny else options.repeats
    record: dict[str, Any] = {"environment": recording.environment(), "tasks": []}
    for task in options.tasks.replace("H", ""):
        row = measure(task, shapes[task], repeats)
        record["tasks"].append(row)
        print(
            f"{task}: {row['seconds']['median']:.4f} s (first {row['seconds']['first']:.2f}), "
            f"SGDClassifier {row['seconds_sgdclassifier']['median']:.4f} s: {row['ratio']:.2f}x "
            f"(goal {row['goal_ratio']}x), {row['ns_per_non_zero_and_ranker']:.2f} ns per non-zero "
            f"and ranker, training accuracy {row['accuracy']:.3f} against "
            f"{row['accuracy_sgdclassifier']:.3f}"
        )
    real = "H" in options.tasks and not options.tiny and real_sets.folder() is not None
    for name in options.sets if real else ():
        row = many_labels(name, LABELS[name], 1)
        record["tasks"].append(row)
        print(
            f"H, {name}: {row['seconds']['median']:.2f} s for {row['passes']} passes, LIBLINEAR "
            f"{row['seconds_liblinear']:.1f} s: {row['ratio']:.1f}x (goal {row['goal_ratio']}x); "
            f"precision@1,3,5 {_list(row['precision'])} against {_list(row['precision_liblinear'])}"
        )
    path = recording.save("sparse", record, options.out)
    print(f"wrote {path}")
    return record


def _list(values: dict[int, float]) -> str:
    return ", ".join(f"{value:.3f}" for value in values.values())


if __name__ == "__main__":
    main()
