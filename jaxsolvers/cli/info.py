"""``jaxsolvers info``: what is in a model or a data file."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxsolvers.cli.archives import read_npz
from jaxsolvers.cli.files import kind_of
from jaxsolvers.cli.model_files import is_model, load_model, size_of, task_of, version_of
from jaxsolvers.cli.reading import BLOCK_ROWS, look_at, zero_based_of
from jaxsolvers.cli.reports import count, print_json, print_report, share, shown
from jaxsolvers.cli.tally import Tally
from jaxsolvers.csr import Csr, is_sparse
from jaxsolvers.data.svmlight_stream import iter_svmlight

_SHOWN = 10  # labels that are printed


def run(options: argparse.Namespace) -> None:
    """Print what the file holds.

    Raises:
      ValueError: neither a model nor data, or faulty data.
    """
    if kind_of(options.file) == "npz" and is_model(options.file):
        found = _of_model(options.file)
    else:
        found = _of_data(options)
    if options.json:
        print_json(found)
    else:
        print_report({name.replace("_", " "): _text(name, value) for name, value in found.items()})


def _of_model(path: str) -> dict[str, Any]:
    model, notes = load_model(path)
    return {
        "kind": "model",
        "task": task_of(model),
        "shape": list(model.coef.shape),
        "classes": None if model.classes is None else model.classes.tolist(),
        "dtype": str(model.coef.dtype),
        "stored": "sparse" if isinstance(model.coef, Csr) else "dense",
        "density": model.density,
        "intercept": bool(np.any(np.asarray(model.intercept) != 0)),
        "training": notes or None,
        "format_version": version_of(path),
        "bytes": size_of(path),
    }


def _of_data(options: argparse.Namespace) -> dict[str, Any]:
    seen = look_at(options.file, options.labels)
    tally = Tally()
    if seen is None:
        X, y = read_npz(options.file, options.labels, np.dtype(np.float64))
        tally.add(X, y)
        kind = {"kind": "npz", "stored": "sparse" if is_sparse(X) else "dense"}
        return kind | tally.result() | {"bytes": size_of(options.file)}
    stream = iter_svmlight(
        options.file,
        BLOCK_ROWS,
        zero_based=zero_based_of(options.zero_based),
        multilabel=seen.several or seen.unlabelled,
        query_id=seen.queries,
        dtype="float64",
        header=options.header,
    )
    for chunk in stream:
        tally.add(*chunk)
    first = {"first_index": 0 if stream.zero_based else 1}
    return {"kind": "svmlight"} | tally.result() | first | {"bytes": size_of(options.file)}


def _text(name: str, value: Any) -> str:
    if name == "density":
        return share(value)
    if name == "shape":
        return " x ".join(map(count, value))
    if name == "classes" and value is not None:
        more = ", ..." if len(value) > _SHOWN else ""
        return f"{count(len(value))}: {', '.join(map(str, value[:_SHOWN]))}{more}"
    if name == "labels" and value is not None:
        first = [f"{label} ({shown(number)})" for label, number in list(value.items())[:_SHOWN]]
        more = ", ..." if len(value) > _SHOWN else ""
        return f"{count(len(value))} (rows): {', '.join(first)}{more}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {shown(one)}" for key, one in value.items())
    return shown(value)
