"""Insights."""

from __future__ import annotations

from typing import Literal

from airflow_provider_service.client.models._base import Number, ServiceModel


class InsightsFigure(ServiceModel):
    """A figure, and by how much it differs from the period before; None when there is nothing to compare with."""

    value: Number
    deviation: Number | None
    unit: Literal["count", "ratio", "minute", "millisecond"] | str


class InsightsSummary(ServiceModel):
    """Figures of production executions in a range of time; they lag behind the executions."""

    total: InsightsFigure
    failed: InsightsFigure
    failure_rate: InsightsFigure
    time_saved: InsightsFigure
    average_run_time: InsightsFigure
