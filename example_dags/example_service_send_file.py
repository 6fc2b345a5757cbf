"""Run a workflow with a file: a webhook with a parameter in its path takes it, after it has checked a signed token."""

from __future__ import annotations

from airflow.sdk import DAG, Param

from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator

with DAG(
    "example_service_send_file",
    schedule=None,
    catchup=False,
    # A path on the worker, or an address in object storage, such as s3://conn_id@bucket/invoice.pdf.
    params={"customer": Param(7), "invoice": Param("s3://aws_default@invoices/invoice.pdf")},
    tags=["service", "example"],
) as dag:
    ServiceRunWorkflowOperator(
        task_id="send",
        workflow_name="Book invoice",
        path_parameters={"customer": "{{ params.customer }}"},  # the path is invoices/:customer
        files={"invoice": "{{ params.invoice }}"},
        payload={"booked_by": "{{ run_id }}"},
        webhook_conn_id="invoices_webhook",
        deferrable=True,
        poll_interval=1,
        retries=2,
    )
