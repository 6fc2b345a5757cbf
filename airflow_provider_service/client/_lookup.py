"""Look up objects by name where the API accepts only ids.

There is one rule for all of them: the name must match exactly, and only one object may have it. An error names the
candidates with their projects, or the name that was probably meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from airflow_provider_service.client.errors import (
    ServiceApiError,
    ServiceConflictError,
    ServiceInputError,
    ServiceInvalidRequestError,
    ServiceLookupError,
)

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.resources._credentials import Credential
    from airflow_provider_service.client.resources._data_tables import DataTable
    from airflow_provider_service.client.resources._folders import FolderItem
    from airflow_provider_service.client.resources._projects import Project
    from airflow_provider_service.client.resources._tags import Tag
    from airflow_provider_service.client.resources._variables import Variable
    from airflow_provider_service.client.resources._workflows import Workflow

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
class _Search(Generic[Found]):
    """A look-up by name.

    :param client: client or hook of the service.
    :param kind: what is looked for, in words.
    :param name: the name as it was given.
    :param named: the objects that have exactly this name.
    :param others: lists all objects of the kind, for the error that none has the name.
    :param place: the project of an object.
    :param name_of: the name of an object.
    """

    def __init__(
        self,
        client: Resources,
        kind: str,
        name: str,
        named: Iterable[Found],
        others: Callable[[], Iterable[Found]],
        place: Callable[[Found], _Place] = lambda _: (None, None),
        name_of: Callable[[Any], str | None] = lambda one: one.name,
    ) -> None:
        self.client, self.kind, self.name = client, kind, name
        self.named, self.others = named, others
        self.place, self.name_of = place, name_of

    def find(self) -> Found | None:
        """The object with the name, if there is one.

        :raises ServiceLookupError: several have it.
        """
        matches = list(self.named)
        if len(matches) > 1:
            raise ServiceLookupError(
                f"there is more than one {self.kind} named {self.name!r}: ids {self._described(matches)}; "
                "say which one by id or project"
            )
        return matches[0] if matches else None

    def get(self) -> Found:
        """The object with the name.

        :raises ServiceLookupError: none has it, or several do.
        """
        found = self.find()
        if found is None:
            raise ServiceLookupError(
                f"there is no {self.kind} named {self.name!r} at {self.client.transport.config.base_url}, or this key "
                f"may not see it, because it sees only what its user may see{self._hint()}"
            )
        return found

    def _described(self, matches: Sequence[Found]) -> str:
        shown = [_described(one, self.place(one)) for one in matches[:_MAX_CANDIDATES]]
        more = len(matches) - len(shown)
        return ", ".join(shown) + (f" and {more} more" if more else "")

    def _hint(self) -> str:
        try:
            similar = _similar(self.name, islice(map(self.name_of, self.others()), _MAX_COMPARED))
        except ServiceApiError:  # the name itself was looked up successfully, so that is the error to report
            return ""
        if not similar:
            return ""
        return f"; {' or '.join(map(repr, similar))} differs only in upper and lower case or in blanks"


def _described(one: Any, place: _Place) -> str:
    project_id, project_name = place
    if project_id is None:
        return str(one.id)
    return f"{one.id} (project {project_id if project_name is None else f'{project_name!r}, {project_id}'})"


def _similar(name: str, names: Iterable[str | None]) -> list[str]:
    """The names that differ from a name only in case or blanks, a few at most."""
    wanted = _folded(name)
    return sorted({one for one in names if one is not None and one != name and _folded(one) == wanted})[:3]


def _folded(name: str) -> str:
    return "".join(name.split()).casefold()


def _exactly(name: str, listed: Iterable[Found]) -> Iterable[Found]:
    return (one for one in listed if one.name == name)  # type: ignore[attr-defined]


def _workflow(client: Resources, name: str, project_id: str | None, *, archived: bool = False) -> _Search[Workflow]:
    list_all = partial(client.workflows.list, project_id=project_id, exclude_pinned_data=True)
    # The server's filter matches any part of a name, on some databases whatever the case.
    named = (one for one in _exactly(name, list_all(name=name)) if archived or not one.is_archived)
    others = lambda: (one for one in list_all() if archived or not one.is_archived)  # noqa: E731
    return _Search(client, f"workflow{_within(project_id)}", name, named, others, partial(_project_of_workflow, client))


def find_workflow(client: Resources, name: str, *, project_id: str | None = None) -> Workflow | None:
    """Find a workflow by its exact name; archived ones do not count.

    :raises ServiceLookupError: several have the name.
    """
    return _workflow(client, name, project_id).find()


def get_workflow(client: Resources, name: str, *, project_id: str | None = None) -> Workflow:
    """Return the workflow with an exact name, as a list shows it; archived ones do not count.

    :raises ServiceLookupError: none has the name, or several do.
    """
    return _workflow(client, name, project_id).get()


def get_workflow_or_archived(client: Resources, name: str, *, project_id: str | None = None) -> Workflow:
    """Return the workflow with an exact name, as a list shows it; archived ones count as well.

    :raises ServiceLookupError: none has the name, or several do.
    """
    return _workflow(client, name, project_id, archived=True).get()


def get_live_workflow_or_archived(client: Resources, name: str, *, project_id: str | None = None) -> Workflow:
    """Return the workflow with an exact name. If only archived ones have it, return the one that was changed last.

    :raises ServiceLookupError: none has the name, or several do that are not archived.
    """
    found = find_workflow(client, name, project_id=project_id)
    archived = _workflow(client, name, project_id, archived=True)
    if found is None and (all_archived := list(archived.named)):
        return max(all_archived, key=lambda one: str(one.updated_at))
    return found or get_workflow(client, name, project_id=project_id)


def find_data_table(client: Resources, name: str, *, project_id: str | None = None) -> DataTable | None:
    """Find a data table by its exact name.

    :raises ServiceLookupError: several projects have a table with the name.
    """
    return _data_table(client, name, project_id).find()


def get_data_table(client: Resources, name: str, *, project_id: str | None = None) -> DataTable:
    """Return the data table with an exact name.

    :raises ServiceLookupError: no table has the name, or tables of several projects do.
    """
    return _data_table(client, name, project_id).get()


def _data_table(client: Resources, name: str, project_id: str | None) -> _Search[DataTable]:
    in_project = {} if project_id is None else {"projectId": project_id}
    # The server's filter ignores case, and the names of tables may differ only in case.
    named = _exactly(name, client.data_tables.list(filter={"name": name, **in_project}))
    project_names = _project_names(client)
    return _Search(
        client,
        f"data table{_within(project_id)}",
        name,
        named,
        lambda: client.data_tables.list(filter=in_project or None),
        lambda one: (one.project_id, project_names(one.project_id)),
    )


def get_tag(client: Resources, name: str) -> Tag:
    """Return the tag with an exact name.

    :raises ServiceLookupError: none has the name.
    """
    return _tag(client, name).get()


def _tag(client: Resources, name: str) -> _Search[Tag]:
    return _Search(client, "tag", name, _exactly(name, client.tags.list()), client.tags.list)


def create_tag(client: Resources, name: str) -> tuple[Tag, bool]:
    """Create a tag, or find the one of that name.

    :param client: client or hook of the service.
    :param name: name of the tag.
    :returns: the tag, and whether it was created.
    :raises ServiceInputError: the name cannot be that of a tag.
    """
    try:
        return client.tags.create(name), True
    except ServiceConflictError:
        # The service strips spaces from names, and gives the same answer if a name is taken, empty or too long.
        found = _tag(client, name.strip()).find()
        if found is None:
            raise ServiceInputError(f"{name!r} cannot be the name of a tag: it must have 1 to 24 characters") from None
        return found, False


def find_variable(client: Resources, key: str, *, project_id: str | None = None) -> Variable | None:
    """Find a variable by its key: in a project, or among the variables of the whole instance.

    :raises ServiceLookupError: several have the key.
    """
    return _variable(client, key, project_id).find()


def get_variable(client: Resources, key: str, *, project_id: str | None = None) -> Variable:
    """Return the variable with a key: of a project, or of the whole instance.

    :raises ServiceLookupError: none has the key, or several do.
    """
    return _variable(client, key, project_id).get()


def create_variable(client: Resources, key: str, value: str, *, project_id: str | None = None) -> Variable | None:
    """Create a variable; if someone else has just created one with the key, return that one, else None."""
    try:
        client.variables.create(key, value, project_id=project_id)
    except ServiceInvalidRequestError:
        found = find_variable(client, key, project_id=project_id)
        if found is None:
            raise
        return found
    return None


def variables_of(client: Resources, *, project_id: str | None = None) -> Iterable[Variable]:
    """Iterate over the variables of a project, or over those of the whole instance."""
    every = client.variables.list(project_id=project_id)
    return (one for one in every if (one.project.id if one.project else None) == project_id)


def _variable(client: Resources, key: str, project_id: str | None) -> _Search[Variable]:
    listed = partial(variables_of, client, project_id=project_id)
    return _Search(
        client,
        f"variable{_within(project_id)}" if project_id else "variable of the whole instance",
        key,
        (one for one in listed() if one.key == key),
        listed,
        lambda one: (one.project.id, one.project.name) if one.project else (None, None),
        lambda one: one.key,
    )


def find_variable_by_id(client: Resources, variable_id: str) -> Variable | None:
    """Find a variable by its id, for which the API has no operation of its own."""
    return next((one for one in client.variables.list() if one.id == variable_id), None)


def find_credential(
    client: Resources,
    name: str,
    *,
    credential_type: str | None = None,
    project_id: str | None = None,
    is_owned: bool = False,
) -> Credential | None:
    """Find a credential by its exact name and, if given, its type and project.

    :param is_owned: whether it must belong to the project; False to find those that are shared with it, too.
    :raises ServiceLookupError: several have the name, which the service allows.
    """
    return _credential(client, name, credential_type, project_id, is_owned=is_owned).find()


def get_credential(
    client: Resources, name: str, *, credential_type: str | None = None, project_id: str | None = None
) -> Credential:
    """Return the credential with an exact name and, if given, its type and project.

    :raises ServiceLookupError: none has the name, or several do.
    """
    return _credential(client, name, credential_type, project_id).get()


def _credential(
    client: Resources, name: str, credential_type: str | None, project_id: str | None, *, is_owned: bool = False
) -> _Search[Credential]:
    def listed() -> Iterable[Credential]:
        for one in client.credentials.list():
            places = [owner_of(one.shared)[0]] if is_owned else [place.get("id") for place in one.shared or ()]
            if credential_type in (None, one.type) and project_id in (None, *places):
                yield one

    kind = f"credential{_within(project_id)}"
    return _Search(client, kind, name, _exactly(name, listed()), listed, lambda one: owner_of(one.shared))


def find_project(client: Resources, name: str) -> Project | None:
    """Find a project by its exact name.

    :raises ServiceLookupError: several have the name.
    """
    return _project(client, name).find()


def get_project(client: Resources, name: str) -> Project:
    """Return the project with an exact name.

    :raises ServiceLookupError: none has the name, or several do.
    """
    return _project(client, name).get()


def _project(client: Resources, name: str) -> _Search[Project]:
    return _Search(client, "project", name, _exactly(name, client.projects.list()), client.projects.list)


def get_folder(client: Resources, path: str, *, project_id: str) -> FolderItem:
    """Return the folder of a project with an exact path, such as ``"Reports/Daily"``.

    :param path: the names of the folders from the outermost one to the folder itself, separated by slashes.
    :raises ServiceLookupError: for a name of the path, there is no folder at its level, or there are several.
    """
    parent: str | None = _ROOT_FOLDER
    above: list[str] = []
    for name in path.strip(FOLDER_SEPARATOR).split(FOLDER_SEPARATOR):
        level = partial(client.folders.list, project_id, filter={"parentFolderId": parent})
        where = f" in {FOLDER_SEPARATOR.join(above)!r}" if above else ""
        found = _Search(client, f"folder{where}{_within(project_id)}", name, _exactly(name, level()), level).get()
        parent = found.id
        above.append(name)
    return found


def _within(project_id: str | None) -> str:
    return f" in project {project_id}" if project_id else ""


def owner_of(shared: Sequence[Mapping[str, Any]] | None, id_key: str = "id", name_key: str = "name") -> _Place:
    """Return id and name of the project that owns an object, of all with which it is shared."""
    owner = next((one for one in shared or () if str(one.get("role")).endswith(":owner")), {})
    return owner.get(id_key), owner.get(name_key)


def _project_of_workflow(client: Resources, workflow: Workflow) -> _Place:
    """The project of a workflow, with its name, which only the whole workflow shows."""
    try:
        shared = client.workflows.get(workflow.id, exclude_pinned_data=True).shared
    except (ServiceApiError, ServiceInputError):  # the service can have sent an id that is not valid
        shared = workflow.shared
    named = [{**one, "name": (one.get("project") or {}).get("name")} for one in shared or ()]
    return owner_of(named, "projectId")


def _project_names(client: Resources) -> Callable[[str | None], str | None]:
    """Names of projects by id, read at the first use; None if the plan or the rights of the key do not allow that."""
    known: dict[str, str] = {}

    def name_of(project_id: str | None) -> str | None:
        if not known:
            try:
                known.update((one.id, one.name) for one in client.projects.list())
            except ServiceApiError:
                return None
        return known.get(project_id or "")

    return name_of
