"""Read a backup completely, and refuse it unless everything in it is valid, before anything is written.

The part of a backup to restore, and the names of its objects in the target instance.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from airflow_provider_service._core.arguments import as_texts, repeated, require, require_choice
from airflow_provider_service._core.instances.backup_archive import (
    CONTENTS,
    TABLES,
    WORKFLOWS,
    ArchiveReader,
    Contents,
    TableEntry,
    TagEntry,
    WorkflowEntry,
    require_archive,
)
from airflow_provider_service._core.instances.desired_state import types_by_name
from airflow_provider_service._core.instances.mapping import InstanceMapping, MappedNames
from airflow_provider_service._core.instances.matching import distinct_names
from airflow_provider_service._core.instances.source import Source
from airflow_provider_service._core.object_storage import reading
from airflow_provider_service._core.rows.files import JsonLinesFormat
from airflow_provider_service._core.rows.values import typed_row
from airflow_provider_service.client._definitions import problem_of
from airflow_provider_service.client.errors import ServiceInputError

if TYPE_CHECKING:
    from airflow_provider_service._core.rows.source_rows import SourceRow


#: Fields that a restored workflow loses if the backup lacks them.
REMOVED = ("description", "pinData")
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class StoredWorkflow:
    """A workflow of a backup."""

    id: str | None
    name: str
    definition: Mapping[str, Any]
    draft: Mapping[str, Any] | None
    project: str | None

    def source(self, *, is_known: bool) -> Source:
        """Return the definition to deploy."""
        place = f"workflow {self.id or self.name} of the backup"
        return Source(self._named(self.definition, is_known), place, self.name, removes=REMOVED)

    def draft_of(self, workflow_id: str) -> dict[str, Any]:
        """Return its draft, as the workflow with this id has it."""
        return self._named(self.draft or {}, workflow_id == self.id)

    def _named(self, definition: Mapping[str, Any], is_known: bool) -> dict[str, Any]:
        return {**definition, **({"id": self.id} if self.id else {}), **({} if is_known else {"name": self.name})}


@dataclass(frozen=True)
class StoredBackup:
    """A backup that has been checked completely."""

    archive: ArchiveReader
    contents: Contents
    workflows: Mapping[str, StoredWorkflow]
    tables: Sequence[TableEntry]
    scope: str = ""

    @property
    def digest(self) -> str:
        """Identifies the restore: the archive, the selected part, and its new names."""
        digest = self.archive.digest
        return hashlib.sha256(f"{digest}{self.scope}".encode()).hexdigest() if self.scope else digest

    def rows(self, table: TableEntry) -> Generator[SourceRow, None, None]:
        """Yield the rows of a table, oldest first, with one in memory at a time."""
        with self.archive.reading(table.file) as file:
            yield from JsonLinesFormat().read(file)

    def sha256_of(self, table: TableEntry) -> str:
        """Return the SHA-256 of the rows of a table."""
        return str(self.archive.manifest["members"][table.file]["sha256"])


@contextmanager
def opened_backup(path: str, *, max_bytes: int) -> Iterator[StoredBackup]:
    """Open the archive of a backup, and check all its contents."""
    require_archive(path)
    try:
        with reading("path", path) as file:
            yield read_backup(ArchiveReader(file, max_bytes=max_bytes))
    except FileNotFoundError:
        raise ServiceInputError(f"there is no file {str(path)!r}") from None


def read_backup(archive: ArchiveReader) -> StoredBackup:
    """Read and check the whole backup, including all rows."""
    contents = _model(Contents, archive, CONTENTS)
    entries = [_model(WorkflowEntry, archive, name) for name in archive.names(WORKFLOWS)]
    tables = contents.data_tables or []
    _require_same("tables", [one.file for one in tables], archive.names(TABLES))
    expected = {CONTENTS, *archive.names(WORKFLOWS), *archive.names(TABLES)}
    _require_same("members", sorted(expected), sorted(archive.manifest["members"]))
    require(not repeated(one.id for one in entries), "the archive cannot be restored: a workflow is in it twice")
    backup = StoredBackup(archive, contents, {one.name: one for one in _told_apart(entries)}, tables)
    twice = sorted({name for _, name in repeated((one.project, one.name) for one in tables)})
    require(not twice, f"the archive cannot be restored: it has data tables of the same name: {twice}")
    keys = sorted({key for _, key in repeated((one.project, one.key) for one in contents.variables or ())})
    require(not keys, f"the archive cannot be restored: it has variables of the same key in one project: {keys}")
    for table in tables:
        _check_rows(backup, table)
    return backup


def _told_apart(entries: Sequence[WorkflowEntry]) -> Iterator[StoredWorkflow]:
    for one in entries:
        problem = problem_of_workflow(one)
        require(not problem, f"the archive cannot be restored: workflow {one.id}: {problem}; nothing was written")
    names = distinct_names({one.id: str(one.definition["name"]) for one in entries})
    for one in entries:
        yield StoredWorkflow(one.id, names[one.id], one.definition, one.draft, one.project)


def problem_of_workflow(entry: WorkflowEntry) -> str | None:
    """Return why a workflow cannot be restored, in words; None if it can be."""
    for what, definition in {"its definition": entry.definition, "its draft": entry.draft}.items():
        if definition is None:
            continue
        problem = problem_of(definition, what) or (None if definition["name"] else f"{what} has no name")
        if problem:
            return problem
    return None


def problem_of_table(name: str, columns: Any) -> str | None:
    """Return why a data table cannot be restored, in words; None if it can be."""
    if not name.strip():
        return "it has no name"
    try:
        types_by_name(columns)
    except ServiceInputError as error:
        return str(error)
    return None


def _check_rows(backup: StoredBackup, table: TableEntry) -> None:
    columns = [one.model_dump() for one in table.columns]
    problem = problem_of_table(table.name, columns)
    require(not problem, f"the archive cannot be restored: data table {table.name!r}: {problem}; nothing was written")
    types = types_by_name(columns)
    count = 0
    for count, row in enumerate(backup.rows(table), start=1):
        typed_row(row, types, f"data table {table.name!r}, row {count}")
    require(count == table.rows, f"the archive cannot be restored: {table.file} has {count} rows, not {table.rows}")


def _model(kind: type[Model], archive: ArchiveReader, name: str) -> Model:
    try:
        return kind.model_validate(archive.read_json(name))
    except ValidationError as error:
        # The message of the validation would show values, which may be confidential.
        places = ", ".join(".".join(map(str, one["loc"])) or "itself" for one in error.errors()[:5])
        raise ServiceInputError(
            f"the archive cannot be restored: {name} does not have the form of a backup: {places}; nothing was written"
        ) from None


def _require_same(what: str, one: Sequence[str], other: Sequence[str]) -> None:
    is_same = sorted(one) == sorted(other)
    require(is_same, f"the archive cannot be restored: its lists of {what} do not agree; nothing was written")


log = logging.getLogger(__name__)

#: The kinds that can be selected; projects come with their members and folders.
KINDS = ("tags", "projects", "variables", "credentials", "data_tables", WORKFLOWS)


@dataclass(frozen=True)
class RestoreScope:
    """The part of a backup to restore, and its new names."""

    kinds: Sequence[str] | None
    names: Sequence[str] | None
    mapping: InstanceMapping

    @classmethod
    def read(cls, kinds: object, names: object, mapping: InstanceMapping) -> RestoreScope:
        """Read the scope from arguments."""
        wanted, named = _selection("kinds", kinds), _selection("names", names)
        for one in wanted or ():
            require_choice("each of kinds", one, KINDS)
        return cls(wanted, named, mapping)

    def of(self, backup: StoredBackup) -> StoredBackup:
        """Return the part of a backup to restore, with its new names."""
        if self == RestoreScope(None, None, InstanceMapping()):
            return backup
        scope = json.dumps(asdict(self), sort_keys=True)
        return replace(self._renamed(self._selected(backup)), scope=scope)

    def _selected(self, backup: StoredBackup) -> StoredBackup:
        kinds, found = self.kinds or KINDS, set[str]()

        def keeps(kind: str, *own: str) -> bool:
            if kind not in kinds or self.names is None:
                return kind in kinds
            hits = {*self.names} & {*own}
            found.update(hits)
            return bool(hits)

        held = {kind: getattr(backup.contents, kind) for kind in KINDS if kind != WORKFLOWS}
        absent = [kind for kind in self.kinds or () if kind in held and held[kind] is None]
        require(not absent, f"the backup holds none of the kinds {', '.join(absent)}; nothing was written")
        contents = {
            kind: None if many is None else [one for one in many if keeps(kind, _name(one))]
            for kind, many in held.items()
        }
        workflows = {
            name: one for name, one in backup.workflows.items() if keeps(WORKFLOWS, name, str(one.definition["name"]))
        }
        missing = [repr(name) for name in dict.fromkeys(self.names or ()) if name not in found]
        require(
            not missing,
            f"the backup holds no {', '.join(missing)} of the kinds {', '.join(kinds)}; nothing was written",
        )
        return replace(backup, contents=backup.contents.model_copy(update=contents), workflows=workflows)

    def _renamed(self, backup: StoredBackup) -> StoredBackup:
        names = MappedNames(self.mapping, {one.id: name for name, one in backup.workflows.items() if one.id})
        contents = _renamed_contents(names, backup.contents)
        workflows = [_renamed_workflow(names, one) for one in backup.workflows.values()]
        names.log_unused()
        problems = [*names.problems, *_collisions(contents, workflows)]
        if problems:
            raise ServiceInputError(f"the backup cannot be restored, and nothing was written: {'; '.join(problems)}")
        return replace(backup, contents=contents, workflows={one.name: one for one in workflows})


def _selection(argument: str, given: object) -> list[str] | None:
    if given is None:
        return None
    texts = as_texts(argument, given)
    require(texts, f"{argument} must not be an empty list; None restores everything")
    return texts


def _name(entry: Any) -> str:
    return str(getattr(entry, "key", None) or entry.name)


def _renamed_contents(names: MappedNames, contents: Contents) -> Contents:
    def project(one: Any) -> dict[str, Any]:
        return {"project": one.project and names.name("projects", one.project)}

    def named(kind: str, one: Any) -> dict[str, Any]:
        return {"name": names.name(kind, one.name)}

    def table(one: TableEntry) -> dict[str, Any]:
        new = named("data_tables", one) | project(one)
        # Its id may belong to the table with the old name, or of the old project.
        return new if new == {"name": one.name, "project": one.project} else {**new, "id": None}

    def copies(many: Iterable[Any] | None, changes: Any) -> list[Any] | None:
        return None if many is None else [one.model_copy(update=changes(one)) for one in many]

    changed = {
        "tags": [TagEntry(name=name) for name in sorted({names.name("tags", one.name) for one in contents.tags})],
        "projects": copies(contents.projects, lambda one: named("projects", one)),
        "variables": copies(contents.variables, project),
        "credentials": copies(contents.credentials, lambda one: named("credentials", one) | project(one)),
        "data_tables": copies(contents.data_tables, table),
    }
    return contents.model_copy(update=changed)


def _renamed_workflow(names: MappedNames, one: StoredWorkflow) -> StoredWorkflow:
    new = names.name(WORKFLOWS, one.name)
    changed = replace(
        one,
        definition=names.definition(one.name, one.definition),
        draft=one.draft and names.definition(one.name, one.draft, may_lack=True),
        project=one.project and names.name("projects", one.project),
    )
    # Its id may belong to the workflow with the old name.
    return changed if new == one.name else replace(changed, id=None, name=new)


def _collisions(contents: Contents, workflows: Sequence[StoredWorkflow]) -> Iterator[str]:
    """Yield why new names are refused: several objects that need distinct names would get the same one."""
    named: Mapping[str, Iterable[tuple[str | None, str]]] = {
        "projects": ((None, one.name) for one in contents.projects or ()),
        "variables": ((one.project, one.key) for one in contents.variables or ()),
        "data tables": ((one.project, one.name) for one in contents.data_tables or ()),
        "workflows": ((None, one.name) for one in workflows),
    }
    for kind, many in named.items():
        for _, name in sorted(repeated(many), key=str):
            yield f"several {kind} of the backup would be named {name!r}"
