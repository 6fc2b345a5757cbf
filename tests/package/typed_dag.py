"""A user's DAG, for a type checker to look at: outputs of tasks as arguments, mapped tasks, and the hook in a task."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_service.hooks.service import ServiceHook
from airflow_provider_service.notifications.workflow import ServiceNotifier
from airflow_provider_service.operators.data_tables import ServiceCreateDataTableOperator
from airflow_provider_service.operators.generic import ServiceOperator
from airflow_provider_service.operators.results import RunResult
from airflow_provider_service.operators.row_reads import ServiceReadRowsOperator
from airflow_provider_service.operators.rows import ServiceUpsertRowsOperator
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.operators.source_control import ServicePullSourceControlOperator
from airflow_provider_service.operators.workflows import ServiceActivateWorkflowOperator, ServiceSetWorkflowTagsOperator
from airflow_provider_service.sensors.execution import ServiceExecutionSensor


@task
def extract(shop: str) -> list[dict[str, Any]]:
    """Rows to load, from what the service holds."""
    hook = ServiceHook("service_default")
    workflow = hook.workflows.get("nightly")
    statuses = [one.status for one in hook.executions.list(workflow_id=workflow.id, limit=10)]
    return [{"sku": shop, "stock": statuses.count("success")}]


@task
def run_nightly() -> str:
    """The state of a run, whose result has a type."""
    result: RunResult = ServiceHook().run_workflow(workflow_name="nightly")
    return result["status"] or "unknown"


@task
def find_workflow(name: str) -> str:
    """The id of the workflow of a name."""
    return next(one.id for one in ServiceHook().workflows.list(name=name))


@task
def find_execution() -> str:
    """The id of the newest execution."""
    return next(one.id for one in ServiceHook().executions.list(limit=1))


with DAG("typed", schedule=None, on_failure_callback=ServiceNotifier(workflow_id="alert")) as dag:
    table = ServiceCreateDataTableOperator(task_id="table", name="stock", columns={"sku": "string", "stock": "number"})
    load = ServiceUpsertRowsOperator(
        task_id="load",
        data_table_name="stock",
        rows=extract("airport"),
        key_columns=["sku"],
        retries=3,
        retry_delay=timedelta(minutes=5),
        on_failure_callback=ServiceNotifier(workflow_id="alert"),
    )
    read = ServiceReadRowsOperator(
        task_id="read", data_table_id="{{ ti.xcom_pull('load')['data_table_id'] }}", max_rows=100
    )
    tag = ServiceSetWorkflowTagsOperator(task_id="tag", workflow_id="nightly", tags=["prod"], create_missing=False)
    activate = ServiceActivateWorkflowOperator(task_id="activate", workflow_id=find_workflow("nightly"))
    pull = ServicePullSourceControlOperator(task_id="pull", auto_publish="all", timeout=timedelta(minutes=10))
    each = ServiceOperator.partial(task_id="each", resource="workflows", action="get").expand(
        arguments=[{"workflow_id": "nightly"}]
    )

    run = ServiceRunWorkflowOperator(
        task_id="run", workflow_id=find_workflow("nightly"), payload=read.output, timeout=timedelta(hours=1)
    )
    wait = ServiceExecutionSensor(task_id="wait", execution_id=find_execution(), mode="reschedule", timeout=600)
    show = ServiceOperator(task_id="show", resource="workflows", action="get", arguments=read.output)

    pull >> tag >> activate >> each
    table >> load >> read >> show
    run >> wait
