"""Every hour, check the workflows with the tag "critical"; if one of them is unhealthy, alert through a workflow."""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.sdk import DAG

from airflow_provider_service.notifications.workflow import ServiceNotifier
from airflow_provider_service.operators.deployment import ServiceCreateOrUpdateWorkflowOperator
from airflow_provider_service.operators.health import ServiceWorkflowHealthCheckOperator
from airflow_provider_service.operators.workflows import ServiceActivateWorkflowOperator

# The workflow as the service exports it. Add the nodes that send the message after this one.
WORKFLOW = {
    "name": "Airflow example: health alert",
    "nodes": [
        {
            "id": "alert",
            "name": "Alert",
            "type": "n8n-nodes-base.webhook",
            "webhookId": "0f8a5a0e-3d0b-5d0a-8c6b-1d4c2f9f5b27",
            "typeVersion": 2,
            "position": [0, 0],
            "parameters": {"httpMethod": "POST", "path": "airflow-example-health-alert", "options": {}},
        },
    ],
    "connections": {},
    "settings": {},
}

with DAG(
    "example_service_health_check",
    schedule="@hourly",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    # Two simultaneous runs would both create the workflow, since the service allows duplicate names.
    max_active_runs=1,
    tags=["service", "example"],
) as dag:
    put_in_place = ServiceCreateOrUpdateWorkflowOperator(task_id="put_in_place", definition=WORKFLOW)

    activate = ServiceActivateWorkflowOperator(
        task_id="activate", workflow_id="{{ ti.xcom_pull(task_ids='put_in_place')['workflow_id'] }}"
    )

    check = ServiceWorkflowHealthCheckOperator(
        task_id="check",
        tag_name="critical",
        window=timedelta(hours=24),
        max_failure_rate=0.1,
        max_age_of_success=timedelta(hours=12),
        max_duration_p95=timedelta(minutes=10),
        # The alert contains the message of the task, which names each unhealthy workflow and the reason.
        on_failure_callback=ServiceNotifier(
            workflow_id="{{ ti.xcom_pull(task_ids='activate')['workflow_id'] }}",
            message="Workflows are unhealthy",
        ),
    )

    put_in_place >> activate >> check
