"""Projects: one personal project per user, and team projects with members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow_provider_service.simulator._host import Host
from airflow_provider_service.simulator._stores.users import UserStore
from airflow_provider_service.simulator._validation import ApiError

ADMIN_ROLE = "project:admin"
PERSONAL_ROLE = "project:personalOwner"
MEMBER_ROLES = (ADMIN_ROLE, "project:editor", "project:viewer", "project:chatUser")

_ADMIN_ACTIONS = {
    "credential": "create delete list move read update",
    "dataTable": "create delete listProject read update",
    "folder": "create delete list read update",
    "project": "delete list manageMembers read update",
    "workflow": "create delete execute list move publish read unpublish update",
}
#: The scopes of a project's creator.
ADMIN_SCOPES = tuple(
    f"{resource}:{action}" for resource, actions in _ADMIN_ACTIONS.items() for action in actions.split()
)


class ProjectStore:
    """Projects in creation order, with the roles of their members."""

    def __init__(self, host: Host, users: UserStore) -> None:
        self._host = host
        self._users = users
        self._projects: dict[str, dict[str, Any]] = {}
        self._members: dict[str, dict[str, str]] = {}

    def all(self) -> Sequence[dict[str, Any]]:
        return list(self._projects.values())

    def find(self, project_id: str) -> dict[str, Any] | None:
        return self._projects.get(project_id)

    def get(self, project_id: str) -> dict[str, Any]:
        """One project.

        :raises ApiError: 404
        """
        project = self._projects.get(project_id)
        if project is None:
            raise ApiError(404, "Project not found")
        return project

    def add_personal(self, user: dict[str, Any]) -> dict[str, Any]:
        """Create a user's personal project."""
        owner = user["id"] == self._host.owner_id
        names = [name for name in (user["firstName"], user["lastName"]) if name]
        project_id = self._host.personal_project_id if owner else self._host.new_id()
        project = self._add(project_id, " ".join([*names, f"<{user['email']}>"]), "personal", user["id"])
        self._members[project_id][user["id"]] = PERSONAL_ROLE
        return project

    def create(self, name: str, creator_id: str, *, project_id: str | None = None) -> dict[str, Any]:
        """Create a team project that its creator administers."""
        project = self._add(project_id or self._host.new_id(), name, "team", creator_id)
        self._members[project["id"]][creator_id] = ADMIN_ROLE
        return project

    def _add(self, project_id: str, name: str, kind: str, creator_id: str) -> dict[str, Any]:
        now = self._host.stamp()
        project: dict[str, Any] = {
            "id": project_id,
            "name": name,
            "type": kind,
            "icon": None,
            "description": None,
            "customTelemetryTags": [],
            "creatorId": creator_id,
            "createdAt": now,
            "updatedAt": now,
        }
        self._projects[project_id] = project
        self._members[project_id] = {}
        return project

    def rename(self, project_id: str, name: str) -> None:
        """Rename a team project.

        :raises ApiError: 404, 403 a personal one
        """
        self._team(project_id).update(name=name, updatedAt=self._host.stamp())

    def delete(self, project_id: str) -> None:
        """Delete a team project; its contents are deleted by their stores.

        :raises ApiError: 404, 403 a personal one
        """
        self._drop(self._team(project_id)["id"])

    def _team(self, project_id: str) -> dict[str, Any]:
        project = self.get(project_id)
        if project["type"] != "team":
            raise ApiError(403, "Forbidden")
        return project

    def _drop(self, project_id: str) -> None:
        del self._projects[project_id], self._members[project_id]

    # ------------------------------------------------------------ members

    def members(self, project_id: str) -> list[dict[str, Any]]:
        """The members as ``{id, email, firstName, lastName, createdAt, updatedAt, role}``.

        :raises ApiError: 404
        """
        self.get(project_id)
        names = ("id", "email", "firstName", "lastName", "createdAt", "updatedAt")
        users = ((self._users.get(user_id), role) for user_id, role in self._members[project_id].items())
        return [{**{name: user[name] for name in names}, "role": role} for user, role in users]

    def is_member(self, project_id: str, user_id: str) -> bool:
        return user_id in self._members[project_id]

    def add_members(self, project_id: str, relations: Sequence[tuple[str, str]]) -> None:
        """Add (user id, role) pairs to a team project, all or none; a member's role is replaced.

        :raises ApiError: 404 project or user, 400 unknown role, 403 a personal project
        """
        self._team(project_id)
        for user_id, role in relations:
            self._users.get(user_id)
            _check_role(role)
        self._members[project_id].update(relations)

    def change_role(self, project_id: str, user_id: str, role: str) -> None:
        """Give a member another role.

        :raises ApiError: 404, 400 unknown role, 403 a personal project
        """
        self._member(project_id, user_id)
        _check_role(role)
        self._members[project_id][user_id] = role

    def remove_member(self, project_id: str, user_id: str) -> None:
        """Take a member out of a team project.

        :raises ApiError: 404, 403 a personal project
        """
        self._member(project_id, user_id)
        del self._members[project_id][user_id]

    def _member(self, project_id: str, user_id: str) -> None:
        self._team(project_id)
        if user_id not in self._members[project_id]:
            raise ApiError(404, f"Could not find user with id: {user_id}")

    def delete_user(self, user_id: str) -> str:
        """Remove a deleted user's memberships and personal project, and return the id of this project."""
        for members in self._members.values():
            members.pop(user_id, None)
        personal = (p["id"] for p in self.all() if p["type"] == "personal" and p["creatorId"] == user_id)
        project_id: str = next(personal)
        self._drop(project_id)
        return project_id


def _check_role(role: str) -> None:
    if role not in MEMBER_ROLES:
        raise ApiError(400, f"Role {role} does not exist")
