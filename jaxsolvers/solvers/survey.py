"""Surveys: passes over all rows before an epoch, for solvers that look before they step."""

from __future__ import annotations

from typing import Any

from jaxsolvers.members import Array, member, part
from jaxsolvers.protocol import Batch, Info, Solver, State

__all__ = ["Survey", "within"]


class Survey(Solver):
    """A pass over all rows, each seen once, in any order and in blocks of any size.

    It is run like an epoch of a solver, and so it has every layout, device and fault that an epoch
    has: :meth:`update` takes in the rows of a batch. The state it goes through is the solver's
    own as :meth:`open` hands it over; :meth:`close` makes it the solver's again.
    """

    solver: Any

    @property
    def loss(self) -> Any:
        return self.solver.loss

    def open(self, state: State) -> State:
        """The state to be carried through the pass, of a type that names its axes in it."""
        raise NotImplementedError

    def close(self, state: State) -> State:
        """The solver's state after the pass."""
        raise NotImplementedError

    def sweep(self, state: State, block: Batch, batch_size: int = 1) -> tuple[State, Info]:
        return self.update(state, block)


@member
class _Within(Survey):
    """A survey of the solver in a wrapper whose state has it in the field ``inner``."""

    survey: Any = part(Survey)

    @property
    def solver(self) -> Any:
        return self.survey.solver

    def open(self, state: State) -> State:
        return state._replace(inner=self.survey.open(state.inner))

    def close(self, state: State) -> State:
        return state._replace(inner=self.survey.close(state.inner))

    def update(self, state: State, batch: Batch) -> tuple[State, Info]:
        inner, info = self.survey.update(state.inner, batch)
        return state._replace(inner=inner), info

    def weights(self, state: State) -> Array:
        return self.survey.weights(state.inner)


def within(surveys: tuple[Any, ...]) -> tuple[Any, ...]:
    """The surveys of a solver as those of a wrapper around it."""
    return tuple(_Within(survey) for survey in surveys)
