"""What a wait that timed out says of an execution that sleeps: at which node, and for what."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import requests

from airflow_provider_service._core.waits.watch import Watch, where_it_waits
from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client._execution_data import awaited_event
from airflow_provider_service.client.models import Execution
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.simulator._samples import node
from tests.runs.workflows import DONE, put, wait, webhook

from .driving import MODES, Mode, run_to_end, wait_for

every_mode = pytest.mark.parametrize("mode", MODES, ids=[mode.name for mode in MODES])


def ended(mode: Mode, simulator: ServiceSimulator, sleeper: dict[str, Any]) -> str:
    """The message of a wait for a workflow that sleeps at a node until the wait is over."""
    target = put(simulator, webhook(), sleeper, DONE)
    if not mode.starts:
        requests.post(f"{simulator.base_url}/webhook/w", timeout=60).raise_for_status()
        target = str(newest(simulator).id)
    return run_to_end(lambda: mode.task(target, interval=0.05, timeout=10)).message


def newest(simulator: ServiceSimulator) -> Any:
    return max(simulator.state.executions, key=lambda execution: execution.id)


@every_mode
@pytest.mark.parametrize(
    ("resume", "event"), [("form", "a form to be submitted"), ("webhook", "a call of its webhook")]
)
def test_a_wait_that_timed_out_names_the_node_and_what_it_waits_for(
    mode: Mode, resume: str, event: str, simulator: ServiceSimulator
) -> None:
    message = ended(mode, simulator, node("Approve", "wait", 1.1, {"resume": resume, "formTitle": "Approve"}, 2))

    fate = "it was stopped" if mode.starts else "it was not stopped. To wait longer, raise timeout"
    expected = f"had not ended 10 s after the wait began, but was waiting at node 'Approve' for {event}; {fate}"
    assert message.endswith(expected)


@every_mode
def test_a_wait_that_timed_out_names_the_time_until_which_it_sleeps(mode: Mode, simulator: ServiceSimulator) -> None:
    message = ended(mode, simulator, wait(3600))

    until = newest(simulator).started_at + timedelta(hours=1)
    assert f"but was waiting at node 'Wait' until {until.isoformat(timespec='minutes')[:16]}:" in message


def test_an_answer_to_a_message_is_awaited() -> None:
    ask = {"name": "Ask", "type": "n8n-nodes-base.slack", "parameters": {"operation": "sendAndWait"}}
    data = {"executionData": {"nodeExecutionStack": [{"node": ask}]}}

    assert awaited_event(Execution(id="1", status="waiting", data=data)) == "an answer to its message"


def test_without_its_data_an_execution_is_said_to_wait(
    simulator: ServiceSimulator, workflow_id: str, client: ServiceClient
) -> None:
    outcome = Watch(wait_for(simulator.start_execution(workflow_id, status="waiting"))).timed_out()

    after = where_it_waits(client.transport.config, outcome)
    assert after.message == f"{outcome.message}, but was waiting"
    simulator.inject("status", status=403)
    assert where_it_waits(client.transport.config, outcome) == outcome
