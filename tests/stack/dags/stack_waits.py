"""Many deferred sensors, one for each execution that the run's configuration names."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_service.sensors.execution import ServiceExecutionSensor

with DAG("stack_waits", schedule=None, catchup=False, params={"execution_ids": []}):

    @task
    def executions(params: dict[str, Any]) -> list[str]:
        """The executions to wait for."""
        return list(params["execution_ids"])

    ServiceExecutionSensor.partial(task_id="wait", deferrable=True, poke_interval=10, timeout=86_400, retries=5).expand(
        execution_id=executions()
    )
