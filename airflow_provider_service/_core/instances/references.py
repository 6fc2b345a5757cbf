"""The other objects that a definition names: credentials, workflows and data tables.

The service names them by id, which differs between instances. A file names them by name instead: an object such as
``{"name": "Send mail"}`` stands where the service has the id. The directory of an instance translates, and gaps are the
objects that an export, a backup or a restore leaves out.
"""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeGuard, TypeVar
from uuid import uuid4

from airflow_provider_service.client._constraints import NOT_PLAIN, is_plain_id
from airflow_provider_service.client._definitions import CACHED_IN_LOCATORS, credential_reference
from airflow_provider_service.client._values import shown
from airflow_provider_service.client.errors import ServiceForbiddenError, ServiceNotOfferedError

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import DataTable, Project, Workflow


log = logging.getLogger(__name__)

Kind = Literal["credential", "workflow", "data table"]

#: Parameters of nodes that name another object.
_PARAMETERS: Mapping[str, Kind] = {"workflowId": "workflow", "dataTableId": "data table"}
_ERROR_WORKFLOW, _CALLERS = "errorWorkflow", "callerIds"
#: Modes of a resource locator: they tell whether its value is an id or a name; in any other mode, it is a URL.
_MODES_OF_IDS, _MODE_OF_NAMES = ("id", "list"), "name"
_NO_WORKFLOW = ("", "DEFAULT")


@dataclass(frozen=True)
class Named:
    kind: Kind
    id: str | None
    name: str | None
    place: str = ""  #: Where the definition names it, in words.
    type: str | None = None  #: Type of a credential.
    is_kept: bool = False  #: Whether the service itself finds the object by its name, so that no id has to be found.

    def __str__(self) -> str:
        kind = f"{self.kind} of type {self.type}" if self.type else self.kind
        return f"{kind} {self.name!r}" if self.name else f"{kind} with the id {self.id}"


#: Returns the object as the copy is to name it.
Replace = Callable[[Named], Named]


def with_references(definition: Mapping[str, Any], replace: Replace) -> dict[str, Any]:
    copy = dict(definition)
    if isinstance(definition.get("nodes"), list):
        copy["nodes"] = [_node(node, replace) if isinstance(node, Mapping) else node for node in definition["nodes"]]
    if isinstance(definition.get("settings"), Mapping):
        copy["settings"] = _settings(definition["settings"], replace)
    return copy


def references(definition: Mapping[str, Any]) -> list[Named]:
    """An object that a definition names twice comes twice."""
    found: list[Named] = []

    def note(named: Named) -> Named:
        found.append(named)
        return named

    with_references(definition, note)
    return found


def used_ids(definition: Mapping[str, Any]) -> set[str]:
    """Return the ids of everything that a definition names; for what it names without an id, that as text."""
    return {named.id or str(named) for named in references(definition)}


def _node(node: Mapping[str, Any], replace: Replace) -> dict[str, Any]:
    place = f"node {node.get('name')!r}"
    copy = dict(node)
    if isinstance(node.get("parameters"), Mapping):
        copy["parameters"] = _inside(node["parameters"], place, replace)
    if isinstance(node.get("credentials"), Mapping):
        copy["credentials"] = {
            kind: _credential(kind, value, place, replace) for kind, value in node["credentials"].items()
        }
    return copy


def _credential(kind: str, value: Any, place: str, replace: Replace) -> Any:
    reference = credential_reference(value)
    if not isinstance(reference, Mapping) or not (reference.get("id") or reference.get("name")):
        return value
    new = replace(Named("credential", _text(reference.get("id")), _text(reference.get("name")), place, kind))
    return {**({} if new.id is None else {"id": new.id}), "name": new.name}


def _inside(value: Any, place: str, replace: Replace) -> Any:
    if isinstance(value, list):
        return [_inside(inner, place, replace) for inner in value]
    if not isinstance(value, Mapping):
        return value
    changed = {name: _inside(inner, place, replace) for name, inner in value.items()}
    for name, kind in _PARAMETERS.items():
        if name in value and value.get("source", "database") == "database":
            changed[name] = _address(kind, value[name], place, replace)
    return changed


def _address(kind: Kind, value: Any, place: str, replace: Replace) -> Any:
    """Replace the object that a parameter names: by its id, or by a resource locator with what the editor shows."""
    if not isinstance(value, Mapping) or "__rl" not in value:
        return _id_or_name(kind, value, place, replace)
    if value.get("mode") == _MODE_OF_NAMES and _is_fixed(name := value.get("value")):
        return {**value, "value": replace(Named(kind, None, name, place, is_kept=True)).name}
    if value.get("mode") not in _MODES_OF_IDS:
        return value
    new = _replaced(kind, value.get("value"), _text(value.get(CACHED_IN_LOCATORS[0])), place, replace)
    if new is None:
        return value
    copy = {name: inner for name, inner in value.items() if name not in CACHED_IN_LOCATORS}
    cached = {CACHED_IN_LOCATORS[0]: new.name} if new.id and new.name and value["mode"] == "list" else {}
    return {**copy, "value": _written(new), **cached}


def _id_or_name(kind: Kind, value: Any, place: str, replace: Replace) -> Any:
    new = _replaced(kind, value, None, place, replace)
    return value if new is None else _written(new)


def _replaced(kind: Kind, value: Any, cached_name: str | None, place: str, replace: Replace) -> Named | None:
    """Replace the object that a value names; None if it names none, or an expression of the service chooses it."""
    if isinstance(value, Mapping) and isinstance(value.get("name"), str):
        return replace(Named(kind, _text(value.get("id")), value["name"], place))
    return replace(Named(kind, value, cached_name, place)) if _is_fixed(value) else None


def _is_fixed(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value.strip()) and not value.startswith("=")


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _written(named: Named) -> Any:
    return {"name": named.name} if named.id is None else named.id


def _settings(settings: Mapping[str, Any], replace: Replace) -> dict[str, Any]:
    copy = dict(settings)
    error_workflow, callers = settings.get(_ERROR_WORKFLOW), settings.get(_CALLERS)
    if error_workflow not in _NO_WORKFLOW:
        copy[_ERROR_WORKFLOW] = _id_or_name("workflow", error_workflow, f"setting {_ERROR_WORKFLOW}", replace)
    if callers and isinstance(callers, (str, list)):  # the service refuses anything else
        listed = [caller.strip() for caller in callers.split(",")] if isinstance(callers, str) else callers
        written = [_id_or_name("workflow", caller, f"setting {_CALLERS}", replace) for caller in listed]
        copy[_CALLERS] = ",".join(written) if all(isinstance(caller, str) for caller in written) else written
    return {name: value for name, value in copy.items() if value is not None}


class Entry(NamedTuple):
    id: str
    name: str
    type: str | None = None


#: What :func:`new_token` returns.
NEW_TOKEN = re.compile("new-[0-9a-f]{32}")


def new_token() -> str:
    """Return what stands for the id of an object that is created later; it passes for an id, which a name need not."""
    return f"new-{uuid4().hex}"


class Directory:
    """The names and ids of an instance's objects. Each kind is listed once, when it is first used."""

    def __init__(
        self,
        client: Resources,
        *,
        project_id: str | None = None,
        planned: Mapping[Kind, Sequence[Entry]] | None = None,
    ) -> None:
        self._client, self._project_id = client, project_id
        #: Objects that do not exist yet, but will before they are needed.
        self._planned = planned or {}
        self._listed: dict[Kind, Mapping[str, Entry]] = {}
        self._named: dict[Kind, defaultdict[str, list[Entry]]] = {}

    @cached_property
    def workflows(self) -> Mapping[str, Workflow]:
        listed = self._client.workflows.list(project_id=self._project_id, exclude_pinned_data=True)
        return {workflow.id: workflow for workflow in listed if not workflow.is_archived}

    def entries(self, named: Named) -> list[Entry]:
        return [entry for entry in self._by_name(named.kind)[named.name or ""] if named.type in (None, entry.type)]

    def find(self, named: Named) -> Entry | None:
        return self._by_id(named.kind).get(named.id or "")

    def _by_name(self, kind: Kind) -> Mapping[str, list[Entry]]:
        if kind not in self._named:
            named: defaultdict[str, list[Entry]] = defaultdict(list)
            for entry in [*self._by_id(kind).values(), *self._planned.get(kind, ())]:
                named[entry.name].append(entry)
            self._named[kind] = named
        return self._named[kind]

    def _by_id(self, kind: Kind) -> Mapping[str, Entry]:
        if kind in self._listed:
            return self._listed[kind]
        entries: list[Entry] = []
        if kind == "workflow":
            entries = [Entry(workflow.id, workflow.name) for workflow in self.workflows.values()]
        elif kind == "credential":
            used = (entry for workflow in self.workflows.values() for entry in _credentials_of(workflow))
            entries = list(used) if self.listed_credentials is None else self.listed_credentials
        else:
            selected = None if self._project_id is None else {"projectId": self._project_id}
            with suppress(ServiceNotOfferedError, ServiceForbiddenError):
                entries = [Entry(table.id, table.name) for table in self._client.data_tables.list(filter=selected)]
        self._listed[kind] = {entry.id: entry for entry in entries}
        return self._listed[kind]

    @cached_property
    def listed_credentials(self) -> list[Entry] | None:
        """None on an older server, and with a key without the scope for it."""
        try:
            listed = list(self._client.credentials.list())
        except (ServiceNotOfferedError, ServiceForbiddenError):
            return None
        return [
            Entry(credential.id, credential.name, credential.type)
            for credential in listed
            if self._project_id is None or any(place.get("id") == self._project_id for place in credential.shared or ())
        ]


def _credentials_of(workflow: Workflow) -> Iterator[Entry]:
    """Yield the credentials that the nodes of a workflow use, if the nodes hold both id and name."""
    for node in workflow.nodes or ():
        for kind, credential in (node.get("credentials") or {}).items():
            if isinstance(credential, dict) and credential.get("id") and credential.get("name"):
                yield Entry(credential["id"], credential["name"], kind)


class UnambiguousDirectory(Directory):
    """Finds only workflows with unique names, so that a definition refers to the others by id."""

    def find(self, named: Named) -> Entry | None:
        entry = super().find(named)
        is_shared = entry and named.kind == "workflow" and len(self._by_name(named.kind)[entry.name]) > 1
        return None if is_shared else entry


Object = TypeVar("Object", "Workflow", "DataTable", "Project")


class Gap(NamedTuple):
    what: str
    why: str


class Gaps(list[Gap]):
    def __init__(self) -> None:
        super().__init__()
        self._known: set[Gap] = set()

    def note(self, gap: Gap) -> bool:
        """Add a gap, and return whether it is new."""
        if gap in self._known:
            return False
        self._known.add(gap)
        self.append(gap)
        return True

    def leave_out(self, kind: str, item: Workflow | DataTable | Project, why: str) -> None:
        gap = Gap(f"{kind} {item.name!r} with the id {shown(item.id)}", why)
        if self.note(gap):
            log.warning("Left out: %s: %s", *gap)

    def addressable(self, kind: str, found: Iterable[Object]) -> list[Object]:
        addressable = []
        for item in found:
            if is_plain_id(item.id):
                addressable.append(item)
            else:
                self.leave_out(kind, item, f"the id {NOT_PLAIN}")
        return addressable
