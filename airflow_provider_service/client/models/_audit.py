"""The security audit."""

from __future__ import annotations

from typing import Any

from airflow_provider_service.client.models._base import ServiceModel


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
