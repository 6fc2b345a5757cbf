"""The guide's example of an execution that Airflow did not start; tests/docs/test_guide_dags.py runs it."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_service.sensors.execution import ServiceExecutionSensor

with DAG("other_executions", schedule=None, catchup=False) as dag:
    wait = ServiceExecutionSensor(
        task_id="wait",
        execution_id="{{ dag_run.conf['execution_id'] }}",
        return_output={"node": "Report"},
        deferrable=True,
        poke_interval=1,
    )

    @task
    def count_orders(result: dict[str, Any]) -> int:
        """Use the output of the node."""
        [report] = result["output"]
        return report["orders"]

    count_orders(wait.output)
