"""Airflow itself runs the guide's example of runs from a function, and tries it again."""

from __future__ import annotations

from pathlib import Path

from airflow_provider_service._core.runs.attempt import RunKey
from airflow_provider_service._core.runs.searching import RUN_KEY_HEADER
from airflow_provider_service.simulator import ServiceSimulator
from scripts.dag_runner import run_dag
from tests.runs.workflows import DONE, calls, held, put, started_with, statuses, webhook

DAG_FILE = Path(__file__).parent / "functions" / "hook_dag.py"


def test_a_retry_resumes_what_the_attempt_before_has_started(database: None, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), DONE, name="Sync region")
    # The key is refused while the second run is looked at: the attempt fails with both executions started.
    simulator.inject("status", status=401, path="/executions/2$", times=1)

    state, [task] = run_dag(DAG_FILE, {})

    assert (state, task.state, task.tries) == ("success", "success", 2)
    assert (statuses(simulator, workflow_id), calls(simulator)) == (["success", "success"], 2)
    started = [started_with(execution) for execution in held(simulator, workflow_id)]
    assert [one["body"]["region"] for one in started] == ["eu", "us"]
    marks = [RunKey.read(one["headers"][RUN_KEY_HEADER.lower()]) for one in started]
    # The begin of the DAG run: the keys belong to the task that runs.
    assert all(mark is not None and mark.start for mark in marks)
