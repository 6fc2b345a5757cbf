"""Whatever makes Airflow run a task, or hold it back: one execution each, and no more at once than allowed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client.models import Execution
from airflow_provider_service.simulator._samples import WITH_ID, wait, webhook
from tests.polling import wait_until

from . import workflows
from .airflow_api import AirflowApi
from .conftest import IS_SHORT
from .deployment import Deployment
from .figures import FIGURES
from .simulated import SimulatedService
from .waiting import Waits

SECONDS = 1200
DAYS = [f"2026-01-{day:02}" for day in range(1, 15)]
PARTS = 10 if IS_SHORT else 100
LIMITED_RUNS = 8
LIMITS = {"stack_pool": 3, "stack_tasks": 2}
ASSET_RUNS = 3
ENDS = ("success", "failed")


def taking(seconds: float) -> list[dict[str, Any]]:
    return [webhook(workflows.path(), options={"responseData": WITH_ID}), wait(seconds)]


def begin(api: AirflowApi, service: SimulatedService, dag_id: str, nodes: list[dict[str, Any]], **conf: Any) -> Waits:
    """Start a run of a DAG, with a workflow of its own."""
    workflow_id = service.create_workflow(f"For {dag_id}", nodes)
    api.unpause(dag_id)
    return Waits(dag_id, api.trigger(dag_id, {"workflow_id": workflow_id, **conf}), workflow_id)


@pytest.fixture(scope="module", autouse=True)
def backfill(deployment: Deployment, service: SimulatedService) -> Waits:
    """A backfill, whose runs take long because they follow each other, beside the other tests."""
    workflow_id = service.create_workflow("Backfilled", taking(1))
    deployment.api.unpause("stack_backfill")
    request = {
        "dag_id": "stack_backfill",
        "from_date": f"{DAYS[0]}T00:00:00Z",
        "to_date": f"{DAYS[-1]}T00:00:00Z",
        "max_active_runs": 3,
        "reprocess_behavior": "failed",  # Airflow demands it of tasks that depend on the past
        "dag_run_conf": {"workflow_id": workflow_id},
    }
    made = deployment.api.call("POST", "/backfills", request)
    return Waits("stack_backfill", str(made["id"]), workflow_id)


def test_a_teardown_stops_what_its_setup_started(
    api: AirflowApi, service: SimulatedService, client: ServiceClient
) -> None:
    runs = {state: begin(api, service, "stack_teardown", workflows.endless(), end=state) for state in ENDS}

    for state, run in runs.items():
        assert api.wait_for_run(run.dag_id, run.run_id, seconds=SECONDS) == state
        assert api.task_states(run.dag_id, run.run_id)["stop"] == {"success"}
        assert [one.status for one in workflows.executions(client, run.workflow_id)] == ["canceled"]
    FIGURES.add("executions that a teardown stopped, after success and failure", len(runs))


def test_no_more_executions_at_once_than_allowed(
    api: AirflowApi, service: SimulatedService, client: ServiceClient
) -> None:
    api.set_pool({"name": "stack_pool", "slots": LIMITS["stack_pool"], "include_deferred": True})
    runs = [begin(api, service, dag_id, taking(3)) for dag_id in LIMITS]

    for run in runs:
        assert api.wait_for_run(run.dag_id, run.run_id, seconds=SECONDS) == "success"
        done = workflows.executions(client, run.workflow_id)
        assert Counter(workflows.payload(one)["part"] for one in done) == Counter(range(LIMITED_RUNS))
        assert 1 <= most_at_once(done) <= LIMITS[run.dag_id]
        FIGURES.add("executions of tasks whose number is limited", len(done))


def test_attempts_with_exponential_backoff(api: AirflowApi, service: SimulatedService, client: ServiceClient) -> None:
    run = begin(api, service, "stack_backoff", workflows.endless())
    statuses = ["error", "crashed", "success"]
    for attempt, status in enumerate(statuses, start=1):
        wait_until(
            lambda attempt=attempt: len(workflows.executions(client, run.workflow_id)) == attempt,
            seconds=SECONDS,
            what=f"execution {attempt}",
            interval=1,
        )
        service.finish(workflows.executions(client, run.workflow_id)[-1].id, status)

    assert api.wait_for_run(run.dag_id, run.run_id, seconds=SECONDS) == "success"
    assert [one.tries for one in api.tasks(run.dag_id, run.run_id)] == [len(statuses)]
    assert [one.status for one in workflows.executions(client, run.workflow_id)] == statuses
    FIGURES.add("executions of as many attempts with backoff", len(statuses))


def test_runs_that_an_asset_triggers(api: AirflowApi, service: SimulatedService, client: ServiceClient) -> None:
    consumed = service.create_workflow("Consumes", taking(1))
    api.unpause("stack_consumes")
    for number in range(1, ASSET_RUNS + 1):  # the events of runs that end together may start one run
        run = begin(api, service, "stack_produces", taking(1))
        assert api.wait_for_run(run.dag_id, run.run_id, seconds=SECONDS) == "success"
        assert len(workflows.executions(client, run.workflow_id)) == 1
        wait_until(
            lambda number=number: [one["state"] for one in api.runs("stack_consumes")] == ["success"] * number,
            seconds=SECONDS,
            what=f"run {number} that the asset triggers",
            interval=1,
        )

    done = workflows.executions(client, consumed)
    assert [one.status for one in done] == ["success"] * ASSET_RUNS
    run_ids = {one["dag_run_id"] for one in api.runs("stack_consumes")}
    assert {workflows.payload(one)["run"] for one in done} == run_ids
    FIGURES.add("executions of runs that an asset triggered, one each", len(done))


def test_a_backfill_whose_runs_depend_on_the_past(api: AirflowApi, client: ServiceClient, backfill: Waits) -> None:
    def is_over() -> bool:
        return api.call("GET", f"/backfills/{backfill.run_id}")["completed_at"] is not None

    wait_until(is_over, seconds=SECONDS, what="the end of the backfill", interval=2)
    runs = [one for one in api.runs(backfill.dag_id) if one["run_type"] == "backfill"]
    assert [one["state"] for one in runs] == ["success"] * len(DAYS)
    done = workflows.executions(client, backfill.workflow_id)
    assert {one.status for one in done} == {"success"}
    in_order = [(workflows.payload(one)["day"], workflows.payload(one)["task"]) for one in done]
    assert in_order == [(day, task) for day in DAYS for task in ("first", "second")]
    assert most_at_once(done) == 1
    FIGURES.add("executions of two tasks in a backfill of 14 days, one after the other", len(done))


def test_a_group_that_is_mapped(api: AirflowApi, service: SimulatedService, client: ServiceClient) -> None:
    """After the others, because its tasks would stand before theirs in the queue of the worker."""
    group = begin(api, service, "stack_group", taking(2), parts=PARTS)

    assert api.wait_for_run(group.dag_id, group.run_id, seconds=SECONDS) == "success"
    done = workflows.executions(client, group.workflow_id)
    assert Counter(workflows.payload(one)["part"] for one in done) == Counter(range(PARTS))
    assert {one.status for one in done} == {"success"}
    FIGURES.add("executions of mapped groups, one each", len(done))


def most_at_once(executions: Sequence[Execution]) -> int:
    """How many executions ran at the same time at most; one that begins as another ends is not beside it."""
    changes = sorted([(one.stopped_at, -1) for one in executions] + [(one.started_at, 1) for one in executions])
    return max(sum(change for _, change in changes[:length]) for length in range(1, len(changes) + 1))
