"""Describe what a deployment changes in a workflow, in readable lines: node by node, setting by setting."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from itertools import islice
from typing import Any

from airflow_provider_service._core.instances.secret_fields import is_secret, without_secrets
from airflow_provider_service._core.instances.workflow_references import references
from airflow_provider_service._core.text_table import cut
from airflow_provider_service.client._definitions import UNSET, settings_not_kept, without_caches
from airflow_provider_service.client._http.redaction import HIDDEN
from airflow_provider_service.client._values import list_or_empty

#: Maximum number of lines that are shown of a text, such as code.
_MAX_LINES = 40
# A definition may leave these out. A new webhook id would mean a new address.
_GENERATED = ("id", "webhookId")
_MISSING = object()


def changed_lines(before: Mapping[str, Any], desired: Mapping[str, Any]) -> Iterator[str]:
    """Yield the differences between the version that runs and the desired one.

    :param before: the fields of the workflow that an update accepts.
    :param desired: the fields to deploy. Missing fields do not change.
    """
    if before and before.get("name") != desired["name"]:
        yield f"renamed {before.get('name')!r} to {desired['name']!r}"
    if before and "description" in desired:
        yield from _values("description", before.get("description"), desired["description"])
    yield from _nodes(before.get("nodes") or [], desired.get("nodes") or [])
    yield from _connections(before.get("connections") or {}, desired.get("connections") or {})
    yield from _settings(before.get("settings") or {}, desired.get("settings") or {})
    for name, words in {"nodeGroups": "groups of nodes", "pinData": "pinned data"}.items():
        if name in desired and (before.get(name) or None) != (desired[name] or None):
            yield f"{words} changed"


def _nodes(before: list[Any], desired: list[Any]) -> Iterator[str]:
    existing, new = _by_name(before), _by_name(desired)
    for name in (one for one in existing if one not in new):
        yield f"- node {name!r} ({existing[name].get('type')})"
    for name, node in new.items():
        if name not in existing:
            yield f"+ node {name!r} ({node.get('type')})" + _uses(node)
            continue
        old = {"typeVersion": 1, "parameters": {}, **existing[name]}
        kept = {key: old[key] for key in _GENERATED if key in old}
        now = {"typeVersion": 1, "parameters": {}, **kept, **node}
        yield from _values(f"node {name!r}", without_caches(old), without_caches(now))
    if list(existing) != list(new) and existing.keys() == new.keys():
        yield "order of the nodes changed"


def _uses(node: Mapping[str, Any]) -> str:
    named = references({"nodes": [node]})
    used = [f"{one.kind} {repr(one.name) if one.name else json.dumps(one.id)}" for one in named]
    return f", uses {', '.join(dict.fromkeys(used))}" if used else ""


def _by_name(nodes: list[Any]) -> dict[str, Mapping[str, Any]]:
    return {str(node.get("name")): node for node in nodes if isinstance(node, Mapping)}


def _connections(before: Mapping[str, Any], desired: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(before.keys() | desired.keys()):
        if before.get(name) != desired.get(name):
            old, new = (", ".join(_targets(one.get(name))) or "none" for one in (before, desired))
            yield f"connections of {name!r}" + (f": {old} -> {new}" if old != new else " changed in form only")


def _targets(outputs: Any) -> Iterator[str]:
    """Yield the nodes that a node's outputs lead to, and name any output or input but the first one for items."""
    for kind, groups in _mapping(outputs).items():
        for number, group in enumerate(list_or_empty(groups)):
            for target in map(_mapping, list_or_empty(group)):
                to, place = target.get("type", kind), target.get("index", 0)
                words = (
                    kind if kind != "main" else "",
                    f"output {number}" if number else "",
                    f"input {place}" if place != 0 or to != kind else "",
                    f"of kind {to}" if to != kind else "",
                )
                described = " ".join(filter(None, words))
                yield _shown(target.get("node")) + (f" ({described})" if described else "")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _settings(before: Mapping[str, Any], desired: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(desired.keys() - settings_not_kept(desired, before)):
        yield from _values(f"setting {name}", before.get(name, UNSET.get(name)), desired[name])


def _values(place: str, before: Any, desired: Any) -> Iterator[str]:
    if before == desired:
        return
    if isinstance(before, Mapping) and isinstance(desired, Mapping):
        for name in sorted({*map(str, before), *map(str, desired)}):
            old, new = before.get(name, _MISSING), desired.get(name, _MISSING)
            if is_secret(name, before, desired):
                yield from _hidden(f"{place}: {name}", old, new)
            else:
                yield from _values(_below(place, name), old, new)
    elif isinstance(before, list) and isinstance(desired, list) and len(before) == len(desired):
        for number, (old, new) in enumerate(zip(before, desired, strict=True)):
            yield from _values(f"{place}[{number}]", old, new)
    else:
        yield from _changed(place, before, desired)


def _changed(place: str, before: Any, desired: Any) -> Iterator[str]:
    old, new = without_secrets(before), without_secrets(desired)
    if old == new:
        yield from _hidden(place, before, desired)
    elif isinstance(old, str) and isinstance(new, str) and "\n" in old + new:
        lines = unified_diff(old.splitlines(), new.splitlines(), n=1, lineterm="")
        yield f"{place}:"
        yield from (f"  {line}" for line in islice(lines, 2, 2 + _MAX_LINES))
    else:
        yield f"{place}: {_shown(old)} -> {_shown(new)}"


def _below(place: str, name: str) -> str:
    return f"{place}.{name}" if ": " in place else f"{place}: {name}"


def _hidden(place: str, before: Any, desired: Any) -> Iterator[str]:
    if before != desired:
        yield f"{place}: {HIDDEN} changed"


def _shown(value: Any) -> str:
    if value is _MISSING or value is None:
        return "not set"
    return cut(json.dumps(value, ensure_ascii=False, default=str))
