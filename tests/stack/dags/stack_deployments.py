"""Deployments of folders below one that the run's configuration names: with attempts left, and in the last one."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from airflow_provider_service.operators.instances import ServiceDeployWorkflowsOperator

with DAG("stack_deployments", schedule=None, catchup=False, params={"folder": ""}):
    for name, retries in (("retried", 20), ("last", 0)):
        ServiceDeployWorkflowsOperator(
            task_id=name,
            source="{{ params.folder }}/" + name,
            retries=retries,
            retry_delay=timedelta(seconds=5),
        )
