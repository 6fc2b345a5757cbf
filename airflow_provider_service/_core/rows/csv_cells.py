"""Lines of CSV files, which distinguish empty text from null.

Python's own module does not suffice: its writer leaves some line breaks unquoted, and it distinguishes empty text from
null only since Python 3.12.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from airflow_provider_service.client._values import shown
from airflow_provider_service.client.errors import ServiceInputError

if TYPE_CHECKING:
    from typing import TextIO

#: Characters that spreadsheets take for the start of a formula; the full-width ones count in East Asian locales.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")

#: Maximum length and number of cells of a row: many times what the service accepts, but little enough for memory.
MAX_ROW_CHARS = 64 * 1024**2
MAX_CELLS = 100_000

_CHUNK_CHARS = 256 * 1024
_PLAIN = re.compile(r"[^,\r\n]*")


def csv_line(values: Iterable[Any], neutralize_formulas: bool) -> str:
    """Format a row as a line: text is quoted, and null is an empty cell.

    :param neutralize_formulas: put an apostrophe before text that looks like a formula.
    """
    return ",".join(_cell(value, neutralize_formulas) for value in values) + "\n"


def csv_records(text: TextIO) -> Iterator[list[str | None]]:
    """Read lines of cells, as text; an empty cell without quotes is None, and an empty line is one such cell.

    :param text: opened with ``newline=""``.
    :raises ServiceInputError: a quote is not closed, or is followed by something other than a comma or a line break, or
        a row is too long.
    """
    reader = _Reader(text)
    record: list[str | None] = []
    while True:
        cell = reader.cell()
        record.append(cell)
        end = reader.separator(len(record))
        if end == ",":
            continue
        if end or record != [None]:
            yield record
        record = []
        reader.begin_row()
        if not end:
            return


class _Reader:
    """Reads cells and the separators after them, with one chunk of the file and one cell in memory."""

    def __init__(self, text: TextIO) -> None:
        self._text = text
        self._chunk = ""
        self._at = 0
        self._line = self._first_line = 1
        self._row_chars = 0

    def begin_row(self) -> None:
        """Begin to count the characters of a row, whose length is limited."""
        self._first_line, self._row_chars = self._line, 0

    def cell(self) -> str | None:
        """Read the next cell."""
        if self._peek() == '"':
            self._at += 1
            return self._quoted()
        parts = []
        while True:
            match = _PLAIN.match(self._chunk, self._at)
            parts.append(match.group() if match else "")
            self._at += len(parts[-1])
            if self._at < len(self._chunk) or not self._peek():
                return "".join(parts) or None

    def separator(self, number: int) -> str:
        """Read what follows a cell: a comma, a line break as ``"\\n"``, or ``""`` for the end of the file.

        :param number: number of the cell, for the message.
        """
        found = self._peek()
        if found not in ("", ",", "\r", "\n"):
            raise ServiceInputError(
                f"line {self._line}, cell {number}: after a closing quote comes {shown(found)}, not a comma or a line "
                "break; nothing was written"
            )
        if found == "," and number == MAX_CELLS:
            raise self._too_long(f"{MAX_CELLS:,} cells")
        self._at += len(found)
        if found == "\r" and self._peek() == "\n":
            self._at += 1
        if found in ("", ","):
            return found
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
            self._chunk, self._at = self._text.read(_CHUNK_CHARS), 0
            self._row_chars += len(self._chunk)
            if self._row_chars > MAX_ROW_CHARS:
                raise self._too_long(f"{MAX_ROW_CHARS:,} characters")
        return self._chunk[self._at : self._at + 1]


def _cell(value: Any, neutralize_formulas: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)  # true and false, so that all kinds of files have the same values
    text = value if isinstance(value, str) else json.dumps(value)
    if neutralize_formulas and text.startswith(FORMULA_STARTS):
        text = f"'{text}"
    return '"' + text.replace('"', '""') + '"'
