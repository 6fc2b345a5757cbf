"""The base of all models: the names on the wire are aliases, unknown fields are kept, and nothing is lost on output.

With it, what several resources share: dates and times, numbers, JSON null, and webhooks with their answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Any, ClassVar, Final, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, PlainSerializer, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel


def wire_time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def in_utc(moment: datetime) -> datetime:
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


_BEGINS_LIKE_ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]|$)")
_datetime = TypeAdapter(datetime)


def parse_moment(text: str) -> datetime:
    """Read a date, or a date and time, in ISO 8601. Without a time zone it means UTC, unlike in the service."""
    if not _BEGINS_LIKE_ISO.match(text.strip()):
        raise ValueError(f"{text!r} is not a date and time")
    try:
        return in_utc(_datetime.validate_python(text.strip()))
    except ValidationError:
        raise ValueError(f"{text!r} is not a date and time") from None


class Null(Enum):
    """The type of ``NULL``."""

    NULL = "null"


#: Sends JSON null where null has a meaning for the service; an argument of None is not sent at all.
NULL: Final = Null.NULL


#: Methods whose payload is sent in the query.
METHODS_WITHOUT_BODY = frozenset({"GET", "HEAD"})

#: A segment of a path that begins with this is a parameter.
PARAMETER_MARK = ":"

_EXECUTION_ID = re.compile(r"[0-9]{1,18}")


class WebhookTrigger(NamedTuple):
    """A webhook node of a workflow.

    :param node: name of the node.
    :param method: HTTP method to call it with.
    :param path: path below ``/webhook/``. A segment that begins with a colon is a parameter, and then the path begins
        with the node's webhook id.
    :param authentication: how it authenticates its callers: ``none``, ``basicAuth``, ``headerAuth`` or ``jwtAuth``.
    :param response_mode: when it answers: ``onReceived`` when the run begins, ``lastNode`` when it ends,
        ``responseNode`` when the run reaches a node that answers.
    """

    node: str
    method: str
    path: str
    authentication: str = "none"
    response_mode: str = "onReceived"

    @property
    def path_parameters(self) -> tuple[str, ...]:
        """Names of the parameters in the path, in their order."""
        segments = self.path.split("/")
        return tuple(dict.fromkeys(part[1:] for part in segments if part.startswith(PARAMETER_MARK)))

    @property
    def has_body(self) -> bool:
        """Whether the payload is sent as a body rather than in the query."""
        return self.method not in METHODS_WITHOUT_BODY


class WebhookAnswer(NamedTuple):
    """The answer of a webhook: its status, and its JSON value or text. The workflow may have run despite an error."""

    status: int
    body: Any

    @property
    def execution_id(self) -> str | None:
        """The execution id that the answer contains, or None. It may belong to another execution."""
        named = self.body.get("executionId") if isinstance(self.body, Mapping) else None
        is_id = isinstance(named, (str, int)) and not isinstance(named, bool) and _EXECUTION_ID.fullmatch(str(named))
        return str(named) if is_id else None
