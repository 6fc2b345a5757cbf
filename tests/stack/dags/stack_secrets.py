"""Tasks that handle secrets: a protected webhook, a credential, a refused key, an unreachable proxy."""

from __future__ import annotations

from airflow.sdk import DAG

from airflow_provider_service.operators.credentials import ServiceCreateCredentialOperator
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.sensors.execution import ServiceExecutionSensor

with DAG("stack_secrets", schedule=None, catchup=False, params={"workflow_id": "", "other_id": ""}):
    for name, deferrable in (("deferred", True), ("in_worker", False)):
        ServiceRunWorkflowOperator(
            task_id=f"protected_{name}",
            workflow_id="{{ params.workflow_id }}",
            webhook_conn_id="stack_webhook",
            deferrable=deferrable,
            poll_interval=1,
            retries=0,
        )

    ServiceRunWorkflowOperator(
        task_id="fails_wrong",
        workflow_id="{{ params.workflow_id }}",
        webhook_conn_id="stack_wrong_webhook",
        poll_interval=1,
        retries=0,
    )
    ServiceRunWorkflowOperator(
        task_id="fails_proxied",
        workflow_id="{{ params.workflow_id }}",
        service_conn_id="stack_proxied",
        poll_interval=1,
        retries=0,
    )
    ServiceRunWorkflowOperator(
        task_id="fails_mcp",
        workflow_id="{{ params.other_id }}",
        service_conn_id="stack_mcp",
        start="mcp",
        enable_mcp=True,
        poll_interval=1,
        retries=0,
    )
    ServiceExecutionSensor(
        task_id="fails_refused", execution_id="1", service_conn_id="stack_refused", deferrable=True, retries=0
    )

    ServiceCreateCredentialOperator(
        task_id="credential",
        name="Airflow stack",
        credential_type="httpBasicAuth",
        data={"user": "airflow"},
        data_conn_id="stack_credential",
        data_conn_fields={"password": "password"},
    )
