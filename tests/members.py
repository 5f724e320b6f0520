"""The members of the package, found by walking its classes, and the sets the laws run over.

A member that is added to ``jaxsolvers.solvers``, ``.losses`` or ``.regularizers`` is met by every
law without a word here. It needs a NumPy reference; where that is missing a test says so.
"""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import pkgutil
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from references import losses as reference_losses
from references import regularizers as reference_regularizers

import jaxsolvers
from jaxsolvers.kernels import Kernel
from jaxsolvers.members import Member, Spec
from jaxsolvers.protocol import Loss, Regularizer, Solver
from jaxsolvers.regularizers.free_intercept import FreeIntercept
from jaxsolvers.solvers.first_order import FirstOrder
from jaxsolvers.solvers.linear_step import LinearStep

HOMES = ("jaxsolvers.solvers", "jaxsolvers.losses", "jaxsolvers.regularizers")
NUMBERS = (0.3, -0.3, 0.6, 1.0, 2.0, 0.0, -1.0)
STRENGTHS = (0.02, -0.3, 0.05, 0.6, 1.0, 0.0)  # of regularizers: most weights must survive
RADII = (0.6, 1.0)  # of domains: some weights inside, some at the bound
INTEGERS = (3, 1, 2, 0)
# What shapes a program, by name: small blocks, roots kept for a while, iterations left early.
SETTINGS = {"block_size": 2, "refresh": 2, "trips": 4, "budget": 3}


# ---- discovery -----------------------------------------------------------------------------
@cache
def discover(base: type) -> tuple[type, ...]:
    """Concrete members under ``base``, by name.

    Solvers with a kernel have laws of their own (test_kernel_training.py): their rounds are those
    of the solver without it, which is among these, on another layout. Those that keep vectors of
    their own are in :func:`expansions`.
    """
    return tuple(cls for cls in _classes(base) if Kernel not in part_fields(cls).values())


def _classes(base: type) -> tuple[type, ...]:
    """All concrete members under ``base``, by name."""
    for module in pkgutil.walk_packages(jaxsolvers.__path__, "jaxsolvers."):
        if module.name.startswith(HOMES):
            importlib.import_module(module.name)

    def walk(cls: type) -> Iterator[type]:
        for child in cls.__subclasses__():
            yield child
            yield from walk(child)

    found = {
        cls
        for cls in walk(base)
        if cls.__module__.startswith(HOMES)
        and "__dataclass_fields__" in vars(cls)
        and not cls.__name__.startswith("_")
    }
    return tuple(sorted(found, key=lambda cls: cls.__name__))


def specs(cls: type) -> dict[str, Spec]:
    """The declared fields of a member class."""
    return {f.name: f.metadata["jaxsolvers"] for f in dataclasses.fields(cls)}


def part_fields(cls: type) -> dict[str, type | None]:
    """Names of the nested members, with the base of what fits there."""
    return {name: spec.base for name, spec in specs(cls).items() if spec.kind == "member"}


def choices(cls: type) -> list[dict[str, Any]]:
    """Every combination of the static choices of a member class."""
    options = {name: spec.options for name, spec in specs(cls).items() if spec.kind == "choice"}
    return [
        dict(zip(options, values, strict=True)) for values in itertools.product(*options.values())
    ]


def chosen(member: Member) -> tuple[Any, ...]:
    """The values of its own static choices."""
    return tuple(value for _, spec, value in member.specs() if spec.kind == "choice")


def is_valid(member: Member) -> bool:
    """Whether the member's own checks accept it."""
    try:
        member.validate()
        for _, nested in [("", member), *member.parts()]:
            if isinstance(nested, Regularizer):
                nested.check_start()
    except ValueError:
        return False
    return True


def with_numbers(cls: type, **fixed: Any) -> Any:
    """The class with example numbers that its checks accept, or None if ``fixed`` is refused."""
    fixed = {n: value for n, value in SETTINGS.items() if n in specs(cls)} | fixed
    open_ = {n: s for n, s in specs(cls).items() if s.kind == "number" and n not in fixed}

    def candidates(at: int, name: str, spec: Spec) -> list[Any]:
        if spec.optional:
            return [None]
        numbers = STRENGTHS if issubclass(cls, Regularizer) else NUMBERS
        numbers = RADII if name == "radius" else numbers
        values = INTEGERS if spec.integer else numbers[at:] + numbers[:at]
        return [v for v in values if not spec.violated(np.asarray(v, float))]

    lists = [candidates(at, *field) for at, field in enumerate(open_.items())]
    for values in itertools.product(*lists):
        member = cls(**fixed, **dict(zip(open_, values, strict=True)))
        if is_valid(member):
            return member
    return None


def other_numbers(member: Any) -> Any:
    """The member with another valid value for each number: its default where that is new.

    Where its checks refuse the defaults together (a Simplex needs delta), it is half of each.
    """
    defaults = _other_numbers(member, True)
    return defaults if is_valid(defaults) else _other_numbers(member, False)


def _other_numbers(member: Any, use_defaults: bool) -> Any:
    changed: dict[str, Any] = {}
    fields = {field.name: field for field in dataclasses.fields(member)}
    for name, spec, value in member.specs():
        field = fields[name]
        if spec.kind == "member":
            changed[field.name] = _other_numbers(value, use_defaults)
        elif spec.kind == "number":
            half = value + 1 if spec.integer else value / 2
            given = use_defaults and field.default is not dataclasses.MISSING
            changed[field.name] = field.default if given and field.default != value else half
    return dataclasses.replace(member, **changed)


@cache
def losses() -> tuple[Loss, ...]:
    """Every loss of one score with example numbers."""
    return tuple(_example(cls) for cls in discover(Loss) if not cls.joint)


@cache
def joint_losses() -> tuple[Loss, ...]:
    """Every loss of the scores of all classes with example numbers."""
    return tuple(_example(cls) for cls in discover(Loss) if cls.joint)


@cache
def regularizers() -> tuple[Regularizer, ...]:
    """Every regularizer with example numbers; wrappers hold an elastic net."""
    inner = jaxsolvers.regularizers.ElasticNet(0.02, 0.1)
    return tuple(_example(cls, inner) for cls in discover(Regularizer))


def _example(cls: type, inner: Any = None) -> Any:
    member = with_numbers(cls, **dict.fromkeys(part_fields(cls), inner))
    assert member is not None, f"no valid example numbers for {cls.__name__}: extend NUMBERS"
    return member


@cache
def plain_solvers() -> tuple[Solver, ...]:
    """Solvers without wrappers around them: each with every loss, regularizer and choice it takes.

    A first-order solver meets a loss through its slopes and a regularizer through its ``solve``:
    each solver has every one of both, but not every pair of them.
    """
    made: list[Solver | None] = []
    for turn, cls in enumerate(discover(Solver)):
        kinds, own = set(part_fields(cls).values()), choices(cls)
        if kinds == {Loss}:
            for at, chosen in enumerate(own):
                # A choice among many (a bias): the first with every loss, each other with two.
                rare = any(
                    len(spec.options) > 2 and spec.options[0] != chosen.get(name)
                    for name, spec in specs(cls).items()
                )
                for number, loss in enumerate(losses()):
                    hinge = isinstance(loss, jaxsolvers.losses.Hinge)
                    if not rare or hinge or number == at % len(losses()):
                        made.append(_made(cls, chosen, loss))
        elif kinds == {Loss, Regularizer}:
            many = max(len(losses()), len(regularizers()), len(own))
            for at in range(many):
                loss = losses()[(at + turn) % len(losses())]
                regularizer = regularizers()[at % len(regularizers())]
                made.append(_made(cls, own[(at + turn) % len(own)], loss, regularizer))
    return tuple(solver for solver in made if solver is not None)


@cache
def expansions() -> tuple[Solver, ...]:
    """Solvers that keep support vectors of their own, with every choice."""
    found = [cls for cls in _classes(Solver) if getattr(cls, "own_vectors", False)]
    parts = {"kernel": jaxsolvers.kernels.RBF(0.4), "loss": jaxsolvers.losses.Hinge()}
    return tuple(with_numbers(cls, **parts, **own) for cls in found for own in choices(cls))


def _made(cls: type, chosen: dict[str, Any], *parts: Any) -> Any:
    """The solver with example numbers, None where it refuses this combination."""
    fields = part_fields(cls)
    of = {name: next(p for p in parts if isinstance(p, fields[name])) for name in fields}
    return with_numbers(cls, **chosen, **of)


def wrapped(solver: Solver) -> list[Solver]:
    """Every wrapper with every choice around one solver."""
    found = []
    for cls in discover(Solver):
        inner = [name for name, base in part_fields(cls).items() if base is Solver]
        for chosen in choices(cls) if inner else []:
            wrapper = with_numbers(cls, **chosen, **dict.fromkeys(inner, solver))
            found += [] if wrapper is None else [wrapper]
    return found


def rows_per_round(solver: Solver, wanted: int) -> int:
    """``wanted`` rows, or a number that the solver takes instead."""
    for size in (wanted, 1, 4):
        try:
            solver.check_rounds(size, "none", None)
        except ValueError:
            continue
        return size
    raise AssertionError(f"{label(solver)} takes no number of rows")


def intercept(solver: Solver) -> str:
    """An intercept column where the solver has no bias of its own."""
    return "none" if solver.own_bias else "column"


def label(member: Member) -> str:
    """E.g. AdaGradRDA-example-Hinge-L1."""
    words = [type(member).__name__]
    for _, spec, value in member.specs():
        if spec.kind == "choice" and len(spec.options) > 1:
            words.append(str(value))
        elif spec.kind == "member":
            words.append(label(value))
    return "-".join(words)


# ---- the sets --------------------------------------------------------------------------------
def _facts(solver: Solver) -> set[Any]:
    own = {(type(solver), n, v) for n, s, v in solver.specs() if s.kind == "choice"}
    parts = {type(value) for _, value in solver.parts() if not isinstance(value, Solver)}
    pairs = {(type(solver), _mechanism(v)) for _, v in solver.parts() if isinstance(v, Solver)}
    return own | parts | pairs | {type(solver)}


def _mechanism(solver: Solver) -> type:
    """The base that does the solver's rounds, by which wrappers meet it; or its own type."""
    bases = (base for base in type(solver).__mro__ if base in (FirstOrder, LinearStep))
    return next(bases, type(solver))


@cache
def product() -> tuple[Solver, ...]:
    """All allowed pairs of members, wrappers included."""
    plain = plain_solvers()
    return (*plain, *(outer for solver in plain for outer in wrapped(solver)))


def everyone(solver: Solver) -> bool:
    return True


def drawless(solver: Solver) -> bool:
    """Whether rankers draw nothing by themselves: what they do is the same in any place."""
    return getattr(solver, "kind", "") != "random"


def separable(solver: Solver) -> bool:
    """Whether no regularizer ties coordinates together, which rules sparse rows out."""
    parts = (part for _, part in solver.parts() if isinstance(part, Regularizer))
    return all(part.separable for part in parts)


def lazy(solver: Solver) -> bool:
    """Whether it trains sparse rows on their active columns; the others see dense slabs."""
    return separable(solver) and solver.lazy


@cache
def covering(where: Callable[[Solver], bool]) -> tuple[Solver, ...]:
    """Few solvers in which each solver, loss, regularizer and choice occurs.

    Each wrapper occurs around each mechanism: first-order solvers, linear steps, others.
    """
    pool = list(filter(where, product()))
    missing = set().union(*map(_facts, pool))
    chosen: list[Solver] = []
    while missing:
        best = max(pool, key=lambda solver: len(_facts(solver) & missing))
        chosen.append(best)
        missing -= _facts(best)
    return tuple(chosen)


@cache
def one_of_each(where: Callable[[Solver], bool]) -> tuple[Solver, ...]:
    """A solver of each class, and each wrapper around each mechanism, of the covering set."""
    found: dict[Any, Solver] = {}
    for solver in covering(where):
        inner = [_mechanism(value) for _, value in solver.parts() if isinstance(value, Solver)]
        found.setdefault((type(solver), *inner), solver)
    return tuple(found.values())


def every_solver(
    *extra: Solver, where: Callable[[Solver], bool] = everyone, few: Any = covering
) -> Any:
    """Parametrize ``solver`` over the covering set; ``-m exhaustive`` runs the product.

    ``few=one_of_each`` is for laws in which losses, regularizers and choices have no part.
    """
    few = [*few(where), *extra]
    rest = [solver for solver in product() if solver not in few and where(solver)]
    marked = [pytest.param(s, id=label(s), marks=pytest.mark.exhaustive) for s in rest]
    return pytest.mark.parametrize(
        "solver", [*(pytest.param(s, id=label(s)) for s in few), *marked]
    )


def each(members: Any, name: str) -> Any:
    """Parametrize an argument over members."""
    return pytest.mark.parametrize(name, members, ids=label)


# ---- data ------------------------------------------------------------------------------------
def targets(loss: Loss, rng: np.random.Generator, shape: Any) -> np.ndarray:
    """Random targets that suit the loss, float64."""
    values = rng.normal(size=shape)
    return np.where(values < 0, -1.0, 1.0) if loss.classification else values


# ---- references ------------------------------------------------------------------------------
ALIASES = {"NoRegularizer": "none"}


def reference_name(member: Member, known: tuple[str, ...]) -> str | None:
    """The name the NumPy references use for a class: SquaredHinge -> squared_hinge."""
    squashed = {name.replace("_", ""): name for name in known}
    own = type(member).__name__
    return squashed.get(ALIASES.get(own, own).lower())


def reference_loss(loss: Loss) -> tuple[str, float | None]:
    """(name, parameter) for ``references.losses``."""
    name = reference_name(loss, reference_losses.NAMES)
    assert name is not None, missing(loss, "tests/references/losses.py (NAMES, value, slope)")
    numbers = [float(leaf.value) for leaf in loss.numbers()]
    return name, numbers[0] if numbers else None


def reference_regularizer(member: Regularizer, d: int) -> tuple[str, dict[str, Any]]:
    """(name, strengths) for ``references.regularizers`` over d coordinates."""
    if isinstance(member, FreeIntercept):
        name, strengths = reference_regularizer(member.inner, d - 1)
        if name == "nonnegative":
            name, strengths = "box", {"lower": 0.0, "upper": np.inf}
        free = {"lower": -np.inf, "upper": np.inf}
        return name, {
            key: np.append(np.broadcast_to(value, (d - 1,)), free.get(key, 0.0))
            for key, value in strengths.items()
        }
    name = reference_name(member, reference_regularizers.NAMES)
    assert name is not None, missing(
        member, "tests/references/regularizers.py (NAMES, penalty, prox_coordinate)"
    )
    return name, {leaf.name: np.asarray(leaf.value, float) for leaf in member.numbers()}


def missing(member: Any, where: str) -> str:
    """What to add for a member without a reference."""
    name = member.__name__ if isinstance(member, type) else type(member).__name__
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return f"{name} has no NumPy reference: add {words!r} to {where}"
