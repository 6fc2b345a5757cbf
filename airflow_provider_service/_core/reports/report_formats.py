"""The formats of a report, one of which the suffix of its file chooses."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from airflow_provider_service._airflow.arguments import require
from airflow_provider_service._core.reports.html import as_html
from airflow_provider_service._core.reports.markdown import as_markdown
from airflow_provider_service._core.reports.report import Report
from airflow_provider_service.client._models import wire_time


def as_json(report: Report) -> str:
    """The report as JSON, with every text unchanged."""
    parts = [{"kind": type(part).__name__.lower(), **asdict(part)} for part in report.parts]
    value = {**asdict(report), "made_at": wire_time(report.made_at), "parts": parts}
    return json.dumps(_without_nan(value), ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def _without_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_nan(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


_FORMATS: Mapping[str, Callable[[Report], str]] = {".md": as_markdown, ".html": as_html, ".json": as_json}


def require_format(name: str, path: str) -> None:
    """Refuse a file whose suffix is not that of a format.

    :param name: name of the argument with the path.
    :raises ServiceInputError: the suffix is another one.
    """
    require(_format(path) is not None, f"{name} must end in {', '.join(_FORMATS)}, which is its format, not {path!r}")


def rendered(report: Report, path: str) -> bytes:
    """The report in the format that the suffix of a file chooses.

    :raises ServiceInputError: the suffix is not that of a format.
    """
    require_format("path", path)
    # In JSON, half of a surrogate pair becomes its escape; the other formats replace it beforehand.
    return _FORMATS[_format(path) or ""](report).encode("utf-8", "backslashreplace")


def _format(path: str) -> str | None:
    return next((suffix for suffix in _FORMATS if path.lower().endswith(suffix)), None)
