"""The trace of a task continues in the workflow that it runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry import trace

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client._execution_data import starting_items
from airflow_provider_service.hooks.service import ServiceHook
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.simulator import ServiceSimulator
from tests.operators.conftest import FakeTaskInstance
from tests.runs.workflows import DONE, put, webhook

TRACE_ID, SPAN_ID = 0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331


@pytest.fixture
def span() -> Iterator[None]:
    """A span of a task, as Airflow makes it when it traces."""
    context = trace.SpanContext(TRACE_ID, SPAN_ID, is_remote=False, trace_flags=trace.TraceFlags(1))
    with trace.use_span(trace.NonRecordingSpan(context)):
        yield


def traceparent(client: ServiceClient, workflow_id: str) -> str | None:
    [execution] = client.executions.list(workflow_id=workflow_id, include_data=True)
    item = next(starting_items(execution))
    header: str | None = item["headers"].get("traceparent")
    return header


def run(workflow_id: str, **options: object) -> None:
    task = ServiceRunWorkflowOperator(task_id="run", workflow_id=workflow_id, poll_interval=0.05, **options)
    with task.hook:
        task.execute({"ti": FakeTaskInstance(), "task": task})


@pytest.mark.usefixtures("span")
def test_the_call_carries_the_trace(simulator: ServiceSimulator, client: ServiceClient) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    run(workflow_id)
    assert traceparent(client, workflow_id) == "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.usefixtures("span")
def test_a_header_of_the_user_wins(simulator: ServiceSimulator, client: ServiceClient) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    run(workflow_id, webhook_headers={"Traceparent": "mine"})
    assert traceparent(client, workflow_id) == "mine"


def test_without_a_span_there_is_no_header(simulator: ServiceSimulator, client: ServiceClient) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    with ServiceHook() as hook:
        hook.run_workflow(workflow_id=workflow_id, poll_interval=0.05)
    assert traceparent(client, workflow_id) is None
