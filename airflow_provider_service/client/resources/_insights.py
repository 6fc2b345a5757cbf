"""Figures of production executions."""

from __future__ import annotations

from typing import Literal

from airflow_provider_service.client._models import Number, ServiceModel
from airflow_provider_service.client.resources._base import Moment, Resource, moment, require_id


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


class Insights(Resource):
    """Figures of production executions."""

    def get_summary(
        self, *, start_date: Moment | None = None, end_date: Moment | None = None, project_id: str | None = None
    ) -> InsightsSummary:
        """Read the figures of a time range: ``GET /insights/summary``.

        :param start_date: a datetime with a time zone, or ISO 8601 text; seven days ago by default.
        :param end_date: a datetime with a time zone, or ISO 8601 text; now by default.
        :param project_id: only executions of the project; an unknown project has zeros.
        :raises ServiceInputError: a datetime has no time zone, or the project is empty.
        :raises ServiceInvalidRequestError: the end is before the start.
        :raises ServiceNotLicensedError: the start is further in the past than the plan allows.
        """
        require_id("project_id", project_id)
        query = {
            "startDate": moment("start_date", start_date),
            "endDate": moment("end_date", end_date),
            "projectId": project_id,
        }
        return self._call(InsightsSummary, "GET", "/insights/summary", scope="insights:read", query=query)
