"""Write each workflow to a file, which changes only where the workflow does."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_service._airflow.arguments import as_texts, require, require_source
from airflow_provider_service._airflow.references import (
    OPTIONAL_DESTINATION_PROJECT,
    OPTIONAL_TAG,
    PROJECT,
    tag_name_in,
    workflows_with_tag,
)
from airflow_provider_service._core.instances.code import code_apart
from airflow_provider_service._core.instances.deployment_record import is_deployment_record
from airflow_provider_service._core.instances.directory import UnambiguousDirectory
from airflow_provider_service._core.instances.distinct_names import distinct_names
from airflow_provider_service._core.instances.export_format import to_export_format, to_text
from airflow_provider_service._core.instances.file_names import file_stem
from airflow_provider_service._core.instances.gaps import Gaps
from airflow_provider_service._core.instances.source import LOSS, Source
from airflow_provider_service._core.instances.stale_files import remove_stale_files, warn_of_former_names
from airflow_provider_service._core.stored_folders import StoredFolder
from airflow_provider_service.client._lookup import get_project, get_workflow
from airflow_provider_service.client.errors import ServiceInputError

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import Workflow

log = logging.getLogger(__name__)


class ExportSelection(NamedTuple):
    """Selects workflows of an instance; archived ones are never selected.

    :param names: exact names; None for all.
    :param tag_name: only those with this tag.
    :param project_id: only those of this project.
    """

    names: Sequence[str] | None = None
    tag_name: str | None = None
    project_id: str | None = None

    @classmethod
    def of(cls, arguments: Any, client: Resources) -> ExportSelection:
        """Return the selection that arguments make.

        :param arguments: object with ``workflow_names`` and the arguments of the tag and the project as attributes.
        :raises ServiceLookupError: no tag or project has the name, or several do.
        """
        names = None if arguments.workflow_names is None else as_texts("workflow_names", arguments.workflow_names)
        return cls(names, tag_name_in(arguments, client), PROJECT.id_in(arguments, client))

    def workflows(self, client: Resources) -> list[Workflow]:
        """Return the selected workflows as the service lists them, sorted by name.

        :raises ServiceLookupError: no workflow has one of the names, or several do.
        :raises ServiceInputError: a workflow that is named does not have the tag.
        """
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
    """Read the selected workflows, as definitions for files.

    :param pinned_data: whether the pinned data of the nodes is included.
    :param left_out: collects the workflows that cannot be read by their ids; None to refuse them.
    :raises ServiceInputError: a workflow cannot be read by its id.
    """
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
    """Write the workflows that arguments select into a folder. Safe to repeat.

    :param arguments: object with the arguments of :meth:`ExportSelection.of` as attributes, and ``path``,
        ``code_files``, ``pinned_data``, ``remove_stale`` and ``allow_empty``.
    :returns: ``{"path", "workflows", "files", "left_out", "removed"}``.
    """
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
    """Read the workflows that arguments select for another instance.

    :param arguments: as for :meth:`ExportSelection.of` and :func:`require_selection`.
    :param client: client or hook of the instance to read from.
    :raises ServiceInputError: nothing is selected, or nothing is found and ``arguments.allow_empty`` is False.
    """
    require_selection(arguments)
    every = exported(client, ExportSelection.of(arguments, client))
    found = [Source(one.definition, one.workflow_id, removes=("description",)) for one in every]
    require_source(found, "the source has no workflow to promote", LOSS, allow_empty=arguments.allow_empty)
    return found


def require_selection(arguments: Any) -> None:
    """Refuse a promotion of everything.

    :raises ServiceInputError: nothing is selected.
    """
    names = ("workflow_names", *OPTIONAL_TAG.fields, *PROJECT.fields)
    selects = any(getattr(arguments, name) is not None for name in names)
    require(selects, "give workflow_names, a tag or a project of the source")


def destination_project_id(
    arguments: Any, source: Resources, client: Resources, projects: Mapping[str, str]
) -> str | None:
    """The target project of a promotion: the one in the arguments, or else the one to which the source's project is
    mapped.

    :param arguments: object with the arguments of both projects as attributes.
    :param source: client or hook of the instance to read from.
    :param client: client or hook of the instance to deploy to.
    :param projects: names of the projects to deploy to, by those of the source.
    :raises ServiceLookupError: there is no such project, or several have its name.
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
    """Write workflows into a folder, one file per workflow. Safe to repeat; other files of the folder are not changed.

    :param folder: a path, or an address of object storage; it is created if it does not exist.
    :param code_files: whether to write the code of nodes to separate files, in a folder beside the workflow's file.
    :param remove_stale: whether to remove exported files of other workflows, and of these under former names.
    :param allow_empty: whether to remove files even if there is no workflow to write.
    :returns: the address of each file, by the id of its workflow; and the paths of the files that were removed.
    """
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
