"""Validate requests, with the exact 400 texts of the two endpoint families.

A route describes its query with :class:`Param` and its body with :class:`Body` and fields; the gateway enforces them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import unquote_plus

from airflow_provider_service.simulator._fields import (
    Any_,
    ApiError,
    Array,
    Boolean,
    Enum,
    Family,
    Field,
    Integer,
    Number,
    Object,
    Text,
    outside,
    refuse,
)

__all__ = [
    "CURSOR",
    "LIMIT",
    "PAGING",
    "Any_",
    "ApiError",
    "Array",
    "Body",
    "Boolean",
    "Enum",
    "Family",
    "Field",
    "Integer",
    "Number",
    "Object",
    "Param",
    "Text",
    "check_path",
    "parse_datetime",
    "read_query",
]

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


@dataclass(frozen=True)
class Body:
    """The body of an operation: one object or, with ``array``, a list of at least ``min`` of these objects.

    With ``required_body=False``, the request may have no body at all; handlers then get ``{}``.
    """

    required: Mapping[str, Field] = field(default_factory=dict)
    optional: Mapping[str, Field] = field(default_factory=dict)
    closed: bool = False
    required_body: bool = True
    array: bool = False
    read_only: tuple[str, ...] = ()
    min: int = 0
    min_properties: int = 0

    def check(self, value: Any, family: Family) -> None:
        """Refuse a body that does not match.

        :raises ApiError: 400
        """
        described: Field = Object(
            required=self.required,
            optional=self.optional,
            closed=self.closed,
            read_only=self.read_only,
            min_properties=self.min_properties,
        )
        if self.array:
            described = Array(items=described, min=self.min)
        described.check(value, "request/body", family)


# ---------------------------------------------------------------- query and path

ParamKind = Literal["string", "integer", "boolean", "enum", "datetime", "json", "limit", "cursor"]


@dataclass(frozen=True)
class Param:
    """One query parameter.

    Kind ``integer`` arrives as int, ``boolean`` as bool, ``datetime`` as aware datetime, ``json`` decoded.
    ``message`` replaces the family's 400 text as a whole.
    """

    name: str
    kind: ParamKind = "string"
    enum: tuple[str, ...] = ()
    required: bool = False
    min: int | None = None
    max: int | None = None
    message: str | None = None

    def read(self, text: str, family: Family) -> Any:
        """Convert the decoded value ``text``.

        :raises ApiError: 400 with the family's text
        """
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
            return self._read_integer(text, where, family)
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

    def _read_integer(self, text: str, where: str, family: Family) -> int:
        if not re.fullmatch(r"-?\d{1,15}", text):
            raise refuse(where, "must be integer" if family == "strict" else "Expected number, received nan")
        value = int(text)
        Integer(min=self.min, max=self.max).check(value, where, family)
        return value


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


LIMIT = Param("limit", "limit")
CURSOR = Param("cursor", "cursor")
PAGING = (LIMIT, CURSOR)


def read_query(raw: str, params: tuple[Param, ...], family: Family) -> dict[str, Any]:
    """Read the RAW query string into converted values; absent parameters and empty limits are left out.

    :raises ApiError: 400; the strict family refuses unknown names and values that are not fully percent-encoded
    """
    known = {param.name: param for param in params}
    values: dict[str, Any] = {}
    # When the service looks for reserved characters, it ignores the query's first "?" and what follows a second "=".
    for pair, looked_at in zip(raw.split("&"), raw.replace("?", "", 1).split("&"), strict=True):
        if not pair:
            continue
        raw_name, _, raw_value = pair.partition("=")
        name = unquote_plus(raw_name)
        param = known.get(name)
        if param is None:
            if family == "strict":
                raise ApiError(400, f"Unknown query parameter '{name}'")
            continue
        if family == "strict" and param.kind != "cursor":
            _check_raw_value(name, raw_value, looked_at.partition("=")[2].partition("=")[0])
        value = param.read(unquote_plus(raw_value), family)
        if value is not None or param.kind == "json":
            values[name] = value
    for param in params:
        if param.required and param.name not in values:
            raise refuse("request/query", f"must have required property '{param.name}'")
    return values


def _check_raw_value(name: str, raw_value: str, looked_at: str) -> None:
    if not raw_value:
        raise ApiError(400, f"Empty value found for query parameter '{name}'")
    if _RESERVED.search(looked_at):
        text = f"Parameter '{name}' must be url encoded. Its value may not contain reserved characters."
        raise ApiError(400, text)


def check_path(path: Mapping[str, str], formats: Mapping[str, str]) -> None:
    """Refuse ids of the wrong shape.

    :raises ApiError: 400
    """
    for name, value in path.items():
        wanted = formats.get(name) or _DEFAULT_FORMATS.get(name)
        if wanted is None:
            continue
        pattern, text = _PATH_FORMATS[wanted]
        if not pattern.fullmatch(value):
            raise refuse(f"request/params/{name}", text)
