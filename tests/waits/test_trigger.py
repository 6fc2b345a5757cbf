"""The trigger of a deferred wait: what it stores, and what survives a restart."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import TaskDeferred

from airflow_provider_service._core.waits.outcome import Outcome
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing._service import as_stored, first_event, from_stored, revived
from airflow_provider_service.triggers.source_control import ServiceSourceControlTrigger
from tests.airflow_features import AIRFLOW

from .driving import (
    OPERATOR_MODES,
    SENSOR_MODES,
    TaskInstance,
    Triggerer,
    execution_trigger,
    in_event_loop,
    polls_of,
    until,
)

GOOD = Outcome("1", "succeeded", "it ended", "success").to_event()
ODD_EVENTS = [
    None,
    "succeeded",
    [],
    {},
    {"verdict": "succeeded"},
    {**GOOD, "more": 1},
    {**GOOD, "verdict": "fine"},
    {**GOOD, "verdict": ["succeeded"]},
    {"status": "success", "execution_id": "1"},
]


@in_event_loop
async def test_arguments_and_events_hold_no_secret(
    simulator: ServiceSimulator, workflow_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    trigger = execution_trigger(simulator.start_execution(workflow_id, status="error"))
    event = await first_event(trigger)
    simulator.revoke_key(simulator.api_key)
    refused = await first_event(execution_trigger(simulator.start_execution(workflow_id)))

    assert refused["verdict"] == "unobservable"
    for text in (json.dumps(trigger.serialize()), repr(trigger), json.dumps([event, refused]), caplog.text):
        assert text
        assert simulator.api_key not in text


@in_event_loop
async def test_a_revived_trigger_is_the_same(simulator: ServiceSimulator, workflow_id: str) -> None:
    trigger = execution_trigger("7", cancel_on_kill=True, on_vanished="succeed")

    assert revived(trigger).serialize() == trigger.serialize()
    assert trigger.serialize()[1]["cancel_on_kill"] is True


@pytest.mark.parametrize("of", ["an execution", "a condition"])
@pytest.mark.parametrize("trigger_id", [1, None], ids=["in a triggerer", "in a test"])
@in_event_loop
async def test_on_airflow_3_a_triggerer_gets_no_event_before_the_worker_of_the_task_has_ended(
    trigger_id: int | None, of: str, simulator: ServiceSimulator, workflow_id: str
) -> None:
    """The scheduler fails the task otherwise; the worker takes up to 5 s to notice that its task was deferred."""
    began = clock().now()
    deadline = began + 5  # beyond which the clock of the test does not jump
    if of == "an execution":
        one = simulator.start_execution(workflow_id, status="success")
        trigger: Any = execution_trigger(one, deadline=deadline)
    else:
        trigger = ServiceSourceControlTrigger(
            service_conn_id="service_default", deadline=deadline, timeout=5, poll_interval=0.1
        )
    trigger.trigger_id = trigger_id

    event = await first_event(trigger)

    assert event["verdict"] in ("succeeded", "met")
    assert (clock().now() - began >= 7.0) == (trigger_id is not None and AIRFLOW.startswith("3."))


def test_an_operator_defers_with_seconds_whatever_it_is_given(simulator: ServiceSimulator, workflow_id: str) -> None:
    spans: dict[str, Any] = {
        "poll_interval": timedelta(seconds=7),
        "timeout": timedelta(minutes=5),
        "fault_tolerance": timedelta(minutes=1),
    }
    task = ServiceRunWorkflowOperator(
        task_id="run", workflow_id=workflow_id, deferrable=True, execution_timeout=timedelta(minutes=2), **spans
    )
    context: Any = {"ti": TaskInstance(), "task": task, "dag_run": SimpleNamespace(start_date=None)}
    with pytest.raises(TaskDeferred) as deferred:
        task.execute(context)

    stored = deferred.value.trigger.serialize()[1]
    # Half a minute is left for Airflow to run the task again.
    assert (stored["poll_interval"], stored["timeout"], stored["fault_tolerance"]) == (7.0, 90.0, 60.0)
    assert abs(stored["deadline"] - clock().now() - 90) < 60
    assert {name: getattr(task, name) for name in spans} == spans


@pytest.mark.parametrize("wrong", [{"on_vanished": "skip"}, {"cancel_on_kill": "no"}, {"poll_interval": -1}])
def test_arguments_without_meaning(wrong: dict[str, Any]) -> None:
    with pytest.raises(ServiceInputError, match=f"^{next(iter(wrong))} must be "):
        execution_trigger("7", **wrong)


def test_a_restart_of_the_triggerer_keeps_the_deadline(simulator: ServiceSimulator, workflow_id: str) -> None:
    one = simulator.start_execution(workflow_id)
    trigger = execution_trigger(one, deadline=clock().now() + 1.5, timeout=1.5)

    async def first_life() -> None:
        triggerer = Triggerer()
        triggerer.start(trigger)
        await until(lambda: polls_of(simulator, one) >= 1)
        await triggerer.shut_down()

    asyncio.run(first_life())
    clock().sleep(trigger.deadline - clock().now())
    seen = polls_of(simulator, one)
    event = asyncio.run(first_event(revived(trigger)))

    assert event["verdict"] == "timed_out"
    assert event["message"] == f"execution {one} had not ended 1.5 s after the wait began"
    assert polls_of(simulator, one) == seen + 1, "it had no time left but for a last poll"


@in_event_loop
async def test_an_event_about_a_failure_leaves_its_explanation_to_the_task(
    simulator: ServiceSimulator, workflow_id: str
) -> None:
    one = simulator.start_execution(workflow_id)
    simulator.finish_execution(one, "error", node="Webhook", message="the token is wrong: abc")

    event = await first_event(execution_trigger(one))

    assert (event["verdict"], event["message"]) == ("failed", f"execution {one} ended with status 'error'")
    assert not [request for request in simulator.requests if "includeData" in request.query]


def test_a_trigger_that_an_earlier_version_has_stored_waits_for_an_execution_of_any_workflow() -> None:
    path, arguments = as_stored(execution_trigger("7"))
    del arguments["expected_workflow_id"]

    assert from_stored(path, arguments).expected_workflow_id is None


@in_event_loop
async def test_a_wait_without_a_connection_ends_readably(
    simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", json.dumps({"conn_type": "service", "host": "https://x"}))

    event = await first_event(execution_trigger("7"))

    assert event["verdict"] == "unobservable"
    assert event["message"] == (
        "the wait for execution 7 failed: connection 'service_default': password is empty; it holds the API key"
    )


@pytest.mark.parametrize("is_back", [True, False])
@in_event_loop
async def test_a_connection_that_cannot_be_read_after_a_restart_is_a_fault_that_may_pass(
    simulator: ServiceSimulator,
    workflow_id: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    is_back: bool,
) -> None:
    one = simulator.start_execution(workflow_id, status="success")
    monkeypatch.delenv("AIRFLOW_CONN_SERVICE_DEFAULT")
    wait = asyncio.create_task(first_event(execution_trigger(one, fault_tolerance=30.0 if is_back else 1.0)))
    await until(lambda: wait.done() or "Reading connection 'service_default' fails; this is tolerated" in caplog.text)
    if is_back:
        monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", simulator.connection_json())

    event = await wait

    assert event["verdict"] == ("succeeded" if is_back else "unobservable")
    assert is_back or event["message"].endswith("add it under Admin, Connections, or as a variable of the environment")


@in_event_loop
async def test_a_deadline_that_passes_while_the_connection_cannot_be_read_ends_the_wait(
    simulator: ServiceSimulator, workflow_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = simulator.start_execution(workflow_id)
    monkeypatch.delenv("AIRFLOW_CONN_SERVICE_DEFAULT")
    deadline = clock().now() + 10

    event = await first_event(execution_trigger(one, deadline=deadline, fault_tolerance=30.0, poll_interval=2.0))

    assert 0 <= clock().now() - deadline < 1
    assert (event["verdict"], event["is_overdue"]) == ("unobservable", True), "so that the task stops the execution"


@in_event_loop
async def test_a_wait_whose_certificate_is_gone_ends_readably(
    simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = json.loads(os.environ["AIRFLOW_CONN_SERVICE_DEFAULT"])
    address = fields["host"].replace("http://", "https://")
    connection = {**fields, "host": address, "extra": {"verify": "/not/there.pem"}}
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", json.dumps(connection))

    events = await asyncio.gather(*(first_event(execution_trigger(str(number))) for number in range(1, 6)))

    assert {event["verdict"] for event in events} == {"unobservable"}
    assert events[0]["message"].startswith("the wait for execution 1 failed: the extras 'verify' and 'cert' cannot")


@pytest.mark.parametrize("event", ODD_EVENTS, ids=repr)
@pytest.mark.parametrize("mode", [SENSOR_MODES[2], OPERATOR_MODES[1]], ids=["sensor", "operator"])
def test_an_event_of_another_shape_is_not_a_success(mode: Any, event: Any, simulator: ServiceSimulator) -> None:
    task = mode.task("1", interval=1)
    context = {"ti": TaskInstance(), "task": task}

    with pytest.raises(Exception, match="the trigger sent an event of an unknown shape"):
        task.resume_execution("execute_complete", {"event": event}, context)
