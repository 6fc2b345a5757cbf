"""Arguments that name an object of the service, by its id or by a name to look up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.arguments import has_template, refuse, require, require_one_of
from airflow_provider_service.client import _lookup as lookup

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import DataTable, Workflow

#: Finds an object by its name; takes the id of the project as ``project_id`` if objects of the kind have one.
LookUp = Callable[..., Any]


# Plain classes, because generating a data class takes a good part of an operator's import time.
class Alternatives:
    """Two arguments that name an object by id and by name, of which exactly one is given, unless both are optional.

    Its methods read them from the attributes of an operator, a notifier or a trigger.
    """

    def __init__(self, id_field: str, name_field: str, *, is_optional: bool = False) -> None:
        self.fields = (id_field, name_field)
        self.id_field, self.name_field = id_field, name_field
        self.is_optional = is_optional

    def check(self, arguments: object, *, are_rendered: bool) -> None:
        values = self._values(arguments)
        present = [value for value in values.values() if value is not None]
        if self.is_optional and not present:
            return
        # While a DAG file is parsed, a template may still be rendered to None.
        is_final = all(isinstance(value, str) and not has_template(value) for value in present)
        if are_rendered or is_final:
            require_one_of(**values)

    def _values(self, arguments: object) -> Mapping[str, Any]:
        return {name: getattr(arguments, name) for name in self.fields}


class Reference(Alternatives):
    """Two such arguments of which the name can be looked up: in a project, if objects of the kind belong to one."""

    def __init__(
        self,
        id_field: str,
        name_field: str,
        look_up: LookUp,
        project: Reference | None = None,
        *,
        needs_project: bool = False,
        is_optional: bool = False,
    ) -> None:
        super().__init__(id_field, name_field, is_optional=is_optional)
        self.look_up, self.project, self.needs_project = look_up, project, needs_project

    def optional(self) -> Reference:
        return Reference(*self.fields, self.look_up, self.project, needs_project=self.needs_project, is_optional=True)

    def id_in(self, arguments: object, client: Resources) -> str | None:
        """Return the id that is given, or the id of the object with the name; None if neither is given."""
        object_id: str | None
        object_id, name = self._values(arguments).values()
        if object_id is None and name is not None:
            return str(self.named_in(arguments, client).id)
        if isinstance(object_id, str) and not object_id.strip():
            refuse(self.id_field, "text that is not empty", object_id)
        return object_id

    def required_id_in(self, arguments: object, client: Resources) -> str:
        require_one_of(**self._values(arguments))
        return str(self.id_in(arguments, client))

    def named_in(self, arguments: object, client: Resources) -> Any:
        name = getattr(arguments, self.name_field)
        if not isinstance(name, str) or not name.strip():
            refuse(self.name_field, "text that is not empty", name)
        if self.project is None:
            return self.look_up(client, name)
        project_id = self.project.id_in(arguments, client)
        require(
            project_id or not self.needs_project,
            f"{self.name_field} needs {' or '.join(self.project.fields)}, in which it is looked up",
        )
        return self.look_up(client, name, project_id=project_id)


def tag_name_in(arguments: object, client: Resources) -> str | None:
    """Return the name of the tag that is given by its id or name; None if none is given."""
    tag_id, tag_name = (getattr(arguments, name) for name in TAG.fields)
    if tag_id is not None:
        return str(client.tags.get(tag_id).name)
    return None if tag_name is None else str(TAG.named_in(arguments, client).name)


def workflows_with_tag(client: Resources, tag_name: str | None, *, project_id: str | None = None) -> Iterable[Workflow]:
    """Iterate over the workflows that have a tag, or over all of them if it is None; archived ones count as well."""
    # The server's filter takes several names, separated by commas, so a tag with a comma in its name is not among them.
    tags = None if tag_name is None or "," in tag_name else tag_name
    for workflow in client.workflows.list(tags=tags, project_id=project_id, exclude_pinned_data=True):
        # Servers before 2.39 ignore their filter for tags if they also get a project.
        if tag_name is None or tag_name in [tag.name for tag in workflow.tags or ()]:
            yield workflow


def data_table_in(arguments: object, client: Resources) -> DataTable:
    table_id = getattr(arguments, DATA_TABLE.id_field)
    if table_id is not None:
        return client.data_tables.get(table_id)
    table: DataTable = DATA_TABLE.named_in(arguments, client)
    return table


PROJECT = Reference("project_id", "project_name", lookup.get_project, is_optional=True)
DESTINATION_PROJECT = Reference("destination_project_id", "destination_project_name", lookup.get_project)
OPTIONAL_DESTINATION_PROJECT = DESTINATION_PROJECT.optional()
WORKFLOW = Reference("workflow_id", "workflow_name", lookup.get_workflow, PROJECT)
OPTIONAL_WORKFLOW = WORKFLOW.optional()
#: For an operator that archives: when it is repeated, it finds the archived workflow.
WORKFLOW_TO_ARCHIVE = Reference(*WORKFLOW.fields, lookup.get_live_workflow_or_archived, PROJECT)
WORKFLOW_TO_UNARCHIVE = Reference(*WORKFLOW.fields, lookup.get_workflow_or_archived, PROJECT)
PARENT_FOLDER = Reference(
    "parent_folder_id", "parent_folder_name", lookup.get_folder, PROJECT, is_optional=True, needs_project=True
)
DATA_TABLE = Reference("data_table_id", "data_table_name", lookup.get_data_table, PROJECT)
TAG = Reference("tag_id", "tag_name", lookup.get_tag)
OPTIONAL_TAG = TAG.optional()
TAGS = Alternatives("tag_ids", "tags")
#: The name is looked up together with the type.
CREDENTIAL = Alternatives("credential_id", "credential_name", is_optional=True)
VARIABLE = Reference("variable_id", "key", lookup.get_variable, PROJECT)
#: Names that differ in another instance: the mapping itself, or the file that contains it.
MAPPING = Alternatives("mapping", "mapping_path", is_optional=True)
