"""Write reports to files, in the format that the suffix of the file chooses."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_provider_service._core.reports.report import Report

log = logging.getLogger(__name__)

#: The report on a plan says so, since the file looks the same whether the plan was then carried out, failed or refused.
WRITTEN_FIRST = "This report was written before anything was changed; it does not say whether the plan was carried out."


def require_report_place(path: str | None) -> None:
    """Refuse a file to which no report could be written.

    :param path: the argument ``report_path``.
    :raises ServiceInputError: its suffix is not that of a format, or its directory does not exist.
    """
    if path is not None:
        from airflow_provider_service._core.object_storage import require_place
        from airflow_provider_service._core.reports.report_formats import require_format

        require_place("report_path", path)
        require_format("report_path", path)


def write_report(path: str | None, report: Callable[[], Report]) -> str | None:
    """Write a report to a file, and return its address; None without a file. Safe to repeat.

    :param path: the argument ``report_path``, whose suffix chooses the format.
    :param report: makes the report.
    """
    if path is None:
        return None
    from airflow_provider_service._core.object_storage import write_whole
    from airflow_provider_service._core.reports.report_formats import rendered

    written = write_whole(path, rendered(report(), path))
    log.info("The report was written to %s", written)
    return written
