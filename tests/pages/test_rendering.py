"""The page runs nothing that strangers wrote, loads nothing from other hosts, and says when to look again."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest

from airflow_provider_service._core.pages import rendering
from airflow_provider_service._core.pages.reading import ExecutionReading, see
from airflow_provider_service._core.pages.task_view import AttemptView, TaskView
from airflow_provider_service.client import ServiceConfig

from .conftest import HOSTILE, PAYLOAD

NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)


class Elements(HTMLParser):
    """The elements of a page, with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def of(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.found if tag == name]


def task(state: str | None = "success", **more) -> TaskView:
    known = {"is_ours": True, "service_conn_id": "service_default", "execution_id": "7"}
    return TaskView("dag", "run", "task", -1, state, **{**known, **more})


@pytest.fixture
def seen(simulator, start):
    def one(ending: str) -> ExecutionReading:
        _, execution_id = start(ending)
        config = ServiceConfig(base_url=simulator.base_url, api_key=simulator.api_key)
        return rendering.drawn(see(lambda: config, execution_id, None, base_url=config.base_url, show_data=False))

    return one


@pytest.mark.parametrize("ending", ["succeeds", "fails", "waits", "runs"])
def test_a_page_runs_and_loads_nothing_of_strangers(seen, simulator, ending):
    shown = task(
        execution_url="javascript:alert(1)",
        workflow_url="https://service.example.com/workflow/1",
        attempts=[AttemptView(1, HOSTILE, NOW, NOW, HOSTILE)],
    )
    page = rendering.page(rendering.task_part(shown, seen(ending)), HOSTILE, "/prefix/service-pages")
    elements = Elements(page)

    assert not elements.of("img")
    assert not elements.of("style")
    assert not [
        name for _, attributes in elements.found for name in attributes if name.startswith("on") or name == "style"
    ]
    files = f"/prefix/service-pages/assets/{rendering.assets_version()}"
    scripts = ["airflow.js", "follow.js", "drawing.js", "outside.js"]
    assert [one["src"] for one in elements.of("script")] == [f"{files}/{name}" for name in scripts]
    sheets = ["airflow.css", "pages.css", "listing.css"]
    assert [one["href"] for one in elements.of("link")] == ["data:,", *(f"{files}/{name}" for name in sheets)]
    outside = [one["href"] for one in elements.of("a") if not one["href"].startswith("#")]
    assert outside == ["https://service.example.com/workflow/1"]
    assert "{{ 7*7 }}" in page or "7*7" not in page
    assert "49" not in re.sub(r"[\d.]+", "", page)
    assert PAYLOAD not in page
    assert simulator.api_key not in page


def test_a_node_its_row_and_its_message_lead_to_each_other(seen):
    elements = Elements(rendering.task_part(task(), seen("fails")).html)
    links = [one for one in elements.of("a") if (one.get("href") or "").startswith("#")]
    rows = {one.get("id") for one in elements.of("tr")}

    nodes = [one for one in links if "node" in (one["class"] or "")]
    assert len(nodes) == 4
    assert all(one["href"][1:] in rows and one["aria-label"] for one in nodes)
    assert [one["href"] for one in links if one not in nodes].count(f"#{nodes[2]['id']}") == 2  # of message and row
    assert all(
        one.get("tabindex") == "0" and one.get("aria-label")
        for one in elements.of("div")
        if one.get("class") == "scroll"
    )


@pytest.mark.parametrize(("ending", "stop"), [("succeeds", 0), ("fails", 2), ("waits", 2)])
def test_all_nodes_are_one_stop_of_the_keyboard_which_is_the_node_that_matters(seen, ending, stop):
    links = Elements(rendering.task_part(task(), seen(ending)).html).of("a")

    for group in ("node", "to-box"):
        tabs = [
            one["tabindex"] for one in links if (one.get("class") or "").split()[:1] == [group] and "tabindex" in one
        ]
        assert [at for at, index in enumerate(tabs) if index == "0"] == [stop]


@pytest.mark.parametrize(
    ("ending", "state", "follow"),
    [
        ("succeeds", "success", None),
        ("succeeds", "deferred", "5"),
        ("fails", "failed", None),
        ("runs", "deferred", "3"),
        ("runs", "success", "3"),
        ("waits", "deferred", "10"),
    ],
)
def test_a_page_follows_until_nothing_more_changes(seen, ending, state, follow):
    [view] = [
        one
        for one in Elements(rendering.task_part(task(state), seen(ending)).html).of("div")
        if one.get("id") == "view"
    ]

    assert view.get("data-follow") == follow


@pytest.mark.parametrize(
    ("shown", "seen_now", "words", "follow"),
    [
        (task(is_ours=False, execution_id=None), None, "does not run a workflow", False),
        (task("running", execution_id=None), None, "has not started an execution yet", True),
        (task("failed", execution_id=None), None, "no longer knows which", False),
        (task("deferred"), ExecutionReading(error="The service is down"), "The service is down", True),
        (task("failed"), ExecutionReading(error="The service is down"), "is down. The page tries again.", True),
        (task("failed", service_conn_id=None), ExecutionReading(error="No connection."), "No connection.</p>", False),
        (task("failed"), ExecutionReading(is_gone=True), "does not have execution 7", False),
        (task("running"), ExecutionReading(is_large=True), "too large", True),
        (task("running"), ExecutionReading(data_error="It failed"), "cannot read the execution's data", True),
    ],
)
def test_what_cannot_be_shown_is_said_in_words(shown, seen_now, words, follow):
    html = rendering.task_part(shown, seen_now).html

    assert words in html
    assert ("data-follow" in html) is follow


@pytest.mark.parametrize(
    ("ending", "state", "attempt", "is_said"),
    [
        ("runs", "failed", 2, True),
        ("waits", "failed", 2, True),
        ("waits", "failed", 1, False),  # the second has taken it over
        ("waits", "deferred", 2, False),
        ("fails", "failed", 2, False),
    ],
)
def test_an_execution_that_goes_on_although_its_task_has_failed_is_said_to(seen, ending, state, attempt, is_said):
    attempts = [AttemptView(number, state, execution_id="7") for number in (2, 1)]

    shown = rendering.task_part(task(state, attempts=attempts, number=attempt), seen(ending)).html

    assert ("although its task has failed" in shown) is is_said


def test_what_still_keeps_a_connection_from_being_used_is_not_said_twice():
    problem = "The connection cannot be used: Airflow has no such connection"
    failed = task("failed", execution_id=None, reason="connection 'n8n': Airflow has no such connection")

    assert rendering.task_part(failed, None, problem=problem).html.count("no such connection") == 1
    assert problem in rendering.task_part(task("failed", execution_id=None), None, problem=problem).html


def test_a_page_that_has_not_changed_has_the_same_version(seen):
    one = seen("waits")

    assert rendering.task_part(task(), one) == rendering.task_part(task(), one)
    assert rendering.task_part(task("running"), one).version == rendering.task_part(task("deferred"), one).version
    assert rendering.task_part(task(), seen("fails")).version != rendering.task_part(task(), one).version


def test_all_assets_are_there_and_name_no_other_host():
    for name in rendering.ASSETS:
        assert b"http" not in rendering.asset(name)
