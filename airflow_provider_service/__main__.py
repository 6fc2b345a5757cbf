"""``python -m airflow_provider_service``: the command line."""

from __future__ import annotations

import sys

from airflow_provider_service._cli.commands import main

if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # before a command has begun
        sys.exit(130)
