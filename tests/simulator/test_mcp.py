"""What only the simulator has of the MCP endpoint: its switches, its queue, its faults and its record of requests."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from airflow_provider_service.client import ServiceClient, ServiceConfig, errors
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.simulator._samples import chain, node, wait

SCHEDULE = node("Schedule", "scheduleTrigger", 1.2, {"rule": {"interval": [{"field": "hours"}]}}, 0)
FORM = node("Form", "formTrigger", 2.2, {"formTitle": "Form"}, 0)
FILLED_IN: dict[str, Any] = {"trigger_node": "Form", "inputs": {"formData": {"n": 1}}}
# The tests' own calls; what asks for the kind of the endpoint has none.
START: dict[str, Any] = {"path": "^/mcp-server/http$", "body": "executionMode"}


def connect(simulator: ServiceSimulator, **settings: Any) -> ServiceClient:
    usual = {"base_url": simulator.base_url, "api_key": simulator.api_key, "mcp_api_key": simulator.mcp_api_key}
    return ServiceClient(ServiceConfig(**{**usual, "retry_deadline": 0, **settings}))


@pytest.fixture
def client(simulator: ServiceSimulator) -> Iterator[ServiceClient]:
    with connect(simulator) as client:
        yield client


def put(simulator: ServiceSimulator, trigger: dict[str, Any] = SCHEDULE, *, seconds: float = 10) -> str:
    """A workflow that is available in MCP, and active."""
    body = chain("Workflow", [trigger, wait(seconds)])
    body["settings"] = {"availableInMCP": True}

    def create() -> str:
        workflow = simulator.state.workflows.create(body)
        simulator.state.workflows.publish(workflow, delay=0)
        simulator.state.settle()
        return workflow.id

    return simulator.in_loop(create)


def statuses(simulator: ServiceSimulator) -> list[str]:
    simulator.in_loop(simulator.state.settle)
    return [execution.status for execution in simulator.state.executions]


def test_switch_and_key(simulator: ServiceSimulator, client: ServiceClient) -> None:
    workflow_id, key = put(simulator), simulator.mcp_api_key
    assert simulator.mcp_enabled
    simulator.mcp_enabled = False
    with pytest.raises(errors.ServiceNotOfferedError, match="switched off"):
        client.mcp.execute_workflow(workflow_id)

    simulator.reset()

    assert (simulator.mcp_enabled, simulator.mcp_api_key) == (True, key)
    assert client.mcp.execute_workflow(put(simulator)).execution_id == "1"


def test_publishing_takes_effect_later() -> None:
    with ServiceSimulator(publish_delay=60) as simulator, connect(simulator) as client:
        workflow_id = put(simulator)
        workflow = simulator.state.workflows.get(workflow_id)
        simulator.in_loop(lambda: simulator.state.workflows.unpublish(workflow))
        assert client.mcp.execute_workflow(workflow_id).execution_id == "1"
        simulator.clock.advance(61)
        with pytest.raises(errors.ServiceNotPublishedError):
            client.mcp.execute_workflow(workflow_id)

        simulator.in_loop(lambda: simulator.state.workflows.publish(workflow))
        with pytest.raises(errors.ServiceNotPublishedError):
            client.mcp.execute_workflow(workflow_id)
        simulator.clock.advance(61)
        assert client.mcp.execute_workflow(workflow_id).execution_id == "2"


@pytest.mark.parametrize("mode", ["production", "manual"])
def test_in_queue_mode_a_call_is_answered_while_its_run_queues(mode: Any) -> None:
    with ServiceSimulator(concurrency_limit=1, queue_mode=True) as simulator, connect(simulator) as client:
        workflow_id = put(simulator)
        started = [client.mcp.execute_workflow(workflow_id, mode=mode).execution_id for _ in range(2)]
        assert (started, statuses(simulator)) == (["1", "2"], ["running", "new"])


def test_a_call_that_gives_up_leaves_its_run_in_the_queue() -> None:
    with ServiceSimulator(concurrency_limit=1) as simulator, connect(simulator, timeout=0.5) as client:
        workflow_id = put(simulator)
        client.mcp.execute_workflow(workflow_id)
        with pytest.raises(errors.ServiceTimeoutError) as caught:
            client.mcp.execute_workflow(workflow_id)
        assert not caught.value.not_processed
        assert statuses(simulator) == ["running", "new"]


@pytest.mark.parametrize(("trigger", "options"), [(SCHEDULE, {}), (FORM, FILLED_IN)], ids=["schedule", "form"])
@pytest.mark.parametrize("processed", [False, True])
@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("drop", errors.ServiceConnectionLostError),
        ("status", errors.ServiceUnavailableError),
        ("truncate", errors.ServiceConnectionLostError),
    ],
)
def test_a_lost_answer_does_not_show_whether_anything_runs(
    simulator: ServiceSimulator,
    client: ServiceClient,
    trigger: dict[str, Any],
    options: dict[str, Any],
    processed: bool,
    kind: Any,
    error: type[errors.ServiceApiError],
) -> None:
    workflow_id = put(simulator, trigger)
    simulator.inject(kind, status=502, after_processing=processed, **START)
    with pytest.raises(error) as caught:
        client.mcp.execute_workflow(workflow_id, **options)
    assert not caught.value.not_processed
    assert len(statuses(simulator)) == processed


def test_a_fault_before_the_call_lets_nothing_run(simulator: ServiceSimulator, client: ServiceClient) -> None:
    workflow_id = put(simulator)
    simulator.inject("drop", path=START["path"])
    with pytest.raises(errors.ServiceRunNotStartedError, match="nothing was started"):
        client.mcp.execute_workflow(workflow_id)
    assert statuses(simulator) == []


def test_delayed_calls_run_side_by_side(simulator: ServiceSimulator, client: ServiceClient) -> None:
    workflow_id = put(simulator, FORM)
    simulator.inject("latency", seconds=0.2, times=None, **START)
    with ThreadPoolExecutor(5) as calls:
        started = [calls.submit(client.mcp.execute_workflow, workflow_id, **FILLED_IN) for _ in range(5)]
    assert sorted(one.result().execution_id for one in started) == ["1", "2", "3", "4", "5"]


def test_the_record_of_requests_holds_no_key(simulator: ServiceSimulator, client: ServiceClient) -> None:
    client.mcp.execute_workflow(put(simulator, FORM), **FILLED_IN)
    (request,) = [one for one in simulator.requests if one.path == "/mcp-server/http"]
    assert (request.method, request.status) == ("POST", 200)
    assert request.body["params"]["arguments"]["inputs"] == FILLED_IN["inputs"]
    assert simulator.mcp_api_key not in repr(vars(request))


def test_an_execution_of_the_schedule_itself_can_be_set_up(simulator: ServiceSimulator, client: ServiceClient) -> None:
    execution_id = simulator.start_execution(put(simulator), mode="trigger", status="running")
    execution = client.executions.get(execution_id, include_data=True)
    assert execution.mode == "trigger"
    assert "pinData" not in execution.data["resultData"]  # type: ignore[index]
