"""The contents of an instance by kind, as far as its server, its license and the key allow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from airflow_provider_service._core.instances.backup_contents import (
    ColumnEntry,
    CredentialEntry,
    MemberEntry,
    ProjectEntry,
    TagEntry,
    UserEntry,
    VariableEntry,
)
from airflow_provider_service._core.instances.distinct_names import distinct_names, name_with_id
from airflow_provider_service._core.instances.gaps import Gap, Gaps
from airflow_provider_service._core.rows.values import column_types
from airflow_provider_service.client._lookup import owner_of
from airflow_provider_service.client.errors import ServiceForbiddenError, ServiceNotOfferedError
from airflow_provider_service.client.resources._folders import ROOT

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import DataTable, Project, Variable

T = TypeVar("T")
#: What identifies a data table: the name of its team project, and its own name.
Key = tuple[str | None, str]


class Inventory:
    """Reads the contents of an instance, each kind only once.

    :param client: client or hook of the instance.
    """

    def __init__(self, client: Resources) -> None:
        self.client = client
        #: Kinds that could not be read, and why.
        self.gaps = Gaps()

    @cached_property
    def tags(self) -> list[TagEntry]:
        """The tags."""
        return [TagEntry(name=name) for name in sorted(one.name for one in self.client.tags.list())]

    @cached_property
    def variables(self) -> list[VariableEntry] | None:
        """The variables of the instance and of its team projects."""

        def read() -> list[VariableEntry]:
            entries = (self._variable(one) for one in self.client.variables.list())
            return sorted((one for one in entries if one), key=lambda one: (one.project or "", one.key))

        return self._offered("variables", read)

    def _variable(self, variable: Variable) -> VariableEntry | None:
        project = self._team_name(variable.project.id) if variable.project else None
        if variable.project and project is None:
            # Without its project, it would be a variable of the whole instance, where another one may have its key.
            self.gaps.note(Gap(f"variable {variable.key!r} of a project", "its project is not in the backup"))
            return None
        return VariableEntry(key=variable.key, value=variable.value, project=project)

    @cached_property
    def team_projects(self) -> Mapping[str, Project] | None:
        """The team projects by id; those that share a name have their ids in their names."""

        def read() -> dict[str, Project]:
            listed = self.gaps.addressable("project", self._listed_team_projects())
            names = distinct_names({one.id: one.name for one in listed})
            return {one.id: one.model_copy(update={"name": names[one.id]}) for one in listed}

        return self._offered("projects", read)

    def _listed_team_projects(self) -> Iterator[Project]:
        return (one for one in self.client.projects.list() if one.type == "team")

    @cached_property
    def projects(self) -> list[ProjectEntry] | None:
        """The team projects with their members and folders."""
        if self.team_projects is None:
            return None
        return [self._project(one) for one in sorted(self.team_projects.values(), key=lambda one: one.name)]

    def _project(self, project: Project) -> ProjectEntry:
        members = self._offered("members of projects", lambda: list(self.client.projects.list_users(project.id))) or []
        return ProjectEntry(
            name=project.name,
            members=[MemberEntry(email=one.email, role=one.role) for one in members],
            folders=sorted(map(list, self.folder_ids(project.id)), key=lambda path: (len(path), path)),
        )

    def folder_ids(self, project_id: str) -> Mapping[tuple[str, ...], str]:
        """Return the ids of a project's folders, by path."""
        return self._offered("folders", lambda: dict(self._folders_below(project_id, ROOT, ()))) or {}

    def _folders_below(
        self, project_id: str, parent: str, above: tuple[str, ...]
    ) -> Iterator[tuple[tuple[str, ...], str]]:
        for one in self.client.folders.list(project_id, filter={"parentFolderId": parent}):
            path = (*above, one.name or "")
            yield path, one.id or ""
            yield from self._folders_below(project_id, one.id or "", path)

    @cached_property
    def credentials(self) -> list[CredentialEntry] | None:
        """The credentials without their secrets; those that share project, name and type are listed once."""

        def read() -> list[CredentialEntry]:
            listed = [(self._owner_of(one.shared) or "", one.name, one.type) for one in self.client.credentials.list()]
            return [
                CredentialEntry(name=name, type=kind, project=project or None)
                for project, name, kind in sorted(set(listed))
            ]

        return self._offered("credentials", read)

    @cached_property
    def users(self) -> list[UserEntry] | None:
        """The users."""

        def read() -> list[UserEntry]:
            entries = (
                UserEntry(email=one.email, first_name=one.first_name, last_name=one.last_name, role=one.role)
                for one in self.client.users.list(include_role=True)
            )
            return sorted(entries, key=lambda one: one.email)

        return self._offered("users", read)

    @cached_property
    def data_tables(self) -> Mapping[Key, DataTable] | None:
        """The data tables by project and name."""

        def read() -> dict[Key, DataTable]:
            found: dict[Key, DataTable] = {}
            listed = self.gaps.addressable("data table", self.client.data_tables.list())
            for one in sorted(listed, key=lambda one: (one.name, one.id)):
                key = self._team_name(one.project_id), one.name
                # Personal projects of several users may have tables of the same name.
                found[(key[0], name_with_id(one.name, one.id)) if key in found else key] = one
            return found

        return self._offered("data tables", read)

    def project_id(self, name: str | None) -> str | None:
        """Return the id of a team project; None for the personal project of the key's user."""
        ids = (one.id for one in (self.team_projects or {}).values() if one.name == name)
        return next(ids, None)

    def owner_of_workflow(self, shared: Sequence[Mapping[str, object]] | None) -> str | None:
        """Return the name of the team project that owns a workflow, or None."""
        return self._owner_of([{"id": one.get("projectId"), **one} for one in shared or ()])

    def _owner_of(self, shared: Sequence[Mapping[str, object]] | None) -> str | None:
        return self._team_name(str(owner_of(shared)[0]))

    def _team_name(self, project_id: str | None) -> str | None:
        project = (self.team_projects or {}).get(project_id or "")
        return project.name if project else None

    def _offered(self, what: str, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except (ServiceForbiddenError, ServiceNotOfferedError) as error:
            self.gaps.note(Gap(what, str(error)))
            return None


def columns_of(table: DataTable) -> list[ColumnEntry]:
    """Return the columns of a table, in the table's order."""
    types = column_types(table)
    return [ColumnEntry.model_validate({"name": name, "type": kind}) for name, kind in types.items()]
