"""Waits of every kind, with a version of the provider that is replaced meanwhile; the first has no sensor of rows."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, task

import airflow_provider_service
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.sensors.execution import ServiceExecutionSensor
from airflow_provider_service.sensors.health import ServiceWorkflowHealthSensor
from airflow_provider_service.sensors.source_control import ServiceSourceControlSensor

try:
    from airflow_provider_service.sensors.rows import ServiceRowSensor
except ImportError:
    ServiceRowSensor = None  # type: ignore[assignment, misc]

CONNECTION = "stack_upgrade"
QUICK_RETRIES = {"retries": 20, "retry_delay": timedelta(seconds=1)}
WAIT = {"deferrable": True, "poke_interval": 5, "timeout": 3600, "service_conn_id": CONNECTION, **QUICK_RETRIES}


@task(**QUICK_RETRIES)
def installed() -> str:
    """Where the provider lies that the worker has imported."""
    return str(airflow_provider_service.__file__)


with DAG("stack_upgrade", schedule=None, catchup=False, params={"workflow_id": "", "execution_id": ""}):
    installed()
    for name in ("deferred", "in_worker"):
        ServiceRunWorkflowOperator(
            task_id=name,
            workflow_id="{{ params.workflow_id }}",
            payload={"task": name},
            deferrable=name == "deferred",
            poll_interval=1,
            timeout=3600,
            service_conn_id=CONNECTION,
            **QUICK_RETRIES,
        )
    ServiceExecutionSensor(task_id="execution", execution_id="{{ params.execution_id }}", **WAIT)
    ServiceWorkflowHealthSensor(task_id="health", workflow_id="{{ params.workflow_id }}", min_runs=1, **WAIT)
    ServiceSourceControlSensor(task_id="source_control", state="unchanged", **WAIT)

if ServiceRowSensor is not None:
    with DAG("stack_upgrade_rows", schedule=None, catchup=False):
        installed()
        ServiceRowSensor(task_id="rows", data_table_name="Upgrade", **WAIT)
