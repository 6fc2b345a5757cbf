"""Moments from text."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from pydantic import TypeAdapter, ValidationError

_BEGINS_LIKE_ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]|$)")
_datetime = TypeAdapter(datetime)


def parse_moment(text: str) -> datetime:
    """Read a date or moment in ISO 8601; without time zone it means UTC, whatever the service would make of it.

    :raises ValueError: another form.
    """
    if not _BEGINS_LIKE_ISO.match(text.strip()):
        raise ValueError(f"{text!r} is no moment")
    try:
        moment = _datetime.validate_python(text.strip())
    except ValidationError:
        raise ValueError(f"{text!r} is no moment") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
