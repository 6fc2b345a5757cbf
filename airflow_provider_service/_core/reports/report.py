"""A report: title, figures, charts, tables and listings, whatever the format."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

#: What a figure or a part of a bar means to the reader.
Tone = Literal["good", "bad", "plain"]


@dataclass(frozen=True)
class Link:
    """Text that leads to a page.

    :param url: address of the page; only a web address becomes a link.
    """

    text: str
    url: str

    @property
    def is_safe(self) -> bool:
        """Whether following the link only opens a web page."""
        return self.url.lower().startswith(("http://", "https://"))


Cell = str | int | float | Link | None


@dataclass(frozen=True)
class Figure:
    """A number, or a word, that sums up the report.

    :param note: a few words beside it, such as its change.
    """

    label: str
    value: Cell
    note: str = ""
    tone: Tone = "plain"


@dataclass(frozen=True)
class Table:
    """Rows of cells under the names of their columns."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"each row of the table {self.title!r} must have {len(self.columns)} cells")


@dataclass(frozen=True)
class Series:
    """What the parts at one position in all bars of a chart mean."""

    name: str
    tone: Tone = "plain"


@dataclass(frozen=True)
class Bar:
    """A bar of a chart.

    :param parts: the lengths of its parts, one for each series; none is negative.
    """

    label: str
    parts: Sequence[float]

    @property
    def length(self) -> float:
        """The length of the whole bar."""
        return sum(self.parts)


@dataclass(frozen=True)
class Chart:
    """Bars to compare, each of which may have several parts."""

    title: str
    series: Sequence[Series]
    bars: Sequence[Bar]
    note: str = ""

    def __post_init__(self) -> None:
        for bar in self.bars:
            if len(bar.parts) != len(self.series) or not all(math.isfinite(part) and part >= 0 for part in bar.parts):
                raise ValueError(f"bar {bar.label!r} must have {len(self.series)} parts that are not negative")


@dataclass(frozen=True)
class Listing:
    """Text whose lines and blanks are kept, such as a diff."""

    title: str
    text: str


Part = Table | Chart | Listing


@dataclass(frozen=True)
class Report:
    """What a task has found. Any of its texts may come from strangers, so every format escapes them.

    :param message: what was found, in a sentence.
    :param tone: whether that is good or bad.
    :param made_at: date and time at which the data was read.
    :param url: page of the service that the report is about.
    """

    title: str
    message: str
    made_at: datetime
    figures: Sequence[Figure] = ()
    parts: Sequence[Part] = ()
    tone: Tone = "plain"
    url: str | None = None


def shown(value: Cell) -> str:
    """A cell as text."""
    if value is None:
        return "–"  # noqa: RUF001
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if math.isfinite(value) and abs(value) >= 1000 else f"{value:.4g}"
    return value.text if isinstance(value, Link) else value


def numeric_columns(table: Table) -> list[bool]:
    """Whether each column of a table has only numbers, which are aligned to the right."""
    if not table.rows:
        return [False] * len(table.columns)
    return [all(map(_is_number, column)) for column in zip(*table.rows, strict=True)]


def _is_number(value: Cell) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def bar_words(chart: Chart, bar: Bar) -> str:
    """The lengths of a bar's parts in words."""
    if len(chart.series) == 1:
        return shown(bar.parts[0])
    named = zip(bar.parts, chart.series, strict=True)
    return ", ".join(f"{shown(part)} {series.name}" for part, series in named if part) or "0"
