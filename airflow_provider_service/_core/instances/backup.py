"""Write the contents of an instance to one archive, which is either complete or absent, and delete older ones.

The contents are read by kind, as far as the server, its license and the key allow. Only archives whose contents show
that they are backups of the instance are ever deleted, whatever their names are.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any, TypeVar

from airflow_provider_service._core.arguments import require_source
from airflow_provider_service._core.instances.backup_archive import (
    CONTENTS,
    ENDING,
    MAX_UNPACKED_BYTES,
    NEVER_BACKED_UP,
    TABLES,
    WORKFLOWS,
    ArchiveReader,
    ArchiveWriter,
    ColumnEntry,
    Contents,
    CredentialEntry,
    Hashing,
    MemberEntry,
    ProjectEntry,
    TableEntry,
    TagEntry,
    UserEntry,
    VariableEntry,
    WorkflowEntry,
)
from airflow_provider_service._core.instances.deployment_record import is_deployment_record, is_restore_record
from airflow_provider_service._core.instances.export import to_export_format
from airflow_provider_service._core.instances.matching import distinct_names, name_with_id
from airflow_provider_service._core.instances.references import Gap, Gaps, UnambiguousDirectory, references
from airflow_provider_service._core.instances.restore_reading import problem_of_table, problem_of_workflow, read_backup
from airflow_provider_service._core.instances.source import file_stem
from airflow_provider_service._core.object_storage import StoredFolder, address_of, exists, whole_file
from airflow_provider_service._core.rows.batches import Progress
from airflow_provider_service._core.rows.files import JsonLinesFormat
from airflow_provider_service._core.rows.matching import with_columns
from airflow_provider_service._core.rows.values import column_types
from airflow_provider_service._core.text_table import first_of
from airflow_provider_service.client._definitions import are_same, running
from airflow_provider_service.client._lookup import owner_of
from airflow_provider_service.client._models import parse_moment
from airflow_provider_service.client.errors import (
    ServiceError,
    ServiceForbiddenError,
    ServiceInputError,
    ServiceNotOfferedError,
)
from airflow_provider_service.client.resources._folders import ROOT
from airflow_provider_service.client.resources._workflows import writable

if TYPE_CHECKING:
    from airflow_provider_service._core.instances.references import Directory
    from airflow_provider_service._core.object_storage import StoredPath
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import DataTable, Project, Variable


log = logging.getLogger(__name__)

T = TypeVar("T")
#: What identifies a data table: the name of its team project, and its own name.
Key = tuple[str | None, str]
# An instance that is in use has some of these. That it has no more tags, say, or that a table is empty, is usual.
_GUARDED = ("workflows", "credentials", "data_tables")


@dataclass(frozen=True)
class Backup:
    path: str
    size: int
    sha256: str
    counts: Mapping[str, int]
    gaps: tuple[Gap, ...]
    deleted: int

    def to_result(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "bytes": self.size,
            "sha256": self.sha256,
            "counts": dict(self.counts),
            "left_out": [gap._asdict() for gap in self.gaps],
            "deleted": self.deleted,
        }


def write_backup(
    client: Resources,
    path: StoredPath,
    *,
    made_at: datetime,
    service: str,
    keep: int | None = None,
    allow_empty: bool = False,
) -> Backup:
    """Write a backup. Safe to repeat: it replaces the file once it is complete and has been read as for a restore.

    It is not a snapshot: an object that changes meanwhile is stored as it was when it was read.

    :param keep: number of backups of the instance to keep in the folder; older ones are deleted. None to keep all.
    :param allow_empty: whether a backup is replaced or deleted even if the new one holds none of a kind that it holds.
    """
    address = address_of(path)

    def check(file: IO[bytes]) -> None:
        written = ArchiveReader(file, max_bytes=sys.maxsize)
        read_backup(written)
        if written.unpacked_bytes > MAX_UNPACKED_BYTES:
            log.warning("To restore the backup, max_unpacked_bytes must be at least %d", written.unpacked_bytes)
        folder, own = _folder_of(address)
        former = _read(folder, own, service) if exists("path", address) else None
        if former:
            _require_all(address, counts, [former[1]], "it would replace a backup that holds some", allow_empty)

    with whole_file("path", path, check=check) as file:
        archive = ArchiveWriter(file)
        try:
            counts, gaps = _write_members(archive, Inventory(client), made_at, service)
        except BaseException:
            archive.abandon()
            raise
    deleted = 0
    if keep is not None:
        deleted = _delete_older(address, keep, made_at=made_at, service=service, counts=counts, allow_empty=allow_empty)
    return Backup(address, archive.written.count, archive.written.sha256, counts, gaps, deleted)


def _write_members(
    archive: ArchiveWriter, inventory: Inventory, made_at: datetime, service: str
) -> tuple[dict[str, int], tuple[Gap, ...]]:
    workflows = _write_workflows(archive, inventory)
    contents = Contents(
        data_tables=_write_tables(archive, inventory),
        tags=inventory.tags,
        variables=inventory.variables,
        projects=inventory.projects,
        credentials=inventory.credentials,
        users=inventory.users,
    )
    archive.write_json(CONTENTS, contents.model_dump(mode="json"))
    gaps = (*inventory.gaps, *(Gap(*one) for one in NEVER_BACKED_UP.items()))
    projects, tables = contents.projects, contents.data_tables
    lists: dict[str, Any] = {
        "tags": contents.tags,
        "data_tables": tables,
        "variables": contents.variables,
        "projects": projects,
        "folders": None if projects is None else [path for project in projects for path in project.folders],
        "credentials": contents.credentials,
        "users": contents.users,
    }
    rows = {} if tables is None else {"rows": sum(table.rows for table in tables)}
    counts = {"workflows": workflows, **{kind: len(many) for kind, many in lists.items() if many is not None}, **rows}
    left_out = [gap._asdict() for gap in gaps]
    archive.close({"made_at": made_at.isoformat(), "service": service, "counts": counts, "left_out": left_out})
    return counts, gaps


def _write_workflows(archive: ArchiveWriter, inventory: Inventory) -> int:
    directory = UnambiguousDirectory(inventory.client)
    own = (
        workflow
        for workflow in directory.workflows.values()
        if not is_restore_record(workflow) and not is_deployment_record(workflow)
    )
    listed = inventory.gaps.addressable("workflow", own)
    taken: set[str] = set()
    count = 0
    for one in sorted(listed, key=lambda one: (one.name, one.id)):
        workflow = inventory.client.workflows.get(one.id)
        is_other = workflow.active and not are_same(writable(workflow), running(workflow))
        entry = WorkflowEntry(
            id=one.id,
            project=inventory.owner_of_workflow(workflow.shared),
            definition=to_export_format(workflow, directory, pinned_data=True),
            draft=to_export_format(workflow, directory, pinned_data=True, draft=True) if is_other else None,
        )
        if problem := problem_of_workflow(entry):
            inventory.gaps.leave_out("workflow", one, problem)
            continue
        for named, places in _dead_references(entry, directory).items():
            why = "it does not exist, or this key may not see it; another instance cannot get the workflow without it"
            inventory.gaps.note(Gap(f"the {named} of workflow {one.name!r}, {first_of(places, 1)}", why))
        count += 1
        archive.write_json(f"{WORKFLOWS}/{file_stem(one.name, one.id, taken)}.json", entry.model_dump(mode="json"))
    log.info("Workflows read: %d", count)
    return count


def _dead_references(entry: WorkflowEntry, directory: Directory) -> dict[str, list[str]]:
    """Return the objects that a workflow names by their ids, because their names are not known, and where it does."""
    dead: dict[str, dict[str, None]] = {}
    for one in (*references(entry.definition), *references(entry.draft or {})):
        if one.id is not None and not (one.kind == "workflow" and one.id in directory.workflows):
            dead.setdefault(str(one), {})[one.place] = None
    return {named: list(places) for named, places in dead.items()}


def _write_tables(archive: ArchiveWriter, inventory: Inventory) -> list[TableEntry] | None:
    if inventory.data_tables is None:
        return None
    taken: set[str] = set()
    entries = []
    for (project, name), table in inventory.data_tables.items():
        types = column_types(table)
        if problem := problem_of_table(table.name, types):
            inventory.gaps.leave_out("data table", table, problem)
            continue
        columns = [ColumnEntry.model_validate({"name": column, "type": kind}) for column, kind in types.items()]
        member = f"{TABLES}/{file_stem(name, table.id, taken)}.jsonl"
        with archive.member(member) as file:
            rows = hashed_rows(inventory.client, table, types, file).rows  # type: ignore[arg-type]
        entries.append(TableEntry(id=table.id, name=name, project=project, columns=columns, rows=rows, file=member))
    return entries


def hashed_rows(
    client: Resources, table: DataTable, types: Mapping[str, str], file: IO[bytes] | None = None
) -> Hashing:
    """Write the rows of a table, oldest first, as a backup stores them, and hash them; without a file, only hash."""
    hashing = Hashing(file)
    progress = Progress(f"Read of {table.name!r}")
    rows = progress.counting(with_columns(client.data_table_rows.list(table.id), table, types))
    JsonLinesFormat().write(hashing, types, rows)  # type: ignore[arg-type]
    hashing.rows = progress.count
    return hashing


class Inventory:
    def __init__(self, client: Resources) -> None:
        self.client = client
        #: Kinds that could not be read, and why.
        self.gaps = Gaps()

    @cached_property
    def tags(self) -> list[TagEntry]:
        return [TagEntry(name=name) for name in sorted(tag.name for tag in self.client.tags.list())]

    @cached_property
    def variables(self) -> list[VariableEntry] | None:
        def read() -> list[VariableEntry]:
            entries = (self._variable(variable) for variable in self.client.variables.list())
            return sorted((entry for entry in entries if entry), key=lambda entry: (entry.project or "", entry.key))

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
            team = (project for project in self.client.projects.list() if project.type == "team")
            listed = self.gaps.addressable("project", team)
            names = distinct_names({project.id: project.name for project in listed})
            return {project.id: project.model_copy(update={"name": names[project.id]}) for project in listed}

        return self._offered("projects", read)

    @cached_property
    def projects(self) -> list[ProjectEntry] | None:
        if self.team_projects is None:
            return None
        return [self._project(project) for project in sorted(self.team_projects.values(), key=lambda one: one.name)]

    def _project(self, project: Project) -> ProjectEntry:
        members = self._offered("members of projects", lambda: list(self.client.projects.list_users(project.id))) or []
        return ProjectEntry(
            name=project.name,
            members=[MemberEntry(email=member.email, role=member.role) for member in members],
            folders=sorted(map(list, self.folder_ids(project.id)), key=lambda path: (len(path), path)),
        )

    def folder_ids(self, project_id: str) -> Mapping[tuple[str, ...], str]:
        return self._offered("folders", lambda: dict(self._folders_below(project_id, ROOT, ()))) or {}

    def _folders_below(self, project_id: str, parent: str, above: tuple[str, ...]) -> Iterator[tuple[Any, str]]:
        for folder in self.client.folders.list(project_id, filter={"parentFolderId": parent}):
            path = (*above, folder.name or "")
            yield path, folder.id or ""
            yield from self._folders_below(project_id, folder.id or "", path)

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
        def read() -> list[UserEntry]:
            entries = (
                UserEntry(email=one.email, first_name=one.first_name, last_name=one.last_name, role=one.role)
                for one in self.client.users.list(include_role=True)
            )
            return sorted(entries, key=lambda one: one.email)

        return self._offered("users", read)

    @cached_property
    def data_tables(self) -> Mapping[Key, DataTable] | None:
        def read() -> dict[Key, DataTable]:
            tables: dict[Key, DataTable] = {}
            listed = self.gaps.addressable("data table", self.client.data_tables.list())
            for table in sorted(listed, key=lambda one: (one.name, one.id)):
                project = self._team_name(table.project_id)
                # Personal projects of several users may have tables of the same name.
                is_taken = (project, table.name) in tables
                tables[project, name_with_id(table.name, table.id) if is_taken else table.name] = table
            return tables

        return self._offered("data tables", read)

    def project_id(self, name: str | None) -> str | None:
        """Return the id of a team project; None for the personal project of the key's user."""
        return next((project.id for project in (self.team_projects or {}).values() if project.name == name), None)

    def owner_of_workflow(self, shared: Sequence[Mapping[str, object]] | None) -> str | None:
        return self._owner_of([{"id": place.get("projectId"), **place} for place in shared or ()])

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


def _delete_older(
    address: str, keep: int, *, made_at: datetime, service: str, counts: Mapping[str, int], allow_empty: bool
) -> int:
    """Delete all but the newest ``keep`` backups of an instance in the folder of a new one, and return their number.

    Only older ones than the new one are ever deleted. Safe to repeat.
    """
    folder, own = _folder_of(address)
    names = [name for name in folder.files(ENDING, depth=1) if name != own and not folder.is_link(name)]
    known = {name: read for name in names if (read := _read(folder, name, service)) is not None}
    older = sorted((date, name) for name, (date, _) in known.items() if date < made_at)
    leaving = [name for _, name in older[: max(0, len(known) + 1 - keep)]]
    loss = f"keep={keep} would delete the {len(leaving)} older backups that hold some"
    _require_all(address, counts, [known[name][1] for name in leaving], loss, allow_empty)
    deleted, problems = 0, []
    for name in reversed(leaving):
        try:
            folder.delete(name)
        except FileNotFoundError:
            continue  # it has just been deleted by someone else
        except OSError as error:
            problems.append(f"{name}: {error}")
            continue
        deleted += 1
        log.info("Deleted the older backup %s in %s", name, folder.path)
    if problems:
        raise ServiceError(f"{address} is complete, but older backups could not be deleted: {'; '.join(problems)}")
    return deleted


def _require_all(
    address: str, counts: Mapping[str, int], leaving: Sequence[Mapping[str, int]], loss: str, allow_empty: bool
) -> None:
    """Refuse a new backup that read, and holds none of, a kind of objects that those that leave hold."""
    held = {kind for former in leaving for kind, count in former.items() if count}
    lost = [kind.replace("_", " ") for kind in _GUARDED if counts.get(kind) == 0 and kind in held]
    require_source(not lost, f"the new backup {address} holds no {', no '.join(lost)}", loss, allow_empty=allow_empty)


def _folder_of(address: str) -> tuple[StoredFolder, str]:
    above, slash, own = address.rpartition("/")
    return StoredFolder("path", above or slash or "."), own


def _read(folder: StoredFolder, name: str, service: str) -> tuple[datetime, Mapping[str, int]] | None:
    """Read when a backup of the instance was made, and what it holds; None for any other file."""
    try:
        with folder.opened(name) as file:
            manifest = ArchiveReader(file, max_bytes=sys.maxsize).manifest
        date = parse_moment(str(manifest.get("made_at")))
    except (ServiceInputError, OSError, ValueError) as error:
        log.info("%s in %s cannot be read as a backup: %s", name, folder.path, error)
        return None
    counts = manifest.get("counts")
    is_own = date is not None and manifest.get("service") == service
    return (date, counts if isinstance(counts, dict) else {}) if is_own else None
