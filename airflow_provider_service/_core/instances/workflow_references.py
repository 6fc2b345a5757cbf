"""The other objects that a definition names, and where: credentials, workflows and data tables.

The service names them by id, which differs between instances. A file names them by name instead: an object such as
``{"name": "Send mail"}`` stands where the service has the id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard

from airflow_provider_service.client._definitions import CACHED_IN_LOCATORS, credential_reference

Kind = Literal["credential", "workflow", "data table"]

#: Parameters of nodes that name another object.
_PARAMETERS: Mapping[str, Kind] = {"workflowId": "workflow", "dataTableId": "data table"}
_ERROR_WORKFLOW, _CALLERS = "errorWorkflow", "callerIds"
#: Modes of a resource locator: they tell whether its value is an id or a name; in any other mode, it is a URL.
_MODES_OF_IDS, _MODE_OF_NAMES = ("id", "list"), "name"
_NO_WORKFLOW = ("", "DEFAULT")


@dataclass(frozen=True)
class Named:
    """Another object, as a definition names it.

    :param kind: kind of the object.
    :param id: its id; None if only its name is known.
    :param name: its name; None if only its id is known.
    :param place: where the definition names it, in words.
    :param type: type of the credential.
    :param is_kept: whether the service itself finds the object by its name, so that no id has to be found.
    """

    kind: Kind
    id: str | None
    name: str | None
    place: str = ""
    type: str | None = None
    is_kept: bool = False

    def __str__(self) -> str:
        kind = f"{self.kind} of type {self.type}" if self.type else self.kind
        return f"{kind} {self.name!r}" if self.name else f"{kind} with the id {self.id}"


#: Returns the object as the copy is to name it.
Replace = Callable[[Named], Named]


def with_references(definition: Mapping[str, Any], replace: Replace) -> dict[str, Any]:
    """Copy a definition, and replace the objects that it names."""
    copy = dict(definition)
    if isinstance(definition.get("nodes"), list):
        copy["nodes"] = [_node(one, replace) if isinstance(one, Mapping) else one for one in definition["nodes"]]
    if isinstance(definition.get("settings"), Mapping):
        copy["settings"] = _settings(definition["settings"], replace)
    return copy


def references(definition: Mapping[str, Any]) -> list[Named]:
    """Return the objects that a definition names, in its order; an object that it names twice comes twice."""
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
        copy["parameters"] = _parameters(node["parameters"], place, replace)
    if isinstance(node.get("credentials"), Mapping):
        copy["credentials"] = {
            kind: _credential(kind, one, place, replace) for kind, one in node["credentials"].items()
        }
    return copy


def _credential(kind: str, value: Any, place: str, replace: Replace) -> Any:
    reference = credential_reference(value)
    if not isinstance(reference, Mapping) or not (reference.get("id") or reference.get("name")):
        return value
    found = replace(Named("credential", _text(reference.get("id")), _text(reference.get("name")), place, kind))
    return {**({} if found.id is None else {"id": found.id}), "name": found.name}


def _parameters(parameters: Mapping[str, Any], place: str, replace: Replace) -> dict[str, Any]:
    changed = {name: _inside(value, place, replace) for name, value in parameters.items()}
    for name, kind in _PARAMETERS.items():
        if name in parameters and parameters.get("source", "database") == "database":
            changed[name] = _address(kind, parameters[name], place, replace)
    return changed


def _inside(value: Any, place: str, replace: Replace) -> Any:
    if isinstance(value, Mapping):
        return _parameters(value, place, replace)
    return [_inside(one, place, replace) for one in value] if isinstance(value, list) else value


def _address(kind: Kind, value: Any, place: str, replace: Replace) -> Any:
    """Replace the object that a parameter names: by its id, or by a resource locator with what the editor shows."""
    if not isinstance(value, Mapping) or "__rl" not in value:
        return _id_or_name(kind, value, place, replace)
    if value.get("mode") == _MODE_OF_NAMES and _is_fixed(name := value.get("value")):
        return {**value, "value": replace(Named(kind, None, name, place, is_kept=True)).name}
    if value.get("mode") not in _MODES_OF_IDS:
        return value
    known = value.get(CACHED_IN_LOCATORS[0])
    found = _found(kind, value.get("value"), known if isinstance(known, str) else None, place, replace)
    if found is None:
        return value
    copy = {name: one for name, one in value.items() if name not in CACHED_IN_LOCATORS}
    shown = {CACHED_IN_LOCATORS[0]: found.name} if found.id and found.name and value["mode"] == "list" else {}
    return {**copy, "value": _written(found), **shown}


def _id_or_name(kind: Kind, value: Any, place: str, replace: Replace) -> Any:
    found = _found(kind, value, None, place, replace)
    return value if found is None else _written(found)


def _found(kind: Kind, value: Any, known_name: str | None, place: str, replace: Replace) -> Named | None:
    """Replace the object that a value names; None if it names none, or an expression of the service chooses it."""
    if isinstance(value, Mapping) and isinstance(value.get("name"), str):
        return replace(Named(kind, _text(value.get("id")), value["name"], place))
    return replace(Named(kind, value, known_name, place)) if _is_fixed(value) else None


def _is_fixed(value: Any) -> TypeGuard[str]:
    """Whether a value is literal text, rather than an expression of the service."""
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
        many = [one.strip() for one in callers.split(",")] if isinstance(callers, str) else callers
        written = [_id_or_name("workflow", one, f"setting {_CALLERS}", replace) for one in many]
        copy[_CALLERS] = ",".join(written) if all(isinstance(one, str) for one in written) else written
    return {name: value for name, value in copy.items() if value is not None}
