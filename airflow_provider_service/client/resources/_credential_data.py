"""Adapt the secret data of credentials to the version of the server.

In a type of credential, some fields may depend on the value of another field. Before n8n 2.30, these fields had to be
present, even if empty, if the other field had that value or was absent; otherwise the server refused them. Newer
servers require only the fields that the type marks as required. The schema of the type shows which rule applies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from airflow_provider_service.client._shapes import dict_or_empty, list_or_empty

#: What every server assumes if one of these fields is absent.
_ABSENT: Mapping[str, Any] = {
    "allowedDomains": "",
    "allowedHttpRequestDomains": "all",
    "privateKey": "",
    "publicKey": "",
    "sshTunnel": False,
}
_NOTICE = "notice"


class _Rule(NamedTuple):
    """Fields that must be given if another one has one of these values or is absent."""

    other: str
    values: list[Any]
    fields: list[str]


def fitted(data: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return equivalent data that a server with this schema accepts, as far as the rules are known.

    :param data: the fields, in the form that the newest server accepts.
    :param schema: the JSON schema of the type, as the server returns it.
    """
    kept = {name: value for name, value in data.items() if name not in _ABSENT or value != _ABSENT[name]}
    for rule in _rules(schema):
        if rule.other in _ABSENT:
            kept.setdefault(rule.other, _ABSENT[rule.other])
    notices = [name for name, kind in _kinds(schema).items() if kind == _NOTICE]
    known = {**_ABSENT, **dict.fromkeys(notices, "")}
    return {**{name: known[name] for name in demanded(kept, schema) if name in known}, **kept}


def demanded(data: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    """The fields that must be given with these, besides those that the type marks as required."""
    for rule in _rules(schema):
        if rule.other not in data or data[rule.other] in rule.values:
            yield from rule.fields


def _rules(schema: Mapping[str, Any]) -> Iterator[_Rule]:
    """The rules of an older server; parts of the schema that have another form are ignored."""
    for one in list_or_empty(schema.get("allOf")):
        match one:
            case {"if": {"required": _}}:
                pass  # a newer server: fields that depend on an absent field may be absent, too
            case {"if": {"properties": dict() as others}, "then": {"allOf": list() as then}}:
                for other, condition in others.items():
                    fields = [str(name) for part in then for name in list_or_empty(dict_or_empty(part).get("required"))]
                    yield _Rule(str(other), list_or_empty(dict_or_empty(condition).get("enum")), fields)


def _kinds(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = dict_or_empty(schema.get("properties"))
    return {name: dict_or_empty(one).get("type") for name, one in properties.items()}
