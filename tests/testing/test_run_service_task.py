"""``run_task`` with tasks that run workflows and wait for executions."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowTaskTimeout, task

from airflow_provider_service.client._clock import clock
from airflow_provider_service.client.errors import ServiceExecutionFailedError
from airflow_provider_service.hooks.service import ServiceHook
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.sensors.execution import ServiceExecutionSensor
from airflow_provider_service.testing import SimulatedService, run_task
from tests import airflow_features

pytest_plugins = ["airflow_provider_service.testing.pytest_plugin"]

DAY = datetime(2026, 1, 31, 6, tzinfo=UTC)
in_both = pytest.mark.parametrize("deferrable", [False, True], ids=["worker", "deferred"])


@in_both
@pytest.mark.parametrize("takes", [30, timedelta(hours=2)], ids=["30 s", "2 h"])
def test_a_run(service: SimulatedService, deferrable: bool, takes: Any) -> None:
    service.workflow("Nightly sync", output=[{"rows": 3}], takes=takes)
    sync = ServiceRunWorkflowOperator(
        task_id="sync",
        workflow_name="Nightly sync",
        payload={"day": "{{ ds }}"},
        return_output="last_node",
        deferrable=deferrable,
        poll_interval=60,
    )

    result = run_task(sync, logical_date=DAY)

    assert (result.return_value["status"], result.return_value["output"]) == ("success", [{"rows": 3}])
    assert result.deferrals == int(deferrable)
    assert result.xcoms["execution_id"] == "1"
    assert result.xcoms["_link_ServiceExecutionLink"] == result.return_value["url"]
    service.assert_ran("Nightly sync", payload={"day": "2026-01-31"})


@in_both
def test_a_run_that_is_too_slow(service: SimulatedService, deferrable: bool) -> None:
    slow = service.workflow("slow", takes=timedelta(hours=4))
    run = ServiceRunWorkflowOperator(task_id="run", workflow_id=slow.id, timeout=10_800, deferrable=deferrable)

    message = r"had not ended 10800 s after the wait began, but was waiting at node 'Wait' until \S+; it was stopped"
    with pytest.raises(ServiceExecutionFailedError, match=message):
        run_task(run)

    assert [one.status for one in slow.runs] == ["canceled"]


@in_both
def test_a_run_that_ends_just_in_time(service: SimulatedService, deferrable: bool) -> None:
    slow = service.workflow("slow", takes=timedelta(minutes=170))
    run = ServiceRunWorkflowOperator(task_id="run", workflow_id=slow.id, timeout=10_800, deferrable=deferrable)

    assert run_task(run).return_value["status"] == "success"


def test_a_task_is_killed_at_its_execution_timeout(service: SimulatedService) -> None:
    slow = service.workflow("slow", takes=timedelta(hours=2))
    limit = timedelta(minutes=10)
    run = ServiceRunWorkflowOperator(task_id="run", workflow_id=slow.id, execution_timeout=limit, retries=1)
    begin = clock().now()

    with pytest.raises(AirflowTaskTimeout):
        run_task(run, attempts=2)

    assert [one.status for one in slow.runs] == ["canceled", "canceled"]
    assert clock().now() - begin == pytest.approx(1200, abs=60)


def test_no_time_passes_for_an_execution_timeout_alone(service: SimulatedService) -> None:
    with DAG("dag", schedule=None):

        @task(execution_timeout=timedelta(minutes=10))
        def sleeps_in_real_time() -> str:
            time.sleep(0.3)
            return "done"

        called = sleeps_in_real_time()

    assert run_task(called).return_value == "done"


@in_both
def test_a_failed_run_is_repeated_by_the_next_attempt(service: SimulatedService, deferrable: bool) -> None:
    workflow = service.workflow("w", fails_with="no disk")
    run = ServiceRunWorkflowOperator(task_id="run", workflow_id=workflow.id, deferrable=deferrable, retries=2)

    with pytest.raises(ServiceExecutionFailedError, match="no disk"):
        run_task(run, attempts=2)

    service.assert_ran(workflow, times=2)


@in_both
@airflow_features.kept_cursors
def test_an_attempt_resumes_the_execution_of_the_one_before(service: SimulatedService, deferrable: bool) -> None:
    workflow = service.workflow("w", takes=60)
    # The key is refused while the id that the webhook named is checked, and at the first look.
    service.simulator.inject("status", status=401, path="/executions/1$", times=3)
    run = ServiceRunWorkflowOperator(task_id="run", workflow_id=workflow.id, deferrable=deferrable, retries=2)

    assert run_task(run, attempts=3).attempts > 1

    service.assert_ran(workflow)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mode",
    [{"deferrable": True}, pytest.param({"mode": "reschedule"}, marks=airflow_features.light_imports)],
    ids=["deferred", "reschedule"],
)
def test_a_sensor(service: SimulatedService, mode: dict[str, Any]) -> None:
    workflow = service.workflow("w")
    execution_id = service.simulator.start_execution(workflow.id, seconds=7200)
    sensor = ServiceExecutionSensor(task_id="wait", execution_id=execution_id, poke_interval=60, timeout=9000, **mode)

    assert run_task(sensor).return_value["status"] == "success"


def test_no_time_passes_while_the_service_answers(service: SimulatedService) -> None:
    workflow = service.workflow("w")
    execution_id = service.simulator.start_execution(workflow.id, seconds=7200)
    read = f"/executions/{execution_id}$"
    service.simulator.inject("latency", seconds=1.5, path=read, after_processing=True, times=2)
    sensor = ServiceExecutionSensor(
        task_id="wait", execution_id=execution_id, poke_interval=60, timeout=9000, deferrable=True
    )

    assert run_task(sensor).return_value["status"] == "success"


@pytest.mark.parametrize("deferrable", [True, False])
def test_a_sensor_that_is_not_to_pause(service: SimulatedService, deferrable: bool) -> None:
    workflow = service.workflow("w")
    execution_id = service.simulator.start_execution(workflow.id, seconds=0.3)
    sensor = ServiceExecutionSensor(task_id="wait", execution_id=execution_id, poke_interval=0, deferrable=deferrable)

    assert run_task(sensor).return_value["status"] == "success"


@in_both
def test_a_service_that_fails_for_too_long(service: SimulatedService, deferrable: bool) -> None:
    workflow = service.workflow("w", takes=timedelta(hours=2))
    run = ServiceRunWorkflowOperator(task_id="run", workflow_id=workflow.id, deferrable=deferrable, timeout=9000)
    service.simulator.inject("status", status=503, path="/executions/1$|/executions$", times=None, skip=4)

    with pytest.raises(Exception, match="could not be observed and may still be running: reading it failed"):
        run_task(run)


def test_a_run_of_the_hook(service: SimulatedService) -> None:
    service.workflow("w", takes=timedelta(days=1) / 2, output=[{"a": 1}])
    with DAG("dag", schedule=None):

        @task
        def sync() -> Any:
            with ServiceHook() as hook:
                return hook.run_workflow(workflow_name="w", run_key="eu", return_output="last_node")["output"]

        called = sync()

    assert run_task(called).return_value == [{"a": 1}]


class TestAnotherConnection:
    """The connection's id is chosen by a fixture."""

    @pytest.fixture
    def service_conn_id(self) -> str:
        return "automation"

    def test_it_is_used(self, service: SimulatedService) -> None:
        service.workflow("w")

        run_task(ServiceRunWorkflowOperator(task_id="run", workflow_name="w", service_conn_id="automation"))

        assert service.conn_id == "automation"
        service.assert_ran("w")


# ------------------------------------------------------------ runs by every trigger


@pytest.mark.slow(one_in=5)
@in_both
@pytest.mark.parametrize(
    ("trigger", "payload", "arguments"),
    [
        ("webhook", {"day": "{{ ds }}"}, {}),
        ("schedule", None, {}),
        ("form", {"day": "{{ ds }}"}, {}),
        ("chat", "{{ ds }}", {}),
        ("sub-workflow", {"day": "{{ ds }}"}, {}),
        ("sub-workflow", [{"day": "{{ ds }}"}, {}], {}),
        ("manual", None, {"mode": "manual"}),
    ],
)
def test_a_run_by_every_trigger(
    service: SimulatedService, deferrable: bool, trigger: Any, payload: Any, arguments: dict[str, Any]
) -> None:
    workflow = service.workflow("w", trigger=trigger, output=[{"rows": 3}], takes=timedelta(hours=2))
    run = ServiceRunWorkflowOperator(
        task_id="run",
        workflow_name="w",
        payload=payload,
        return_output="last_node",
        deferrable=deferrable,
        **arguments,
    )

    result = run_task(run, logical_date=DAY)

    rendered = json.loads(json.dumps(payload).replace("{{ ds }}", "2026-01-31"))
    assert (result.return_value["status"], result.return_value["output"]) == ("success", [{"rows": 3}])
    service.assert_ran(workflow, payload=rendered)
    assert len(workflow.runs) == 1


@pytest.mark.parametrize("trigger", ["schedule", "sub-workflow"])
def test_a_failed_run_by_another_trigger_is_repeated(service: SimulatedService, trigger: Any) -> None:
    workflow = service.workflow("w", trigger=trigger, fails_with="no disk")
    run = ServiceRunWorkflowOperator(task_id="run", workflow_id=workflow.id, retries=1)

    with pytest.raises(ServiceExecutionFailedError, match="no disk"):
        run_task(run, attempts=2)

    service.assert_ran(workflow, times=2)
