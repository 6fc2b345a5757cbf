"""Write reports to files. Operators load this module with each DAG file, so it loads the rest only when a task runs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_provider_service._core.reports.report import Report

log = logging.getLogger(__name__)


def require_report_place(path: str | None) -> None:
    """Refuse a file whose suffix is not that of a format, or whose directory does not exist."""
    if path is not None:
        from airflow_provider_service._core.object_storage import require_place
        from airflow_provider_service._core.reports.report import require_format

        require_place("report_path", path)
        require_format("report_path", path)


def write_report(path: str | None, report: Callable[[], Report]) -> str | None:
    """Make a report, write it to a file, and return the file's address; None without a file. Safe to repeat."""
    if path is None:
        return None
    from airflow_provider_service._core.object_storage import write_whole
    from airflow_provider_service._core.reports.report import rendered

    written = write_whole(path, rendered(report(), path))
    log.info("The report was written to %s", written)
    return written
