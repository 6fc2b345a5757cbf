"""The list of executions in a browser, without Airflow around it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_service._core.pages import rendering
from airflow_provider_service._core.pages.executions import ExecutionsView, OpenExecution, Search, TaskExecution
from airflow_provider_service.links.service import ExecutionAddress
from tests.databases.debian import Progress

from .browser import Browser
from .conftest import STACK_FOLDER
from .execution_page import ExecutionPage

NOW, NUMBER = datetime(2026, 5, 4, 3, 2, tzinfo=UTC), 1_500
SERVER, NODE = "https://service.example.com", "Approval of the purchase"
WAITING = OpenExecution("w1", "waiting", NOW, NOW, NOW + timedelta(days=1))


class ListPage(ExecutionPage):
    def _answer(self, path: str) -> tuple[str, bytes]:
        if not path.startswith("/executions"):
            return super()._answer(path)
        ended = [_execution(id_, "success") for id_ in range(3, NUMBER)]
        waiting = [_execution(1, "deferred", WAITING), _execution(2, "failed", WAITING)]
        view = ExecutionsView([*waiting, *ended], Search(), NOW, hosts={SERVER}, names={(SERVER, "w1"): "Orders"})
        part = rendering.executions_part(view, dict.fromkeys(waiting, NODE), True, airflow="")
        return "text/html; charset=utf-8", rendering.page(part, "Executions", "").encode()


def _execution(id_: int, state: str, is_open: OpenExecution | None = None) -> TaskExecution:
    address = ExecutionAddress(SERVER, "w1", str(id_))
    run, began = f"manual__2026-05-04T03:02:01.{id_:06}+00:00", NOW - timedelta(minutes=id_)
    ended = None if is_open else began + timedelta(seconds=40)
    return TaskExecution("nightly_sync", "orders", -1, run, state, began, address, began, ended, open=is_open)


@pytest.fixture(scope="module")
def browser(progress: Progress) -> Iterator[Browser]:
    with (
        ListPage({}) as page,
        Browser(page.address, STACK_FOLDER / "screenshots-of-lists", progress=progress) as browser,
    ):
        yield browser


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1600, 900, 400])
def test_it_is_accessible_and_readable(browser: Browser, width: int, dark: bool) -> None:
    with browser.looking_like(width=width, dark=dark):
        browser.errors()
        browser.open("/executions")
        browser.photograph(f"list-{width}{'-dark' if dark else ''}")

        assert not browser.violations()
        assert browser.run("return document.documentElement.scrollWidth") <= width
        assert "1,497 succeeded" in browser.text()
        assert "at most 1,317 a day" in browser.text()
        where = browser.find(f"//td[contains(., '{NODE}')]/span").size["height"]
        assert where < 80, "what is known of a waiting execution is a column of single words"
    assert not browser.errors()
