"""Calls of the MCP endpoint whose answer never comes: they are given up, and nothing is started twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing._passing_time import PassingTime

from .conftest import MakeRun, connect
from .task_run import StateStore
from .through_mcp import START, calls, put
from .workflows import CHAT, DONE, FORM, MANUAL, SCHEDULE, statuses, wait, webhook


@pytest.fixture
def impatient(simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that soon takes an answer for lost."""
    connect(monkeypatch, simulator, extra={"mcp_api_key": simulator.mcp_api_key, "retry_deadline": 0, "timeout": 2})


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("trigger", "arguments"),
    [(SCHEDULE, {}), (CHAT, {"payload": "Hello"}), (MANUAL, {"mode": "manual"})],
    ids=["schedule", "chat", "manual"],
)
def test_an_answer_that_never_comes(
    make_run: MakeRun, simulator: ServiceSimulator, trigger: dict[str, Any], arguments: dict[str, Any]
) -> None:
    workflow_id = put(simulator, trigger, DONE, active=trigger is not MANUAL)
    simulator.inject("latency", seconds=600, **START, after_processing=True)
    run = make_run(workflow_id=workflow_id, start="mcp", timeout=600, **arguments)
    lost = "no answer within 2 s; the call may have run the workflow: executions 1 do not show"
    with pytest.raises(AirflowFailException, match=lost) as failure:
        run.whole_attempt(1)
    assert f"{simulator.base_url}/workflow/{workflow_id}/executions/1" in str(failure.value)
    assert (statuses(simulator, workflow_id), calls(simulator)) == (["success"], 1)


@pytest.mark.usefixtures("impatient")
def test_a_call_that_does_not_arrive_in_time(make_run: MakeRun, simulator: ServiceSimulator, tmp_path: Path) -> None:
    workflow_id = put(simulator, SCHEDULE, DONE)
    simulator.inject("latency", seconds=600, **START)
    store = StateStore(tmp_path / "state.json")
    run = make_run(workflow_id=workflow_id, timeout=600, store=store)
    with pytest.raises(AirflowFailException, match="may have run the workflow: it may still be on its way"):
        run.whole_attempt(1)
    assert store.get("service_execution")["attempt"] == 1  # the note of the call stays
    assert (statuses(simulator, workflow_id), calls(simulator)) == ([], 1)


@pytest.mark.usefixtures("impatient")
def test_an_answer_that_never_comes_does_not_matter_where_the_key_travels(
    make_run: MakeRun, simulator: ServiceSimulator
) -> None:
    workflow_id = put(simulator, FORM, DONE)
    simulator.inject("latency", seconds=600, **START, after_processing=True)
    done = make_run(workflow_id=workflow_id, timeout=600).whole_attempt(1)
    assert (done["status"], calls(simulator)) == ("success", 1)


def test_a_run_that_waits_long_for_its_turn(
    task_run: MakeRun, monkeypatch: pytest.MonkeyPatch, task_log: None, virtual_time: PassingTime
) -> None:
    extra = {"retry_deadline": 0, "timeout": 4}
    with ServiceSimulator(concurrency_limit=1) as limited:
        virtual_time.include(limited)
        connect(monkeypatch, limited, extra={"mcp_api_key": limited.mcp_api_key, **extra})
        put(limited, webhook("busy"), wait(7), DONE, name="Busy")
        task_run(workflow_name="Busy", start="webhook").attempt(1, wait_for_completion=False)
        workflow_id = put(limited, SCHEDULE, DONE)
        assert task_run(workflow_id=workflow_id, timeout=600).attempt(1)["status"] == "success"
        assert (statuses(limited, workflow_id), calls(limited)) == (["success"], 1)
