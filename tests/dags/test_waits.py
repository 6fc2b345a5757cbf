"""Sensors run by Airflow itself: deferral, rescheduling, skipping and retries are its own here."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from airflow_provider_service.simulator import ServiceSimulator
from scripts.dag_runner import run_dag
from tests.polling import wait_until

WAITS = Path(__file__).parent / "waits" / "waits.py"
MODES = ("poke", "reschedule", "deferrable")


@pytest.fixture
def workflow_id(simulator: ServiceSimulator) -> str:
    return str(simulator.create_webhook_workflow(path="w")["id"])


@pytest.mark.slow
def test_a_failed_poll_is_tried_again(simulator: ServiceSimulator, workflow_id: str) -> None:
    executions = {mode: simulator.start_execution(workflow_id) for mode in MODES}
    for one in executions.values():
        simulator.inject("status", times=2, path=f"/executions/{one}$", status=401)

    with ThreadPoolExecutor(1) as thread:
        thread.submit(finish_once_seen, simulator, list(executions.values()))
        state, runs = run_dag(WAITS, executions)

    assert state == "success", runs
    assert {(one.task_id, one.state, one.tries) for one in runs} == {
        (task, "success", 2) for mode in MODES for task in (mode, f"{mode}_soft")
    }


@pytest.mark.slow
def test_a_failed_poll_that_a_person_must_fix_is_not_tried_again(simulator: ServiceSimulator, workflow_id: str) -> None:
    executions = {mode: simulator.start_execution(workflow_id) for mode in MODES}
    simulator.inject("status", times=None, path="/executions/[0-9]+$", status=403)

    state, runs = run_dag(WAITS, executions)

    assert state == "failed"
    assert {(one.task_id, one.state, one.tries) for one in runs} == {
        (task, "failed", 1) for mode in MODES for task in (mode, f"{mode}_soft")
    }


def finish_once_seen(simulator: ServiceSimulator, executions: list[str]) -> None:
    """Let each execution succeed once it was seen running twice: by the worker, and by whatever waits for it."""

    def all_are_finished() -> bool:
        for one in list(executions):
            answers = [each.status for each in simulator.requests if each.path.endswith(f"/executions/{one}")]
            if answers.count(200) >= 2:
                simulator.finish_execution(one)
                executions.remove(one)
        return not executions

    wait_until(all_are_finished, seconds=300, what="two reads of each execution")


def test_a_failed_execution_is_not_tried_again(simulator: ServiceSimulator, workflow_id: str) -> None:
    executions = {mode: simulator.start_execution(workflow_id, status="error") for mode in MODES}

    state, runs = run_dag(WAITS, executions)

    assert state == "failed"
    assert {(one.task_id, one.state) for one in runs} == {
        *((mode, "failed") for mode in MODES),
        *((f"{mode}_soft", "skipped") for mode in MODES),
    }
    assert all(one.tries == 1 for one in runs if one.state == "failed")
