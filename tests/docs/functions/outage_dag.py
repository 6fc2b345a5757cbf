"""The guide's example of retries after an outage; tests/docs/test_task_pages.py runs it."""

from airflow.sdk import DAG, task

from airflow_provider_service.hooks.service import ServiceHook
from airflow_provider_service.operators.executions import ServiceRetryExecutionOperator

OUTAGE = {"since": "2026-01-31T08:00:00Z", "until": "2026-01-31T09:00:00Z"}

with DAG("retry_after_outage", schedule=None, params=OUTAGE) as dag:

    @task
    def failed(params: dict[str, str] | None = None) -> list[str]:
        """Return the ids of the executions that began during the outage and failed."""
        began = {"started_after": params["since"], "started_before": params["until"]}
        with ServiceHook() as service:
            return [execution.id for execution in service.executions.list(status="error", **began)]

    ServiceRetryExecutionOperator.partial(
        task_id="retry", deferrable=True, poll_interval=5, max_active_tis_per_dagrun=10
    ).expand(execution_id=failed())
