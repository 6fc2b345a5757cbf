"""Start a DAG when an execution of a workflow has ended, no matter who or what started it."""

from __future__ import annotations

import os
from typing import Any

from airflow.sdk import DAG, Asset, AssetWatcher, task

from airflow_provider_service.triggers.events import ServiceExecutionEventTrigger

WORKFLOW_NAME = os.environ.get("AIRFLOW_EXAMPLE_WORKFLOW_NAME", "Import orders")

orders = Asset(
    "airflow_example_orders_imported",
    watchers=[
        AssetWatcher(
            name="import_has_ended",
            trigger=ServiceExecutionEventTrigger(
                workflow_name=WORKFLOW_NAME, statuses=["success", "error"], poll_interval=10
            ),
        )
    ],
)

with DAG("example_service_asset_event", schedule=[orders], catchup=False, tags=["service", "example"]) as dag:

    @task
    def ended(triggering_asset_events: Any) -> list[dict[str, str]]:
        """Return the executions whose ends started this run; there are none if it was started by hand."""
        return [event.extra["payload"] for events in triggering_asset_events.values() for event in events]

    @task
    def report(executions: list[dict[str, str]]) -> None:
        """Print how each execution ended."""
        for execution in executions:
            print(f"Execution {execution['execution_id']}: {execution['status']}, see {execution['url']}")

    report(ended())
