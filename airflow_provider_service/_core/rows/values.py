"""Convert values to the form in which the service stores and returns them, so that rows can be compared."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from airflow_provider_service.client._constraints import SYSTEM_COLUMNS, require_row
from airflow_provider_service.client._models import parse_moment, wire_time
from airflow_provider_service.client._values import shown
from airflow_provider_service.client.errors import ServiceInputError

if TYPE_CHECKING:
    from airflow_provider_service.client.models import DataTable

#: The service misreads earlier years: 1 as 2001, and 99 as 1999.
MIN_YEAR = 100

#: A decimal such as 1E+999999999, written in full, would fill the memory.
MAX_DECIMAL_DIGITS = 10_000

_WIRE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_FINER_THAN_MILLISECONDS = re.compile(r"[.,]\d{3}\d*[1-9]")
_DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


def not_written(reason: str) -> ServiceInputError:
    """The error about rows or columns that do not fit, which is raised before anything is written."""
    return ServiceInputError(reason, not_done="nothing was written")


def column_types(table: DataTable) -> dict[str, str]:
    """Names and types of the columns that can be written, in the table's order."""
    return {column.name: column.type for column in sorted(table.columns or (), key=attrgetter("index"))}


def types_of_stored_rows(types: Mapping[str, str]) -> dict[str, str]:
    """All columns of stored rows with their types, in the order in which files have them."""
    first, *others = SYSTEM_COLUMNS
    return {first: "id", **types, **dict.fromkeys(others, "date")}


def check_columns(row: Mapping[str, Any], types: Mapping[str, str], place: str) -> None:
    require_row(row, place)
    unknown = [name for name in row if name not in types]
    if unknown:
        raise not_written(
            f"{place} has unknown columns {', '.join(map(shown, unknown))}; the table has {', '.join(types)}"
        )


def typed_row(row: Mapping[str, Any], types: Mapping[str, str], place: str) -> dict[str, Any]:
    """Convert the values of a row to the form in which the service will return them."""
    check_columns(row, types, place)
    return {name: _typed(value, types[name], place, name) for name, value in row.items()}


def typed_filter(filter: Any, types: Mapping[str, str]) -> Any:
    """Convert the numbers and booleans of a filter, as those of rows; the service would take empty text for 0.

    What is malformed is left to it, since it refuses that.
    """
    conditions = filter.get("filters") if isinstance(filter, Mapping) else None
    if not isinstance(conditions, (list, tuple)):
        return filter
    typed = []
    for condition in conditions:
        name = str(condition.get("columnName")) if isinstance(condition, Mapping) else ""
        column_type = "number" if name == "id" else types.get(name)
        if column_type in ("number", "boolean") and "value" in condition:
            typed.append({**condition, "value": _typed(condition["value"], column_type, "the filter", name)})
        else:
            typed.append(condition)
    return {**filter, "filters": typed}


def rounded_columns(given: Mapping[str, Any], typed: Mapping[str, Any], types: Mapping[str, str]) -> list[str]:
    """The columns of a row whose values the service stores less exactly than they were given."""
    return [name for name, value in given.items() if value is not None and _is_rounded(value, typed[name], types[name])]


def _typed(value: Any, column_type: str, place: str, name: str) -> Any:
    if value is None or column_type not in _READERS:
        return value
    try:
        return _READERS[column_type](value)
    except (ValueError, OverflowError):
        raise not_written(f"{place}, column {name!r}: {shown(value)} is not a value of type {column_type}") from None


def _string(value: Any) -> str:
    if isinstance(value, str):
        value.encode()  # lone surrogates are not valid text: the service would store something else
        return value
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return str(int(value))
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) < MAX_DECIMAL_DIGITS:
        return format(value, "f")
    if isinstance(value, date) and value == value:  # the missing date of pandas differs from itself
        return value.isoformat()
    raise ValueError(value)


def _number(value: Any) -> int | float:
    if isinstance(value, str) and not _DECIMAL.fullmatch(value.strip()):
        raise ValueError(value)
    if not isinstance(value, (str, int, float, Decimal)):
        raise ValueError(value)
    # The service stores doubles, and returns them with the fewest digits that distinguish them.
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(value)
    return int(Decimal(repr(number))) if number.is_integer() and abs(number) < 1e21 else number


def _is_rounded(given: Any, typed: Any, column_type: str) -> bool:
    if column_type == "number":
        try:
            return not isinstance(given, float) and Decimal(given) != Decimal(str(typed))
        except ArithmeticError:  # an exponent of more digits than any decimal has
            return True
    return column_type == "date" and is_finer_than_milliseconds(given)


def is_finer_than_milliseconds(date: Any) -> bool:
    """Whether the service, and :func:`date_text`, cut a date to an earlier one."""
    return _FINER_THAN_MILLISECONDS.search(str(date)) is not None


def _boolean(value: Any) -> bool:
    if not isinstance(value, (str, int, float)):
        raise ValueError(value)
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    word = text.strip().lower()
    if word not in _BOOLEANS:
        raise ValueError(value)
    return _BOOLEANS[word]


def date_text(value: Any) -> str:
    """Write a date as the service returns it: in UTC, with milliseconds. Without a time zone it means UTC."""
    if isinstance(value, datetime) and value.utcoffset() is not None:
        value = value.astimezone(UTC)  # offsets from before about 1900 have seconds, which the text must not have
    if isinstance(value, date):
        value = value.isoformat()
    if not isinstance(value, str):
        raise ValueError(value)
    moment = parse_moment(value).astimezone(UTC)
    if moment.year < MIN_YEAR:
        raise ValueError(value)
    return value if _WIRE_TIME.fullmatch(value) else wire_time(moment)


_READERS: dict[str, Callable[[Any], Any]] = {
    "string": _string,
    "number": _number,
    "boolean": _boolean,
    "date": date_text,
}
