"""Whether a workflow already is as its exported definition says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.client.models.workflows import Workflow, writable

_REQUIRED = ("name", "nodes", "connections")
# What the service fills in where a node leaves it out.
_GENERATED_IN_NODES = ("id", "webhookId")
_NODE_DEFAULTS = {"typeVersion": 1, "parameters": {}}
# A setting that the service accepts and forgets.
_SETTINGS_NOT_KEPT = ("binaryMode",)


def read_definition(definition: Any) -> dict[str, Any]:
    """Strip an exported workflow to what defines it, by the names of the wire.

    Static data is left out: it is where a running workflow keeps its state.

    :param definition: a mapping, or its JSON text.
    :raises ServiceInputError: not a mapping, or without name, nodes or connections.
    """
    if isinstance(definition, str):
        definition = _from_json(definition)
    if not isinstance(definition, Mapping):
        raise ServiceInputError(f"definition must be a mapping, not {type(definition).__name__}; nothing was sent")
    missing = [name for name in _REQUIRED if name not in definition]
    if missing:
        raise ServiceInputError(f"definition lacks {', '.join(missing)}; nothing was sent")
    wanted = writable(definition)
    wanted.pop("staticData", None)
    wanted["settings"] = wanted.get("settings") or {}
    return {name: value for name, value in wanted.items() if value is not None}


def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ServiceInputError(f"definition is text that is no JSON: {error}; nothing was sent") from None


def is_as_defined(workflow: Workflow, wanted: Mapping[str, Any]) -> bool:
    """Whether an update with the definition would change nothing."""
    current = writable(workflow)
    return all(_SAME.get(name, _equal)(current.get(name), value) for name, value in wanted.items())


def _equal(current: Any, wanted: Any) -> bool:
    return (current or None) == (wanted or None)


def _same_settings(current: Any, wanted: Mapping[str, Any]) -> bool:
    # The service merges settings: those that are not named stay.
    held = current or {}
    return all(name in held and held[name] == value for name, value in wanted.items() if name not in _SETTINGS_NOT_KEPT)


def _same_nodes(current: Any, wanted: Any) -> bool:
    nodes = current or []
    return len(nodes) == len(wanted) and all(map(_same_node, nodes, wanted))


def _same_node(current: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    filled_in = {name: current[name] for name in _GENERATED_IN_NODES if name in current}
    return {**_NODE_DEFAULTS, **current} == {**_NODE_DEFAULTS, **filled_in, **wanted}


_SAME = {"nodes": _same_nodes, "settings": _same_settings}
