"""What a page computes and shows is limited before it is computed, whatever the service answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_service._core.pages import rendering
from airflow_provider_service._core.pages.drawing import MAX_LINES, MAX_NODES
from airflow_provider_service._core.pages.execution_view import (
    MAX_ALL_BARS,
    MAX_BARS,
    MAX_NAME_CHARS,
    MAX_ROWS,
    MAX_RUNS,
)
from airflow_provider_service._core.pages.reading import ExecutionReading, see
from airflow_provider_service.client import ServiceConfig
from tests.client.tiny_server import TinyServer, answer

HUGE = 10**310


def run_of(began: Any = 1_767_225_600_000, took: Any = 3, status: str = "success") -> dict[str, Any]:
    """A run of a node as the service's data holds it."""
    return {"startTime": began, "executionTime": took, "executionStatus": status, "data": {"main": [[{"json": {}}]]}}


def read(runs: dict[str, list[Any]], connections: Any = None, position: Any = (0, 0), **more: Any) -> ExecutionReading:
    """What a page shows of an execution of these runs."""
    nodes = [{"name": name, "type": "n8n-nodes-base.noOp", "position": list(position)} for name in runs]
    workflow = {"id": "w", "name": "Large", "nodes": nodes, "connections": connections or {}}
    execution = {"id": "7", "status": "success", "mode": "webhook", "workflowId": "w", "finished": True}
    execution |= {"workflowData": workflow, "data": {"resultData": {"runData": runs}}, **more}
    with TinyServer(answer(json.dumps(execution).encode())) as server:
        config = ServiceConfig(base_url=server.address, api_key="key")
        return rendering.drawn(see(lambda: config, "7", None, base_url=config.base_url, show_data=False))


def test_the_connections_of_a_workflow_that_has_far_too_many_are_not_all_drawn():
    names = [f"Node {at}" for at in range(MAX_NODES)]
    all_nodes = [{"node": name, "type": "main", "index": 0} for name in names]
    connections = {name: {"main": [all_nodes]} for name in names[:200]}

    seen = read({name: [run_of()] for name in names}, connections)

    assert len(seen.view.drawing.lines) == MAX_LINES
    assert f"Only the first {MAX_LINES:,} connections are drawn." in seen.view.notes
    assert len(seen.html) < 1_000_000


def test_a_workflow_of_usual_size_is_drawn_whole():
    seen = read({"A": [run_of()], "B": [run_of()]}, {"A": {"main": [[{"node": "B"}]]}})

    assert (len(seen.view.drawing.lines), seen.view.notes) == (1, [])


def test_the_bars_of_an_execution_of_many_nodes_are_limited_together():
    began = 1_767_225_600_000
    runs = [run_of(began + 10 * at) for at in range(MAX_BARS)]

    seen = read({f"Node {at}": runs for at in range(200)})

    bars = [len(node.bars) for node in seen.view.nodes]
    assert (len(bars), set(bars)) == (200, {MAX_ALL_BARS // 200})
    assert {node.runs for node in seen.view.nodes} == {MAX_BARS}
    assert len(seen.html) < 1_000_000


def test_runs_beyond_a_number_are_not_counted_but_the_last_one_says_how_the_node_ended():
    seen = read({"Loop": [*[run_of()] * (2 * MAX_RUNS), run_of(status="error")], "After": [run_of()]})

    loop = seen.view.node("Loop")
    assert (loop.runs, loop.failed_runs, loop.state) == (MAX_RUNS // 2, 1, "failed")
    assert f"counts only {MAX_RUNS:,}" in " ".join(seen.view.notes)


def test_long_names_are_cut_and_more_nodes_than_the_table_holds_left_out():
    long = "x" * 100_000

    seen = read({long: [run_of()], **{f"Node {at}": [run_of()] for at in range(MAX_ROWS)}})

    assert len(seen.view.nodes) == MAX_ROWS
    assert max(len(node.name) for node in seen.view.nodes) == MAX_NAME_CHARS
    assert len(seen.html) < 1_000_000


def test_the_node_that_failed_and_the_last_one_are_in_the_table_of_more_nodes_than_it_holds():
    runs = {f"n{at}": [run_of()] for at in range(310)}
    runs["n307"] = [run_of(status="error")]
    result = {"runData": runs, "lastNodeExecuted": "n309"}

    view = read(runs, status="error", data={"resultData": result}).view

    assert (view.failure.node, view.node("n307").state, view.node("n309").state) == ("n307", "failed", "succeeded")
    assert (len(view.nodes), view.node("n298")) == (MAX_ROWS, None)
    assert "Nodes left out of the table: 10." in " ".join(view.notes)


def test_a_node_that_failed_before_it_ran_is_in_the_table_of_more_nodes_than_it_holds():
    runs = {f"n{at}": [run_of()] for at in range(MAX_ROWS - 1)}
    nodes = [{"name": f"other {at}", "type": "n8n-nodes-base.noOp"} for at in range(5)]
    error = {"node": {"name": "other 3"}, "message": "It has no trigger."}
    data = {"resultData": {"runData": runs, "error": error}}

    view = read(runs, status="error", data=data, workflowData={"id": "w", "nodes": nodes}).view

    assert view.node("other 3").state == "failed"
    assert len(view.nodes) == MAX_ROWS
    assert "Nodes left out of the table: 4." in " ".join(view.notes)


def test_a_table_that_holds_all_nodes_leaves_none_out():
    assert read({f"n{at}": [run_of()] for at in range(MAX_ROWS)}).view.notes == []


def test_nodes_whose_long_names_begin_alike_stay_different_ones():
    first, second = "x" * 250 + "first", "x" * 250 + "second"
    runs = {first: [run_of(), run_of()], second: [run_of(status="error")]}

    seen = read(runs, status="error", data={"resultData": {"runData": runs, "lastNodeExecuted": second}})

    view = seen.view
    assert [(node.state, node.runs) for node in view.nodes] == [("succeeded", 2), ("failed", 1)]
    assert view.failure.node == view.nodes[1].name != view.nodes[0].name
    assert {box.node for box in view.drawing.boxes} == {node.name for node in view.nodes}
    assert max(len(node.name) for node in view.nodes) == MAX_NAME_CHARS
    assert seen.html.count(" failing") == 1


@pytest.mark.parametrize("number", [HUGE, -HUGE, 2**63, 1e308], ids=["huge", "-huge", "63", "1e308"])
def test_numbers_that_nothing_can_have_are_not_known(number):
    seen = read({"A": [run_of(began=number), run_of(took=number)]}, position=(number, number))

    [node] = seen.view.nodes
    assert (node.seconds, node.runs) == (0.003, 2)
    assert f"{number}" not in seen.html
    [box] = seen.view.drawing.boxes
    assert 0 <= box.area[0] < 1_000
