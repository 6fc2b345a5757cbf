"""Promote the workflows of a tag from staging to production, after the plan has been approved by its size."""

from __future__ import annotations

from datetime import datetime

from airflow.sdk import DAG, task

from airflow_provider_service.operators.instances import ServicePromoteWorkflowsOperator

with DAG(
    "example_service_promote",
    schedule=None,
    start_date=datetime(2026, 1, 1),
    catchup=False,
    params={"tag": "release", "most": 20},
    default_args={
        "source_conn_id": "service_staging",
        "service_conn_id": "service_production",
        # Names that differ in production.
        "mapping": {"credentials": {"Mail (staging)": "Mail"}, "tags": {"staging": "production"}},
    },
    tags=["service", "example"],
) as dag:
    plan = ServicePromoteWorkflowsOperator(
        task_id="plan",
        tag_name="{{ params.tag }}",
        preview=True,
    )

    @task
    def is_small(planned: dict, params: dict | None = None) -> None:
        """Stop a promotion that changes more workflows than anybody expects."""
        changed = {*planned["created"], *planned["updated"], *planned["deactivated"]}
        most = (params or {}).get("most", 20)
        if len(changed) > most:
            raise ValueError(f"{len(changed)} workflows would be changed, more than {most}: {sorted(changed)}")

    # Objects that the workflows name are found in production by their names. A failure rolls everything back.
    promote = ServicePromoteWorkflowsOperator(
        task_id="promote",
        tag_name="{{ params.tag }}",
    )

    is_small(plan.output) >> promote
