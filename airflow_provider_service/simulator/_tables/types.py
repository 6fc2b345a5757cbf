"""Column types of data tables: what each accepts, how it stores values, and how it compares them.

The service keeps tables in SQLite. Two of its quirks show through the API and are simulated here: a date is stored as
``YYYY-MM-DD HH:MM:SS.mmm`` but compared with ``YYYY-MM-DDTHH:MM:SS.mmmZ`` as text, and a search sees numbers as SQLite
prints them (``2`` is ``2.0``). When a stored date is read back, years below 100 become years around 2000.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from airflow_provider_service.simulator._clock import stamp
from airflow_provider_service.simulator._validation import ApiError

COLUMN_TYPES = ("string", "number", "boolean", "date")
SYSTEM_COLUMNS = {"id": "number", "createdAt": "date", "updatedAt": "date"}

_DATE_HINT = (
    ' <br/><br/> Consider using <a href="https://moment.github.io/luxon/api-docs/index.html#datetimefromformat"'
    ' target="_blank"><code>DateTime.fromFormat</code></a> to work with custom date formats.'
)
_ISO = re.compile(
    r"(?P<year>\d{4})(?:-(?P<month>\d\d)(?:-(?P<day>\d\d)"
    r"(?:[T ](?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9}))?)?"
    r"(?P<offset>Z|[+-]\d\d:?\d\d)?)?)?)?"
)
_OTHER_DATES = ("%Y/%m/%d", "%m/%d/%Y", "%b %d, %Y", "%B %d, %Y")


def invalid(text: str) -> ApiError:
    """The 400 for a request that violates the table's rules."""
    return ApiError(400, f"Validation error with data table request: {text}")


def coerce(column: str, column_type: str, value: Any) -> Any:
    """Turn ``value`` into what the column stores: str, number, bool, ISO date text, or None.

    :raises ApiError: 400 when the type does not accept it
    """
    if value is None:
        return None
    try:
        return _COERCE[column_type](value)
    except ValueError as error:
        given = _js_text(value)
        expected, hint = ("dateTime", _DATE_HINT) if column_type == "date" else (column_type, "")
        raise invalid(
            f"value '{given}' does not match column type '{column_type}': "
            f"'{column}' expects a {expected} but we got '{given}'{hint}"
        ) from error


def comparable(column_type: str, stored: Any) -> Any:
    """The stored value as comparisons and sorting see it."""
    return f"{stored[:10]} {stored[11:23]}" if column_type == "date" else stored


def is_equal_number(stored: float, value: float) -> bool:
    """Whether SQLite finds a stored number by a filter's value: a double, compared with the filter's text."""
    return float(stored) == (float(value) if abs(value) >= 2**63 else value)


def searchable(column_type: str, stored: Any) -> str:
    """The stored value as a search sees it."""
    if column_type == "number":
        return sqlite_number(stored)
    if column_type == "boolean":
        return "1" if stored else "0"
    text: str = comparable(column_type, stored)
    return text


def sqlite_number(value: float) -> str:
    """Write a number as SQLite prints a REAL: 15 significant digits, always with a point."""
    text = f"{float(value):.15g}"
    mantissa, exponent, power = text.partition("e")
    return (mantissa if "." in mantissa else f"{mantissa}.0") + exponent + power


def _js_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return str(value)


def _to_string(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "1" if value else "0"
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**63 else sqlite_number(value)


def _to_number(value: Any) -> int | float:
    number = _parse_number(value) if isinstance(value, str) else float(value)
    # A double, returned with the fewest digits that distinguish it: above 2**53, whole numbers lose digits.
    return int(Decimal(repr(number))) if number.is_integer() and abs(number) < 1e21 else number


def _parse_number(text: str) -> float:
    text = text.strip()
    if not text:
        return 0.0
    if re.fullmatch(r"0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+", text):
        return float(int(text, 0))
    if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text):
        raise ValueError(text)
    number = float(text)
    if math.isinf(number):
        raise ValueError(text)
    return number


def _to_boolean(value: Any) -> bool:
    if isinstance(value, str):
        word = value.strip().lower()
        if word in ("true", "false"):
            return word == "true"
        if not word:
            raise ValueError(value)
        value = _parse_number(word)
    if value in (0, 1):
        return bool(value)
    raise ValueError(value)


def _to_date(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(value)
    match = _ISO.fullmatch(value.strip())
    return stamp(_from_iso(match) if match else _from_other(value.strip()))


def _from_iso(match: re.Match[str]) -> datetime:
    part = match.groupdict()
    year = int(part["year"])
    moment = datetime(
        year if year >= 100 else year + (1900 if year >= 50 else 2000),
        int(part["month"] or 1),
        int(part["day"] or 1),
        int(part["hour"] or 0),
        int(part["minute"] or 0),
        int(part["second"] or 0),
        int((part["fraction"] or "")[:6].ljust(6, "0")),
        tzinfo=UTC,
    )
    offset = part["offset"]
    if not offset or offset == "Z":
        return moment
    minutes = int(offset[1:3]) * 60 + int(offset[-2:])
    return moment - timedelta(minutes=minutes if offset[0] == "+" else -minutes)


def _from_other(text: str) -> datetime:
    for form in _OTHER_DATES:
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    raise ValueError(text)


_COERCE: dict[str, Callable[[Any], Any]] = {
    "string": _to_string,
    "number": _to_number,
    "boolean": _to_boolean,
    "date": _to_date,
}
