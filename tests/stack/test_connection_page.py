"""The page of a connection in a browser: for those who may read the connection, and for nobody else."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from selenium.webdriver.common.keys import Keys

from tests.live.servers.ports import free_ports
from tests.polling import wait_until

from . import keyboard, pages
from .airflow_api import AirflowApi
from .browser import Browser
from .figures import FIGURES
from .pages import Started
from .recorder import Recorder
from .simulated import SimulatedService

BROKEN, KEY = "stack_broken", "the-key-of-a-service-that-is-not-there"


@pytest.fixture
def broken(api: AirflowApi) -> Iterator[str]:
    """A connection to a service that does not answer."""
    [port] = free_ports(1)
    host = f"http://127.0.0.1:{port}"
    api.set_connection({"connection_id": BROKEN, "conn_type": "service", "host": host, "password": KEY})
    yield BROKEN
    api.delete_connection(BROKEN)


@pytest.fixture
def shown(browser_of: Callable[..., Browser], started: Started) -> Started:
    """The executions, once the page of their connection shows them: it is kept for half a minute."""
    browser = browser_of("admin")

    def is_shown() -> bool:
        browser.open(pages.of_connection("service_default"))
        return started.run_id in browser.text()

    wait_until(is_shown, seconds=120, what="the page of the connection to show the run", interval=2)
    return started


def test_who_may_read_it_sees_whether_it_works(
    browser_of: Callable[..., Browser], recorder: Recorder, service: SimulatedService
) -> None:
    browser = browser_of("admin")

    pages.check_connection(browser, "service_default")

    browser.photograph("connection")
    pages.assert_told_nothing(recorder, service.api_key, service.mcp_api_key)
    FIGURES.add("pages of connections looked at")


def test_it_is_used_by_keyboard(browser_of: Callable[..., Browser], service: SimulatedService, shown: Started) -> None:
    browser = browser_of("admin")
    browser.open("/plugin/service_connections")
    with browser.inside(pages.FRAME):
        keyboard.tab_to(browser, "service_default")
        browser.press(Keys.ENTER)
        browser.find("//h1[normalize-space()='Connection service_default']")
        keyboard.tab_to(browser, shown.executions["fails"])
        address, _ = browser.new_tab(lambda: browser.press(Keys.ENTER))
    assert address == f"{service.base_url}/workflow/{shown.workflows['fails']}/executions/{shown.executions['fails']}"

    for path in ("/service-pages/connections", pages.of_connection("service_default")):
        browser.open(path)
        keyboard.check_every_control_is_reached(browser)


@pytest.mark.parametrize(("width", "dark"), [(1400, True), (400, False), (400, True)])
def test_it_is_read_in_the_dark_and_on_a_narrow_screen(
    browser_of: Callable[..., Browser], shown: Started, width: int, dark: bool
) -> None:
    browser = browser_of("admin")
    with browser.looking_like(width=width, dark=dark):
        browser.open(pages.of_connection("service_default"))
        assert shown.run_id in browser.text()
        pages.assert_usable(browser)
        assert browser.run("return document.documentElement.scrollWidth") <= width
        browser.run("document.getElementById('runs').scrollIntoView()")
        browser.photograph(f"connection-{width}{'-dark' if dark else ''}")


def test_a_service_that_does_not_answer_is_reported(
    browser_of: Callable[..., Browser], recorder: Recorder, broken: str
) -> None:
    browser = browser_of("admin")
    for width, dark in ((1400, False), (400, True)):
        with browser.looking_like(width=width, dark=dark):
            browser.open(pages.of_connection(broken))
            assert "1 check failed: service" in browser.text()
            pages.assert_usable(browser)
            assert browser.run("return document.documentElement.scrollWidth") <= width
            browser.photograph(f"connection-broken-{width}{'-dark' if dark else ''}")
    pages.assert_told_nothing(recorder, KEY)


@pytest.mark.parametrize(
    ("user", "words"), [("viewer", "may not read"), ("stranger", "may not read"), (None, "not logged in")]
)
def test_nobody_else_sees_anything(
    browser_of: Callable[..., Browser], recorder: Recorder, service: SimulatedService, user: str | None, words: str
) -> None:
    browser = browser_of(user)
    for path in ("/service-pages/connections", pages.of_connection("service_default")):
        browser.open(path)
        assert words in browser.text()

    assert recorder.holding(service.base_url) == recorder.holding("Ready for") == []
    FIGURES.add("pages of connections refused", 2)
