"""Executions that run, end, are stopped and deleted: what each status looks like and allows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_service.client.errors import (
    ServiceApiError,
    ServiceConflictError,
    ServiceInvalidRequestError,
    ServiceNotFoundError,
    ServiceServerError,
)
from tests.polling import wait_until

from .expecting import NO_ID, refused, unique
from .target import Target
from .workbench import LONG_WAIT, Workbench, answering, done, stop_and_error, wait, webhook

UNKNOWN = 999_999_999


@pytest.mark.covers("get_execution", "list_executions")
def test_success(bench: Workbench, service: Target) -> None:
    flow = bench.publish()
    execution = bench.finished(bench.start(flow))
    assert (execution.status, execution.finished, execution.mode) == ("success", True, "webhook")
    assert execution.started_at is not None
    assert execution.stopped_at is not None
    assert execution.wait_till is None
    assert execution.workflow_id == flow.id
    assert [one.id for one in service.client.executions.list(workflow_id=flow.id)] == [execution.id]


@pytest.mark.covers("get_execution")
def test_data_is_returned_only_when_it_is_requested(bench: Workbench, service: Target) -> None:
    execution_id = bench.finished(bench.start(bench.publish())).id
    without = service.client.executions.get(execution_id)
    assert (without.data, without.workflow_data) == (None, None)
    full = service.client.executions.get(execution_id, include_data=True)
    assert full.data is not None
    assert list(full.data["resultData"]["runData"]) == ["Webhook"]
    assert full.workflow_data is not None
    assert full.workflow_data["id"] == full.workflow_id


@pytest.mark.covers("get_execution", "list_executions")
def test_error(bench: Workbench, service: Target) -> None:
    flow = bench.publish(webhook(unique()), stop_and_error())
    execution = bench.finished(bench.start(flow))
    assert (execution.status, execution.finished) == ("error", False)
    assert execution.stopped_at is not None
    assert [one.id for one in service.client.executions.list(workflow_id=flow.id, status="error")] == [execution.id]
    assert list(service.client.executions.list(workflow_id=flow.id, status="success")) == []


@pytest.mark.covers("get_execution", "list_executions")
def test_a_running_execution_is_listed_only_when_requested(bench: Workbench, service: Target) -> None:
    executions = service.client.executions
    flow = bench.publish(webhook(unique()), wait(3), done())
    execution_id = bench.start(flow)

    running = executions.get(execution_id)
    assert (running.status, running.finished, running.stopped_at) == ("running", False, None)
    assert running.started_at is not None
    assert list(executions.list(workflow_id=flow.id)) == []
    assert [one.id for one in executions.list(workflow_id=flow.id, status="running")] == [execution_id]
    data = executions.get(execution_id, include_data=True).data
    assert data is not None
    assert data["resultData"]["runData"] == {}
    service.pass_time(3)
    assert bench.finished(execution_id).status == "success"


@pytest.mark.covers("delete_execution", "get_execution")
def test_deletion(bench: Workbench, service: Target) -> None:
    executions = service.client.executions
    flow = bench.publish(webhook(unique()), wait(3))
    execution_id = bench.start(flow)
    with refused(ServiceInvalidRequestError, "Cannot delete a running execution", 400):
        executions.delete(execution_id)
    service.pass_time(3)
    bench.finished(execution_id)
    assert executions.delete(execution_id).id == int(execution_id)
    with refused(ServiceNotFoundError, "Not Found", 404):
        executions.get(execution_id)
    with refused(ServiceNotFoundError, "Not Found", 404):
        executions.delete(execution_id)


@pytest.mark.covers("get_execution", "delete_execution", "retry_execution")
def test_an_unknown_execution_is_not_found(bench: Workbench, service: Target) -> None:
    executions = service.client.executions
    bench.create()  # without any workflow, retry and stop say no more than "Not Found"
    for call in (executions.get, executions.delete):
        with refused(ServiceNotFoundError, "Not Found", 404):
            call(UNKNOWN)
    text = f'The execution with the ID "{UNKNOWN}" does not exist.'
    with refused(ServiceNotFoundError, text, 404):
        executions.retry(UNKNOWN)


@pytest.mark.covers("get_execution")
@pytest.mark.parametrize("execution_id", ["abc", "0"])
def test_a_malformed_id_is_refused(service: Target, execution_id: str) -> None:
    answer = service.raw("GET", f"/executions/{execution_id}")
    if service.differs("form of execution ids"):
        assert answer.status_code in (400, 404)
        return
    text = "request/params/executionId must be a positive integer"
    assert (answer.status_code, answer.json()) == (400, {"message": text})


@pytest.mark.covers("stop_execution", "get_execution")
def test_a_stopped_execution_is_canceled(bench: Workbench, service: Target) -> None:
    executions = service.client.executions
    execution_id = bench.start(bench.publish(webhook(unique()), wait(30)))
    answer = executions.stop(execution_id)
    assert (answer.status, answer.finished) == ("canceled", False)
    execution = bench.reaches(execution_id, "canceled")
    assert execution.stopped_at is not None
    assert execution.finished is False


@pytest.mark.covers("stop_execution")
def test_an_ended_execution_is_not_stopped(bench: Workbench, service: Target) -> None:
    executions = service.client.executions
    success = bench.start(bench.publish())
    error = bench.start(bench.publish(webhook(unique()), stop_and_error()))
    canceled = bench.start(bench.publish(webhook(unique()), wait(30)))
    executions.stop(canceled)
    for execution_id, status in ((success, "success"), (error, "error"), (canceled, "canceled")):
        bench.reaches(execution_id, status)
        text = f"Only running or waiting executions can be stopped and {execution_id} is currently {status}"
        error: type[ServiceApiError] = ServiceConflictError
        if service.differs("stop of an ended execution"):
            error, text = ServiceServerError, "Internal server error"
        with refused(error, text):
            executions.stop(execution_id)
    text = "Not Found" if service.differs("stop of an unknown execution") else "Failed to find execution to stop"
    with refused(ServiceNotFoundError, text, 404):
        executions.stop(UNKNOWN)


@pytest.mark.covers("stop_many_executions")
def test_stopping_many_counts_those_that_it_stopped(bench: Workbench, service: Target) -> None:
    executions = service.client.executions
    flow = bench.publish(webhook(unique()), wait(30))
    runs = [bench.start(flow) for _ in range(2)]
    assert executions.stop_many(["queued", "waiting"], workflow_id=flow.id).stopped == 0
    assert executions.stop_many(["running"], workflow_id=flow.id).stopped == 2
    for execution_id in runs:
        bench.reaches(execution_id, "canceled")
    assert executions.stop_many(["running"], workflow_id=flow.id).stopped == 0
    with refused(ServiceNotFoundError, "Workflow not found or not accessible", 404):
        executions.stop_many(["running"], workflow_id=NO_ID)


@pytest.mark.covers("stop_many_executions")
def test_stopping_many_within_a_time(bench: Workbench, service: Target) -> None:
    executions = service.client.executions
    flow = bench.publish(webhook(unique()), wait(30))
    started = executions.get(bench.start(flow)).started_at
    assert started is not None
    hour = timedelta(hours=1)
    assert executions.stop_many(["running"], workflow_id=flow.id, started_after=started + hour).stopped == 0
    assert executions.stop_many(["running"], workflow_id=flow.id, started_before=started - hour).stopped == 0
    bounds = {"started_after": started - hour, "started_before": started + hour}
    assert executions.stop_many(["running"], workflow_id=flow.id, **bounds).stopped == 1


@pytest.mark.covers("stop_many_executions")
def test_stopping_many_needs_a_body_and_known_statuses(service: Target) -> None:
    assert service.raw("POST", "/executions/stop").status_code == 415
    for body in ({}, {"status": []}, {"status": ["success"]}):
        assert service.raw("POST", "/executions/stop", json=body).status_code == 400


@pytest.mark.covers("get_execution")
def test_a_timeout_of_the_workflow_cancels(bench: Workbench, service: Target) -> None:
    execution_id = bench.start(bench.publish(webhook(unique()), wait(30), executionTimeout=1))
    service.pass_time(2)
    execution = bench.finished(execution_id)
    assert (execution.status, execution.finished) == ("canceled", False)


@pytest.mark.covers("get_execution", "list_executions")
def test_a_success_that_is_not_saved_vanishes(bench: Workbench, service: Target) -> None:
    flow = bench.publish(webhook(unique()), wait(2), saveDataSuccessExecution="none")
    execution_id = bench.start(flow)
    assert service.client.executions.get(execution_id).status == "running"
    service.pass_time(2)

    def vanished() -> bool:
        return service.raw("GET", f"/executions/{execution_id}").status_code == 404

    wait_until(vanished, what="the execution to vanish")
    assert list(service.client.executions.list(workflow_id=flow.id)) == []


@pytest.mark.covers("get_execution", "list_executions")
def test_a_failure_that_is_not_saved_vanishes(bench: Workbench, service: Target) -> None:
    flow = bench.publish(webhook(unique()), wait(2), stop_and_error(), saveDataErrorExecution="none")
    execution_id = bench.start(flow)
    service.pass_time(2)
    wait_until(
        lambda: service.raw("GET", f"/executions/{execution_id}").status_code == 404, what="the execution to vanish"
    )
    assert list(service.client.executions.list(workflow_id=flow.id)) == []


@pytest.mark.covers("stop_execution")
def test_a_stopped_execution_counts_as_canceled_where_nothing_is_saved(bench: Workbench, service: Target) -> None:
    unsaved = {"saveDataSuccessExecution": "none", "saveDataErrorExecution": "none"}
    execution_id = bench.start(bench.publish(webhook(unique()), wait(30), **unsaved))
    assert service.client.executions.stop(execution_id).status == "canceled"

    def ended() -> bool:
        answer = service.raw("GET", f"/executions/{execution_id}")
        # It is kept as a rule, but a busy server may drop it as one that ended by itself.
        return answer.status_code == 404 or answer.json()["status"] == "canceled"

    wait_until(ended, what="the execution to end")


@pytest.mark.covers("list_executions")
def test_filters_of_the_list(bench: Workbench, service: Target) -> None:
    executions = service.client.executions
    flow = bench.publish()
    first, second = (bench.finished(bench.start(flow)).id for _ in range(2))
    assert [one.id for one in executions.list(workflow_id=flow.id)] == [second, first]
    assert [one.id for one in executions.list(workflow_id=flow.id, limit=1)] == [second]
    assert list(executions.list(workflow_id=NO_ID)) == []
    listed = next(executions.list(workflow_id=flow.id, include_data=True, limit=1))
    assert listed.data is not None
    assert listed.workflow_data is not None


@pytest.mark.covers("list_executions", needs=["list_executions?startedAfter", "list_executions?startedBefore"])
def test_dates_and_times_bound_the_list(bench: Workbench, service: Target) -> None:
    executions = service.client.executions
    flow = bench.publish()
    started = bench.finished(bench.start(flow)).started_at
    assert started is not None
    hour = timedelta(hours=1)
    assert list(executions.list(workflow_id=flow.id, started_after=started + hour)) == []
    assert list(executions.list(workflow_id=flow.id, started_before=started - hour)) == []
    within = executions.list(workflow_id=flow.id, started_after=started - hour, started_before=started + hour)
    assert len(list(within)) == 1
    assert abs(started - datetime.now(UTC)) < timedelta(days=1)
    answer = service.raw("GET", "/executions?startedAfter=2026-01-01")
    assert answer.status_code == 400
    assert service.raw("GET", "/executions?startedAfter=2026-01-01T00:00:00Z").status_code == 200


@pytest.mark.covers("list_executions")
def test_one_known_status_at_a_time(service: Target) -> None:
    assert service.raw("GET", "/executions?status=finished").status_code == 400
    assert service.raw("GET", "/executions?status=success,error").status_code == 400


@pytest.mark.covers("list_execution_tags", "update_execution_tags")
def test_annotation_tags_are_a_separate_registry(bench: Workbench, service: Target) -> None:
    executions = service.client.executions
    execution_id = bench.finished(bench.start(bench.publish())).id
    assert executions.list_tags(execution_id) == []
    assert executions.update_tags(execution_id, []) == []
    with refused(ServiceNotFoundError, "Some tags not found", 404):
        executions.update_tags(execution_id, [NO_ID])
    for call in (executions.list_tags, lambda one: executions.update_tags(one, [])):
        with refused(ServiceNotFoundError, "Not Found", 404):
            call(UNKNOWN)


@pytest.mark.covers("stop_execution", "delete_execution")
def test_a_waiting_execution_can_be_stopped_and_deleted(bench: Workbench, service: Target) -> None:
    executions = service.client.executions
    flow = bench.publish(*answering(unique()), wait(LONG_WAIT * 10))
    stopped, deleted = bench.start(flow), bench.start(flow)
    for execution_id in (stopped, deleted):
        bench.reaches(execution_id, "waiting")
    assert executions.stop(stopped).status == "canceled"
    assert executions.delete(deleted).id == int(deleted)
    bench.reaches(stopped, "canceled")
    with refused(ServiceNotFoundError, "Not Found", 404):
        executions.get(deleted)
