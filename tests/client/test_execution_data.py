"""What is found in an execution's id and data, of whatever shape these are."""

from __future__ import annotations

from typing import Any

import pytest
import requests_mock

from airflow_provider_service.client._execution_data import (
    Failure,
    NodeRun,
    OutputFile,
    failure_of,
    files_of,
    last_output,
    nodes_of,
    output_of,
    starting_items,
    sub_execution_id,
    with_data,
)
from airflow_provider_service.client.models import Execution

from .clients import ROOT, Client


def execution(data: dict[str, Any]) -> Execution:
    return Execution.model_validate({"id": "7", "status": "error", "data": data})


@pytest.mark.parametrize(
    ("id_", "number"),
    [("7", 7), ("007", 7), ("9" * 18, 10**18 - 1), ("9" * 19, 0), ("", 0), ("x", 0), ("٣", 0), ("²", 0)],
)
def test_an_id_as_a_number(id_: str, number: int) -> None:
    assert Execution.model_validate({"id": id_, "status": "error"}).number == number


@pytest.mark.parametrize(("of_run", "found"), [({"subExecution": {"executionId": "8"}}, "8"), ({}, None)])
def test_the_sub_execution_of_a_run_is_none_that_an_item_names(of_run: dict[str, Any], found: str | None) -> None:
    """A node passes on the items of its sub-workflow, and these may name what that has started."""
    item = {"json": {}, "metadata": {"subExecution": {"executionId": "9", "workflowId": "w"}}}
    node = {"data": {"main": [[item]]}, "metadata": of_run}

    assert sub_execution_id(execution({"resultData": {"runData": {"Start": [node]}}})) == found


@pytest.mark.parametrize(
    "data",
    [
        {"executionData": {"nodeExecutionStack": 5}, "resultData": {"runData": 5}},
        {"executionData": {"nodeExecutionStack": {"0": 1}}, "resultData": {"runData": [1]}},
        {"executionData": {"nodeExecutionStack": [None, {"data": {"main": [5]}}]}},
        {"resultData": {"runData": {"W": [{"data": {"main": [[5, {"json": 5}]]}}], "V": 5, "U": [5]}}},
        {"resultData": {"lastNodeExecuted": "W", "runData": {"W": [{"data": {"main": [5]}}]}, "error": 5}},
        {"resultData": 5},
    ],
)
def test_data_of_any_shape(data: dict[str, Any]) -> None:
    one = execution(data)
    assert list(starting_items(one)) == []
    assert last_output(one) in (None, [])
    assert output_of(one, "V") in (None, [])
    assert files_of(one, "W") == files_of(one, "V") == []
    assert {node.seconds for node in nodes_of(one)} <= {0}
    assert failure_of(one).message is None


@pytest.mark.parametrize(
    ("result", "failure"),
    [
        ({"error": {"node": {"name": "A"}, "message": "m"}, "lastNodeExecuted": "B"}, Failure("A", "m")),
        ({"error": {"message": "m", "description": "m"}, "lastNodeExecuted": "B"}, Failure("B", "m")),
        ({"error": {"message": "m", "description": "d"}}, Failure(None, "m (d)")),
        ({"error": {"description": "d"}}, Failure(None, None)),
        (
            {
                "runData": {
                    "A": [{"executionStatus": "error"}, {"executionStatus": "success"}],
                    "B": [{"executionStatus": "success"}, {"executionStatus": "error"}],
                },
                "lastNodeExecuted": "C",
            },
            Failure("B", None),
        ),
        (
            {
                "runData": {"went on": [{"executionStatus": "error"}], "ended": [{"executionStatus": "error"}]},
                "error": {"message": "m"},
                "lastNodeExecuted": "ended",
            },
            Failure("ended", "m"),
        ),
    ],
)
def test_the_failing_node_and_its_message(result: dict[str, Any], failure: Failure) -> None:
    assert failure_of(execution({"resultData": result})) == failure


def test_the_output_has_the_items_of_all_outputs_of_the_last_node_in_its_last_run() -> None:
    def run(n: int) -> dict[str, Any]:
        return {"data": {"main": [[{"json": {"n": n}}, {"json": {"n": n + 1}}, 5], [{"json": {"n": -1}}]]}}

    data = {"resultData": {"lastNodeExecuted": "B", "runData": {"A": [{}], "B": [run(1), run(5)]}}}
    assert last_output(execution(data)) == [{"n": 5}, {"n": 6}, {"n": -1}]


def test_the_output_of_a_node_that_used_only_its_second_output() -> None:
    for first in ([], None):
        data = {
            "resultData": {"lastNodeExecuted": "If", "runData": {"If": [{"data": {"main": [first, [{"json": 1}]]}}]}}
        }
        one = execution(data)
        assert (last_output(one), nodes_of(one)[0].items) == ([1], 1)


def test_the_output_of_a_named_node() -> None:
    runs = {"A": [{"data": {"main": [[{"json": {"n": 1}}]]}}], "B": [{"data": {"main": [[{"json": {"n": 2}}]]}}]}
    one = execution({"resultData": {"lastNodeExecuted": "B", "runData": runs}})
    assert [output_of(one, name) for name in ("A", "B", "C", "")] == [[{"n": 1}], [{"n": 2}], None, None]


def test_files_among_the_items() -> None:
    pdf = {"data": "filesystem-v2", "fileName": "a.pdf", "mimeType": "application/pdf", "fileSize": "12.3 kB"}
    items = [{"json": {}}, {"json": {}, "binary": {"report": pdf, "odd": 5}}, {"json": {}, "binary": 5}]
    one = execution({"resultData": {"runData": {"A": [{"data": {"main": [items]}}]}}})
    assert files_of(one, "A") == [
        OutputFile(2, "report", "a.pdf", "application/pdf", "12.3 kB"),
        OutputFile(2, "odd", None, None, None),
    ]


def test_what_the_nodes_did_in_the_order_in_which_they_began() -> None:
    def ran(start: Any, milliseconds: Any, *outputs: int, **more: Any) -> dict[str, Any]:
        main = [[{"json": {}}] * count for count in outputs]
        return {"startTime": start, "executionTime": milliseconds, "data": {"main": main}, **more}

    failed = {"executionStatus": "error", "error": {"message": "It failed"}}
    runs = {
        "Last": [ran(30, 1, **failed)],
        "Loop": [ran(20, 250, 1, 2, executionStatus="error"), ran(25, 500, 0, 3, executionStatus="success")],
        "First": [ran(10, None, 7, executionStatus="success")],
    }
    assert nodes_of(execution({"resultData": {"runData": runs}})) == [
        NodeRun("First", "success", 0.0, 7, None),
        NodeRun("Loop", "success", 0.75, 6, None),
        NodeRun("Last", "error", 0.001, 0, "It failed"),
    ]


def test_the_starting_items_are_those_of_nodes_to_run_and_of_each_nodes_first_run() -> None:
    def ran(*names: str) -> dict[str, Any]:
        return {"data": {"main": [[{"json": {"of": name}} for name in names], [{"json": {"of": "other output"}}]]}}

    data = {
        "executionData": {"nodeExecutionStack": [ran("stack"), ran("second")]},
        "resultData": {"runData": {"A": [ran("A", "A2"), ran("later")], "B": [ran("B")]}},
    }
    first_runs = [["stack"], ["second"], ["A", "A2"], ["B"]]
    assert [item["of"] for item in starting_items(execution(data))] == [
        name for names in first_runs for name in (*names, "other output")
    ]


@pytest.mark.parametrize("is_too_large", [False, True])
def test_data_is_read_even_if_it_is_larger_than_the_service_returns_by_default(
    client: Client, server: requests_mock.Mocker, is_too_large: bool
) -> None:
    url = f"{ROOT}/executions/7?includeData=true"
    shown = {"id": "7", "status": "success", "data": {"of": "any size"}}
    hidden = {**shown, "data": None, "dataTooLargeToDisplay": True}
    server.get(url, json=hidden if is_too_large else shown)
    server.get(f"{url}&ignoreDataSizeLimit=true", json=shown)
    assert with_data(client, "7").data == {"of": "any size"}
    assert len(server.request_history) == 1 + is_too_large
