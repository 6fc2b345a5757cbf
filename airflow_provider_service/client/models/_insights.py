"""Insights."""

from __future__ import annotations

from typing import Literal

from airflow_provider_service.client.models._base import Number, ServiceModel


class InsightsFigure(ServiceModel):
    """A figure and its change from the previous period, which is None if there is nothing to compare with."""

    value: Number
    deviation: Number | None
    unit: Literal["count", "ratio", "minute", "millisecond"] | str


class InsightsSummary(ServiceModel):
    """Figures of production executions in a time range; they lag behind the executions."""

    total: InsightsFigure
    failed: InsightsFigure
    failure_rate: InsightsFigure
    time_saved: InsightsFigure
    average_run_time: InsightsFigure
