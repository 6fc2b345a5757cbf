"""Install a generation of the server, so that tests find it: ``python -m tests.live.servers 2.41``."""

from __future__ import annotations

import sys

from .generation import GENERATIONS
from .install import install

if __name__ == "__main__":
    install(GENERATIONS[sys.argv[1]], print)
