"""What a fit hands back so that another one can continue it."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import jax
import numpy as np

from jaxsolvers.members import Array, arrays
from jaxsolvers.protocol import Solver, State


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a continued run must share with the run before it."""

    solver: tuple[tuple[str, str], ...]  # the solver's type, choices and numbers, by name
    batch_size: int
    order: str
    intercept: str
    block_size: int
    tile: int
    positive_weight: float | tuple[float, ...]  # one for all rankers, or one each
    negatives: float | None  # drawn per positive row
    output: str  # the form of y: "label", or a form of label sets
    n_features: int
    n_rankers: int
    together: int | None  # classes trained as one problem
    dtype: str
    classes: tuple[Any, ...] | None  # labels in the order of the rankers
    turns: tuple[int, ...] | None  # what each ranker of the tiles is called, if in another order
    label_dtype: str  # of the labels, as NumPy writes it


@arrays
class TrainState:
    """A run between two epochs: a pytree of arrays, the same whatever the devices or chunks."""

    solver_state: State  # of one ranker (js.fit), or a tuple of tiles of T rankers, dummies last
    last: Array | None  # (d,) round of each feature's last visit, for lazy updates
    alive: Any  # (K,) bool: False for a ranker whose numbers left the floats
    epoch: Any  # () int, epochs done
    position: Any  # () int, rows done in the epoch under way
    key_data: Any  # (2,) or (4,) uint32
    settings: Settings = dataclasses.field(metadata={"static": True})
    seen: Any = None  # what the stopping rule has seen, a stopping.Seen; None without one

    def tiles(self) -> tuple[State, ...]:
        """The solver's states as tiles with the rankers on the leading axis."""
        if np.ndim(self.alive) > 0:
            return self.solver_state
        return (jax.tree.map(lambda leaf: leaf[None], self.solver_state),)


def describe(solver: Solver) -> tuple[tuple[str, str], ...]:
    """The solver by name and value, arrays by digest: what must not change in a resumed run."""

    def walk(member: Any, prefix: str) -> Any:
        yield prefix + "type", type(member).__name__
        for name, spec, value in member.specs():
            if spec.kind == "member":
                yield from walk(value, f"{prefix}{name}.")
            elif spec.kind in ("choice", "setting"):
                yield prefix + name, repr(value)
            elif spec.kind in ("schedule", "function"):
                # Functions cannot be compared; their names tell most mistakes.
                yield prefix + name, getattr(value, "__qualname__", type(value).__name__)
            else:
                array = np.asarray(value, np.float64)
                digest = hashlib.sha256(array.tobytes()).hexdigest()[:16]
                text = repr(float(array)) if array.ndim == 0 else f"{array.shape} {digest}"
                yield prefix + name, text

    return tuple(walk(solver, ""))


def check_continues(before: Settings, now: Settings, blocks_given: bool) -> None:
    """Raise a ValueError that names the first argument that contradicts a state."""
    for field in dataclasses.fields(Settings):
        if field.name in ("solver", "label_dtype"):
            continue
        if field.name == "block_size" and not blocks_given:
            continue  # other rows (sparse after dense) may be handled in other blocks
        old, new = getattr(before, field.name), getattr(now, field.name)
        if old != new:
            name = _ARGUMENTS.get(field.name, field.name)
            raise ValueError(
                f"state was made with {field.name} = {_short(old)}, got {_short(new)}: see {name}"
            )
    # Numbers last: in another dtype all of them differ.
    then, given = dict(before.solver), dict(now.solver)
    for name in then | given:
        if then.get(name) != given.get(name):
            label = "solver" if name == "type" else f"solver.{name}"
            raise ValueError(
                f"state was made with {label} = {then.get(name)}, got {given.get(name)}; "
                "continue with the same solver"
            )


def check_examples(state: TrainState, n: int) -> None:
    """Raise a ValueError if the state keeps numbers for each of another number of rows."""
    first = state.tiles()[0]
    names = jax.tree.leaves(first.axes, is_leaf=lambda node: type(node) is tuple)
    for axes, leaf in zip(names, jax.tree.leaves(first), strict=True):
        if "example" in axes and leaf.shape[-1] != n:
            raise ValueError(
                f"state keeps numbers of {leaf.shape[-1]} rows and continues on the same ones, "
                f"got {n} in X"
            )


# Settings that follow from an argument of another name.
_ARGUMENTS = {
    "n_features": "X",
    "dtype": "X",
    "n_rankers": "y",
    "tile": "y",
    "output": "y",
    "together": "y",
}


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + " ..."
