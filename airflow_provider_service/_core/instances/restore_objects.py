"""The changes of a restore, except to workflows: tags, projects, folders, variables, credentials and data tables."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.arguments import repeated, require
from airflow_provider_service._core.instances.backup import Inventory, hashed_rows
from airflow_provider_service._core.instances.backup_archive import CredentialEntry, ProjectEntry, TableEntry
from airflow_provider_service._core.instances.desired_changes import DesiredStateChange, DesiredStatePlan, Prune
from airflow_provider_service._core.instances.desired_state import (
    add_columns,
    create_table,
    missing_columns,
    plan_projects,
    plan_tags,
    plan_variables,
)
from airflow_provider_service._core.instances.matching import name_with_id
from airflow_provider_service._core.instances.references import Entry, Gap, new_token
from airflow_provider_service._core.rows.target import LoadOptions, TableTarget
from airflow_provider_service.client._lookup import find_project
from airflow_provider_service.client.errors import ServiceInputError, ServiceNotFoundError
from airflow_provider_service.client.resources._credentials import demanded

if TYPE_CHECKING:
    from airflow_provider_service._core.instances.references import Kind
    from airflow_provider_service._core.instances.restore_reading import StoredBackup
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import DataTable, Project

log = logging.getLogger(__name__)

_NOTHING = Prune()


class ObjectsPlan:
    def __init__(self, backup: StoredBackup, inventory: Inventory) -> None:
        self._contents, self._backup = backup.contents, backup
        self._existing, self._client = inventory, inventory.client
        #: Objects that cannot be restored, and why.
        self.gaps: list[Gap] = []
        #: Objects that workflows name and that do not exist yet.
        self.planned: dict[Kind, list[Entry]] = {"credential": [], "data table": []}
        #: Labels of tables that hold rows, of which the backup holds none.
        self.emptied: list[str] = []
        #: The changes by kind, in the order in which they are made.
        self.plans: dict[str, DesiredStatePlan] = {
            "tags": plan_tags(self._client, [tag.name for tag in self._contents.tags], _NOTHING),
            "projects": self._projects(),
            "folders": self._folders(),
            "variables": self._variables(),
            "credentials": self._credentials(),
            "data_tables": self._tables(),
        }

    def _offered(self, kind: str, desired: Sequence[Any], existing: object) -> bool:
        """Whether there is anything to restore; a gap says so if the instance does not have this kind."""
        if desired and existing is None:
            self.gaps.append(Gap(f"{len(desired)} {kind}", self._why_not(kind)))
        return bool(desired) and existing is not None

    def _why_not(self, kind: str) -> str:
        return next((gap.why for gap in self._existing.gaps if gap.what == kind), "")

    def _projects(self) -> DesiredStatePlan:
        projects = self._contents.projects or []
        if not self._offered("projects", projects, self._existing.team_projects):
            return DesiredStatePlan([], 0)

        def find(client: Resources, name: str) -> Project | None:
            known = (self._existing.team_projects or {}).get(self._existing.project_id(name) or "")
            return known or find_project(client, name)

        roles = {project.name: self._roles(project) for project in projects}
        return plan_projects(self._client, roles, _NOTHING, find=find)

    def _roles(self, project: ProjectEntry) -> dict[str, str]:
        known = {user.email.lower() for user in self._existing.users or ()}
        unknown = [member.email for member in project.members if member.email.lower() not in known]
        if unknown:
            why = f"there is no user {', '.join(unknown)}, or this key may not see it; invite users first"
            self.gaps.append(Gap(f"{len(unknown)} members of project {project.name!r}", why))
        members = (member for member in project.members if member.email not in unknown)
        return {member.email: member.role for member in members if member.role}

    def _folders(self) -> DesiredStatePlan:
        if self._existing.team_projects is None:  # the gap for the projects includes them
            return DesiredStatePlan([], 0)
        changes, unchanged = [], 0
        for project in self._contents.projects or ():
            if not project.folders:
                continue
            project_id = self._existing.project_id(project.name)
            existing = self._existing.folder_ids(project_id) if project_id else {}
            missing = [path for path in project.folders if tuple(path) not in existing]
            unchanged += len(project.folders) - len(missing)
            if missing:
                perform = partial(_create_folders, project=project.name, paths=project.folders)
                name = f"{project.name}: {len(missing)} folders"
                changes.append(DesiredStateChange("create", name, perform=perform))
        refused = [gap for gap in self._existing.gaps if gap.what == "folders"]
        self.gaps += refused
        return DesiredStatePlan([] if refused else changes, unchanged)

    def _variables(self) -> DesiredStatePlan:
        variables = self._contents.variables or []
        if not self._offered("variables", variables, self._existing.variables):
            return DesiredStatePlan([], 0)
        of_instance = [variable for variable in variables if variable.project is None]
        if self._existing.team_projects is None and len(of_instance) < len(variables):
            # For the whole instance, one of them could replace a variable of the same key.
            left_out = len(variables) - len(of_instance)
            self.gaps.append(Gap(f"{left_out} variables of projects", self._why_not("projects")))
            variables = of_instance
        changes, unchanged = [], 0
        for project in sorted({variable.project for variable in variables}, key=str):
            values = {variable.key: variable.value for variable in variables if variable.project == project}
            if project is not None and self._existing.project_id(project) is None:
                perform = partial(_write_variables, project=project, values=values)
                changes.append(DesiredStateChange("create", f"{project}: {len(values)} variables", perform=perform))
                continue
            project_id = None if project is None else self._existing.project_id(project)
            plan = plan_variables(self._client, values, _NOTHING, project_id=project_id)
            unchanged += plan.unchanged
            changes += [replace(change, name=_label(project, change.name)) for change in plan.changes]
        return DesiredStatePlan(changes, unchanged)

    def _credentials(self) -> DesiredStatePlan:
        desired = self._contents.credentials or []
        if not self._offered("credentials", desired, self._existing.credentials):
            return DesiredStatePlan([], 0)
        existing = {(entry.name, entry.type) for entry in self._existing.credentials or ()}
        wanted = {(entry.name, entry.type): entry for entry in desired}
        missing = [entry for key, entry in wanted.items() if key not in existing]
        self._note_equal_credentials(desired, missing)
        changes = [change for entry in missing for change in self._stub(entry)]
        return DesiredStatePlan(changes, len(wanted) - len(missing))

    def _note_equal_credentials(self, desired: Sequence[CredentialEntry], created: Iterable[CredentialEntry]) -> None:
        """Note which of several equal credentials are not created: workflows find them by name and type."""
        shared = repeated((entry.name, entry.type) for entry in desired)
        existing = (*(self._existing.credentials or ()), *created)
        places = {(entry.project, entry.name, entry.type) for entry in existing}
        for entry in desired:
            if (entry.name, entry.type) in shared and (entry.project, entry.name, entry.type) not in places:
                place = f"of project {entry.project!r}" if entry.project else "of a personal project"
                why = "the instance has or gets another one of this name and type; workflows could not tell them apart"
                self.gaps.append(Gap(f"credential {entry.name!r} {place}", why))

    def _stub(self, entry: CredentialEntry) -> Iterator[DesiredStateChange]:
        try:
            data = _stub_of(self._client.credentials.get_schema(entry.type))
        except ServiceNotFoundError:
            why = f"this instance does not know the type {entry.type}; install its community package first"
            self.gaps.append(Gap(f"credential {entry.name!r}", why))
            return
        self.planned["credential"].append(Entry(new_token(), entry.name, entry.type))

        def perform(client: Resources) -> None:
            client.credentials.create(entry.name, entry.type, data, project_id=_project_id(client, entry.project))

        yield DesiredStateChange("create", entry.name, {"type": entry.type}, perform)

    def _tables(self) -> DesiredStatePlan:
        desired = self._contents.data_tables or []
        if not self._offered("data tables", desired, self._existing.data_tables):
            return DesiredStatePlan([], 0)
        places = ((_project_in(self._existing, entry.project), entry.name) for entry in desired)
        equal = sorted(name for _, name in repeated(places))
        require(
            not equal,
            f"without team projects, several data tables of the backup would be named {', '.join(map(repr, equal))}; "
            "nothing was written, and the other objects can be selected",
        )
        changes = [change for entry in desired for change in self._table(entry)]
        return DesiredStatePlan(changes, len(desired) - len(changes))

    def _table(self, entry: TableEntry) -> Iterator[DesiredStateChange]:
        label = _label(entry.project, entry.name)
        perform = partial(_write_table, backup=self._backup, entry=entry)
        try:
            table = _find_table(self._existing, entry, self._backup.tables)
            missing = missing_columns(table, entry.types) if table else []
        except ServiceInputError as error:
            # The table can stay unchanged, but it cannot be restored: no plan with a problem is carried out.
            yield DesiredStateChange("update", label, {"problem": str(error)})
            return
        if table is None:
            self.planned["data table"].append(Entry(new_token(), entry.name))
            yield DesiredStateChange("create", label, {"rows": entry.rows}, perform)
        elif missing or hashed_rows(self._client, table, entry.types).sha256 != self._backup.sha256_of(entry):
            if not entry.rows and any(self._client.data_table_rows.list(table.id, limit=1)):
                self.emptied.append(label)
            yield DesiredStateChange("update", label, {"rows": entry.rows}, perform)


def _project_in(existing: Inventory, name: str | None) -> str | None:
    """Return the team project to use in an instance; without a license for projects, everything is personal."""
    return name if existing.team_projects is not None else None


def _label(project: str | None, name: str) -> str:
    return name if project is None else f"{project}/{name}"


def _project_id(client: Resources, name: str | None) -> str | None:
    return None if name is None else Inventory(client).project_id(name)


def _create_folders(client: Resources, project: str, paths: Sequence[Sequence[str]]) -> None:
    project_id = str(_project_id(client, project))
    existing = dict(Inventory(client).folder_ids(project_id))
    for path in map(tuple, paths):
        if path and path not in existing:
            parent = existing.get(path[:-1]) if len(path) > 1 else None
            existing[path] = client.folders.create(project_id, path[-1], parent_folder_id=parent).id


def _write_variables(client: Resources, project: str, values: Mapping[str, str]) -> None:
    for change in plan_variables(client, values, _NOTHING, project_id=_project_id(client, project)).changes:
        change.perform(client)


def _stub_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return empty data that the service accepts for a credential: only the fields that its type requires."""
    properties = schema.get("properties") or {}
    required = [*(schema.get("required") or ()), *demanded({}, schema)]
    empty = {"number": 0, "integer": 0, "boolean": False, "object": {}, "json": {}, "array": []}
    stub = {}
    for name in required:
        field = properties.get(name) or {}
        stub[str(name)] = field["enum"][0] if field.get("enum") else empty.get(str(field.get("type")), "")
    return stub


def _find_table(existing: Inventory, entry: TableEntry, stored: Sequence[TableEntry]) -> DataTable | None:
    """Find the data table of an instance that an entry of a backup describes.

    Personal projects of several users may have tables of the same name, which the ids tell apart.
    """
    project = _project_in(existing, entry.project)
    tables = [table for (owner, _), table in (existing.data_tables or {}).items() if owner == project]
    named = [table for table in tables if table.name == entry.name]
    if entry.id is not None:  # otherwise a user has chosen the name
        named = [table for table in named if not any(_is_same(table, other) for other in stored)]
    matching = [table for table in tables if _is_same(table, entry)] or named
    ids = ", ".join(table.id for table in matching)
    require(len(matching) < 2, f"there are several data tables {entry.name!r}: ids {ids}")
    return matching[0] if matching else None


def _is_same(table: DataTable, entry: TableEntry) -> bool:
    return table.id == entry.id and entry.name in (table.name, name_with_id(table.name, table.id))


def _write_table(client: Resources, backup: StoredBackup, entry: TableEntry) -> None:
    existing = Inventory(client)
    table = _find_table(existing, entry, backup.tables)
    if table is None:
        project_id = _project_id(client, _project_in(existing, entry.project))
        table = create_table(client, entry.name, entry.types, project_id)
    else:
        add_columns(client, table, entry.types, missing_columns(table, entry.types))
    if hashed_rows(client, table, entry.types).sha256 != backup.sha256_of(entry):
        options = LoadOptions(mode="replace", allow_empty=True)  # the archive says how many rows there are
        done = TableTarget(client, client.data_tables.get(table.id)).load(lambda _: backup.rows(entry), options)
        require(done.rows == entry.rows, f"data table {entry.name!r} has {done.rows} rows, not {entry.rows}")
