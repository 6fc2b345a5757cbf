"""The credential types that the simulator knows, and what the data of each must be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from airflow_provider_service.simulator._generations import is_at_least
from airflow_provider_service.simulator._validation import ApiError

_TEXT = {"type": "string"}
_NUMBER = {"type": "number"}
_BOOLEAN = {"type": "boolean"}
_DOMAINS = {
    "allowedHttpRequestDomains": {"type": "string", "enum": ["all", "domains", "none"]},
    "allowedDomains": _TEXT,
}
_JWT_ALGORITHMS = (*(f"{kind}{size}" for kind in ("HS", "RS", "ES", "PS") for size in (256, 384, 512)), "none")


def _schema(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {
        "additionalProperties": False,
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
    }


def default_types() -> dict[str, dict[str, Any]]:
    """The credential types that every simulator starts with: the JSON schema of the data by name."""
    notice = {"type": "notice"}
    return {
        "httpHeaderAuth": _schema({"name": _TEXT, "value": _TEXT, "useCustomAuth": notice, **_DOMAINS}),
        "httpBasicAuth": _schema({"user": _TEXT, "password": _TEXT, **_DOMAINS}),
        "httpBearerAuth": _schema({"token": _TEXT, "useCustomAuth": notice, **_DOMAINS}),
        "jwtAuth": _schema(
            {
                "keyType": {"type": "string", "enum": ["passphrase", "pemKey"]},
                **dict.fromkeys(("secret", "privateKey", "publicKey"), _TEXT),
                "algorithm": {"type": "string", "enum": list(_JWT_ALGORITHMS)},
            }
        ),
        "httpQueryAuth": _schema({"name": _TEXT, "value": _TEXT, **_DOMAINS}),
        "githubApi": _schema({"server": _TEXT, "user": _TEXT, "accessToken": _TEXT, **_DOMAINS}),
        "slackApi": _schema(
            {"accessToken": _TEXT, "signatureSecret": _TEXT, "notice": notice, **_DOMAINS}, "accessToken"
        ),
        "openAiApi": _schema({"apiKey": _TEXT, "organizationId": _TEXT, "url": _TEXT, **_DOMAINS}, "apiKey"),
        "postgres": _schema(
            {
                **dict.fromkeys(("host", "database", "user", "password"), _TEXT),
                "port": _NUMBER,
                "maxConnections": _NUMBER,
                "allowUnauthorizedCerts": _BOOLEAN,
                "ssl": {"type": "string", "enum": ["allow", "disable", "require"]},
            }
        ),
    }


_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "boolean": (bool,),
    "notice": (str,),
}
#: Fields that depend on a value of another field.
_DEPENDENT: tuple[tuple[str, Any, tuple[str, ...]], ...] = (
    ("allowedHttpRequestDomains", "domains", ("allowedDomains",)),
    ("allowUnauthorizedCerts", False, ("ssl",)),
    ("keyType", "passphrase", ("secret",)),
    ("keyType", "pemKey", ("privateKey", "publicKey")),
    ("signatureSecret", "", ("notice",)),
)


def as_published(schema: Mapping[str, Any], version: str) -> dict[str, Any]:
    """The schema of a type as a version publishes it.

    Before 2.30, a field that depends on a value of another field must be given if that field has this value or is
    absent, and must not be given otherwise. Version 1 treats all such fields as if they depended on the first value.
    """
    if is_at_least(version, "2.30"):
        return dict(schema)
    rules: dict[Any, tuple[str, Any, list[str]]] = {}
    for other, value, fields in _DEPENDENT:
        if other in schema["properties"]:
            key = (other, value) if is_at_least(version, "2.0") else other
            rules.setdefault(key, (other, value, []))[2].extend(fields)
    published = [
        {
            "if": {"properties": {other: {"enum": [value]}}},
            "then": {"allOf": [{"required": [name]} for name in fields]},
            "else": {"allOf": [{"not": {"required": [name]}} for name in fields]},
        }
        for other, value, fields in rules.values()
    ]
    return {**schema, **({"allOf": published} if published else {})}


def check_data(data: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    """Refuse data that does not fit a published schema.

    :raises ApiError: 400
    """
    for name, value in data.items():
        described = schema["properties"].get(name)
        if described is None:
            raise ApiError(400, f'request.body.data is not allowed to have the additional property "{name}"')
        _check_value(value, described)
    for name, is_wanted in (*dict.fromkeys(schema["required"], True).items(), *_ruled(data, schema)):
        if is_wanted and name not in data:
            raise ApiError(400, f'request.body.data requires property "{name}"')
        if not is_wanted and name in data:
            raise ApiError(400, "request.body.data is of prohibited type [object Object]")


def _ruled(data: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """The fields to which the rules of a schema apply, and whether they must be given."""
    for rule in schema.get("allOf", ()):
        [(other, condition)] = rule["if"]["properties"].items()
        holds = other not in data or data[other] in condition["enum"]
        for part in rule["then"]["allOf"]:
            yield part["required"][0], holds


def _check_value(value: Any, described: Mapping[str, Any]) -> None:
    expected = _PYTHON_TYPES.get(described["type"])
    is_stray_boolean = isinstance(value, bool) and described["type"] != "boolean"
    if expected is not None and (is_stray_boolean or not isinstance(value, expected)):
        raise ApiError(400, f"request.body.data is not of a type(s) {described['type']}")
    if "enum" in described and value not in described["enum"]:
        raise ApiError(400, f"request.body.data is not one of enum values: {','.join(described['enum'])}")
