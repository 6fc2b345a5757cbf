"""A run in the triggerer and one in a worker, to be marked and cleared."""

from __future__ import annotations

from airflow.sdk import DAG

from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator

for cancel_on_kill in (True, False):
    with DAG(
        f"stack_marks{'' if cancel_on_kill else '_kept'}",
        schedule=None,
        catchup=False,
        params={"workflow_id": ""},
    ) as dag:
        for name in ("deferred", "in_worker"):
            ServiceRunWorkflowOperator(
                task_id=name,
                workflow_id="{{ params.workflow_id }}",
                payload={"task": name, "run": "{{ run_id }}"},
                deferrable=name == "deferred",
                poll_interval=1,
                timeout=3600,
                cancel_on_kill=cancel_on_kill,
                retries=0,
            )
    globals()[dag.dag_id] = dag
