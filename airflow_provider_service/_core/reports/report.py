"""A report: title, figures, charts, tables and listings, whatever the format.

The formats of a report, one of which the suffix of its file chooses.

A report as GitHub Flavored Markdown.

A report as one self-contained HTML page, which needs no script, no other file and no other server.

Prepare texts of strangers so that a page can show them.

Write reports to files, in the format that the suffix of the file chooses.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_service._core.arguments import require
from airflow_provider_service.client._models import wire_time

if TYPE_CHECKING:
    from jinja2 import BaseLoader, Environment, Template


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


# Control characters, halves of surrogate pairs, reversals of the direction, and what XML and HTML do not allow.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")


def printable(text: str) -> str:
    """Replace the characters of a text that cannot be shown, or that would show it in another order."""
    return _UNPRINTABLE.sub("\ufffd", text.replace("\r\n", "\n"))


def on_one_line(text: str) -> str:
    """Printable text without line breaks."""
    return " ".join(printable(text).split())


# What Markdown might read as markup anywhere in a line, and what it would turn into a link by itself.
_MARKUP = re.compile(r"([\\`*_{}\[\]<>|#~&!$@])|(?<=[A-Za-z])(:)(?=//)|(?<=[Ww]{3})(\.)")
# What would begin a list, or underline the line before, at the start of a line.
_START = re.compile(r"^([-+=]|\d{1,9}(?=[.)]))")
# Characters that would end the address of a link.
_IN_ADDRESS = re.compile(r"[^\w\-.~:/?#@!$&'*+,;=%]", re.ASCII)
_LONGEST_BAR = 30


def as_markdown(report: Report) -> str:
    """The report as Markdown."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"# {_escaped(report.title)}"
    yield from _paragraph(_line(report.message))
    yield from _paragraph(f"{report.made_at:%Y-%m-%d %H:%M:%S %Z}".strip())
    if report.url is not None:
        yield from _paragraph(_cell(Link(report.url, report.url)))
    if report.figures:
        yield ""
        figures = [(one.label, one.value, one.note) for one in report.figures]
        yield from _table(Table("", ("Figure", "Value", ""), figures))
    for part in report.parts:
        yield from ("", f"## {_escaped(part.title)}")
        yield from _part(part)


def _part(part: Part) -> Iterator[str]:
    if isinstance(part, Listing):
        yield ""
        yield from _listing(part.text)
        return
    if part.note:
        yield from _paragraph(_line(part.note))
    yield ""
    if isinstance(part, Chart):
        bars = [(bar.label, bar_words(part, bar), _bar(part, bar.length)) for bar in part.bars]
        yield from _table(Table("", ("", "", ""), bars))
    else:
        yield from _table(part)


def _bar(chart: Chart, length: float) -> str:
    longest = max(bar.length for bar in chart.bars)
    return "█" * round(_LONGEST_BAR * length / longest) if longest else ""


def _table(table: Table) -> Iterator[str]:
    if not table.columns:
        return
    yield _row(map(_escaped, table.columns))
    yield _row("--:" if is_numeric else "---" for is_numeric in numeric_columns(table))
    for row in table.rows:
        yield _row(map(_cell, row))


def _row(cells: Iterator[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: Cell) -> str:
    text = _escaped(shown(value))
    if isinstance(value, Link) and value.is_safe:
        address = _IN_ADDRESS.sub(_percent, value.url)
        return f"[{text}]({address.replace('_', '%5F').replace('*', '%2A')})" if text else f"<{address}>"
    return text


def _percent(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "replace"))


def _listing(text: str) -> Iterator[str]:
    lines = printable(text).split("\n")
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (fence, *lines, fence)


def _paragraph(line: str) -> Iterator[str]:
    yield from ("", line)


def _line(text: str) -> str:
    """Text at the start of a line."""
    return _START.sub(lambda found: f"\\{found[0]}" if not found[0].isdigit() else f"{found[0]}\\", _escaped(text))


def _escaped(text: str) -> str:
    return _MARKUP.sub(lambda found: f"\\{found[0]}", on_one_line(text))


def as_html(report: Report) -> str:
    """The report as a page that can be printed, with light and dark colours."""
    return _template().render(report=report)


@cache
def _template() -> Template:
    return _environment().from_string(
        files("airflow_provider_service._core.reports").joinpath("page.html.jinja").read_text(encoding="utf-8")
    )


def template_environment(loader: BaseLoader | None = None) -> Environment:
    """The environment that renders pages. It makes everything that a template shows printable, and then escapes it.

    :param loader: finds templates by name; None if they are given as texts.
    """
    from jinja2 import Environment, StrictUndefined

    return Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=loader,
    )


def _environment() -> Environment:
    environment = template_environment()
    environment.filters.update(
        shown=shown,
        bar_words=lambda bar, chart: bar_words(chart, bar),
        as_link=lambda url: Link(url, url),
        percent_of=lambda part, whole: f"{100 * part / whole:.3f}%" if whole else "0%",
        numeric_columns=numeric_columns,
    )
    environment.globals.update(longest=lambda chart: max((bar.length for bar in chart.bars), default=0))
    environment.tests.update(
        chart=lambda part: isinstance(part, Chart),
        listing=lambda part: isinstance(part, Listing),
        table=lambda part: isinstance(part, Table),
        link=lambda cell: isinstance(cell, Link) and cell.is_safe,
    )
    return environment


def _printable(value: Any) -> Any:
    return printable(value) if type(value) is str else value


def as_json(report: Report) -> str:
    """The report as JSON, with every text unchanged."""
    parts = [{"kind": type(part).__name__.lower(), **asdict(part)} for part in report.parts]
    value = {**asdict(report), "made_at": wire_time(report.made_at), "parts": parts}
    return json.dumps(_without_nan(value), ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def _without_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_nan(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


_FORMATS: Mapping[str, Callable[[Report], str]] = {".md": as_markdown, ".html": as_html, ".json": as_json}


def require_format(name: str, path: str) -> None:
    """Refuse a file whose suffix is not that of a format.

    :param name: name of the argument with the path.
    :raises ServiceInputError: the suffix is another one.
    """
    require(_format(path) is not None, f"{name} must end in {', '.join(_FORMATS)}, which is its format, not {path!r}")


def rendered(report: Report, path: str) -> bytes:
    """The report in the format that the suffix of a file chooses.

    :raises ServiceInputError: the suffix is not that of a format.
    """
    require_format("path", path)
    # In JSON, half of a surrogate pair becomes its escape; the other formats replace it beforehand.
    return _FORMATS[_format(path) or ""](report).encode("utf-8", "backslashreplace")


def _format(path: str) -> str | None:
    return next((suffix for suffix in _FORMATS if path.lower().endswith(suffix)), None)


log = logging.getLogger(__name__)

#: The report on a plan says so, since the file looks the same whether the plan was then carried out, failed or refused.
WRITTEN_FIRST = "This report was written before anything was changed; it does not say whether the plan was carried out."


def require_report_place(path: str | None) -> None:
    """Refuse a file to which no report could be written.

    :param path: the argument ``report_path``.
    :raises ServiceInputError: its suffix is not that of a format, or its directory does not exist.
    """
    if path is not None:
        from airflow_provider_service._core.object_storage import require_place

        require_place("report_path", path)
        require_format("report_path", path)


def write_report(path: str | None, report: Callable[[], Report]) -> str | None:
    """Write a report to a file, and return its address; None without a file. Safe to repeat.

    :param path: the argument ``report_path``, whose suffix chooses the format.
    :param report: makes the report.
    """
    if path is None:
        return None
    from airflow_provider_service._core.object_storage import write_whole

    written = write_whole(path, rendered(report(), path))
    log.info("The report was written to %s", written)
    return written
