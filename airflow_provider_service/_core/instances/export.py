"""Write each workflow to a file, which changes only where the workflow does.

The format of a workflow's file: the version that runs, without volatile data, and with names instead of ids.

Find the files of an export whose workflows were renamed, or are not exported any more.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_service._core.arguments import as_texts, require, require_source
from airflow_provider_service._core.instances.deployment_record import is_deployment_record
from airflow_provider_service._core.instances.matching import distinct_names
from airflow_provider_service._core.instances.references import Gaps, Named, UnambiguousDirectory, with_references
from airflow_provider_service._core.instances.source import LOSS, Source, code_apart, code_inside, file_stem
from airflow_provider_service._core.object_storage import StoredFolder
from airflow_provider_service._core.references import (
    OPTIONAL_DESTINATION_PROJECT,
    OPTIONAL_TAG,
    PROJECT,
    tag_name_in,
    workflows_with_tag,
)
from airflow_provider_service.client._definitions import UNSET, running
from airflow_provider_service.client._lookup import get_project, get_workflow
from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.client.resources._workflows import writable

if TYPE_CHECKING:
    from airflow_provider_service._core.instances.references import Directory
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import Workflow


_VOLATILE = ("staticData",)
_LEFT_OUT_IF_EMPTY = ("description", "nodeGroups", "pinData")


def to_export_format(
    workflow: Workflow, directory: Directory, *, pinned_data: bool = False, draft: bool = False
) -> dict[str, Any]:
    """Convert a workflow to the form that it has in a file."""
    whole = writable(workflow) if draft else running(workflow)
    content = {name: value for name, value in whole.items() if name not in _VOLATILE}
    if not pinned_data:
        content.pop("pinData", None)
    settings = {name: value for name, value in content["settings"].items() if not _is_unset(name, value)}
    tags = sorted(tag.name for tag in workflow.tags or () if tag.name)
    written = with_references(
        {**content, "settings": settings, "active": workflow.active, "tags": tags},
        lambda named: by_name(named, directory),
    )
    return {name: value for name, value in written.items() if value or name not in _LEFT_OUT_IF_EMPTY}


def by_name(named: Named, directory: Directory) -> Named:
    """Return the object by its name only, if it is known."""
    entry = directory.find(named)
    if entry is None:
        return named
    return Named(named.kind, None, entry.name, named.place, named.type)


def to_text(definition: Mapping[str, Any]) -> str:
    """Write a definition as text that differs only where the definition does."""
    return json.dumps(definition, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _is_unset(name: str, value: Any) -> bool:
    return (name == "errorWorkflow" and not value) or (name in UNSET and UNSET[name] == value)


log = logging.getLogger(__name__)


def remove_stale_files(
    stored: StoredFolder, written: Mapping[str, str], kept: Set[str], *, allow_empty: bool
) -> list[str]:
    """Remove the files of workflows that this export has not written, with their files of code.

    A file without the id of a workflow has never been exported, so it stays. Safe to repeat.
    """
    removed, others = [], _others(stored, written)
    require_source(
        written or not others,
        "the service returned no workflow to export",
        f"remove_stale=True would delete the files of all {len(others)} workflows in {stored.path}",
        allow_empty=allow_empty,
    )
    for path, definition in others.items():
        for one in (*sorted(_code_files(path, definition) - kept), path):
            if _is_removed(stored, one):
                removed.append(one)
        log.info("Removed %r: workflow %s was renamed, or is not exported any more", path, definition["id"])
    return removed


def warn_of_former_names(stored: StoredFolder, written: Mapping[str, str]) -> None:
    """Warn of files that hold an exported workflow under a former name: a folder with both cannot be deployed."""
    for path, definition in _others(stored, written).items():
        if definition["id"] in written:
            log.warning(
                "%r holds the same workflow as %r, under another name. Remove one of them, because a folder with both "
                "cannot be deployed; remove_stale=True does it",
                path,
                written[definition["id"]],
            )


def _others(stored: StoredFolder, written: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The exported definitions in the folder itself that this export has not written, by their paths."""
    # Some file systems do not distinguish upper from lower case, and list a file under its first name.
    names = {path.casefold(): path for path in written.values()}
    found = {}
    for path in stored.files(".json", depth=1) if stored.exists() else ():
        alike = names.get(path.casefold())
        is_written = alike is not None and stored.is_same(path, alike)
        if not is_written and (definition := _exported(stored, path)) is not None:
            found[path] = definition
    return found


def _exported(stored: StoredFolder, path: str) -> dict[str, Any] | None:
    try:
        definition = json.loads(stored.read(path))
    except (ServiceInputError, ValueError, RecursionError):
        return None
    is_workflow = isinstance(definition, dict) and isinstance(definition.get("nodes"), list)
    return definition if is_workflow and isinstance(definition.get("id"), str) else None


def _code_files(path: str, definition: Mapping[str, Any]) -> set[str]:
    """The files of a definition's code, all of which an export writes to the folder beside the definition."""
    found: list[str] = []

    def note(one: str) -> str:
        found.append(one)
        return ""

    try:
        code_inside(definition, note)
    except ServiceInputError:  # this file was not exported
        return set()
    return {one for one in found if one.startswith(f"{path.removesuffix('.json')}/")}


def _is_removed(stored: StoredFolder, path: str) -> bool:
    try:
        stored.delete(path)
    except FileNotFoundError:
        return False
    return True


class ExportSelection(NamedTuple):
    """Selects workflows of an instance; archived ones are never selected."""

    names: Sequence[str] | None = None
    tag_name: str | None = None
    project_id: str | None = None

    @classmethod
    def of(cls, arguments: Any, client: Resources) -> ExportSelection:
        """Return the selection that arguments make."""
        names = None if arguments.workflow_names is None else as_texts("workflow_names", arguments.workflow_names)
        return cls(names, tag_name_in(arguments, client), PROJECT.id_in(arguments, client))

    def workflows(self, client: Resources) -> list[Workflow]:
        """Return the selected workflows as the service lists them, sorted by name."""
        listed = workflows_with_tag(client, self.tag_name, project_id=self.project_id)
        kept = (one for one in listed if not one.is_archived and not is_deployment_record(one))
        found = sorted(kept, key=lambda one: (one.name, one.id))
        if self.names is None:
            return found
        ids = {one.id for one in found}
        named = [get_workflow(client, name, project_id=self.project_id) for name in dict.fromkeys(self.names)]
        for one in named:
            # Left out silently, it would be missing from a folder, or a promotion could archive it.
            has_tag = self.tag_name is None or one.id in ids
            require(has_tag, f"workflow_names holds {one.name!r}, which does not have the tag {self.tag_name!r}")
        return named


class Exported(NamedTuple):
    """A workflow's id, and its definition for a file. If others share its name, the name there has its id appended."""

    workflow_id: str
    definition: dict[str, Any]


def exported(
    client: Resources, selection: ExportSelection, *, pinned_data: bool = False, left_out: Gaps | None = None
) -> Iterator[Exported]:
    """Read the selected workflows, as definitions for files."""
    directory = UnambiguousDirectory(client)
    gaps = Gaps() if left_out is None else left_out
    readable = [one.id for one in gaps.addressable("workflow", selection.workflows(client))]
    if left_out is None and gaps:
        raise ServiceInputError("a workflow cannot be read: {}: {}".format(*gaps[0]))
    names = distinct_names({one: directory.workflows[one].name for one in readable if one in directory.workflows})
    for workflow_id in readable:
        workflow = client.workflows.get(workflow_id, exclude_pinned_data=not pinned_data)
        definition = to_export_format(workflow, directory, pinned_data=pinned_data)
        name = names.get(workflow_id, workflow.name)
        yield Exported(workflow_id, {**definition, "name": name, "id": workflow_id})


def export_folder(arguments: Any, client: Resources) -> dict[str, Any]:
    """Write the workflows that arguments select into a folder. Safe to repeat."""
    left_out = Gaps()
    workflows = exported(
        client,
        ExportSelection.of(arguments, client),
        pinned_data=arguments.pinned_data,
        left_out=left_out if arguments.workflow_names is None else None,
    )
    files, removed = write_folder(
        arguments.path,
        workflows,
        code_files=arguments.code_files,
        remove_stale=arguments.remove_stale,
        allow_empty=arguments.allow_empty,
    )
    gaps = [one._asdict() for one in left_out]
    return {"path": arguments.path, "workflows": len(files), "files": files, "left_out": gaps, "removed": removed}


def to_promote(arguments: Any, client: Resources) -> list[Source]:
    """Read the workflows that arguments select for another instance."""
    require_selection(arguments)
    every = exported(client, ExportSelection.of(arguments, client))
    found = [Source(one.definition, one.workflow_id, removes=("description",)) for one in every]
    require_source(found, "the source has no workflow to promote", LOSS, allow_empty=arguments.allow_empty)
    return found


def require_selection(arguments: Any) -> None:
    """Refuse a promotion of everything."""
    names = ("workflow_names", *OPTIONAL_TAG.fields, *PROJECT.fields)
    selects = any(getattr(arguments, name) is not None for name in names)
    require(selects, "give workflow_names, a tag or a project of the source")


def destination_project_id(
    arguments: Any, source: Resources, client: Resources, projects: Mapping[str, str]
) -> str | None:
    """The target project of a promotion: the one in the arguments, or else the one to which the source's project is
    mapped.
    """
    found = OPTIONAL_DESTINATION_PROJECT.id_in(arguments, client)
    if found is not None or not projects:
        return found
    name = arguments.project_name
    if arguments.project_id is not None:
        name = next((one.name for one in source.projects.list() if one.id == arguments.project_id), None)
    if name in projects:
        return get_project(client, projects[name]).id
    log.info("The mapping has no project for %r of the source, so its names of projects are not used", name)
    return None


def write_folder(
    folder: str,
    workflows: Iterable[Exported],
    *,
    code_files: bool = False,
    remove_stale: bool = False,
    allow_empty: bool = False,
) -> tuple[dict[str, str], list[str]]:
    """Write workflows into a folder, one file each. Safe to repeat; other files of the folder are not changed."""
    stored = StoredFolder("path", folder)
    stored.make()
    addresses: dict[str, str] = {}
    paths: dict[str, str] = {}
    code_paths: set[str] = set()
    taken: set[str] = set()
    try:
        for workflow_id, definition in workflows:
            stem = file_stem(definition["name"], workflow_id, taken)
            content: Mapping[str, Any] = definition
            if code_files:
                content, files = code_apart(definition, stem)
                for name, code in files.items():
                    stored.write(name, code.encode())
                code_paths |= files.keys()
            paths[workflow_id] = f"{stem}.json"
            text = to_text(content).encode(errors="backslashreplace")
            addresses[workflow_id] = stored.write(paths[workflow_id], text)
    except Exception:
        log.error(
            "The export to %s is incomplete: %d workflows were written before the error, and no file was removed; a "
            "repeat writes all of them",
            stored.path,
            len(addresses),
        )
        raise
    if remove_stale:
        return addresses, remove_stale_files(stored, paths, code_paths, allow_empty=allow_empty)
    warn_of_former_names(stored, paths)
    return addresses, []
