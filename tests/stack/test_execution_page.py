"""The tab of a task instance in a browser: what a reader sees in every state, and that nobody else sees anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from selenium.webdriver.common.keys import Keys

from airflow_provider_service.client import ServiceClient
from tests.pages.conftest import HOSTILE
from tests.polling import wait_until

from . import keyboard, pages
from .airflow_api import AirflowApi
from .browser import Browser
from .conftest import IS_SHORT
from .deployment import Deployment
from .figures import FIGURES
from .pages import ENDINGS, Started
from .recorder import Recorder
from .simulated import SimulatedService

in_long_form = pytest.mark.skipif(IS_SHORT, reason="only in the long form, since it needs another API server")


@pytest.fixture(scope="module")
def below(deployment: Deployment) -> Iterator[str]:
    """The address of an API server below a path, which may show data."""
    with deployment.api_server_below("/team/airflow", {"AIRFLOW__SERVICE__SHOW_DATA": "True"}) as base_url:
        yield base_url


@pytest.mark.smoke
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
        keyboard.tab_to(browser, "Open the execution")
        service.finish(started.executions["runs"])
        browser.find("//p[@class='facts'][contains(., 'success')]")
        wait_until(
            lambda: not browser.run("return document.querySelector('[data-follow]')"), seconds=60, what="its end"
        )
        assert browser.run("return window.isSamePage")
        assert browser.run("return document.activeElement.textContent") == "Open the execution"
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


@pytest.mark.parametrize("width", [1400, 400])
def test_it_is_used_by_keyboard(browser_of: Callable[..., Browser], started: Started, width: int) -> None:
    browser = browser_of("viewer")
    with browser.looking_like(width=width):
        browser.open(started.own_page("fails"))
        reached = keyboard.check_every_control_is_reached(browser)
        assert [name.split()[0] for name in reached if HOSTILE in name] == ["<img"] * 3  # message, node and row

        keyboard.tab_to(browser, f"{HOSTILE} ")
        browser.press(Keys.ARROW_LEFT, Keys.ENTER)
        browser.wait_for("return document.activeElement.matches('tr a')")
        assert browser.run("return document.activeElement.textContent") == "Read orders"
        assert browser.is_focus_seen()
        browser.press(Keys.TAB)
        assert keyboard.focused(browser, reached).startswith("Attempts")

        for region in ("drawing", "nodes") if width == 400 else ():
            keyboard.tab_to(browser, {"drawing": "Workflow", "nodes": "Nodes"}[region])
            browser.press(Keys.ARROW_RIGHT)
            browser.wait_for(f"return document.getElementById('{region}').scrollLeft")


def test_the_keyboard_passes_through_the_tab(
    browser_of: Callable[..., Browser], service: SimulatedService, started: Started
) -> None:
    browser = browser_of("viewer")
    with pages.tab(browser, started, "fails"):
        names = keyboard.controls(browser)
    browser.run("arguments[0].focus()", browser.find("//a[normalize-space()='n8n execution']"))

    browser.press(Keys.TAB)
    with browser.inside(pages.FRAME):
        assert keyboard.focused(browser, names) == names[0]
    browser.press(*[Keys.TAB] * len(names))
    assert not browser.run("return document.activeElement.matches('iframe')")
    browser.press(Keys.TAB, shift=True)
    with browser.inside(pages.FRAME):
        assert keyboard.focused(browser, names) == names[-1]
        keyboard.tab_to(browser, "Open the workflow")
        address, _ = browser.new_tab(lambda: browser.press(Keys.ENTER))
    assert address == f"{service.base_url}/workflow/{started.workflows['fails']}"


@in_long_form
def test_it_works_below_a_path(
    recording: tuple[Browser, Recorder], recorder: Recorder, deployment: Deployment, below: str, started: Started
) -> None:
    browser, settings, base_url = recording[0], deployment.settings, below
    with browser.at(base_url):
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
        assert {one.url.rpartition("/")[2] for one in asked} >= {"pages.css", "follow.js", "outside.js"}


@in_long_form
def test_data_is_opened_by_keyboard(
    recording: tuple[Browser, Recorder], deployment: Deployment, below: str, started: Started
) -> None:
    browser = recording[0]
    with browser.at(below):
        browser.have_session(AirflowApi(below, "viewer", deployment.settings.password).log_in())
        browser.open(started.own_page("succeeds"))
        assert "output" in keyboard.check_every_control_is_reached(browser)
        keyboard.tab_to(browser, "output")
        for key, number in ((Keys.SPACE, 1), (Keys.ENTER, 0)):
            browser.press(key)
            assert len(browser.run("return document.querySelectorAll('details[open]')")) == number
