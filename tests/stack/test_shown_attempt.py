"""The tab of a task's execution shows the attempt that is chosen in Airflow, around it, or on the tab itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from airflow_provider_service._core.pages.task_view import AttemptView
from tests.databases.debian import Progress
from tests.pages import workflows

from . import execution_page
from .browser import Browser
from .conftest import STACK_FOLDER
from .execution_page import ExecutionPage

ATTEMPTS = [AttemptView(number, "failed", execution_id=str(number)) for number in (3, 2, 1)]


@pytest.fixture(scope="module")
def page() -> Iterator[ExecutionPage]:
    with ExecutionPage(workflows.chain(3), replace(execution_page.TASK, attempts=ATTEMPTS, number=3)) as page:
        yield page


@pytest.fixture(scope="module")
def browser(page: ExecutionPage, progress: Progress) -> Iterator[Browser]:
    with Browser(page.address, STACK_FOLDER / "screenshots-of-attempts", progress=progress) as browser:
        yield browser


@pytest.fixture
def open_around(browser: Browser, page: ExecutionPage) -> Callable[[str], None]:
    """``open_around("?try_number=2")`` opens Airflow's page at this address."""

    def open_page(query: str) -> None:
        page.asked.clear()
        browser.open(f"/around{query}")

    return open_page


def go_to(browser: Browser, query: str) -> None:
    """Let Airflow's page go to another address, as it does without loading anything."""
    browser.run("history.pushState({}, '', arguments[0])", f"/around{query}")


def wait_for_attempt(browser: Browser, number: int) -> None:
    with browser.inside("//iframe"):
        browser.find(f"//*[normalize-space()='Attempt {number} of 3']")


def let_it_look(browser: Browser) -> None:
    """Wait until the page has looked at Airflow's address again, which it does every second."""
    with browser.inside("//iframe"):
        browser.run("window.seconds = 0; setInterval(() => { window.seconds += 1; }, 1000)")
        browser.wait_for("return window.seconds >= 3")


def test_it_shows_the_attempt_that_airflow_shows(
    open_around: Callable[[str], None], browser: Browser, page: ExecutionPage
) -> None:
    open_around("?try_number=2")
    wait_for_attempt(browser, 2)
    assert page.asked == ["/page", "/page?try_number=2"]

    go_to(browser, "?try_number=1")
    wait_for_attempt(browser, 1)
    go_to(browser, "")
    wait_for_attempt(browser, 3)

    assert page.asked[2:] == ["/page?try_number=1", "/page"]
    assert not browser.errors()


@pytest.mark.parametrize("chosen", ["", "0", "-1", "1e1", "2.0", "x", "%3Cscript%3E", "1%26part=view", "9999999999"])
def test_it_stays_at_the_latest_attempt_if_airflow_shows_no_other(
    open_around: Callable[[str], None], browser: Browser, page: ExecutionPage, chosen: str
) -> None:
    open_around(f"?try_number={chosen}")
    wait_for_attempt(browser, 3)

    let_it_look(browser)

    assert page.asked == ["/page"]


def test_it_asks_for_nothing_while_airflow_shows_the_same_attempt(
    open_around: Callable[[str], None], browser: Browser, page: ExecutionPage
) -> None:
    open_around("?try_number=2")
    wait_for_attempt(browser, 2)
    page.asked.clear()

    go_to(browser, "?tab=details&try_number=2#top")
    let_it_look(browser)

    assert page.asked == []


def test_the_last_choice_counts(open_around: Callable[[str], None], browser: Browser, page: ExecutionPage) -> None:
    open_around("?try_number=2")
    wait_for_attempt(browser, 2)
    page.asked.clear()

    with browser.inside("//iframe"):
        browser.click("//*[@id='attempts']//a[.='1']")
    wait_for_attempt(browser, 1)
    let_it_look(browser)
    assert page.asked == ["/page?try_number=1"]

    go_to(browser, "?try_number=1")
    let_it_look(browser)
    go_to(browser, "?try_number=2")
    wait_for_attempt(browser, 2)
    assert page.asked[1:] == ["/page?try_number=2"]
