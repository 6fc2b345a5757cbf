"""A watched workflow: each end of an execution starts a run."""

from __future__ import annotations

import os

from airflow.sdk import DAG, Asset, AssetWatcher

from airflow_provider_service.triggers.events import ServiceExecutionEventTrigger

WATCHED = os.environ.get("STACK_WATCHED_WORKFLOW_ID", "aB3dE5fG7hJ9kL1m")

ends = Asset(
    "stack_ends",
    watchers=[
        AssetWatcher(name="ended", trigger=ServiceExecutionEventTrigger(workflow_id=WATCHED, poll_interval=2)),
    ],
)

with DAG("stack_events", schedule=[ends], catchup=False):
    pass
