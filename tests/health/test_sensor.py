"""The sensor waits until no threshold is breached, in the same way in every mode."""

from __future__ import annotations

import time
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import TaskDeferred

from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.sensors.health import ServiceWorkflowHealthSensor
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing._service import as_stored
from airflow_provider_service.triggers.health import ServiceWorkflowHealthTrigger
from tests.waits.driving import SENSOR_MODES, Ending, Mode, TaskInstance, run_to_end

every_mode = pytest.mark.parametrize("mode", SENSOR_MODES, ids=[mode.name for mode in SENSOR_MODES])


def wait(mode: Mode, ti: TaskInstance | None = None, **options: Any) -> Ending:
    arguments = {"all_workflows": True, "min_runs": 1, "poke_interval": 0.05, "timeout": 60, **options}
    return run_to_end(lambda: ServiceWorkflowHealthSensor(task_id="wait", **mode.arguments, **arguments), ti)


@every_mode
def test_it_waits_until_the_workflows_are_healthy(mode, simulator: ServiceSimulator, workflow):
    one = workflow("Sync")
    # While it waits, the workflow runs.
    simulator.clock.shift(-60)
    simulator.start_execution(one, seconds=60 + 1)
    simulator.clock.shift(60)
    ti = TaskInstance()

    ending = wait(mode, ti)

    assert ending.kind == "returned", ending
    assert ending.value["healthy"] is True
    assert [statistic["runs"] for statistic in ending.value["workflows"]] == [1]
    assert ending.pushed["_link_ServicePageLink"] == f"{simulator.base_url}/workflow/{one}/executions"
    assert (mode.pause in ti.pauses) == (mode.pause is not None)


@every_mode
def test_it_returns_at_once_what_is_healthy(mode, workflow):
    workflow("Sync", "success")
    ti = TaskInstance()

    assert wait(mode, ti).value["healthy"] is True
    assert not ti.pauses


@every_mode
@pytest.mark.parametrize("soft_fail", [False, True])
def test_the_end_of_its_time_names_the_breaches(mode, soft_fail, workflow):
    workflow("Sync", "error")
    ending = wait(mode, max_failure_rate=0.5, timeout=0.3, soft_fail=soft_fail)

    assert ending.kind == ("AirflowSkipException" if soft_fail else "AirflowSensorTimeout")
    assert "the workflows were not healthy within 0.3 s: 1 of 1 workflows is unhealthy" in ending.message
    assert "failure rate 1, above max_failure_rate 0.5" in ending.message


@every_mode
def test_faults_are_tolerated_for_a_while(mode, simulator, workflow):
    workflow("Sync", "success")
    simulator.inject("status", times=4, path="/executions$", status=500)

    assert wait(mode).kind == "returned"


@every_mode
def test_but_not_forever(mode, simulator, workflow):
    workflow("Sync", "success")
    simulator.inject("status", times=None, path="/executions$", status=500)

    ending = wait(mode, fault_tolerance=0.2, soft_fail=True)

    assert ending.kind == "ServiceWaitError"
    assert "the health of workflows could not be read: GET /executions: " in ending.message


@every_mode
def test_what_a_person_must_fix_fails_for_good(mode, simulator, workflow):
    workflow("Sync", "success")
    simulator.inject("status", times=None, path="/executions$", status=403)

    assert wait(mode, soft_fail=True).kind == "AirflowFailException"


@every_mode
def test_a_connection_that_cannot_be_used(mode, simulator, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", '{"conn_type": "service"}')
    ending = wait(mode)

    assert ending.kind == "AirflowFailException"
    assert "host is empty" in ending.message


@every_mode
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"min_runs": None}, "give at least one threshold"),
        ({"tag_name": "a"}, "give either a workflow, a tag"),
        ({"all_workflows": False, "tag_name": " "}, "tag_name must be text that is not empty"),
        ({"max_age_of_success": 90_000}, "must not be longer than window"),
    ],
)
def test_what_cannot_be_checked_fails_for_good(mode, wrong, message, simulator):
    ending = wait(mode, **wrong)

    assert ending.kind == "AirflowFailException"
    assert message in ending.message
    assert not simulator.requests


def test_the_trigger_holds_no_key_and_the_deadline_stays(simulator, workflow):
    workflow("Sync")
    task = ServiceWorkflowHealthSensor(
        task_id="wait", all_workflows=True, min_runs=1, timeout=100, poke_interval=7, deferrable=True
    )
    with pytest.raises(TaskDeferred) as deferred:
        task.execute({"ti": TaskInstance(), "task": task})  # type: ignore[typeddict-item]

    assert deferred.value.timeout is None
    path, stored = as_stored(deferred.value.trigger)
    assert path.endswith(".ServiceWorkflowHealthTrigger")
    assert simulator.api_key not in str(stored)
    arguments = deferred.value.trigger.serialize()[1]
    assert abs(arguments["deadline"] - time.time() - 100) < 60
    assert (arguments["poll_interval"], arguments["min_runs"], arguments["window"]) == (7, 1, 86_400)


def test_an_event_of_another_shape_fails_the_attempt(simulator):
    task = ServiceWorkflowHealthSensor(task_id="wait", all_workflows=True, min_runs=1)
    with pytest.raises(Exception, match="an event of an unknown shape"):
        task.execute_complete({"ti": TaskInstance()}, {"verdict": "healthy"})  # type: ignore[typeddict-item]


def test_invalid_arguments_are_refused_when_the_dag_file_is_read():
    for wrong in ({"window": "long"}, {"min_runs": 0}, {"max_failure_rate": 1.1}, {"deferrable": "no"}):
        [name] = wrong
        with pytest.raises(ServiceInputError, match=f"^{name} must be "):
            ServiceWorkflowHealthSensor(task_id="wait", **wrong)
    with pytest.raises(ServiceInputError, match=r"^poll_interval must be"):
        ServiceWorkflowHealthTrigger(
            service_conn_id="c", deadline=0, timeout=1, poll_interval=-1, all_workflows=True, min_runs=1
        )
