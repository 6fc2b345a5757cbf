"""The base of all models: the names on the wire are aliases, unknown fields are kept, and nothing is lost on output."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, PlainSerializer
from pydantic.alias_generators import to_camel


def wire_time(moment: datetime) -> str:
    """Write a date and time in UTC, with milliseconds and ``Z``."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def in_utc(moment: datetime) -> datetime:
    """Take a date and time without a time zone as UTC."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


#: A date and time, always with a time zone; written as the service writes it, in UTC with milliseconds.
Timestamp = Annotated[datetime, AfterValidator(in_utc), PlainSerializer(wire_time, return_type=str, when_used="json")]


def _as_float(number: float) -> float:
    try:
        float(number)
    except OverflowError:
        raise ValueError("a number is too large") from None
    return number


#: A number that a float can hold; whole numbers stay whole.
Number = Annotated[int | float, AfterValidator(_as_float)]


class ServiceModel(BaseModel):
    """Base of the models: snake_case in Python, the service's names on the wire."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow")

    #: Fields that are secrets, as pydantic's ``exclude`` names them.
    secrets: ClassVar[Any] = frozenset()

    def to_wire(self) -> dict[str, Any]:
        """The JSON object that the service sent, with the names on the wire."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)

    def without_secrets(self) -> dict[str, Any]:
        """The JSON object that the service sent, without secrets, to be stored where others can read it."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude=self.secrets)
