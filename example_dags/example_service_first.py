from airflow.sdk import DAG

from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator

with DAG("example_service_first", schedule=None) as dag:
    ServiceRunWorkflowOperator(
        task_id="run",
        workflow_name="Nightly sync",
        payload={"requested_by": "{{ run_id }}"},
        deferrable=True,
    )
