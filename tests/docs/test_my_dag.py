"""How users test a task of their own; the README and the guide show this file."""

from datetime import timedelta

import pytest
from airflow.sdk import DAG

from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.testing import run_task

pytest_plugins = ["airflow_provider_service.testing.pytest_plugin"]

with DAG("my_dag", schedule=None, params={"region": "eu"}):
    sync = ServiceRunWorkflowOperator(
        task_id="sync",
        workflow_name="Nightly sync",
        payload={"region": "{{ params.region }}"},
        return_output="last_node",
        deferrable=True,
        timeout=timedelta(hours=3),
        retries=2,
    )


def test_sync_returns_what_the_workflow_puts_out(service):
    service.workflow("Nightly sync", output=[{"rows": 3}], takes=timedelta(hours=2))

    result = run_task(sync, params={"region": "us"})

    assert result.return_value["output"] == [{"rows": 3}]
    service.assert_ran("Nightly sync", payload={"region": "us"})


def test_sync_fails_with_the_workflow(service):
    service.workflow("Nightly sync", fails_with="The disk is full")

    with pytest.raises(Exception, match="The disk is full"):
        run_task(sync, attempts=3)

    service.assert_ran("Nightly sync", times=3)


def test_sync_stops_a_workflow_that_is_too_slow(service):
    slow = service.workflow("Nightly sync", takes=timedelta(hours=4))

    with pytest.raises(Exception, match="had not ended 10800 s after the wait began"):
        run_task(sync)

    assert [run.status for run in slow.runs] == ["canceled"]


def test_a_lost_answer_runs_the_workflow_only_once(service):
    service.workflow("Nightly sync")
    service.simulator.inject("drop", path="/webhook/", after_processing=True)

    run_task(sync)

    service.assert_ran("Nightly sync")


with DAG("approvals", schedule=None):
    approve = ServiceRunWorkflowOperator(
        task_id="approve", workflow_name="Approve", payload={"approved": True}, return_output="last_node"
    )


def test_approve_fills_in_the_form(service):
    service.workflow("Approve", trigger="form", output=[{"ticket": 7}])

    result = run_task(approve)

    assert result.return_value["output"] == [{"ticket": 7}]
    service.assert_ran("Approve", payload={"approved": True})
