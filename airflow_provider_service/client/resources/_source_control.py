"""The source control connection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from airflow_provider_service.client._models import ServiceModel
from airflow_provider_service.client.resources._base import Resource, require, without_none

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


class SourceControl(Resource):
    """The connected Git branch; available on some plans of the server only (:class:`ServiceNotLicensedError`)."""

    def get_status(self, direction: Literal["push", "pull"]) -> list[SourceControlledFile]:
        """Preview what a push or pull would change: ``GET /source-control/status``.

        :raises ServiceInvalidRequestError: no repository is connected.
        """
        query = {"direction": direction}
        return self._call(FileList, "GET", "/source-control/status", scope="sourceControl:read", query=query).data

    def push(
        self,
        commit_message: str,
        file_names: Sequence[Mapping[str, str]],
        *,
        force: bool | None = None,
        timeout: float | None = None,
    ) -> list[SourceControlledFile]:
        """Commit and push objects: ``POST /source-control/push``. Not safe to repeat: it would commit twice.

        :param commit_message: 1 to 1000 characters.
        :param file_names: ``{"id": ..., "type": ...}`` each, as in :meth:`get_status`.
        :param force: push despite conflicts.
        :param timeout: seconds to wait for the answer instead of the connection's setting.
        :raises ServiceConflictError: some of the files conflict.
        :raises ServiceInvalidRequestError: no repository is connected, or a file has nothing to push.
        """
        require(
            not isinstance(file_names, (str, Mapping)) and len(file_names) > 0,
            "file_names must be a list of at least one id and type",
        )
        body = without_none(commitMessage=commit_message, fileNames=file_names, force=force)
        return self._call(
            FileList, "POST", "/source-control/push", scope="sourceControl:push", body=body, timeout=timeout
        ).data

    def pull(
        self,
        *,
        force: bool | None = None,
        auto_publish: Literal["none", "all", "published"] | None = None,
        timeout: float | None = None,
    ) -> list[SourceControlledFile]:
        """Pull the branch into the instance: ``POST /source-control/pull``.

        Not safe to repeat: the first call may still be running.

        :param force: discard local changes.
        :param auto_publish: which pulled workflows to publish; by default the server publishes none.
        :param timeout: seconds to wait for the answer instead of the connection's setting.
        :returns: what was pulled.
        :raises ServiceConflictError: local changes are in the way; the message lists them.
        :raises ServiceInvalidRequestError: no repository is connected.
        """
        body = without_none(force=force, autoPublish=auto_publish)
        return self._call(
            list[SourceControlledFile],
            "POST",
            "/source-control/pull",
            scope="sourceControl:pull",
            body=body,
            timeout=timeout,
        )
