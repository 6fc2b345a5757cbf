"""Read a backup completely, and refuse it unless everything in it is valid, before anything is written.

A scope then selects the part of it to restore, and gives its objects the names of the target instance.
"""

from __future__ import annotations

import hashlib
import json
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


#: The kinds that can be selected; projects come with their members and folders.
KINDS = ("tags", "projects", "variables", "credentials", "data_tables", WORKFLOWS)
#: Fields that a restored workflow loses if the backup lacks them.
REMOVED = ("description", "pinData")
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class StoredWorkflow:
    """A workflow of a backup.

    Its name is unique: the name that it had, followed by its id if others have the same one. An instance without the id
    finds and creates it under this name.
    """

    id: str | None  #: The id that it had; None to find it only by its name.
    name: str
    definition: Mapping[str, Any]  #: The version that runs.
    draft: Mapping[str, Any] | None  #: Its draft, if that differs.
    project: str | None  #: Name of its team project.

    def source(self, *, is_known: bool) -> Source:
        place = f"workflow {self.id or self.name} of the backup"
        return Source(self._named(self.definition, is_known), place, self.name, removes=REMOVED)

    def draft_of(self, workflow_id: str) -> dict[str, Any]:
        return self._named(self.draft or {}, workflow_id == self.id)

    def _named(self, definition: Mapping[str, Any], is_known: bool) -> dict[str, Any]:
        return {**definition, **({"id": self.id} if self.id else {}), **({} if is_known else {"name": self.name})}


@dataclass(frozen=True)
class StoredBackup:
    archive: ArchiveReader  #: Open, for the rows.
    contents: Contents
    workflows: Mapping[str, StoredWorkflow]
    tables: Sequence[TableEntry]  #: All tables of the archive, even if only some are restored, or under new names.
    scope: str = ""  #: The selected part of the archive and its new names; empty for the whole archive as it is.

    @property
    def digest(self) -> str:
        """Identifies the restore: the archive, the selected part, and its new names."""
        digest = self.archive.digest
        return hashlib.sha256(f"{digest}{self.scope}".encode()).hexdigest() if self.scope else digest

    def rows(self, table: TableEntry) -> Generator[SourceRow, None, None]:
        with self.archive.reading(table.file) as file:
            yield from JsonLinesFormat().read(file)

    def sha256_of(self, table: TableEntry) -> str:
        return str(self.archive.manifest["members"][table.file]["sha256"])


@contextmanager
def opened_backup(path: str, *, max_bytes: int) -> Iterator[StoredBackup]:
    require_archive(path)
    try:
        with reading("path", path) as file:
            yield read_backup(ArchiveReader(file, max_bytes=max_bytes))
    except FileNotFoundError:
        raise ServiceInputError(f"there is no file {str(path)!r}") from None


def read_backup(archive: ArchiveReader) -> StoredBackup:
    contents = _model(Contents, archive, CONTENTS)
    entries = [_model(WorkflowEntry, archive, name) for name in archive.names(WORKFLOWS)]
    tables = contents.data_tables or []
    _require_same("tables", [table.file for table in tables], archive.names(TABLES))
    expected = {CONTENTS, *archive.names(WORKFLOWS), *archive.names(TABLES)}
    _require_same("members", expected, archive.manifest["members"])
    require(not repeated(entry.id for entry in entries), "the archive cannot be restored: a workflow is in it twice")
    for entry in entries:
        problem = problem_of_workflow(entry)
        require(not problem, f"the archive cannot be restored: workflow {entry.id}: {problem}; nothing was written")
    names = distinct_names({entry.id: str(entry.definition["name"]) for entry in entries})
    workflows = {
        names[entry.id]: StoredWorkflow(entry.id, names[entry.id], entry.definition, entry.draft, entry.project)
        for entry in entries
    }
    backup = StoredBackup(archive, contents, workflows, tables)
    twice = sorted({name for _, name in repeated((table.project, table.name) for table in tables)})
    require(not twice, f"the archive cannot be restored: it has data tables of the same name: {twice}")
    keys = sorted(
        {key for _, key in repeated((variable.project, variable.key) for variable in contents.variables or ())}
    )
    require(not keys, f"the archive cannot be restored: it has variables of the same key in one project: {keys}")
    for table in tables:
        _check_rows(backup, table)
    return backup


def problem_of_workflow(entry: WorkflowEntry) -> str | None:
    for what, definition in {"its definition": entry.definition, "its draft": entry.draft}.items():
        if definition is None:
            continue
        problem = problem_of(definition, what) or (None if definition["name"] else f"{what} has no name")
        if problem:
            return problem
    return None


def problem_of_table(name: str, columns: Any) -> str | None:
    """Return why a data table with these columns, as for ``types_by_name``, cannot be restored; None if it can be."""
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
        places = ", ".join(".".join(map(str, problem["loc"])) or "itself" for problem in error.errors()[:5])
        raise ServiceInputError(
            f"the archive cannot be restored: {name} does not have the form of a backup: {places}; nothing was written"
        ) from None


def _require_same(what: str, names: Iterable[str], listed: Iterable[str]) -> None:
    is_same = sorted(names) == sorted(listed)
    require(is_same, f"the archive cannot be restored: its lists of {what} do not agree; nothing was written")


@dataclass(frozen=True)
class RestoreScope:
    kinds: Sequence[str] | None
    names: Sequence[str] | None
    mapping: InstanceMapping

    @classmethod
    def read(cls, kinds: object, names: object, mapping: InstanceMapping) -> RestoreScope:
        selected = _selection("kinds", kinds), _selection("names", names)
        for kind in selected[0] or ():
            require_choice("each of kinds", kind, KINDS)
        return cls(*selected, mapping)

    def of(self, backup: StoredBackup) -> StoredBackup:
        if self == RestoreScope(None, None, InstanceMapping()):
            return backup
        scope = json.dumps(asdict(self), sort_keys=True)
        return replace(self._renamed(self._selected(backup)), scope=scope)

    def _selected(self, backup: StoredBackup) -> StoredBackup:
        kinds, matched = self.kinds or KINDS, set[str]()

        def selects(kind: str, *names: str) -> bool:
            if kind not in kinds or self.names is None:
                return kind in kinds
            matches = {*self.names} & {*names}
            matched.update(matches)
            return bool(matches)

        held = {kind: getattr(backup.contents, kind) for kind in KINDS if kind != WORKFLOWS}
        absent = [kind for kind in self.kinds or () if kind in held and held[kind] is None]
        require(not absent, f"the backup holds none of the kinds {', '.join(absent)}; nothing was written")
        contents = {
            kind: None
            if entries is None
            else [entry for entry in entries if selects(kind, str(getattr(entry, "key", None) or entry.name))]
            for kind, entries in held.items()
        }
        workflows = {
            name: workflow
            for name, workflow in backup.workflows.items()
            if selects(WORKFLOWS, name, str(workflow.definition["name"]))
        }
        missing = [repr(name) for name in dict.fromkeys(self.names or ()) if name not in matched]
        require(
            not missing,
            f"the backup holds no {', '.join(missing)} of the kinds {', '.join(kinds)}; nothing was written",
        )
        return replace(backup, contents=backup.contents.model_copy(update=contents), workflows=workflows)

    def _renamed(self, backup: StoredBackup) -> StoredBackup:
        by_id = {workflow.id: name for name, workflow in backup.workflows.items() if workflow.id}
        names = MappedNames(self.mapping, by_id)
        contents = _renamed_contents(names, backup.contents)
        workflows = [_renamed_workflow(names, workflow) for workflow in backup.workflows.values()]
        names.log_unused()
        problems = [*map(": ".join, names.problems), *_collisions(contents, workflows)]
        if problems:
            raise ServiceInputError(f"the backup cannot be restored, and nothing was written: {'; '.join(problems)}")
        return replace(backup, contents=contents, workflows={workflow.name: workflow for workflow in workflows})


def _selection(argument: str, value: object) -> list[str] | None:
    if value is None:
        return None
    texts = as_texts(argument, value)
    require(texts, f"{argument} must not be an empty list; None restores everything")
    return texts


def _renamed_contents(names: MappedNames, contents: Contents) -> Contents:
    def copies(kind: str) -> list[Any] | None:
        entries = getattr(contents, kind)
        return None if entries is None else [renamed(kind, entry) for entry in entries]

    def renamed(kind: str, entry: Any) -> Any:
        new: dict[str, str | None] = {}
        if kind != "variables":
            new["name"] = names.name(kind, entry.name)
        if kind != "projects":
            new["project"] = entry.project and names.name("projects", entry.project)
        if kind == "data_tables" and new != {"name": entry.name, "project": entry.project}:
            new["id"] = None  # it may belong to the table with the old name, or of the old project
        return entry.model_copy(update=new)

    tags = sorted({names.name("tags", tag.name) for tag in contents.tags})
    kinds = ("projects", "variables", "credentials", "data_tables")
    changed = {"tags": [TagEntry(name=name) for name in tags], **{kind: copies(kind) for kind in kinds}}
    return contents.model_copy(update=changed)


def _renamed_workflow(names: MappedNames, workflow: StoredWorkflow) -> StoredWorkflow:
    new = names.name(WORKFLOWS, workflow.name)
    changed = replace(
        workflow,
        definition=names.definition(workflow.name, workflow.definition),
        draft=workflow.draft and names.definition(workflow.name, workflow.draft, may_lack=True),
        project=workflow.project and names.name("projects", workflow.project),
    )
    # Its id may belong to the workflow with the old name.
    return changed if new == workflow.name else replace(changed, id=None, name=new)


def _collisions(contents: Contents, workflows: Sequence[StoredWorkflow]) -> Iterator[str]:
    """Yield why new names are refused: several objects that need distinct names would get the same one."""
    named: Mapping[str, Iterable[tuple[str | None, str]]] = {
        "projects": ((None, project.name) for project in contents.projects or ()),
        "variables": ((variable.project, variable.key) for variable in contents.variables or ()),
        "data tables": ((table.project, table.name) for table in contents.data_tables or ()),
        "workflows": ((None, workflow.name) for workflow in workflows),
    }
    for kind, names in named.items():
        for _, name in sorted(repeated(names), key=str):
            yield f"several {kind} of the backup would be named {name!r}"
