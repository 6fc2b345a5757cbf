"""DAGs as Airflow's own means make them wait for each other: backfills, setups, groups, pools, backoff, assets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset, task, task_group

from airflow_provider_service.operators.executions import ServiceStopExecutionOperator
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator

QUICK_RETRIES = {"retries": 20, "retry_delay": timedelta(seconds=1)}
WORKFLOW = {"workflow_id": ""}


def run(task_id: str, **arguments: Any) -> Any:
    """The arguments of a deferred run."""
    arguments = {"workflow_id": "{{ params.workflow_id }}", **arguments}
    return {"task_id": task_id, "deferrable": True, "poll_interval": 1, "timeout": 3600, **QUICK_RETRIES, **arguments}


with DAG(
    "stack_backfill",
    schedule="@daily",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    end_date=datetime(2026, 1, 14, tzinfo=UTC),
    catchup=False,
    params=WORKFLOW,
):
    strict = {"depends_on_past": True, "wait_for_downstream": True}
    first, second = (
        ServiceRunWorkflowOperator(**run(name, payload={"task": name, "day": "{{ ds }}"}, **strict))
        for name in ("first", "second")
    )
    first >> second

with DAG("stack_teardown", schedule=None, catchup=False, params={**WORKFLOW, "end": "success"}):
    start = ServiceRunWorkflowOperator(**run("start", wait_for_completion=False))

    @task(retries=1, retry_delay=timedelta(seconds=1))
    def work(params: dict[str, Any]) -> None:
        """Use what runs meanwhile."""
        if params["end"] == "failed":
            raise ValueError("there is nothing to load")

    stop = ServiceStopExecutionOperator(task_id="stop", execution_id="{{ ti.xcom_pull('start')['execution_id'] }}")
    start >> work() >> stop.as_teardown(setups=start.as_setup())

with DAG("stack_group", schedule=None, catchup=False, params={**WORKFLOW, "parts": 1}):

    @task(**QUICK_RETRIES)
    def parts(params: dict[str, Any]) -> list[int]:
        """The parts, of which each is a group."""
        return list(range(params["parts"]))

    @task_group
    def one(part: int) -> None:
        """A run, and what follows it."""
        ServiceRunWorkflowOperator(**run("run", payload={"part": part})) >> EmptyOperator(task_id="after")

    one.expand(part=parts())

LIMITED = {"stack_pool": {"pool": "stack_pool"}, "stack_tasks": {"max_active_tis_per_dag": 2}}
for dag_id, limit in LIMITED.items():
    with DAG(dag_id, schedule=None, catchup=False, params=WORKFLOW) as dag:
        ServiceRunWorkflowOperator.partial(**run("run", **limit)).expand(
            payload=[{"part": number} for number in range(8)]
        )
    globals()[dag_id] = dag

with DAG("stack_backoff", schedule=None, catchup=False, params=WORKFLOW):
    backoff = {"retries": 3, "retry_exponential_backoff": 2, "max_retry_delay": timedelta(seconds=10)}
    ServiceRunWorkflowOperator(**run("run", **backoff))

loaded = Asset("stack_loaded")
with DAG("stack_produces", schedule=None, catchup=False, params=WORKFLOW):
    ServiceRunWorkflowOperator(**run("run", outlets=[loaded]))

with DAG("stack_consumes", schedule=[loaded], catchup=False):
    ServiceRunWorkflowOperator(
        **run("run", workflow_id=None, workflow_name="Consumes", payload={"run": "{{ run_id }}"})
    )
