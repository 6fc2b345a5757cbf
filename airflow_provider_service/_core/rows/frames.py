"""Read DataFrames and streams of any library as rows, and turn stored rows into Arrow tables or pandas DataFrames.

Only a batch of rows at a time exists as Python values, which take much more memory than Arrow's.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.rows.source_rows import NoteColumns, SourceRow, ignore_columns, require_distinct
from airflow_provider_service._core.rows.values import not_written
from airflow_provider_service.client._models import parse_moment
from airflow_provider_service.client._values import shown
from airflow_provider_service.client.errors import ServiceInputError

if TYPE_CHECKING:
    from types import ModuleType

#: Rows of a DataFrame or table that become Python values at a time.
FRAME_ROWS = 10_000


def rows_in(given: Any, note_columns: NoteColumns = ignore_columns) -> Generator[Any, None, None]:
    """Yield the unchecked rows of a DataFrame, an Arrow table, or an iterable of rows or such tables, as a stream."""
    if is_frame(given):
        yield from _frame_rows(given, note_columns)
        return
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        hint = ": collect() it first" if hasattr(given, "collect") else ""
        raise ServiceInputError(
            "rows must be a DataFrame, or mappings of columns to values in a list or a generator, not "
            f"{type(given).__name__}{hint}; nothing was written"
        )
    for item in given:
        # The quick test comes first, since most items are plain rows, and there may be millions of them.
        if not isinstance(item, dict) and is_frame(item):
            yield from _frame_rows(item, note_columns)
        else:
            yield item


def is_frame(given: Any) -> bool:
    return any(hasattr(given, name) for name in ("__arrow_c_stream__", "__arrow_c_array__", "__dataframe__"))


def _frame_rows(frame: Any, note_columns: NoteColumns) -> Generator[SourceRow, None, None]:
    pandas = sys.modules.get("pandas")  # if it is not loaded, nothing is a pandas DataFrame
    is_pandas = pandas is not None and isinstance(frame, getattr(pandas, "DataFrame", ()))
    return (_pandas_rows if is_pandas else _arrow_rows)(frame, note_columns)


def _pandas_rows(frame: Any, note_columns: NoteColumns) -> Generator[SourceRow, None, None]:
    """A named index becomes a column. Arrow would refuse a column whose values have several types."""
    levels = [level for level in frame.index.names if level is not None]
    names = [*levels, *frame.columns]
    _require_names(names)
    note_columns(names)
    for start in range(0, len(frame), FRAME_ROWS):
        chunk = frame.iloc[start : start + FRAME_ROWS]
        chunk = chunk.reset_index(level=levels) if levels else chunk
        columns = [_pandas_values(name, chunk.iloc[:, position]) for position, name in enumerate(names)]
        for values in zip(*columns, strict=True):
            yield dict(zip(names, values, strict=True))


def _pandas_values(name: str, column: Any) -> list[Any]:
    # pandas marks missing values in many ways, NaN among them.
    pairs = zip(column.tolist(), column.isna().tolist(), strict=True)
    try:
        return [None if is_missing else _python_value(value) for value, is_missing in pairs]
    except (ValueError, OverflowError) as error:
        raise not_written(f"rows: column {name!r} has a value that cannot be read: {error}") from error


def _python_value(value: Any) -> Any:
    if isinstance(value, date) and hasattr(value, "to_pydatetime"):
        return value.to_pydatetime(warn=False)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.number, numpy.bool_)):
        return value.item()
    return value


def _arrow_rows(frame: Any, note_columns: NoteColumns) -> Generator[SourceRow, None, None]:
    arrow = optional_library("pyarrow", extra="arrow", user=f"a {type(frame).__name__} as rows")
    with _explained(arrow, frame):
        reader = _reader(arrow, frame)
    _require_names(reader.schema.names)
    note_columns(reader.schema.names)
    require_plain_types(arrow, reader.schema, "rows")
    batches = iter(reader)
    while True:
        with _explained(arrow, frame):
            batch = next(batches, None)
        if batch is None:
            return
        for start in range(0, batch.num_rows, FRAME_ROWS):
            with _explained(arrow, frame):
                rows = list(python_rows(arrow, batch.slice(start, FRAME_ROWS)))
            yield from rows


def _reader(arrow: ModuleType, frame: Any) -> Any:
    if hasattr(frame, "__arrow_c_stream__"):
        return arrow.RecordBatchReader.from_stream(frame)
    if hasattr(frame, "__arrow_c_array__"):
        batch = arrow.record_batch(frame)
        return arrow.RecordBatchReader.from_batches(batch.schema, [batch])
    interchange = optional_library("pyarrow.interchange", extra="arrow", user=f"a {type(frame).__name__} as rows")
    return interchange.from_dataframe(frame).to_reader()


def _require_names(names: Iterable[Any]) -> None:
    columns = list(names)
    others = [name for name in columns if not isinstance(name, str)]
    if others:
        raise ServiceInputError(
            f"rows: the names of columns must be text, not {shown(others[0])}: rename them; nothing was written"
        )
    require_distinct(columns, "rows")


@contextmanager
def _explained(arrow: ModuleType, frame: Any) -> Iterator[None]:
    try:
        yield
    except ServiceInputError as error:
        raise ServiceInputError(f"rows: {error}") from error
    except (arrow.ArrowException, ValueError, TypeError, OverflowError, NotImplementedError) as error:
        raise ServiceInputError(
            f"rows: the {type(frame).__name__} cannot be read as rows: {error}; nothing was written"
        ) from error


def require_plain_types(arrow: ModuleType, schema: Any, owner: str) -> None:
    """Refuse columns that store something other than what they mean, for example the number of a month."""
    for field in schema:
        if isinstance(field.type, arrow.BaseExtensionType):
            name = field.type.extension_name
        else:  # or one whose library is not loaded
            name = (field.metadata or {}).get(b"ARROW:extension:name", b"").decode(errors="replace")
        if name and not name.startswith("arrow."):
            raise not_written(
                f"{owner}: column {field.name!r} has the type {name}, which no column of a data table can hold: "
                "convert it to text, or leave it out"
            )


def python_rows(arrow: ModuleType, batch: Any) -> Iterator[SourceRow]:
    """The rows of a record batch as Python values; nanoseconds are truncated to microseconds."""
    names = batch.schema.names
    columns = [_python_values(arrow, name, column) for name, column in zip(names, batch.columns, strict=True)]
    return (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))


def _python_values(arrow: ModuleType, name: str, column: Any) -> list[Any]:
    try:
        if arrow.types.is_timestamp(column.type) and column.type.unit == "ns":
            column = column.cast(arrow.timestamp("us", column.type.tz), safe=False)
        values: list[Any] = column.to_pylist()
    except (ValueError, OverflowError) as error:
        raise not_written(f"column {name!r} has a value that cannot be read: {error}") from error
    return values


def arrow_table(types: Mapping[str, str], rows: Iterable[SourceRow]) -> Any:
    arrow = optional_library("pyarrow", extra="arrow", user="an Arrow table")
    return arrow.Table.from_batches(record_batches(arrow, types, rows), arrow_schema(arrow, types))


def pandas_frame(types: Mapping[str, str], rows: Iterable[SourceRow]) -> Any:
    """Build a pandas DataFrame of stored rows, whose types do not depend on the values: booleans may be ``pd.NA``."""
    pandas = optional_library("pandas", extra="pandas", user="a DataFrame of pandas")
    arrow = optional_library("pyarrow", extra="pandas", user="a DataFrame of pandas")
    own_types = {arrow.bool_(): pandas.BooleanDtype()}
    return arrow_table(types, rows).to_pandas(types_mapper=own_types.get, split_blocks=True, self_destruct=True)


def record_batches(arrow: ModuleType, types: Mapping[str, str], rows: Iterable[SourceRow]) -> Iterator[Any]:
    schema, remaining = arrow_schema(arrow, types), iter(rows)
    while batch := list(islice(remaining, FRAME_ROWS)):
        columns = [[_arrow_value(row.get(name), kind) for row in batch] for name, kind in types.items()]
        arrays = [arrow.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
        yield arrow.record_batch(arrays, schema=schema)


def arrow_schema(arrow: ModuleType, types: Mapping[str, str]) -> Any:
    arrow_types = {
        "id": arrow.int64(),
        "number": arrow.float64(),
        "boolean": arrow.bool_(),
        "date": arrow.timestamp("ms", "UTC"),
    }
    return arrow.schema([(name, arrow_types.get(kind, arrow.string())) for name, kind in types.items()])


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


def optional_library(name: str, *, extra: str, user: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        package = name.partition(".")[0]
        raise ServiceInputError(f"{user} needs {package}: pip install 'airflow-provider-service[{extra}]'") from error
