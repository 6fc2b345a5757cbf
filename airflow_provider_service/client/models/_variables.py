"""Instance and project variables."""

from __future__ import annotations

from airflow_provider_service.client.models._base import ServiceModel
from airflow_provider_service.client.models._projects import Project


class Variable(ServiceModel):
    """A variable; ``project`` is None if it belongs to the whole instance."""

    id: str
    key: str
    value: str
    type: str | None = None
    project: Project | None = None
