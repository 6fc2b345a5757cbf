"""Files of the source control connection."""

from __future__ import annotations

from typing import Any, Literal

from airflow_provider_service.client.models._base import ServiceModel

FileType = Literal["credential", "workflow", "tags", "variables", "file", "folders", "project", "datatable"]
FileStatus = Literal["new", "modified", "deleted", "created", "renamed", "conflicted", "ignored", "staged", "unknown"]


class SourceControlledFile(ServiceModel):
    """A changed object: pending in a status, or the result of a push or pull."""

    file: str
    id: str
    name: str
    type: FileType | str
    status: FileStatus | str
    location: Literal["local", "remote"] | str
    conflict: bool
    # Text, because it is empty or has another precision for some kinds of file.
    updated_at: str | None = None
    pushed: bool | None = None
    is_local_published: bool | None = None
    is_remote_archived: bool | None = None
    parent_folder_id: str | None = None
    folder_path: list[str] | None = None
    remote_folder_path: list[str] | None = None
    owner: dict[str, Any] | None = None
    publishing_error: str | None = None
    publishing_error_details: dict[str, Any] | None = None
    content_import_policy: dict[str, Any] | None = None


class FileList(ServiceModel):
    """The envelope of the files in the answer to a status or push."""

    data: list[SourceControlledFile]
