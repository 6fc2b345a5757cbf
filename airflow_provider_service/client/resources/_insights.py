"""Insights."""

from __future__ import annotations

from airflow_provider_service.client.models._insights import InsightsSummary
from airflow_provider_service.client.resources._base import Moment, Resource, moment, require_id


class Insights(Resource):
    """Figures of production executions."""

    def get_summary(
        self,
        *,
        start_date: Moment | None = None,
        end_date: Moment | None = None,
        project_id: str | None = None,
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
