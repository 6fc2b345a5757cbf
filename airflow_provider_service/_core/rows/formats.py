"""Rows as CSV, JSON Lines and Parquet: written to and read from binary files, in bounded memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from io import TextIOWrapper
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

from airflow_provider_service._core.object_storage import require_path
from airflow_provider_service._core.rows.arrow import (
    arrow_schema,
    optional_library,
    python_rows,
    record_batches,
    require_plain_types,
)
from airflow_provider_service._core.rows.csv_cells import MAX_ROW_CHARS, csv_line, csv_records
from airflow_provider_service._core.rows.source_rows import NoteColumns, SourceRow, ignore_columns, require_distinct
from airflow_provider_service.client._values import shown
from airflow_provider_service.client.errors import ServiceInputError

if TYPE_CHECKING:
    from types import ModuleType


#: Record batches that are written as one row group: small row groups are slow to read.
GROUP_BATCHES = 10
#: Rows that are read from a Parquet file at a time: a tiny file may hold the same long text in each of them.
READ_ROWS = 1_000


class CsvFormat:
    """A header and quoted text; null is an empty cell without quotes.

    :param neutralize_formulas: put an apostrophe before text that looks like a formula.
    """

    def __init__(self, *, neutralize_formulas: bool = True) -> None:
        self._neutralize_formulas = neutralize_formulas

    def write(self, file: IO[bytes], types: Mapping[str, str], rows: Iterable[SourceRow]) -> int:
        """Write rows, one at a time, and return their number."""
        count = 0
        with _as_text(file) as text:
            text.write(",".join(types) + "\n")
            for row in rows:
                count += 1
                text.write(csv_line((row.get(name) for name in types), self._neutralize_formulas))
        return count

    def read(self, file: IO[bytes], note_columns: NoteColumns = ignore_columns) -> Iterator[SourceRow]:
        """Read rows, whose values are text or None. Empty lines are skipped if there are several columns.

        :raises ServiceInputError: the file is not UTF-8, it has no header, the header repeats a name, or a row has
            another number of cells.
        """
        with _as_text(file) as text:
            records = csv_records(text)
            header = next(records, None)
            if header is None:
                raise ServiceInputError("the file is empty: it lacks even the header; nothing was written")
            if len(set(header)) < len(header) or not all(header):
                raise ServiceInputError(f"the header must name each column once, not {shown(header)}")
            note_columns(map(str, header))
            present = (record for record in records if len(header) == 1 or record != [None])
            for number, record in enumerate(present, start=1):
                if len(record) != len(header):
                    raise ServiceInputError(
                        f"row {number} has {len(record)} cells, and the header has {len(header)}; nothing was written"
                    )
                yield dict(zip(header, record, strict=True))  # type: ignore[arg-type]


class JsonLinesFormat:
    """One JSON object a line."""

    def write(self, file: IO[bytes], types: Mapping[str, str], rows: Iterable[SourceRow]) -> int:
        """Write rows, one at a time, and return their number; missing columns of a row are left out."""
        count = 0
        with _as_text(file) as text:
            for row in rows:
                count += 1
                values = {name: row[name] for name in types if name in row}
                text.write(json.dumps(values, ensure_ascii=False, separators=(",", ":")) + "\n")
        return count

    def read(self, file: IO[bytes], note_columns: NoteColumns = ignore_columns) -> Iterator[SourceRow]:
        """Read rows; empty lines are skipped. Without rows, the names of the columns are unknown.

        :raises ServiceInputError: the file is not UTF-8, or a line is not a JSON object, has a key twice, or is too
            long.
        """
        with _as_text(file, newline="\n") as text:
            lines = iter(partial(text.readline, MAX_ROW_CHARS + 1), "")
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _object(line, number)


class ParquetFormat:
    """Record batches of typed columns; needs pyarrow, the extra ``parquet``."""

    def write(self, file: IO[bytes], types: Mapping[str, str], rows: Iterable[SourceRow]) -> int:
        """Write rows, a row group of a few record batches at a time, and return their number.

        :raises ServiceInputError: pyarrow is not installed.
        """
        arrow = _pyarrow()
        schema, batches = arrow_schema(arrow, types), record_batches(arrow, types, rows)
        count = 0
        with arrow.parquet.ParquetWriter(file, schema, write_page_checksum=True) as writer:
            while group := list(islice(batches, GROUP_BATCHES)):
                writer.write_table(arrow.Table.from_batches(group, schema))
                count += sum(map(len, group))
        return count

    def read(self, file: IO[bytes], note_columns: NoteColumns = ignore_columns) -> Iterator[SourceRow]:
        """Read rows as Python values, a record batch at a time.

        :raises ServiceInputError: pyarrow is not installed, or the file is not Parquet, is damaged, or has several
            columns of one name or a column of a type that no column of a data table can hold.
        """
        arrow = _pyarrow()
        with _damage_named(arrow):
            # Spark and Hive write dates as INT96, whose nanoseconds would only reach from 1677 to 2262.
            opened = arrow.parquet.ParquetFile(
                file, pre_buffer=False, page_checksum_verification=True, coerce_int96_timestamp_unit="us"
            )
        require_distinct(opened.schema_arrow.names, "the file")
        require_plain_types(arrow, opened.schema_arrow, "the file")
        note_columns(opened.schema_arrow.names)
        # Threads for decoding save no time here, and each keeps memory of its own, which grows with the row groups.
        batches = opened.iter_batches(batch_size=READ_ROWS, use_threads=False)
        while True:
            with _damage_named(arrow):
                batch = next(batches, None)
                rows = [] if batch is None else python_rows(arrow, batch)
            if batch is None:
                return
            yield from rows


#: Formats by the ending of a file's name.
FileFormat = CsvFormat | JsonLinesFormat | ParquetFormat
ENDINGS = (".csv", ".csv.gz", ".jsonl", ".jsonl.gz", ".parquet")


def format_of(name: str, path: object, *, neutralize_formulas: bool = True) -> FileFormat:
    """Choose the format by the ending of a file's name.

    :param name: the argument with the path.
    :raises ServiceInputError: the path has another ending.
    """
    require_path(name, path)
    text = str(path)
    if not text.endswith(ENDINGS):
        raise ServiceInputError(f"{name} must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}, not {text!r}")
    if text.endswith(".parquet"):
        return ParquetFormat()
    is_csv = text.endswith((".csv", ".csv.gz"))
    return CsvFormat(neutralize_formulas=neutralize_formulas) if is_csv else JsonLinesFormat()


@contextmanager
def _as_text(file: IO[bytes], *, newline: str = "") -> Iterator[TextIOWrapper]:
    # A byte order mark is only skipped, never written. Half a surrogate pair, which UTF-8 cannot encode, is written as
    # its escape sequence.
    encoding, errors = ("utf-8-sig", "strict") if file.readable() else ("utf-8", "backslashreplace")
    text = TextIOWrapper(file, encoding=encoding, errors=errors, newline=newline)
    try:
        yield text
        if file.writable():
            text.flush()
    except UnicodeDecodeError as error:
        raise ServiceInputError(f"the file is not text in UTF-8: {error}") from error
    finally:
        text.detach()


@contextmanager
def _damage_named(arrow: ModuleType) -> Iterator[None]:
    try:
        yield
    except (arrow.ArrowException, OSError) as error:
        # Unlike an error of the disk or the storage, Arrow's own error about a damaged file has no errno.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ServiceInputError(f"the file is not Parquet, or is damaged: {error}; nothing was written") from error


def _with_distinct_keys(pairs: list[tuple[str, Any]]) -> SourceRow:
    found = dict(pairs)
    if len(found) < len(pairs):
        require_distinct((name for name, _ in pairs), "the object")
    return found


def _with_all_digits(text: str) -> float | Decimal:
    """Return a number with a fraction or exponent as a float, or as a decimal if the float would lose digits."""
    number = float(text)
    try:
        exact = Decimal(text)
    except ArithmeticError:  # an exponent of more digits than any decimal has
        return number
    return number if Decimal(repr(number)) == exact else exact


_JSON = json.JSONDecoder(object_pairs_hook=_with_distinct_keys, parse_float=_with_all_digits)


def _object(line: str, number: int) -> SourceRow:
    if len(line) > MAX_ROW_CHARS:
        raise ServiceInputError(f"line {number} has more than {MAX_ROW_CHARS:,} characters; nothing was written")

    try:
        row = _JSON.decode(line)
    except ServiceInputError as error:
        raise ServiceInputError(f"line {number}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise ServiceInputError(f"line {number} is not JSON: {error}; nothing was written") from error
    if not isinstance(row, dict):
        raise ServiceInputError(f"line {number} is not a JSON object; nothing was written")
    return row


def _pyarrow() -> ModuleType:
    arrow = optional_library("pyarrow", extra="parquet", user="Parquet")
    optional_library("pyarrow.parquet", extra="parquet", user="Parquet")
    return arrow
