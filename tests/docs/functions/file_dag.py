"""The guide's example of a file that a workflow makes; tests/docs/test_guide_dags.py runs it."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, ObjectStoragePath, task

from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator

with DAG("file_of_a_workflow", schedule=None, catchup=False) as dag:
    build = ServiceRunWorkflowOperator(
        task_id="build", workflow_name="Build report", return_output="last_node", deferrable=True, poll_interval=1
    )

    @task
    def count_pages(result: dict[str, Any]) -> int:
        """Read the file that the workflow has stored."""
        [report] = result["output"]  # [{"path": "s3://my_conn@reports/2026-01.txt"}]
        with ObjectStoragePath(report["path"]).open("rb") as file:
            return file.read().count(b"\f") + 1

    count_pages(build.output)
