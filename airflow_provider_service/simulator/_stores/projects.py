"""Users, their personal projects, team projects with members, and the variables of the instance and its projects."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Sequence
from typing import Any

from airflow_provider_service.simulator._host import Host
from airflow_provider_service.simulator._validation import ApiError

OWNER_ROLE = "global:owner"
MEMBER_ROLE = "global:member"
ASSIGNABLE_ROLES = ("global:admin", MEMBER_ROLE, "global:chatUser")


class UserStore:
    """Users by id. Their personal projects are created by the state."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._users: dict[str, dict[str, Any]] = {}
        self._tokens: dict[str, str] = {}

    @property
    def owner_name(self) -> str:
        owner = self.get(self._host.owner_id)
        return f"{owner['firstName']} {owner['lastName']}"

    def add_owner(self) -> dict[str, Any]:
        owner_id = self._host.owner_id  # keys act as this user
        return self.add("owner@example.com", OWNER_ROLE, ("Olivia", "Owner"), user_id=owner_id)

    def add(
        self, email: str, role: str, names: tuple[str, str] | None, *, user_id: str | None = None
    ) -> dict[str, Any]:
        """Create a user; without a first and a last name, one who was invited and has not signed up."""
        now = self._host.stamp()
        first_name, last_name = names or (None, None)
        user: dict[str, Any] = {
            "id": user_id or str(uuid.uuid4()),
            "email": email,
            "firstName": first_name,
            "lastName": last_name,
            "createdAt": now,
            "updatedAt": now,
            "isPending": names is None,
            "mfaEnabled": False,
            "role": role,
        }
        self._users[user["id"]] = user
        return user

    def all(self) -> Sequence[dict[str, Any]]:
        """Every user by id: the service's order does not depend on age or name."""
        return sorted(self._users.values(), key=lambda user: str(user["id"]))

    def find(self, id_or_email: str) -> dict[str, Any] | None:
        if "@" in id_or_email:
            wanted = id_or_email.lower()
            return next((user for user in self._users.values() if user["email"].lower() == wanted), None)
        return self._users.get(id_or_email.lower())

    def get(self, id_or_email: str) -> dict[str, Any]:
        """One user, by id or e-mail address (whatever its case)."""
        user = self.find(id_or_email)
        if user is None:
            raise ApiError(404, f"Could not find user with id: {id_or_email}")
        return user

    def check_invitations(self, invitations: Sequence[tuple[str, str]]) -> None:
        for _, role in invitations:
            if role == OWNER_ROLE:
                raise ApiError(400, "This global role value is not assignable")
            if role not in ASSIGNABLE_ROLES:
                raise ApiError(400, f"Role {role} does not exist")
            if role == "global:admin" and not self._host.licensed:
                text = "Cannot invite admin user without advanced permissions. "
                raise ApiError(403, text + "Please upgrade to a license that includes this feature.")
        emails = {user["email"].lower(): user["email"] for user in self._users.values()}
        for email, _ in invitations:
            if emails.setdefault(email.lower(), email) != email:
                raise ApiError(500, "An error occurred during user creation")

    def invitation(self, user: dict[str, Any]) -> dict[str, Any]:
        """The invitation of a user who has not signed up; its URL is always the same."""
        token = self._tokens.setdefault(user["id"], secrets.token_urlsafe(32))
        invited = {name: user[name] for name in ("id", "email", "role")}
        accept_url = f"{self._host.base_url}/signup?token={token}"
        return {"user": {**invited, "emailSent": False, "inviteAcceptUrl": accept_url}, "error": ""}

    def change_role(self, user_id: str, role: str) -> None:
        user = self.get(user_id)
        if role not in ASSIGNABLE_ROLES:
            raise ApiError(400, f"Role {role} does not exist")
        if user["role"] == OWNER_ROLE:
            raise ApiError(403, "Owner cannot change role on global owner")
        user.update(role=role, updatedAt=self._host.stamp())

    def delete(self, user_id: str, *, by: str) -> None:
        """Delete a user by id; an e-mail address is not accepted."""
        if user_id == by:
            raise ApiError(400, "Cannot delete your own user")
        if user_id not in self._users:
            raise ApiError(404, "Request to delete a user failed because the user to delete was not found in DB")
        del self._users[user_id]


# ---------------------------------------------------------------- projects

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
        project = self._projects.get(project_id)
        if project is None:
            raise ApiError(404, "Project not found")
        return project

    def add_personal(self, user: dict[str, Any]) -> dict[str, Any]:
        owner = user["id"] == self._host.owner_id
        names = [name for name in (user["firstName"], user["lastName"]) if name]
        project_id = self._host.personal_project_id if owner else self._host.new_id()
        project = self._add(project_id, " ".join([*names, f"<{user['email']}>"]), "personal", user["id"])
        self._members[project_id][user["id"]] = PERSONAL_ROLE
        return project

    def create(self, name: str, creator_id: str, *, project_id: str | None = None) -> dict[str, Any]:
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
        self._team(project_id).update(name=name, updatedAt=self._host.stamp())

    def delete(self, project_id: str) -> None:
        """Delete a team project; its contents are deleted by their stores."""
        self._team(project_id)
        del self._projects[project_id], self._members[project_id]

    def _team(self, project_id: str) -> dict[str, Any]:
        project = self.get(project_id)
        if project["type"] != "team":
            raise ApiError(403, "Forbidden")
        return project

    # ------------------------------------------------------------ members

    def members(self, project_id: str) -> list[dict[str, Any]]:
        self.get(project_id)
        names = ("id", "email", "firstName", "lastName", "createdAt", "updatedAt")
        users = ((self._users.get(user_id), role) for user_id, role in self._members[project_id].items())
        return [{**{name: user[name] for name in names}, "role": role} for user, role in users]

    def is_member(self, project_id: str, user_id: str) -> bool:
        return user_id in self._members[project_id]

    def add_members(self, project_id: str, relations: Sequence[tuple[str, str]]) -> None:
        """Add (user id, role) pairs to a team project, all or none; a member's role is replaced."""
        self._team(project_id)
        for user_id, role in relations:
            self._users.get(user_id)
            _check_role(role)
        self._members[project_id].update(relations)

    def change_role(self, project_id: str, user_id: str, role: str) -> None:
        self._member(project_id, user_id)
        _check_role(role)
        self._members[project_id][user_id] = role

    def remove_member(self, project_id: str, user_id: str) -> None:
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
        of_user = (project for project in self._projects.values() if project["creatorId"] == user_id)
        project_id: str = next(project["id"] for project in of_user if project["type"] == "personal")
        del self._projects[project_id], self._members[project_id]
        return project_id


def _check_role(role: str) -> None:
    if role not in MEMBER_ROLES:
        raise ApiError(400, f"Role {role} does not exist")


# ---------------------------------------------------------------- variables


class VariableStore:
    """Variables in creation order; a key is unique within the instance, and within each project."""

    def __init__(self, host: Host, projects: ProjectStore) -> None:
        self._host = host
        self._projects = projects
        self._variables: dict[str, dict[str, Any]] = {}

    def all(self, *, project_id: str | None = None, empty: bool = False) -> Sequence[dict[str, Any]]:
        """The variables of a project (None: all variables), or only those with an empty value."""
        return [
            variable
            for variable in self._variables.values()
            if (project_id is None or variable["projectId"] == project_id) and not (empty and variable["value"])
        ]

    def describe(self, variable: dict[str, Any]) -> dict[str, Any]:
        project_id = variable["projectId"]
        return {
            "id": variable["id"],
            "key": variable["key"],
            "value": variable["value"],
            "type": "string",
            "project": None if project_id is None else self._projects.get(project_id),
        }

    def get(self, variable_id: str) -> dict[str, Any]:
        variable = self._variables.get(variable_id)
        if variable is None:
            raise ApiError(404, f"Variable with id {variable_id} not found")
        return variable

    def named(self, key: str, project_id: str | None = None) -> dict[str, Any] | None:
        """The variable with that key in exactly this place (None: the instance)."""
        for variable in self._variables.values():
            if variable["key"] == key and variable["projectId"] == project_id:
                return variable
        return None

    def create(self, key: str, value: str, project_id: str | None = None) -> dict[str, Any]:
        self._check(key, project_id)
        variable: dict[str, Any] = {"id": self._host.new_id(), "key": key, "value": value, "projectId": project_id}
        self._variables[variable["id"]] = variable
        return variable

    def update(self, variable_id: str, key: str, value: str, project_id: str | None) -> None:
        variable = self.get(variable_id)
        self._check(key, project_id, besides=variable_id)
        variable.update(key=key, value=value, projectId=project_id)

    def delete(self, variable_id: str) -> None:
        del self._variables[self.get(variable_id)["id"]]

    def delete_project(self, project_id: str) -> None:
        self._variables = {
            variable["id"]: variable for variable in self._variables.values() if variable["projectId"] != project_id
        }

    def _check(self, key: str, project_id: str | None, *, besides: str | None = None) -> None:
        if project_id is not None:
            self._projects.get(project_id)
        holder = self.named(key, project_id)
        if holder is not None and holder["id"] != besides:
            place = "global" if project_id is None else "project"
            raise ApiError(400, f'A {place} variable with key "{key}" already exists')
