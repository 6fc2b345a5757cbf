"""What the list says of executions that may be open: it reads the service, and links only to servers that are known."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from jinja2 import Template

from airflow_provider_service._core.pages.reading import MAX_READS, MAX_WAITING
from airflow_provider_service.client._clock import using
from tests import airflow_features
from tests.pages.conftest import start as start
from tests.runs.workflows import DONE, webhook
from tests.runs.workflows import put as put_workflow
from tests.set_clock import SetClock

from .conftest import BEGAN, DAG
from .test_executions_page import PAGE, PAGES_OF_DAG, PREFIX, SERVER, rows
from .test_executions_page import app as app
from .test_executions_page import put as put
from .test_executions_page import reader as reader
from .test_executions_page import refused as refused

pytestmark = [airflow_features.pages, pytest.mark.usefixtures("database_without_runs")]
NOTHING_TOLD: dict[str, Any] = {"told": None, "seconds": None}


@pytest.fixture
def workflow_id(simulator: Any) -> str:
    return str(put_workflow(simulator, webhook("open"), DONE, name="Sync orders"))


@pytest.fixture
def run(simulator: Any, workflow_id: str, put: Any) -> Any:
    """``run("failed", "running")`` puts a task whose execution is in this status on the service; returns its id."""

    def one(state: str, status: str, **more: Any) -> str:
        execution_id = simulator.start_execution(workflow_id, status=status)
        put(state, workflow_id, execution_id=execution_id, server=simulator.base_url, **{**NOTHING_TOLD, **more})
        return str(execution_id)

    return one


def words(html: str) -> str:
    return " ".join(re.sub("<[^>]+>", " ", html).split())


@pytest.mark.parametrize(
    ("conn_id", "connection", "is_known"),
    [
        ("other", "n8n://:key@other.example.com", True),
        ("other", '{"conn_type": "service", "host": "https://other.example.com", "password": "key"}', True),
        ("n8n_default", "n8n://:key@other.example.com", True),
        ("other", "http://:key@other.example.com", False),
        ("other", "n8n://other.example.com", False),
        ("other", '{"conn_type": "n8n", "host": 7', False),
    ],
)
def test_links_lead_only_to_hosts_of_known_connections(reader, put, monkeypatch, conn_id, connection, is_known):
    monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", connection)
    known, other = put(), put(server="https://other.example.com")

    for page in (PAGE, *PAGES_OF_DAG):
        text = reader.get(page).text
        assert f'href="{SERVER}/workflow/w1/executions/{known}"' in text
        assert ("other.example.com/workflow/" in text) is is_known
        assert other in text


def test_a_connection_of_the_database_is_known(reader, put, monkeypatch):
    from airflow.models.connection import Connection
    from airflow.utils.session import create_session

    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")  # as in the API server, which has a database
    put(server="https://stored.example.com")
    with create_session() as session:
        session.add(Connection(conn_id="stored", conn_type="n8n", host="https://stored.example.com", password="key"))
    try:
        text = reader.get(PAGE).text
    finally:
        with create_session() as session:
            session.query(Connection).where(Connection.conn_id == "stored").delete()

    assert 'href="https://stored.example.com/workflow/w1"' in text


def test_a_connection_that_only_a_secrets_backend_lists_is_known_by_the_tasks_that_used_it(reader, put, monkeypatch):
    # It names no type, so that only its id leads to it.
    monkeypatch.setenv("AIRFLOW_CONN_HIDDEN", '{"host": "https://hidden.example.com", "password": "key"}')
    put(server="https://hidden.example.com", fields={"service_conn_id": "hidden"})
    put(server="https://evil.example.com", fields={"service_conn_id": "hidden"})

    text = reader.get(PAGE).text

    assert 'href="https://hidden.example.com/workflow/w1"' in text
    assert 'href="https://evil.example.com' not in text


def test_the_state_of_an_execution_is_the_services(reader, run):
    ids = {status: run("deferred", status) for status in ("running", "waiting", "new", "success")}
    run("success", "running", told={"started_at": "2026-05-04T02:00:00Z", "stopped_at": "2026-05-04T02:00:09Z"})

    for page in (PAGE, *PAGES_OF_DAG):
        found = {words(row) for row in rows(reader.get(page).text)}
        said = {status: next(row for row in found if f" {id_} " in row) for status, id_ in ids.items()}
        assert re.search(r"running since 20\d\d-", said["running"])
        assert re.search(r"waiting since 20\d\d-", said["waiting"])
        assert " queued " in said["new"]
        assert not re.search(" running since| waiting since| queued ", said["success"])
        assert sum(" running since " in row for row in found) == 1  # of what has ended, nothing is asked


def test_a_row_whose_task_told_nothing_begins_when_the_service_says(reader, run):
    run("deferred", "running")

    [row] = rows(reader.get(PAGE).text)

    assert "known since" not in row
    assert "data-since" in row


def test_a_link_to_another_workflow_shows_no_state(reader, run, put, simulator):
    execution_id = run("deferred", "running")
    put("failed", "another", execution_id=execution_id, server=simulator.base_url, **NOTHING_TOLD)

    text = reader.get(PAGE).text

    assert sum("running since" in row for row in rows(text)) == 1
    assert "although" not in words(text.partition('id="executions"')[2])


@pytest.fixture
def sleeper(put: Any, start: Any, simulator: Any) -> Any:
    """An execution that waits; ``sleeper(**arguments)`` puts a task with a link to it, and returns its id."""
    workflow_id, execution_id = start("waits")
    simulator.clear_requests()

    def one(**arguments: Any) -> str:
        fields = {"service_conn_id": "service_default", **arguments}
        more = {"server": simulator.base_url, "execution_id": execution_id, "fields": fields}
        put("deferred", workflow_id, **NOTHING_TOLD, **more)
        return str(execution_id)

    return one


def test_the_node_where_an_execution_waits_is_shown_only_if_it_is_provably_the_tasks_own(reader, sleeper):
    sleeper(execution_id=sleeper())  # the first has only an XCom, which somebody may have written

    said = [words(row) for row in rows(reader.get(PAGE).text)]

    assert all("waiting since" in row for row in said)
    [own] = [row for row in said if "Sleep" in row]
    assert re.search(r"waiting since [\d: -]+ UTC at Sleep until [\d: -]+ UTC", own)


def test_a_node_is_read_once_for_as_long_as_the_execution_waits_there(reader, sleeper, start, simulator):
    execution_id = sleeper()
    sleeper(execution_id=execution_id)

    with using(SetClock()) as clock:
        for _ in range(3):
            assert "at Sleep" in reader.get(PAGE).text
            clock.advance(7)

    assert sum(request.path.endswith(f"/{execution_id}") for request in simulator.requests) == 2


@pytest.mark.parametrize("state", ["failed", "upstream_failed"])
def test_what_runs_although_its_task_has_failed_is_counted_marked_and_found(reader, run, state):
    left = run(state, "running")
    run("deferred", "running")
    run("up_for_retry", "waiting")
    run("skipped", "running")  # a sensor with soft_fail, for example
    run("failed", "error")

    text = reader.get(PAGE).text
    [address] = re.findall(r'<a href="([^"]+)">1 execution runs although its task has failed</a>', text)

    assert address == "?execution=left"
    assert "its next attempt takes the execution over, or waits for it again" in text
    [row] = rows(reader.get(PAGE + address).text)
    assert left in row
    assert "▶ runs although its task has failed" in row


def test_it_is_searched_by_the_state_of_the_execution(reader, run, put, simulator, workflow_id):
    for seconds in range(1, 7):
        put("success", workflow_id, seconds, server=simulator.base_url)
    longer = put("failed", workflow_id, 60, server=simulator.base_url)
    ids = {
        "running": {run("deferred", "running")},
        "waiting": {run("failed", "waiting"), run("deferred", "waiting")},
        "queued": {run("deferred", "new")},
    }
    ids["left"] = {next(iter(ids["waiting"] & found(reader, "left")))}

    for chosen, expected in ids.items():
        assert found(reader, chosen) == expected
    assert longer in found(reader, "longer")
    assert len(found(reader, "no such state")) == 11


def found(reader: Any, chosen: str) -> set[str]:
    shown = rows(reader.get(PAGE, params={"execution": chosen}).text)
    return {re.findall(r'/executions/(\w+)"', row)[0] for row in shown}


def test_an_open_execution_that_takes_longer_than_usual_is_found_before_it_ends(reader, put):
    for seconds in range(3601, 3607):
        put(seconds=seconds)
    put("running", seconds=None)
    put("running", seconds=None, began=datetime.now(UTC))
    assert "shorter than usual" not in reader.get(PAGE).text

    shown = rows(reader.get(PAGE, params={"execution": "longer"}).text)

    assert len(shown) == 1
    assert "▲ longer than usual" in shown[0]
    assert "Stop or retry in Airflow" in shown[0]


@pytest.mark.parametrize(
    ("column", "upwards", "downwards"),
    [
        ("start", ["one", "three", "two"], ["two", "three", "one"]),
        ("duration", ["two", "one", "three"], ["one", "two", "three"]),  # what is unknown comes last
        ("workflow", ["three", "one", "two"], ["two", "one", "three"]),
        ("state", ["three", "one", "two"], ["two", "one", "three"]),
    ],
)
def test_it_is_sorted_both_ways(reader, put, column, upwards, downwards):
    ids = {
        put("failed", "w2", 60, began=BEGAN.replace(hour=2)): "one",
        put("success", "w3", 7, began=BEGAN.replace(hour=4)): "two",
        put("deferred", "w1", **NOTHING_TOLD): "three",
    }

    def shown(**search: str) -> tuple[list[str], str, str]:
        text = reader.get(PAGE, params=search).text
        [head] = re.findall(rf'<th scope="col"([^>]*)><a href="([^"]+)">{column.capitalize()}', text)
        order = [name for row in rows(text) for id_, name in ids.items() if id_ in row]
        return order, *head

    assert shown(sort=column) == (upwards, ' aria-sort="ascending"', f"?sort=-{column}")
    assert shown(sort=f"-{column}") == (downwards, ' aria-sort="descending"', f"?sort={column}")
    assert shown(sort="no such column") == shown()


def test_a_link_to_the_list_means_the_same_in_every_zone(reader, put):
    put()
    search = {"from": "2026-05-04T05:00", "zone": "Europe/Berlin", "state": "success", "sort": "duration"}

    text = reader.get(PAGE, params=search).text
    [link] = re.findall(r'href="([^"]+)" target="_blank"[^>]*>Link to this list', text)
    query = {name: value[0] for name, value in parse_qs(urlsplit(link.replace("&amp;", "&")).query).items()}

    assert query == {**search, "from": "2026-05-04T03:00:00+00:00"}
    assert 'name="from" type="datetime-local" value="2026-05-04T05:00"' in text
    assert 'value="2026-05-03T23:00"' in reader.get(PAGE, params={**query, "zone": "America/New_York"}).text


def test_the_plots_follow_the_filter(reader, run):
    run("failed", "running")
    run("deferred", "waiting")

    def counted(**search: str) -> str:
        return words(reader.get(PAGE, params=search).text.partition("<figure>")[0])

    assert "✕ 1 failed ○ 1 other" in counted()
    assert "✕ 0 failed ○ 1 other" in counted(execution="waiting")


def test_a_service_that_is_away_is_named_and_the_list_is_shown(reader, run, simulator):
    execution_id = run("failed", "running")
    simulator.inject("status", status=503, times=None)

    answer = reader.get(PAGE)

    assert answer.status_code == 200
    assert execution_id in rows(answer.text)[0]
    assert "is not known from the connection 'service_default'" in words(answer.text).replace("&#39;", "'")
    assert "503" in answer.text
    assert simulator.api_key not in answer.text
    assert "running since" not in answer.text


def test_of_several_connections_to_a_server_one_that_may_read_suffices(reader, run, simulator, monkeypatch):
    run("failed", "running")
    for name in ("OLD", "OLDER"):
        connection = {"conn_type": "service", "host": simulator.base_url, "password": "old-key"}
        monkeypatch.setenv(f"AIRFLOW_CONN_{name}", json.dumps(connection))

    text = reader.get(PAGE).text

    assert "running since" in text
    assert "is not known" not in text
    simulator.inject("status", status=503, times=None)
    with using(SetClock()) as clock:
        clock.advance(3600)
        assert reader.get(PAGE).text.count("is not known") == 1


def test_texts_and_moments_that_nothing_can_show_do_no_harm(reader, run, put):
    run("failed", "running", told={"workflow_name": "\ud800x"})
    put("success", "another")

    for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
        for moments in ("", "&from=0001-01-01T00:00%2B00:00", "&to=9999-12-31T23:59%2B00:00"):
            assert reader.get(f"{PAGE}?zone={zone}{moments}").status_code == 200


def test_a_server_that_does_not_list_all_states_shows_the_others(reader, run, simulator):
    run("failed", "new")
    run("failed", "running")
    simulator.inject("status", status=400, query="status=new", times=None)  # as before n8n 2

    text = reader.get(PAGE).text

    assert "1 execution runs although its task has failed" in text
    assert "is not known" not in text


def test_a_service_that_does_not_answer_holds_no_page_up(reader, run, simulator, monkeypatch):
    from airflow_provider_service.plugins import _pages

    execution_id = run("failed", "running")
    reader.get(PAGES_OF_DAG[0])  # which connections there are is known
    monkeypatch.setattr(_pages, "WAIT_SECONDS", 0.0)
    go, see_open = threading.Event(), _pages.reading.see_open
    monkeypatch.setattr(_pages.reading, "see_open", lambda *of: go.wait(60) and see_open(*of))
    try:
        with using(SetClock()) as clock:
            clock.advance(3600)
            first = reader.get(PAGE).text
            assert execution_id in rows(first)[0]
            assert "running since" not in first
            assert 'data-follow="3"' in first
            go.set()
            until = time.monotonic() + 60
            while "running since" not in reader.get(PAGE).text and time.monotonic() < until:
                time.sleep(0.01)
            later = reader.get(PAGE).text
    finally:
        go.set()
    assert "running since" in later
    assert 'data-follow="10"' in later


def test_any_number_of_viewers_causes_one_read_of_the_lists_in_five_seconds(browser_of, app, run, simulator):
    run("failed", "running")
    viewers = [browser_of("VIEWER", app=app) for _ in range(4)]
    simulator.clear_requests()

    with using(SetClock()) as clock:
        for _ in range(3):
            for viewer in viewers:
                for page in (PAGE, PAGES_OF_DAG[0], f"{PAGE}?sort=state"):
                    assert "although" in viewer.get(page).text
            clock.advance(1.5)
        assert Counter(request.path for request in simulator.requests) == {"/api/v1/executions": 3}
        clock.advance(5)
        viewers[0].get(PAGE)
    assert len(simulator.requests) == 6


def test_viewers_with_the_same_rights_share_what_is_computed_outside_the_event_loop(browser_of, app, run, monkeypatch):
    rendered, render = Counter(), Template.render

    def watch(template: Template, *values: Any, **named: Any) -> str:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        rendered[template.name] += 1
        return render(template, *values, **named)

    run("failed", "running")
    monkeypatch.setattr(Template, "render", watch)
    with using(SetClock()) as clock:
        clock.advance(60 - clock.now() % 60)  # durations so far are judged anew each minute
        for viewer in [browser_of("VIEWER", app=app) for _ in range(4)]:
            for address in (PAGE, f"{PAGE}?part=view"):
                assert "running since" in viewer.get(address).text
            clock.advance(7)  # everything is read again, and nothing has changed

    assert rendered == {"executions.html.jinja": 2, "page.html.jinja": 1}


def test_who_has_other_rights_does_not_get_the_page_of_others(browser_of, app, put, monkeypatch):
    from airflow.api_fastapi.app import get_auth_manager

    execution_id = put(name="Secret workflow")
    assert execution_id in browser_of("ADMIN", app=app).get(PAGE).text

    monkeypatch.setattr(get_auth_manager(), "is_authorized_dag", lambda **asked: asked["details"].id != DAG)
    text = browser_of("VIEWER", app=app).get(PAGE).text

    assert execution_id not in text
    assert "Secret workflow" not in text


def test_who_may_read_no_execution_of_a_server_learns_nothing_of_its_connection(reader, run, simulator, refused):
    run("failed", "running")
    simulator.inject("status", status=503, times=None)
    simulator.clear_requests()

    assert "service_default" not in reader.get(PAGE).text
    assert not simulator.requests


def test_a_list_that_has_not_changed_is_not_sent_again(reader, put):
    put()

    for page in (PAGE, *PAGES_OF_DAG):
        first = reader.get(f"{page}?part=view")
        again = reader.get(f"{page}?part=view", headers={"If-None-Match": first.headers["etag"]})
        plain = reader.get(f"{page}?part=view", headers={"Accept-Encoding": "identity"})
        assert (again.status_code, again.content) == (304, b"")
        assert first.text.startswith('<div id="view"')
        assert first.headers["content-encoding"] == "gzip"
        assert plain.text == first.text


def test_a_list_that_too_many_others_wait_with_is_to_be_loaded_again(browser_of, pages_state, put):
    put()
    go = threading.Event()
    begun = [
        pages_state.executions._lists.look(("busy", at), lambda _: go.wait(60)) for at in range(MAX_READS + MAX_WAITING)
    ]
    try:
        refused = browser_of("VIEWER").get(PREFIX + PAGE)
    finally:
        go.set()
        for one in begun:
            one.result(20)

    assert refused.status_code == 503
    assert "Reload the page in a while" in refused.text


def test_a_list_without_anything_open_does_not_follow(reader, put):
    put()
    assert "data-follow" not in reader.get(PAGE).text
