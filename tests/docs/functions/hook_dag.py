"""The guide's example of runs from a function; tests/docs/test_hook_dag.py runs it."""

from __future__ import annotations

from airflow.sdk import DAG, task

from airflow_provider_service.hooks.service import ServiceHook

with DAG("sync_regions", schedule=None, catchup=False) as dag:

    @task(retries=2)
    def sync_regions(regions: list[str]) -> dict[str, str]:
        """Sync one region after the other; the first that fails ends it."""
        with ServiceHook() as service:
            return {
                region: service.run_workflow(
                    workflow_name="Sync region", payload={"region": region}, run_key=region, poll_interval=1
                )["execution_id"]
                for region in regions
            }

    sync_regions(["eu", "us"])
