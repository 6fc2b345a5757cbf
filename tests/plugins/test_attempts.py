"""The attempts of a task on its page: each with its execution, and the one that is chosen is the one that is shown."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest

from airflow_provider_service._airflow.attempts import MAX_REASON_CHARS, REASON_KEY
from scripts.dag_runner import run_dag
from tests import airflow_features
from tests.pages.conftest import HOSTILE
from tests.pages.conftest import start as start
from tests.runs.workflows import DONE, FAIL, put, webhook

from .test_own_executions import CONNECTION, DAGS, header_of, is_hidden, page_of
from .test_own_executions import link as link

pytestmark = airflow_features.pages


@pytest.fixture
def reader(browser_of):
    return browser_of("VIEWER")


def address_in(links: dict[str, str]) -> str:
    return links["_link_ServiceExecutionLink"]


def executions_in(text: str) -> list[str]:
    """What the page says of the execution of each attempt, the latest first."""
    table = text[text.index('id="attempts"') :]
    return re.findall("<td>([^<]*)</td></tr>", table)


@airflow_features.state_of_tasks
def test_each_attempt_is_shown_with_its_execution(reader, put_task, start, link):
    task_id = f"task_{uuid.uuid4().hex}"
    first, second, third = (
        start(ending, name=name, headers=header_of(task_id))
        for ending, name in (("fails", "First"), ("succeeds", "Second"), ("waits", "Third"))
    )
    kept = {str(at): {"execution": address_in(link(*one))} for at, one in enumerate((first, second), 1)}
    path = put_task(links=link(*third), fields=CONNECTION, kept=kept, attempts=3, task_id=task_id)

    for query, title, number in (("", "Third", 3), ("?try_number=3", "Third", 3), ("?try_number=1", "First", 1)):
        text = reader.get(f"{path}{query}").text
        assert f"<h1>{title}</h1>" in text
        assert f"<span>Attempt {number} of 3</span>" in text
        assert executions_in(text) == [third[1], second[1], first[1]]
        assert re.findall('href="\\?try_number=(.)"', text) == ["3", "2", "1"]
        assert re.findall('try_number=(.)"[^>]*aria-current', text) == [str(number)]
        assert ("data-follow" in text) is (number == 3)
    part = reader.get(f"{path}?try_number=1&part=view").text
    assert part.startswith('<div id="view"')
    assert "<h1>First</h1>" in part


@airflow_features.state_of_tasks
def test_an_execution_that_a_later_attempt_has_resumed_belongs_to_both(reader, put_task, start, link):
    task_id = f"task_{uuid.uuid4().hex}"
    links = link(*(own := start("waits", headers=header_of(task_id))))
    path = put_task(
        links=links, fields=CONNECTION, kept={"1": {"execution": address_in(links)}}, attempts=2, task_id=task_id
    )

    for query in ("", "?try_number=1"):
        assert f"Execution {own[1]} belongs to attempts 1 and 2" in reader.get(f"{path}{query}").text


def test_the_key_of_an_execution_names_the_attempt_that_has_started_it(reader, put_task, start, link):
    task_id = f"task_{uuid.uuid4().hex}"
    own = start("waits", headers=header_of(task_id))

    text = reader.get(put_task(links=link(*own), fields=CONNECTION, attempts=3, task_id=task_id)).text

    assert executions_in(text) == [own[1], "not known", own[1]]
    assert f"Execution {own[1]} belongs to attempts 1 and 3" in text


@airflow_features.state_of_tasks
def test_what_is_kept_of_an_attempt_proves_only_what_the_state_may_prove(reader, put_task, simulator, start, link):
    foreign, own = start("succeeds"), f"task_{uuid.uuid4().hex}"
    kept = {"1": {"execution": address_in(link(*foreign))}}
    latest = start("waits", headers=header_of(own))
    path = put_task(links=link(*latest), fields=CONNECTION, kept=kept, attempts=2, task_id=own)

    text = reader.get(f"{path}?try_number=1").text

    assert is_hidden(text, because="does not carry the run key")
    assert executions_in(text) == ["not known", "not known"]


@airflow_features.state_of_tasks
@pytest.mark.parametrize(
    "kept",
    [
        "text",
        [1],
        {"1": "x"},
        {"x": {}},
        {"9" * 5_000: {}},
        {"1": {"execution": 7}},
        {"1": {"execution": "javascript:"}},
    ],
    ids=range(7),
)
def test_what_is_kept_of_attempts_may_have_any_shape(reader, put_task, start, link, kept: Any):
    own = start("waits")
    path = put_task(links=link(*own), fields={**CONNECTION, "execution_id": own[1]}, kept=kept, attempts=2)

    assert executions_in(reader.get(path).text) == [own[1], "not known"]
    assert "No execution" in reader.get(f"{path}?try_number=1").text


@pytest.mark.parametrize("number", ["3", "-1", "x", str(2**31), "9" * 400])
def test_an_attempt_that_there_is_not_is_not_shown(reader, waiting_task, number):
    path = waiting_task("https://service.example.com", "w", "7", attempts=2)

    assert reader.get(f"{path}?try_number={number}").status_code == 404


@pytest.mark.slow
def test_a_task_that_is_tried_again_shows_what_each_attempt_has_run(airflow_app, browser_of, simulator):
    from airflow_provider_service.plugins._app import make_app

    failing = put(simulator, webhook("fails"), FAIL, DONE, name="Failing")

    run_dag(DAGS / "several_attempts.py", {"webhook": failing})

    reader, page = browser_of("VIEWER", app=make_app()), page_of("webhook", "several_attempts")
    texts = [reader.get(f"{page}?try_number={number}").text for number in (1, 2)]
    shown = [re.findall("<span>Execution ([^<]*)</span>", text) for text in texts]
    if airflow_features.keeps_state_of_tasks:
        assert len({*shown[0], *shown[1]}) == 2
        assert executions_in(texts[0]) == executions_in(texts[1]) == [*shown[1], *shown[0]]
    else:
        assert (shown[0], len(shown[1])) == ([], 1)


@pytest.mark.parametrize("state", ["failed", "up_for_retry"])
def test_a_task_that_has_started_nothing_says_why(reader, put_task, simulator, state):
    reason = f"workflow 7 is not active {HOSTILE}\ud800" + "x" * MAX_REASON_CHARS
    text = reader.get(put_task(state, links={REASON_KEY: reason}, fields=CONNECTION)).text

    assert "No execution" in text
    assert "workflow 7 is not active &lt;img" in text
    assert "<img" not in text
    assert 0 < text.count("x" * 900) < 2
    assert "x" * MAX_REASON_CHARS not in text


@pytest.mark.parametrize("state", ["success", "queued", "running"])
def test_the_reason_of_another_attempt_is_not_that_of_the_latest(reader, put_task, simulator, state):
    assert "not active" not in reader.get(put_task(state, links={REASON_KEY: "not active"}, fields=CONNECTION)).text


@pytest.mark.parametrize("reason", [7, ["x"], {"a": 1}, None, ""])
def test_a_reason_of_another_shape_is_not_shown(reader, put_task, simulator, reason: Any):
    text = reader.get(put_task("failed", links={REASON_KEY: reason}, fields=CONNECTION)).text

    assert "Its log says why" in text


@pytest.mark.parametrize(("ending", "is_shown"), [("succeeds", True), ("fails", False)])
def test_a_task_that_failed_although_its_execution_did_not_says_why(
    reader, waiting_task, start, simulator, ending, is_shown
):
    more = {REASON_KEY: "its output cannot be read"}
    path = waiting_task(simulator.base_url, *start(ending), state="failed", more_links=more)

    assert ("its output cannot be read" in reader.get(path).text) is is_shown


def test_a_task_that_cannot_start_its_workflow_leaves_the_reason_on_its_page(airflow_app, browser_of, simulator):
    from airflow_provider_service.plugins._app import make_app

    run_dag(DAGS / "several_attempts.py", {"webhook": "no-such-workflow"})

    reader, page = browser_of("VIEWER", app=make_app()), page_of("webhook", "several_attempts")
    text = reader.get(page).text
    assert "The task failed before it started an execution." in text
    assert "no-such-workflow" in text[: text.index("Open the log")]
    assert simulator.api_key not in text
