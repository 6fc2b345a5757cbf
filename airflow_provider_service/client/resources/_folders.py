"""Folders of a project."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from airflow_provider_service.client._http.paging import follow_skip
from airflow_provider_service.client._models import ServiceModel, Timestamp
from airflow_provider_service.client.resources._base import Resource, json_text, without_none


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


#: The id of a project's root, wherever the API takes the id of a folder.
ROOT = "0"


class Folders(Resource):
    """Folders of a project; available on some plans of the server only (:class:`ServiceNotLicensedError`)."""

    def create(self, project_id: str, name: str, *, parent_folder_id: str | None = None) -> Folder:
        """Create a folder: ``POST /projects/{projectId}/folders``. Not safe to repeat: names are not unique.

        :param project_id: id, or ``"personal"`` for the project of the key's user.
        :param parent_folder_id: folder to create it in, by default the project's root.
        :raises ServiceNotFoundError: no such project or parent.
        """
        body = without_none(name=name, parentFolderId=parent_folder_id)
        return self._call(Folder, "POST", "/projects/{}/folders", project_id, scope="folder:create", body=body)

    def list(
        self,
        project_id: str,
        *,
        filter: Mapping[str, Any] | None = None,
        select: Sequence[str] | None = None,
        sort_by: Literal["name:asc", "name:desc", "createdAt:asc", "createdAt:desc", "updatedAt:asc", "updatedAt:desc"]
        | None = None,
        limit: int | None = None,
    ) -> Iterator[FolderItem]:
        """Iterate over the folders of a project: ``GET /projects/{projectId}/folders``.

        :param filter: ``parentFolderId``, ``name``, ``tags`` (a list), ``excludeFolderIdAndDescendants``.
        :param select: only these fields, by their names on the wire, e.g. ``["id", "name", "path"]``.
        :param limit: maximum number of folders; None for all.
        :raises ServiceNotFoundError: no such project.
        """
        query = {"filter": json_text(filter), "select": json_text(select), "sortBy": sort_by}
        return self._pages(
            FolderItem,
            "/projects/{}/folders",
            project_id,
            scope="folder:list",
            query=query,
            limit=limit,
            follow=follow_skip,
        )

    def get(self, project_id: str, folder_id: str) -> Folder:
        """Read a folder with the totals of its contents: ``GET /projects/{projectId}/folders/{folderId}``.

        :raises ServiceNotFoundError: no such project or folder.
        """
        return self._call(Folder, "GET", "/projects/{}/folders/{}", project_id, folder_id, scope="folder:read")

    def update(
        self, project_id: str, folder_id: str, *, name: str | None = None, parent_folder_id: str | None = None
    ) -> Folder:
        """Rename or move a folder: ``PATCH /projects/{projectId}/folders/{folderId}``. Safe to repeat.

        :param name: the new name.
        :param parent_folder_id: folder to move it to; ``ROOT`` for the project's root (null is not accepted).
        :raises ServiceInvalidRequestError: neither is given, or the folder would be inside itself.
        :raises ServiceNotFoundError: no such project, folder or parent.
        """
        return self._call(
            Folder,
            "PATCH",
            "/projects/{}/folders/{}",
            project_id,
            folder_id,
            scope="folder:update",
            body=without_none(name=name, parentFolderId=parent_folder_id),
            repeatable=True,
        )

    def delete(self, project_id: str, folder_id: str, *, transfer_to_folder_id: str | None = None) -> None:
        """Delete a folder: ``DELETE /projects/{projectId}/folders/{folderId}``.

        Safe to repeat, but if an answer is lost, the automatic repeat raises ``ServiceNotFoundError`` although the
        object has been deleted.

        :param transfer_to_folder_id: folder to move the contents to; without it, workflows are archived and moved to
            the project's root, and subfolders are deleted.
        :raises ServiceNotFoundError: no such project or folder.
        """
        query = {"transferToFolderId": transfer_to_folder_id}
        self._run("DELETE", "/projects/{}/folders/{}", project_id, folder_id, scope="folder:delete", query=query)
