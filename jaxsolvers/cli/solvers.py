"""``jaxsolvers solvers``: what can be chosen in ``train``, and how."""

from __future__ import annotations

import argparse
import inspect

from jaxsolvers.cli.solver_catalog import (
    Setting,
    average_settings,
    lookup,
    parts_of,
    settings_of,
    solvers,
)
from jaxsolvers.members import Member
from jaxsolvers.protocol import Loss, Regularizer

_TITLES = {"solver": "Solvers", "loss": "Losses", "regularizer": "Regularizers"}
_KINDS = {"solver": None, "loss": Loss, "regularizer": Regularizer}


def run(options: argparse.Namespace) -> None:
    """Print all, or one in full.

    Raises:
      ValueError: nothing has that name.
    """
    known = {kind: solvers() if base is None else parts_of(base) for kind, base in _KINDS.items()}
    if options.name is not None:
        every = {name: cls for members in known.values() for name, cls in members.items()}
        cls = lookup(options.name, every, "NAME")
        kind = next(kind for kind, members in known.items() if cls in members.values())
        print((inspect.getdoc(cls) or "").partition("\nExample:")[0])
        _print_settings(kind, cls)
        return
    for kind, members in known.items():
        print(f"{_TITLES[kind]} (--{kind} NAME):\n")
        for name, cls in members.items():
            print(f"  {name:<20} {_summary(cls)}")
            _print_settings(kind, cls)
        print()
    print("Average of the iterates, around any solver:\n")
    for setting in average_settings():
        _print_setting(setting, setting.option.replace(".", "-"))


def _print_settings(kind: str, cls: type[Member]) -> None:
    prefix = "" if kind == "solver" else f"{kind}."
    for setting in settings_of(cls, {}, prefix):
        _print_setting(setting, setting.option)


def _print_setting(setting: Setting, option: str) -> None:
    accepted = "NAME" if setting.spec.kind == "member" else ", ".join(setting.values)
    print(f"      {option:<26} {accepted or setting.accepted} ({setting.default_text})")


def _summary(cls: type[Member]) -> str:
    return (cls.__doc__ or "").strip().splitlines()[0]
