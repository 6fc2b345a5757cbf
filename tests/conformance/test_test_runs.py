"""Evaluation test runs of a workflow; starting one depends on the plan."""

from __future__ import annotations

import pytest

from airflow_provider_service.client.errors import (
    ServiceConflictError,
    ServiceInvalidRequestError,
    ServiceNotFoundError,
)

from .expecting import NO_ID, refused
from .target import Target
from .workbench import Workbench

NO_RUN = "Test run not found"


@pytest.mark.covers("list_test_runs", needs=("create_workflow",))
def test_a_workflow_has_no_test_runs_at_first(service: Target, bench: Workbench) -> None:
    workflow = bench.create()
    assert list(service.client.test_runs.list(workflow.id)) == []
    assert list(service.client.test_runs.list(workflow.id, status="completed")) == []


@pytest.mark.covers("create_test_run", "get_test_run", "list_test_runs", "list_test_cases", needs=("create_workflow",))
def test_a_test_run_comes_to_its_end(service: Target, bench: Workbench) -> None:
    workflow, runs = bench.create(), service.client.test_runs
    started = runs.create(workflow.id)
    assert (started.status, set(started.to_wire())) == ("new", {"id", "status", "createdAt"})
    assert runs.get(workflow.id, started.id).status == "running"
    service.pass_time(60)

    ended = runs.get(workflow.id, started.id)
    assert (ended.status, ended.final_result) == ("completed", "success")
    assert [run.id for run in runs.list(workflow.id, status="completed")] == [started.id]
    cases = list(runs.list_cases(workflow.id, started.id))
    assert (len(cases), {case.status for case in cases}) == (ended.test_case_count, {"success"})


@pytest.mark.covers("cancel_test_run", needs=("create_workflow", "create_test_run"))
def test_a_running_test_run_is_cancelled_once(service: Target, bench: Workbench) -> None:
    workflow, runs = bench.create(), service.client.test_runs
    started = runs.create(workflow.id)
    with refused(ServiceConflictError, "A test run is already running for this workflow"):
        runs.create(workflow.id)
    assert runs.cancel(workflow.id, started.id).to_wire() == {"id": started.id, "status": "cancelled"}
    assert runs.get(workflow.id, started.id).status == "cancelled"
    with pytest.raises(ServiceConflictError):
        runs.cancel(workflow.id, started.id)


@pytest.mark.covers("get_test_run", "list_test_cases", needs=("create_workflow",))
def test_an_unknown_test_run_is_not_found(service: Target, bench: Workbench) -> None:
    workflow, runs = bench.create(), service.client.test_runs
    for operation in ("get_test_run", "list_test_cases"):
        service.differs(operation)
    for call in (runs.get, lambda *ids: list(runs.list_cases(*ids))):
        with refused(ServiceNotFoundError, NO_RUN):
            call(workflow.id, NO_ID)


@pytest.mark.covers("list_test_runs", needs=("create_workflow",))
def test_a_bad_query_is_refused(service: Target, bench: Workbench) -> None:
    workflow = bench.create()
    message = (
        "request/query/status must be equal to one of the allowed values: new, running, completed, error, cancelled"
    )
    with refused(ServiceInvalidRequestError, message, 400):
        service.client.request("GET", "/workflows/{}/test-runs", workflow.id, query={"status": "canceled"})
    with refused(ServiceInvalidRequestError, "request/query/limit must be <= 250", 400):
        service.client.request("GET", "/workflows/{}/test-runs", workflow.id, query={"limit": 251})
