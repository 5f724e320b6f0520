"""``python -m jaxsolvers``."""

import sys

from jaxsolvers.cli import main

if __name__ == "__main__":
    sys.exit(main())
