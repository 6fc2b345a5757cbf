"""``python -m airflow_provider_service doctor``: examine a connection."""

from __future__ import annotations

import sys

from airflow_provider_service.doctor import main

if __name__ == "__main__":
    sys.exit(main())
