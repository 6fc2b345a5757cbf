"""Compare projects and their members with a declaration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_service._airflow.arguments import refuse, repeated, require
from airflow_provider_service._core.instances.desired_state.changes import DesiredStateChange, DesiredStatePlan, Prune
from airflow_provider_service._core.instances.desired_state.reading import named_values, require_short
from airflow_provider_service.client._lookup import find_project, owner_of
from airflow_provider_service.client.errors import ServiceLookupError, ServiceNotFoundError, ServiceNotLicensedError

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import Project

MAX_PROJECT_CHARS = 255
#: The role of each member by email address in lower case; None for one who must not be a member.
Roles = Mapping[str, "str | None"]


@dataclass(frozen=True)
class _Members:
    """The changes of a project's members: roles by email address, and addresses.

    :param ids: the ids of their users by email address.
    """

    added: Mapping[str, str] = field(default_factory=dict)
    changed: Mapping[str, str] = field(default_factory=dict)
    removed: Sequence[str] = ()
    ids: Mapping[str, str] = field(default_factory=dict)

    def details(self) -> dict[str, Any]:
        named = {"added_members": self.added, "changed_members": self.changed, "removed_members": self.removed}
        return {name: value for name, value in named.items() if value}

    def perform(self, client: Resources, project_id: str) -> None:
        if self.added:
            relations = [{"userId": self.ids[email], "role": role} for email, role in self.added.items()]
            client.projects.add_users(project_id, relations)
        for email, role in self.changed.items():
            client.projects.change_user_role(project_id, self.ids[email], role)
        for email in self.removed:
            with suppress(ServiceNotFoundError):
                client.projects.delete_user(project_id, self.ids[email])


def plan_projects(
    client: Resources,
    desired: Any,
    prune: Prune,
    *,
    find: Callable[[Resources, str], Project | None] = find_project,
) -> DesiredStatePlan:
    """Plan the changes that bring team projects and their members to the declared state.

    :param desired: the members of each project by its name: their roles by email address, and None for one who must not
        be a member. Other members are kept.
    :param find: finds a project by its name.
    :raises ServiceInputError: a project cannot be brought to its declared state, or would be deleted although it is not
        empty.
    :raises ServiceLookupError: a declared member is not a user, or several projects have the same declared name.
    """
    projects = {name: _roles(name, members) for name, members in named_values("projects", desired).items()}
    require_short("project", projects, MAX_PROJECT_CHARS)
    existing = {name: find(client, name) for name in projects}
    users = _Users(client)
    changes = []
    for name, roles in projects.items():
        found = existing[name]
        changes += _creation(name, roles, users) if found is None else _update(found, roles, users)
    users.require_known()
    deleted = prune.deletions(
        (one for one in client.projects.list() if one.type == "team"),
        projects,
        lambda client, one: client.projects.delete(one.id),
    )
    _require_empty(client, [change.name for change in deleted])
    return DesiredStatePlan([*changes, *deleted], len(projects) - len(changes))


class _Users:
    """The ids of users by email address, read only when they are needed."""

    def __init__(self, client: Resources) -> None:
        self.client = client
        self._ids: dict[str, str] = {}
        self._unknown: list[str] = []

    def ids(self, emails: Sequence[str]) -> dict[str, str]:
        if emails and not self._ids:
            self._ids = {one.email.lower(): one.id for one in self.client.users.list()}
        self._unknown += [email for email in emails if email not in self._ids]
        return {email: self._ids.get(email, "") for email in emails}

    def require_known(self) -> None:
        if self._unknown:
            raise ServiceLookupError(
                f"there is no user with the email address {', '.join(sorted(set(self._unknown)))}, or this key may not "
                "see it; invite users first"
            )


def _roles(name: str, members: object) -> dict[str, str | None]:
    roles = {} if members is None else named_values(f"the members of project {name!r}", members)
    for email, role in roles.items():
        if role is not None and (not isinstance(role, str) or not role.strip()):
            refuse(f"the role of {email} in project {name!r}", "text such as project:editor, or nothing", role)
    twice = sorted(repeated([email.lower() for email in roles]))
    require(not twice, f"project {name!r} has {', '.join(twice)} more than once, regardless of case")
    return {email.lower(): role for email, role in roles.items()}


def _creation(name: str, roles: Roles, users: _Users) -> list[DesiredStateChange]:
    added = {email: role for email, role in roles.items() if role is not None}
    users.ids(list(added))  # refuses who is no user before the project is created

    def perform(client: Resources) -> None:
        # The service makes the key's user an admin of the project, who may be declared otherwise.
        for change in _update(client.projects.create(name), roles, users):
            change.perform(client)

    return [DesiredStateChange("create", name, _Members(added=added).details(), perform)]


def _update(project: Project, roles: Roles, users: _Users) -> list[DesiredStateChange]:
    require(project.type != "personal", f"{project.name!r} is a personal project, whose members cannot be changed")
    if not roles:
        return []
    existing = {one.email.lower(): one for one in users.client.projects.list_users(project.id)}
    added = {email: role for email, role in roles.items() if role is not None and email not in existing}
    members = _Members(
        added=added,
        changed={
            email: role for email, role in roles.items() if role and email in existing and existing[email].role != role
        },
        removed=[email for email, role in roles.items() if role is None and email in existing],
        ids={**{email: one.id for email, one in existing.items()}, **users.ids(list(added))},
    )
    details = members.details()
    return (
        [DesiredStateChange("update", project.name, details, partial(members.perform, project_id=project.id))]
        if details
        else []
    )


def _require_empty(client: Resources, names: Sequence[str]) -> None:
    """Refuse to delete a project that is not empty, because the service would delete its contents as well."""
    if not names:
        return
    others = {*(owner_of(one.shared)[0] for one in client.credentials.list()), *_projects_with_variables(client)}
    holding = []
    for one in client.projects.list():
        if one.name in names and one.type == "team":
            workflows = any(True for _ in client.workflows.list(project_id=one.id, limit=1))
            tables = any(True for _ in client.data_tables.list(filter={"projectId": one.id}, limit=1))
            holding += [repr(one.name)] if workflows or tables or one.id in others else []
    require(
        not holding,
        f"the projects {', '.join(holding)} hold workflows, credentials, variables or data tables, which would be "
        "deleted with them; move or delete these first",
    )


def _projects_with_variables(client: Resources) -> Iterator[str]:
    with suppress(ServiceNotLicensedError):  # a plan without variables has none that could be lost
        for variable in client.variables.list():
            if variable.project:
                yield variable.project.id
