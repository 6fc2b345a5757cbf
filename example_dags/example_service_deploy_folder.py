"""Deploy a folder of workflows, for example a git checkout, as one: if anything fails, everything goes back."""

from __future__ import annotations

from datetime import datetime

from airflow.sdk import DAG

from airflow_provider_service.operators.instances import ServiceDeployWorkflowsOperator, ServiceExportWorkflowsOperator

with DAG(
    "example_service_deploy_folder",
    schedule=None,
    start_date=datetime(2026, 1, 1),
    catchup=False,
    params={
        # A folder, absolute or relative to this file, or an address of object storage such as s3://my_conn@bucket/flows.
        "folder": "workflows",
        "copies": "/tmp/service-workflows",  # noqa: S108 - the user names the folder
    },
    tags=["service", "example"],
) as dag:
    # The log shows the plan, with the changes of each node. With preview=True, the task stops there. Workflows that an
    # earlier run deployed, and that are no longer in the folder, are archived.
    deploy = ServiceDeployWorkflowsOperator(
        task_id="deploy",
        source="{{ params.folder }}",
        deployment_name="shop",
        archive_missing=True,
    )

    # One file per workflow, as it runs now: to compare, to commit, or to deploy elsewhere.
    export = ServiceExportWorkflowsOperator(
        task_id="export",
        path="{{ params.copies }}",
        workflow_names=["Airflow example: price of a product", "Airflow example: quote"],
    )

    deploy >> export
