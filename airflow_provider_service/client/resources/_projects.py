"""Projects and their members."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from airflow_provider_service.client._models import ServiceModel, Timestamp
from airflow_provider_service.client.resources._base import Resource, require


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


class Projects(Resource):
    """Projects and their members; available on some plans of the server only (:class:`ServiceNotLicensedError`)."""

    def list(self, *, limit: int | None = None) -> Iterator[Project]:
        """Iterate over projects: ``GET /projects``.

        :param limit: maximum number of projects; None for all.
        """
        return self._pages(Project, "/projects", scope="project:list", limit=limit)

    def create(self, name: str) -> Project:
        """Create a team project: ``POST /projects``. Not safe to repeat: names are not unique.

        :param name: 1 to 255 characters.
        """
        return self._call(Project, "POST", "/projects", scope="project:create", body={"name": name})

    def update(self, project_id: str, name: str) -> None:
        """Rename a project: ``PUT /projects/{projectId}``. Safe to repeat.

        :raises ServiceNotFoundError: no such project.
        """
        self._run("PUT", "/projects/{}", project_id, scope="project:update", body={"name": name})

    def delete(self, project_id: str) -> None:
        """Delete a project: ``DELETE /projects/{projectId}``.

        Safe to repeat, but if an answer is lost, the automatic repeat raises ``ServiceNotFoundError`` although the
        object has been deleted.

        :raises ServiceNotFoundError: no such project.
        """
        self._run("DELETE", "/projects/{}", project_id, scope="project:delete")

    def list_users(self, project_id: str, *, limit: int | None = None) -> Iterator[ProjectUser]:
        """Iterate over the members of a project: ``GET /projects/{projectId}/users``.

        :param limit: maximum number of members; None for all.
        :raises ServiceNotFoundError: no such project.
        """
        return self._pages(ProjectUser, "/projects/{}/users", project_id, scope="user:list", limit=limit)

    def add_users(self, project_id: str, relations: Sequence[Mapping[str, str]]) -> None:
        """Add members to a project: ``POST /projects/{projectId}/users``.

        Not safe to repeat: it would overwrite roles that were changed since.

        :param relations: ``{"userId": ..., "role": ...}`` each, e.g. with the role ``project:editor``.
        :raises ServiceNotFoundError: no such project or user.
        """
        require(
            not isinstance(relations, (str, Mapping)) and len(relations) > 0,
            "relations must be a list of at least one user and role",
        )
        body = {"relations": relations}
        self._run("POST", "/projects/{}/users", project_id, scope="project:manageMembers", body=body)

    def change_user_role(self, project_id: str, user_id: str, role: str) -> None:
        """Change a member's role: ``PATCH /projects/{projectId}/users/{userId}``. Safe to repeat.

        :param role: e.g. ``"project:viewer"``.
        :raises ServiceNotFoundError: no such project or member.
        """
        self._run(
            "PATCH",
            "/projects/{}/users/{}",
            project_id,
            user_id,
            scope="project:manageMembers",
            body={"role": role},
            repeatable=True,
        )

    def delete_user(self, project_id: str, user_id: str) -> None:
        """Remove a member: ``DELETE /projects/{projectId}/users/{userId}``.

        Safe to repeat, but if an answer is lost, the automatic repeat raises ``ServiceNotFoundError`` although the
        member has been removed.

        :raises ServiceNotFoundError: no such project or member.
        """
        self._run("DELETE", "/projects/{}/users/{}", project_id, user_id, scope="project:manageMembers")
