"""A DAG run that was cleared after its end, and deployments of Airflow that share the service."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_0_PLUS

from airflow_provider_service.operators.executions import ServiceRetryExecutionOperator
from airflow_provider_service.simulator import ServiceSimulator

from .conftest import MakeRun
from .cutting import cut_off, end_each
from .task_run import StateStore
from .workflows import DONE, calls, held, put, statuses, wait, webhook

BASE_URL = "AIRFLOW__API__BASE_URL" if AIRFLOW_V_3_0_PLUS else "AIRFLOW__WEBSERVER__BASE_URL"
DEPLOYMENT = "AIRFLOW__SERVICE__DEPLOYMENT"
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)

# What a DAG run shows to its tasks, beside its begin and how often it was cleared.
DAG_RUNS: dict[str, dict[str, Any]] = {"2.11": {"id": 7}, "3.3": {"run_after": NOON}}


@pytest.fixture(params=DAG_RUNS.values(), ids=DAG_RUNS)
def of_dag_run(request: pytest.FixtureRequest) -> dict[str, Any]:
    return dict(request.param)


def test_what_still_runs_is_resumed(
    make_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None, of_dag_run: dict[str, Any]
) -> None:
    workflow_id = put(simulator, webhook(), wait(60), DONE)
    run = make_run(workflow_id=workflow_id, store=store, of_dag_run=of_dag_run)
    cut_off(run)
    run.clear(tried=1)
    end_each(run, simulator, "success")
    assert run.whole_attempt(2)["execution_id"] == "1"
    assert (statuses(simulator, workflow_id), calls(simulator)) == (["success"], 1)


def test_what_began_hours_ago_and_sleeps_is_resumed(
    task_run: MakeRun, simulator: ServiceSimulator, of_dag_run: dict[str, Any]
) -> None:
    workflow_id = put(simulator, webhook(), wait(100_000), DONE)
    run = task_run(workflow_id=workflow_id, of_dag_run=of_dag_run, wait_for_completion=False)
    assert run.attempt(1)["execution_id"] == "1"
    [execution] = held(simulator, workflow_id)
    execution.started_at = datetime.now(UTC) - timedelta(hours=5)
    simulator.clock.advance(1)  # it runs for a moment before it sleeps
    assert statuses(simulator, workflow_id) == ["waiting"]
    run.clear(tried=1)
    assert run.attempt(2)["execution_id"] == "1"
    run.clear(tried=2)
    assert run.attempt(3)["execution_id"] == "1"
    assert calls(simulator) == 1


def test_what_has_ended_is_followed_by_a_new_one(
    task_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None, of_dag_run: dict[str, Any]
) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    run = task_run(workflow_id=workflow_id, store=store, of_dag_run=of_dag_run)
    ids = [run.attempt(1)["execution_id"]]
    run.clear(tried=1)
    ids += [run.attempt(2)["execution_id"], run.attempt(3)["execution_id"]]
    assert ids == ["1", "2", "2"]


@pytest.mark.parametrize("store", ["task_state_store"], indirect=True)
def test_lowered_retries_do_not_repeat_a_run_that_has_succeeded(
    task_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None
) -> None:
    run = task_run(workflow_id=put(simulator, webhook(), DONE), store=store)
    cut_off(run)
    simulator.clock.advance(1)
    run.retries = 1  # as if the task had been cleared after its first attempt
    assert [run.attempt(number)["execution_id"] for number in (2, 3)] == ["1", "1"]
    run.max_tries = 3 + run.retries
    assert [run.attempt(number)["execution_id"] for number in (4, 5)] == ["2", "2"]


def test_a_retry_that_still_runs_is_resumed(
    make_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None, of_dag_run: dict[str, Any]
) -> None:
    workflow_id = put(simulator, webhook(), wait(60), DONE)
    original = simulator.start_execution(workflow_id, status="error")
    run = make_run(ServiceRetryExecutionOperator, execution_id=original, store=store, of_dag_run=of_dag_run)
    cut_off(run)
    end_each(run, simulator, "success")
    held(simulator, workflow_id)[-1].started_at = datetime.now(UTC) - timedelta(hours=5)
    run.clear(tried=1)
    assert run.whole_attempt(2)["execution_id"] == "2"
    assert statuses(simulator, workflow_id) == ["error", "success"]


# ---------------------------------------------------------------- several deployments of Airflow


@pytest.mark.slow
@pytest.mark.parametrize("setting", [BASE_URL, DEPLOYMENT])
def test_deployments_do_not_resume_each_others_executions(
    monkeypatch: pytest.MonkeyPatch,
    task_run: MakeRun,
    simulator: ServiceSimulator,
    of_dag_run: dict[str, Any],
    setting: str,
) -> None:
    workflow_id = put(simulator, webhook(), wait(60), DONE)
    runs = {}
    for name in ("blue", "green"):
        monkeypatch.setenv(setting, name)
        runs[name] = task_run(workflow_id=workflow_id, of_dag_run=of_dag_run, wait_for_completion=False)
        cut_off(runs[name])
    found = {}
    for attempt in (2, 3, 4):
        for name, run in runs.items():
            monkeypatch.setenv(setting, name)
            found[attempt, name] = run.attempt(attempt)["execution_id"]
            run.clear(tried=attempt)
    assert set(found.values()) == {"1", "2"}
    assert {found[attempt, "blue"] for attempt in (2, 3, 4)} == {"1"}
    assert calls(simulator) == 2


def test_deployments_that_look_alike_are_distinguished_until_a_dag_run_is_cleared(
    task_run: MakeRun, simulator: ServiceSimulator, of_dag_run: dict[str, Any]
) -> None:
    workflow_id = put(simulator, webhook(), wait(60), DONE)
    runs = [task_run(workflow_id=workflow_id, of_dag_run=of_dag_run, wait_for_completion=False) for _ in range(2)]
    runs[1].began = runs[0].began + timedelta(microseconds=1)
    cut_off(runs[0])
    assert [run.attempt(2)["execution_id"] for run in runs] == ["1", "2"]


def test_deployments_with_dag_runs_of_other_numbers_or_dates_are_distinguished(
    task_run: MakeRun, simulator: ServiceSimulator
) -> None:
    workflow_id = put(simulator, webhook(), wait(60), DONE)
    numbers: list[dict[str, Any]] = [{"id": 7}, {"id": 8}]
    dates: list[dict[str, Any]] = [{"run_after": NOON}, {"run_after": NOON + timedelta(1)}]
    ids = []
    for dag_run in dates if AIRFLOW_V_3_0_PLUS else numbers:
        run = task_run(workflow_id=workflow_id, of_dag_run=dag_run, wait_for_completion=False)
        run.clear(tried=0)
        ids.append(run.attempt(2)["execution_id"])
    assert ids == ["1", "2"]


# ---------------------------------------------------------------- settings that change between attempts


@pytest.mark.parametrize("setting", [BASE_URL, DEPLOYMENT])
def test_a_changed_setting_doubles_no_run(
    monkeypatch: pytest.MonkeyPatch, task_run: MakeRun, simulator: ServiceSimulator, setting: str
) -> None:
    workflow_id = put(simulator, webhook(), wait(0.5), DONE)
    run = task_run(workflow_id=workflow_id)
    cut_off(run)
    monkeypatch.setenv(setting, "http://new.example")
    assert run.attempt(2)["execution_id"] == "1"
    assert calls(simulator) == 1


def test_a_changed_setting_and_a_clear_are_reported(
    monkeypatch: pytest.MonkeyPatch,
    task_run: MakeRun,
    simulator: ServiceSimulator,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    for number, kept in enumerate((None, StateStore(tmp_path / "state.json"))):
        workflow_id = put(simulator, webhook(f"w{number}"), wait(60), DONE)
        run = task_run(workflow_id=workflow_id, store=kept, map_index=number, wait_for_completion=False)
        first = run.attempt(1)["execution_id"]
        run.clear(tried=1)
        monkeypatch.setenv(BASE_URL, f"http://new{number}.example")
        # What Airflow keeps of the task run does not depend on settings.
        assert (run.attempt(2)["execution_id"] == first) == (kept is not None)
        assert f"Execution {first} has not ended and belongs to a task of the same" in caplog.text or kept


# ---------------------------------------------------------------- clocks


@pytest.mark.parametrize("hours", [-2, 2])
def test_a_service_whose_clock_is_hours_off(
    make_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None, hours: int
) -> None:
    simulator.clock.shift(hours * 3600)
    workflow_id = put(simulator, webhook(mode="lastNode"), wait(1.5), DONE)
    run = make_run(workflow_id=workflow_id, store=store)
    cut_off(run)
    assert run.whole_attempt(2)["execution_id"] == "1"
    assert (statuses(simulator, workflow_id), calls(simulator)) == (["success"], 1)


@pytest.mark.parametrize("hours", [-2, 2])
def test_a_retry_by_a_service_whose_clock_is_hours_off(
    task_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None, hours: int
) -> None:
    simulator.clock.shift(hours * 3600)
    workflow_id = put(simulator, webhook(), wait(0.5), DONE)
    original = simulator.start_execution(workflow_id, status="error")
    # Another's retry, an hour before the DAG run.
    other = simulator.start_execution(workflow_id, status="success")
    execution = held(simulator, workflow_id)[-1]
    execution.retry_of = int(original)
    execution.started_at = simulator.clock.now() - timedelta(hours=1)
    run = task_run(ServiceRetryExecutionOperator, execution_id=original, store=store)
    cut_off(run)
    assert run.attempt(2)["execution_id"] == "3" != other
    assert statuses(simulator, workflow_id) == ["error", "success", "success"]
