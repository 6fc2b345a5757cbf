"""Compare tags, variables, data tables and projects with a declaration, and plan the changes that it needs.

Columns and rows of tables are never removed, and values of variables never shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.arguments import as_list, refuse, repeated, require, require_choice
from airflow_provider_service._core.instances.desired_changes import (
    DesiredStateChange,
    DesiredStatePlan,
    Prune,
    named_values,
    names_in,
    require_short,
)
from airflow_provider_service._core.rows.options import COLUMN_TYPES
from airflow_provider_service._core.runs.bridge import TAG as BRIDGE_TAG
from airflow_provider_service.client._constraints import require_new_name
from airflow_provider_service.client._lookup import (
    create_tag,
    create_variable,
    find_data_table,
    find_project,
    owner_of,
    variables_of,
)
from airflow_provider_service.client._values import type_of
from airflow_provider_service.client.errors import (
    ServiceInputError,
    ServiceLookupError,
    ServiceNotFoundError,
    ServiceNotLicensedError,
)
from airflow_provider_service.client.resources._tags import MAX_TAG_CHARS

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import DataTable, Project, Variable


MAX_PROJECT_CHARS = 255
MAX_TABLE_CHARS = 128
MAX_VALUE_CHARS = 1000
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,49}")
#: The role of each member by email address in lower case; None for one who must not be a member.
Roles = Mapping[str, "str | None"]


def plan_tags(client: Resources, desired: Any, prune: Prune) -> DesiredStatePlan:
    names = names_in("tags", as_list("tags", desired))
    require_short("tag", names, MAX_TAG_CHARS)
    existing = list(client.tags.list())
    known = {tag.name for tag in existing}
    missing = [name for name in names if name not in known]
    created = [DesiredStateChange("create", name, perform=partial(create_tag, name=name)) for name in missing]
    # Tasks find the bridge by its tag, which a prefix such as "airflow-" would take as well.
    prunable = [tag for tag in existing if tag.name != BRIDGE_TAG]
    deleted = prune.deletions(prunable, names, lambda client, tag: client.tags.delete(tag.id))
    return DesiredStatePlan([*created, *deleted], len(names) - len(missing))


def require_valid_variables(desired: Any) -> None:
    values = named_values("variables", desired)
    wrong = [key for key in values if not _KEY.fullmatch(key)]
    require(
        not wrong,
        "the key of a variable has a letter or underscore, followed by up to 49 letters, digits and underscores, not "
        f"{', '.join(map(repr, wrong))}",
    )
    too_long = [key for key, value in values.items() if isinstance(value, str) and len(value) > MAX_VALUE_CHARS]
    require(
        not too_long,
        f"the value of a variable has at most {MAX_VALUE_CHARS} characters: {', '.join(map(repr, too_long))}",
    )


def plan_variables(client: Resources, desired: Any, prune: Prune, *, project_id: str | None) -> DesiredStatePlan:
    values = named_values("variables", desired)
    for key, value in values.items():
        require(
            isinstance(value, str),
            f"the value of variable {key!r} must be text, not {type_of(value)}; in YAML, put it in quotes",
        )
    existing = {variable.key: variable for variable in variables_of(client, project_id=project_id)}
    changes = [
        _variable_change(key, value, existing.get(key), project_id)
        for key, value in values.items()
        if key not in existing or existing[key].value != value
    ]
    deleted = prune.deletions(existing.values(), values, lambda client, variable: client.variables.delete(variable.id))
    return DesiredStatePlan([*changes, *deleted], len(values) - len(changes))


def _variable_change(key: str, value: str, variable: Variable | None, project_id: str | None) -> DesiredStateChange:
    def perform(client: Resources) -> None:
        existing = variable or create_variable(client, key, value, project_id=project_id)
        if existing is not None:
            client.variables.update(existing.id, key, value)

    return DesiredStateChange("create" if variable is None else "update", key, perform=perform)


def types_by_name(columns: Any) -> dict[str, str]:
    """Read the declared columns of a table, which map names to types, or list ``{"name", "type"}``."""
    pairs = (
        list(columns.items())
        if isinstance(columns, Mapping)
        else [(item.get("name"), item.get("type")) for item in as_list("columns", columns) if isinstance(item, Mapping)]
    )
    # The service does not distinguish column names that differ only in case.
    names = {name.lower() for name, _ in pairs if isinstance(name, str)}
    require(
        len(names) == len(columns),
        "columns must map names to types, or list {'name', 'type'}; each name once, regardless of case",
    )
    for name, kind in pairs:
        require_choice(f"the type of column {name!r}", kind, COLUMN_TYPES)
        require_new_name(name)
    return dict(pairs)


def create_table(client: Resources, name: str, desired: Mapping[str, str], project_id: str | None) -> DataTable:
    columns = [{"name": column, "type": kind} for column, kind in desired.items()]
    return client.data_tables.create(name, columns, project_id=project_id)


def missing_columns(table: DataTable, desired: Mapping[str, str]) -> list[str]:
    existing = {column.name: column.type for column in table.columns or ()}
    # The service answers with an internal error to a name that differs from an existing one only in case.
    folded = {name.casefold(): name for name in existing}
    alike = [
        f"{name!r} differs only in case from {folded[name.casefold()]!r}"
        for name in desired
        if name not in existing and name.casefold() in folded
    ]
    require(not alike, f"data table {table.name!r} ({table.id}) cannot get these columns: {', '.join(alike)}")
    differing = [
        f"{name!r} is {existing[name]}, not {kind}"
        for name, kind in desired.items()
        if existing.get(name, kind) != kind
    ]
    require(
        not differing,
        f"data table {table.name!r} ({table.id}) exists with columns of other types: {', '.join(differing)}; "
        "the service cannot change the type of a column",
    )
    return [name for name in desired if name not in existing]


def add_columns(client: Resources, table: DataTable, desired: Mapping[str, str], missing: Sequence[str]) -> None:
    for name in missing:
        client.data_table_columns.create(table.id, name, desired[name])  # type: ignore[arg-type]


def plan_data_tables(client: Resources, desired: Any, prune: Prune, *, project_id: str | None) -> DesiredStatePlan:
    tables = {name: types_by_name(columns) for name, columns in named_values("data_tables", desired).items()}
    require_short("data table", tables, MAX_TABLE_CHARS)
    existing = {name: find_data_table(client, name, project_id=project_id) for name in tables}
    changes, problems = [], []
    for name, columns in tables.items():
        table = existing[name]
        if table is None:
            create = partial(create_table, name=name, desired=columns, project_id=project_id)
            changes.append(DesiredStateChange("create", name, {"columns": columns}, create))
            continue
        try:
            missing = missing_columns(table, columns)
        except ServiceInputError as error:
            problems.append(str(error))
            continue
        if missing:
            add = partial(add_columns, table=table, desired=columns, missing=missing)
            added = {"added_columns": {column: columns[column] for column in missing}}
            changes.append(DesiredStateChange("update", name, added, add))
    require(not problems, "; ".join(problems))
    in_project = None if project_id is None else {"projectId": project_id}
    every = client.data_tables.list(filter=in_project) if prune != Prune() else ()
    deleted = prune.deletions(every, tables, lambda client, table: client.data_tables.delete(table.id))
    return DesiredStatePlan([*changes, *deleted], len(tables) - len(changes))


def plan_projects(
    client: Resources,
    desired: Any,
    prune: Prune,
    *,
    find: Callable[[Resources, str], Project | None] = find_project,
) -> DesiredStatePlan:
    """Plan the changes that bring team projects and their members to the declared state. Other members are kept."""
    projects = {name: _roles(name, members) for name, members in named_values("projects", desired).items()}
    require_short("project", projects, MAX_PROJECT_CHARS)
    existing = {name: find(client, name) for name in projects}
    users = _Users(client)
    changes = []
    for name, roles in projects.items():
        project = existing[name]
        changes += _creation(name, roles, users) if project is None else _update(project, roles, users)
    users.require_known()
    deleted = prune.deletions(
        (project for project in client.projects.list() if project.type == "team"),
        projects,
        lambda client, project: client.projects.delete(project.id),
    )
    _require_empty(client, [change.name for change in deleted])
    return DesiredStatePlan([*changes, *deleted], len(projects) - len(changes))


class _Users:
    def __init__(self, client: Resources) -> None:
        self.client = client
        self._ids: dict[str, str] = {}
        self._unknown: list[str] = []

    def ids(self, emails: Sequence[str]) -> dict[str, str]:
        if emails and not self._ids:
            self._ids = {user.email.lower(): user.id for user in self.client.users.list()}
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

    return [DesiredStateChange("create", name, {"added_members": added} if added else {}, perform)]


def _update(project: Project, roles: Roles, users: _Users) -> list[DesiredStateChange]:
    require(project.type != "personal", f"{project.name!r} is a personal project, whose members cannot be changed")
    if not roles:
        return []
    existing = {member.email.lower(): member for member in users.client.projects.list_users(project.id)}
    added = {email: role for email, role in roles.items() if role is not None and email not in existing}
    changed = {
        email: role for email, role in roles.items() if role and email in existing and existing[email].role != role
    }
    removed = [email for email, role in roles.items() if role is None and email in existing]
    ids = {**{email: member.id for email, member in existing.items()}, **users.ids(list(added))}
    members = {"added_members": added, "changed_members": changed, "removed_members": removed}

    def perform(client: Resources) -> None:
        if added:
            client.projects.add_users(
                project.id, [{"userId": ids[email], "role": role} for email, role in added.items()]
            )
        for email, role in changed.items():
            client.projects.change_user_role(project.id, ids[email], role)
        for email in removed:
            with suppress(ServiceNotFoundError):
                client.projects.delete_user(project.id, ids[email])

    details = {name: value for name, value in members.items() if value}
    return [DesiredStateChange("update", project.name, details, perform)] if details else []


def _require_empty(client: Resources, names: Sequence[str]) -> None:
    """Refuse to delete a project that is not empty, because the service would delete its contents as well."""
    if not names:
        return
    owners = {owner_of(credential.shared)[0] for credential in client.credentials.list()}
    with suppress(ServiceNotLicensedError):  # a plan without variables has none that could be lost
        owners |= {variable.project.id for variable in client.variables.list() if variable.project}
    holding = []
    for project in client.projects.list():
        if project.name in names and project.type == "team":
            workflows = any(True for _ in client.workflows.list(project_id=project.id, limit=1))
            tables = any(True for _ in client.data_tables.list(filter={"projectId": project.id}, limit=1))
            holding += [repr(project.name)] if workflows or tables or project.id in owners else []
    require(
        not holding,
        f"the projects {', '.join(holding)} hold workflows, credentials, variables or data tables, which would be "
        "deleted with them; move or delete these first",
    )
