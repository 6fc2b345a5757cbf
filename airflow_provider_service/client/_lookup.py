"""Look up objects by name where the API accepts only ids.

There is one rule for all of them: the name must match exactly, and only one object may have it. An error names the
candidates with their projects, or the name that was probably meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from airflow_provider_service.client import errors

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import (
        Credential,
        DataTable,
        FolderItem,
        Project,
        Tag,
        Variable,
        Workflow,
    )

#: Separates the names of nested folders, which cannot contain it.
FOLDER_SEPARATOR = "/"
#: The id of a project's root, as the parent of its outermost folders.
_ROOT_FOLDER = "0"
#: How many candidates an error names, and how many objects it compares to find the name that was meant.
_MAX_CANDIDATES = 10
_MAX_COMPARED = 1000

Found = TypeVar("Found")
#: Id and, if the service shows it, the name of a project.
_Place = tuple["str | None", "str | None"]


# A plain class, because every operator imports this module, and generating a data class or a named tuple takes long.
class _Kind(Generic[Found]):
    """``listed`` takes a client, the name as a filter or None, the id of a project or None, and the kind's filters."""

    def __init__(
        self,
        noun: str,
        listed: Callable[..., Iterable[Found]],
        places: Callable[[Resources, Sequence[Found]], Iterable[_Place]] | None = None,
        *,
        name_of: Callable[[Any], str | None] = lambda named: named.name,
        without_project: str = "",
    ) -> None:
        self.noun, self.listed, self.places, self.name_of = noun, listed, places, name_of
        self.without_project = without_project

    def find(self, client: Resources, name: str, *, project_id: str | None = None, **filters: Any) -> Found | None:
        matches = self.named(client, name, project_id, **filters)
        if len(matches) > 1:
            raise errors.ServiceLookupError(
                f"there is more than one {self._words(project_id)} named {name!r}: ids "
                f"{self._described(client, matches)}; say which one by id or project"
            )
        return matches[0] if matches else None

    def get(self, client: Resources, name: str, *, project_id: str | None = None, **filters: Any) -> Found:
        match = self.find(client, name, project_id=project_id, **filters)
        if match is not None:
            return match
        try:
            listed = islice(self.listed(client, None, project_id, **filters), _MAX_COMPARED)
            similar = _similar(name, map(self.name_of, listed))
        except errors.ServiceApiError:  # the name itself was looked up successfully, so that is the error to report
            similar = []
        hint = f"; {' or '.join(map(repr, similar))} differs only in upper and lower case or in blanks"
        raise errors.ServiceLookupError(
            f"there is no {self._words(project_id)} named {name!r} at {client.transport.config.base_url}, or this key "
            f"may not see it, because it sees only what its user may see{hint if similar else ''}"
        )

    def named(self, client: Resources, name: str, project_id: str | None, **filters: Any) -> list[Found]:
        return [listed for listed in self.listed(client, name, project_id, **filters) if self.name_of(listed) == name]

    def _words(self, project_id: str | None) -> str:
        return f"{self.noun} in project {project_id}" if project_id else f"{self.noun}{self.without_project}"

    def _described(self, client: Resources, matches: Sequence[Any]) -> str:
        candidates = matches[:_MAX_CANDIDATES]
        places = self.places(client, candidates) if self.places else [(None, None)] * len(candidates)
        described = []
        for candidate, (project_id, project_name) in zip(candidates, places, strict=True):
            project = project_id if project_name is None else f"{project_name!r}, {project_id}"
            described.append(str(candidate.id) if project_id is None else f"{candidate.id} (project {project})")
        more = len(matches) - len(candidates)
        return ", ".join(described) + (f" and {more} more" if more else "")


def _similar(name: str, names: Iterable[str | None]) -> list[str]:
    """The names that differ from a name only in case or blanks, a few at most."""
    wanted = _folded(name)
    return sorted({other for other in names if other is not None and other != name and _folded(other) == wanted})[:3]


def _folded(name: str) -> str:
    return "".join(name.split()).casefold()


def owner_of(shared: Sequence[Mapping[str, Any]] | None, id_key: str = "id") -> _Place:
    """Return id and name of the project that owns an object, of all with which it is shared."""
    owner = next((place for place in shared or () if str(place.get("role")).endswith(":owner")), {})
    return owner.get(id_key), owner.get("name")


# Workflows. The server's filter matches any part of a name, on some databases whatever the case.


def _workflows(
    client: Resources, name: str | None, project_id: str | None, *, archived: bool = False
) -> Iterator[Workflow]:
    for workflow in client.workflows.list(name=name, project_id=project_id, exclude_pinned_data=True):
        if archived or not workflow.is_archived:
            yield workflow


def _projects_of_workflows(client: Resources, workflows: Sequence[Workflow]) -> Iterator[_Place]:
    """The projects of workflows, with their names, which only the whole workflow shows."""
    for workflow in workflows:
        try:
            shared = client.workflows.get(workflow.id, exclude_pinned_data=True).shared
        except (errors.ServiceApiError, errors.ServiceInputError):  # the service can have sent an id that is not valid
            shared = workflow.shared
        places = [{**place, "name": (place.get("project") or {}).get("name")} for place in shared or ()]
        yield owner_of(places, "projectId")


_WORKFLOW: _Kind[Workflow] = _Kind("workflow", _workflows, _projects_of_workflows)
find_workflow, get_workflow = _WORKFLOW.find, _WORKFLOW.get


def get_workflow_or_archived(client: Resources, name: str, *, project_id: str | None = None) -> Workflow:
    return _WORKFLOW.get(client, name, project_id=project_id, archived=True)


def get_live_workflow_or_archived(client: Resources, name: str, *, project_id: str | None = None) -> Workflow:
    """Return the workflow with an exact name. If only archived ones have it, return the one that was changed last."""
    live = find_workflow(client, name, project_id=project_id)
    archived = [] if live else _WORKFLOW.named(client, name, project_id, archived=True)
    if archived:
        return max(archived, key=lambda workflow: str(workflow.updated_at))
    return live or get_workflow(client, name, project_id=project_id)


# Data tables. The server's filter ignores case, and the names of tables may differ only in case.


def _data_tables(client: Resources, name: str | None, project_id: str | None) -> Iterable[DataTable]:
    wanted = {"name": name, "projectId": project_id}
    return client.data_tables.list(filter={key: value for key, value in wanted.items() if value is not None} or None)


def _projects_of_data_tables(client: Resources, tables: Sequence[DataTable]) -> Iterator[_Place]:
    names: dict[str, str] = {}
    for table in tables:
        if not names:
            with suppress(errors.ServiceApiError):  # the plan or the rights of the key may not allow it
                names.update((project.id, project.name) for project in client.projects.list())
        yield table.project_id, names.get(table.project_id or "")


_DATA_TABLE: _Kind[DataTable] = _Kind("data table", _data_tables, _projects_of_data_tables)
find_data_table, get_data_table = _DATA_TABLE.find, _DATA_TABLE.get


# Projects and tags, of which the instance has one list.

_PROJECT: _Kind[Project] = _Kind("project", lambda client, *_: client.projects.list())
find_project, get_project = _PROJECT.find, _PROJECT.get

_TAG: _Kind[Tag] = _Kind("tag", lambda client, *_: client.tags.list())
get_tag = _TAG.get


def create_tag(client: Resources, name: str) -> tuple[Tag, bool]:
    """Create a tag, or find the one of that name; return it, and whether it was created."""
    try:
        return client.tags.create(name), True
    except errors.ServiceConflictError:
        # The service strips spaces from names, and gives the same answer if a name is taken, empty or too long.
        tag = _TAG.find(client, name.strip())
        if tag is None:
            raise errors.ServiceInputError(
                f"{name!r} cannot be the name of a tag: it must have 1 to 24 characters"
            ) from None
        return tag, False


# Variables: of a project, or of the whole instance.


def variables_of(client: Resources, *, project_id: str | None = None) -> Iterable[Variable]:
    listed = client.variables.list(project_id=project_id)
    return (variable for variable in listed if (variable.project.id if variable.project else None) == project_id)


_VARIABLE: _Kind[Variable] = _Kind(
    "variable",
    lambda client, _, project_id: variables_of(client, project_id=project_id),
    lambda _, variables: (
        (variable.project.id, variable.project.name) if variable.project else (None, None) for variable in variables
    ),
    name_of=lambda variable: variable.key,
    without_project=" of the whole instance",
)
find_variable, get_variable = _VARIABLE.find, _VARIABLE.get


def create_variable(client: Resources, key: str, value: str, *, project_id: str | None = None) -> Variable | None:
    """Create a variable; if someone else has just created one with the key, return that one, else None."""
    try:
        client.variables.create(key, value, project_id=project_id)
    except errors.ServiceInvalidRequestError:
        variable = find_variable(client, key, project_id=project_id)
        if variable is None:
            raise
        return variable
    return None


def find_variable_by_id(client: Resources, variable_id: str) -> Variable | None:
    """Find a variable by its id, for which the API has no operation of its own."""
    return next((variable for variable in client.variables.list() if variable.id == variable_id), None)


# Credentials, of a type if one is given; those that are shared with the project, too, unless it must own them.


def _credentials(
    client: Resources,
    _: str | None,
    project_id: str | None,
    *,
    credential_type: str | None = None,
    is_owned: bool = False,
) -> Iterator[Credential]:
    for credential in client.credentials.list():
        shared = credential.shared
        projects = [owner_of(shared)[0]] if is_owned else [place.get("id") for place in shared or ()]
        if credential_type in (None, credential.type) and project_id in (None, *projects):
            yield credential


_CREDENTIAL: _Kind[Credential] = _Kind(
    "credential", _credentials, lambda _, credentials: (owner_of(credential.shared) for credential in credentials)
)
find_credential, get_credential = _CREDENTIAL.find, _CREDENTIAL.get


def get_folder(client: Resources, path: str, *, project_id: str) -> FolderItem:
    """Return the folder of a project with an exact path, such as ``"Reports/Daily"``, level by level."""
    parent: str | None = _ROOT_FOLDER
    above: list[str] = []
    for name in path.strip(FOLDER_SEPARATOR).split(FOLDER_SEPARATOR):
        level = partial(_folders_in, parent)
        where = f" in {FOLDER_SEPARATOR.join(above)!r}" if above else ""
        folder = _Kind(f"folder{where}", level).get(client, name, project_id=project_id)
        parent = folder.id
        above.append(name)
    return folder


def _folders_in(parent: str | None, client: Resources, _: str | None, project_id: str) -> Iterable[FolderItem]:
    return client.folders.list(project_id, filter={"parentFolderId": parent})
