"""The values of request bodies: their types, rules, and 400 texts in both endpoint families."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

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


def _json_type(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


@dataclass(frozen=True, kw_only=True)
class Field:
    """One value of a body. ``message`` replaces the family's text (without the ``request/body/x`` in front)."""

    nullable: bool = False
    message: str | None = None
    _type: ClassVar[str] = "any"
    _json: ClassVar[str | None] = None

    def check(self, value: Any, where: str, family: Family) -> None:
        """Refuse ``value`` at ``where`` with the family's text.

        :raises ApiError: 400
        """
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
        found = _json_type(value)
        if self._json is not None and found != self._json:
            expected = f"must be {self._type}" if family == "strict" else f"Expected {self._json}, received {found}"
            raise refuse(where, expected)

    def _check_value(self, value: Any, where: str, family: Family) -> None:
        """Rules beyond the type."""


@dataclass(frozen=True, kw_only=True)
class Any_(Field):  # noqa: N801 - the plain name is taken by typing
    """Any value, including null."""


@dataclass(frozen=True, kw_only=True)
class Boolean(Field):
    _type = _json = "boolean"


@dataclass(frozen=True, kw_only=True)
class Text(Field):
    """A string of ``min`` to ``max`` characters that matches ``pattern`` as a whole."""

    min: int | None = None
    max: int | None = None
    pattern: str | None = None
    _type = _json = "string"

    def _check_value(self, value: Any, where: str, family: Family) -> None:
        strict = family == "strict"
        if self.min is not None and len(value) < self.min:
            lenient = f"String must contain at least {self.min} character(s)"
            raise refuse(where, f"must NOT have fewer than {self.min} characters" if strict else lenient)
        if self.max is not None and len(value) > self.max:
            lenient = f"String must contain at most {self.max} character(s)"
            raise refuse(where, f"must NOT have more than {self.max} characters" if strict else lenient)
        if self.pattern is not None and not re.fullmatch(self.pattern, value):
            raise refuse(where, f'must match pattern "^{self.pattern}$"' if strict else "Invalid")


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
    """One of ``values``."""

    values: tuple[str, ...]
    _type = _json = "string"

    def _check_type(self, value: Any, where: str, family: Family) -> None:
        if isinstance(value, str):
            return
        if family == "strict":
            raise refuse(where, outside(self.values, value, family))
        super()._check_type(value, where, family)

    def _check_value(self, value: Any, where: str, family: Family) -> None:
        if value not in self.values:
            raise refuse(where, outside(self.values, value, family))


def outside(values: tuple[str, ...], value: Any, family: Family) -> str:
    """The text for a value that is not one of ``values``."""
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

    def _check_value(self, value: Any, where: str, family: Family) -> None:
        for name in self.read_only:
            if name in value:
                raise refuse(f"{where}/{name}", "is read-only")
        for name in self.required:
            if name not in value:
                raise refuse(where, f"must have required property '{name}'")
        if self.closed:
            unknown = [name for name in value if name not in self.required and name not in self.optional]
            if unknown:
                names = ", ".join(repr(name) for name in unknown)
                strict = family == "strict"
                text = "must NOT have additional properties" if strict else f"Unrecognized key(s) in object: {names}"
                raise refuse(where, text)
        if len(value) < self.min_properties:
            raise refuse(where, f"must NOT have fewer than {self.min_properties} properties")
        for name, described in (*self.required.items(), *self.optional.items()):
            if name in value:
                described.check(value[name], f"{where}/{name}", family)


@dataclass(frozen=True, kw_only=True)
class Array(Field):
    """A list of ``items``, ``min`` to ``max`` of them."""

    items: Field = field(default_factory=Any_)
    min: int = 0
    max: int | None = None
    _type = _json = "array"

    def _check_value(self, value: Any, where: str, family: Family) -> None:
        strict = family == "strict"
        if len(value) < self.min:
            lenient = f"Array must contain at least {self.min} element(s)"
            raise refuse(where, f"must NOT have fewer than {self.min} items" if strict else lenient)
        if self.max is not None and len(value) > self.max:
            lenient = f"Array must contain at most {self.max} element(s)"
            raise refuse(where, f"must NOT have more than {self.max} items" if strict else lenient)
        for index, item in enumerate(value):
            self.items.check(item, f"{where}/{index}", family)
