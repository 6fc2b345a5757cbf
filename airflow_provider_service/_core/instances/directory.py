"""The names and ids of an instance's objects. Each kind is listed once, when it is first used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from airflow_provider_service.client.errors import ServiceForbiddenError, ServiceNotOfferedError

if TYPE_CHECKING:
    from airflow_provider_service._core.instances.workflow_references import Kind, Named
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import Workflow


class Entry(NamedTuple):
    """An object of an instance.

    :param type: type of a credential.
    """

    id: str
    name: str
    type: str | None = None


def new_token() -> str:
    """Return what stands for the id of an object that is created later; it passes for an id, which a name need not."""
    return f"new-{uuid4().hex}"


class Directory:
    """The names and ids of an instance's objects.

    :param client: client or hook of the service.
    :param project_id: project in which to look up workflows, credentials and tables; None for all.
    :param planned: objects that do not exist yet, but will before they are needed.
    """

    def __init__(
        self,
        client: Resources,
        *,
        project_id: str | None = None,
        planned: Mapping[Kind, Sequence[Entry]] | None = None,
    ) -> None:
        self._client, self._project_id = client, project_id
        self._planned = planned or {}
        self._named: dict[Kind, defaultdict[str, list[Entry]]] = {}

    @cached_property
    def workflows(self) -> Mapping[str, Workflow]:
        """All workflows that are not archived, by id, as the service lists them."""
        listed = self._client.workflows.list(project_id=self._project_id, exclude_pinned_data=True)
        return {one.id: one for one in listed if not one.is_archived}

    @cached_property
    def credentials_are_listed(self) -> bool:
        """Whether credentials can be listed: not on an older server, and not with a key without the scope for it."""
        return self._listed_credentials is not None

    def entries(self, named: Named) -> list[Entry]:
        """Return all objects that have this kind, name and, if given, type."""
        return [one for one in self._by_name(named.kind)[named.name or ""] if named.type in (None, one.type)]

    def find(self, named: Named) -> Entry | None:
        """Return the object that has this kind and id, or None."""
        return self._by_id(named.kind).get(named.id or "")

    def _by_id(self, kind: Kind) -> Mapping[str, Entry]:
        if kind == "workflow":
            return self._workflow_entries
        return self._credential_entries if kind == "credential" else self._table_entries

    def _by_name(self, kind: Kind) -> Mapping[str, list[Entry]]:
        if kind not in self._named:
            found: defaultdict[str, list[Entry]] = defaultdict(list)
            for entry in [*self._by_id(kind).values(), *self._planned.get(kind, ())]:
                found[entry.name].append(entry)
            self._named[kind] = found
        return self._named[kind]

    @cached_property
    def _workflow_entries(self) -> Mapping[str, Entry]:
        return {one.id: Entry(one.id, one.name) for one in self.workflows.values()}

    @property
    def _credential_entries(self) -> Mapping[str, Entry]:
        return self._listed_credentials if self._listed_credentials is not None else self._used_credentials

    @cached_property
    def _listed_credentials(self) -> Mapping[str, Entry] | None:
        try:
            listed = list(self._client.credentials.list())
        except (ServiceNotOfferedError, ServiceForbiddenError):
            return None
        in_project = (one for one in listed if self._project_id is None or self._is_shared(one.shared))
        return {one.id: Entry(one.id, one.name, one.type) for one in in_project}

    def _is_shared(self, places: list[dict[str, object]] | None) -> bool:
        return any(place.get("id") == self._project_id for place in places or ())

    @cached_property
    def _used_credentials(self) -> Mapping[str, Entry]:
        """The credentials that workflows use: their nodes hold the name and the id."""
        return {one.id: one for workflow in self.workflows.values() for one in credentials_of(workflow)}

    @cached_property
    def _table_entries(self) -> Mapping[str, Entry]:
        selected = None if self._project_id is None else {"projectId": self._project_id}
        try:
            listed = list(self._client.data_tables.list(filter=selected))
        except (ServiceNotOfferedError, ServiceForbiddenError):
            return {}
        return {one.id: Entry(one.id, one.name) for one in listed}


class UnambiguousDirectory(Directory):
    """Finds only workflows with unique names, so that a definition refers to the others by id."""

    def find(self, named: Named) -> Entry | None:
        """Return the object that has this kind and id, unless it is a workflow whose name others have too."""
        entry = super().find(named)
        is_shared = entry and named.kind == "workflow" and len(self._by_name(named.kind)[entry.name]) > 1
        return None if is_shared else entry


def credentials_of(workflow: Workflow) -> Iterator[Entry]:
    """Yield the credentials that the nodes of a workflow use, if the nodes hold both id and name."""
    for node in workflow.nodes or ():
        for kind, one in (node.get("credentials") or {}).items():
            if isinstance(one, dict) and one.get("id") and one.get("name"):
                yield Entry(one["id"], one["name"], kind)
