"""The sensor on source control waits for changes, or for none, in the same way in every mode."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import TaskDeferred

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.sensors.source_control import ServiceSourceControlSensor
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing._service import as_stored, first_event, revived
from airflow_provider_service.triggers import _polling
from airflow_provider_service.triggers._polling import LAST_POLL_SECONDS, POLLS_AT_A_TIME
from airflow_provider_service.triggers.source_control import ServiceSourceControlTrigger

from .driving import SENSOR_MODES, Ending, Mode, TaskInstance, in_event_loop, run_to_end, until

every_mode = pytest.mark.parametrize("mode", SENSOR_MODES, ids=[mode.name for mode in SENSOR_MODES])


def wait(mode: Mode, ti: TaskInstance | None = None, **options: Any) -> Ending:
    arguments = {"poke_interval": 0.05, "timeout": 60, **options}
    return run_to_end(lambda: ServiceSourceControlSensor(task_id="wait", **mode.arguments, **arguments), ti)


@every_mode
def test_it_returns_the_changes_that_are_there(mode: Mode, simulator: ServiceSimulator) -> None:
    ti = TaskInstance()
    ending = wait(mode, ti)
    assert ending.kind == "returned", ending
    assert ending.value["by_type"] == {"workflow": 1, "variables": 1, "tags": 1}
    assert [one["type"] for one in ending.value["files"]] == ["workflow", "variables", "tags"]
    assert ending.pushed["_link_ServicePageLink"] == ending.value["url"]
    assert not ti.pauses
    assert wait(mode, types=["tags"]).value["count"] == 1
    assert [one.method for one in simulator.requests if one.method != "GET"] == []


@every_mode
def test_it_waits_until_there_are_none(mode: Mode, simulator: ServiceSimulator, client: ServiceClient) -> None:
    # While it waits, somebody pulls.
    seen = threading.Event()

    def pull() -> None:
        while not simulator.requests and not clock().wait(seen, 0.01):
            pass
        client.source_control.pull()

    thread = threading.Thread(target=pull)
    thread.start()
    try:
        ending = wait(mode, state="unchanged")
    finally:
        seen.set()
        thread.join()
    assert ending.kind == "returned", ending
    assert (ending.value["count"], ending.value["files"]) == (0, [])


@every_mode
@pytest.mark.parametrize("soft_fail", [False, True])
def test_the_end_of_its_time_says_what_there_was(mode: Mode, soft_fail: bool, simulator: ServiceSimulator) -> None:
    ending = wait(mode, state="unchanged", timeout=0.3, soft_fail=soft_fail)
    assert ending.kind == ("AirflowSkipException" if soft_fail else "AirflowSensorTimeout")
    assert "there were still changes to pull within 0.3 s: 3 objects to pull" in ending.message
    ending = wait(mode, direction="push", timeout=0.3)
    assert "there were no changes to push within 0.3 s: 0 objects to push" in ending.message


@every_mode
def test_what_cannot_be_read_at_the_end_of_its_time_is_not_skipped(mode: Mode, simulator: ServiceSimulator) -> None:
    simulator.inject("status", times=None, path="/source-control/status", status=500)

    ending = wait(mode, timeout=0.3, fault_tolerance=60, soft_fail=True)

    assert ending.kind == "ServiceWaitError"
    assert "when the deadline passed, the status of source control could not be read" in ending.message


@in_event_loop
async def test_polls_that_wait_for_their_turn_after_the_deadline_are_still_made(simulator: ServiceSimulator) -> None:
    simulator.inject("latency", times=None, seconds=LAST_POLL_SECONDS / 2 - 1)

    events = await asyncio.gather(*(first_event(overdue_trigger()) for _ in range(2 * POLLS_AT_A_TIME + 1)))

    assert {event["verdict"] for event in events} == {"met"}


@in_event_loop
async def test_polls_of_a_service_that_hangs_wait_for_their_turn_only_shortly_after_the_deadline(
    simulator: ServiceSimulator,
) -> None:
    simulator.inject("latency", times=None, seconds=200)
    deadline = clock().now() + 5
    trigger = ServiceSourceControlTrigger(
        service_conn_id="service_default", deadline=deadline, timeout=5, poll_interval=2
    )

    events = await asyncio.gather(*(first_event(revived(trigger)) for _ in range(4 * POLLS_AT_A_TIME)))

    assert {event["verdict"] for event in events} == {"unreadable"}
    assert clock().now() - deadline < 2 * LAST_POLL_SECONDS + 1
    await clock().async_sleep(300)  # until nothing is held any longer


@every_mode
def test_retries_do_not_outlast_the_deadline(mode: Mode, simulator: ServiceSimulator) -> None:
    simulator.inject("status", times=None, status=503)
    began = clock().now()

    ending = wait(mode, timeout=5, poke_interval=1)

    assert (ending.kind, clock().now() - began < 10) == ("ServiceWaitError", True), ending


@in_event_loop
async def test_a_status_that_is_not_read_in_the_time_after_the_deadline_is_unknown(
    simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_polling, "LAST_POLL_SECONDS", 1.0)
    simulator.inject("latency", times=1, seconds=5)

    event = await first_event(overdue_trigger())

    assert event["verdict"] == "unreadable"
    assert event["message"] == "the status of source control could not be read: reading it took longer than 1 s"


@in_event_loop
async def test_a_connection_that_cannot_be_read_for_a_moment_does_not_end_a_deferred_wait(
    simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_SERVICE_DEFAULT")
    trigger = ServiceSourceControlTrigger(
        service_conn_id="service_default", deadline=clock().now() + 100, timeout=100, poll_interval=0.05
    )
    wait = asyncio.create_task(first_event(revived(trigger)))
    await until(lambda: wait.done() or "Reading the status of source control fails; this is tolerated" in caplog.text)
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", simulator.connection_json())

    assert (await wait)["verdict"] == "met"


def overdue_trigger() -> Any:
    """A trigger as it begins again after a restart of the triggerer."""
    return revived(
        ServiceSourceControlTrigger(service_conn_id="service_default", deadline=clock().now() - 100, timeout=60)
    )


@every_mode
def test_a_server_without_source_control_fails_for_good(mode: Mode, simulator: ServiceSimulator) -> None:
    simulator.state.licensed = False
    try:
        ending = wait(mode, soft_fail=True)
    finally:
        simulator.state.licensed = True
    assert ending.kind == "AirflowFailException"
    assert "the status of source control could not be read" in ending.message


@every_mode
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"direction": "both"}, "direction must be one of pull, push"),
        ({"state": "done"}, "state must be one of changed, unchanged"),
        ({"types": []}, "types is empty"),
        ({"types": "tags"}, "types must be"),
        ({"types": ["tag"]}, "each of types must be one of credential, workflow, tags"),
    ],
)
def test_what_cannot_be_waited_for_fails_for_good(
    mode: Mode, simulator: ServiceSimulator, wrong: dict[str, Any], words: str
) -> None:
    ending = wait(mode, **wrong)
    assert (ending.kind, words in ending.message) == ("AirflowFailException", True), ending
    assert not simulator.requests


def test_the_trigger_stores_what_it_waits_for_and_no_key(simulator: ServiceSimulator) -> None:
    task = ServiceSourceControlSensor(task_id="wait", direction="push", timeout=100, types=["tags"], deferrable=True)
    with pytest.raises(TaskDeferred) as deferred:
        task.execute({"ti": TaskInstance(), "task": task})  # type: ignore[typeddict-item]
    path, stored = as_stored(deferred.value.trigger)
    assert path.endswith(".ServiceSourceControlTrigger")
    assert simulator.api_key not in str(stored)
    arguments = deferred.value.trigger.serialize()[1]
    assert (arguments["direction"], arguments["state"], arguments["types"]) == ("push", "changed", ["tags"])


def test_invalid_arguments_are_refused_when_the_dag_file_is_read() -> None:
    for wrong in ({"deferrable": "no"}, {"fault_tolerance": "long"}):
        [name] = wrong
        with pytest.raises(ServiceInputError, match=f"^{name} must be "):
            ServiceSourceControlSensor(task_id="wait", **wrong)  # type: ignore[arg-type]
    with pytest.raises(ServiceInputError, match=r"^direction must be one of"):
        ServiceSourceControlTrigger(service_conn_id="c", deadline=0, timeout=1, direction="both")
