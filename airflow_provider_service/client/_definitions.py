"""Read the exported definition of a workflow, and compare the workflow with it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from airflow_provider_service.client._values import MAX_NESTING, is_too_deep
from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.client.resources._workflows import Workflow, writable

#: Ends the errors of this module.
NOT_SENT = "; nothing was sent"
_REQUIRED = ("name", "nodes", "connections")
_IN_NODES: Mapping[str, type] = {"name": str, "type": str, "parameters": Mapping, "credentials": Mapping}
_KINDS: Mapping[type, str] = {str: "text", list: "a list", Mapping: "a mapping"}
# Values that the service fills in where a node omits them.
_GENERATED_IN_NODES = ("id", "webhookId")
_NODE_DEFAULTS = {"typeVersion": 1, "parameters": {}}
# Display data that the editor adds to a reference to another object.
CACHED_IN_LOCATORS = ("cachedResultName", "cachedResultUrl")
# Settings that the service accepts but does not store; an older server may, so that reading shows them.
_SETTINGS_NOT_KEPT = ("binaryMode", "credentialResolverId")
# The same of a service without a license for it. Only a workflow that has it shows that the service stores it.
_LICENSED_SETTING = "redactionPolicy"
#: Settings, each with the value that means the same as leaving it out.
UNSET: Mapping[str, Any] = {
    "availableInMCP": False,
    "errorWorkflow": "DEFAULT",
    "executionTimeout": -1,
    "timezone": "DEFAULT",
}
# The service keeps these fields, too, if an update omits them. Groups of nodes are not among them: removing only these
# makes no new version, so the version that runs would keep them, and never equal the definition.
_EMPTY: Mapping[str, Any] = {"description": "", "pinData": {}}
# The service keeps a setting that an update omits. To remove it, the update must send its default.
_DEFAULTS = {
    **UNSET,
    "callerPolicy": "workflowsFromSameOwner",
    "executionOrder": "v0",
    "saveDataErrorExecution": "all",
    "saveDataSuccessExecution": "all",
    "saveExecutionProgress": False,
    "saveManualExecutions": True,
}


def parse_definition(definition: Any) -> Mapping[str, Any]:
    if isinstance(definition, str):
        try:
            definition = json.loads(definition)
        except (ValueError, RecursionError) as error:
            raise ServiceInputError(f"definition is text that is not JSON: {error}{NOT_SENT}") from None
    if not isinstance(definition, Mapping):
        raise ServiceInputError(f"definition must be a mapping, not {type(definition).__name__}{NOT_SENT}")
    return definition


def read_definition(definition: Mapping[str, Any], what: str = "definition") -> dict[str, Any]:
    """Reduce an export to what defines the workflow: not its static data, where a running workflow keeps its state."""
    problem = problem_of(definition, what)
    if problem:
        raise ServiceInputError(f"{problem}{NOT_SENT}")
    wanted = writable(definition)
    wanted.pop("staticData", None)
    wanted["nodes"] = [*map(_as_sent, wanted["nodes"])]
    wanted["settings"] = wanted.get("settings") or {}
    return {name: value for name, value in wanted.items() if value is not None}


def problem_of(definition: Mapping[str, Any], what: str) -> str | None:
    """Say why :func:`read_definition` refuses a definition, without showing its values; None if it accepts it."""
    if is_too_deep(definition):
        return f"{what} is nested more than {MAX_NESTING} levels deep"
    missing = [name for name in _REQUIRED if name not in definition]
    # Each check relies on those before it, so only the first problem can be reported.
    return f"{what} lacks {', '.join(missing)}" if missing else next(_problems(definition, what), None)


def _problems(definition: Mapping[str, Any], what: str) -> Iterator[str]:
    yield from _odd_values(what, definition, {"name": str, "nodes": list, "connections": Mapping})
    yield from _odd_values(what, definition, {"settings": Mapping, "tags": list}, is_optional=True)
    for number, tag in enumerate(definition.get("tags") or ()):
        name = tag.get("name") if isinstance(tag, Mapping) else tag
        yield from _odd(f"the name of tags[{number}] of {what}", name, str)
    for number, node in enumerate(definition["nodes"]):
        place = f"nodes[{number}] of {what}"
        yield from _odd(place, node, Mapping)
        yield from _odd_values(place, _with_mappings(node), _IN_NODES, is_optional=True)
        for kind, credential in (_with_mappings(node).get("credentials") or {}).items():
            if credential is not None and not isinstance(credential, str):
                yield from _odd(f"credentials.{kind} of {place}", credential, Mapping)


def _odd_values(
    place: str, value: Mapping[str, Any], kinds: Mapping[str, type], *, is_optional: bool = False
) -> Iterator[str]:
    for name, kind in kinds.items():
        if not (is_optional and value.get(name) is None):
            yield from _odd(f"{name} of {place}", value[name], kind)


def _odd(place: str, value: object, kind: type) -> Iterator[str]:
    if not isinstance(value, kind):
        yield f"{place} must be {_KINDS[kind]}, not {type(value).__name__}"


def _with_mappings(node: Mapping[str, Any]) -> dict[str, Any]:
    # Languages in which both are one type write an empty mapping as an empty list.
    return {**node, **{name: {} for name, kind in _IN_NODES.items() if kind is Mapping and node.get(name) == []}}


def credential_reference(value: Any) -> Any:
    """A credential of a node as a mapping; old exports hold its name alone, as text."""
    named = {"name": value} if isinstance(value, str) else value
    if not isinstance(named, Mapping) or named.get("id"):
        return named
    # Without the key, or without a name, the service would take any credential of the type.
    return {**named, "id": None, "name": named.get("name") or ""}


def _as_sent(node: Mapping[str, Any]) -> dict[str, Any]:
    """A node without the ids that it leaves empty, which the service would fill in anew at each update."""
    sent = {name: value for name, value in _with_mappings(node).items() if value or name not in _GENERATED_IN_NODES}
    if isinstance(credentials := sent.get("credentials"), Mapping):
        sent["credentials"] = {kind: credential_reference(value) for kind, value in credentials.items()}
    return sent


def with_known_ids(nodes: Iterable[Mapping[str, Any]], before: Workflow) -> list[dict[str, Any]]:
    """Give each node the ids of the existing node with its name: a new webhook id would mean a new address."""
    nodes = [*nodes]
    nodes_before = {str(node.get("name")): node for node in (running(before).get("nodes") or ())}
    # One that a renamed node has kept is not given to another.
    taken = {str(node.get(name)) for node in nodes for name in _GENERATED_IN_NODES}
    filled = []
    for node in nodes:
        existing = nodes_before.get(str(node.get("name")), {})
        is_same = existing.get("type") == node.get("type")
        ids = {
            name: existing[name]
            for name in _GENERATED_IN_NODES
            if is_same and existing.get(name) and str(existing[name]) not in taken
        }
        filled.append({**ids, **node})
    return filled


def content(wanted: Mapping[str, Any]) -> dict[str, Any]:
    same = {name: wanted[name] for name in ("name", "nodes", "connections", "settings")}
    return {**same, "pin_data": wanted.get("pinData"), "node_groups": wanted.get("nodeGroups")}


def tag_names(definition: Mapping[str, Any]) -> set[str]:
    """The names of the tags of an exported workflow, as the service stores them: without surrounding blanks."""
    tags = definition.get("tags") or ()
    return {(tag["name"] if isinstance(tag, Mapping) else tag).strip() for tag in tags}


def is_as_defined(workflow: Workflow, wanted: Mapping[str, Any]) -> bool:
    """Whether the draft, and the fields without versions, match the definition, so that an update changes nothing."""
    return _are_as_defined(writable(workflow), wanted)


def runs_as_defined(workflow: Workflow, wanted: Mapping[str, Any]) -> bool:
    """Whether the workflow is active and its active version matches the definition, regardless of its draft."""
    return workflow.active and _are_as_defined(running(workflow), wanted)


def running(workflow: Workflow) -> dict[str, Any]:
    """The fields that an update accepts, from the version that runs, or from the draft if none runs."""
    live = workflow.active_version if workflow.active else None
    versioned = {"nodes": live.nodes, "connections": live.connections, "nodeGroups": live.node_groups} if live else {}
    return {**writable(workflow), **versioned}


def with_defaults(settings: Mapping[str, Any] | None, existing: Mapping[str, Any] | None) -> dict[str, Any]:
    """Add the default of each existing setting that the new settings lack, if the service has one, to remove it."""
    return {**{name: _DEFAULTS[name] for name in existing or () if name in _DEFAULTS}, **(settings or {})}


def with_removals(wanted: Mapping[str, Any], existing: Workflow, fields: Iterable[str]) -> dict[str, Any]:
    """Add an empty value for each of the fields that the workflow has and the definition lacks, to remove it."""
    current = writable(existing)
    return {**{name: _EMPTY[name] for name in fields if current.get(name)}, **wanted}


def settings_that_stay(settings: Mapping[str, Any] | None, existing: Mapping[str, Any] | None) -> list[str]:
    """Return the names of existing settings that the new ones lack and no update removes, as they have no default."""
    removable = {*_DEFAULTS, *_SETTINGS_NOT_KEPT, *(settings or ())}
    return sorted(name for name, value in (existing or {}).items() if value and name not in removable)


def settings_not_kept(settings: Mapping[str, Any], existing: Mapping[str, Any] | None) -> list[str]:
    may_be_kept = _LICENSED_SETTING in (existing or {})
    not_kept = (*_SETTINGS_NOT_KEPT, *(() if may_be_kept else (_LICENSED_SETTING,)))
    return [name for name in settings if name in not_kept]


def are_same(workflow: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    wanted = {name: other.get(name) for name in (workflow.keys() | other.keys()) - {"staticData"}}
    wanted["settings"] = with_defaults(other.get("settings"), workflow.get("settings"))
    return _are_as_defined(workflow, wanted)


def _are_as_defined(current: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(_SAME.get(name, _equal)(current.get(name), value) for name, value in wanted.items())


def _equal(current: Any, wanted: Any) -> bool:
    return (current or None) == (wanted or None)


def _same_settings(current: Any, wanted: Mapping[str, Any]) -> bool:
    # The service merges settings: missing ones do not change.
    existing = {**UNSET, **(current or {})}
    compared = wanted.keys() - settings_not_kept(wanted, current)
    return all(name in existing and existing[name] == wanted[name] for name in compared)


def _same_nodes(current: Any, wanted: Any) -> bool:
    return len(current or ()) == len(wanted or ()) and all(map(_same_node, current or (), wanted or ()))


def _same_node(current: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    now, new = _as_sent(current), _as_sent(wanted)
    filled_in = {name: now[name] for name in _GENERATED_IN_NODES if name in now}
    return bool(_comparable(now, new) == _comparable({**filled_in, **new}, new))


def _comparable(node: Mapping[str, Any], wanted: Mapping[str, Any]) -> Any:
    """A node without display data; a credential is reduced to its id, or to its name if none is wanted by its id."""
    credentials, named = node.get("credentials") or {}, wanted.get("credentials") or {}
    if isinstance(credentials, Mapping) and isinstance(named, Mapping):
        credentials = {kind: _credential(credential, named.get(kind)) for kind, credential in credentials.items()}
    return without_caches({**_NODE_DEFAULTS, **node, "credentials": credentials})


def _credential(credential: Any, wanted: Any) -> Any:
    if not isinstance(credential, Mapping) or not isinstance(wanted, Mapping):
        return credential
    return credential.get("id" if wanted.get("id") else "name")


def without_caches(value: Any) -> Any:
    if isinstance(value, Mapping):
        cached = CACHED_IN_LOCATORS if "__rl" in value else ()
        return {name: without_caches(inner) for name, inner in value.items() if name not in cached}
    return [*map(without_caches, value)] if isinstance(value, list) else value


_SAME = {"nodes": _same_nodes, "settings": _same_settings}
