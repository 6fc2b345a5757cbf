"""Executions that the service cannot read by their ids, or not with their data, while its lists show their state."""

from __future__ import annotations

import json

import pytest

from airflow_provider_service.client._clock import clock
from airflow_provider_service.simulator import ServiceSimulator

from .driving import LISTED_MODES, MODES, SENSOR_MODES, Meanwhile, Mode, run_to_end
from .polls import CONNECTION, started

BY_ID = "/executions/[0-9]+$"
MISLEADING = "malformed argument"


@pytest.fixture(params=["", "includeData=true"], ids=["by id", "with its data"])
def unreadable(request: pytest.FixtureRequest, simulator: ServiceSimulator) -> str:
    """The service fails for good on each execution that is read by its id, or only on its data."""
    simulator.inject("status", times=None, method="GET", path=BY_ID, query=request.param, status=500)
    return str(request.param)


@pytest.mark.parametrize("mode", [*MODES, *LISTED_MODES], ids=lambda mode: mode.name)
@pytest.mark.parametrize("status", ["success", "error"])
def test_the_state_is_taken_from_lists(
    mode: Mode,
    status: str,
    simulator: ServiceSimulator,
    workflow_id: str,
    unreadable: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    target = workflow_id if mode.starts else simulator.start_execution(workflow_id)
    beside = started(simulator, workflow_id, mode.neighbours)

    def end(execution_id: str) -> None:
        clock().sleep(3.0)  # longer than any fault is tolerated
        simulator.finish_execution(target if not mode.starts else execution_id, status)

    with Meanwhile(simulator, end) as meanwhile:
        ending = run_to_end(lambda: mode.task(target, interval=0.5, fault_tolerance=0.3, timeout=600.0), beside=beside)

    execution_id = meanwhile.execution_id if mode.starts else target
    if status == "success":
        assert (ending.kind, ending.value["status"]) == ("returned", "success"), ending
        assert not mode.starts or ending.value["nodes"] is None
    else:
        assert f"execution {execution_id} ended with status 'error'" in ending.message
    if not unreadable and not mode.neighbours:
        assert f"The state of execution {execution_id} is taken from lists: GET" in caplog.text
    if mode.starts:
        assert f"The nodes of execution {execution_id} cannot be shown: GET /executions/{execution_id}" in caplog.text
    assert MISLEADING not in caplog.text + ending.message
    # Once in the worker and once in the triggerer; a task that is rescheduled begins anew each time.
    assert mode.name == "reschedule" or caplog.text.count(f"execution {execution_id} is taken from lists") <= 2


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_output_that_was_asked_for_and_cannot_be_read_fails_the_task_by_name(
    mode: Mode, simulator: ServiceSimulator, workflow_id: str, unreadable: str
) -> None:
    target = workflow_id if mode.starts else simulator.start_execution(workflow_id, status="success")
    if mode.starts:
        with Meanwhile(simulator, simulator.finish_execution):
            ending = run_to_end(lambda: mode.task(target, interval=0.05, return_output="last_node"))
    else:
        ending = run_to_end(lambda: mode.task(target, interval=0.05, return_output="last_node"))

    assert ending.kind == "ServiceServerError", ending
    assert "has ended, and only its output cannot be read" in ending.message
    assert MISLEADING not in ending.message


@pytest.mark.parametrize("mode", SENSOR_MODES, ids=lambda mode: mode.name)
def test_what_no_list_shows_either_is_tolerated_for_a_while(
    mode: Mode, simulator: ServiceSimulator, workflow_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = simulator.start_execution(workflow_id)
    simulator.inject("status", times=None, path=BY_ID, status=500)
    key = simulator.create_key(["execution:read"])
    monkeypatch.setenv(CONNECTION, json.dumps({**json.loads(simulator.connection_json()), "password": key}))
    begin = clock().now()

    ending = run_to_end(lambda: mode.task(one, interval=1.0, fault_tolerance=30.0, timeout=600.0))

    assert ending.kind == "ServiceWaitError", ending
    assert "reading it failed for more than 30 s (fault_tolerance), last: the server failed" in ending.message
    assert MISLEADING not in ending.message
    assert 30 <= clock().now() - begin < 100
