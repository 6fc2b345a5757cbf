"""Write the contents of an instance to one archive, which is either complete or absent."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any

from airflow_provider_service._core.instances.backup_archive import (
    MAX_UNPACKED_BYTES,
    ArchiveReader,
    ArchiveWriter,
    Hashing,
)
from airflow_provider_service._core.instances.backup_contents import (
    CONTENTS,
    NEVER_BACKED_UP,
    TABLES,
    WORKFLOWS,
    Contents,
    TableEntry,
    WorkflowEntry,
)
from airflow_provider_service._core.instances.backup_retention import delete_older, require_replaceable
from airflow_provider_service._core.instances.deployment_record import is_deployment_record
from airflow_provider_service._core.instances.directory import UnambiguousDirectory
from airflow_provider_service._core.instances.export_format import to_export_format
from airflow_provider_service._core.instances.file_names import file_stem
from airflow_provider_service._core.instances.gaps import Gap
from airflow_provider_service._core.instances.inventory import Inventory, columns_of
from airflow_provider_service._core.instances.restore_reading import problem_of_table, problem_of_workflow, read_backup
from airflow_provider_service._core.instances.restore_record import is_record
from airflow_provider_service._core.instances.workflow_references import references
from airflow_provider_service._core.object_storage import address_of, whole_file
from airflow_provider_service._core.rows.formats import JsonLinesFormat
from airflow_provider_service._core.rows.matching import with_columns
from airflow_provider_service._core.rows.progress import Progress
from airflow_provider_service._core.rows.values import column_types
from airflow_provider_service.client._definitions import are_same, running
from airflow_provider_service.client.resources._workflows import writable

if TYPE_CHECKING:
    from airflow_provider_service._core.instances.directory import Directory
    from airflow_provider_service._core.object_storage import StoredPath
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import DataTable

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Backup:
    """The result of a backup.

    :param path: address of the archive.
    :param size: its size in bytes.
    :param sha256: its SHA-256 checksum.
    :param counts: the number of backed-up objects, by kind.
    :param gaps: objects that are not in it, and why.
    :param deleted: the number of older backups that were deleted.
    """

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

    :param client: client or hook of the instance.
    :param path: path or address of the archive.
    :param made_at: date and time, for the manifest.
    :param service: address of the instance, for the manifest.
    :param keep: number of backups of the instance to keep in the folder; older ones are deleted. None to keep all.
    :param allow_empty: whether a backup is replaced or deleted even if the new one holds none of a kind that it holds.
    :raises ServiceApiError: a call failed; the file is as it was before.
    :raises ServiceInputError: the archive could not be restored, or would replace one that holds what it lacks; an
        existing file is unchanged. Or it is complete, but older ones hold what it lacks; nothing was deleted.
    :raises ServiceError: the backup is complete, but older ones could not be deleted.
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
    """Write the rows of a table, oldest first, as a backup stores them, and hash them.

    :param types: types of the columns to write, by name.
    :param file: the file to write to; None to only hash the rows.
    :raises ServiceError: one of the columns no longer exists.
    """
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
