"""Read workflows of an instance as definitions: to promote them to another, or to write each to a file.

A definition holds the version that runs, without volatile data, and with names instead of ids, so that its file changes
only where the workflow does.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
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


log = logging.getLogger(__name__)


def export_folder(arguments: Any, client: Resources) -> dict[str, Any]:
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
    gaps = [gap._asdict() for gap in left_out]
    return {"path": arguments.path, "workflows": len(files), "files": files, "left_out": gaps, "removed": removed}


def to_promote(arguments: Any, client: Resources) -> list[Source]:
    require_selection(arguments)
    sources = [
        Source(definition, workflow_id, removes=("description",))
        for workflow_id, definition in exported(client, ExportSelection.of(arguments, client))
    ]
    require_source(sources, "the source has no workflow to promote", LOSS, allow_empty=arguments.allow_empty)
    return sources


def require_selection(arguments: Any) -> None:
    names = ("workflow_names", *OPTIONAL_TAG.fields, *PROJECT.fields)
    selects = any(getattr(arguments, name) is not None for name in names)
    require(selects, "give workflow_names, a tag or a project of the source")


def destination_project_id(
    arguments: Any, source: Resources, client: Resources, projects: Mapping[str, str]
) -> str | None:
    """Return the id of the project in the arguments, or else of the one to which the source's project is mapped."""
    project_id = OPTIONAL_DESTINATION_PROJECT.id_in(arguments, client)
    if project_id is not None or not projects:
        return project_id
    name = arguments.project_name
    if arguments.project_id is not None:
        name = next((project.name for project in source.projects.list() if project.id == arguments.project_id), None)
    if name in projects:
        return get_project(client, projects[name]).id
    log.info("The mapping has no project for %r of the source, so its names of projects are not used", name)
    return None


class ExportSelection(NamedTuple):
    names: Sequence[str] | None = None
    tag_name: str | None = None
    project_id: str | None = None

    @classmethod
    def of(cls, arguments: Any, client: Resources) -> ExportSelection:
        names = None if arguments.workflow_names is None else as_texts("workflow_names", arguments.workflow_names)
        return cls(names, tag_name_in(arguments, client), PROJECT.id_in(arguments, client))

    def workflows(self, client: Resources) -> list[Workflow]:
        listed = workflows_with_tag(client, self.tag_name, project_id=self.project_id)
        selected = sorted(
            (workflow for workflow in listed if not workflow.is_archived and not is_deployment_record(workflow)),
            key=lambda workflow: (workflow.name, workflow.id),
        )
        if self.names is None:
            return selected
        ids = {workflow.id for workflow in selected}
        named = [get_workflow(client, name, project_id=self.project_id) for name in dict.fromkeys(self.names)]
        for workflow in named:
            # Left out silently, it would be missing from a folder, or a promotion could archive it.
            has_tag = self.tag_name is None or workflow.id in ids
            require(has_tag, f"workflow_names holds {workflow.name!r}, which does not have the tag {self.tag_name!r}")
        return named


def exported(
    client: Resources, selection: ExportSelection, *, pinned_data: bool = False, left_out: Gaps | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the ids of the selected workflows, and their definitions for files.

    If workflows share their name, the name in the definition has the id appended.

    :param left_out: to which workflows that cannot be read are added; None to refuse them.
    """
    directory = UnambiguousDirectory(client)
    gaps = Gaps() if left_out is None else left_out
    readable = [workflow.id for workflow in gaps.addressable("workflow", selection.workflows(client))]
    if left_out is None and gaps:
        raise ServiceInputError("a workflow cannot be read: {}: {}".format(*gaps[0]))
    known = directory.workflows
    names = distinct_names({workflow_id: known[workflow_id].name for workflow_id in readable if workflow_id in known})
    for workflow_id in readable:
        workflow = client.workflows.get(workflow_id, exclude_pinned_data=not pinned_data)
        definition = to_export_format(workflow, directory, pinned_data=pinned_data)
        name = names.get(workflow_id, workflow.name)
        yield workflow_id, {**definition, "name": name, "id": workflow_id}


def to_export_format(
    workflow: Workflow, directory: Directory, *, pinned_data: bool = False, draft: bool = False
) -> dict[str, Any]:
    def by_name(named: Named) -> Named:
        entry = directory.find(named)
        return Named(named.kind, None, entry.name, named.place, named.type) if entry else named

    whole = writable(workflow) if draft else running(workflow)
    content = {name: value for name, value in whole.items() if name != "staticData"}
    if not pinned_data:
        content.pop("pinData", None)
    settings = {
        name: value
        for name, value in content["settings"].items()
        if (value or name != "errorWorkflow") and not (name in UNSET and UNSET[name] == value)
    }
    tags = sorted(tag.name for tag in workflow.tags or () if tag.name)
    written = with_references({**content, "settings": settings, "active": workflow.active, "tags": tags}, by_name)
    if_not_empty = ("description", "nodeGroups", "pinData")
    return {name: value for name, value in written.items() if value or name not in if_not_empty}


def write_folder(
    folder: str,
    workflows: Iterable[tuple[str, Mapping[str, Any]]],
    *,
    code_files: bool = False,
    remove_stale: bool = False,
    allow_empty: bool = False,
) -> tuple[dict[str, str], list[str]]:
    """Write each workflow to a file of a folder. Safe to repeat; other files of the folder are not changed."""
    stored = StoredFolder("path", folder)
    stored.make()
    addresses: dict[str, str] = {}
    paths: dict[str, str] = {}
    code_paths: set[str] = set()
    taken: set[str] = set()
    try:
        for workflow_id, definition in workflows:
            stem = file_stem(definition["name"], workflow_id, taken)
            content, code = code_apart(definition, stem) if code_files else (definition, {})
            for path, text in code.items():
                stored.write(path, text.encode())
            code_paths |= code.keys()
            paths[workflow_id] = f"{stem}.json"
            text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
            addresses[workflow_id] = stored.write(paths[workflow_id], text.encode(errors="backslashreplace"))
    except Exception:
        log.error(
            "The export to %s is incomplete: %d workflows were written before the error, and no file was removed; a "
            "repeat writes all of them",
            stored.path,
            len(addresses),
        )
        raise
    if remove_stale:
        return addresses, _remove_stale_files(stored, paths, code_paths, allow_empty=allow_empty)
    for path, definition in _others(stored, paths).items():
        if definition["id"] in paths:
            log.warning(
                "%r holds the same workflow as %r, under another name. Remove one of them, because a folder with both "
                "cannot be deployed; remove_stale=True does it",
                path,
                paths[definition["id"]],
            )
    return addresses, []


def _remove_stale_files(
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
        for stale in (*sorted(_code_files(path, definition) - kept), path):
            with suppress(FileNotFoundError):
                stored.delete(stale)
                removed.append(stale)
        log.info("Removed %r: workflow %s was renamed, or is not exported any more", path, definition["id"])
    return removed


def _others(stored: StoredFolder, written: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The exported definitions in the folder itself that this export has not written, by their paths."""
    # Some file systems do not distinguish upper from lower case, and list a file under its first name.
    names = {path.casefold(): path for path in written.values()}
    others = {}
    for path in stored.files(".json", depth=1) if stored.exists() else ():
        alike = names.get(path.casefold())
        if alike is not None and stored.is_same(path, alike):
            continue
        with suppress(ServiceInputError, ValueError, RecursionError):
            definition = json.loads(stored.read(path))
            is_workflow = isinstance(definition, dict) and isinstance(definition.get("nodes"), list)
            if is_workflow and isinstance(definition.get("id"), str):
                others[path] = definition
    return others


def _code_files(path: str, definition: Mapping[str, Any]) -> set[str]:
    """The files of a definition's code, all of which an export writes to the folder beside the definition."""
    paths: list[str] = []

    def note(code_path: str) -> str:
        paths.append(code_path)
        return ""

    try:
        code_inside(definition, note)
    except ServiceInputError:  # this file was not exported
        return set()
    return {code_path for code_path in paths if code_path.startswith(f"{path.removesuffix('.json')}/")}
