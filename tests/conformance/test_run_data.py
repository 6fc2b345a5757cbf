"""Where the data of an execution holds what the provider reads: the run's key, its failure, its output."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta

import pytest

from airflow_provider_service._core.runs.attempt import RunKey
from airflow_provider_service._core.runs.searching import (
    RUN_KEY_HEADER,
    EarlierRuns,
    RunSearch,
    find_earlier_runs,
)
from airflow_provider_service.client._execution_data import failure_of, last_output, nodes_of
from airflow_provider_service.client.errors import ServiceTaskKilledError
from airflow_provider_service.simulator._samples import node
from tests.polling import wait_until

from .expecting import unique
from .target import Target
from .workbench import LONG_WAIT, Workbench, answering, code, done, stop_and_error, wait, webhook


def start(bench: Workbench, *nodes: dict[str, object]) -> str:
    """Start a run; the id of its execution."""
    return bench.start(bench.publish(webhook(unique()), *nodes))


def search(service: Target, workflow_id: str, key: RunKey, since: datetime | None = None) -> EarlierRuns | None:
    """One search for the runs of a task; None when it has found none and would look again."""
    stopped = threading.Event()
    stopped.set()
    try:
        return find_earlier_runs(service.client, RunSearch(workflow_id, since), key, stopped)
    except ServiceTaskKilledError:
        return None


@pytest.mark.covers("list_executions")
@pytest.mark.parametrize(
    ("nodes", "status"),
    [
        ([wait(30)], "running"),
        ([wait(LONG_WAIT * 10)], "waiting"),
        ([done()], "success"),
        ([stop_and_error()], "error"),
    ],
    ids=["running", "waiting", "success", "error"],
)
def test_a_run_is_found_by_its_key(
    bench: Workbench, service: Target, nodes: list[dict[str, object]], status: str
) -> None:
    flow, key = bench.publish(webhook(unique()), *nodes), RunKey(unique("key"), 3)
    bench.call(flow, headers={RUN_KEY_HEADER: key.header})
    if status == "waiting" and service.differs("list of waiting executions"):
        return
    runs = wait_until(lambda: search(service, flow.id, key), what="the run")
    ((execution, attempt),) = runs.found
    assert (attempt, runs.unreadable) == (3, [])
    started = bench.reaches(execution.id, status).started_at
    assert started is not None
    again = search(service, flow.id, key, started - timedelta(minutes=1))
    assert again is not None
    assert [(run.execution.id, run.execution.status) for run in again.found] == [(execution.id, status)]
    assert search(service, flow.id, key, started + timedelta(minutes=1)) is None
    assert search(service, flow.id, RunKey(unique("other"), 1)) is None


@pytest.mark.covers("list_executions", "stop_execution")
def test_a_canceled_run_is_found_by_its_key(bench: Workbench, service: Target) -> None:
    flow, key = bench.publish(webhook(unique()), wait(30)), RunKey(unique("key"), 1)
    bench.call(flow, headers={RUN_KEY_HEADER: key.header})
    (run,) = wait_until(lambda: search(service, flow.id, key), what="the run").found
    service.client.executions.stop(run.execution.id)
    bench.reaches(run.execution.id, "canceled")
    found = search(service, flow.id, key)
    assert found is not None
    assert [one.execution.status for one in found.found] == ["canceled"]


@pytest.mark.covers("get_execution")
def test_the_failure_of_a_node_that_stops(bench: Workbench) -> None:
    execution = bench.finished(start(bench, done(), stop_and_error("Out of stock")))
    assert failure_of(execution) == ("Stop", "Out of stock")


@pytest.mark.covers("get_execution")
def test_the_failure_of_a_code_node(bench: Workbench, service: Target) -> None:
    execution = bench.finished(start(bench, code('throw new Error("broken")')))
    assert failure_of(execution) == ("Code", "broken [line 1]")
    data = execution.data
    assert data is not None
    # Its error does not name the node.
    assert ("node" in data["resultData"]["error"]) is service.differs("error of a code node")


@pytest.mark.covers("get_execution")
@pytest.mark.parametrize(
    ("text", "output"),
    [
        ('return [{"json": {"a": 1, "b": null}}, {"json": {"text": "={{ $json }}", "list": [1.5, {}]}}];', None),
        ('return [{"a": 1}, {"b": {"c": true}}]', [{"a": 1}, {"b": {"c": True}}]),
        ("return [];", []),
    ],
    ids=["items", "objects", "nothing"],
)
def test_code_that_returns_json_puts_it_out(bench: Workbench, text: str, output: list[object] | None) -> None:
    execution = bench.finished(start(bench, code(text)))
    expected = [{"a": 1, "b": None}, {"text": "={{ $json }}", "list": [1.5, {}]}] if output is None else output
    assert (execution.status, last_output(execution)) == ("success", expected)


@pytest.mark.covers("get_execution", "stop_execution")
def test_the_failure_of_a_stopped_run(bench: Workbench, service: Target) -> None:
    execution_id = start(bench, wait(30))
    service.client.executions.stop(execution_id)
    bench.reaches(execution_id, "canceled")
    failure = failure_of(service.client.executions.get(execution_id, include_data=True))
    assert failure.message in (None, "The execution was cancelled manually")


@pytest.mark.covers("get_execution")
def test_the_last_output_the_last_node(bench: Workbench) -> None:
    flow = bench.publish(webhook(unique()), done())
    execution = bench.finished(bench.start(flow))
    (item,) = last_output(execution)
    assert item["executionMode"] == "production"


@pytest.mark.covers("get_execution")
def test_what_the_nodes_did(bench: Workbench) -> None:
    nodes = nodes_of(bench.finished(start(bench, wait(1), done(), stop_and_error("Out of stock"))))
    assert [(one.node, one.status, one.items, one.message) for one in nodes] == [
        ("Webhook", "success", 1, None),
        ("Wait", "success", 1, None),
        ("Done", "success", 1, None),
        ("Stop", "error", 0, "Out of stock"),
    ]
    assert 0.9 <= nodes[1].seconds < 60


@pytest.mark.covers("get_execution")
def test_the_nodes_of_a_run_that_sleeps(bench: Workbench, service: Target) -> None:
    execution_id = bench.start(bench.publish(*answering(unique()), done(), wait(LONG_WAIT * 10)))
    bench.reaches(execution_id, "waiting")
    # The older generation shows the status a moment before the data.
    nodes = wait_until(
        lambda: nodes_of(service.client.executions.get(execution_id, include_data=True)), what="the nodes"
    )
    ran = [(one.node, one.status) for one in nodes]
    assert (ran[0], ran[2]) == (("Webhook", "success"), ("Done", "success"))


@pytest.mark.covers("get_execution")
def test_custom_data_is_there_after_the_run(bench: Workbench) -> None:
    node = {
        "name": "Mark",
        "type": "n8n-nodes-base.executionData",
        "typeVersion": 1,
        "position": [400, 0],
        "parameters": {"operation": "save", "dataToSave": {"values": [{"key": "order", "value": "A-1"}]}},
    }
    execution = bench.finished(start(bench, node))
    assert execution.custom_data == {"order": "A-1"}


def at_least(least: int) -> dict[str, object]:
    """Conditions that hold if a number, which is 5, is large enough."""
    options = {"caseSensitive": True, "leftValue": "", "typeValidation": "strict", "version": 2}
    one = {
        "id": f"at-least-{least}",
        "leftValue": "={{ $json.n }}",
        "rightValue": least,
        "operator": {"type": "number", "operation": "gte"},
    }
    return {"conditions": {"options": options, "conditions": [one], "combinator": "and"}}


@pytest.mark.covers("get_execution")
@pytest.mark.parametrize(
    ("branching", "outputs"),
    [
        (node("Branch", "if", 2.2, at_least(5), 1), [1, 0]),
        (node("Branch", "if", 2.2, at_least(6), 1), [0, 1]),
        (node("Branch", "filter", 2.2, at_least(6), 1), [0, 1]),
        (node("Branch", "switch", 3.2, {"rules": {"values": [at_least(6), at_least(5), at_least(4)]}}, 1), [0, 1, 0]),
        (
            node(
                "Branch",
                "switch",
                3.2,
                {"rules": {"values": [at_least(6)]}, "options": {"fallbackOutput": "extra"}},
                1,
            ),
            [0, 1],
        ),
    ],
    ids=["if true", "if false", "filter", "switch", "fallback"],
)
def test_a_branching_node_has_items_in_the_outputs_that_it_chooses(
    bench: Workbench, branching: dict[str, object], outputs: list[int]
) -> None:
    five = node("Five", "set", 3.4, {"mode": "raw", "jsonOutput": '={{ {"n": 5} }}'}, 1)
    execution = bench.finished(start(bench, five, branching))
    main = execution.data["resultData"]["runData"]["Branch"][0]["data"]["main"]
    assert [len(items or []) for items in main] == outputs
