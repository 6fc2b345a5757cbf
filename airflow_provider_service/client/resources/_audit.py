"""The security audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from airflow_provider_service.client._models import ServiceModel
from airflow_provider_service.client.resources._base import Resource, read, without_none


class AuditSection(ServiceModel):
    """A kind of finding, and where it was found."""

    title: str
    description: str
    recommendation: str
    location: list[dict[str, Any]] | None = None


class AuditReport(ServiceModel):
    """The findings of one category."""

    risk: str
    sections: list[AuditSection]


#: Reports with findings by title, e.g. ``"Credentials Risk Report"``; empty if nothing was found.
AuditReports = dict[str, AuditReport]


AuditCategory = Literal["credentials", "database", "nodes", "filesystem", "instance"]


class Audit(Resource):
    """The security audit of the instance."""

    def generate(
        self,
        *,
        categories: Sequence[AuditCategory] | None = None,
        days_abandoned_workflow: int | None = None,
        timeout: float | None = None,
    ) -> AuditReports:
        """Audit the instance: ``POST /audit``. Safe to repeat.

        :param categories: what to examine, by default everything.
        :param days_abandoned_workflow: days without an execution after which a workflow counts as abandoned.
        :param timeout: seconds to wait for the answer instead of the connection's setting.
        :returns: the reports with findings, by title; empty if nothing was found.
        """
        options = without_none(categories=categories, daysAbandonedWorkflow=days_abandoned_workflow)
        body = {"additionalOptions": options} if options else None
        answer = self._transport.call(
            "POST", "/audit", scope="securityAudit:generate", body=body, repeatable=True, timeout=timeout
        )
        # Without findings, the server answers with an empty array instead of an object.
        return read(AuditReports, {} if answer == [] else answer, "POST", "/audit")
