"""Every format of a report shows all of it, and nothing in it becomes markup, whatever the texts are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from airflow_provider_service._core.reports.report import (
    Bar,
    Chart,
    Figure,
    Link,
    Listing,
    Report,
    Series,
    Table,
    on_one_line,
    printable,
    rendered,
)
from airflow_provider_service.client.errors import ServiceInputError

MADE_AT = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
PAGE = "https://service.example.com/home"
HOSTILE = [
    "<script>alert(1)</script>",
    "</style></title></pre><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "' autofocus onfocus='alert(1)",
    "[click](javascript:alert(1)) ![i](http://evil.example/x.png) <https://evil.example>",
    "https://evil.example",
    "see https://evil.example www.evil.example a@evil.example",
    "a | b\n| --- |\n# title\n\n- item\n1. one\n> quote\n---\n```\nfence",
    "`code` *em* __strong__ ~~gone~~ &lt; &#60; \\ $x$",
    "{{ 7 * 7 }} {% raw %} {# x #}",
    "\x00\x1b[31m\u202egnp.exe\u2066\ud800\r\ufeff",
]
texts = st.sampled_from(HOSTILE) | st.text(max_size=60).filter(on_one_line)
#: A text that occurs nowhere else in a report.
PLAIN = "Zebra"


def is_web_address(text: str) -> bool:
    return text.lower().startswith(("http://", "https://"))


def whole_report(text: str) -> Report:
    """A report with a text at every place that takes one."""
    return Report(
        text,
        text,
        MADE_AT,
        figures=[Figure(text, text, text), Figure("number", 1234567)],
        parts=[
            Chart(text, [Series(text), Series(text, "bad")], [Bar(text, [3, 1])], text),
            Table(text, [text, "n"], [[text, 1.5], [Link(text, PAGE), None], [Link(text, text), 2]], text),
            Listing(text, text),
        ],
        url=PAGE,
    )


class Page(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def attributes(self) -> set[tuple[str, str]]:
        return {(tag, name) for tag, attributes in self.elements for name in attributes}


def page_of(report: Report) -> Page:
    return Page(rendered(report, "report.html").decode())


@given(texts)
@example("HTTP://")
def test_no_text_becomes_html(text: str) -> None:
    plain, page = page_of(whole_report(PLAIN)), page_of(whole_report(text))

    assert sum(printable(text) in one for one in page.texts) >= sum(PLAIN in one for one in plain.texts) > 15
    addresses = {one["href"] for tag, one in page.elements if tag == "a"}
    assert addresses == ({PAGE, printable(text)} if is_web_address(text) else {PAGE})
    if not is_web_address(text):
        assert [tag for tag, _ in page.elements] == [tag for tag, _ in plain.elements]
        assert page.attributes() == plain.attributes()


def test_a_page_needs_nothing_else() -> None:
    page = page_of(whole_report("text"))

    assert not {"script", "link", "img", "iframe", "base"} & {tag for tag, _ in page.elements}
    assert not {"src", "style", "onload"} & {name for _, name in page.attributes()}
    [policy] = [one["content"] for tag, one in page.elements if one.get("http-equiv") == "Content-Security-Policy"]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


def tokens_of(report: Report) -> Iterator[Any]:
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    for block in reader.parse(rendered(report, "report.md").decode()):
        yield block
        yield from block.children or ()


@given(texts)
@example("HTTP://")
def test_no_text_becomes_markdown(text: str) -> None:
    plain, tokens = list(tokens_of(whole_report(PLAIN))), list(tokens_of(whole_report(text)))

    if not is_web_address(text):
        assert kinds(tokens) == kinds(plain)
        assert {token.attrs["href"] for token in tokens if token.type == "link_open"} == {PAGE}
    seen, seen_of_plain = shown(tokens), shown(plain)
    assert sum(on_one_line(text) in one for one in seen) >= sum(PLAIN in one for one in seen_of_plain) > 12
    [listing] = [token.content for token in tokens if token.type == "fence"]
    assert listing == printable(text) + "\n"


def kinds(tokens: list[Any]) -> list[str]:
    return [token.type for token in tokens if token.type not in ("text", "text_special")]


def shown(tokens: list[Any]) -> list[str]:
    """The text of each paragraph, title and cell."""
    inline = [token.children or () for token in tokens if token.type == "inline"]
    return ["".join(one.content for one in children if one.type.startswith("text")) for children in inline]


@pytest.mark.parametrize(
    "url",
    ["https://a.example/)](javascript:alert(1))", "https://a.example/<b>", 'https://a.example/ "x"', "HTTP://a b_*"],
)
def test_an_address_does_not_leave_its_link(url: str) -> None:
    report = Report("t", "m", MADE_AT, parts=[Table("t", ["c"], [[Link("text", url)]])])
    tokens = list(tokens_of(report))
    [address] = [token.attrs["href"] for token in tokens if token.type == "link_open"]
    assert unquote(str(address)) == url
    assert shown(tokens)[-1] == "text"


@pytest.mark.parametrize("text", ["https://evil.example", "www.evil.example", "WWW.evil.example", "a@evil.example"])
def test_addresses_do_not_become_links_by_themselves(text: str) -> None:
    # GitHub makes links of these, unless a backslash stands in their middle.
    report = Report("t", text, MADE_AT, parts=[Table("t", ["c"], [[text]])])
    assert text not in rendered(report, "report.md").decode()


@given(texts)
def test_json_holds_every_text_as_it_is(text: str) -> None:
    value = json.loads(rendered(whole_report(text), "report.json"))

    assert (value["title"], value["made_at"], value["url"]) == (text, "2026-01-31T12:00:00.000Z", PAGE)
    chart, table, listing = value["parts"]
    assert (chart["kind"], table["kind"], listing["kind"]) == ("chart", "table", "listing")
    assert chart["bars"] == [{"label": text, "parts": [3, 1]}]
    assert table["rows"] == [[text, 1.5], [{"text": text, "url": PAGE}, None], [{"text": text, "url": text}, 2]]
    assert listing["text"] == text


def test_bars_are_as_long_as_their_parts() -> None:
    chart = Chart(
        "c", [Series("good", "good"), Series("bad", "bad")], [Bar("a", [3, 1]), Bar("b", [0, 2]), Bar("c", [0, 0])]
    )
    report = Report("t", "m", MADE_AT, parts=[chart])

    drawn = [one for tag, one in page_of(report).elements if tag == "rect" and "x" in one]
    assert [(one["class"], one["x"], one["width"]) for one in drawn] == [
        ("good", "0.000%", "75.000%"),
        ("bad", "75.000%", "25.000%"),
        ("bad", "0.000%", "50.000%"),
    ]
    rows = [line for line in rendered(report, "r.md").decode().splitlines() if line.startswith(("| a", "| b", "| c"))]
    assert rows == [f"| a | 3 good, 1 bad | {30 * '█'} |", f"| b | 2 bad | {15 * '█'} |", "| c | 0 |  |"]


@pytest.mark.parametrize(("count", "classes"), [(20, "bars"), (21, "bars dense")])
def test_many_bars_take_a_line_each(count: int, classes: str) -> None:
    chart = Chart("c", [Series("good")], [Bar("a", [1])] * count)
    elements = page_of(Report("t", "m", MADE_AT, parts=[chart])).elements
    assert [one["class"] for tag, one in elements if tag == "ol"] == [classes]


def test_numbers_are_aligned_and_shown_in_short() -> None:
    rows = [[1234567, 0.123456, "x", True], [None, 12345.6, "y", False]]
    report = Report("t", "m", MADE_AT, parts=[Table("t", ["a", "b", "c", "d"], rows)])

    lines = rendered(report, "r.md").decode().splitlines()
    assert lines[-3:] == [
        "| --: | --: | --- | --- |",
        "| 1,234,567 | 0.1235 | x | yes |",
        "| – | 12,346 | y | no |",  # noqa: RUF001
    ]
    assert [one["class"] for tag, one in page_of(report).elements if tag == "td" and "class" in one] == ["number"] * 4


def test_what_is_not_a_number_is_nothing_in_json() -> None:
    report = Report("t", "m", MADE_AT, figures=[Figure("f", float("nan"))])
    assert json.loads(rendered(report, "r.JSON"))["figures"][0]["value"] is None


@pytest.mark.parametrize("parts", [[1], [1, -1], [1, float("nan")], [1, float("inf")]])
def test_a_bar_that_cannot_be_drawn_is_refused(parts: list[float]) -> None:
    with pytest.raises(ValueError, match="bar 'b' must have 2 parts that are not negative"):
        Chart("c", [Series("x"), Series("y")], [Bar("b", parts)])


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="each row of the table 't' must have 2 cells"):
        Table("t", ["a", "b"], [["x"]])


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(ServiceInputError, match=r"must end in .md, .html, .json, which is its format, not 'r.pdf'"):
        rendered(Report("t", "m", MADE_AT), "r.pdf")


def test_a_table_without_columns_shows_its_note_only() -> None:
    report = Report("t", "m", MADE_AT, parts=[Table("nothing", [], [], "Nothing was found.")])
    assert rendered(report, "r.md").decode().endswith("## nothing\n\nNothing was found.\n\n")
    assert "table" not in {tag for tag, _ in page_of(report).elements}
