"""``@task.service_workflow``: the function makes the payload, and the task runs the workflow as the operator does."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException, BaseOperator, task

from airflow_provider_service.client.errors import ServiceExecutionFailedError, ServiceInputError
from airflow_provider_service.decorators.run_workflow import ServiceWorkflowDecoratedOperator, service_workflow_task
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.testing import SimulatedService, run_task
from tests import airflow_features

pytest_plugins = ["airflow_provider_service.testing.pytest_plugin"]

in_both = pytest.mark.parametrize("deferrable", [False, True], ids=["worker", "deferred"])
ROWS = [{"rows": 3}, {"rows": 4}]


def nothing() -> None: ...


@pytest.fixture(autouse=True)
def dag() -> Any:
    with DAG("dag", schedule=None, params={"name": "Sync"}) as dag:
        yield dag


@in_both
def test_the_payload_goes_in_and_the_output_comes_out(service: SimulatedService, deferrable: bool) -> None:
    service.workflow("Sync", output=ROWS, takes=3600)  # it has not ended when the task looks first
    calls = []

    @task.service_workflow(workflow_name="Sync", deferrable=deferrable)
    def sync(region: str) -> dict[str, str]:
        calls.append(region)
        return {"region": region}

    result = run_task(sync("eu"))

    assert (result.return_value, result.deferrals, calls) == (ROWS, int(deferrable), ["eu"])
    assert (result.xcoms["execution_id"], result.xcoms["return_value"]) == ("1", ROWS)
    assert result.xcoms["_link_ServiceExecutionLink"].endswith("/executions/1")
    service.assert_ran("Sync", payload={"region": "eu"})


def test_output_that_is_too_large_is_the_address_of_a_file(service: SimulatedService, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    rows = [{"text": "x" * 50_000}]
    service.workflow("Sync", output=rows)

    @task.service_workflow(workflow_name="Sync", output_path=str(path))
    def sync() -> None: ...

    assert run_task(sync()).return_value == str(path)
    assert json.loads(path.read_text()) == rows


def test_without_payload(service: SimulatedService) -> None:
    service.workflow("Sync", output=[])

    @task.service_workflow(workflow_name="Sync")
    def sync() -> None: ...

    assert run_task(sync()).return_value == []
    service.assert_ran("Sync", payload={})


def test_a_workflow_that_is_not_active_is_activated_only_if_the_task_says_so(service: SimulatedService) -> None:
    service.workflow("Sync", output=ROWS, active=False)

    @task.service_workflow(workflow_name="Sync")
    def sync() -> None: ...

    with pytest.raises(AirflowFailException, match="is not active; nothing was started"):
        run_task(sync(), attempts=3)
    service.assert_ran("Sync", times=0)
    assert run_task(sync.override(task_id="activating", activate=True)()).return_value == ROWS


@pytest.mark.parametrize(("payload", "body"), [(range(2), [0, 1]), ({"ids": range(2)}, {"ids": [0, 1]})])
def test_a_sequence_of_any_kind_is_sent_as_a_list(service: SimulatedService, payload: Any, body: Any) -> None:
    service.workflow("Sync")

    @task.service_workflow(workflow_name="Sync")
    def sync() -> Any:
        return payload

    run_task(sync())

    service.assert_ran("Sync", payload=body)


def test_arguments_are_rendered_and_what_is_returned_is_not(service: SimulatedService) -> None:
    service.workflow("Sync", output=ROWS)

    @task
    def collect() -> list[str]:
        return []

    @task.service_workflow(workflow_name="{{ params.name }}")
    def sync(regions: list[str], run: str, *, other: str, ti: Any = None) -> dict[str, Any]:
        return {"regions": regions, "run": run, "other": other, "task": ti.task_id, "text": "{{ run_id }}"}

    run_task(sync(collect(), "{{ run_id }}", other="{{ params.name }}"), upstream={"collect": ["eu"]}, run_id="me")

    payload = {"regions": ["eu"], "run": "me", "other": "Sync", "task": "sync", "text": "{{ run_id }}"}
    service.assert_ran("Sync", payload=payload)


def test_an_argument_named_as_a_variable_of_the_context_does_not_change_the_run(service: SimulatedService) -> None:
    service.workflow("Sync", output=ROWS)

    @task.service_workflow(workflow_name="Sync")
    def sync(**given: Any) -> list[str]:
        return [given["run_id"], given["extra"], given["ti"].task_id]

    run_task(sync(extra="more"), run_id="me")

    service.assert_ran("Sync", payload=["me", "more", "sync"])


def test_override(service: SimulatedService) -> None:
    service.workflow("Sync", output=ROWS)
    service.workflow("Other", output=[])

    @task.service_workflow(workflow_name="Sync")
    def sync() -> dict[str, int]:
        return {"a": 1}

    changed = run_task(sync.override(task_id="other", workflow_name="Other", return_output="none")())

    assert changed.return_value["status"] == "success"
    service.assert_ran("Other", payload={"a": 1})
    service.assert_ran("Sync", times=0)


def unmapped(dag: Any, values: dict[str, Any]) -> Any:
    """The task of one item, as Airflow makes it."""
    return dag.get_task("sync").unmap({"op_kwargs": values})


def test_partial_and_expand(service: SimulatedService, dag: Any) -> None:
    service.workflow("Sync", output=ROWS)

    @task.service_workflow(workflow_name="Sync", webhook_headers={"X-Key": "secret-of-the-webhook"}, retries=1)
    def sync(region: str, day: str) -> dict[str, str]:
        return {"region": region, "day": day}

    sync.partial(day="monday").expand(region=["eu", "us"])

    assert "secret-of-the-webhook" not in repr(dag.get_task("sync").partial_kwargs)
    result = run_task(unmapped(dag, {"region": "eu"}))
    assert result.return_value == ROWS
    service.assert_ran("Sync", payload={"region": "eu", "day": "monday"})
    [call] = [one for one in service.simulator.state.executions if one.run.initial]
    assert call.run.initial is not None
    assert call.run.initial.items[0]["json"]["headers"]["x-key"] == "secret-of-the-webhook"


def test_an_override_of_a_mapped_task_is_checked_and_sealed(service: SimulatedService, dag: Any) -> None:
    service.workflow("Sync", output=ROWS)
    headers = {"X-Key": "secret-of-the-webhook"}

    @task.service_workflow(workflow_name="Other")
    def sync(region: str) -> dict[str, str]:
        return {"region": region}

    sync.override(workflow_name="Sync").override(webhook_headers=headers).expand(region=["eu", "us"])

    assert "secret-of-the-webhook" not in repr(dag.get_task("sync").partial_kwargs)
    run_task(unmapped(dag, {"region": "eu"}))
    service.assert_ran("Sync", payload={"region": "eu"})
    with pytest.raises(ServiceInputError, match="start must be one of"):
        sync.override(start="nonsense")


@in_both
def test_a_failed_run_fails_the_task_and_is_repeated(service: SimulatedService, deferrable: bool) -> None:
    workflow = service.workflow("Sync", fails_with="The disk is full")
    calls = []

    @task.service_workflow(workflow_id=workflow.id, deferrable=deferrable, retries=1)
    def sync() -> None:
        calls.append("call")

    with pytest.raises(ServiceExecutionFailedError, match="The disk is full"):
        run_task(sync(), attempts=2)

    service.assert_ran(workflow, times=2)
    assert len(calls) == 2


@airflow_features.kept_cursors
def test_an_attempt_resumes_the_execution_of_the_one_before(service: SimulatedService) -> None:
    workflow = service.workflow("Sync", takes=60, output=ROWS)
    # The key is refused while the id that the webhook named is checked, and at the first look.
    service.simulator.inject("status", status=401, path="/executions/1$", times=3)

    @task.service_workflow(workflow_name="Sync", retries=2)
    def sync() -> None: ...

    result = run_task(sync(), attempts=3)

    assert (result.return_value, result.attempts) == (ROWS, 2)
    service.assert_ran(workflow)


def test_an_error_of_the_function_starts_nothing(service: SimulatedService) -> None:
    service.workflow("Sync")

    @task.service_workflow(workflow_name="Sync")
    def sync() -> None:
        raise LookupError("no such region")

    with pytest.raises(LookupError, match="no such region"):
        run_task(sync())

    service.assert_ran("Sync", times=0)


def test_a_generator_is_refused_because_a_second_call_would_send_none_of_its_items(service: SimulatedService) -> None:
    service.workflow("Report")

    @task.service_workflow(workflow_name="Report")
    def rows() -> Any:
        yield {"day": "Monday"}

    with pytest.raises(AirflowFailException, match=r"a generator can be read only once; make a list of it"):
        run_task(rows())

    service.assert_ran("Report", times=0)


def test_without_waiting_the_task_returns_what_the_operator_returns(service: SimulatedService) -> None:
    service.workflow("Sync", takes=60)

    @task.service_workflow(workflow_name="Sync", wait_for_completion=False)
    def sync() -> None: ...

    assert run_task(sync()).return_value.keys() == {"execution_id", "workflow_id", "url"}


def test_arguments_are_checked_when_the_dag_file_is_read(service: SimulatedService) -> None:
    with pytest.raises(ServiceInputError, match="on_retry must be one of"):
        task.service_workflow(workflow_name="Sync", on_retry="never")
    with pytest.raises(ServiceInputError, match="payload is what the function returns"):
        task.service_workflow(workflow_name="Sync", payload={})(nothing)()

    async def sync() -> None: ...

    with pytest.raises(ServiceInputError, match="must not be async"):
        task.service_workflow(workflow_name="Sync")(sync)()
    with pytest.raises(ServiceInputError, match=r"give either workflow_id or workflow_name$"):
        task.service_workflow()(nothing)()


def test_it_takes_every_argument_of_the_operator() -> None:
    parameters = inspect.signature(ServiceRunWorkflowOperator.__init__).parameters.values()
    named = {one.name: one.default for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY}
    own: Any = {**named, "workflow_name": "Sync", "return_output": "none"}
    del own["payload"]

    sync = service_workflow_task(**own)(nothing)()

    made: Any = next(sync.iter_references())[0]
    assert isinstance(made, ServiceWorkflowDecoratedOperator)
    assert isinstance(made, BaseOperator)
    assert {name: getattr(made, name) for name in own} == own
    assert set(made.template_fields) == {*ServiceRunWorkflowOperator.template_fields, "op_args", "op_kwargs"} - {
        "payload"
    }
    json.dumps(made.template_fields_renderers)
