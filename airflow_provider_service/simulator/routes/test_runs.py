"""Evaluation test runs: ``/workflows/{id}/test-runs``."""

from __future__ import annotations

from functools import partial
from typing import Any

from airflow_provider_service.simulator.gateway import Call, operation
from airflow_provider_service.simulator.paging import page
from airflow_provider_service.simulator.stores.test_runs import STATUSES, TestRun
from airflow_provider_service.simulator.validation import PAGING, Param

_RUNS = "/workflows/{id}/test-runs"
_RUN = "/workflows/{id}/test-runs/{runId}"
_LIST_QUERY = (*PAGING, Param("status", "enum", enum=STATUSES))
_operation = partial(operation, family="strict")


def _run(call: Call) -> TestRun:
    return call.state.test_runs.get(call.path["id"], call.path["runId"])


@_operation("list_test_runs", "GET", _RUNS, scope="testRun:list", query=_LIST_QUERY)
def list_test_runs(call: Call) -> Any:
    now = call.state.clock.now()
    runs = call.state.test_runs.of_workflow(call.path["id"], call.query.get("status"))
    return page(call, runs, over="refuse", shape=lambda run: run.describe(now))


@_operation("create_test_run", "POST", _RUNS, scope="testRun:create", status=201)
def create_test_run(call: Call) -> Any:
    run = call.state.test_runs.start(call.path["id"]).describe(call.state.clock.now())
    return {"id": run["id"], "status": "new", "createdAt": run["createdAt"]}


@_operation("get_test_run", "GET", _RUN, scope="testRun:read")
def get_test_run(call: Call) -> Any:
    return _run(call).describe(call.state.clock.now())


@_operation("cancel_test_run", "POST", f"{_RUN}/cancel", scope="testRun:cancel", status=202)
def cancel_test_run(call: Call) -> Any:
    run = call.state.test_runs.cancel(call.path["id"], call.path["runId"])
    return {"id": run.id, "status": "cancelled"}


@_operation("list_test_cases", "GET", f"{_RUN}/test-cases", scope="testRun:read", query=PAGING)
def list_test_cases(call: Call) -> Any:
    return page(call, _run(call).cases(call.state.clock.now()), over="refuse")
