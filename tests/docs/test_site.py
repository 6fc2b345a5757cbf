"""What the documentation site is made of, and how its pages are checked; ``make docs`` builds it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.site.api import api_pages, public_names
from scripts.site.check import mistakes
from scripts.site.examples import example_of
from scripts.site.links import page_of, with_links, with_pictures
from scripts.site.sources import ROOT, navigation, pages_of

from .test_documentation import PAGES

KINDS = ("Operator", "Sensor", "Notifier", "service_workflow")
PAGE = """<html><head><link rel="stylesheet" href="style.css"></head>
<body><h1 id="one">One</h1>{body}</body></html>"""


def test_every_page_is_in_the_navigation() -> None:
    listed = [*pages_of("guides"), *pages_of("reference")]
    files = [str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md")]

    assert sorted(page_of(file) for file in files if page_of(file) not in listed) == []
    assert len(set(listed)) == len(listed)


def test_the_readme_has_the_guides_of_the_navigation_by_their_titles() -> None:
    table = (ROOT / "README.md").read_text().partition("\n## Guides\n")[2].partition("\n## ")[0]
    rows = [row.strip("| ").split(" | ") for row in table.splitlines() if "](" in row]
    links = {group: re.findall(r"\[([^]]+)]\(([^)]+)\)", cell) for group, cell in rows}

    assert [
        {"title": group, "pages": [page_of(file) for _, file in found]} for group, found in links.items()
    ] == navigation()["guides"]
    for title, file in [link for found in links.values() for link in found if link[1].endswith(".md")]:
        assert (ROOT / file).read_text().startswith(f"# {title}\n")


@pytest.mark.slow
@pytest.mark.parametrize("group", ["Operators", "Transfers", "Sensors", "Notifier", "Task decorator"])
def test_everything_that_a_task_can_be_has_an_example(group: str) -> None:
    names = [name for page in api_pages()[group] for module in page.modules for name in public_names(module)]

    shown = [name for name in names if name.endswith(KINDS) and not name.endswith("DecoratedOperator")]
    assert [name for name in shown if example_of(name) is None] == []
    assert shown


def test_an_example_is_a_whole_statement_with_its_comment() -> None:
    example = example_of("ServiceDeleteExecutionsOperator")

    assert example is not None
    assert example.file == "example_dags/example_service_housekeeping.py"
    assert example.code.startswith(
        "# With preview=True, it only reports what it would delete.\ndelete_failed = Service"
    )
    assert example.code.endswith("max_deletions=5_000,\n)")


@pytest.mark.parametrize(
    ("file", "page"),
    [
        ("README.md", "index"),
        ("CONTRIBUTING.md", "contributing"),
        ("CODE_OF_CONDUCT.md", "code-of-conduct"),
        ("SECURITY.md", "security-policy"),
        ("docs/names.md", "names"),
        ("docs/decisions/README.md", "decisions/index"),
        ("docs/api/README.md", "api/index"),
        ("example_dags", "examples/index"),
        ("example_dags/example_service_first.py", "examples/example_service_first"),
    ],
)
def test_a_file_has_its_page(file: str, page: str) -> None:
    assert page_of(file) == page


def test_a_file_that_the_site_does_not_show_is_named() -> None:
    with pytest.raises(ValueError, match=r"constraints\.txt"):
        page_of("constraints.txt")


def test_links_are_replaced_but_not_in_code() -> None:
    text = "[`a`](../names.md#rule), [here](#there), [far](https://example.com/a.md)\n\n```\n[no](x.md)\n```\n`[no](x.md)`\n"

    replaced = with_links(text, "docs/decisions/bridge.md", lambda file, anchor: f"<{file} {anchor}>")

    assert replaced == text.replace("../names.md#rule", "<docs/names.md rule>")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_pictures_of_a_page_are_those_that_the_site_knows(page: Path) -> None:
    assert "<picture" not in with_pictures(page.read_text(), r"![\g<alt>](\g<light>) \g<dark>")


@pytest.mark.parametrize(
    ("body", "mistake"),
    [
        ('<a href="other.html#two">', None),
        ('<a href="#one">', None),
        ('<a href="https://example.com/none.html">', None),
        ('<a href="none.html">', "page.html links to none.html, which does not exist"),
        ('<a href="other.html#one">', "page.html links to other.html#one, and other.html has no such anchor"),
        ('<img src="none.png">', "page.html loads none.png, which does not exist"),
        (
            '<script src="https://a.example/a.js"></script>',
            "page.html loads https://a.example/a.js from another host",
        ),
        ('<script src="//a.example/a.js"></script>', "page.html loads //a.example/a.js from another host"),
    ],
)
def test_dead_links_and_assets_of_others_are_found(tmp_path: Path, body: str, mistake: str | None) -> None:
    (tmp_path / "style.css").write_text("")
    (tmp_path / "page.html").write_text(PAGE.format(body=body))
    (tmp_path / "other.html").write_text('<p id="two">')

    assert mistakes(tmp_path) == ([mistake] if mistake else [])


def test_pages_that_the_search_does_not_know_are_found(tmp_path: Path) -> None:
    for name in ("search", "known", "new"):
        (tmp_path / f"{name}.html").write_text("")
    (tmp_path / "searchindex.js").write_text('Search.setIndex({"docnames":["known","gone"],"terms":{}})')

    assert mistakes(tmp_path) == [
        "the search does not know new.html",
        "the search leads to gone.html, which does not exist",
    ]


def test_a_style_sheet_of_another_place_is_found(tmp_path: Path) -> None:
    (tmp_path / "style.css").write_text("@import url(https://example.com/font.css);")

    assert mistakes(tmp_path) == ["style.css loads from another place"]
