"""Small tables in the log of a task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

#: Characters of a cell from which on it is cut.
MAX_CELL_CHARS = 60


def text_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lay out rows under their columns, a line each; numbers are aligned to the right."""
    lines = [columns, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    to_right = [all(row[place] == "-" or row[place][:1].isdigit() for row in rows) for place in range(len(columns))]
    for line in lines:
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, to_right, strict=True)
        ]
        yield "  ".join(cells).rstrip()


def first_of(texts: Sequence[str], most: int) -> str:
    return ", ".join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")


def cut(cell: str, longest: int = MAX_CELL_CHARS) -> str:
    """A cell that is not too long."""
    return cell if len(cell) <= longest else f"{cell[: longest - 3]}..."
