"""Look up objects by name where the API itself knows only their ids."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol, TypeVar

from airflow_provider_service.client.errors import ServiceLookupError

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models.credentials import Credential
    from airflow_provider_service.client.models.data_tables import DataTable
    from airflow_provider_service.client.models.projects import Project
    from airflow_provider_service.client.models.tags import Tag
    from airflow_provider_service.client.models.variables import Variable
    from airflow_provider_service.client.models.workflows import Workflow


class _HasId(Protocol):
    id: str


Found = TypeVar("Found", bound=_HasId)
T = TypeVar("T")


def find_workflow(client: Resources, name: str, *, project_id: str | None = None) -> Workflow | None:
    """Find a workflow by its exact name; archived ones do not count.

    :raises ServiceLookupError: several have the name.
    """
    listed = client.workflows.list(name=name, project_id=project_id)
    # The server's filter matches any part of a name, whatever the case.
    return _at_most_one(
        (workflow for workflow in listed if workflow.name == name and not workflow.is_archived), "workflow", name
    )


def get_workflow(client: Resources, name: str, *, project_id: str | None = None) -> Workflow:
    """Return the workflow with an exact name, as a list shows it; archived ones do not count.

    :raises ServiceLookupError: none has the name, or several do.
    """
    return _existing(find_workflow(client, name, project_id=project_id), "workflow", name)


def find_data_table(client: Resources, name: str, *, project_id: str | None = None) -> DataTable | None:
    """Find a data table by its exact name.

    :raises ServiceLookupError: several projects have a table with the name.
    """
    wanted = {"name": name, "projectId": project_id}
    listed = client.data_tables.list(filter={key: value for key, value in wanted.items() if value is not None})
    # The server's filter ignores case, and the names of tables may differ only in case.
    return _at_most_one((table for table in listed if table.name == name), "data table", name)


def get_data_table(client: Resources, name: str, *, project_id: str | None = None) -> DataTable:
    """Return the data table with an exact name.

    :raises ServiceLookupError: no table has the name, or tables of several projects do.
    """
    return _existing(find_data_table(client, name, project_id=project_id), "data table", name)


def find_tag(client: Resources, name: str) -> Tag | None:
    """Find a tag by its exact name."""
    return next((tag for tag in client.tags.list() if tag.name == name), None)


def find_variable(client: Resources, key: str, *, project_id: str | None = None) -> Variable | None:
    """Find a variable by its key: in a project, or among the variables of the whole instance.

    :raises ServiceLookupError: several have the key.
    """
    listed = client.variables.list(project_id=project_id)
    return _at_most_one(
        (one for one in listed if one.key == key and (one.project.id if one.project else None) == project_id),
        _variable(project_id),
        key,
    )


def get_variable(client: Resources, key: str, *, project_id: str | None = None) -> Variable:
    """Return the variable with a key: of a project, or of the whole instance.

    :raises ServiceLookupError: none has the key, or several do.
    """
    return _existing(find_variable(client, key, project_id=project_id), _variable(project_id), key)


def find_credential(
    client: Resources, name: str, *, credential_type: str | None = None, project_id: str | None = None
) -> Credential | None:
    """Find a credential by its exact name and, if given, its type and project.

    :raises ServiceLookupError: several have the name, which the service allows.
    """

    def fits(one: Credential) -> bool:
        in_project = project_id is None or any(place.get("id") == project_id for place in one.shared or ())
        return one.name == name and credential_type in (None, one.type) and in_project

    return _at_most_one(filter(fits, client.credentials.list()), "credential", name)


def get_credential(
    client: Resources, name: str, *, credential_type: str | None = None, project_id: str | None = None
) -> Credential:
    """Return the credential with an exact name and, if given, its type and project.

    :raises ServiceLookupError: none has the name, or several do.
    """
    found = find_credential(client, name, credential_type=credential_type, project_id=project_id)
    return _existing(found, "credential", name)


def find_project(client: Resources, name: str) -> Project | None:
    """Find a project by its exact name.

    :raises ServiceLookupError: several have the name.
    """
    return _at_most_one((one for one in client.projects.list() if one.name == name), "project", name)


def get_project(client: Resources, name: str) -> Project:
    """Return the project with an exact name.

    :raises ServiceLookupError: none has the name, or several do.
    """
    return _existing(find_project(client, name), "project", name)


def _variable(project_id: str | None) -> str:
    return f"variable in project {project_id}" if project_id else "variable of the whole instance"


def _at_most_one(found: Iterable[Found], kind: str, name: str) -> Found | None:
    matches = list(found)
    if len(matches) > 1:
        ids = ", ".join(match.id for match in matches)
        raise ServiceLookupError(
            f"there is more than one {kind} named {name!r}: ids {ids}; say which one by id or project"
        )
    return matches[0] if matches else None


def _existing(found: T | None, kind: str, name: str) -> T:
    if found is None:
        raise ServiceLookupError(f"there is no {kind} named {name!r}, or this key may not see it")
    return found
