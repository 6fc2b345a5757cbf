"""The rules for requests, with the exact 400 texts of the two endpoint families, and what older versions lack.

A route describes its query with :class:`Param` and its body with :class:`Body` and fields; the gateway enforces them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal
from urllib.parse import unquote_plus

Family = Literal["lenient", "strict"]


class ApiError(Exception):
    """An answer that is not a success: JSON ``{"message": ..., **extra}`` with ``status``."""

    def __init__(self, status: int, message: str, **extra: Any) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.extra = extra


def refuse(where: str, text: str) -> ApiError:
    """The 400 for a value at ``where``, e.g. ``request/body/name``."""
    return ApiError(400, f"{where} {text}")


_JSON_TYPES = {
    type(None): "null",
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


@dataclass(frozen=True, kw_only=True)
class Field:
    """Any value, including null. ``message`` replaces the family's text (without the ``request/body/x`` in front)."""

    nullable: bool = False
    message: str | None = None
    _type: ClassVar[str] = "any"
    _json: ClassVar[str | None] = None

    def schema(self) -> dict[str, Any]:
        """The field as the published contract describes it."""
        kind = {} if self._json is None else {"type": self._json}
        return {**kind, **({"nullable": True} if self.nullable else {})}

    def check(self, value: Any, where: str, family: Family) -> None:
        if value is None and self.nullable:
            return
        try:
            self._check_type(value, where, family)
            self._check_value(value, where, family)
        except ApiError as error:
            if self.message is None:
                raise
            raise refuse(where, self.message) from error

    def _check_type(self, value: Any, where: str, family: Family) -> None:
        received = _JSON_TYPES[type(value)]
        if self._json is not None and received != self._json:
            lenient = f"Expected {self._json}, received {received}"
            raise refuse(where, f"must be {self._type}" if family == "strict" else lenient)

    def _check_value(self, value: Any, where: str, family: Family) -> None:
        """Rules beyond the type."""


@dataclass(frozen=True, kw_only=True)
class Boolean(Field):
    _type = _json = "boolean"


@dataclass(frozen=True, kw_only=True)
class Text(Field):
    min: int | None = None
    max: int | None = None
    pattern: str | None = None
    _type = _json = "string"

    def _check_value(self, value: Any, where: str, family: Family) -> None:
        _check_size(value, self.min, self.max, where, "characters" if family == "strict" else "character(s)")
        if self.pattern is not None and not re.fullmatch(self.pattern, value):
            raise refuse(where, f'must match pattern "^{self.pattern}$"' if family == "strict" else "Invalid")


def _check_size(value: str | list[Any], least: int | None, most: int | None, where: str, unit: str) -> None:
    """Refuse a text or list that is too short or too long; only the lenient family's units end with ``(s)``."""
    strict = not unit.endswith("(s)")
    kind = "String" if isinstance(value, str) else "Array"
    if least is not None and len(value) < least:
        lenient = f"{kind} must contain at least {least} {unit}"
        raise refuse(where, f"must NOT have fewer than {least} {unit}" if strict else lenient)
    if most is not None and len(value) > most:
        lenient = f"{kind} must contain at most {most} {unit}"
        raise refuse(where, f"must NOT have more than {most} {unit}" if strict else lenient)


@dataclass(frozen=True, kw_only=True)
class Number(Field):
    min: float | None = None
    max: float | None = None
    _type = _json = "number"

    def _check_value(self, value: Any, where: str, family: Family) -> None:
        strict = family == "strict"
        if self.min is not None and value < self.min:
            lenient = f"Number must be greater than or equal to {self.min}"
            raise refuse(where, f"must be >= {self.min}" if strict else lenient)
        if self.max is not None and value > self.max:
            lenient = f"Number must be less than or equal to {self.max}"
            raise refuse(where, f"must be <= {self.max}" if strict else lenient)


@dataclass(frozen=True, kw_only=True)
class Integer(Number):
    _type = "integer"

    def _check_type(self, value: Any, where: str, family: Family) -> None:
        super()._check_type(value, where, family)
        if isinstance(value, float) and not value.is_integer():
            raise refuse(where, "must be integer" if family == "strict" else "Expected integer, received float")


@dataclass(frozen=True)
class Enum(Field):
    values: tuple[str, ...]
    _type = _json = "string"

    def schema(self) -> dict[str, Any]:
        return {**super().schema(), "enum": [*self.values]}

    def _check_type(self, value: Any, where: str, family: Family) -> None:
        if isinstance(value, str):
            return
        if family == "strict":
            raise refuse(where, outside(self.values, value, family))
        raise refuse(where, f"Expected {' | '.join(map(repr, self.values))}, received {_JSON_TYPES[type(value)]}")

    def _check_value(self, value: Any, where: str, family: Family) -> None:
        if value not in self.values:
            raise refuse(where, outside(self.values, value, family))


def outside(values: tuple[str, ...], value: Any, family: Family) -> str:
    if family == "strict":
        return f"must be equal to one of the allowed values: {', '.join(values)}"
    return f"Invalid enum value. Expected {' | '.join(repr(v) for v in values)}, received '{value}'"


@dataclass(frozen=True, kw_only=True)
class Object(Field):
    """An object; ``closed`` refuses keys that are neither required, optional nor read-only."""

    required: Mapping[str, Field] = field(default_factory=dict)
    optional: Mapping[str, Field] = field(default_factory=dict)
    closed: bool = False
    read_only: tuple[str, ...] = ()
    min_properties: int = 0
    _type = _json = "object"

    def schema(self) -> dict[str, Any]:
        described = {name: field.schema() for name, field in (*self.required.items(), *self.optional.items())}
        properties = {**described, **{name: {"readOnly": True} for name in self.read_only}}
        required = {"required": [*self.required]} if self.required else {}
        return {**super().schema(), **required, "properties": properties, "additionalProperties": not self.closed}

    def _check_value(self, value: Any, where: str, family: Family) -> None:
        for name in self.read_only:
            if name in value:
                raise refuse(f"{where}/{name}", "is read-only")
        for name in self.required:
            if name not in value:
                raise refuse(where, f"must have required property '{name}'")
        known = self.required.keys() | self.optional.keys()
        unknown = [name for name in value if name not in known] if self.closed else []
        if unknown and family == "strict":
            raise refuse(where, "must NOT have additional properties")
        if len(value) < self.min_properties:
            raise refuse(where, f"must NOT have fewer than {self.min_properties} properties")
        for name, described in (*self.required.items(), *self.optional.items()):
            if name in value:
                described.check(value[name], f"{where}/{name}", family)
        if unknown:
            raise refuse(where, f"Unrecognized key(s) in object: {', '.join(map(repr, unknown))}")


@dataclass(frozen=True, kw_only=True)
class Array(Field):
    items: Field = field(default_factory=Field)
    min: int = 0
    max: int | None = None
    _type = _json = "array"

    def schema(self) -> dict[str, Any]:
        return {**super().schema(), "items": self.items.schema()}

    def _check_value(self, value: Any, where: str, family: Family) -> None:
        _check_size(value, self.min, self.max, where, "items" if family == "strict" else "element(s)")
        for index, item in enumerate(value):
            self.items.check(item, f"{where}/{index}", family)


@dataclass(frozen=True, kw_only=True)
class Body(Object):
    """With ``array``, a list of at least ``min`` objects. Without ``required_body``, no body becomes ``{}``."""

    required_body: bool = True
    array: bool = False
    min: int = 0

    @property
    def described(self) -> Field:
        return Array(items=self, min=self.min) if self.array else self

    def check_body(self, value: Any, family: Family) -> None:
        self.described.check(value, "request/body", family)


# ---------------------------------------------------------------- query and path

_RESERVED = re.compile(r"[:/?#\[\]@!$&'()*+,;=]")
_DATETIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:?\d\d)?")
_WITH_OFFSET = re.compile(r"[^Tt ]+T[\d:.]+(Z|[+-][\d:]+)")
_PATH_FORMATS = {
    "execution_id": (re.compile(r"0*[1-9]\d*"), "must be a positive integer"),
    "nanoid": (re.compile(r"[A-Za-z0-9]{16}"), 'must match format "nanoid"'),
    "identifier": (
        re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[^@\s]+@[^@\s]+\.[^@\s]+"),
        'must match format "identifier"',
    ),
}
# Path parameters whose name alone determines their format; others are named by Operation.params.
_DEFAULT_FORMATS = {"executionId": "execution_id", "dataTableId": "nanoid"}


def parse_datetime(text: str) -> datetime | None:
    """Read a full ISO-8601 date and time (without an offset: UTC); None if it is anything else."""
    if not _DATETIME.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text.upper())
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


ParamKind = Literal["string", "integer", "boolean", "enum", "datetime", "json", "limit", "cursor"]


@dataclass(frozen=True)
class Param:
    """``datetime`` arrives as aware datetime, ``json`` decoded. ``message`` replaces the family's text as a whole."""

    name: str
    kind: ParamKind = "string"
    enum: tuple[str, ...] = ()
    required: bool = False
    min: int | None = None
    max: int | None = None
    message: str | None = None

    def read(self, text: str, family: Family) -> Any:
        try:
            return self._convert(text, family)
        except ApiError as error:
            if self.message is None:
                raise
            raise ApiError(400, self.message) from error

    def _convert(self, text: str, family: Family) -> Any:
        where = f"request/query/{self.name}"
        strict = family == "strict"
        if self.kind == "limit":
            return _read_limit(self.name, text, family)
        if self.kind == "integer":
            if not re.fullmatch(r"-?\d{1,15}", text):
                raise refuse(where, "must be integer" if strict else "Expected number, received nan")
            Integer(min=self.min, max=self.max).check(int(text), where, family)
            return int(text)
        if self.kind == "boolean":
            if text in ("true", "false"):
                return text == "true"
            raise refuse(where, "must be boolean" if strict else outside(("true", "false"), text, family))
        if self.kind == "enum":
            if text in self.enum:
                return text
            raise refuse(where, outside(self.enum, text, family))
        if self.kind == "datetime":
            moment = parse_datetime(text)
            if moment is None or not (strict or _WITH_OFFSET.fullmatch(text)):
                raise refuse(where, 'must match format "date-time"' if strict else "Invalid datetime")
            return moment
        if self.kind == "json":
            try:
                return json.loads(text)
            except ValueError as error:
                raise refuse(where, 'must match format "jsonString"' if strict else "must be valid JSON") from error
        return text


def _read_limit(name: str, text: str, family: Family) -> int | None:
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        not_a_number = "must be number" if family == "strict" else f"Param `{name}` must be a valid integer"
        raise refuse(f"request/query/{name}", not_a_number)
    if number < 0:
        negative = f"Param `{name}` must be a non-negative integer"
        raise ApiError(400, negative if family == "strict" else f"request/query/{name} {negative}")
    return int(number)


PAGING = (Param("limit", "limit"), Param("cursor", "cursor"))


def read_query(raw: str, params: tuple[Param, ...], family: Family) -> dict[str, Any]:
    """Read the RAW query string into converted values; absent parameters and empty limits are left out."""
    by_name = {param.name: param for param in params}
    values: dict[str, Any] = {}
    # When the service looks for reserved characters, it ignores the query's first "?" and what follows a second "=".
    for pair, examined in zip(raw.split("&"), raw.replace("?", "", 1).split("&"), strict=True):
        if not pair:
            continue
        raw_name, _, raw_value = pair.partition("=")
        name = unquote_plus(raw_name)
        param = by_name.get(name)
        if param is None:
            if family == "strict":
                raise ApiError(400, f"Unknown query parameter '{name}'")
            continue
        if family == "strict" and param.kind != "cursor":
            if not raw_value:
                raise ApiError(400, f"Empty value found for query parameter '{name}'")
            if _RESERVED.search(examined.partition("=")[2].partition("=")[0]):
                text = f"Parameter '{name}' must be url encoded. Its value may not contain reserved characters."
                raise ApiError(400, text)
        value = param.read(unquote_plus(raw_value), family)
        if value is not None or param.kind == "json":
            values[name] = value
    for param in params:
        if param.required and param.name not in values:
            raise refuse("request/query", f"must have required property '{param.name}'")
    return values


def check_path(path: Mapping[str, str], formats: Mapping[str, str]) -> None:
    for name, value in path.items():
        format_name = formats.get(name) or _DEFAULT_FORMATS.get(name)
        if format_name is not None:
            pattern, text = _PATH_FORMATS[format_name]
            if not pattern.fullmatch(value):
                raise refuse(f"request/params/{name}", text)


# ---------------------------------------------------------------- versions

#: The version that is simulated unless another is set.
NEWEST = "2.41.1"

# The version that first had an operation, or a parameter of its query, by the published contracts.
_SINCE = {
    "2.3": "update_credential",
    "2.7": (
        "list_data_tables create_data_table get_data_table update_data_table delete_data_table list_data_table_rows "
        "insert_data_table_rows update_data_table_rows upsert_data_table_rows delete_data_table_rows"
    ),
    "2.8": "list_credentials list_project_users",
    "2.10": "stop_execution stop_many_executions list_execution_tags update_execution_tags",
    "2.14": "discover",
    "2.15": "archive_workflow unarchive_workflow",
    "2.16": (
        "list_community_packages install_community_package update_community_package uninstall_community_package "
        "list_executions?redactExecutionData get_execution?redactExecutionData"
    ),
    "2.17": "get_insights_summary list_users?offset",
    "2.20": (
        "get_credential test_credential list_data_table_columns create_data_table_column update_data_table_column "
        "delete_data_table_column list_folders create_folder get_folder update_folder delete_folder"
    ),
    "2.30": "clear_data_table_rows list_executions?ignoreDataSizeLimit get_execution?ignoreDataSizeLimit",
    "2.33": "publish_workflow unpublish_workflow list_workflow_history",
    "2.35": "update_workflow?publishIfActive",
    "2.36": "list_workflows?offset",
    "2.37": "list_executions?startedAfter list_executions?startedBefore",
    "2.39": "get_source_control_status push_source_control get_workflow_version",
}
_BY_NAME = {name: version for version, names in _SINCE.items() for name in names.split()}


def offers(version: str, operation: str, parameter: str | None = None) -> bool:
    return is_at_least(version, _BY_NAME.get(operation if parameter is None else f"{operation}?{parameter}", "0.0"))


def is_at_least(version: str, other: str) -> bool:
    numbers, of_other = ([int(number) for number in text.split(".")[:2]] for text in (version, other))
    return numbers >= of_other
