"""The protocol: members, solvers, losses, regularizers, batches and what a round reports.

A *member* (a solver, a loss, a regularizer) is a frozen dataclass registered as a pytree.
Its numbers are leaves: they may be traced, mapped and differentiated, and a new value never
makes a new trace. Its choices are static: a new one does. Members hold no loop, no jit and
no check in their constructor (unflattening calls it with tracers): the engine calls
:meth:`Member.validate` once, before tracing.

Letters used everywhere: ``d`` features, ``B`` rows of a block, ``k`` rows of a round,
``n`` examples, ``K`` rankers. Every shape below is the shape for ONE ranker.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Array = jax.Array
Number = Any  # float, NumPy scalar or array; jax.Array, traced or not
State = Any  # a NamedTuple of arrays with a property `axes`
T = TypeVar("T")

_SPEC = "jaxsolvers"


@dataclasses.dataclass(frozen=True)
class Spec:
    """What a member's field is and accepts."""

    kind: str  # "number" | "choice" | "member"
    above: float | None = None
    minimum: float | None = None
    below: float | None = None
    maximum: float | None = None
    finite: bool = True
    integer: bool = False
    rank: int = 0
    options: tuple[Any, ...] = ()

    def accepted(self) -> str:
        """The accepted values in words, for error messages."""
        if self.kind == "choice":
            return "one of " + ", ".join(repr(option) for option in self.options)
        words = ["an integer" if self.integer else "a finite number" if self.finite else "a number"]
        bounds = {">": self.above, ">=": self.minimum, "<": self.below, "<=": self.maximum}
        words += [f"{sign} {bound:g}" for sign, bound in bounds.items() if bound is not None]
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
) -> Any:
    """Declare a number: a pytree leaf with its accepted range.

    Args:
      default: value used when the argument is left out; required without one.
      above, minimum, below, maximum: open and closed bounds, checked by ``validate``.
      finite: whether infinities are refused (NaN always is).
      integer: whether the leaf is kept as int32 instead of the working dtype.
      rank: 0 for one number; 1 when an array over the features is accepted as well.
    """
    spec = Spec("number", above, minimum, below, maximum, finite, integer, rank)
    return dataclasses.field(default=default, metadata={_SPEC: spec})


def choice(*options: T, default: T) -> T:
    """Declare a static choice among ``options``: a new one makes a new trace."""
    spec = Spec("choice", options=options)
    return dataclasses.field(default=default, metadata={_SPEC: spec})  # type: ignore[return-value]


def part(*, default: Any = dataclasses.MISSING) -> Any:
    """Declare a nested member: a loss, a regularizer or an inner solver."""
    return dataclasses.field(default=default, metadata={_SPEC: Spec("member")})


def register(cls: type[T], static: tuple[str, ...] = ()) -> type[T]:
    """Register a dataclass as a pytree: fields named in ``static`` are metadata, the rest leaves.

    The class itself is part of the metadata. ``jax.tree_util.register_dataclass`` leaves it out:
    in jax 0.10 two such classes with like fields have *equal* tree structures, and a cached
    program of one is now and then served to the other.
    """
    names = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
    leaves = [name for name in names if name not in static]

    def metadata(node: Any) -> tuple[Any, ...]:
        return (cls, *(getattr(node, name) for name in static))

    def flatten(node: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return tuple(getattr(node, name) for name in leaves), metadata(node)

    def flatten_with_keys(node: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        keyed = ((jax.tree_util.GetAttrKey(name), getattr(node, name)) for name in leaves)
        return tuple(keyed), metadata(node)

    def unflatten(data: tuple[Any, ...], children: Any) -> Any:
        fields = zip((*leaves, *static), (*children, *data[1:]), strict=True)
        return cls(**dict(fields))

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    return cls


@dataclass_transform(
    frozen_default=True, eq_default=False, field_specifiers=(number, choice, part)
)
def member(cls: type[T]) -> type[T]:
    """Make ``cls`` a frozen dataclass and a pytree: numbers and parts leaves, choices static."""
    # eq=False: array leaves break both == and hash; members compare by identity.
    frozen = dataclasses.dataclass(frozen=True, eq=False)(cls)
    fields = dataclasses.fields(frozen)  # type: ignore[arg-type]
    return register(frozen, tuple(f.name for f in fields if f.metadata[_SPEC].kind == "choice"))


@dataclass_transform(frozen_default=True, eq_default=False)
def arrays(cls: type[T]) -> type[T]:
    """Make ``cls`` a frozen dataclass and a pytree; ``static=True`` in a field's metadata marks
    what is not a leaf."""
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
        """Yield (name, spec, value) of each field."""
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            yield field.name, field.metadata[_SPEC], getattr(self, field.name)

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

    def validate(self, prefix: str = "") -> None:
        """Check concrete numbers and choices; traced numbers are left alone.

        Raises:
          ValueError: a number out of range or a choice that does not exist; the message
            names the field, what was given and what is accepted.
        """
        for name, spec, value in self.specs():
            if spec.kind == "member":
                if not isinstance(value, Member):
                    raise ValueError(
                        f"{prefix}{name} must be a jaxsolvers object such as "
                        f"js.losses.Hinge(), got {value!r}"
                    )
                value.validate(f"{prefix}{name}.")
            elif spec.kind == "choice":
                # `is`-like comparison by type as well: True must not pass for 1.
                if not any(type(value) is type(o) and value == o for o in spec.options):
                    raise ValueError(f"{prefix}{name} must be {spec.accepted()}, got {value!r}")
            elif not isinstance(value, jax.core.Tracer):
                _check_number(prefix + name, spec, value)


def _check_number(name: str, spec: Spec, value: Any) -> None:
    try:
        array = np.asarray(value)
        ok = array.dtype != np.bool_ and np.issubdtype(array.dtype, np.number)
        ok = ok or array.dtype.name == "bfloat16"
        concrete = array.astype(np.float64) if ok else array
    except (TypeError, ValueError):
        ok = False
    if not ok or np.iscomplexobj(concrete):
        raise ValueError(f"{name} must be {spec.accepted()}, got {value!r}")
    bad = spec.violated(concrete)
    if bad.any():
        where = "" if concrete.ndim == 0 else f" at index {tuple(map(int, np.argwhere(bad)[0]))}"
        raise ValueError(f"{name} must be {spec.accepted()}, got {concrete[bad].flat[0]}{where}")


@arrays
class Problem:
    """What a solver may know before its first round."""

    shape: tuple[int, ...] = dataclasses.field(metadata={"static": True})  # (d,) or (K, d)
    n_examples: int = dataclasses.field(default=0, metadata={"static": True})  # 0: not known
    live: Number = 1.0  # () total weight of the examples
    loss_at_zero: Number | None = None  # () weighted mean of l(0, y); None in a stream


class Batch(NamedTuple):
    """Rows with their targets; ``weight`` 0 marks an inert row (the counter included)."""

    x: Any  # a layout of features.py with B rows
    target: Array  # (B,)
    weight: Array  # (B,) >= 0
    index: Array  # (B,) int32, position of each row among the n examples
    gram: Array | None = None  # (B, B) inner products of the rows, if prepared per block


class Info(NamedTuple):
    """Diagnostics of the rows just seen, scored with the weights before their round."""

    weight: Array  # () sum of weights
    loss: Array  # () weighted sum of losses, the regularizer left out
    mistakes: Array  # () live rows whose sign is wrong (0 for regression)
    violations: Array  # () live rows whose loss has a slope
    finite: Array  # () bool: every score and coefficient of a live row was finite


class Loss(Member):
    """A loss l(z, y) of one score z and one target y, convex in z.

    A subclass writes :meth:`pointwise`; callers use :meth:`value_and_slope`.
    """

    classification: ClassVar[bool] = True  # targets are -1 or +1
    couples_rows: ClassVar[bool] = False

    def pointwise(self, score: Array, target: Array) -> tuple[Array, Array]:
        """Return (l, dl/dz), elementwise, shapes equal."""
        raise NotImplementedError

    def value_and_slope(self, score: Array, target: Array) -> tuple[Array, Array]:
        """Return the loss and its (sub-)derivative in the score.

        Args:
          score: (...) float, z.
          target: (...) the same shape and dtype; -1 or +1 for classification losses.

        Returns:
          Two arrays of that shape: l(z, y) and dl/dz with its true sign (math: -v).

        Raises:
          ValueError: shapes that differ (nothing broadcasts), or concrete classification
            targets other than -1 and +1.
        """
        if jnp.shape(score) != jnp.shape(target):
            raise ValueError(
                f"score and y must have the same shape, got {jnp.shape(score)} "
                f"and {jnp.shape(target)}"
            )
        if self.classification and not isinstance(target, jax.core.Tracer):
            concrete = np.asarray(target)
            if not np.isin(concrete, (-1, 1)).all():
                raise ValueError(f"y must be -1 or +1 for {type(self).__name__}, got {concrete!r}")
        score = jnp.asarray(score)
        return self.pointwise(score, jnp.asarray(target, score.dtype))

    def mistakes(self, score: Array, target: Array) -> Array:
        """1 where the sign of the score is wrong (a score of 0 is), else 0."""
        if not self.classification:
            return jnp.zeros_like(score)
        return (score * target <= 0).astype(score.dtype)


class Regularizer(Member):
    """A convex function phi of the weights, with domain X, met through :meth:`solve`."""

    separable: ClassVar[bool] = True  # phi is a sum over coordinates
    lazy: ClassVar[bool] = True  # owed steps have a closed form
    couples: ClassVar[bool] = False  # phi couples rankers

    def value(self, weights: Array) -> Array:
        """phi(weights), a scalar; the indicator of a domain counts 0 inside."""
        raise NotImplementedError

    def solve(self, linear: Array, metric: Array, tau: Number) -> Array:
        """argmin over X of 1/2 <x, H x> - <linear, x> + tau phi(x), H = diag(metric) >= 0.

        Where metric and linear are both 0 the coordinate is out of the problem: the value
        is 0 and neither it nor its derivative is NaN.
        """
        raise NotImplementedError

    def prox(self, z: Array, metric: Array, tau: Number) -> Array:
        """argmin over X of 1/2 <x - z, H (x - z)> + tau phi(x), H = diag(metric) > 0."""
        return self.solve(metric * z, metric, tau)

    def check_start(self, prefix: str = "regularizer.") -> None:
        """Raise a ValueError if the start w_1 = 0 lies outside the domain X."""


class Solver(Member):
    """An online learner as pure functions of (numbers, state, batch)."""

    gram: ClassVar[bool] = False  # sweeps are faster when Batch.gram is prepared
    single_row: ClassVar[bool] = False  # refuses rounds of more than one row
    loss: Any

    def init(self, problem: Problem, dtype: Any) -> State:
        """The state before round 1. Every field owns its buffer, so that it can be donated."""
        raise NotImplementedError

    def update(self, state: State, batch: Batch) -> tuple[State, Info]:
        """One round on all rows of ``batch``."""
        raise NotImplementedError

    def weights(self, state: State) -> Array:
        """The weights w, of ``problem.shape``, that the state stands for."""
        raise NotImplementedError

    def penalty(self, weights: Array) -> Array:
        """The part of the objective that does not see the data, a scalar."""
        raise NotImplementedError

    def rounds(self, weight: Array) -> Array:
        """How far the papers' counter t moves in a round with these row weights, int32."""
        return jnp.any(weight > 0).astype(jnp.int32)

    def free_intercept(self) -> Self:
        """This solver for data whose last column is the constant 1, left unregularized
        where the method allows it."""
        return self

    def sweep(self, state: State, block: Batch, batch_size: int = 1) -> tuple[State, Info]:
        """The rounds of consecutive ``batch_size`` rows of ``block``, in order.

        ``batch_size`` divides the number of rows. This slow form defines the meaning; a
        solver may override it with an equal faster one.
        """
        rounds = block.target.shape[0] // batch_size

        def pieces(array: Array) -> Array:
            return array.reshape(rounds, batch_size, *array.shape[1:])

        rows = Batch(
            x=block.x.split(batch_size),
            target=pieces(block.target),
            weight=pieces(block.weight),
            index=pieces(block.index),
        )

        # Never the bound method itself: JAX caches traces by function, bound methods hash by the
        # address of their object, and a new solver may live where a freed one did.
        def one_round(state: State, batch: Batch) -> tuple[State, Info]:
            return self.update(state, batch)

        state, infos = lax.scan(one_round, state, rows)
        return state, total(infos)


def total(infos: Info) -> Info:
    """Sum an Info whose fields have a leading axis."""
    *sums, finite = infos
    return Info(*(jnp.sum(field, axis=0) for field in sums), jnp.all(finite, axis=0))


def all_finite(live: Array, *arrays: Array) -> Array:
    """Whether every entry is finite, rows of (B,) arrays counting only where ``live``, ()."""
    finite = jnp.ones((), bool)
    for array in arrays:
        dead = ~live if array.ndim else jnp.zeros((), bool)
        finite = finite & jnp.all(jnp.isfinite(array) | dead)
    return finite


def report(loss: Loss, score: Array, target: Array, weight: Array, finite: Array) -> Info:
    """The Info of rows scored ``score``; rows of weight 0 are left out.

    Args:
      loss: the solver's loss.
      score, target, weight: (...), the rows.
      finite: () bool, see ``Info.finite``.
    """
    live = weight > 0
    value, slope = loss.value_and_slope(score, target)

    def over_live(values: Array) -> Array:
        return jnp.sum(jnp.where(live, values, 0))

    return Info(
        weight=jnp.sum(weight),
        loss=over_live(weight * value),
        mistakes=over_live(loss.mistakes(score, target)),
        violations=over_live((slope != 0).astype(score.dtype)),
        finite=finite,
    )
