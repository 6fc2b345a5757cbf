"""A report as GitHub Flavored Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator

from airflow_provider_service._core.reports.report import (
    Cell,
    Chart,
    Link,
    Listing,
    Part,
    Report,
    Table,
    bar_words,
    numeric_columns,
    shown,
)
from airflow_provider_service._core.reports.text import on_one_line, printable

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
