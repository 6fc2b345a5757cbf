"""What the sensor does in addition to judging: its link, its arguments, its deadlines and its retries."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import (
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
    TaskDeferred,
    timezone,
)

from airflow_provider_service._airflow.attempts import EXECUTION_KEY, REASON_KEY
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client.errors import ServiceInputError, ServiceWaitError
from airflow_provider_service.hooks.service import ServiceHook
from airflow_provider_service.sensors.execution import ServiceExecutionSensor
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing import run_task
from airflow_provider_service.testing._service import first_event, revived
from airflow_provider_service.testing._tasks import FakeStateStore
from tests.runs.workflows import put, puts_out, webhook

from .driving import SENSOR_MODES, Meanwhile, Mode, TaskInstance, polls_of, run_to_end
from .polls import CONNECTION

every_mode = pytest.mark.parametrize("mode", SENSOR_MODES, ids=[mode.name for mode in SENSOR_MODES])


def sensor(execution_id: Any, **options: Any) -> ServiceExecutionSensor:
    return ServiceExecutionSensor(task_id="wait", execution_id=execution_id, **options)


@every_mode
def test_the_links_exist_while_it_waits(mode: Mode, simulator: ServiceSimulator, workflow_id: str) -> None:
    one = simulator.start_execution(workflow_id)
    ending = run_to_end(lambda: mode.task(one, interval=0.05, timeout=0.2))

    assert ending.kind == "AirflowSensorTimeout"
    page = f"{simulator.base_url}/workflow/{workflow_id}"
    reason = ending.pushed.pop(REASON_KEY)
    assert reason.startswith(f"execution {one} had not ended")
    assert ending.pushed == {
        "_link_ServiceWorkflowLink": page,
        "_link_ServiceExecutionLink": f"{page}/executions/{one}",
        EXECUTION_KEY: {"execution_id": one, "started_at": began(one)},
    }


def began(execution_id: str) -> str:
    with ServiceHook() as hook:
        moment = hook.executions.get(execution_id).started_at
    assert moment is not None
    return moment.isoformat()


@every_mode
def test_it_tells_when_the_execution_began_and_ended(mode: Mode, simulator: ServiceSimulator, workflow_id: str) -> None:
    one = simulator.start_execution(workflow_id)
    with Meanwhile(simulator, lambda _: simulator.finish_execution(one, "success")):
        ending = run_to_end(lambda: mode.task(one, interval=0.05, timeout=600))

    times = {name: ending.value[name] for name in ("execution_id", "started_at", "stopped_at")}
    assert None not in times.values()
    assert ending.pushed[EXECUTION_KEY] == times


@every_mode
def test_the_link_exists_although_the_first_poll_failed(
    mode: Mode, simulator: ServiceSimulator, workflow_id: str
) -> None:
    one = simulator.start_execution(workflow_id, status="error")
    simulator.inject("status", path=f"/executions/{one}$")
    ending = run_to_end(lambda: mode.task(one, interval=0.05))

    assert ending.kind == "AirflowFailException"
    assert ending.pushed["_link_ServiceExecutionLink"].endswith(f"/executions/{one}")


def test_a_deferrable_sensor_holds_no_worker_while_the_service_is_down(
    simulator: ServiceSimulator, workflow_id: str
) -> None:
    one = simulator.start_execution(workflow_id)
    simulator.inject("status", times=None)
    task = sensor(one, deferrable=True)

    with pytest.raises(TaskDeferred):
        task.execute({"ti": TaskInstance(), "task": task})
    assert polls_of(simulator, one) == 1


def test_it_defers_with_a_deadline_and_no_timeout_of_airflows(simulator: ServiceSimulator, workflow_id: str) -> None:
    task = sensor(simulator.start_execution(workflow_id), deferrable=True, timeout=100, fault_tolerance=7)
    now = clock().now()
    with pytest.raises(TaskDeferred) as deferred:
        task.execute({"ti": TaskInstance(), "task": task})

    arguments = deferred.value.trigger.serialize()[1]
    # Airflow's own timeout would end the task without a look at the execution.
    assert deferred.value.timeout is None
    assert arguments["deadline"] == now + 100
    assert (arguments["fault_tolerance"], arguments["poll_interval"]) == (7, 10)
    assert arguments["cancel_on_kill"] is False


@every_mode
@pytest.mark.parametrize("status", ["success", "error"])
def test_an_execution_that_has_already_ended(
    status: str, mode: Mode, simulator: ServiceSimulator, workflow_id: str
) -> None:
    one = simulator.start_execution(workflow_id, status=status)
    ending = run_to_end(lambda: mode.task(one, interval=60))

    assert ending.kind == ("returned" if status == "success" else "AirflowFailException")


@every_mode
def test_no_time_left(mode: Mode, simulator: ServiceSimulator, workflow_id: str) -> None:
    one = simulator.start_execution(workflow_id)
    ending = run_to_end(lambda: mode.task(one, interval=60, timeout=0))

    assert (ending.kind, ending.message) == (
        "AirflowSensorTimeout",
        f"execution {one} had not ended 0 s after the wait began; it was not stopped. To wait longer, raise timeout",
    )


@every_mode
@pytest.mark.parametrize("execution_id", ["abc", "0", "-1", "1/2", "", "../1"])
def test_invalid_execution_ids(execution_id: str, mode: Mode, simulator: ServiceSimulator) -> None:
    ending = run_to_end(lambda: mode.task(execution_id, interval=60))

    assert ending.kind == "AirflowFailException"
    assert "nothing was sent" in ending.message
    assert not simulator.requests


@every_mode
@pytest.mark.parametrize("execution_id", [1, " 1\n"])
def test_an_id_may_be_a_number_or_have_blanks(
    execution_id: Any, mode: Mode, simulator: ServiceSimulator, workflow_id: str
) -> None:
    assert simulator.start_execution(workflow_id, status="success") == "1"

    assert run_to_end(lambda: mode.task(execution_id, interval=60)).value["execution_id"] == "1"


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("on_vanished", "suceed"),
        ("on_vanished", " "),
        ("fault_tolerance", "long"),
        ("fault_tolerance", -1),
        ("deferrable", "false"),
    ],
)
def test_invalid_arguments_are_refused_when_the_dag_file_is_read(option: str, value: Any) -> None:
    wrong = {option: value}
    with pytest.raises(ServiceInputError, match=f"^{option} must be .*, not "):
        sensor("1", **wrong)
    with pytest.raises(ServiceInputError, match=f"^{option} must be .*, not "):
        ServiceExecutionSensor.partial(task_id="wait", **wrong)


def test_a_subclass_may_make_templates_of_more(simulator: ServiceSimulator) -> None:
    class Own(ServiceExecutionSensor):
        template_fields = (*ServiceExecutionSensor.template_fields, "on_vanished")

    task = Own(task_id="wait", execution_id="1", on_vanished="{{ params.then }}")  # type: ignore[arg-type]
    task.render_template_fields({"task": task, "params": {"then": "suceed"}})  # type: ignore[typeddict-item]
    with pytest.raises(AirflowFailException, match="on_vanished must be one of fail, succeed, not 'suceed'"):
        task.execute({"ti": TaskInstance()})
    assert not simulator.requests


@every_mode
def test_durations_may_be_timedeltas(mode: Mode, simulator: ServiceSimulator, workflow_id: str) -> None:
    one = simulator.start_execution(workflow_id)
    spans = {"timeout": timedelta(seconds=0.3), "fault_tolerance": timedelta(seconds=60)}
    ending = run_to_end(lambda: mode.task(one, interval=timedelta(seconds=0.05), **spans))  # type: ignore[arg-type]

    assert (ending.kind, ending.message) == (
        "AirflowSensorTimeout",
        f"execution {one} had not ended 0.3 s after the wait began; it was not stopped. To wait longer, raise timeout",
    )


@every_mode
def test_it_keeps_its_arguments(mode: Mode, simulator: ServiceSimulator, workflow_id: str) -> None:
    one = simulator.start_execution(workflow_id, status="error")
    tasks: list[Any] = []

    def make() -> Any:
        tasks.append(mode.task(one, interval=0.05, timeout=60, fault_tolerance=timedelta(seconds=60), soft_fail=True))
        return tasks[-1]

    assert run_to_end(make).kind == "AirflowSkipException"
    for task in tasks:
        assert (task.timeout, task.fault_tolerance, task.soft_fail) == (60, timedelta(seconds=60), True)


@pytest.mark.parametrize("deferrable", [False, True])
def test_a_call_without_context_says_what_is_missing(deferrable: bool, simulator: ServiceSimulator) -> None:
    with pytest.raises(AirflowFailException, match=r"the context lacks 'ti'.*nothing was done"):
        sensor("1", deferrable=deferrable).execute({})  # type: ignore[typeddict-item]
    assert not simulator.requests


@every_mode
def test_an_id_from_an_earlier_task(mode: Mode, simulator: ServiceSimulator, workflow_id: str) -> None:
    simulator.start_execution(workflow_id, status="success")

    ending = run_to_end(lambda: mode.task("{{ ti.map_index + 2 }}", interval=60))

    assert ending.value["execution_id"] == "1"


@every_mode
@pytest.mark.parametrize("option", ["never_fail", "soft_fail", None])
def test_a_connection_that_cannot_be_used(
    option: str | None, mode: Mode, simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", json.dumps({"conn_type": "service"}))
    options = {option: True} if option else {}
    ending = run_to_end(lambda: mode.task("7", interval=60, **options))

    assert ending.kind == ("AirflowSkipException" if option == "never_fail" else "AirflowFailException")
    assert ending.message.startswith("the wait for execution 7 failed: connection 'service_default': host is empty")


@every_mode
def test_a_failed_execution_is_not_retried_but_a_failed_poll_is(
    mode: Mode, simulator: ServiceSimulator, workflow_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = simulator.start_execution(workflow_id)
    connection = json.loads(simulator.connection_json())
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", json.dumps({**connection, "password": "revoked"}))
    first = run_to_end(lambda: mode.task(one, interval=0.05))
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", simulator.connection_json())
    simulator.finish_execution(one)
    second = run_to_end(lambda: mode.task(one, interval=0.05))

    assert (first.kind, second.kind) == ("ServiceWaitError", "returned")
    # Airflow tries again after any exception but its own that says: do not.
    assert not issubclass(ServiceWaitError, AirflowException)
    assert not issubclass(ServiceWaitError, AirflowFailException)


def test_a_reschedule_keeps_the_first_deadline(simulator: ServiceSimulator, workflow_id: str) -> None:
    one = simulator.start_execution(workflow_id)
    ti = TaskInstance()
    ti.first_reschedule = timezone.utcnow() - timedelta(seconds=100)
    task = sensor(one, mode="reschedule", timeout=90)

    with pytest.raises(Exception, match=f"execution {one} had not ended 90 s after the wait began"):
        task.execute({"ti": ti, "task": task})


@every_mode
def test_an_execution_of_another_server_is_not_the_one_to_wait_for(
    mode: Mode, simulator: ServiceSimulator, workflow_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, ti = simulator.start_execution(workflow_id), TaskInstance()
    ti.store = FakeStateStore()
    with ServiceSimulator() as other:
        assert other.start_execution(other.create_webhook_workflow(path="w")["id"], status="success") == one

        with Meanwhile(simulator, lambda _: monkeypatch.setenv(CONNECTION, other.connection_json())):
            ending = run_to_end(lambda: mode.task(one, interval=5, timeout=600), ti)

    assert ending.kind == "AirflowFailException", ending
    assert "the connection leads to another server than before" in ending.message


def test_a_rescheduled_sensor_keeps_its_worker_while_looking_fails(
    simulator: ServiceSimulator, workflow_id: str
) -> None:
    one = simulator.start_execution(workflow_id, status="success")
    simulator.inject("status", times=3, path=f"/executions/{one}$")
    task = sensor(one, mode="reschedule", poke_interval=0.05)

    assert task.execute({"ti": TaskInstance(), "task": task})["status"] == "success"
    assert polls_of(simulator, one) == 4


@pytest.mark.parametrize("mode", ["poke", "reschedule"])
def test_faults_do_not_outlast_the_deadline(mode: str, simulator: ServiceSimulator, workflow_id: str) -> None:
    one = simulator.start_execution(workflow_id)
    simulator.inject("status", times=None)
    task = sensor(one, mode=mode, poke_interval=0.05, timeout=0.3, fault_tolerance=60)

    with pytest.raises(Exception, match="the deadline passed while reading it failed, last: "):
        task.execute({"ti": TaskInstance(), "task": task})


def test_a_deferred_one_reads_once_more_after_a_deadline_at_which_its_triggerer_could_not(
    simulator: ServiceSimulator, workflow_id: str
) -> None:
    one = simulator.start_execution(workflow_id)
    task = sensor(one, deferrable=True, timeout=2)
    context: Any = {"ti": TaskInstance(), "task": task}
    with pytest.raises(TaskDeferred) as deferred:
        task.execute(context)
    simulator.finish_execution(one)
    clock().sleep(3)  # no triggerer runs
    simulator.inject("latency", times=None, seconds=1.5)
    event = asyncio.run(first_event(revived(deferred.value.trigger)))

    assert event["verdict"] == "timed_out"
    assert task.resume_execution("execute_complete", {"event": event}, context)["status"] == "success"


def test_a_read_that_fails_after_the_deadline_does_not_change_how_a_deferred_one_ends(
    simulator: ServiceSimulator, workflow_id: str
) -> None:
    task = sensor(simulator.start_execution(workflow_id), deferrable=True, timeout=2, soft_fail=True)
    context: Any = {"ti": TaskInstance(), "task": task}
    with pytest.raises(TaskDeferred) as deferred:
        task.execute(context)
    event = asyncio.run(first_event(revived(deferred.value.trigger)))
    simulator.inject("status", path="/executions/")

    with pytest.raises(AirflowSkipException, match="had not ended 2 s after the wait began"):
        task.resume_execution("execute_complete", {"event": event}, context)


def test_a_kill_of_a_sensor_stops_nothing(simulator: ServiceSimulator, workflow_id: str) -> None:
    one = simulator.start_execution(workflow_id)
    task = sensor(one, poke_interval=0.05)

    def kill_then_finish(_: str) -> None:
        task.on_kill()
        simulator.finish_execution(one)

    with Meanwhile(simulator, kill_then_finish):
        result = task.execute({"ti": TaskInstance(), "task": task})

    assert not [request for request in simulator.requests if request.method != "GET"]
    assert result["status"] == "success"


@every_mode
@pytest.mark.parametrize("wanted", ["last_node", {"node": "Webhook"}], ids=["last", "named"])
def test_the_output_of_an_execution_that_somebody_else_started(
    mode: Mode, wanted: Any, simulator: ServiceSimulator, virtual_time: object
) -> None:
    one = ran(simulator, {"n": 3})
    ending = run_to_end(lambda: mode.task(one, interval=5, return_output=wanted))

    assert ending.kind == "returned", ending
    [item] = ending.value["output"]
    assert (item if wanted == "last_node" else item["body"]) == ({"sum": 3} if wanted == "last_node" else {"n": 3})
    assert (ending.value["output_items"], ending.value["output_path"]) == (1, None)


def test_output_that_is_too_large_is_written_to_the_file(
    simulator: ServiceSimulator, tmp_path: Path, virtual_time: object
) -> None:
    one, path = ran(simulator, {"n": "x" * 50_000}), tmp_path / "output.json"
    result = run_task(sensor(one, return_output="last_node", output_path=str(path))).return_value

    assert (result["output"], result["output_path"]) == (None, str(path))
    assert json.loads(path.read_text()) == [{"sum": "x" * 50_000}]


@pytest.mark.parametrize(
    "options", [{"return_output": "all"}, {"max_output_items": 0}, {"max_output_items": 1}, {"output_path": "o.json"}]
)
def test_invalid_output_arguments_are_refused_before_the_wait(
    simulator: ServiceSimulator, options: dict[str, Any]
) -> None:
    with pytest.raises((ServiceInputError, AirflowFailException), match="output"):
        run_task(sensor("1", **options))
    assert simulator.requests == []


def ran(simulator: ServiceSimulator, payload: dict[str, Any]) -> str:
    """The id of an execution that another caller has started, and that has ended."""
    workflow_id = put(simulator, webhook(), puts_out('={{ {"sum": $json.body.n} }}'))
    with ServiceHook() as hook:
        return str(hook.run_workflow(workflow_id=workflow_id, payload=payload)["execution_id"])


@every_mode
@pytest.mark.parametrize("wanted", ["none", "last_node"])
def test_one_that_cannot_be_found_succeeds_with_a_warning_and_without_output(
    wanted: Any, mode: Mode, simulator: ServiceSimulator, caplog: pytest.LogCaptureFixture
) -> None:
    ending = run_to_end(lambda: mode.task("99", interval=0.05, on_vanished="succeed", return_output=wanted))

    assert (ending.kind, ending.message) == ("returned", "")
    assert (ending.value["execution_id"], ending.value["status"]) == ("99", None)
    assert ending.value.get("output") is None
    assert ("output" in ending.value) == (wanted != "none")
    [warning] = [one.getMessage() for one in caplog.records if "cannot be found" in one.getMessage()]
    assert warning.endswith("it counts as successful, although its end was not seen (on_vanished='succeed')")
    assert [one.levelname for one in caplog.records if one.getMessage() == warning] == ["WARNING"]
