"""Folders of a project."""

from __future__ import annotations

from typing import Any

from airflow_provider_service.client.models._base import ServiceModel, Timestamp


class FolderItem(ServiceModel):
    """A folder in a list: it has only the fields that were selected."""

    id: str | None = None
    name: str | None = None
    parent_folder_id: str | None = None
    project: dict[str, Any] | None = None
    tags: list[dict[str, Any]] | None = None
    parent_folder: dict[str, Any] | None = None
    workflow_count: int | None = None
    sub_folder_count: int | None = None
    path: list[str] | None = None
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None


class Folder(ServiceModel):
    """A folder. The totals are present if a single folder was read, and include all levels below it."""

    id: str
    name: str
    parent_folder_id: str | None = None
    total_sub_folders: int | None = None
    total_workflows: int | None = None
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None
