"""A report as one self-contained HTML page, which needs no script, no other file and no other server."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.reports.report import (
    Chart,
    Link,
    Listing,
    Report,
    Table,
    bar_words,
    numeric_columns,
    shown,
)
from airflow_provider_service._core.reports.text import printable

if TYPE_CHECKING:
    from jinja2 import BaseLoader, Environment, Template


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
