"""Comparison of a workflow with its exported definition."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.client.models.workflows import Workflow, writable

_REQUIRED = ("name", "nodes", "connections")
# Values that the service fills in where a node omits them.
_GENERATED_IN_NODES = ("id", "webhookId")
_NODE_DEFAULTS = {"typeVersion": 1, "parameters": {}}
# A setting that the service accepts but does not store.
_SETTINGS_NOT_KEPT = ("binaryMode",)


def parse_definition(definition: Any) -> Mapping[str, Any]:
    """Return an exported workflow as a mapping.

    :param definition: a mapping, or its JSON text.
    :raises ServiceInputError: neither of these.
    """
    if isinstance(definition, str):
        try:
            definition = json.loads(definition)
        except (ValueError, RecursionError) as error:
            raise ServiceInputError(f"definition is text that is not JSON: {error}; nothing was sent") from None
    if not isinstance(definition, Mapping):
        raise ServiceInputError(f"definition must be a mapping, not {type(definition).__name__}; nothing was sent")
    return definition


def read_definition(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Reduce an exported workflow to the fields that define it, by their names on the wire.

    Static data is left out, because a running workflow keeps its state there.

    :raises ServiceInputError: name, nodes or connections are missing.
    """
    missing = [name for name in _REQUIRED if name not in definition]
    if missing:
        raise ServiceInputError(f"definition lacks {', '.join(missing)}; nothing was sent")
    wanted = writable(definition)
    wanted.pop("staticData", None)
    wanted["settings"] = wanted.get("settings") or {}
    return {name: value for name, value in wanted.items() if value is not None}


def tag_names(definition: Mapping[str, Any]) -> set[str]:
    """The names of an exported workflow's tags."""
    tags = definition.get("tags")
    named = (tag.get("name") if isinstance(tag, Mapping) else tag for tag in (tags if isinstance(tags, list) else ()))
    return {name for name in named if isinstance(name, str)}


def is_as_defined(workflow: Workflow, wanted: Mapping[str, Any]) -> bool:
    """Whether the draft and everything without versions match the definition: an update would change nothing."""
    return _are_as_defined(writable(workflow), wanted)


def runs_as_defined(workflow: Workflow, wanted: Mapping[str, Any]) -> bool:
    """Whether the workflow is active and its active version matches the definition, regardless of its draft."""
    live = workflow.active_version
    versioned = {"nodes": live.nodes, "connections": live.connections, "nodeGroups": live.node_groups} if live else {}
    return workflow.active and _are_as_defined({**writable(workflow), **versioned}, wanted)


def _are_as_defined(current: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(_SAME.get(name, _equal)(current.get(name), value) for name, value in wanted.items())


def _equal(current: Any, wanted: Any) -> bool:
    return (current or None) == (wanted or None)


def _same_settings(current: Any, wanted: Mapping[str, Any]) -> bool:
    # The service merges settings: those that are not named stay as they are.
    held = current or {}
    return all(name in held and held[name] == value for name, value in wanted.items() if name not in _SETTINGS_NOT_KEPT)


def _same_nodes(current: Any, wanted: Any) -> bool:
    nodes = current or []
    return len(nodes) == len(wanted) and all(map(_same_node, nodes, wanted))


def _same_node(current: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    filled_in = {name: current[name] for name in _GENERATED_IN_NODES if name in current}
    return {**_NODE_DEFAULTS, **current} == {**_NODE_DEFAULTS, **filled_in, **wanted}


_SAME = {"nodes": _same_nodes, "settings": _same_settings}
