"""Workflows whose output, failure and duration a test sets, and what a test learns about their runs."""

from __future__ import annotations

import pytest
import requests

from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.client._execution_data import failure_of, last_output
from airflow_provider_service.client.errors import ServiceError, ServiceInputError
from airflow_provider_service.client.models import Execution
from airflow_provider_service.simulator._samples import webhook_workflow
from airflow_provider_service.testing import SimulatedService, SimulatedWorkflow

pytest_plugins = ["airflow_provider_service.testing.pytest_plugin"]


def call(service: SimulatedService, workflow: SimulatedWorkflow, payload: object = None) -> str:
    """Call the workflow's webhook; the execution's id."""
    answer = requests.post(f"{service.simulator.base_url}/webhook/{workflow.path}", json=payload, timeout=60)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["executionId"])


def seen(service: SimulatedService, execution_id: str) -> Execution:
    """The execution as the service shows it, after a minute of its clock."""
    simulator = service.simulator
    simulator.in_loop(lambda: simulator.clock.advance(60))
    with ServiceClient(ServiceConfig(base_url=simulator.base_url, api_key=simulator.api_key)) as client:
        return client.executions.get(execution_id, include_data=True)


def test_the_output_is_as_set(service: SimulatedService) -> None:
    items = [
        {"day": "2026-01-31", "orders": 3, "open": None},
        {"text": "return [1] ={{ $json }}", "list": [1.5, {}]},
        {"text": "throw new Error('x') stops the run"},
    ]

    execution = seen(service, call(service, service.workflow("w", output=items)))

    assert (execution.status, last_output(execution)) == ("success", items)


def test_unknown_nodes_are_published_if_the_test_allows_it(service: SimulatedService) -> None:
    simulator = service.simulator
    body = webhook_workflow("Odd", "odd", "immediate")
    body["nodes"][-1]["type"] = "n8n-nodes-odd.odd"
    with ServiceClient(ServiceConfig(base_url=simulator.base_url, api_key=simulator.api_key)) as client:
        workflow = client.workflows.create(body["name"], body["nodes"], body["connections"], {})
        with pytest.raises(ServiceError, match=r"Unrecognized node type: n8n-nodes-odd\.odd"):
            client.workflows.activate(workflow.id)
        service.allow_unknown_nodes()
        assert client.workflows.activate(workflow.id).active


def test_an_empty_output(service: SimulatedService) -> None:
    execution = seen(service, call(service, service.workflow("w", output=[])))

    assert (execution.status, last_output(execution)) == ("success", [])


def test_without_output_the_call_is_passed_on(service: SimulatedService) -> None:
    output = last_output(seen(service, call(service, service.workflow("w"), {"day": 1})))

    assert output is not None
    assert output[0]["body"] == {"day": 1}


@pytest.mark.parametrize("message", ["The disk is full", "= is no number", "={{ $json.day }}"])
def test_the_failure_is_as_set(service: SimulatedService, message: str) -> None:
    execution = seen(service, call(service, service.workflow("w", fails_with=message)))

    assert (execution.status, failure_of(execution).message) == ("error", message)


def test_the_duration_is_as_set(service: SimulatedService) -> None:
    execution_id = call(service, service.workflow("w", takes=150))

    assert [seen(service, execution_id).status for _ in range(3)] == ["waiting", "waiting", "success"]


def test_a_workflow_changes(service: SimulatedService) -> None:
    failing = service.workflow("w", fails_with="no")
    first = call(service, failing)
    assert seen(service, first).status == "error"

    repaired = service.workflow("w", output=[{"ok": True}])

    assert repaired == failing
    assert last_output(seen(service, call(service, repaired))) == [{"ok": True}]
    assert [run.status for run in repaired.runs] == ["error", "success"]


def test_a_workflow_gets_another_trigger(service: SimulatedService) -> None:
    first = service.workflow("w")
    call(service, first, {"n": 1})

    other = service.workflow("w", trigger="schedule")

    assert (other.id, first.path != "", other.path) == (first.id, True, "")
    assert requests.post(f"{service.simulator.base_url}/webhook/{first.path}", timeout=60).status_code == 404
    assert [run.payload for run in other.runs] == [{"n": 1}]


def test_an_inactive_workflow(service: SimulatedService) -> None:
    workflow = service.workflow("w", active=False, path="nightly")

    answer = requests.post(f"{service.simulator.base_url}/webhook/nightly", timeout=60)

    assert (answer.status_code, workflow.runs) == (404, [])


@pytest.mark.parametrize(
    "arguments",
    [
        {"takes": -1},
        {"takes": "soon"},
        {"output": [], "fails_with": "no"},
        {"trigger": "cron"},
        {"trigger": "form", "path": "approval"},
    ],
)
def test_invalid_arguments_are_refused(service: SimulatedService, arguments: dict[str, object]) -> None:
    with pytest.raises(ServiceInputError):
        service.workflow("w", **arguments)  # type: ignore[arg-type]


def test_assert_ran_counts(service: SimulatedService) -> None:
    workflow = service.workflow("Sync")
    service.assert_ran(workflow, times=0)
    for region in ("eu", "us", "eu"):
        call(service, workflow, {"region": region})

    service.assert_ran(workflow, times=3)
    service.assert_ran("Sync", times=2, payload={"region": "eu"})
    service.assert_ran(workflow.id, payload={"region": "us"})
    service.assert_ran("Sync", times=0, payload={"region": "asia"})


@pytest.mark.parametrize("payload", [[], 0, False, "", {}])
def test_an_empty_payload_is_shown_as_it_was_sent(service: SimulatedService, payload: object) -> None:
    workflow = service.workflow("Sync")
    call(service, workflow, payload)

    assert [repr(run.payload) for run in workflow.runs] == [repr(payload)]


def failure(service: SimulatedService, workflow: str, **arguments: object) -> str:
    with pytest.raises(AssertionError) as caught:
        service.assert_ran(workflow, **arguments)  # type: ignore[arg-type]
    return str(caught.value)


def test_a_failed_assertion_shows_what_was_received_instead(service: SimulatedService) -> None:
    workflow = service.workflow("Sync")
    service.workflow("Report")
    assert failure(service, "Sync") == "expected workflow 'Sync' to run once, but it did not. No workflow has run."
    for region in ("eu", "us"):
        call(service, workflow, {"region": region})
    seen(service, "1")

    assert failure(service, "Sync", payload={"region": "asia"}) == (
        "expected workflow 'Sync' to run once with the payload {'region': 'asia'}, but it did not. Its runs:\n"
        "  execution 1: success, payload {'region': 'eu'}\n"
        "  execution 2: success, payload {'region': 'us'}"
    )
    assert failure(service, "Sync", times=0).startswith("expected workflow 'Sync' not to run, but it ran twice. ")
    assert failure(service, "Report", times=3) == (
        "expected workflow 'Report' to run 3 times, but it did not. What has run instead:\n"
        "  'Sync', execution 1: success, payload {'region': 'eu'}\n"
        "  'Sync', execution 2: success, payload {'region': 'us'}"
    )


def test_unknown_and_ambiguous_names(service: SimulatedService) -> None:
    assert failure(service, "Sync") == "the simulated service has no workflow 'Sync'; it has none"
    service.workflow("Report")
    assert failure(service, "Sync") == "the simulated service has no workflow 'Sync'; it has 'Report'"
    service.simulator.create_webhook_workflow("Report", path="other")
    assert failure(service, "Report") == "the simulated service has 2 workflows named 'Report'; give an id"
