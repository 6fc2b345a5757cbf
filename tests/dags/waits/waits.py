"""Every way to wait, for executions that the configuration of the run names."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG

from airflow_provider_service.sensors.execution import ServiceExecutionSensor

MODES: dict[str, dict[str, Any]] = {
    "poke": {"mode": "poke", "deferrable": False},
    "reschedule": {"mode": "reschedule", "deferrable": False},
    "deferrable": {"deferrable": True},
}

with DAG("waits", schedule=None, catchup=False) as dag:
    for name, mode in MODES.items():
        options = {
            **mode,
            "execution_id": f"{{{{ dag_run.conf['{name}'] }}}}",
            "poke_interval": 0.2,
            "timeout": 300,
            "retries": 1,
            "retry_delay": timedelta(0),
        }
        ServiceExecutionSensor(task_id=name, **options)
        ServiceExecutionSensor(task_id=f"{name}_soft", soft_fail=True, **options)
