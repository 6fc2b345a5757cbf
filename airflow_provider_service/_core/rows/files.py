"""Files of rows as CSV, JSON Lines and Parquet; the ending of the name chooses the format.

A file is written complete or not at all, and read as a stream, both in bounded memory. CSV has a reader and a writer of
its own, which distinguish empty text from null: Python's module does so only since Python 3.12, and its writer leaves
some line breaks unquoted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from io import TextIOWrapper
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

from airflow_provider_service._core.arguments import as_texts, require
from airflow_provider_service._core.object_storage import reading, require_path, require_place, whole_file
from airflow_provider_service._core.rows.frames import (
    arrow_schema,
    optional_library,
    python_rows,
    record_batches,
    require_plain_types,
)
from airflow_provider_service._core.rows.source_rows import NoteColumns, SourceRow, ignore_columns, require_distinct
from airflow_provider_service._core.rows.values import types_of_stored_rows
from airflow_provider_service.client._values import shown
from airflow_provider_service.client.errors import ServiceInputError

if TYPE_CHECKING:
    from types import ModuleType
    from typing import TextIO

    from airflow_provider_service._core.object_storage import StoredPath

#: Endings of the names of files of rows.
ENDINGS = (".csv", ".csv.gz", ".jsonl", ".jsonl.gz", ".parquet")

#: Characters that spreadsheets take for the start of a formula; the full-width ones count in East Asian locales.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
#: Maximum length of a row: many times what the service accepts, but little enough for memory.
MAX_ROW_CHARS = 64 * 1024**2
#: Maximum number of cells of a row in a CSV file.
MAX_CELLS = 100_000
#: Characters of a CSV file that are read at a time.
CHUNK_CHARS = 256 * 1024
#: Record batches that are written as one row group: small row groups are slow to read.
GROUP_BATCHES = 10
#: Rows that are read from a Parquet file at a time: a tiny file may hold the same long text in each of them.
READ_ROWS = 1_000

_UNQUOTED = re.compile(r"[^,\r\n]*")


def write_rows(
    path: StoredPath,
    types: Mapping[str, str],
    rows: Iterable[SourceRow],
    *,
    neutralize_formulas: bool = True,
    conn_id: str | None = None,
) -> int:
    """Write rows to a file, and return their number. Safe to repeat: the complete file replaces the existing one."""
    file_format = format_of("path", path, neutralize_formulas=neutralize_formulas)
    require_place("path", path, conn_id=conn_id)
    with whole_file("path", path, conn_id=conn_id) as file:
        return file_format.write(file, types, rows)


def read_rows(
    path: StoredPath, note_columns: NoteColumns = ignore_columns, *, conn_id: str | None = None
) -> Generator[SourceRow, None, None]:
    """Read the rows of a file; those of a ``.csv`` file hold only text and None. Safe to repeat."""
    file_format = format_of("path", path)
    with reading("path", path, conn_id=conn_id) as file:
        try:
            yield from file_format.read(file, note_columns)
        except ServiceInputError as error:
            raise ServiceInputError(f"{str(path)!r}: {error}") from error


def chosen_types(types: Mapping[str, str], columns: object, *, with_system_columns: bool) -> dict[str, str]:
    """The chosen columns with their types, in this order; for None, all, or all but those that the service writes."""
    types_of_all = types_of_stored_rows(types)
    if columns is None:
        return types_of_all if with_system_columns else dict(types)
    names = as_texts("columns", columns)
    unknown = [name for name in names if name not in types_of_all]
    require(not unknown, f"columns names {', '.join(unknown)}, which the table lacks; it has {', '.join(types_of_all)}")
    require(names and len(set(names)) == len(names), "columns must name at least one column, each once")
    return {name: types_of_all[name] for name in names}


def format_of(
    name: str, path: object, *, neutralize_formulas: bool = True
) -> CsvFormat | JsonLinesFormat | ParquetFormat:
    require_path(name, path)
    text = str(path)
    if not text.endswith(ENDINGS):
        raise ServiceInputError(f"{name} must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}, not {text!r}")
    if text.endswith(".parquet"):
        return ParquetFormat()
    is_csv = text.endswith((".csv", ".csv.gz"))
    return CsvFormat(neutralize_formulas=neutralize_formulas) if is_csv else JsonLinesFormat()


class CsvFormat:
    """A header and quoted text; null is an empty cell without quotes."""

    def __init__(self, *, neutralize_formulas: bool = True) -> None:
        self._neutralize_formulas = neutralize_formulas

    def write(self, file: IO[bytes], types: Mapping[str, str], rows: Iterable[SourceRow]) -> int:
        count = 0
        with _as_text(file) as text:
            text.write(",".join(types) + "\n")
            for row in rows:
                count += 1
                cells = (_csv_cell(row.get(name), self._neutralize_formulas) for name in types)
                text.write(",".join(cells) + "\n")
        return count

    def read(self, file: IO[bytes], note_columns: NoteColumns = ignore_columns) -> Iterator[SourceRow]:
        """Read rows, whose values are text or None. Empty lines are skipped if there are several columns."""
        with _as_text(file) as text:
            records = _CsvReader(text).records()
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


def _csv_cell(value: Any, neutralize_formulas: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)  # true and false, so that all kinds of files have the same values
    text = value if isinstance(value, str) else json.dumps(value)
    if neutralize_formulas and text.startswith(FORMULA_STARTS):
        text = f"'{text}"
    return '"' + text.replace('"', '""') + '"'


class _CsvReader:
    """Reads cells and the separators after them, with one chunk of the file and one cell in memory."""

    def __init__(self, text: TextIO) -> None:
        self._text = text
        self._chunk = ""
        self._at = 0
        self._line = self._first_line = 1
        self._row_chars = 0

    def records(self) -> Iterator[list[str | None]]:
        """Read lines of cells, as text; an empty cell without quotes is None, and an empty line is one such cell."""
        record: list[str | None] = []
        while True:
            record.append(self._cell())
            end = self._separator(len(record))
            if end == ",":
                continue
            if end or record != [None]:
                yield record
            record = []
            self._first_line, self._row_chars = self._line, 0
            if not end:
                return

    def _cell(self) -> str | None:
        if self._peek() == '"':
            self._at += 1
            return self._quoted()
        parts = []
        while True:
            match = _UNQUOTED.match(self._chunk, self._at)
            parts.append(match.group() if match else "")
            self._at += len(parts[-1])
            if self._at < len(self._chunk) or not self._peek():
                return "".join(parts) or None

    def _separator(self, number: int) -> str:
        """Read what follows a cell: a comma, a line break as ``"\\n"``, or ``""`` for the end of the file."""
        mark = self._peek()
        if mark not in ("", ",", "\r", "\n"):
            raise ServiceInputError(
                f"line {self._line}, cell {number}: after a closing quote comes {shown(mark)}, not a comma or a line "
                "break; nothing was written"
            )
        if mark == "," and number == MAX_CELLS:
            raise self._too_long(f"{MAX_CELLS:,} cells")
        self._at += len(mark)
        if mark == "\r" and self._peek() == "\n":
            self._at += 1
        if mark in ("", ","):
            return mark
        self._line += 1
        return "\n"

    def _quoted(self) -> str:
        parts = []
        first_line = self._line
        while True:
            end = self._chunk.find('"', self._at)
            stop = len(self._chunk) if end < 0 else end
            parts.append(self._chunk[self._at : stop])
            self._line += parts[-1].count("\n")
            self._at = stop
            if not self._peek():
                raise ServiceInputError(f"a quote that opens in line {first_line} is not closed; nothing was written")
            if end < 0:
                continue
            self._at += 1
            if self._peek() != '"':
                return "".join(parts)
            parts.append('"')
            self._at += 1

    def _too_long(self, limit: str) -> ServiceInputError:
        return ServiceInputError(f"the row in line {self._first_line} has more than {limit}; nothing was written")

    def _peek(self) -> str:
        """Return the next character without consuming it, or ``""`` at the end of the file."""
        if self._at >= len(self._chunk):
            self._chunk, self._at = self._text.read(CHUNK_CHARS), 0
            self._row_chars += len(self._chunk)
            if self._row_chars > MAX_ROW_CHARS:
                raise self._too_long(f"{MAX_ROW_CHARS:,} characters")
        return self._chunk[self._at : self._at + 1]


class JsonLinesFormat:
    def write(self, file: IO[bytes], types: Mapping[str, str], rows: Iterable[SourceRow]) -> int:
        count = 0
        with _as_text(file) as text:
            for row in rows:
                count += 1
                values = {name: row[name] for name in types if name in row}
                text.write(json.dumps(values, ensure_ascii=False, separators=(",", ":")) + "\n")
        return count

    def read(self, file: IO[bytes], note_columns: NoteColumns = ignore_columns) -> Iterator[SourceRow]:
        """Read rows; empty lines are skipped. Without rows, the names of the columns are unknown."""
        with _as_text(file, newline="\n") as text:
            lines = iter(partial(text.readline, MAX_ROW_CHARS + 1), "")
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _object(line, number)


def _with_distinct_keys(pairs: list[tuple[str, Any]]) -> SourceRow:
    row = dict(pairs)
    if len(row) < len(pairs):
        require_distinct((name for name, _ in pairs), "the object")
    return row


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


class ParquetFormat:
    """Record batches of typed columns; needs pyarrow, the extra ``parquet``."""

    def write(self, file: IO[bytes], types: Mapping[str, str], rows: Iterable[SourceRow]) -> int:
        arrow = _pyarrow()
        schema, batches = arrow_schema(arrow, types), record_batches(arrow, types, rows)
        count = 0
        with arrow.parquet.ParquetWriter(file, schema, write_page_checksum=True) as writer:
            while group := list(islice(batches, GROUP_BATCHES)):
                writer.write_table(arrow.Table.from_batches(group, schema))
                count += sum(map(len, group))
        return count

    def read(self, file: IO[bytes], note_columns: NoteColumns = ignore_columns) -> Iterator[SourceRow]:
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


def _pyarrow() -> ModuleType:
    arrow = optional_library("pyarrow", extra="parquet", user="Parquet")
    optional_library("pyarrow.parquet", extra="parquet", user="Parquet")
    return arrow


@contextmanager
def _damage_named(arrow: ModuleType) -> Iterator[None]:
    try:
        yield
    except (arrow.ArrowException, OSError) as error:
        # Unlike an error of the disk or the storage, Arrow's own error about a damaged file has no errno.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ServiceInputError(f"the file is not Parquet, or is damaged: {error}; nothing was written") from error


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
