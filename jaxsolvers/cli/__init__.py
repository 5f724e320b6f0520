"""The command line: ``python -m jaxsolvers`` or ``jaxsolvers``.

Commands: train, predict, evaluate, info, solvers, convert, demo. Nothing here imports JAX before a
command needs it; each command is a module of its own with a function ``run(options)``.
"""

from jaxsolvers.cli.entry import main

__all__ = ["main"]
