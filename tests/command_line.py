"""Runs of the command line in this process, and the small files they read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import sparse

from jaxsolvers import cli
from jaxsolvers.data import write_svmlight

N, D = 48, 12


class Done(NamedTuple):
    """How a run ended."""

    code: int
    out: str
    err: str


class Runner:
    """Runs a command and gathers what it printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: Any) -> Done:
        self._capsys.readouterr()
        try:
            code = cli.main([str(word) for word in words])
        except SystemExit as stop:  # argparse's way to end
            assert isinstance(stop.code, int)
            code = stop.code
        return Done(code, *self._capsys.readouterr())

    def fine(self, *words: Any) -> str:
        """What a run that must succeed printed; nothing on standard error."""
        done = self(*words)
        assert done.code == 0 and done.err == "", done
        return done.out

    def refused(self, *words: Any) -> str:
        """The one line of a run that must end with 2."""
        done = self(*words)
        assert done.code == 2, done
        assert done.err.startswith("jaxsolvers: error: "), done
        assert done.err.count("\n") == 1 and "Traceback" not in done.err, done
        return done.err


def rows(seed: int = 0, n: int = N) -> Any:
    """Sparse rows of multiples of 1/8, whose sums are exact in float32."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-8, 9, (n, D)) * (rng.random((n, D)) < 0.5) / 8
    X[:, 0] = rng.choice([0.125, 0.5], n)  # no row is empty
    X[0] = 0.25  # every column is used
    return sparse.csr_array(X.astype(np.float32))


def labels(task: str, X: Any) -> Any:
    """Labels that the rows decide."""
    rng = np.random.default_rng(7)
    scores = X.toarray() @ rng.normal(size=(D, 4)) + np.array([0.0, 0.1, 0.2, 0.3])
    if task == "binary":
        return np.where(scores[:, 0] > 0, 1, -1)
    if task == "multiclass":
        return scores[:, :3].argmax(axis=1) * 2 + 1
    if task == "multilabel":
        return sparse.csr_array(scores > 0.3)
    return np.round(scores[:, 0] + 0.01, 3)


def save(folder: Path, task: str, form: str, seed: int = 0) -> Path:
    """A data file of a task: "svm", "svm.gz", "npz" (sparse rows) or "dense.npz"."""
    path = folder / f"{task}{seed}.{form}"
    X = rows(seed)
    y = labels(task, X)
    if form.startswith("svm"):
        write_svmlight(str(path), X, y, multilabel=task == "multilabel")
    elif form == "dense.npz":
        np.savez(path, X=X.toarray(), y=y.toarray() if task == "multilabel" else y)
    else:
        sparse.save_npz(path, X)
        beside = path.with_suffix(".labels.npz" if task == "multilabel" else ".labels.npy")
        if task == "multilabel":
            sparse.save_npz(beside, y)
        else:
            np.save(beside, y)
    return path


def labels_option(path: Path) -> list[str]:
    """The option for labels that lie in a file beside the data, if they do."""
    beside = [path.with_suffix(f".labels.{end}") for end in ("npy", "npz")]
    return [word for one in beside if one.exists() for word in ("--labels", str(one))]
