"""A first-order solver as an optax transformation: every leaf is one weight vector of its own.

The state is the solver's own turned inside out: each of its arrays is a tree like the params, so
that it is mapped and sharded as they are, and what all leaves share is there once. An update puts
the state of a leaf together, lets the solver absorb the gradient and asks it for the weights: no
formula of a solver stands here a second time.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxsolvers.checks import MAX_COUNT
from jaxsolvers.members import Array, is_schedule
from jaxsolvers.protocol import Problem, Regularizer, State
from jaxsolvers.regularizers import NoRegularizer
from jaxsolvers.transforms.leaves import (
    gradients_of,
    is_function,
    leaves_of,
    move,
    regularizers_in,
    regularizers_of,
    widest,
    working_dtype,
)

__all__ = ["SolverState", "following", "leafwise"]


class SolverState(NamedTuple):
    """The state of a transformation that runs a first-order solver on each leaf."""

    count: Array  # type: ignore[assignment]  # () int32, rounds done; stays at 2^31 - 1
    held: Any  # the solver's state: a tree like params for each array, None for what is not kept


def following(count: Array) -> Array:
    """The number of the round after ``count`` rounds; the last number there is repeats."""
    return jnp.minimum(count, MAX_COUNT - 1) + 1


def leafwise(
    name: str, solver: Any, regularizer: Any, master: bool = False, vectors: bool = False
) -> optax.GradientTransformationExtraArgs:
    """``solver`` on every leaf.

    Args:
      name: what messages call it.
      solver: a FirstOrder member; a schedule as its learning rate counts from 0.
      regularizer: what :func:`regularizers_of` takes.
      master: whether the weights of a mirror form are kept in the state; they are the params
        otherwise. Forms that compute their weights from sums have none to keep.
      vectors: whether the solver takes vectors only, and starts unlike in its coordinates: each
        leaf is then raveled, and one without entries is a coordinate without gradient.
    """
    for own in [NoRegularizer(), *regularizers_in(regularizer)]:
        _validate(solver, own)

    def init(params: Any) -> SolverState:
        leaves, structure = leaves_of(params, name)
        if is_function(regularizer):
            for own in regularizers_of(regularizer, params):
                _validate(solver, own)
        rows = []
        for leaf in leaves:
            layout = _Layout.of(solver, working_dtype(leaf.dtype), master, vectors)
            rows.append(layout.start(solver, leaf, name))
        layout = _Layout.of(solver, widest(leaves), master, vectors)
        held = layout.joined(layout.row(layout.seed), rows, structure)
        return SolverState(jnp.zeros((), jnp.int32), held)

    def update(
        updates: Any, state: SolverState, params: Any = None, **extra_args: Any
    ) -> tuple[Any, SolverState]:
        leaves, structure = leaves_of(params, name)
        gradients = gradients_of(updates, params, name)
        owns = regularizers_of(regularizer, params)
        rate = solver.learning_rate
        if is_schedule(rate):
            rate = rate(state.count)
        count = following(state.count)
        layout = _Layout.of(solver, widest(leaves), master, vectors)

        def absorb(own: Regularizer, before: State, gradient: Array) -> tuple[Any, State]:
            member = _member(solver, own, rate, gradient.dtype)
            before = before._replace(t=count - 1)
            if "residual" in before._fields:  # what a round reports, and no round reads
                before = before._replace(residual=jnp.zeros((), gradient.dtype))
            return member, member.absorb(before, gradient)

        moves, rows = [], []
        for own, leaf, gradient, before in zip(
            owns, leaves, gradients, layout.parted(state.held, structure), strict=True
        ):
            dtype = working_dtype(leaf.dtype)
            before = jax.tree.map(lambda array, dtype=dtype: array.astype(dtype), before)
            if layout.borrows:
                before = before._replace(current=layout.taken(jnp.asarray(leaf, dtype)))
            member, after = absorb(own, before, layout.taken(gradient.astype(dtype)))
            weights = member.weights(after)
            if vectors:
                weights = weights[: leaf.size].reshape(leaf.shape)
            moves.append(move(leaf, weights))
            rows.append(layout.row(after))
        # What all leaves share moves as for one coordinate more.
        _, after = absorb(NoRegularizer(), layout.shared(state.held), layout.zero)
        held = layout.joined(layout.row(after), rows, structure)
        return structure.unflatten(moves), SolverState(count, held)

    return optax.GradientTransformationExtraArgs(init, update)


@dataclasses.dataclass(frozen=True)
class _Layout:
    """Which fields of a solver's state are kept, and which of them all leaves share."""

    seed: State  # of a single coordinate at 0
    zero: Array  # its weights
    borrows: bool  # whether the weights are the params
    vectors: bool  # whether leaves are raveled
    structure: Any  # of the fields kept
    once: list[bool]  # which of these are shared

    @classmethod
    def of(cls, solver: Any, dtype: Any, master: bool, vectors: bool) -> _Layout:
        zero = jnp.zeros((1,) if vectors else (), dtype)
        member = _member(solver, NoRegularizer(), 0.0, dtype)
        seed = member.init(Problem(zero.shape, centre=zero), dtype)
        borrows = "current" in seed._fields and not master
        names, structure = jax.tree.flatten(
            _kept(seed.axes, borrows), is_leaf=lambda node: type(node) is tuple
        )
        return cls(seed, zero, borrows, vectors, structure, [name == () for name in names])

    def taken(self, leaf: Array) -> Array:
        """A leaf as the solver takes it."""
        if not self.vectors:
            return leaf
        return leaf.reshape(-1) if leaf.size else self.zero.astype(leaf.dtype)

    def start(self, solver: Any, leaf: Any, name: str) -> list[Any]:
        """The kept fields of a leaf before round 1: all coordinates alike, but for their values."""
        dtype = self.zero.dtype
        keeps = [getattr(self.seed, "centre", None) is not None, "current" in self.seed._fields]
        keeps[1] = keeps[1] and not self.borrows
        if any(keeps) and isinstance(leaf, jax.ShapeDtypeStruct):
            raise ValueError(
                f"{name} keeps the values of params: init must have arrays (jax.eval_shape works "
                f"with shapes), got {leaf}"
            )
        if self.vectors:
            values = jnp.asarray(leaf, dtype) if any(keeps) else jnp.zeros(leaf.shape, dtype)
            centre = self.taken(values)
            member = _member(solver, NoRegularizer(), 0.0, dtype)
            return self.row(member.init(Problem(centre.shape, centre=centre), dtype))
        pairs = zip(self.row(self.seed), self.once, strict=True)
        # Like the leaf, that is on the same devices.
        row = [
            number if once else jnp.full_like(leaf, number, dtype=dtype) for number, once in pairs
        ]
        state = self.structure.unflatten(row)
        for field, kept in zip(("centre", "current"), keeps, strict=True):
            if kept:
                state = state._replace(**{field: jnp.array(leaf, dtype)})
        return self.row(state)

    def row(self, state: State) -> list[Any]:
        """The kept fields of a state."""
        return self.structure.flatten_up_to(_kept(state, self.borrows))

    def joined(self, shared: list[Any], rows: list[list[Any]], structure: Any) -> State:
        """The states of all leaves as one, with a tree for each array."""
        fields = [
            own if once else structure.unflatten([row[j] for row in rows])
            for j, (own, once) in enumerate(zip(shared, self.once, strict=True))
        ]
        return self.structure.unflatten(fields)

    def parted(self, held: State, structure: Any) -> list[State]:
        """The state of each leaf."""
        n = structure.num_leaves
        columns = [
            [field] * n if once else structure.flatten_up_to(field)
            for field, once in zip(self.row(held), self.once, strict=True)
        ]
        return [self.structure.unflatten([column[i] for column in columns]) for i in range(n)]

    def shared(self, held: State) -> State:
        """The state of the seed with what all leaves share."""
        pairs = zip(self.row(held), self.row(self.seed), self.once, strict=True)
        fields = [field if once else own for field, own, once in pairs]
        kept = self.structure.unflatten(fields)
        return kept._replace(current=self.zero) if self.borrows else kept


def _kept(state: State, borrows: bool) -> State:
    """``state`` without its counter, and without its weights where the params are."""
    dropped = ["t", "current"] if borrows else ["t"]
    dropped += ["residual"] if "residual" in state._fields else []
    return state._replace(**dict.fromkeys(dropped))


def _member(solver: Any, own: Regularizer, rate: Any, dtype: Any) -> Any:
    # The rate is always a function: its sum is then part of the state, and a number that changes
    # between updates, as optax.inject_hyperparams makes it, counts as what it was each time.
    member = dataclasses.replace(solver, regularizer=own, learning_rate=lambda t: rate)
    return member.cast(dtype)


def _validate(solver: Any, own: Regularizer) -> None:
    """Check what is known: traced numbers are let through, and a schedule is not asked."""
    known: dict[str, Any] = {"regularizer": own}
    if is_schedule(solver.learning_rate):
        known["learning_rate"] = 1.0
    if isinstance(getattr(solver, "delta", None), jax.core.Tracer):
        known["delta"] = 1.0
    dataclasses.replace(solver, **known).validate()
