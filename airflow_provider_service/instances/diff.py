"""What a deployment changes in a workflow, in lines that people read: node by node, setting by setting."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from itertools import islice
from typing import Any

from airflow_provider_service.client.definitions import UNSET, without_caches
from airflow_provider_service.client.http.redaction import HIDDEN
from airflow_provider_service.text_table import cut

#: Lines of a text of several lines, such as code, that are shown at most.
_MAX_LINES = 40
#: Parameters whose values are not shown, and texts that name such a header or field.
_SECRET = re.compile(r"authorization|api[-_]?key|password|passwd|secret|token|credential|cookie", re.IGNORECASE)
_IGNORED_IN_NODES = ("id", "webhookId", "name")
_MISSING = object()


def changed_lines(before: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    """The differences between what runs and what is wanted.

    :param before: the fields of the workflow that an update accepts.
    :param wanted: those that are deployed. A field that it lacks stays as it is.
    """
    for name in ("name", "description"):
        if before and name in wanted:
            yield from _values(name, before.get(name), wanted[name])
    yield from _nodes(before.get("nodes") or [], wanted.get("nodes") or [])
    yield from _connections(before.get("connections") or {}, wanted.get("connections") or {})
    yield from _settings(before.get("settings") or {}, wanted.get("settings") or {})
    for name, words in {"nodeGroups": "groups of nodes", "pinData": "pinned data"}.items():
        if name in wanted and (before.get(name) or None) != (wanted[name] or None):
            yield f"{words} changed"


def _nodes(before: list[Any], wanted: list[Any]) -> Iterator[str]:
    held, new = _by_name(before), _by_name(wanted)
    for name in (one for one in held if one not in new):
        yield f"- node {name!r} ({held[name].get('type')})"
    for name, node in new.items():
        if name not in held:
            yield f"+ node {name!r} ({node.get('type')})"
            continue
        old = {key: value for key, value in without_caches(held[name]).items() if key not in _IGNORED_IN_NODES}
        now = {key: value for key, value in without_caches(node).items() if key not in _IGNORED_IN_NODES}
        defaults = {"typeVersion": 1, "parameters": {}}
        yield from _values(f"node {name!r}", {**defaults, **old}, {**defaults, **now})
    if list(held) != list(new) and held.keys() == new.keys():
        yield "order of the nodes changed"


def _by_name(nodes: list[Any]) -> dict[str, Mapping[str, Any]]:
    return {str(node.get("name")): node for node in nodes if isinstance(node, Mapping)}


def _connections(before: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(before.keys() | wanted.keys()):
        if before.get(name) != wanted.get(name):
            yield f"connections of {name!r}: {_targets(before.get(name))} -> {_targets(wanted.get(name))}"


def _targets(outputs: Any) -> str:
    return ", ".join(re.findall(r'"node": ("[^"]*")', json.dumps(outputs, ensure_ascii=False))) or "none"


def _settings(before: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    for name, value in sorted(wanted.items()):
        yield from _values(f"setting {name}", before.get(name, UNSET.get(name)), value)


def _values(place: str, before: Any, wanted: Any) -> Iterator[str]:
    if before == wanted:
        return
    if isinstance(before, Mapping) and isinstance(wanted, Mapping):
        is_secret_field = _SECRET.search(str(wanted.get("name", ""))) or _SECRET.search(str(before.get("name", "")))
        for name in sorted({*map(str, before), *map(str, wanted)}):
            old, new = before.get(name, _MISSING), wanted.get(name, _MISSING)
            is_hidden = bool(_SECRET.search(name) and name != "credentials") or bool(
                is_secret_field and name == "value"
            )
            yield from _hidden(f"{place}: {name}", old, new) if is_hidden else _values(_below(place, name), old, new)
    elif isinstance(before, list) and isinstance(wanted, list) and len(before) == len(wanted):
        for number, (old, new) in enumerate(zip(before, wanted, strict=True)):
            yield from _values(f"{place}[{number}]", old, new)
    elif isinstance(before, str) and isinstance(wanted, str) and "\n" in before + wanted:
        lines = unified_diff(before.splitlines(), wanted.splitlines(), n=1, lineterm="")
        yield f"{place}:"
        yield from (f"  {line}" for line in islice(lines, 2, 2 + _MAX_LINES))
    else:
        yield f"{place}: {_shown(before)} -> {_shown(wanted)}"


def _below(place: str, name: str) -> str:
    return f"{place}.{name}" if ": " in place else f"{place}: {name}"


def _hidden(place: str, before: Any, wanted: Any) -> Iterator[str]:
    if before != wanted:
        yield f"{place}: {HIDDEN} changed"


def _shown(value: Any) -> str:
    if value is _MISSING or value is None:
        return "not set"
    return cut(json.dumps(value, ensure_ascii=False, default=str))
