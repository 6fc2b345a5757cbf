"""Write the contents of an instance to one archive, which is either complete or absent.

Delete older backups of an instance: only archives whose contents identify them as such, whatever their names are.

The contents of an instance by kind, as far as its server, its license and the key allow.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from airflow_provider_service._core.instances.deployment_record import is_deployment_record
from airflow_provider_service._core.instances.export import to_export_format
from airflow_provider_service._core.instances.matching import distinct_names, name_with_id
from airflow_provider_service._core.instances.references import Gap, Gaps, UnambiguousDirectory, references
from airflow_provider_service._core.instances.restore_reading import problem_of_table, problem_of_workflow, read_backup
from airflow_provider_service._core.instances.restore_record import is_record
from airflow_provider_service._core.instances.source import file_stem
from airflow_provider_service._core.object_storage import StoredFolder, address_of, exists, whole_file
from airflow_provider_service._core.rows.batches import Progress
from airflow_provider_service._core.rows.files import JsonLinesFormat
from airflow_provider_service._core.rows.matching import with_columns
from airflow_provider_service._core.rows.values import column_types
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


# An instance that is in use has some of these. That it has no more tags, say, or that a table is empty, is usual.
_GUARDED = ("workflows", "credentials", "data_tables")


def require_replaceable(address: str, counts: Mapping[str, int], service: str, *, allow_empty: bool) -> None:
    """Refuse to replace a backup of the instance by one that holds nothing of a kind that the former holds."""
    folder, own = _folder_of(address)
    former = _read(folder, own, service) if exists("path", address) else None
    lost = _lost(counts, [former[1]] if former else [])
    loss = "it would replace a backup that holds some"
    require_source(not lost, f"the new backup {address} holds no {', no '.join(lost)}", loss, allow_empty=allow_empty)


def delete_older(
    address: str, keep: int, *, made_at: datetime, service: str, counts: Mapping[str, int], allow_empty: bool
) -> int:
    """Delete the older backups of an instance in the folder of a new one. Safe to repeat."""
    folder, own = _folder_of(address)
    names = [name for name in folder.files(ENDING, depth=1) if name != own and not folder.is_link(name)]
    known = {name: one for name in names if (one := _read(folder, name, service)) is not None}
    older = sorted(
        (name for name, (date, _) in known.items() if date < made_at), key=lambda name: (known[name][0], name)
    )
    leaving = older[: max(0, len(known) + 1 - keep)]
    lost = _lost(counts, [known[name][1] for name in leaving])
    loss = f"keep={keep} would delete the {len(leaving)} older backups that hold some"
    require_source(not lost, f"the new backup {address} holds no {', no '.join(lost)}", loss, allow_empty=allow_empty)
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


def _lost(counts: Mapping[str, int], leaving: Iterable[Mapping[str, int]]) -> list[str]:
    """The kinds of objects that the new backup read and holds none of, but those that leave do."""
    held = {kind for one in leaving for kind, count in one.items() if count}
    return [kind.replace("_", " ") for kind in _GUARDED if counts.get(kind) == 0 and kind in held]


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


T = TypeVar("T")
#: What identifies a data table: the name of its team project, and its own name.
Key = tuple[str | None, str]


class Inventory:
    """Reads the contents of an instance, each kind only once."""

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


@dataclass(frozen=True)
class Backup:
    """The result of a backup."""

    path: str
    size: int
    sha256: str
    counts: Mapping[str, int]
    gaps: tuple[Gap, ...]
    deleted: int

    def to_result(self) -> dict[str, Any]:
        """Return a summary of the backup, as a task returns it."""
        return {
            "path": self.path,
            "bytes": self.size,
            "sha256": self.sha256,
            "counts": dict(self.counts),
            "left_out": [one._asdict() for one in self.gaps],
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
    """
    address = address_of(path)

    def check(file: IO[bytes]) -> None:
        _require_restorable(file)
        require_replaceable(address, counts, service, allow_empty=allow_empty)

    with whole_file("path", path, check=check) as file:
        archive = ArchiveWriter(file)
        try:
            counts, gaps = _write_members(archive, Inventory(client), made_at, service)
        except BaseException:
            archive.abandon()
            raise
    rotation = {"made_at": made_at, "service": service, "counts": counts, "allow_empty": allow_empty}
    deleted = 0 if keep is None else delete_older(address, keep, **rotation)  # type: ignore[arg-type]
    return Backup(address, archive.written.count, archive.written.sha256, counts, gaps, deleted)


def _require_restorable(file: IO[bytes]) -> None:
    archive = ArchiveReader(file, max_bytes=sys.maxsize)
    read_backup(archive)
    if archive.unpacked_bytes > MAX_UNPACKED_BYTES:
        log.warning("To restore the backup, max_unpacked_bytes must be at least %d", archive.unpacked_bytes)


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
    counts = counts_of(contents, workflows)
    left_out = [one._asdict() for one in gaps]
    archive.close({"made_at": made_at.isoformat(), "service": service, "counts": counts, "left_out": left_out})
    return counts, gaps


def counts_of(contents: Contents, workflows: int) -> dict[str, int]:
    """Count the objects in a backup, by kind."""
    projects, tables = contents.projects, contents.data_tables
    lists: dict[str, Any] = {
        "tags": contents.tags,
        "data_tables": tables,
        "variables": contents.variables,
        "projects": projects,
        "folders": None if projects is None else [path for one in projects for path in one.folders],
        "credentials": contents.credentials,
        "users": contents.users,
    }
    rows = {} if tables is None else {"rows": sum(one.rows for one in tables)}
    return {"workflows": workflows, **{kind: len(many) for kind, many in lists.items() if many is not None}, **rows}


def hashed_rows(
    client: Resources, table: DataTable, types: Mapping[str, str], file: IO[bytes] | None = None
) -> Hashing:
    """Write the rows of a table, oldest first, as a backup stores them, and hash them."""
    hashing = Hashing(file)
    progress = Progress(f"Read of {table.name!r}")
    rows = progress.counting(with_columns(client.data_table_rows.list(table.id), table, types))
    JsonLinesFormat().write(hashing, types, rows)  # type: ignore[arg-type]
    hashing.rows = progress.count
    return hashing


def _write_workflows(archive: ArchiveWriter, inventory: Inventory) -> int:
    directory = UnambiguousDirectory(inventory.client)
    own = (one for one in directory.workflows.values() if not is_record(one) and not is_deployment_record(one))
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
            where = places[0] + (f" and {len(places) - 1} more" if len(places) > 1 else "")
            inventory.gaps.note(Gap(f"the {named} of workflow {one.name!r}, {where}", why))
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
    return list(_each_table(archive, inventory, inventory.data_tables))


def _each_table(
    archive: ArchiveWriter, inventory: Inventory, tables: Mapping[tuple[str | None, str], DataTable]
) -> Iterator[TableEntry]:
    taken: set[str] = set()
    for (project, name), table in tables.items():
        if problem := problem_of_table(table.name, column_types(table)):
            inventory.gaps.leave_out("data table", table, problem)
            continue
        columns = columns_of(table)
        member = f"{TABLES}/{file_stem(name, table.id, taken)}.jsonl"
        types = {one.name: one.type for one in columns}
        with archive.member(member) as file:
            hashed = hashed_rows(inventory.client, table, types, file)  # type: ignore[arg-type]
        yield TableEntry(id=table.id, name=name, project=project, columns=columns, rows=hashed.rows, file=member)
