"""The page of pauses and limits is what the code says."""

from __future__ import annotations

from scripts import limits


def test_the_page_lists_what_the_code_has() -> None:
    assert limits.PAGE.read_text().partition("\n## ")[2] == limits.tables().removeprefix("## ") + "\n", (
        "python -m scripts.limits --write renews docs/limits.md"
    )


def test_every_kind_of_wait_has_limits() -> None:
    page = limits.tables()
    assert all(f"## {section}\n" in page for section in limits.SECTIONS)
    assert limits.shown("TEN_SECONDS", 10.0) == "10 s"
