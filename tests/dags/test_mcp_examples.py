"""The example DAGs that start workflows without a webhook."""

from __future__ import annotations

import json

import pytest

from airflow_provider_service.simulator import ServiceSimulator
from tests.runs.workflows import FORM, SCHEDULE, put, puts_out, started_with
from tests.runs.workflows import held as executions_of

from .test_examples import Run, states


@pytest.fixture(autouse=True)
def with_key(simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that may start workflows through MCP."""
    fields = json.loads(simulator.connection_json())
    extra = {"mcp_api_key": simulator.mcp_api_key}
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", json.dumps({**fields, "extra": extra}))


def test_a_nightly_workflow_by_name(run: Run, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, SCHEDULE, puts_out('{"articles": 7}'), name="Nightly inventory")

    state, runs = run("example_service_nightly")

    assert state == "success", runs
    [execution] = executions_of(simulator, workflow_id)
    assert (execution.mode, execution.status) == ("trigger", "success")


@pytest.mark.parametrize(("approved", "shipped"), [("true", "success"), ("false", "skipped")])
def test_a_form_that_decides(run: Run, simulator: ServiceSimulator, approved: str, shipped: str) -> None:
    decides = puts_out(f'{{"approved": {approved}}}')
    workflow_id = put(simulator, FORM, decides, name="Approve an order", availableInMCP=True)

    state, runs = run("example_service_approval")

    assert (state, states(runs)["ship"]) == ("success", {shipped})
    [execution] = executions_of(simulator, workflow_id)
    submitted = started_with(execution)
    assert (submitted["order"], submitted["amount"]) == ("4711", "250")
