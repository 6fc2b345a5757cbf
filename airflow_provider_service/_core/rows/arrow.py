"""Rows as record batches of Arrow, and record batches as rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any

from airflow_provider_service.client._models import parse_moment
from airflow_provider_service.client.errors import ServiceInputError

if TYPE_CHECKING:
    from types import ModuleType

    from airflow_provider_service._core.rows.source_rows import SourceRow


#: Rows in a record batch: the rows of one batch at a time become Python values, which take much more memory.
BATCH_ROWS = 10_000


def optional_library(name: str, *, extra: str, user: str) -> ModuleType:
    """Load a library that only some features need.

    :param extra: the extra of this package that installs it.
    :param user: what needs it, for the message.
    :raises ServiceInputError: it is not installed.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        package = name.partition(".")[0]
        raise ServiceInputError(f"{user} needs {package}: pip install 'airflow-provider-service[{extra}]'") from error


def require_plain_types(arrow: ModuleType, schema: Any, owner: str) -> None:
    """Refuse columns that store something other than what they mean, for example the number of a month.

    Arrow's own extension types, such as that of JSON, have values of Python that mean the same.

    :param owner: what has the columns, for the message.
    :raises ServiceInputError: a column has the extension type of a library.
    """
    for field in schema:
        if isinstance(field.type, arrow.BaseExtensionType):
            name = field.type.extension_name
        else:  # or one whose library is not loaded
            name = (field.metadata or {}).get(b"ARROW:extension:name", b"").decode(errors="replace")
        if name and not name.startswith("arrow."):
            raise ServiceInputError(
                f"{owner}: column {field.name!r} has the type {name}, which no column of a data table can hold: "
                "convert it to text, or leave it out",
                not_done="nothing was written",
            )


def python_rows(arrow: ModuleType, batch: Any) -> Iterator[SourceRow]:
    """The rows of a record batch as Python values; nanoseconds are truncated to microseconds.

    :raises ServiceInputError: Python has no such value, for example a date after the year 9999.
    """
    names = batch.schema.names
    columns = [_python_values(arrow, name, column) for name, column in zip(names, batch.columns, strict=True)]
    return (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))


def arrow_schema(arrow: ModuleType, types: Mapping[str, str]) -> Any:
    """The schema of record batches for columns of these types."""
    return arrow.schema([(name, _arrow_type(arrow, kind)) for name, kind in types.items()])


def record_batches(arrow: ModuleType, types: Mapping[str, str], rows: Iterable[SourceRow]) -> Iterator[Any]:
    """Yield record batches of stored rows, with one in memory at a time.

    :param types: types by column, in the order of the schema.
    """
    schema, remaining = arrow_schema(arrow, types), iter(rows)
    while batch := list(islice(remaining, BATCH_ROWS)):
        columns = [[_arrow_value(row.get(name), kind) for row in batch] for name, kind in types.items()]
        arrays = [arrow.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
        yield arrow.record_batch(arrays, schema=schema)


def _python_values(arrow: ModuleType, name: str, column: Any) -> list[Any]:
    try:
        if arrow.types.is_timestamp(column.type) and column.type.unit == "ns":
            column = column.cast(arrow.timestamp("us", column.type.tz), safe=False)
        values: list[Any] = column.to_pylist()
    except (ValueError, OverflowError) as error:
        raise ServiceInputError(
            f"column {name!r} has a value that cannot be read: {error}", not_done="nothing was written"
        ) from error
    return values


def _arrow_type(arrow: ModuleType, kind: str) -> Any:
    if kind == "date":
        return arrow.timestamp("ms", "UTC")
    return {"id": arrow.int64(), "number": arrow.float64(), "boolean": arrow.bool_()}.get(kind, arrow.string())


def _arrow_value(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == "date":
        return parse_moment(value)
    if kind == "number":
        return float(value)
    if kind in ("id", "boolean"):
        return value
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode("utf-8", "backslashreplace").decode()
