"""The options of ``train`` that a solver's class declares, and the solver they make."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from jaxsolvers.cli.parsing import Parser, nearest
from jaxsolvers.cli.solver_catalog import (
    Setting,
    average_settings,
    lookup,
    made,
    name_of,
    parts_of,
    settings_of,
    solvers,
)
from jaxsolvers.cli.train_arguments import DEFAULT_SOLVER
from jaxsolvers.members import Member
from jaxsolvers.solvers.averaged import Averaged

_DEST = "setting "  # before the path, in the namespace


def add_solver_options(parser: Parser, words: Sequence[str]) -> list[str]:
    """Give the parser of ``train`` the options of the solver that the words name.

    Returns:
      The words, a flag that may stand without its value written as one word.

    Raises:
      ValueError: an unknown solver, loss or regularizer.
    """
    cls = lookup(_last(words, "--solver") or DEFAULT_SOLVER, solvers(), "solver")
    chosen = _chosen_parts(cls, words)
    name = name_of(cls)
    group = parser.add_argument_group(f"settings of {name}", _summary(cls))
    own = list(settings_of(cls, chosen))
    flags: dict[str, tuple[str, list[str]]] = {}
    for setting in own:
        flags |= _add(group, setting)
    average = parser.add_argument_group(
        "average", "Save a mean of the iterates instead of the last one."
    )
    for setting in average_settings():
        flags |= _add(average, setting)
    owners: dict[str, dict[str, list[str]]] = {}  # of an option, by what was chosen instead
    for owner, instead, setting in _others(cls, chosen):
        owners.setdefault(setting.option, {}).setdefault(instead, []).append(owner)
    for option, by_choice in owners.items():
        if option not in parser.option_strings:
            instead, names = next(iter(by_choice.items()))
            parser.hints[option] = f"{option} belongs to {', '.join(names)}, not to {instead}"
    return list(_joined(words, flags))


def settings_given(options: argparse.Namespace) -> dict[str, str]:
    """The texts that the options and ``--set`` give, by path.

    Raises:
      ValueError: a path that the solver does not have, or one given twice.
    """
    named = vars(options).items()
    known = {key.removeprefix(_DEST): value for key, value in named if key.startswith(_DEST)}
    given = {path: value for path, value in known.items() if value is not None}
    for pair in options.set:
        name, equals, value = pair.partition("=")
        path = name.strip().removeprefix("--").replace("-", "_")
        if not equals or not value:
            raise ValueError(f"--set must be NAME=VALUE, got {pair!r}")
        if path not in known:
            names = ", ".join(known)
            raise ValueError(f"--set must name one of {names}, got {name!r}{nearest(path, known)}")
        if path in given:
            raise ValueError(f"{path} must be given once, got {given[path]!r} and {value!r}")
        given[path] = value.strip()
    return given


def solver_from(name: str, given: dict[str, str], regression: bool = False) -> Any:
    """The solver that was asked for, its numbers and choices checked.

    Args:
      name: of the solver.
      given: texts by path.
      regression: whether the targets are real numbers; the loss is then ``squared`` unless one
        was chosen.

    Raises:
      ValueError: a setting out of range; the message starts with its path.

    Example:
      >>> solver = solver_from("pegasos", {"lam": "0.01", "average": "uniform"})
      >>> type(solver).__name__, solver.solver.lam, type(solver.loss).__name__
      ('Averaged', 0.01, 'Hinge')
    """
    cls = lookup(name, solvers(), "solver")
    chosen = dict(given)
    has_loss = any(setting.path == "loss" for setting in settings_of(cls, given))
    if regression and has_loss and "loss" not in given:
        chosen["loss"] = "squared"
    solver = made(cls, chosen)
    solver.validate()
    around = {path: text for path, text in given.items() if path.startswith("average.")}
    if "average" not in given:
        if around:
            option = next(iter(around)).replace(".", "-")
            raise ValueError(f"--{option} needs --average")
        return solver
    numbers = {
        setting.path.removeprefix("average."): setting.parse(around[setting.path])
        for setting in average_settings()
        if setting.path in around
    }
    kind = next(s for s in average_settings() if s.path == "average").parse(given["average"])
    averaged = Averaged(solver, kind=kind, **numbers)
    averaged.validate()
    return averaged


def described(solver: Any) -> dict[str, Any]:
    """Name, numbers and choices of a solver by path, as ``--set`` takes them.

    Example:
      >>> described(solver_from("pegasos", {"average": "uniform"}))["average.start"]
      0
    """
    if not isinstance(solver, Averaged):
        return {"solver": name_of(type(solver))} | dict(_values(solver, ""))
    inner = described(solver.solver)
    own = {name: value for name, value in _values(solver, "") if "." not in name}
    kind = own.pop("kind")
    numbers = {f"average.{name}": value for name, value in own.items() if name != "solver"}
    return inner | {"average": kind} | numbers


def _values(member: Member, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, spec, value in member.specs():
        path = prefix + name
        if spec.kind == "member":
            yield path, name_of(type(value))
            yield from _values(value, f"{path}.")
        elif value is None:
            yield path, "none"
        elif spec.kind in ("number", "setting") or len(spec.options) > 1:
            yield path, value.tolist() if hasattr(value, "tolist") else value


def _add(group: Any, setting: Setting) -> dict[str, tuple[str, list[str]]]:
    """Add an option; of a flag, which may stand alone, what that means and what may follow."""
    names = [setting.option]
    if setting.path.startswith("average."):
        names.insert(0, setting.option.replace(".", "-", 1))
    alone = {"average": "uniform"}.get(setting.path)
    if setting.is_flag:
        alone = "yes"
    accepted = "" if setting.values else f"{setting.accepted}, "
    text, default = setting.text.rstrip("."), setting.default_text
    if setting.path == "average":
        text, default = "which mean of the iterates is saved", "none; alone it means uniform"
    group.add_argument(
        *names,
        dest=_DEST + setting.path,
        metavar="{" + ",".join(setting.values) + "}" if setting.values else "X",
        nargs="?" if alone else None,
        const=alone,
        help=f"{text} ({accepted}{default})".replace("%", "%%"),
    )
    return {setting.option: (alone, setting.values)} if alone else {}


def _chosen_parts(cls: type[Member], words: Sequence[str]) -> dict[str, str]:
    """The names of parts that the words hold, by path, found from the outside in."""
    chosen: dict[str, str] = {}
    while True:
        new = {
            setting.path: text
            for setting in settings_of(cls, chosen)
            if setting.spec.kind == "member" and setting.path not in chosen
            if (text := _last(words, setting.option) or _last_set(words, setting.path))
        }
        if not new:
            return chosen
        chosen |= new


def _last(words: Sequence[str], option: str) -> str | None:
    """The value of an option, before it is parsed."""
    found = None
    for word, after in zip(words, [*words[1:], None], strict=True):
        if word == option:
            found = after
        elif word.startswith(f"{option}="):
            found = word.partition("=")[2]
    return found


def _last_set(words: Sequence[str], path: str) -> str | None:
    pairs = [word.removeprefix("--set=").partition("=") for word in words]
    values = [value for name, _, value in pairs if name.strip().replace("-", "_") == path]
    return values[-1].strip() if values else None


def _joined(words: Sequence[str], flags: dict[str, tuple[str, list[str]]]) -> Iterator[str]:
    """The words; ``--average DATA`` must not take the file for a kind of average."""
    for word, after in zip(words, [*words[1:], ""], strict=True):
        alone = word in flags and after not in flags[word][1]
        yield f"{word}={flags[word][0]}" if alone else word


def _others(cls: type[Member], chosen: dict[str, str]) -> Iterator[tuple[str, str, Setting]]:
    """(owner, what was chosen instead, setting) of the other solvers and parts."""
    for name, other in solvers().items():
        for setting in settings_of(other, {}):
            yield f"--solver {name}", name_of(cls), setting
    for setting in settings_of(cls, chosen):
        if setting.spec.kind != "member":
            continue
        for name, part in parts_of(setting.spec.base).items():
            for own in settings_of(part, {}, setting.path + "."):
                instead = chosen.get(setting.path) or name_of(type(setting.default))
                yield f"{setting.option} {name}", instead, own


def _summary(cls: type[Member]) -> str:
    return (cls.__doc__ or "").strip().splitlines()[0]
