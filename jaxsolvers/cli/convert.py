"""``jaxsolvers convert``: a strength in another package's units."""

from __future__ import annotations

import argparse

from jaxsolvers.conversion import convert


def run(options: argparse.Namespace) -> None:
    """Print the strength.

    Raises:
      ValueError: as ``js.convert``.
    """
    loss = options.loss.replace("-", "_")
    print(convert(options.value, options.source, options.target, n=options.rows, loss=loss))
