"""The tab of a task instance, answered by Airflow's own application, with its own users."""

from __future__ import annotations

import asyncio
import re
import threading
from collections import Counter
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from jinja2 import Template

from airflow_provider_service._core.pages import rendering
from airflow_provider_service._core.pages.reading import LEAST_PAUSE_SECONDS, MAX_READS, MAX_WAITING
from airflow_provider_service.client._clock import using
from tests import airflow_features
from tests.pages.conftest import PAYLOAD
from tests.pages.conftest import start as start
from tests.set_clock import SetClock

from .conftest import DAG, RUN

pytestmark = airflow_features.pages


@pytest.fixture
def reader(browser_of):
    return browser_of("VIEWER")


def test_a_page_that_too_many_others_wait_with_is_to_be_loaded_again(reader, pages_state, put_task):
    path, go = put_task(), threading.Event()
    begun = [
        pages_state.tasks._tasks.look(("busy", at), lambda _: go.wait(60)) for at in range(MAX_READS + MAX_WAITING)
    ]
    try:
        refused = reader.get(path)
    finally:
        go.set()
        for one in begun:
            one.result(20)

    assert refused.status_code == 503
    assert "Reload the page in a while" in refused.text
    assert reader.get(path).status_code == 200


@pytest.mark.parametrize("ending", ["succeeds", "fails", "waits", "runs"])
def test_a_reader_sees_the_execution_and_nobody_its_data_or_the_key(reader, waiting_task, start, simulator, ending):
    path = waiting_task(simulator.base_url, *start(ending))

    for address in (path, f"{path}?part=view"):
        answer = reader.get(address)
        assert answer.status_code == 200
        for text in (answer.text, repr(answer.headers)):
            assert simulator.api_key not in text
            assert PAYLOAD not in text
    assert "Read orders" in answer.text
    assert answer.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "frame-ancestors 'self'" in answer.headers["content-security-policy"]


def test_only_who_may_read_the_task_instance_sees_anything(browser_of, waiting_task, start, simulator):
    path = waiting_task(simulator.base_url, *start("succeeds"))
    simulator.clear_requests()

    without_right, stranger = browser_of(None), browser_of(None, logged_in=False)
    refused = [(without_right, 403, "may not read"), (stranger, 401, "not logged in")]
    for browser, status, words in refused:
        for address in (path, f"{path}?part=view", path.replace("/tasks/", "/tasks/no_such_")):
            answer = browser.get(address)
            assert answer.status_code == status
            assert words in answer.text
            assert "Read orders" not in answer.text
    assert not simulator.requests


def test_only_the_right_to_read_task_instances_of_the_dag_counts(
    browser_of, waiting_task, start, simulator, monkeypatch
):
    """Airflow's own users may read everything of a DAG; other auth managers grant rights one by one."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity

    path, reader = waiting_task(simulator.base_url, *start("succeeds")), browser_of("VIEWER")
    answers = {}
    for right in (None, *DagAccessEntity):

        def is_granted(*, method: str, access_entity: Any = None, details: Any, right: Any = right, **_: Any) -> bool:
            return (method, access_entity, details.id) == ("GET", right, DAG)

        monkeypatch.setattr(get_auth_manager(), "is_authorized_dag", is_granted)
        answers[right] = reader.get(path).status_code

    assert answers.pop(DagAccessEntity.TASK_INSTANCE) == 200
    assert set(answers.values()) == {403}


def test_any_number_of_viewers_causes_one_request_in_two_seconds(browser_of, waiting_task, start, simulator):
    from airflow_provider_service.plugins._app import make_app

    execution = start("waits")
    paths = [waiting_task(simulator.base_url, *execution).removeprefix("/service-pages") for _ in range(2)]
    app = make_app()
    viewers = [browser_of("VIEWER", app=app) for _ in range(5)]
    simulator.clear_requests()

    with using(SetClock()) as clock:
        for _ in range(4):
            for viewer in viewers:
                for path in paths:
                    assert viewer.get(path).status_code == 200
            clock.advance(LEAST_PAUSE_SECONDS / 4.01)
        assert len(simulator.requests) == 1

        clock.advance(LEAST_PAUSE_SECONDS)
        viewers[0].get(paths[0])
        assert len(simulator.requests) == 2


def test_all_viewers_share_what_is_computed_outside_the_event_loop(
    browser_of, waiting_task, start, simulator, monkeypatch
):
    from airflow_provider_service.plugins._app import make_app

    rendered, render = Counter(), Template.render

    def watch(template: Template, *values: Any, **named: Any) -> str:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        rendered[template.name] += 1
        return render(template, *values, **named)

    monkeypatch.setattr(Template, "render", watch)
    execution = start("waits")
    paths = [waiting_task(simulator.base_url, *execution).removeprefix("/service-pages") for _ in range(2)]
    app = make_app()
    with using(SetClock()):
        for viewer in [browser_of("VIEWER", app=app) for _ in range(5)]:
            for path in paths:
                for address in (path, f"{path}?part=view"):
                    assert "Read orders" in viewer.get(address).text

    # A page and its part for each task; the nodes of the execution only once.
    assert rendered == {"nodes.html.jinja": 1, "task.html.jinja": 4, "page.html.jinja": 2}


def test_a_page_is_the_same_for_a_browser_that_takes_nothing_compressed(reader, waiting_task, start, simulator):
    path = waiting_task(simulator.base_url, *start("succeeds"))

    compressed = reader.get(path)
    plain = reader.get(path, headers={"Accept-Encoding": "identity"})

    assert (compressed.headers["content-encoding"], "content-encoding" in plain.headers) == ("gzip", False)
    assert compressed.text == plain.text


def test_a_part_that_has_not_changed_is_not_sent_again(reader, waiting_task, start, simulator):
    path = f"{waiting_task(simulator.base_url, *start('waits'))}?part=view"

    first = reader.get(path)
    again = reader.get(path, headers={"If-None-Match": first.headers["etag"]})

    assert (again.status_code, again.content) == (304, b"")
    assert first.text.startswith('<div id="view"')


def test_no_node_is_said_to_have_failed_if_the_execution_was_canceled(reader, waiting_task, start, simulator, client):
    execution = start("waits")
    client.executions.stop(execution[1])
    canceled = reader.get(waiting_task(simulator.base_url, *execution)).text
    failed = reader.get(waiting_task(simulator.base_url, *start("fails"))).text

    said = [" ".join(re.sub("<[^>]+>", "", text).split()) for text in (canceled, failed)]
    assert "It ended after" in said[0]
    assert " failed: " not in said[0]
    assert " failed: " in said[1]
    assert "It ended after" not in said[1]


def test_earlier_attempts_are_listed(reader, waiting_task, start, simulator):
    path = waiting_task(simulator.base_url, *start("fails"), state="failed", attempts=3)

    text = reader.get(path).text

    assert text.count("<td>failed</td>") == 3
    assert text.count("<td>not known</td>") == 2
    assert "data-follow" not in text


@pytest.mark.parametrize(
    ("fields", "state", "words", "follows"),
    [
        ({"bash_command": "true"}, "success", "does not run a workflow", False),
        (None, None, "does not run a workflow", False),
        ({"service_conn_id": "service_default"}, "queued", "has not started an execution yet", True),
        ({"service_conn_id": "service_default"}, "failed", "no longer knows which", False),
    ],
)
def test_a_task_without_execution_says_so(reader, put_task, simulator, fields, state, words, follows):
    text = reader.get(put_task(state, fields=fields)).text

    assert words in text
    assert ("data-follow" in text) is follows
    assert not simulator.requests


@pytest.mark.parametrize("map_index", [-1, 3])
def test_a_task_that_failed_before_it_started_anything_says_why_and_where_more_is_said(reader, put_task, map_index):
    fields = {"service_conn_id": "a/b <x>"}
    path = put_task("failed", fields=fields, task_id="broken", map_index=map_index)

    text = reader.get(path).text

    assert "The connection cannot be used: Airflow has no such connection" in text
    links = re.findall('class="button" href="([^"]*)"', text)
    mapped = "/mapped/3" if map_index == 3 else ""
    assert links == [
        f"/dags/{DAG}/runs/{quote(RUN, safe='')}/tasks/broken{mapped}",
        "/service-pages/connections/a%2Fb%20%3Cx%3E",
    ]


def test_a_task_that_failed_with_a_connection_that_works_leads_to_its_log(reader, put_task, simulator):
    text = reader.get(put_task("failed", fields={"service_conn_id": "service_default"})).text

    assert "Its log says why" in text
    assert "cannot be used" not in text


def test_a_task_without_a_dag_version_has_the_arguments_of_its_dag_as_it_is_now(browser_of, put_task, monkeypatch):
    """Airflow 3 finds no version for task instances of Airflow 2, of any DAG."""
    from airflow.models.dagbag import DBDagBag

    from airflow_provider_service.plugins._app import make_app

    path = put_task("failed", task_id="old").removeprefix("/service-pages")
    for conn_id in ("first", "second"):
        dag = SimpleNamespace(task_dict={"old": SimpleNamespace(service_conn_id=conn_id)})
        monkeypatch.setattr(DBDagBag, "get_dag_for_run", lambda *_, dag=dag, **__: dag)
        text = browser_of("VIEWER", app=make_app()).get(path).text
        assert f'/connections/{conn_id}"' in text


def test_a_mapped_task_instance_has_its_own_page(reader, waiting_task, start, simulator):
    path = waiting_task(simulator.base_url, *start("succeeds"), map_index=3)

    assert "Read orders" in reader.get(path).text
    assert reader.get(f"{path.rpartition('/')[0]}/4").status_code == 404
    assert reader.get(f"{path.rpartition('/')[0]}/x").status_code == 404


@pytest.mark.parametrize("index", [2**31, 2**63, -2, -(2**63) - 1, "9" * 400], ids=["31", "63", "-2", "-63", "long"])
def test_an_index_that_no_task_instance_can_have_is_not_there(reader, waiting_task, index):
    path = waiting_task("https://service.example.com", "w", "7", map_index=3)

    assert reader.get(f"{path.rpartition('/')[0]}/{index}").status_code == 404


def test_a_service_that_is_down_is_said_in_words(reader, waiting_task, start, simulator):
    path = waiting_task(simulator.base_url, *start("waits"))
    simulator.inject("status", status=503, times=None)

    answer = reader.get(path)

    assert answer.status_code == 200
    assert "cannot be read" in answer.text or "503" in answer.text
    assert simulator.api_key not in answer.text


@pytest.mark.parametrize("name", sorted(rendering.ASSETS))
def test_the_files_of_a_page_may_be_kept(browser_of, name):
    answer = browser_of(None, logged_in=False).get(f"/service-pages/assets/any/{name}")

    assert answer.status_code == 200
    assert "immutable" in answer.headers["cache-control"]
    assert browser_of("VIEWER").get("/service-pages/assets/any/secrets").status_code == 404


def test_data_is_shown_only_where_the_deployment_says_so(reader, waiting_task, start, simulator, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SERVICE__SHOW_DATA", "True")

    text = reader.get(waiting_task(simulator.base_url, *start("succeeds"))).text

    assert PAYLOAD in text
    assert simulator.api_key not in text


def test_the_connection_that_was_used_is_named_and_linked(browser_of, waiting_task, start, simulator, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_N8N_DEFAULT", simulator.connection_json())
    monkeypatch.delenv("AIRFLOW_CONN_SERVICE_DEFAULT")
    reader, path = browser_of("ADMIN"), waiting_task(simulator.base_url, *start("waits"))

    text = reader.get(path).text

    assert "service_default" not in text
    [link] = re.findall('Read with the connection <a href="([^"]+)"[^>]*>n8n_default</a>', text)
    assert "Connection n8n_default" in reader.get(link).text
