"""Failures that are sent to a workflow: one by the worker, one by the DAG processor."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_service.notifications.workflow import ServiceNotifier


def alert(sent_by: str) -> Any:
    """Notify the workflow that the run's configuration names."""
    return ServiceNotifier(
        workflow_id="{{ dag_run.conf.alert_workflow_id }}",
        message="{{ run_id }} has failed",
        details={"sent_by": sent_by, "logical_date": "{{ dag_run.logical_date }}"},
    )


with DAG("stack_alerts", schedule=None, catchup=False, on_failure_callback=alert("dag-processor")):

    @task(on_failure_callback=alert("worker"))
    def fail() -> None:
        """Fail."""
        raise ValueError("there is nothing to load")

    fail()
