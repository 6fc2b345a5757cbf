"""The guide's example of a mapped operator with limits; tests/docs/test_task_pages.py runs it."""

from airflow.sdk import DAG, task

from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator

with DAG("sync_all_regions", schedule=None) as dag:

    @task
    def regions() -> list[dict[str, str]]:
        """Return the payload of each run."""
        return [{"region": "eu"}, {"region": "us"}]

    sync = ServiceRunWorkflowOperator.partial(
        task_id="sync",
        workflow_name="Sync region",
        deferrable=True,
        poll_interval=1,
        pool="service_starts",  # how many tasks start a workflow at the same time, in all DAGs
        max_active_tis_per_dagrun=20,
        retries=2,
    ).expand(payload=regions())
