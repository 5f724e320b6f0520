"""Members: frozen dataclasses that are pytrees, whose numbers are leaves and choices static.

A *member* (a solver, a loss, a regularizer) carries numbers, which may be traced, mapped and
differentiated, and choices: a new number never makes a new trace, a new choice does. Members hold
no loop, no jit and no check in their constructor (unflattening calls it with tracers): the engine
calls :meth:`Member.validate` once, before tracing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple, Self, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolvers.checks import is_real

Array = jax.Array
Number = Any  # float, NumPy scalar or array; jax.Array, traced or not
T = TypeVar("T")

_SPEC = "jaxsolvers"


@dataclasses.dataclass(frozen=True)
class Spec:
    """What a member's field is and accepts."""

    kind: str  # "number" | "schedule" | "choice" | "setting" | "member" | "function"
    above: float | None = None
    minimum: float | None = None
    below: float | None = None
    maximum: float | None = None
    finite: bool = True
    integer: bool = False
    rank: int = 0
    optional: bool = False  # whether None is accepted
    schedule: bool = False  # whether a function t -> number is accepted
    function: bool = False  # of a part: whether a user's function may stand in its place
    options: tuple[Any, ...] = ()
    base: type | None = None  # of a part

    def accepted(self) -> str:
        """The accepted values in words, for error messages."""
        if self.kind == "choice":
            return "one of " + ", ".join(repr(option) for option in self.options)
        words = ["an integer" if self.integer else "a finite number" if self.finite else "a number"]
        bounds = {">": self.above, ">=": self.minimum, "<": self.below, "<=": self.maximum}
        words += [f"{sign} {bound:g}" for sign, bound in bounds.items() if bound is not None]
        words += ["or None"] if self.optional else []
        words += ["or a schedule t -> number"] if self.schedule else []
        return " ".join(words)

    def violated(self, value: np.ndarray) -> np.ndarray:
        """Mask of the entries of ``value`` that are out of range (NaN always is)."""
        bad = ~np.isfinite(value) if self.finite else np.isnan(value)
        for broken, bound in (
            (np.less_equal, self.above),
            (np.less, self.minimum),
            (np.greater_equal, self.below),
            (np.greater, self.maximum),
        ):
            if bound is not None:
                bad = bad | broken(value, bound)
        if self.integer:
            bad = bad | (value != np.floor(value)) | (np.abs(value) > 2**31 - 1)
        return bad


def number(
    *,
    default: Number = dataclasses.MISSING,
    above: float | None = None,
    minimum: float | None = None,
    below: float | None = None,
    maximum: float | None = None,
    finite: bool = True,
    integer: bool = False,
    rank: int = 0,
    optional: bool = False,
    schedule: bool = False,
) -> Any:
    """Declare a number: a pytree leaf with its accepted range.

    Args:
      default: value used when the argument is left out; required without one.
      above, minimum, below, maximum: open and closed bounds, checked by ``validate``.
      finite: whether infinities are refused (NaN always is).
      integer: whether the leaf is kept as int32 instead of the working dtype.
      rank: 0 for one number; 1 when an array over the features is accepted as well; 2 for a
        table over the classes.
      optional: whether None is accepted (a member without that leaf).
      schedule: whether a function t -> number is accepted: it is static, not a leaf.
    """
    bounds = (above, minimum, below, maximum)
    spec = Spec("number", *bounds, finite, integer, rank, optional, schedule)
    return dataclasses.field(default=default, metadata={_SPEC: spec})


def choice(*options: T, default: T) -> T:
    """Declare a static choice among ``options``: a new one makes a new trace."""
    spec = Spec("choice", options=options)
    return dataclasses.field(default=default, metadata={_SPEC: spec})


def setting(*, default: Any, minimum: int = 1, optional: bool = False) -> Any:
    """Declare a static integer >= ``minimum`` (or None, if optional): it shapes the program."""
    spec = Spec("setting", minimum=minimum, integer=True, optional=optional)
    return dataclasses.field(default=default, metadata={_SPEC: spec})


def part(base: type, *, default: Any = dataclasses.MISSING, function: bool = False) -> Any:
    """Declare a nested member of the kind ``base``: a loss, a regularizer or an inner solver.

    With ``function`` a user's function may stand in its place: it is static, not a leaf.
    """
    spec = Spec("member", base=base, function=function)
    return dataclasses.field(default=default, metadata={_SPEC: spec})


def register(
    cls: type[T], static: tuple[str, ...] = (), functions: tuple[str, ...] = ()
) -> type[T]:
    """Register a dataclass as a pytree: fields named in ``static`` are metadata, the rest leaves.

    A field named in ``functions`` is metadata where it holds a function. The class itself is part
    of the metadata. ``jax.tree_util.register_dataclass`` leaves it out: in jax 0.10 two such
    classes with like fields have *equal* tree structures, and a cached program of one is now and
    then served to the other.
    """
    names = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
    leaves = [name for name in names if name not in static]

    def called(node: Any) -> tuple[tuple[str, Any], ...]:
        own = ((name, getattr(node, name)) for name in functions)
        return tuple((name, value) for name, value in own if is_schedule(value))

    def flatten_with_keys(node: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        found = called(node)
        names = [name for name in leaves if name not in dict(found)]
        keyed = tuple((jax.tree_util.GetAttrKey(name), getattr(node, name)) for name in names)
        return keyed, (cls, found, *(getattr(node, name) for name in static))

    def flatten(node: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        keyed, metadata = flatten_with_keys(node)
        return tuple(value for _, value in keyed), metadata

    def unflatten(data: tuple[Any, ...], children: Any) -> Any:
        held = dict(data[1])
        names = [name for name in leaves if name not in held]
        fields = zip((*names, *static), (*children, *data[2:]), strict=True)
        return cls(**held, **dict(fields))

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    return cls


def is_schedule(value: Any) -> bool:
    """Whether a number is given as a function of t. Arrays and tracers are not functions."""
    return callable(value) and not hasattr(value, "dtype")


@dataclass_transform(
    frozen_default=True, eq_default=False, field_specifiers=(number, choice, setting, part)
)
def member(cls: type[T]) -> type[T]:
    """Make ``cls`` a frozen dataclass and a pytree: numbers and parts leaves, choices static."""
    # eq=False: array leaves break both == and hash; members compare by identity.
    frozen = dataclasses.dataclass(frozen=True, eq=False)(cls)
    fields = dataclasses.fields(frozen)  # type: ignore[arg-type]
    specs = {field.name: field.metadata[_SPEC] for field in fields}
    static = tuple(name for name, spec in specs.items() if spec.kind in ("choice", "setting"))
    functions = tuple(n for n, spec in specs.items() if spec.schedule or spec.function)
    return register(frozen, static, functions)


@dataclass_transform(frozen_default=True, eq_default=False)
def arrays(cls: type[T]) -> type[T]:
    """Make ``cls`` a frozen dataclass and a pytree; ``static=True`` in a field's metadata marks
    what is not a leaf.
    """
    frozen = dataclasses.dataclass(frozen=True, eq=False)(cls)
    fields = dataclasses.fields(frozen)  # type: ignore[arg-type]
    return register(frozen, tuple(f.name for f in fields if f.metadata.get("static")))


class Leaf(NamedTuple):
    """One number of a member, with the path a user would write to reach it."""

    name: str  # e.g. "regularizer.strength"
    spec: Spec
    value: Any

    @property
    def shared(self) -> bool:
        """Whether it is one array over the features, the same for all rankers."""
        return self.spec.rank > 0 and jnp.ndim(self.value) == self.spec.rank


class Member:
    """Base of everything that carries numbers and choices."""

    def specs(self) -> Iterator[tuple[str, Spec, Any]]:
        """Yield (name, spec, value) of each field; a number left at None is left out."""
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            spec, value = field.metadata[_SPEC], getattr(self, field.name)
            if spec.schedule and is_schedule(value):
                spec = dataclasses.replace(spec, kind="schedule")
            if spec.function and is_schedule(value):
                spec = dataclasses.replace(spec, kind="function")
            if not (spec.kind == "number" and spec.optional and value is None):
                yield field.name, spec, value

    def numbers(self, prefix: str = "") -> Iterator[Leaf]:
        """Yield every number of this member and of its parts."""
        for name, spec, value in self.specs():
            if spec.kind == "member":
                yield from value.numbers(f"{prefix}{name}.")
            elif spec.kind == "number":
                yield Leaf(prefix + name, spec, value)

    def parts(self, prefix: str = "") -> Iterator[tuple[str, Member]]:
        """Yield every nested member with the prefix of its fields' names."""
        for name, spec, value in self.specs():
            if spec.kind == "member":
                yield f"{prefix}{name}.", value
                yield from value.parts(f"{prefix}{name}.")

    def map_numbers(self, function: Any, prefix: str = "") -> Self:
        """The same member with ``function(Leaf) -> value`` applied to every number."""
        changed: dict[str, Any] = {}
        for name, spec, value in self.specs():
            if spec.kind == "member":
                changed[name] = value.map_numbers(function, f"{prefix}{name}.")
            elif spec.kind == "number":
                changed[name] = function(Leaf(prefix + name, spec, value))
        return dataclasses.replace(self, **changed)  # type: ignore[type-var]

    def cast(self, dtype: Any) -> Self:
        """The same member with every leaf an array: floats as ``dtype``, integers as int32.

        Python and NumPy scalars would otherwise re-trace and break strict promotion.
        """

        def to_array(leaf: Leaf) -> Array:
            return jnp.asarray(leaf.value, jnp.int32 if leaf.spec.integer else dtype)

        return self.map_numbers(to_array)

    def for_rankers(self, n_rankers: int) -> Self:
        """The same member with one value per ranker on the leading axis of each number.

        An array over the features stays shared. A single number in such a field becomes (K, 1):
        one value per ranker, the same for all features.
        """

        def spread(leaf: Leaf) -> Array:
            if jnp.ndim(leaf.value) > 0:
                return leaf.value
            return jnp.broadcast_to(leaf.value, (n_rankers,) + (1,) * leaf.spec.rank)

        return self.map_numbers(spread)

    def ranker_axes(self) -> Self:
        """``in_axes`` for ``vmap`` over the rankers of :meth:`for_rankers`."""
        return self.map_numbers(lambda leaf: None if leaf.shared else 0)

    def check_shapes(
        self,
        n_rankers: int | None,
        n_features: int,
        n_classes: int | None = None,
        each: str = "class",
    ) -> None:
        """Check how many values each number has.

        Args:
          n_rankers: K, or None for a single ranker, which takes single numbers only.
          n_features: d.
          n_classes: C, of which a joint loss has a table.
          each: what a ranker stands for.

        Raises:
          ValueError: an array of another shape; the message names the field and the accepted
            shapes.
        """
        for leaf in self.numbers():
            shape, per_feature = tuple(np.shape(leaf.value)), (n_features,) * leaf.spec.rank
            if leaf.spec.rank == 2:
                if n_classes is not None and shape != (n_classes, n_classes):
                    raise ValueError(
                        f"{leaf.name} must be a table of the {n_classes} classes, "
                        f"{(n_classes, n_classes)}, got an array of shape {shape}"
                    )
                continue
            accepted: list[tuple[int, ...]] = [(), per_feature]
            words = "a single number in fit" if n_rankers is None else "one number"
            if leaf.spec.rank:
                words += f", one per feature ({n_features})"
            if n_rankers is not None:
                accepted.append((n_rankers, *per_feature))
                words += f" or one per {each} ({n_rankers})"
            if shape not in accepted:
                raise ValueError(f"{leaf.name} must be {words}, got an array of shape {shape}")

    def validate(self, prefix: str = "") -> None:
        """Check concrete numbers and choices; traced numbers are left alone.

        Raises:
          ValueError: a number out of range or a choice that does not exist; the message
            names the field, what was given and what is accepted.
        """
        for name, spec, value in self.specs():
            if spec.kind == "member":
                if spec.base is not None and not isinstance(value, spec.base):
                    kind = spec.base.__name__
                    raise ValueError(f"{prefix}{name} must be a {kind} object, got {value!r}")
                value.validate(f"{prefix}{name}.")
            elif spec.kind == "choice":
                # `is`-like comparison by type as well: True must not pass for 1.
                if not any(type(value) is type(o) and value == o for o in spec.options):
                    raise ValueError(f"{prefix}{name} must be {spec.accepted()}, got {value!r}")
            elif spec.kind == "setting":
                whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
                if not (spec.optional and value is None) and not (whole and not _out(spec, value)):
                    raise ValueError(f"{prefix}{name} must be {spec.accepted()}, got {value!r}")
            elif spec.kind == "function":
                continue  # whatever it returns is checked where it is called
            elif spec.kind == "schedule":
                _check_schedule(prefix + name, spec, value)
            elif not isinstance(value, jax.core.Tracer):
                _check_number(prefix + name, spec, value)


def _out(spec: Spec, value: Any) -> bool:
    return bool(spec.violated(np.asarray(value, np.float64)).any())


def _check_schedule(name: str, spec: Spec, schedule: Any) -> None:
    one = jnp.ones((), jnp.int32)  # as the solvers call it
    try:
        first = schedule(one)
        jax.eval_shape(lambda t: (schedule(t), t)[1], one)  # what it returns is checked below
    except Exception as error:
        reason = str(error).split("\n", 1)[0]
        raise ValueError(
            f"{name} must be {spec.accepted()}, of one traced int32 (jnp.sqrt(t), not "
            f"math.sqrt(t)), got {schedule!r}, which raises {type(error).__name__}: {reason}"
        ) from error
    if isinstance(first, jax.core.Tracer):
        return
    if np.shape(first) != ():
        raise ValueError(f"{name}(1) must be a single number, got shape {np.shape(first)}")
    # A warm-up may well start with a rate of 0.
    accepted = dataclasses.replace(spec, above=None, minimum=0, schedule=False)
    _check_number(f"{name}(1)", accepted, first)


def _check_number(name: str, spec: Spec, value: Any) -> None:
    array = np.asarray(value)
    if array.dtype == np.bool_ or not is_real(array.dtype):
        raise ValueError(f"{name} must be {spec.accepted()}, got {value!r}")
    concrete = array.astype(np.float64)
    bad = spec.violated(concrete)
    if bad.any():
        where = "" if concrete.ndim == 0 else f" at index {tuple(map(int, np.argwhere(bad)[0]))}"
        raise ValueError(f"{name} must be {spec.accepted()}, got {concrete[bad].flat[0]}{where}")
