"""Waits of every kind, with a connection that changes meanwhile."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.sensors.execution import ServiceExecutionSensor

QUICK_RETRIES = {"retries": 20, "retry_delay": timedelta(seconds=1), "fault_tolerance": 10}

with DAG("stack_moved", schedule=None, catchup=False, params={"workflow_id": "", "conn_id": "", "execution_id": ""}):
    for name in ("deferred", "deferred_without_retries", "in_worker"):
        ServiceRunWorkflowOperator(
            task_id=name,
            workflow_id="{{ params.workflow_id }}",
            payload={"task": name},
            deferrable=name != "in_worker",
            poll_interval=1,
            timeout=3600,
            service_conn_id="{{ params.conn_id }}",
            **(QUICK_RETRIES if name != "deferred_without_retries" else {"retries": 0}),
        )
    for name in ("sensor_deferred", "sensor_reschedule", "sensor_poke"):
        ServiceExecutionSensor(
            task_id=name,
            execution_id="{{ params.execution_id }}",
            deferrable=name == "sensor_deferred",
            mode=name.rpartition("_")[2] if name != "sensor_deferred" else "poke",
            poke_interval=1 if name != "sensor_reschedule" else 10,
            timeout=3600,
            service_conn_id="{{ params.conn_id }}",
            **QUICK_RETRIES,
        )
