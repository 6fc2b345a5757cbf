"""Projects and their members."""

from __future__ import annotations

from typing import Any, Literal

from airflow_provider_service.client.models._base import ServiceModel, Timestamp


class Project(ServiceModel):
    """A project; the caller's ``role`` and ``scopes`` are present in the answer to a create."""

    id: str
    name: str
    type: Literal["personal", "team"] | str | None = None
    icon: dict[str, Any] | None = None
    description: str | None = None
    custom_telemetry_tags: list[dict[str, Any]] | None = None
    creator_id: str | None = None
    role: str | None = None
    scopes: list[str] | None = None
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None


class ProjectUser(ServiceModel):
    """A member of a project and the role in it."""

    id: str
    email: str
    first_name: str | None = None
    last_name: str | None = None
    role: str | None = None
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None
