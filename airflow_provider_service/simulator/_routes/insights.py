"""Figures about past executions: ``/insights/summary``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from airflow_provider_service.simulator._engine.executions import Execution
from airflow_provider_service.simulator._gateway import Call, operation
from airflow_provider_service.simulator._validation import ApiError, Param

_QUERY = (Param("startDate", "datetime"), Param("endDate", "datetime"), Param("projectId"))
_DEFAULT_SPAN = timedelta(days=7)
_FAILURES = ("error", "crashed")
_UNITS = {
    "averageRunTime": "millisecond",
    "failed": "count",
    "failureRate": "ratio",
    "timeSaved": "minute",
    "total": "count",
}


@dataclass(frozen=True)
class _Figures:
    """Sums over the executions of one time range."""

    executions: Sequence[Execution]

    def values(self) -> dict[str, float]:
        total = len(self.executions)
        failed = sum(run.status in _FAILURES for run in self.executions)
        run_time = sum(_milliseconds(run) for run in self.executions)
        return {
            "averageRunTime": round(run_time / total, 3) if total else 0,
            "failed": failed,
            "failureRate": round(failed / total, 3) if total else 0,
            "timeSaved": sum(_minutes_saved(run) for run in self.executions),
            "total": total,
        }


def _milliseconds(run: Execution) -> float:
    if run.started_at is None or run.stopped_at is None:
        return 0
    return (run.stopped_at - run.started_at) / timedelta(milliseconds=1)


def _minutes_saved(run: Execution) -> float:
    saved = run.run.snapshot.settings.get("timeSavedPerExecution", 0)
    return saved if run.finished and isinstance(saved, (int, float)) else 0


@operation("get_insights_summary", "GET", "/insights/summary", scope="insights:read", family="lenient", query=_QUERY)
def get_insights_summary(call: Call) -> Any:
    now = call.state.clock.now()
    end: datetime = call.query.get("endDate", now)
    start: datetime = call.query.get("startDate", now - _DEFAULT_SPAN)
    if {"startDate", "endDate"} <= set(call.query) and end < start:
        raise ApiError(400, "endDate must be the same as or after startDate")
    if not call.state.licensed and end - start < timedelta(days=1):
        raise ApiError(403, "Hourly data is not available with your current license")
    if not call.state.licensed and start < now - _DEFAULT_SPAN - timedelta(days=1):
        raise ApiError(403, "The selected date range exceeds the maximum history allowed by your license")
    current = _figures(call, start, end).values()
    before = _figures(call, start - (end - start), start)
    earlier = before.values() if before.executions else None
    return {
        name: {
            "value": current[name],
            "unit": unit,
            "deviation": None if earlier is None else round(current[name] - earlier[name], 3),
        }
        for name, unit in _UNITS.items()
    }


def _figures(call: Call, start: datetime, end: datetime) -> _Figures:
    project_id = call.query.get("projectId")
    return _Figures(
        [
            run
            for run in call.state.executions
            if run.status in ("success", *_FAILURES)
            and run.mode != "manual"
            and run.stopped_at is not None
            and start <= run.stopped_at <= end
            and (project_id is None or run.project_id == project_id)
        ]
    )
