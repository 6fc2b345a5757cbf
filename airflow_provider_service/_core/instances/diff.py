"""Describe what a deployment changes in a workflow, in readable lines: node by node, setting by setting.

What looks like a secret, by the name of a field or in text, is never shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from itertools import islice
from typing import Any

from airflow_provider_service._core.instances.references import references
from airflow_provider_service._core.text_table import cut
from airflow_provider_service.client._definitions import UNSET, settings_not_kept, without_caches
from airflow_provider_service.client._http.redaction import HIDDEN
from airflow_provider_service.client._values import list_or_empty

_NAME = (
    r"authorization|bearer|api[-_]?key|access[-_]?key|private[-_]?key|passphrase|password|passwd|pwd|secret|token|"
    r"credential|cookie"
)
_SECRET = re.compile(_NAME, re.IGNORECASE)
# In text: a name before an equals sign or colon. Quantifiers are possessive, because others would take hours for some
# long texts.
_ASSIGNED = re.compile(r"(?<![\w-])([\w-]++)[\"'`]?\s*+[:=]\s*+(?=\S)")
_ASSIGNED_NAME = re.compile(rf"{_NAME}|\bvalue$", re.IGNORECASE)
# What follows it on its line, and on further lines if a text in quotes goes on there.
_ASSIGNED_TEXT = re.compile(
    r"""(?:"(?!"")(?:[^"\\]|\\.)*+"|'(?!'')(?:[^'\\]|\\.)*+')?+"""
    r"""(?:`(?:[^`\\]|\\.)*+`|"{3}.*?"{3}|'{3}.*?'{3}|"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+'|\\.|[^\n])*+""",
    re.DOTALL,
)
# The credentials of a header, and those of a URL.
_ANYWHERE = re.compile(r"(\b(?:bearer|basic) +|//[^/\s:@]*:(?=[^\s/@]+@))[^\s/@\"']+", re.IGNORECASE)
_PRIVATE_KEY = re.compile(r"-----BEGIN [\w ]{0,40}PRIVATE KEY.*?(?:-----END[\w ]{0,60}-----|\Z)", re.DOTALL)
#: Maximum number of lines that are shown of a text, such as code.
_MAX_LINES = 40
# A definition may leave these out. A new webhook id would mean a new address.
_GENERATED = ("id", "webhookId")
_MISSING = object()


def changed_lines(before: Mapping[str, Any], desired: Mapping[str, Any]) -> Iterator[str]:
    if before and before.get("name") != desired["name"]:
        yield f"renamed {before.get('name')!r} to {desired['name']!r}"
    if before and "description" in desired:
        yield from _values("description", before.get("description"), desired["description"])
    yield from _nodes(before.get("nodes") or [], desired.get("nodes") or [])
    connections, new_connections = before.get("connections") or {}, desired.get("connections") or {}
    for name in sorted(connections.keys() | new_connections.keys()):
        if connections.get(name) != new_connections.get(name):
            old, new = (", ".join(_targets(of.get(name))) or "none" for of in (connections, new_connections))
            yield f"connections of {name!r}" + (f": {old} -> {new}" if old != new else " changed in form only")
    settings, new_settings = before.get("settings") or {}, desired.get("settings") or {}
    for name in sorted(new_settings.keys() - settings_not_kept(new_settings, settings)):
        yield from _values(f"setting {name}", settings.get(name, UNSET.get(name)), new_settings[name])
    for name, words in {"nodeGroups": "groups of nodes", "pinData": "pinned data"}.items():
        if name in desired and (before.get(name) or None) != (desired[name] or None):
            yield f"{words} changed"


def _nodes(before: list[Any], desired: list[Any]) -> Iterator[str]:
    existing, new = (
        {str(node.get("name")): node for node in nodes if isinstance(node, Mapping)} for nodes in (before, desired)
    )
    for name, node in existing.items():
        if name not in new:
            yield f"- node {name!r} ({node.get('type')})"
    for name, node in new.items():
        if name not in existing:
            used = dict.fromkeys(
                f"{named.kind} {repr(named.name) if named.name else json.dumps(named.id)}"
                for named in references({"nodes": [node]})
            )
            yield f"+ node {name!r} ({node.get('type')})" + (f", uses {', '.join(used)}" if used else "")
            continue
        old = {"typeVersion": 1, "parameters": {}, **existing[name]}
        kept = {key: old[key] for key in _GENERATED if key in old}
        now = {"typeVersion": 1, "parameters": {}, **kept, **node}
        yield from _values(f"node {name!r}", without_caches(old), without_caches(now))
    if list(existing) != list(new) and existing.keys() == new.keys():
        yield "order of the nodes changed"


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


def _values(place: str, before: Any, desired: Any) -> Iterator[str]:
    if before == desired:
        return
    if isinstance(before, Mapping) and isinstance(desired, Mapping):
        for name in sorted({*map(str, before), *map(str, desired)}):
            old, new = before.get(name, _MISSING), desired.get(name, _MISSING)
            if _is_secret(name, before, desired):
                yield from _hidden(f"{place}: {name}", old, new)
            else:
                yield from _values(f"{place}.{name}" if ": " in place else f"{place}: {name}", old, new)
    elif isinstance(before, list) and isinstance(desired, list) and len(before) == len(desired):
        for number, (old, new) in enumerate(zip(before, desired, strict=True)):
            yield from _values(f"{place}[{number}]", old, new)
    else:
        yield from _changed(place, before, desired)


def _changed(place: str, before: Any, desired: Any) -> Iterator[str]:
    old, new = _without_secrets(before), _without_secrets(desired)
    if old == new:
        yield from _hidden(place, before, desired)
    elif isinstance(old, str) and isinstance(new, str) and "\n" in old + new:
        lines = unified_diff(old.splitlines(), new.splitlines(), n=1, lineterm="")
        yield f"{place}:"
        yield from (f"  {line}" for line in islice(lines, 2, 2 + _MAX_LINES))
    else:
        yield f"{place}: {_shown(old)} -> {_shown(new)}"


def _hidden(place: str, before: Any, desired: Any) -> Iterator[str]:
    if before != desired:
        yield f"{place}: {HIDDEN} changed"


def _shown(value: Any) -> str:
    if value is _MISSING or value is None:
        return "not set"
    return cut(json.dumps(value, ensure_ascii=False, default=str))


def _is_secret(name: str, *fields: Mapping[str, Any]) -> bool:
    """Whether a field holds a secret by its name, or as the value of what the field ``name`` beside it names."""
    if name == "value":
        return any(_SECRET.search(str(holder.get("name", ""))) for holder in fields)
    # The credentials of a node are names and ids.
    return name != "credentials" and _SECRET.search(name) is not None


def _without_secrets(value: Any) -> Any:
    """Return a value without what looks like a secret, also in text that holds JSON or code."""
    if isinstance(value, Mapping):
        return {
            name: HIDDEN if _is_secret(str(name), value) else _without_secrets(inner) for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_without_secrets(inner) for inner in value]
    return _text_without_secrets(value) if isinstance(value, str) else value


def _text_without_secrets(text: str) -> str:
    if _SECRET.search(text):
        # A text that the service evaluates begins with an equals sign.
        prefix, content = ("=", text[1:]) if text.startswith("=") else ("", text)
        try:
            parsed = json.loads(content)
        except ValueError:
            text = "".join(_without_assigned(text))
        else:
            if isinstance(parsed, (dict, list)):
                indent = 2 if "\n" in content else None
                return prefix + json.dumps(_without_secrets(parsed), ensure_ascii=False, indent=indent)
    return _PRIVATE_KEY.sub(HIDDEN, _ANYWHERE.sub(rf"\1{HIDDEN}", text))


def _without_assigned(text: str) -> Iterator[str]:
    end = 0
    for assigned in _ASSIGNED.finditer(text):
        if assigned.start() >= end and _ASSIGNED_NAME.search(assigned[1]):
            yield text[end : assigned.end()] + HIDDEN
            value = _ASSIGNED_TEXT.match(text, assigned.end())
            end = value.end() if value else assigned.end()
    yield text[end:]
