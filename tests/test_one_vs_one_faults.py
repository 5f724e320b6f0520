"""One-vs-one: what is refused, before anything is traced or allocated."""

from __future__ import annotations

import tracemalloc
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from jax.sharding import Mesh

import jaxsolvers as js
from jaxsolvers.engine import room
from jaxsolvers.engine.tile import advance, begin

F = jnp.result_type(float)
X = np.random.default_rng(5).normal(size=(12, 3)).astype(F)
Y = np.array(["a", "b", "c", "d"])[np.arange(12) % 4]
PEGASOS = js.Pegasos(0.1)
GROUPS = js.regularizers.GroupL2(0.1, axis=-2)
DEAD = np.where(Y == "c", 0.0, 1.0)
TWO = Mesh(np.array(jax.devices()[:2]), ("rankers",))

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "one class": ("y must hold at least two classes, got only 'a'", {"y": ["a"] * 12}),
    "short y": (r"y must have one entry per row of X \(12\), got 3", {"y": Y[:3]}),
    "indicator": ("y must be 1-d", {"y": np.eye(12)}),
    "sets": ("y must be one label per row", {"y": np.array([*[(1, 2)] * 11, (1,)], object)}),
    "missing label": ("y must be labels without NaN", {"y": np.array([np.nan, *range(11)])}),
    "no y": ("y must be given", {"y": None}),
    "NaN": ("X must be finite", {"X": np.full((12, 3), np.nan, F)}),
    "width": (r"X must be 2-d", {"X": X[0]}),
    "source": ("X must be an array or a sparse", {"X": js.data.ArraySource(X, Y)}),
    "joint loss": (
        "loss must be a loss of one score",
        {"solver": js.AdaGradRDA(0.1, loss=js.losses.MulticlassHinge())},
    ),
    "coupled": (
        "regularizer GroupL2 couples rankers", {"solver": js.AdaGradRDA(0.1, regularizer=GROUPS)},
    ),
    "looks at all rows": ("solver must not look at all rows", {"solver": js.SVRG(0.1)}),
    "a bias of all rows": (
        "solver must not look at all rows",
        {"solver": js.Pegasos(0.1, bias="batch"), "batch_size": 2},
    ),
    "own vectors": (
        "solver must not have support vectors",
        {"solver": js.BudgetedPegasos(0.1, js.kernels.RBF(1.0), 3)},
    ),
    "no solver": ("solver must be a jaxsolvers solver", {"solver": "pegasos"}),
    "bad number": ("lam must be", {"solver": js.Pegasos(-1.0)}),
    "numbers": (
        r"lam must be one number or one per pair \(6\), got an array of shape \(4,\)",
        {"solver": js.Pegasos(np.full(4, 0.1))},
    ),
    "kernel numbers": (
        "kernel.gamma must be a single number",
        {"solver": js.KernelPegasos(0.1, js.kernels.RBF(np.full(6, 0.1)))},
    ),
    "dead class": (
        "sample_weight must leave every class a row, got none for 'c'", {"sample_weight": DEAD},
    ),
    "negative weight": ("sample_weight must be non-negative", {"sample_weight": -DEAD}),
    "batch": ("batch_size must be at most the number of rows 6, got 7", {"batch_size": 7}),
    "chunk": ("chunk_size must be an integer >= 1, got 0", {"chunk_size": 0}),
    "record": (r"record must be \(\) or \('theory',\)", {"record": ("objective",)}),
    "epochs": ("epochs must be", {"epochs": 0}),
    "state": ("state must be the state of an earlier fit", {"state": 3}),
    "devices": ("mesh must have one device for sparse", {
        "X": scipy.sparse.csr_array(X), "mesh": TWO,
    }),
    "kernel on columns": (
        "X must be the square matrix", {"solver": js.KernelPegasos(0.1, js.kernels.Precomputed())},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_refused_before_tracing(name):
    message, given = CASES[name]
    arguments = {"solver": PEGASOS, "X": X, "y": Y} | given
    before = advance._cache_size(), begin._cache_size()
    with pytest.raises(ValueError, match=f"^{message}"):
        js.fit_one_vs_one(**arguments)
    assert (advance._cache_size(), begin._cache_size()) == before


@pytest.mark.parametrize("chunk_size", [None, 64])
def test_absurdly_many_classes_are_refused_before_anything_is_made(chunk_size):
    n = 20_000
    rows = np.broadcast_to(np.ones(1, F), (n, 1000))
    tracemalloc.start()
    message = (
        r"y holds K = 20,000 classes, which are 199,990,000 pairs: their weights "
        r"\(199,990,000 x 1,000 float\d\d\) take [\d,]{15,} bytes .*"
        r"of [\d,]+ bytes of memory; js.fit_one_vs_rest trains 20,000 rankers"
    )
    with pytest.raises(ValueError, match=message):
        js.fit_one_vs_one(PEGASOS, rows, np.arange(n), chunk_size=chunk_size)
    assert tracemalloc.get_traced_memory()[1] < 60e6
    tracemalloc.stop()


def test_room_is_that_of_the_device_where_it_tells(monkeypatch):
    class Device:
        def memory_stats(self) -> dict[str, int]:
            return {"bytes_limit": 1000}

    assert room.memory_bytes(Device()) == 1000
    assert room.memory_bytes(None) == room.memory_bytes(jax.devices("cpu")[0]) > 1 << 28
    monkeypatch.setattr(room.os, "sysconf", None)
    monkeypatch.delattr(room.os, "sysconf")
    assert room.memory_bytes(None) == room.UNKNOWN_BYTES
    # SDCA: a counter, d weights, a number per row.
    one = room.state_bytes(js.SDCA(np.full(3, 0.1)), 10, 20, np.dtype(F))
    assert 30 * np.dtype(F).itemsize <= one <= 30 * np.dtype(F).itemsize + 16


def test_states_of_other_fits_are_refused():
    pairs = js.fit_one_vs_one(js.SDCA(0.1), X[:9], Y.repeat(3)[:9])
    labels = Y.repeat(3)[:9]
    rest = js.fit_one_vs_rest(js.SDCA(0.1), X[:9], labels)
    single = js.fit(js.SDCA(0.1), X[:9], labels == "a")
    for state in (rest.state, single.state):
        with pytest.raises(ValueError, match=r"^(state was made with|y holds the label)"):
            js.fit_one_vs_one(js.SDCA(0.1), X[:9], labels, state=state)
    with pytest.raises(ValueError, match=r"^state was made with"):
        js.fit_one_vs_rest(js.SDCA(0.1), X[:9], labels, state=pairs.state)
    with pytest.raises(ValueError, match=r"^state must be one of"):
        js.metrics.duality_gap(js.SDCA(0.1), pairs.state, X[:9], labels)
    with pytest.raises(ValueError, match=r"^y holds the label 'z'"):
        js.fit_one_vs_one(js.SDCA(0.1), X[:9], ["z", *labels[1:]], state=pairs.state)
    with pytest.raises(ValueError, match=r"^y must leave every class a row, got none for 'c'"):
        js.fit_one_vs_one(js.SDCA(0.1), X[:6], labels[:6], state=pairs.state)
