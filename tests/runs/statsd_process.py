"""A process whose Airflow sends its metrics to a StatsD server, as a triggerer's does, and which reports every kind."""

from __future__ import annotations

import sys

import airflow.jobs.triggerer_job_runner  # noqa: F401 - the metrics are set up as in a triggerer

from airflow_provider_service._airflow import metrics
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.testing import run_task


def main(workflow_id: str) -> None:
    """Run a workflow by a deferred task, and report what it did not."""
    run_task(ServiceRunWorkflowOperator(task_id="run", workflow_id=workflow_id, deferrable=True, poll_interval=1))
    for name in (metrics.RUNS_RESUMED, metrics.RUNS_IN_DOUBT):
        metrics.count(name)
    for number, name in enumerate((metrics.ROWS_INSERTED, metrics.ROWS_UPDATED, metrics.ROWS_DELETED), 1):
        metrics.count(name, number)


if __name__ == "__main__":
    main(sys.argv[1])
