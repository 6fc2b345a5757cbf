"""What ``hook.run_workflow`` takes and returns; tests/runs holds that it doubles nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client.errors import ServiceExecutionFailedError, ServiceInputError
from airflow_provider_service.hooks.service import ServiceHook
from airflow_provider_service.operators.results import RunResult
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.simulator import ServiceSimulator
from tests.runs.task_run import TaskRun
from tests.runs.workflows import DONE, held, put, puts_out, started_with, statuses, wait, webhook

pytestmark = pytest.mark.usefixtures("virtual_time")

RunWorkflow = Callable[..., dict[str, Any]]


@pytest.fixture
def run_workflow(simulator: ServiceSimulator) -> Iterator[RunWorkflow]:
    with ServiceHook() as hook:
        yield partial(hook.run_workflow, poll_interval=timedelta(milliseconds=50), timeout=20)


@pytest.mark.parametrize("return_output", ["none", "last_node"])
@pytest.mark.parametrize("wait_for_completion", [True, False])
def test_it_returns_what_the_operator_returns(
    run_workflow: RunWorkflow, simulator: ServiceSimulator, wait_for_completion: bool, return_output: str
) -> None:
    options = {"wait_for_completion": wait_for_completion, "return_output": return_output}
    workflow_id = put(simulator, webhook(), puts_out('={{ {"n": $json.body.n} }}'), name="Count")
    done = run_workflow(workflow_name="Count", payload={"n": 1}, **options)

    arguments = {"workflow_id": workflow_id, "payload": {"n": 1}, "poll_interval": 0.05, **options}
    task = TaskRun(ServiceRunWorkflowOperator, arguments)
    of_task = task.attempt(1)
    task.close()
    own = {"execution_id", "started_at", "stopped_at", "url", "nodes"}
    assert done.keys() == of_task.keys() <= RunResult.__annotations__.keys()
    assert RunResult.__required_keys__ <= done.keys()
    assert {name: value for name, value in done.items() if name not in own} == {
        name: value for name, value in of_task.items() if name not in own
    }
    assert done["url"] == f"{simulator.base_url}/workflow/{workflow_id}/executions/1"
    assert (done["execution_id"], of_task["execution_id"]) == ("1", "2")
    assert done.get("output") == ([{"n": 1}] if wait_for_completion and return_output == "last_node" else None)


@pytest.mark.parametrize("project", ["id", "name"])
def test_a_workflow_by_its_name_in_a_project(
    run_workflow: RunWorkflow, simulator: ServiceSimulator, project: str
) -> None:
    put(simulator, webhook("a"), DONE, name="Count")
    with ServiceHook() as hook:
        sales = hook.projects.create("Sales").id
        of_sales = put(simulator, webhook("b"), DONE, name="Count")
        hook.workflows.transfer(of_sales, sales)
    given = {"project_id": sales} if project == "id" else {"project_name": "Sales"}

    assert run_workflow(workflow_name="Count", **given)["workflow_id"] == of_sales
    with pytest.raises(AirflowFailException, match=r"more than one workflow named 'Count'.*\(project 'Sales', "):
        run_workflow(workflow_name="Count")
    assert len(held(simulator, of_sales)) == 1


def test_an_execution_that_does_not_end_in_time_is_stopped(
    run_workflow: RunWorkflow, simulator: ServiceSimulator
) -> None:
    workflow_id = put(simulator, webhook(), wait(30), DONE)
    with pytest.raises(ServiceExecutionFailedError, match=r"had not ended 20 s after the wait began; it was stopped"):
        run_workflow(workflow_id=workflow_id, timeout=timedelta(seconds=20))
    assert statuses(simulator, workflow_id) == ["canceled"]


@pytest.mark.slow
def test_a_run_that_is_not_kept(run_workflow: RunWorkflow, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(mode="lastNode"), DONE, saveDataSuccessExecution="none")
    nothing = dict.fromkeys(("execution_id", "status", "started_at", "stopped_at", "url"))
    nodes = dict.fromkeys(("nodes", "node_count"))
    for options, expected in [
        ({}, nothing | nodes),
        (
            {"return_output": "last_node"},
            nothing | nodes | dict.fromkeys(("output", "output_items", "output_path")),
        ),
        ({"wait_for_completion": False}, {"execution_id": None, "url": None}),
    ]:
        done = run_workflow(workflow_id=workflow_id, on_vanished="succeed", **options)
        assert done == {**expected, "workflow_id": workflow_id}
    with pytest.raises(AirflowFailException, match="it has ended without being saved"):
        run_workflow(workflow_id=workflow_id)


def test_the_webhooks_own_authentication(
    monkeypatch: pytest.MonkeyPatch, run_workflow: RunWorkflow, simulator: ServiceSimulator
) -> None:
    fields = {"conn_type": "generic", "login": "X-Token", "password": "secret-of-the-hook"}
    monkeypatch.setenv("AIRFLOW_CONN_ORDERS", json.dumps(fields))
    own = simulator.in_loop(
        lambda: simulator.state.credentials.create(
            "hook", "httpHeaderAuth", {"name": "X-Token", "value": "secret-of-the-hook"}
        )
    )
    guarded = {
        **webhook(authentication="headerAuth"),
        "credentials": {"httpHeaderAuth": {"id": own["id"], "name": "h"}},
    }
    workflow_id = put(simulator, guarded, puts_out("={{ $json }}"))

    done = run_workflow(
        workflow_id=workflow_id, webhook_conn_id="orders", webhook_headers={"X-Own": "1"}, return_output="last_node"
    )
    sent = started_with(held(simulator, workflow_id)[0])["headers"]

    assert (sent["x-token"], sent["x-own"]) == ("secret-of-the-hook", "1")
    assert "secret-of-the-hook" not in json.dumps(done)


def test_one_of_several_webhooks(run_workflow: RunWorkflow, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook("a", name="A"), webhook("b", name="B"))
    run_workflow(workflow_id=workflow_id, trigger_node="B")
    assert started_with(held(simulator, workflow_id)[0])["webhookUrl"].endswith("/webhook/b")


def test_an_inactive_workflow(run_workflow: RunWorkflow, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), DONE, active=False)
    with pytest.raises(AirflowFailException, match=r"is not active; nothing was started\. Activate it in n8n, by"):
        run_workflow(workflow_id=workflow_id)
    assert run_workflow(workflow_id=workflow_id, activate=True)["status"] == "success"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "give either workflow_id or workflow_name"),
        ({"workflow_id": "w", "workflow_name": "n"}, "give either workflow_id or workflow_name"),
        ({"workflow_name": " "}, "workflow_name must be text that is not empty, not ' '"),
        ({"workflow_name": "n", "project_id": "p", "project_name": "q"}, "give either project_id or project_name"),
        ({"workflow_name": "n", "project_id": ""}, "project_id must be text that is not empty, not ''"),
        ({"workflow_id": " "}, "workflow_id must be text that is not empty, not ' '"),
        ({"workflow_id": "w", "run_key": ""}, "run_key must be text that is not empty, not "),
        ({"workflow_id": "w", "run_key": 7}, "run_key must be text that is not empty, not "),
        ({"workflow_id": "w", "context": {}}, "context has no effect without a run_key"),
        ({"workflow_id": "w", "activate": "no"}, "activate must be True or False, not 'no'"),
        ({"workflow_id": "w", "wait_for_completion": 1}, "wait_for_completion must be True or False"),
        ({"workflow_id": "w", "on_vanished": "skip"}, "on_vanished must be one of fail, succeed, not 'skip'"),
        (
            {"workflow_id": "w", "return_output": "all"},
            'return_output must be one of none, last_node, or {"node": "name of the node"}, not \'all\'',
        ),
        ({"workflow_id": "w", "timeout": 0}, "timeout must be a timedelta or a number of seconds above 0"),
        (
            {"workflow_id": "w", "poll_interval": timedelta(0)},
            "poll_interval must be a timedelta or a number of seconds above 0",
        ),
        ({"workflow_id": "w", "webhook_headers": "X-Token: secret"}, "webhook_headers must be a mapping, not str"),
    ],
)
def test_arguments_without_meaning(
    run_workflow: RunWorkflow, simulator: ServiceSimulator, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(AirflowFailException, match=message) as refused:
        run_workflow(**arguments)
    assert isinstance(refused.value.__cause__, ServiceInputError)
    assert not simulator.requests
