"""The solvers, losses and regularizers that the command line offers, found in the package.

A new one that its module exports is found by itself, with all its numbers and choices.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import jaxsolvers
from jaxsolvers.cli.parsing import nearest
from jaxsolvers.members import Member, Spec
from jaxsolvers.protocol import Loss, Regularizer, Solver
from jaxsolvers.solvers.averaged import Averaged

# Numbers that the library asks for and a newcomer cannot know yet.
STARTING_VALUES = {"learning_rate": 0.1, "lam": 1e-4}
_OWN_OPTIONS = {"block_size": "--metric-block-size"}  # whose name is one of train's own
_YES_NO = {"yes": True, "true": True, "no": False, "false": False}


class Setting(NamedTuple):
    """A number, a choice or a part that users can set."""

    path: str  # as in --set, e.g. "loss.gamma"
    spec: Spec
    default: Any  # dataclasses.MISSING without one
    text: str  # from the docstring

    @property
    def option(self) -> str:
        """As an option, e.g. "--loss.gamma"."""
        return _OWN_OPTIONS.get(self.path, "--" + self.path.replace("_", "-"))

    @property
    def values(self) -> list[str]:
        """The words that are accepted, for choices and parts."""
        if self.spec.kind == "member":
            return list(parts_of(self.spec.base))
        return ["yes" if o is True else "no" if o is False else str(o) for o in self.spec.options]

    @property
    def accepted(self) -> str:
        """The values accepted, in words: a schedule cannot be written here."""
        return dataclasses.replace(self.spec, schedule=False).accepted()

    @property
    def is_flag(self) -> bool:
        """Whether it is a yes or a no."""
        return any(option is True for option in self.spec.options)

    @property
    def default_text(self) -> str:
        """The default as a user would write it, or that there is none."""
        if self.default is dataclasses.MISSING:
            return "required"
        if isinstance(self.default, Member):
            return f"default: {name_of(type(self.default))}"
        word = {True: "yes", False: "no"}.get(self.default) if self.spec.kind == "choice" else None
        word = "none" if self.default is None else word
        plain = isinstance(self.default, (int, float))
        return f"default: {word or (f'{self.default:g}' if plain else self.default)}"

    def parse(self, text: str) -> Any:
        """The value that a text stands for; of a part, its class.

        Raises:
          ValueError: the text is none of those accepted; the message names the path.
        """
        if self.spec.kind == "member":
            return lookup(text, parts_of(self.spec.base), self.path)
        if self.spec.kind == "choice":
            known: dict[str, Any] = {str(option): option for option in self.spec.options}
            known = dict(_YES_NO) if self.is_flag else known
            if text.lower() in known:
                return known[text.lower()]
            accepted = ", ".join(self.values)
            hint = nearest(text, self.values)
            raise ValueError(f"{self.path} must be one of {accepted}, got {text!r}{hint}")
        if self.spec.optional and text.lower() == "none":
            return None
        if self.spec.kind == "setting":
            if (
                not re.fullmatch(r"-?\d+", text)
                or self.spec.violated(np.asarray(text, float)).any()
            ):
                name = self.option.removeprefix("--").replace("-", "_")
                raise ValueError(f"{name} must be {self.accepted}, got {text!r}")
            return int(text)
        try:
            numbers = [float(part) for part in text.split(",")]
        except ValueError:
            raise ValueError(f"{self.path} must be {self.accepted}, got {text!r}") from None
        if len(numbers) > 1:
            return np.array(numbers)
        whole = self.spec.integer and numbers[0].is_integer()
        return int(numbers[0]) if whole else numbers[0]


@functools.cache
def solvers() -> dict[str, type[Member]]:
    """The solvers by name, wrappers around solvers left out."""
    found = {}
    for name in jaxsolvers.__all__:
        cls = getattr(jaxsolvers, name)
        if inspect.isclass(cls) and issubclass(cls, Solver) and _can_be_made(cls):
            found[name_of(cls)] = cls
    return dict(sorted(found.items()))


def parts_of(base: type | None) -> dict[str, type[Member]]:
    """The losses or the regularizers by name; empty for other parts."""
    homes = {Loss: jaxsolvers.losses, Regularizer: jaxsolvers.regularizers}
    home = homes.get(base)  # type: ignore[arg-type]
    classes = [] if home is None else [getattr(home, name) for name in home.__all__]
    return {name_of(cls): cls for cls in sorted(classes, key=name_of)}


def lookup(text: str, known: dict[str, type[Member]], path: str) -> type[Member]:
    """The class of that name; capitals, hyphens and underscores do not matter.

    Raises:
      ValueError: there is none; the message names the path and the names accepted.
    """
    squashed = {_squashed(name): cls for name, cls in known.items()}
    squashed |= {_squashed(cls.__name__): cls for cls in known.values()}
    if _squashed(text) in squashed:
        return squashed[_squashed(text)]
    hint = nearest(text, known)
    raise ValueError(f"{path} must be one of {', '.join(known)}, got {text!r}{hint}")


def name_of(cls: type) -> str:
    """How users call a class.

    Example:
      >>> name_of(jaxsolvers.AdaGradRDA), name_of(jaxsolvers.regularizers.SquaredL2)
      ('adagrad-rda', 'squared-l2')
      >>> name_of(jaxsolvers.regularizers.NoRegularizer)
      'none'
    """
    if cls is jaxsolvers.regularizers.NoRegularizer:
        return "none"
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", cls.__name__)
    return words.lower().replace("ada-grad", "adagrad")


def settings_of(
    member: type[Member] | Member, chosen: dict[str, str], prefix: str = ""
) -> Iterator[Setting]:
    """What can be set in a member and, as they were chosen, in its parts.

    Args:
      member: a class, or the instance that is the default.
      chosen: texts by path; those of parts matter.
      prefix: of the paths.

    Raises:
      ValueError: an unknown name of a part.

    Example:
      >>> cls = solvers()["pegasos"]
      >>> [setting.path for setting in settings_of(cls, {"loss": "smoothed-hinge"})]
      ['lam', 'loss', 'loss.gamma', 'project', 'bias']
    """
    cls = member if isinstance(member, type) else type(member)
    texts = _described(cls)
    for name, spec, default in _fields(member):
        if spec.kind == "number" and default is dataclasses.MISSING and not prefix:
            default = STARTING_VALUES.get(name, default)
        setting = Setting(prefix + name, spec, default, texts.get(name, ""))
        if spec.kind == "member":
            known = parts_of(spec.base)
            if not known:
                continue  # nothing to choose: it stays as it is
            yield setting
            text = chosen.get(setting.path)
            part = default if text is None else setting.parse(text)
            if part is not dataclasses.MISSING:
                yield from settings_of(part, chosen, setting.path + ".")
        elif spec.kind in ("number", "setting") or len(spec.options) > 1:
            yield setting


def average_settings() -> list[Setting]:
    """What can be set in the average around a solver: "average", then "average.<number>"."""
    texts = _described(Averaged)
    settings = [
        Setting("average" if name == "kind" else f"average.{name}", spec, default, texts[name])
        for name, spec, default in _fields(Averaged)
        if spec.kind != "member"
    ]
    return sorted(settings, key=lambda setting: setting.path != "average")


def made(member: type[Member] | Member, chosen: dict[str, str], prefix: str = "") -> Any:
    """The member with its settings as chosen.

    Raises:
      ValueError: a text that is not accepted, or a number without a default that is missing.
    """
    values: dict[str, Any] = {}
    own = {setting.path: setting for setting in settings_of(member, chosen, prefix)}
    for name, spec, default in _fields(member):
        setting = own.get(prefix + name)
        if setting is None:
            values[name] = default
            continue
        text = chosen.get(setting.path)
        value = setting.default if text is None else setting.parse(text)
        if value is dataclasses.MISSING:
            raise ValueError(f"{setting.path} must be given: {setting.accepted}")
        values[name] = made(value, chosen, setting.path + ".") if spec.kind == "member" else value
    return (member if isinstance(member, type) else type(member))(**values)


def _can_be_made(cls: type[Member]) -> bool:
    """Whether it stands alone: no inner solver, and no part without default that has no name."""
    return not any(
        spec.kind == "member"
        and (spec.base is Solver or (default is dataclasses.MISSING and not parts_of(spec.base)))
        for _, spec, default in _fields(cls)
    )


def _fields(member: type[Member] | Member) -> Iterator[tuple[str, Spec, Any]]:
    """(name, spec, default) of a class, or with the values of an instance."""
    if not isinstance(member, type):
        yield from member.specs()
        return
    required = {
        field.name
        for field in dataclasses.fields(member)  # type: ignore[arg-type]
        if field.default is dataclasses.MISSING
    }
    for name, spec, value in member(**dict.fromkeys(required)).specs():
        yield name, spec, dataclasses.MISSING if name in required else value


def _described(cls: type) -> dict[str, str]:
    """The texts of the section Args of a docstring, by name."""
    section = (inspect.getdoc(cls) or "").partition("\nArgs:\n")[2].split("\n\n")[0]
    entries = re.finditer(r"^  (\w+(?:, \w+)*): (.*(?:\n    .*)*)", section, re.MULTILINE)
    return {name: " ".join(entry[2].split()) for entry in entries for name in entry[1].split(", ")}


def _squashed(name: str) -> str:
    return re.sub(r"[-_]", "", name).lower()
