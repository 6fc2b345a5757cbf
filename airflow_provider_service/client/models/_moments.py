"""Reading dates and times from text."""

from __future__ import annotations

import re
from datetime import datetime

from pydantic import TypeAdapter, ValidationError

from airflow_provider_service.client.models._base import in_utc

_BEGINS_LIKE_ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]|$)")
_datetime = TypeAdapter(datetime)


def parse_moment(text: str) -> datetime:
    """Read a date, or a date and time, in ISO 8601. Without a time zone it means UTC, unlike in the service.

    :raises ValueError: the text has another form.
    """
    if not _BEGINS_LIKE_ISO.match(text.strip()):
        raise ValueError(f"{text!r} is not a date and time")
    try:
        return in_utc(_datetime.validate_python(text.strip()))
    except ValidationError:
        raise ValueError(f"{text!r} is not a date and time") from None
