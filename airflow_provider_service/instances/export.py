"""Write workflows as files, one a workflow, which differ only where the workflows do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_service.client.lookup import get_workflow
from airflow_provider_service.instances.code import code_apart
from airflow_provider_service.instances.directory import Directory
from airflow_provider_service.instances.file_names import file_stem
from airflow_provider_service.instances.portable import portable, to_text
from airflow_provider_service.object_storage import write_whole
from airflow_provider_service.stored_folders import StoredFolder

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources


class Selection(NamedTuple):
    """Which workflows of an instance are meant; archived ones never are.

    :param names: exact names; None for all.
    :param tag_name: only those with this tag.
    :param project_id: only those of this project.
    """

    names: Sequence[str] | None = None
    tag_name: str | None = None
    project_id: str | None = None

    def ids(self, client: Resources) -> list[str]:
        """The ids of the workflows, in the order of their names.

        :raises ServiceLookupError: no workflow has one of the names, or several do.
        """
        listed = client.workflows.list(tags=self.tag_name, project_id=self.project_id, exclude_pinned_data=True)
        found = sorted((one for one in listed if not one.is_archived), key=lambda one: (one.name, one.id))
        if self.names is None:
            return [one.id for one in found]
        ids = {one.id for one in found}
        named = (get_workflow(client, name, project_id=self.project_id) for name in dict.fromkeys(self.names))
        return [one.id for one in named if self.tag_name is None or one.id in ids]


class Exported(NamedTuple):
    """A workflow in the form of a file."""

    workflow_id: str
    definition: dict[str, Any]


def exported(client: Resources, selection: Selection, *, pinned_data: bool = False) -> Iterator[Exported]:
    """Read the selected workflows, in the form of files.

    :param pinned_data: whether the pinned data of the nodes is included.
    """
    directory = Directory(client)
    for workflow_id in selection.ids(client):
        workflow = client.workflows.get(workflow_id, exclude_pinned_data=not pinned_data)
        yield Exported(workflow_id, portable(workflow, directory, pinned_data=pinned_data))


def write_folder(folder: str, workflows: Iterable[Exported], *, code_files: bool = False) -> dict[str, str]:
    """Write workflows into a folder, one file a workflow. Safe to repeat; other files of the folder are left alone.

    :param folder: a path, or an address of object storage; it is made if it does not exist.
    :param code_files: whether the code of nodes becomes files of its own, in a folder beside the workflow's file.
    :returns: the address of each file, by the id of its workflow.
    """
    folder = folder.rstrip("/")
    StoredFolder("folder", folder).make()
    written: dict[str, str] = {}
    taken: set[str] = set()
    for workflow_id, definition in workflows:
        stem = file_stem(definition["name"], workflow_id, taken)
        content: Mapping[str, Any] = definition
        if code_files:
            content, files = code_apart(definition, stem)
            if files:
                StoredFolder("folder", f"{folder}/{stem}").make()
            for name, code in files.items():
                write_whole(f"{folder}/{name}", code.encode())
        written[workflow_id] = write_whole(f"{folder}/{stem}.json", to_text(content).encode())
    return written
