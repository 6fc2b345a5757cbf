"""The output of executions, whoever started them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import requests_mock

from airflow_provider_service.client.errors import ServiceInputError, ServiceLookupError, ServiceNotFoundError
from airflow_provider_service.hooks.service import ServiceHook
from airflow_provider_service.simulator import ServiceSimulator
from tests.runs.workflows import DONE, put, puts_out, wait, webhook

pytestmark = pytest.mark.usefixtures("virtual_time")


@pytest.fixture
def hook() -> Iterator[ServiceHook]:
    with ServiceHook() as hook:
        yield hook


def ended(hook: ServiceHook, simulator: ServiceSimulator, *nodes: Any, payload: Any = None) -> str:
    """The id of an execution that has ended."""
    workflow_id = put(simulator, webhook(), *nodes)
    return str(hook.run_workflow(workflow_id=workflow_id, payload=payload)["execution_id"])


def test_the_items_of_the_last_node_and_of_one_that_is_named(hook: ServiceHook, simulator: ServiceSimulator) -> None:
    execution_id = ended(hook, simulator, puts_out('={{ {"sum": $json.body.n} }}'), payload={"n": 3})

    assert hook.executions.output(execution_id) == [{"sum": 3}]
    assert hook.executions.output(int(execution_id)) == [{"sum": 3}]
    [called] = hook.executions.output(execution_id, node="Webhook")
    assert called["body"] == {"n": 3}


def test_a_node_that_has_not_run(hook: ServiceHook, simulator: ServiceSimulator) -> None:
    execution_id = ended(hook, simulator, DONE)
    with pytest.raises(ServiceLookupError, match=r"shows no output of node 'Nope'; its nodes that ran: 'Webhook'"):
        hook.executions.output(execution_id, node="Nope")


def test_data_that_was_not_kept(
    hook: ServiceHook, simulator: ServiceSimulator, requests_mock: requests_mock.Mocker
) -> None:
    execution = {"id": "1", "status": "success", "mode": "webhook", "finished": True, "workflowId": "w"}
    requests_mock.get(f"{hook.config.api_root}/executions/1", json=execution)
    with pytest.raises(ServiceLookupError, match="shows no output of its last node; its nodes that ran: none"):
        hook.executions.output(1)


def test_an_execution_that_has_not_ended(hook: ServiceHook, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), wait(60), DONE)
    run = hook.run_workflow(workflow_id=workflow_id, wait_for_completion=False)
    with pytest.raises(ServiceInputError, match=r"has not ended \(status '\w+'\).*ServiceExecutionSensor"):
        hook.executions.output(run["execution_id"])


@pytest.mark.parametrize("execution_id", ["", "x", "../1", 0, True])
def test_an_invalid_id(hook: ServiceHook, simulator: ServiceSimulator, execution_id: Any) -> None:
    with pytest.raises(ServiceInputError, match="whole number"):
        hook.executions.output(execution_id)
    with pytest.raises(ServiceNotFoundError):
        hook.executions.output(99)
