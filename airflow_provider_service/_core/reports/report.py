"""Reports for people: one model, which templates render as Markdown and as HTML, and which JSON holds as it is.

Any text of a report may come from strangers. Templates escape every value when they show it, so that nobody who writes
a template or a report can forget to. What even escaped text must not hold, ``printable`` replaces.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from airflow_provider_service._core.arguments import require
from airflow_provider_service._core.object_storage import require_place, write_whole
from airflow_provider_service.client._models import wire_time

if TYPE_CHECKING:
    from jinja2 import BaseLoader, Environment, Template
    from markupsafe import Markup

log = logging.getLogger(__name__)

#: What a figure or a part of a bar means to the reader.
Tone = Literal["good", "bad", "plain"]

#: The report on a plan says so, since the file looks the same whether the plan was then carried out, failed or refused.
WRITTEN_FIRST = "This report was written before anything was changed; it does not say whether the plan was carried out."

_LONGEST_BAR_CHARS = 30


@dataclass(frozen=True)
class Link:
    text: str
    url: str

    @property
    def is_safe(self) -> bool:
        """Whether following the link only opens a web page. Other addresses do not become links."""
        return self.url.lower().startswith(("http://", "https://"))


Cell = str | int | float | Link | None


@dataclass(frozen=True)
class Figure:
    """A number, or a word, that sums up the report, and a few words beside it, such as its change."""

    label: str
    value: Cell
    note: str = ""
    tone: Tone = "plain"


@dataclass(frozen=True)
class Table:
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"each row of the table {self.title!r} must have {len(self.columns)} cells")

    @property
    def are_numeric(self) -> list[bool]:
        """Whether each column has only numbers, which are aligned to the right."""
        if not self.rows:
            return [False] * len(self.columns)
        return [all(map(_is_number, column)) for column in zip(*self.rows, strict=True)]


def _is_number(value: Cell) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


@dataclass(frozen=True)
class Series:
    """What the parts at one position in all bars of a chart mean."""

    name: str
    tone: Tone = "plain"


@dataclass(frozen=True)
class Bar:
    """A bar of a chart, with one part for each series; no part is negative."""

    label: str
    parts: Sequence[float]


@dataclass(frozen=True)
class Chart:
    title: str
    series: Sequence[Series]
    bars: Sequence[Bar]
    note: str = ""

    def __post_init__(self) -> None:
        for bar in self.bars:
            if len(bar.parts) != len(self.series) or not all(math.isfinite(part) and part >= 0 for part in bar.parts):
                raise ValueError(f"bar {bar.label!r} must have {len(self.series)} parts that are not negative")

    @property
    def longest(self) -> float:
        return max((sum(bar.parts) for bar in self.bars), default=0)

    def words(self, bar: Bar) -> str:
        """The lengths of a bar's parts."""
        if len(self.series) == 1:
            return shown(bar.parts[0])
        named = zip(bar.parts, self.series, strict=True)
        return ", ".join(f"{shown(part)} {series.name}" for part, series in named if part) or "0"

    @property
    def table(self) -> Table:
        """The bars in characters."""
        longest = self.longest or 1
        lengths = [round(_LONGEST_BAR_CHARS * sum(bar.parts) / longest) for bar in self.bars]
        rows = [(bar.label, self.words(bar), "█" * length) for bar, length in zip(self.bars, lengths, strict=True)]
        return Table("", ("", "", ""), rows)


@dataclass(frozen=True)
class Listing:
    """Text whose lines and blanks are kept, such as a diff."""

    title: str
    text: str


@dataclass(frozen=True)
class Report:
    """What a task has found; ``tone`` says whether that is good or bad, and ``made_at`` when it was read."""

    title: str
    message: str
    made_at: datetime
    figures: Sequence[Figure] = ()
    parts: Sequence[Table | Chart | Listing] = ()
    tone: Tone = "plain"
    url: str | None = None

    @property
    def figures_table(self) -> Table:
        """The figures, for a format without boxes."""
        rows = [(figure.label, figure.value, figure.note) for figure in self.figures]
        return Table("", ("Figure", "Value", ""), rows)

    @property
    def link(self) -> Link | None:
        return None if self.url is None else Link(self.url, self.url)


def require_format(name: str, path: str) -> None:
    require(_format(path) is not None, f"{name} must end in {', '.join(_FORMATS)}, which is its format, not {path!r}")


def require_report_place(path: str | None) -> None:
    """Refuse a file whose suffix is not that of a format, or whose directory does not exist."""
    if path is not None:
        require_place("report_path", path)
        require_format("report_path", path)


def write_report(path: str | None, report: Callable[[], Report]) -> str | None:
    """Make a report, write it to a file, and return the file's address; None without a file. Safe to repeat."""
    if path is None:
        return None
    written = write_whole(path, rendered(report(), path))
    log.info("The report was written to %s", written)
    return written


def rendered(report: Report, path: str) -> bytes:
    require_format("path", path)
    text = _FORMATS[_format(path) or ""](report)
    # In JSON, half of a surrogate pair becomes its escape; the other formats replace it beforehand.
    return text.encode("utf-8", "backslashreplace")


def _format(path: str) -> str | None:
    return next((suffix for suffix in _FORMATS if path.lower().endswith(suffix)), None)


def _as_json(report: Report) -> str:
    parts = [{"kind": type(part).__name__.lower(), **asdict(part)} for part in report.parts]
    value = {**asdict(report), "made_at": wire_time(report.made_at), "parts": parts}
    return json.dumps(_without_nan(value), ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def _without_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_nan(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@cache
def _template(name: str, finalize: Callable[[Any], Any]) -> Template:
    from jinja2 import PackageLoader

    environment = template_environment(PackageLoader("airflow_provider_service._core.reports", ""), finalize)
    environment.filters.update(shown=shown, line=_line, fenced=_fenced)
    environment.tests.update(
        chart=lambda part: isinstance(part, Chart),
        listing=lambda part: isinstance(part, Listing),
        link=lambda cell: isinstance(cell, Link) and cell.is_safe,
    )
    return environment.get_template(name)


_FORMATS: Mapping[str, Callable[[Report], str]] = {
    ".md": lambda report: _template("page.md.jinja", _in_markdown).render(report=report),
    ".html": lambda report: _template("page.html.jinja", _in_html).render(report=report),
    ".json": _as_json,
}


def _in_html(value: Any) -> Any:
    return printable(value) if type(value) is str else value


def template_environment(loader: BaseLoader, finalize: Callable[[Any], Any] = _in_html) -> Environment:
    """The environment that renders pages. It makes everything that a template shows printable, and then escapes it."""
    from jinja2 import Environment, StrictUndefined

    return Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=loader,
    )


def shown(value: Cell) -> str:
    if value is None:
        return "–"  # noqa: RUF001
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if math.isfinite(value) and abs(value) >= 1000 else f"{value:.4g}"
    return value.text if isinstance(value, Link) else value


# Control characters, halves of surrogate pairs, reversals of the direction, and what XML and HTML do not allow.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")


def printable(text: str) -> str:
    """Replace the characters of a text that cannot be shown, or that would show it in another order."""
    return _UNPRINTABLE.sub("\ufffd", text.replace("\r\n", "\n"))


def on_one_line(text: str) -> str:
    return " ".join(printable(text).split())


# What Markdown might read as markup anywhere in a line, and what it would turn into a link by itself.
_MARKUP = re.compile(r"([\\`*_{}\[\]<>|#~&!$@])|(?<=[A-Za-z])(:)(?=//)|(?<=[Ww]{3})(\.)")
# What would begin a list, or underline the line before, at the start of a line.
_START = re.compile(r"^([-+=]|\d{1,9}(?=[.)]))")
# Characters that would end the address of a link.
_IN_ADDRESS = re.compile(r"[^\w\-.~:/?#@!$&'+,;=%]", re.ASCII)


def _in_markdown(value: Any) -> Markup:
    from markupsafe import Markup

    if isinstance(value, Markup):
        return value
    text = _MARKUP.sub(r"\\\g<0>", on_one_line(shown(value)))
    if isinstance(value, Link) and value.is_safe:
        address = _IN_ADDRESS.sub(lambda match: quote(match[0], safe="", errors="replace"), value.url)
        text = f"[{text}]({address.replace('_', '%5F')})" if text else f"<{address}>"
    return Markup(text)  # noqa: S704 - escaped for Markdown


def _line(text: str) -> Markup:
    """Text at the start of a line of Markdown."""
    from markupsafe import Markup

    line = _START.sub(lambda match: f"{match[0]}\\" if match[0].isdigit() else f"\\{match[0]}", _in_markdown(text))
    return Markup(line)  # noqa: S704 - escaped for Markdown


def _fenced(text: str) -> Markup:
    """Text as a block of Markdown, between fences that it does not contain."""
    from markupsafe import Markup

    text = printable(text)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return Markup(f"{fence}\n{text}\n{fence}")  # noqa: S704 - a fenced block needs no escapes
