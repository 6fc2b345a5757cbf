"""What a page says of an execution, read from the simulator: its nodes, never its data, and errors in words."""

from __future__ import annotations

import pytest

from airflow_provider_service._core.pages import reading
from airflow_provider_service._core.pages.reading import ExecutionReading, keep_seconds, see
from airflow_provider_service.client import ServiceConfig
from airflow_provider_service.client.errors import ServiceConfigError
from tests.polling import wait_until

from .conftest import HOSTILE, PAYLOAD


@pytest.fixture
def look(simulator):
    def at(execution_id, last=None, *, show_data=False, **settings):
        config = ServiceConfig(base_url=simulator.base_url, api_key=simulator.api_key, **settings)
        return see(lambda: config, execution_id, last, base_url=config.base_url, show_data=show_data)

    return at


def test_a_failed_execution_shows_the_node_and_the_message_of_the_service(start, look):
    _, execution_id = start("fails")

    view = look(execution_id).view

    assert (view.status, view.state, view.workflow_name, view.mode) == ("error", "failed", HOSTILE, "webhook")
    assert view.failure == (HOSTILE, f"The shop is closed {HOSTILE}")
    assert [(node.name, node.state, node.items) for node in view.nodes] == [
        ("Webhook", "succeeded", 1),
        ("Read orders", "succeeded", 3),
        (HOSTILE, "failed", 0),
        ("Last", "not run", None),
    ]
    assert [box.node for box in view.drawing.boxes] == ["Webhook", "Read orders", HOSTILE, "Last"]
    assert all(node.bars and 0 <= node.bars[0].begin < 1 for node in view.nodes[:3])
    assert view.has_ended
    assert view.seconds is not None


def test_a_waiting_execution_shows_what_has_run_and_until_when_it_waits(start, look):
    _, execution_id = start("waits")

    view = look(execution_id).view

    assert (view.status, view.has_ended, view.failure) == ("waiting", False, None)
    assert view.wait_till is not None
    assert [node.state for node in view.nodes] == ["succeeded", "succeeded", "waiting", "not run"]


def test_a_running_execution_says_that_the_service_does_not_report_its_nodes(start, look):
    _, execution_id = start("runs")

    view = look(execution_id).view

    assert (view.status, view.seconds) == ("running", None)
    assert {node.state for node in view.nodes} == {"unreported"}
    assert "Save execution progress" in " ".join(view.notes)


def test_a_running_execution_that_saves_its_progress_shows_its_nodes(start, look):
    _, execution_id = start("runs", settings={"saveExecutionProgress": True})

    def with_nodes():
        view = look(execution_id).view
        return view if view.node("Read orders").state == "succeeded" else None

    view = wait_until(with_nodes, seconds=60, what="the progress", interval=0.02)
    assert (view.status, view.node("Webhook").state, view.notes) == ("running", "succeeded", [])


@pytest.mark.parametrize("ending", ["succeeds", "fails", "waits", "runs"])
def test_no_data_is_shown_unless_it_may_be(start, look, ending):
    _, execution_id = start(ending)

    assert PAYLOAD not in repr(look(execution_id))


def test_data_that_may_be_shown_holds_no_secret_of_the_call(start, look, simulator):
    _, execution_id = start("succeeds")

    seen = look(execution_id, show_data=True)

    assert PAYLOAD in (seen.view.node("Read orders").output or "")
    assert "user-agent" in (seen.view.node("Webhook").output or "").lower()
    assert simulator.api_key not in repr(seen)


def test_data_that_may_be_shown_holds_only_headers_that_are_no_secret(start, look):
    headers = {"X-Orders-Token": "token-of-the-webhook"}
    _, execution_id = start("succeeds", headers=headers, payload={"order": PAYLOAD, "calls": [{"headers": headers}]})

    output = look(execution_id, show_data=True).view.node("Webhook").output

    assert (PAYLOAD in output, "token-of-the-webhook" in output) == (True, False)
    assert (output.count('"x-orders-token": "***"'), output.count('"X-Orders-Token": "***"')) == (1, 1)
    assert '"content-type": "application/json"' in output


def test_data_that_may_be_shown_holds_no_token_of_a_known_issuer(start, look):
    token = f"glpat-{'4e9Xk2' * 4}"
    _, execution_id = start("succeeds", payload={"order": PAYLOAD, "note": f"with {token} in it"})

    output = look(execution_id, show_data=True).view.node("Webhook").output

    assert (PAYLOAD in output, token in output) == (True, False)


def test_one_look_is_one_request(start, look, simulator):
    _, execution_id = start("succeeds")
    simulator.clear_requests()

    seen = look(execution_id)
    assert [(one.method, one.path) for one in simulator.requests] == [("GET", f"/api/v1/executions/{execution_id}")]
    assert keep_seconds(seen) == reading.KEEP_ENDED_SECONDS


def test_a_key_in_a_text_of_the_service_is_hidden(start, look, simulator):
    _, execution_id = start("succeeds", name=f"uses {simulator.api_key}")

    seen = look(execution_id)

    assert seen.view.workflow_name == "uses ***"
    assert simulator.api_key not in repr(seen)


def test_an_execution_that_is_gone_stays_as_it_was_last_seen(start, look, simulator):
    _, execution_id = start("succeeds")
    last = look(execution_id)
    simulator.forget_execution(execution_id)

    seen = look(execution_id, last)

    assert (seen.is_gone, seen.view) == (True, last.view)
    assert look(execution_id).view is None


def test_an_error_is_described_and_the_last_state_stays(start, look, simulator):
    _, execution_id = start("waits")
    last = look(execution_id)
    simulator.inject("status", status=503)

    seen = look(execution_id, last)

    assert "503" in seen.error
    assert seen.view == last.view
    assert look(execution_id, seen).error is None


def test_an_execution_with_large_data_is_shown_at_once_and_its_data_not_read_again(start, look, simulator, monkeypatch):
    _, execution_id = start("succeeds")
    monkeypatch.setattr(reading, "MAX_SHOWN_MIB", 0)
    simulator.clear_requests()

    first = look(execution_id)
    second = look(execution_id, first)

    for seen in (first, second):
        assert (seen.is_large, seen.view.status, seen.view.nodes) == (True, "success", [])
        assert seen.view.seconds is not None
    assert ["includeData=true" in one.query for one in simulator.requests] == [True, False, False]


@pytest.mark.parametrize("query", ["", "includeData=true"], ids=["by id", "with its data"])
@pytest.mark.parametrize(("ending", "status"), [("succeeds", "success"), ("fails", "error"), ("runs", "running")])
def test_an_execution_that_the_service_cannot_read_is_shown_without_its_nodes(
    start, look, simulator, query, ending, status
):
    _, execution_id = start(ending)
    simulator.inject("status", times=None, path=f"/executions/{execution_id}$", query=query, status=500)

    seen = look(execution_id)

    assert (seen.error, seen.view.status, seen.view.nodes) == (None, status, [])
    assert "HTTP 500" in seen.data_error
    assert "malformed argument" not in seen.data_error
    simulator.clear_faults()
    again = look(execution_id, seen)
    assert (again.data_error, bool(again.view.nodes)) == (None, True)


def test_an_execution_that_no_list_shows_either_cannot_be_read(start, look, simulator):
    _, execution_id = start("succeeds")
    simulator.inject("status", times=None, path="/executions", status=500)

    seen = look(execution_id)

    assert (seen.view, "HTTP 500" in seen.error) == (None, True)


def test_an_execution_is_not_read_from_another_service(start, look, simulator):
    _, execution_id = start("succeeds")
    simulator.clear_requests()
    config = ServiceConfig(base_url=simulator.base_url, api_key=simulator.api_key)

    seen = see(lambda: config, execution_id, None, base_url="https://elsewhere.example.com", show_data=False)

    assert seen.view is None
    assert "https://elsewhere.example.com" in seen.error
    assert not simulator.requests


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ServiceConfigError("connection 'x': host is empty"), "host is empty"),
        (RuntimeError("token s3cr3t of the vault is no longer valid"), "RuntimeError"),
    ],
)
def test_a_connection_that_cannot_be_used_is_reported_without_secrets(error, words):
    def fail():
        raise error

    seen = see(fail, "1", ExecutionReading(), base_url="https://service.example.com", show_data=False)

    assert words in seen.error
    assert "s3cr3t" not in seen.error
