"""The part of a backup to restore, and the names of its objects in the target instance."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from airflow_provider_service._airflow.arguments import as_texts, repeated, require, require_choice
from airflow_provider_service._core.instances.backup_contents import Contents, TableEntry, TagEntry
from airflow_provider_service._core.instances.mapping import InstanceMapping, MappedNames
from airflow_provider_service._core.instances.restore_reading import StoredBackup, StoredWorkflow
from airflow_provider_service.client.errors import ServiceInputError

log = logging.getLogger(__name__)

WORKFLOWS = "workflows"
#: The kinds that can be selected; projects come with their members and folders.
KINDS = ("tags", "projects", "variables", "credentials", "data_tables", WORKFLOWS)


@dataclass(frozen=True)
class RestoreScope:
    """The part of a backup to restore, and its new names.

    :param kinds: the kinds of objects; None for all.
    :param names: the names of objects of these kinds; None for all.
    :param mapping: names and values that differ between the backup and the instance.
    """

    kinds: Sequence[str] | None
    names: Sequence[str] | None
    mapping: InstanceMapping

    @classmethod
    def read(cls, kinds: object, names: object, mapping: InstanceMapping) -> RestoreScope:
        """Read the scope from arguments.

        :raises ServiceInputError: a kind is unknown, or an argument is not a list, or is empty.
        """
        wanted, named = _selection("kinds", kinds), _selection("names", names)
        for one in wanted or ():
            require_choice("each of kinds", one, KINDS)
        return cls(wanted, named, mapping)

    def of(self, backup: StoredBackup) -> StoredBackup:
        """Return the part of a backup to restore, with its new names.

        :raises ServiceInputError: a selected object is not in the backup, several objects would get the same name, or a
            node or parameter in the mapping does not exist.
        """
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
