"""How often and for how long polls may fail, and what an outcome contains."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import requests_mock

from airflow_provider_service._core.waits import stop
from airflow_provider_service._core.waits.outcome import Outcome
from airflow_provider_service._core.waits.stop import in_a_hurry, stop_execution, stop_overdue
from airflow_provider_service._core.waits.watch import MIN_FAILURES, Watch, explained
from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client.errors import ServiceTimeoutError
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.sensors.execution import ServiceExecutionSensor
from airflow_provider_service.simulator import ServiceSimulator
from tests.set_clock import SetClock

from .driving import TaskInstance, wait_for


@pytest.fixture
def client(simulator: ServiceSimulator) -> Iterator[ServiceClient]:
    config = ServiceConfig(base_url=simulator.base_url, api_key=simulator.api_key, retry_deadline=0)
    with ServiceClient(config) as one:
        yield one


def test_a_short_outage_does_not_end_a_wait_however_small_the_tolerance(
    simulator: ServiceSimulator, workflow_id: str, client: ServiceClient
) -> None:
    simulator.inject("status", times=None)
    watch = Watch(wait_for(simulator.start_execution(workflow_id), fault_tolerance=0.0))

    assert [watch.poll(client) for _ in range(MIN_FAILURES - 1)] == [None] * (MIN_FAILURES - 1)
    assert watch.in_trouble
    outcome = watch.poll(client)
    assert outcome is not None
    assert outcome.verdict == "unobservable"


def test_many_quick_faults_do_not_end_a_wait_within_the_tolerance(
    simulator: ServiceSimulator, workflow_id: str, client: ServiceClient, set_clock: SetClock
) -> None:
    simulator.inject("status", times=None)
    watch = Watch(wait_for(simulator.start_execution(workflow_id), fault_tolerance=0.5))
    for _ in range(16):
        assert watch.poll(client) is None
        set_clock.advance(0.03125)
    outcome = watch.poll(client)
    assert outcome is not None
    assert outcome.verdict == "unobservable"


def test_a_poll_that_succeeds_forgets_the_faults(
    simulator: ServiceSimulator, workflow_id: str, client: ServiceClient
) -> None:
    watch = Watch(wait_for(simulator.start_execution(workflow_id), fault_tolerance=0.0))
    for _ in range(5):
        simulator.inject("status", times=MIN_FAILURES - 1)
        assert [watch.poll(client) for _ in range(MIN_FAILURES)] == [None] * MIN_FAILURES
        assert not watch.in_trouble
    assert watch.workflow_id == workflow_id


def test_a_listed_execution_forgets_the_faults(workflow_id: str) -> None:
    watch = Watch(wait_for("1", fault_tolerance=0.0))
    fault = ServiceTimeoutError("r", method="GET", path="/executions")
    for _ in range(5):
        assert [watch.poll_failed(fault) for _ in range(MIN_FAILURES - 1)] == [None] * (MIN_FAILURES - 1)
        watch.saw_active()


@pytest.mark.parametrize(("status", "lasting"), [(400, True), (401, True), (403, True), (404, False), (500, False)])
def test_a_permanent_failure_ends_the_wait_at_once(
    status: int, lasting: bool, simulator: ServiceSimulator, workflow_id: str, client: ServiceClient
) -> None:
    simulator.inject("html" if status == 404 else "status", status=status)
    outcome = Watch(wait_for(simulator.start_execution(workflow_id))).poll(client)

    assert (outcome is not None) == lasting
    assert outcome is None or (outcome.verdict, str(status) in outcome.message) == ("unobservable", True)


@pytest.mark.parametrize("status", [400, 401])
def test_a_database_that_fails_does_not_end_the_wait(status: int, client: ServiceClient) -> None:
    with requests_mock.Mocker() as server:
        answer = {"message": "terminating connection due to administrator command"}
        server.get(requests_mock.ANY, status_code=status, json=answer, headers={"Content-Type": "application/json"})

        assert Watch(wait_for("1")).poll(client) is None
        assert server.called


def test_why_it_failed_may_stay_unknown(simulator: ServiceSimulator, workflow_id: str, client: ServiceClient) -> None:
    one = simulator.start_execution(workflow_id, status="error")
    watch = Watch(wait_for(one))
    execution = client.executions.get(one)
    simulator.inject("status", status=500)
    outcome = watch.saw(execution, client)

    assert outcome is not None
    assert outcome.message.startswith(
        f"execution {one} ended with status 'error': its data could not be read (ServiceServerError) - http://"
    )


def failed_event(client: ServiceClient, one: str, workflow_id: str, why: str) -> dict[str, Any]:
    message = f"execution {one} ended with status 'error'{why}"
    url = f"{client.base_url}/workflow/{workflow_id}/executions/{one}"
    return Outcome(one, "failed", message, "error", workflow_id, url=url).to_event()


def test_a_task_explains_the_failure_in_an_event_unless_it_is_explained_already(
    simulator: ServiceSimulator, workflow_id: str, client: ServiceClient
) -> None:
    one = simulator.start_execution(workflow_id)
    simulator.finish_execution(one, "error", node="Webhook", message="it broke")
    for stored, shown in (("", f" at node 'Webhook': it broke - {client.base_url}"), (": as before", ": as before")):
        for make in (ServiceExecutionSensor, ServiceRunWorkflowOperator):
            named: Any = {"execution_id": one} if make is ServiceExecutionSensor else {"workflow_id": workflow_id}
            task = make(task_id="wait", deferrable=True, **named)
            event = failed_event(client, one, workflow_id, stored)
            with pytest.raises(Exception, match=f"^execution {one} ended with status 'error'{re.escape(shown)}"):
                task.execute_complete({"ti": TaskInstance(), "task": task}, event)  # type: ignore[operator]


def test_the_failure_of_an_execution_of_another_server_explains_nothing(
    simulator: ServiceSimulator, workflow_id: str, client: ServiceClient
) -> None:
    one = simulator.start_execution(workflow_id)
    simulator.finish_execution(one, "error", message="it broke")
    event = failed_event(client, one, "another", "")

    outcome = explained(client.transport.config, Outcome.from_event(event))

    assert "its data could not be read (the connection leads to another server now)" in outcome.message
    assert "it broke" not in outcome.message


def test_a_long_message_is_truncated(simulator: ServiceSimulator, workflow_id: str, client: ServiceClient) -> None:
    one = simulator.start_execution(workflow_id)
    simulator.finish_execution(one, "error", message="m" * 5000)
    outcome = Watch(wait_for(one)).poll(client)

    assert outcome is not None
    assert outcome.message.endswith(f"mmm - {outcome.url}")
    assert len(outcome.message) < 1200


def test_an_outcome_survives_as_an_event() -> None:
    outcome = Outcome("1", "failed", "m", "error", "w", "2026-01-31T00:00:00.000Z", None, "http://x")

    assert Outcome.from_event(json.loads(json.dumps(outcome.to_event()))) == outcome
    assert outcome.to_xcom() == {
        "execution_id": "1",
        "status": "error",
        "workflow_id": "w",
        "started_at": "2026-01-31T00:00:00.000Z",
        "stopped_at": None,
        "url": "http://x",
    }
    assert outcome.to_xcom(only_ids=True) == {"execution_id": "1", "workflow_id": "w", "url": "http://x"}


def test_an_outcome_tells_when_the_execution_began_and_ended(
    simulator: ServiceSimulator, workflow_id: str, client: ServiceClient
) -> None:
    one = simulator.start_execution(workflow_id, status="success")
    wire = client.executions.get(one).to_wire()
    outcome = Watch(wait_for(one)).poll(client)

    assert outcome is not None
    assert wire["startedAt"]
    assert wire["stoppedAt"]
    assert (outcome.started_at, outcome.stopped_at) == (wire["startedAt"], wire["stoppedAt"])


@pytest.mark.parametrize("status", ["running", "waiting", "new", "success", None])
def test_stopping_ends_what_has_not_ended(
    status: str | None, simulator: ServiceSimulator, workflow_id: str, client: ServiceClient
) -> None:
    one = simulator.start_execution(workflow_id, status=status) if status else "77"

    is_active = status in {"running", "waiting", "new"}
    assert stop_execution(client.transport.config, one) == ("was stopped" if is_active else "had ended")
    if is_active:
        assert client.executions.get(one).status == "canceled"


def test_an_execution_that_the_service_cannot_read_by_its_id_is_stopped(
    simulator: ServiceSimulator, workflow_id: str, client: ServiceClient
) -> None:
    one = simulator.start_execution(workflow_id)
    simulator.inject("status", times=None, method="GET", path=rf"/executions/{one}$", status=500)

    assert stop_execution(client.transport.config, one, workflow_id=workflow_id) == "was stopped"


@pytest.mark.real_time  # sockets wait in real time
def test_stopping_takes_one_short_request(
    simulator: ServiceSimulator, workflow_id: str, client: ServiceClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stop, "STOP_TIMEOUT_SECONDS", 0.3)
    simulator.inject("latency", times=None, seconds=60)
    config = client.transport.config.model_copy(update={"timeout": 3600.0})

    assert stop_execution(in_a_hurry(config), simulator.start_execution(workflow_id)) == "could NOT be stopped"
    [request] = simulator.requests
    assert request.status is None, "it was answered before"


def overdue(simulator: ServiceSimulator, client: ServiceClient, execution_id: str) -> Outcome:
    """A wait whose deadline passes while reads fail, as its outcome."""
    simulator.inject("status", status=503)
    outcome = Watch(wait_for(execution_id, deadline=clock().now(), fault_tolerance=60.0)).poll(client)
    assert outcome is not None
    assert (outcome.verdict, outcome.is_overdue) == ("unobservable", True)
    return outcome


def test_a_stop_while_the_service_is_away_asks_once_and_promises_nothing(
    simulator: ServiceSimulator, workflow_id: str, client: ServiceClient, caplog: pytest.LogCaptureFixture
) -> None:
    one = simulator.start_execution(workflow_id)
    before = overdue(simulator, client, one)
    simulator.inject("status", times=None, status=503)
    simulator.clear_requests()
    caplog.clear()
    config = client.transport.config.model_copy(update={"retry_deadline": 60.0})
    with ServiceClient(config) as retrying:
        after = stop_overdue(retrying, before, wait_for(one))

    assert after == before._replace(message=f"{before.message}; it could NOT be stopped")
    assert [request.method for request in simulator.requests] == ["POST", "GET"]
    assert "tolerated" not in caplog.text


@pytest.mark.parametrize(
    ("status", "verdict", "message"),
    [
        ("running", "timed_out", "execution {} had not ended 60 s after the wait began; it was stopped"),
        ("success", "succeeded", "execution {} ended with status 'success'"),
    ],
)
def test_a_stop_after_the_service_is_back_finds_out_what_the_wait_could_not_see(
    status: str, verdict: str, message: str, simulator: ServiceSimulator, workflow_id: str, client: ServiceClient
) -> None:
    one = simulator.start_execution(workflow_id, status=status)
    outcome = stop_overdue(client, overdue(simulator, client, one), wait_for(one))

    assert (outcome.verdict, outcome.message) == (verdict, message.format(one))


def test_a_stop_that_the_user_of_the_key_may_not_make_has_stopped_nothing(
    simulator: ServiceSimulator, workflow_id: str, client: ServiceClient, caplog: pytest.LogCaptureFixture
) -> None:
    one = simulator.start_execution(workflow_id)
    simulator.inject("status", path="/stop$", status=404)
    before = Watch(wait_for(one)).timed_out()
    after = stop_overdue(client, before, wait_for(one))

    assert after.message == f"{before.message}; it could NOT be stopped and may still be running"
    assert stop.NOT_ALLOWED in caplog.text


def test_an_end_that_cannot_be_read_is_not_called_a_stop(
    simulator: ServiceSimulator, workflow_id: str, client: ServiceClient
) -> None:
    one = simulator.start_execution(workflow_id, status="success")
    before = overdue(simulator, client, one)
    simulator.inject("status", method="GET", status=503)
    after = stop_overdue(client, before, wait_for(one))

    assert after == before._replace(message=f"{before.message}; it has ended by now, but how could not be read")
