"""The guide from HttpOperator and HttpSensor: what its two DAGs do, and what it says about them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing import run_task
from scripts.dag_runner import load_dag
from tests.runs.workflows import DONE, FAIL, WITH_ID, held, put, started_with, statuses, webhook

FUNCTIONS = Path(__file__).parent / "functions"
DAY = datetime(2026, 1, 3, 2, tzinfo=UTC)
ANSWERS_WITH_ID = webhook("sync-orders", options={"responseData": WITH_ID})

pytestmark = pytest.mark.usefixtures("virtual_time")


@pytest.fixture
def before(simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The DAG with the operators of the HTTP provider."""
    extra = {"X-N8N-API-KEY": simulator.api_key}
    connection = {"conn_type": "http", "host": simulator.base_url, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_N8N_HTTP", json.dumps(connection))
    return load_dag(FUNCTIONS / "http_before_dag.py")


@pytest.fixture
def after(simulator: ServiceSimulator) -> Any:
    """The DAG with this provider."""
    return load_dag(FUNCTIONS / "http_after_dag.py")


def test_both_run_the_workflow_for_the_day_and_wait(simulator: ServiceSimulator, before: Any, after: Any) -> None:
    workflow = put(simulator, ANSWERS_WITH_ID, DONE, name="Sync orders")

    started = run_task(before.get_task("start"), logical_date=DAY).return_value
    waited = run_task(before.get_task("wait"), upstream={"start": started})
    result = run_task(after.get_task("sync"), logical_date=DAY).return_value

    assert waited.return_value is None
    assert result["status"] == "success"
    assert [str(execution.id) for execution in held(simulator, workflow)] == [started, result["execution_id"]]
    assert [started_with(execution)["body"] for execution in held(simulator, workflow)] == [{"day": "2026-01-03"}] * 2


def test_a_lost_answer_runs_the_workflow_twice_before_and_once_after(
    simulator: ServiceSimulator, before: Any, after: Any
) -> None:
    workflow = put(simulator, ANSWERS_WITH_ID, DONE, name="Sync orders")
    simulator.inject("drop", path="/webhook/", after_processing=True, times=1)
    run_task(before.get_task("start"), attempts=2)
    assert len(held(simulator, workflow)) == 2

    simulator.inject("drop", path="/webhook/", after_processing=True, times=1)
    run_task(after.get_task("sync"), attempts=2)
    assert len(held(simulator, workflow)) == 3


def test_a_retry_starts_a_failed_workflow_again_only_after(
    simulator: ServiceSimulator, before: Any, after: Any
) -> None:
    workflow = put(simulator, ANSWERS_WITH_ID, FAIL, name="Sync orders")
    started = run_task(before.get_task("start")).return_value

    with pytest.raises(RuntimeError, match="ended with the status error"):
        run_task(before.get_task("wait"), upstream={"start": started}, attempts=3)
    assert statuses(simulator, workflow) == ["error"]

    with pytest.raises(Exception, match=r"Fail.*It failed"):
        run_task(after.get_task("sync"), attempts=3)
    assert statuses(simulator, workflow) == ["error"] * 4


def test_n8n_stores_the_key_with_the_execution_only_before(
    simulator: ServiceSimulator, before: Any, after: Any
) -> None:
    workflow = put(simulator, ANSWERS_WITH_ID, DONE, name="Sync orders")

    run_task(before.get_task("start"))
    run_task(after.get_task("sync"))

    headers: list[dict[str, str]] = [started_with(execution)["headers"] for execution in held(simulator, workflow)]
    assert [simulator.api_key in sent.values() for sent in headers] == [True, False]


def test_a_restart_of_n8n_fails_the_wait_only_before(simulator: ServiceSimulator, before: Any, after: Any) -> None:
    put(simulator, ANSWERS_WITH_ID, DONE, name="Sync orders")
    started = run_task(before.get_task("start")).return_value

    simulator.inject("status", status=503, path="/executions/", times=1)
    with pytest.raises(Exception, match="503"):
        run_task(before.get_task("wait"), upstream={"start": started})

    simulator.inject("status", status=503, path="/executions/", times=5)
    assert run_task(after.get_task("sync")).return_value["status"] == "success"
