"""The tab of a task instance in a browser: what a reader sees in every state, and that nobody else sees anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from airflow_provider_service.client import ServiceClient
from tests.live.servers import wait_until

from . import pages
from .airflow_api import AirflowApi
from .browser import Browser
from .conftest import IS_SHORT
from .deployment import Deployment
from .figures import FIGURES
from .pages import ENDINGS, Started
from .recorder import Recorder
from .simulated import SimulatedService


@pytest.fixture(scope="module")
def started(deployment: Deployment, service: SimulatedService) -> Iterator[Started]:
    """Executions in every state."""
    with service.client() as client, pages.executions_in_every_state(deployment.api, client) as started:
        yield started


@pytest.mark.parametrize("task_id", ENDINGS)
def test_a_reader_sees_the_execution(
    browser_of: Callable[..., Browser], recorder: Recorder, service: SimulatedService, started: Started, task_id: str
) -> None:
    browser = browser_of("viewer")

    pages.check_tab(browser, started, task_id)
    browser.photograph(f"execution-{task_id}")

    pages.assert_told_nothing(recorder, service.api_key, service.mcp_api_key)
    assert not [one for one in browser.errors() if "/service-pages" in one]
    FIGURES.add("pages of executions looked at")


@pytest.mark.parametrize(("user", "words"), [("stranger", "may not read"), (None, "not logged in")])
def test_nobody_else_sees_anything(
    browser_of: Callable[..., Browser], recorder: Recorder, started: Started, user: str | None, words: str
) -> None:
    browser = browser_of(user)
    for task_id in ENDINGS:
        browser.open(started.own_page(task_id))
        assert words in browser.text()
    pages.assert_usable(browser)

    assert recorder.holding("Read orders") == recorder.holding("Orders:") == []
    FIGURES.add("pages of executions refused", len(ENDINGS))


@pytest.mark.parametrize(("width", "dark"), [(1400, True), (400, False), (400, True)])
def test_it_is_read_in_the_dark_and_on_a_narrow_screen(
    browser_of: Callable[..., Browser], started: Started, width: int, dark: bool
) -> None:
    browser = browser_of("viewer")
    with browser.looking_like(width=width, dark=dark):
        browser.open(started.own_page("fails"))
        pages.assert_usable(browser)
        assert browser.run("return document.documentElement.scrollWidth") <= width
        browser.photograph(f"execution-{width}{'-dark' if dark else ''}")


def test_it_follows_until_the_execution_has_ended(
    browser_of: Callable[..., Browser], service: SimulatedService, client: ServiceClient, started: Started
) -> None:
    browser = browser_of("viewer")
    with pages.tab(browser, started, "runs"):
        browser.run("window.isSamePage = true")
        service.finish(started.executions["runs"])
        browser.find("//p[@class='facts'][contains(., 'success')]")
        wait_until(
            lambda: not browser.run("return document.querySelector('[data-follow]')"), seconds=60, what="its end"
        )
        assert browser.run("return window.isSamePage")
        pages.assert_usable(browser)
    assert client.executions.get(started.executions["runs"]).status == "success"


def test_its_buttons_lead_to_the_service(
    browser_of: Callable[..., Browser], service: SimulatedService, started: Started
) -> None:
    browser = browser_of("viewer")
    with pages.tab(browser, started, "fails"):
        address, text = browser.click_to_new_tab("//a[normalize-space()='Open the execution']")

    workflow = f"{service.base_url}/workflow/{started.workflows['fails']}"
    assert address == f"{workflow}/executions/{started.executions['fails']}"
    assert text.splitlines() == [f"Execution {started.executions['fails']}", "error"]


@pytest.mark.skipif(IS_SHORT, reason="only in the long form, since it needs another API server")
def test_it_works_below_a_path(
    recording: tuple[Browser, Recorder], recorder: Recorder, deployment: Deployment, started: Started
) -> None:
    browser, settings = recording[0], deployment.settings
    with deployment.api_server_below("/team/airflow") as base_url, browser.at(base_url):
        browser.have_session(AirflowApi(base_url, "viewer", settings.password).log_in())
        pages.check_tab(browser, started, "waits")
        browser.photograph("execution-below-a-path")
        wait_until(
            lambda: any(one.url.endswith("?part=view") for one in recorder.received),
            seconds=60,
            what="a look at what has changed",
            interval=0.5,
        )
        browser.have_session(AirflowApi(base_url, "admin", settings.password).log_in())
        pages.check_connection(browser, "service_default")

        asked = [one for one in recorder.received if "/service-pages/" in one.url]
        assert {one.status for one in asked} <= {200, 304}
        assert all(one.url.startswith(f"{base_url}/service-pages/") for one in asked)
        assert {one.url.rpartition("/")[2] for one in asked} >= {"pages.css", "follow.js"}
