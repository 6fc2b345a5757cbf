"""The outcome of importing a workflow package."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from airflow_provider_service.client.models._base import ServiceModel, Timestamp


class PackageSource(ServiceModel):
    """The origin of a package."""

    source_version: str = Field(alias="sourceN8nVersion")
    source_id: str
    exported_at: Timestamp


class ImportedWorkflow(ServiceModel):
    """A workflow of the package, and what the import did with it."""

    source_workflow_id: str
    local_id: str
    name: str
    status: str
    project_id: str | None = None
    parent_folder_id: str | None = None
    active_version_id: str | None = None
    is_archived: bool | None = None
    publishing: dict[str, Any] | None = None


class ImportResult(ServiceModel):
    """What an import created, changed, skipped and removed; ``bindings`` maps ids in the package to local ids."""

    package: PackageSource
    workflows: list[ImportedWorkflow]
    folders: list[dict[str, Any]] | None = None
    projects: list[dict[str, Any]] | None = None
    removed_workflows: list[dict[str, Any]] | None = None
    removed_folders: list[dict[str, Any]] | None = None
    credentials: dict[str, list[str]] | None = None
    data_tables: dict[str, int] | None = None
    variables: dict[str, list[str]] | None = None
    tags: dict[str, list[str]] | None = None
    bindings: dict[str, dict[str, str]] | None = None
