"""Apache Airflow provider for the workflow-automation service."""

from __future__ import annotations

__version__ = "0.1.0"
